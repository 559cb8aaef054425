// The routes for what owners, the admin and holders of a delete token do with pastes; the rules are pastes/owned.ts.

import type { Caller } from '../../core/callers.ts';
import { Refusal } from '../../core/refusals.ts';
import { unixSeconds } from '../../core/time.ts';
import * as owned from '../../pastes/owned.ts';
import type { Parts } from '../../pastes/parts.ts';
import type { Paste } from '../../store/store.ts';
import { jsonReply, rateHeaders, type Reply, textReply } from '../engine/reply.ts';
import type { Request } from '../engine/request.ts';
import { page, saysYes, single, timeBounds, typeGlob } from '../input.ts';
import { hinting, listText, presentListItem, presentMetadata } from '../present.ts';
import { UPLOAD_HINT } from '../routes.ts';
import { evaluatePreconditions, offerOf } from './pastes.ts';

export async function updatePaste(parts: Parts, request: Request): Promise<Reply> {
  const { headers } = request;
  const offer = await offerOf(parts, request);
  // An update has no default expiry to fall back on.
  const isExpiryInvalid = offer.requestedTtlSeconds === undefined && headers.single('x-expiry') !== undefined;
  if (isExpiryInvalid) throw new Refusal('expiryInvalid');
  // If the content were stored all the same, it could be read more than once.
  const isToBurn = saysYes(headers, 'x-burn-after-read');
  if (isToBurn) throw new Refusal('requestMalformed', { hint: 'only a new paste can burn: POST / makes one' });
  const { paste, rate } = await owned.updatePaste(parts, {
    ...offer, ...targetOf(request, offer.caller), removesPassword: saysYes(headers, 'x-remove-password'),
  }).catch((error: unknown) => {
    throw hinting(error, ['identityRequired', 'pasteNotFound'], UPLOAD_HINT);
  });
  return jsonReply(200, { message: 'paste updated', ...presentMetadata(paste) }, rate ? rateHeaders(rate) : {});
}

export async function deletePaste(parts: Parts, request: Request): Promise<Reply> {
  const token = request.headers.single('x-delete-token');
  await owned.deletePaste(parts, targetOf(request, await parts.identity.callerOf(request.origin)), token);
  return jsonReply(200, { message: 'paste deleted' });
}

function targetOf(request: Request, caller: Caller): owned.Target {
  const { parameter: id, headers, origin: { clientAddress } } = request;
  // `*` means whatever is there, also when others change it meanwhile (RFC 9110 section 13.1.1).
  const isConditional = headers.all('if-none-match').length > 0 || headers.all('if-match').some((tags) => tags !== '*');
  const meantContent = (paste: Paste): string => {
    if (evaluatePreconditions(request, paste) === 'unmodified') throw new Refusal('preconditionFailed');
    return paste.sha256;
  };
  return { id, caller, clientAddress, meantContent: isConditional ? meantContent : undefined };
}

export async function listPastes(parts: Parts, request: Request): Promise<Reply> {
  const caller = await parts.identity.callerOf(request.origin);
  const { query, origin: { clientAddress } } = request;
  // As for GET /audit: a caller who may not ask is told that first, and not what is wrong with the query.
  const owner = owned.ownerListed(caller, single(query, 'all') === '1');
  const asked = page(query, { fallback: 100, maximum: 1000 });
  const filter = { ...timeBounds(query), typeGlob: typeGlob(query), owner };
  parts.rates.countLookup(clientAddress, caller);
  const { items, total } = await parts.store.read.listPastes(filter, asked, unixSeconds(parts.clock));
  const varies = { Vary: 'Accept' };
  if (request.prefersText) return textReply(200, listText(items), varies);
  return jsonReply(200, { pastes: items.map(presentListItem), total, ...asked }, varies);
}
