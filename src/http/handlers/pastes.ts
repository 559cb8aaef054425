// The routes of pastes: from a request to the rules of pastes/pastes.ts, and from what they give to a reply. What
// owners do is in owned.ts, which is loaded with the first such request, as pages.ts is with the first page.

import { type CompactBytes, partOf } from '../../core/content.ts';
import { Refusal } from '../../core/refusals.ts';
import { andThen, type Awaitable, onceForEach } from '../../core/time.ts';
import type { Offer } from '../../pastes/intake.ts';
import type { Parts } from '../../pastes/parts.ts';
import * as pastes from '../../pastes/pastes.ts';
import type { Paste } from '../../store/store.ts';
import {
  emptyReply, jsonReply, rateHeaders, refusalReply, type Reply, type ReplyBody, StreamedBody, textReply,
} from '../engine/reply.ts';
import { checkAsked, type Request } from '../engine/request.ts';
import {
  isOfType, namesEtag, parseRange, password, requestedTtlSeconds, requireWholeContent, saysYes, work,
} from '../input.ts';
import { hintingClient, presentCreated, presentMetadata } from '../present.ts';
import { allowOf, type Handlers, ROUTES } from '../routes.ts';

const owned = () => import('./owned.ts');

export function pasteHandlers(parts: Parts) {
  return {
    createPaste: (request) => createPaste(parts, request),
    getPaste: (request) => getPaste(parts, request),
    getRaw: (request) => getRaw(parts, request),
    answerForm: (request) => answerForm(parts, request),
    updatePaste: (request) => owned().then(({ updatePaste }) => updatePaste(parts, request)),
    deletePaste: (request) => owned().then(({ deletePaste }) => deletePaste(parts, request)),
    listPastes: (request) => owned().then(({ listPastes }) => listPastes(parts, request)),
  } satisfies Partial<Handlers>;
}

/** `curl -F file=@x` sends more than the file, and all that is sent is stored. */
const FORM_HINT = 'this is multipart/form-data: use --data-binary @FILE or -T FILE';

async function createPaste(parts: Parts, request: Request): Promise<Reply> {
  const { headers } = request;
  const submission = {
    ...await offerOf(parts, request), work: work(headers), burnAfterRead: saysYes(headers, 'x-burn-after-read'),
  };
  const { paste, rate } = await pastes.createPaste(parts, submission).catch((error: unknown) => {
    throw hintingClient(error, request.publicUrl, 'sh pastec FILE');
  });
  const replyHeaders = {
    Location: `${parts.config.urlPrefix}/${paste.id}`, Vary: 'Accept',
    ...(rate === null ? {} : rateHeaders(rate)),
    ...(paste.owner === null ? { 'X-Delete-Token': parts.deleteTokens.tokenOf(paste.id) } : {}),
    ...(isOfType(submission.contentType, 'multipart/form-data') ? { 'X-Hint': FORM_HINT } : {}),
  };
  if (request.prefersText) return textReply(201, `${request.publicUrl}/${paste.id}`, replyHeaders);
  return jsonReply(201, presentCreated(paste, submission.requestedTtlSeconds !== undefined), replyHeaders);
}

/** What both POST and PUT say about the content that they bring. */
export async function offerOf({ identity }: Parts, request: Request): Promise<Offer> {
  const { headers, body: { pipe: source, declaredBytes }, origin, origin: { clientAddress } } = request;
  requireWholeContent(headers);
  const contentType = headers.single('content-type');
  const isJson = isOfType(contentType, 'application/json');
  const callerNow = () => identity.callerOf(origin);
  const caller = await callerNow();
  const asked = { password: password(headers), requestedTtlSeconds: requestedTtlSeconds(headers) };
  return { caller, callerNow, clientAddress, source, declaredBytes, isJson, contentType, ...asked };
}

function getPaste(parts: Parts, request: Request): Awaitable<Reply> {
  if (request.prefersHtml) return import('./pages.ts').then(({ showPaste }) => showPaste(parts, request));
  return andThen(describe(parts, request), metadataReply);
}

/** For the answer to a POST of anything but the form of a page: this path takes no other POST. */
const FORMS_ONLY = { Allow: allowOf(ROUTES.filter(({ path }) => path === '/{id}')) };

function answerForm(parts: Parts, request: Request): Awaitable<Reply> {
  if (request.prefersHtml && isOfType(request.headers.single('content-type'), 'application/x-www-form-urlencoded')) {
    return import('./pages.ts').then((pages) => pages.answerForm(parts, request));
  }
  return refusalReply(new Refusal('methodNotAllowed'), FORMS_ONLY);
}

function getRaw(parts: Parts, request: Request): Awaitable<Reply> {
  const reply = rawReply(parts, request);
  return request.prefersHtml ? andThen(reply, withCharset) : reply;
}

/** Browsers garble text beyond ASCII unless they are told the charset; others get the type as it is stored. */
export function withCharset(reply: Reply): Reply {
  const type = reply.headers['Content-Type'] ?? '';
  if (!type.startsWith('text/')) return reply;
  return { ...reply, headers: { ...reply.headers, 'Content-Type': `${type}; charset=utf-8` } };
}

