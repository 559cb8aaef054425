// PUT /{id}, DELETE /{id} and GET /pastes: from a request to the rules of pastes/own-pastes.ts and back to a reply.

import type { OwnPastes } from '../../pastes/own-pastes.ts';
import { type Handlers, jsonReply, rateHeaders, type Reply, textReply } from '../engine/reply.ts';
import type { Request } from '../engine/request.ts';
import {
  amendedTtlSeconds, type CallerOf, isJson, page, password, removesPassword, requireIdentityEncoding,
  single, timeBounds, typeGlob,
} from '../input.ts';
import { listText, presentListItem, presentMetadata } from '../present.ts';

/** The contract's paging of GET /pastes. */
const PAGING = { fallback: 100, maximum: 1000 };

export function createOwnPasteHandlers(parts: {
  pastes: OwnPastes;
  callerOf: CallerOf;
}): Pick<Handlers, 'updatePaste' | 'deletePaste' | 'listPastes'> {
  const { pastes, callerOf } = parts;

  async function updatePaste(request: Request): Promise<Reply> {
    const { headers, body } = request;
    requireIdentityEncoding(headers);
    const contentType = headers.single('content-type');
    const { paste, rate } = await pastes.update(request.params['id'] ?? '', {
      caller: await callerOf(request),
      clientAddress: request.clientAddress,
      source: body.pipe,
      declaredBytes: body.declaredBytes,
      hasContent: body.declaredBytes !== 0,
      isJson: isJson(contentType),
      contentType,
      password: password(headers),
      removesPassword: removesPassword(headers),
      requestedTtlSeconds: amendedTtlSeconds(headers),
    });
    const replyHeaders = rate === null ? {} : rateHeaders(rate);
    return jsonReply(200, { message: 'paste updated', ...presentMetadata(paste) }, replyHeaders);
  }

  async function deletePaste(request: Request): Promise<Reply> {
    await pastes.remove(request.params['id'] ?? '', await callerOf(request), request.clientAddress);
    return jsonReply(200, { message: 'paste deleted' });
  }

  async function listPastes(request: Request): Promise<Reply> {
    const caller = await callerOf(request);
    const { query } = request;
    const asked = page(query, PAGING);
    const filter = { ...timeBounds(query), typeGlob: typeGlob(query) };
    const { items, total } = await pastes.list({
      caller, clientAddress: request.clientAddress, filter, page: asked, all: single(query, 'all') === '1',
    });
    const varies = { Vary: 'Accept' };
    if (request.prefersText) return textReply(200, listText(items), varies);
    return jsonReply(200, { pastes: items.map(presentListItem), total, ...asked }, varies);
  }

  return { updatePaste, deletePaste, listPastes };
}