function rawReply(parts: Parts, request: Request): Awaitable<Reply> {
  if (request.method === 'HEAD') return andThen(describe(parts, request), (paste) => headReply(request, paste));
  const opening = andThen(countLookup(parts, request), () => pastes.openPaste(parts, lookupOf(request)));
  return andThen(opening, (opened) => {
    let reply: Reply | undefined;
    try {
      return (reply = opened.paste.burnAfterRead ? wholeReply(opened) : conditionalReply(request, opened));
    } finally {
      // A streamed body holds the content, and closes it itself.
      if (!(reply?.body instanceof StreamedBody)) pastes.release(opened);
    }
  });
}

function describe(parts: Parts, request: Request): Awaitable<Paste> {
  return andThen(countLookup(parts, request), () => pastes.describePaste(parts, lookupOf(request)));
}

export function countLookup({ identity, rates }: Parts, { origin }: Request): Awaitable<void> {
  return andThen(identity.callerOf(origin), (caller) => rates.countLookup(origin.clientAddress, caller));
}

export function lookupOf(request: Request): pastes.Lookup {
  const { parameter: id, headers, origin: { clientAddress } } = request;
  return { id, password: password(headers), clientAddress, requireAsked: () => checkAsked(request) };
}

function headReply(request: Request, paste: Paste): Reply {
  if (!paste.burnAfterRead && evaluatePreconditions(request, paste) === 'unmodified') return notModified(paste);
  return { ...contentHead(paste), body: new StreamedBody(paste.size, () => []) };
}

function wholeReply(opened: pastes.OpenedPaste): Reply {
  if (opened.kind === 'small') return contentReply(opened.paste, opened.content);
  return { ...contentHead(opened.paste), body: bodyOf(opened) };
}

/** RFC 9110 section 13.2.2: If-Match, If-None-Match, and then Range, which counts only when If-Range holds. */
function conditionalReply(request: Request, opened: pastes.OpenedPaste): Reply {
  const { paste } = opened;
  if (evaluatePreconditions(request, paste) === 'unmodified') return notModified(paste);
  // Compared strongly; a date never matches (RFC 9110 section 13.1.5).
  const ifRange = request.headers.single('if-range')?.trim();
  const isRangeAllowed = ifRange === undefined || ifRange === etagOf(paste);
  const range = parseRange(isRangeAllowed ? request.headers.single('range') : undefined, paste.size);
  if (range === 'whole') return wholeReply(opened);
  if (range === 'unsatisfiable') {
    const refusal = new Refusal('rangeNotSatisfiable', { size: paste.size });
    return refusalReply(refusal, { 'Content-Range': `bytes */${paste.size}` });
  }
  const { headers: whole, ...head } = contentHead(paste);
  const partHeaders = { ...whole, 'Content-Range': `bytes ${range.start}-${range.end - 1}/${paste.size}` };
  return { ...head, status: 206, headers: partHeaders, body: bodyOf(opened, range.start, range.end) };
}

/** Refuses if If-Match does not name it (RFC 9110 section 13.1.1); `unmodified` if If-None-Match does (13.1.2). */
export function evaluatePreconditions({ headers }: Request, paste: Paste): 'met' | 'unmodified' {
  const etag = etagOf(paste);
  const isMeant = headers.all('if-match').length === 0 || namesEtag(headers, 'if-match', etag);
  if (!isMeant) throw new Refusal('preconditionFailed');
  return namesEtag(headers, 'if-none-match', etag) ? 'unmodified' : 'met';
}

function notModified(paste: Paste): Reply {
  return { ...emptyReply(304, { ETag: etagOf(paste) }), isNegotiated: isText(paste) };
}

export function bodyOf(opened: pastes.OpenedPaste, start = 0, end = opened.paste.size): ReplyBody {
  if (opened.kind === 'small') return partOf(opened.content, start, end);
  const { reader } = opened;
  return new StreamedBody(end - start, () => reader.read(start, end), () => reader.close());
}

// Answers that are the same for everybody who may read a paste are made once for as long as the store keeps the paste
// in memory: during that time every lookup of the paste finds the same object.

export const metadataReply = onceForEach((paste: Paste) => (
  { ...jsonReply(200, presentMetadata(paste)), isNegotiated: true }
));

export const contentReply = onceForEach((paste: Paste, body: CompactBytes) => ({ ...contentHead(paste), body }));

/** Status and headers that GET of the whole content has, and HEAD. Images and text are shown, by the contract. */
export function contentHead(paste: Paste): Omit<Reply, 'body'> {
  const headers = {
    'Content-Type': paste.mimeType,
    'Content-Disposition': /^(?:image|text)\//.test(paste.mimeType) ? 'inline' : `attachment; filename="${paste.id}"`,
  };
  const digest = Buffer.from(paste.sha256, 'hex').toString('base64');
  // A paste that burns has no validator, as nobody asks twice, and no digest: HEAD would test guesses at it unnoticed.
  const others = paste.burnAfterRead
    ? { 'Accept-Ranges': 'none', 'X-Burn-After-Read': 'true' }
    : { 'Accept-Ranges': 'bytes', ETag: etagOf(paste), 'Repr-Digest': `sha-256=:${digest}:` };
  return { status: 200, headers: { ...headers, ...others }, isNegotiated: isText(paste) };
}

/** Such a type is negotiated: browsers get it with a charset. */
function isText({ mimeType }: Paste): boolean {
  return mimeType.startsWith('text/');
}

function etagOf(paste: Paste): string {
  return `"sha256-${paste.sha256}"`;
}
