// POST /, GET /{id} and GET /{id}/raw: from a request to the rules of pastes/pastes.ts and back to a reply.

import { type CompactBytes, isInlineDisposition, partOf } from '../../core/content.ts';
import { Refusal } from '../../core/refusals.ts';
import { andThen, type Awaitable } from '../../core/time.ts';
import type { Rates } from '../../pastes/admission.ts';
import {
  type Lookup, type OpenedPaste, type OwnPastes, type Pastes, releaseContent,
} from '../../pastes/pastes.ts';
import type { Paste } from '../../store/store.ts';
import {
  emptyReply, jsonReply, rateHeaders, refusalReply, type Reply, type ReplyBody, textReply,
} from '../engine/reply.ts';
import type { Request } from '../engine/request.ts';
import {
  allowsRange, amendedTtlSeconds, burnRequested, type ByteRange, type CallerOf, hintingClient, isForm,
  isJson, namesEtag, page, parseRange, password, removesPassword, requestedTtlSeconds,
  requireIdentityEncoding, single, timeBounds, typeGlob, work,
} from '../input.ts';
import { listText, presentCreated, presentListItem, presentMetadata } from '../present.ts';
import type { Handlers } from '../routes.ts';

/** `curl -F file=@x` sends more than the file, and what is sent is what is stored. */
const FORM_HINT = 'this is multipart/form-data: use --data-binary @FILE or -T FILE';

export function createPasteHandlers(parts: {
  pastes: Pastes;
  rates: Rates;
  callerOf: CallerOf;
}): Pick<Handlers, 'createPaste' | 'getPaste' | 'getRaw'> {
  const { pastes, rates, callerOf } = parts;
  const replies = createPasteReplies();

  async function createPaste(request: Request): Promise<Reply> {
    const { headers } = request;
    requireIdentityEncoding(headers);
    const contentType = headers.single('content-type');
    const ttlSeconds = requestedTtlSeconds(headers);
    const submission = {
      caller: await callerOf(request),
      clientAddress: request.clientAddress,
      work: work(headers),
      source: request.body.pipe,
      declaredBytes: request.body.declaredBytes,
      isJson: isJson(contentType),
      contentType,
      password: password(headers),
      burnAfterRead: burnRequested(headers),
      requestedTtlSeconds: ttlSeconds,
    };
    const { paste, rate } = await pastes.create(submission).catch((error: unknown) => {
      throw hintingClient(error, request.publicUrl, 'sh pastec FILE');
    });
    const replyHeaders = {
      Location: `/${paste.id}`,
      Vary: 'Accept',
      ...(rate === null ? {} : rateHeaders(rate)),
      ...(isForm(contentType) ? { 'X-Hint': FORM_HINT } : {}),
    };
    if (request.prefersText) return textReply(201, `${request.publicUrl}/${paste.id}`, replyHeaders);
    return jsonReply(201, presentCreated(paste, ttlSeconds !== undefined), replyHeaders);
  }

  function getPaste(request: Request): Awaitable<Reply> {
    return andThen(describe(request), replies.metadata);
  }

  function getRaw(request: Request): Awaitable<Reply> {
    if (request.method === 'HEAD') {
      return andThen(describe(request), (paste) => {
        const head = replies.head(paste);
        if (!paste.burnAfterRead && hasAlready(request, head.etag)) return emptyReply(304, { ETag: head.etag });
        return { ...head, body: { bytes: paste.size, chunks: noChunks, close: nothing } };
      });
    }
    const opening = andThen(countLookup(request), () => pastes.open(lookupOf(request)));
    return andThen(opening, (opened) => {
      try {
        return opened.paste.burnAfterRead ? wholeContent(opened) : conditionalContent(request, opened);
      } catch (error) {
        releaseContent(opened.content);
        throw error;
      }
    });
  }

  function describe(request: Request): Awaitable<Paste> {
    return andThen(countLookup(request), () => pastes.describe(lookupOf(request)));
  }

  function countLookup(request: Request): Awaitable<void> {
    return andThen(callerOf(request), (caller) => rates.countLookup(request.clientAddress, caller));
  }

  function wholeContent({ paste, content }: OpenedPaste): ContentReply {
    if (!('read' in content)) return replies.content(paste, content);
    return { ...replies.head(paste), body: contentBody(content, { start: 0, end: paste.size }) };
  }

  /** RFC 9110 section 13.2.2: If-None-Match before Range, which counts only when If-Range holds. */
  function conditionalContent(request: Request, opened: OpenedPaste): Reply {
    const { paste, content } = opened;
    const whole = wholeContent(opened);
    const { etag } = whole;
    if (hasAlready(request, etag)) {
      releaseContent(content);
      return emptyReply(304, { ETag: etag });
    }
    const asked = allowsRange(request.headers.single('if-range'), etag) ? request.headers.single('range') : undefined;
    const range = parseRange(asked, paste.size);
    if (range === 'whole') return whole;
    if (range === 'unsatisfiable') {
      releaseContent(content);
      const refusal = new Refusal('rangeNotSatisfiable', { size: paste.size });
      return refusalReply(refusal, { 'Content-Range': `bytes */${paste.size}` });
    }
    const headers = { ...whole.headers, 'Content-Range': `bytes ${range.start}-${range.end - 1}/${paste.size}` };
    return { status: 206, headers, body: contentBody(content, range) };
  }

  return { createPaste, getPaste, getRaw };
}

function lookupOf({ params, headers, clientAddress }: Request): Lookup {
  return { id: params['id'] ?? '', password: password(headers), clientAddress };
}

/** RFC 9110 section 13.1.2. */
function hasAlready(request: Request, etag: string): boolean {
  const ifNoneMatch = request.headers.all('if-none-match');
  return ifNoneMatch.length > 0 && namesEtag(ifNoneMatch.join(','), etag);
}

function contentBody(content: OpenedPaste['content'], range: ByteRange): ReplyBody {
  if (!('read' in content)) return partOf(content, range.start, range.end);
  return {
    bytes: range.end - range.start,
    chunks: () => content.read(range.start, range.end),
    close: () => content.close(),
  };
}

async function* noChunks(): AsyncIterable<Uint8Array> {}

function nothing(): void {}

// The answers that say the same to everyone who may read a paste: its metadata, its content and the headers of that.
// They are made once for as long as the store keeps the paste in memory, where a paste found again is the same object
// (store/kept.ts). Conditions, ranges and passwords are the handlers'.

/** Of all of the content. */
export interface ContentReply extends Reply {
  /** The entity tag, whether or not the headers have it. */
  readonly etag: string;
}

export interface PasteReplies {
  metadata(paste: Paste): Reply;
  /** What GET says of the whole content, without its body: so does HEAD. */
  head(paste: Paste): Omit<ContentReply, 'body'>;
  content(paste: Paste, content: CompactBytes): ContentReply;
}

export function createPasteReplies(): PasteReplies {
  return {
    metadata: onceForEach<void, Reply>((paste) => jsonReply(200, presentMetadata(paste))),
    head: contentHead,
    content: onceForEach((paste, content: CompactBytes) => ({ ...contentHead(paste), body: content })),
  };
}

/** What is made goes when its paste goes, so that it needs no bound of its own. */
function onceForEach<Given, Made>(make: (paste: Paste, given: Given) => Made): (paste: Paste, given: Given) => Made {
  const made = new WeakMap<Paste, Made>();
  return (paste, given) => {
    const before = made.get(paste);
    if (before !== undefined) return before;
    const now = make(paste, given);
    made.set(paste, now);
    return now;
  };
}

function contentHead(paste: Paste): Omit<ContentReply, 'body'> {
  const etag = `"sha256-${paste.sha256}"`;
  const headers = {
    'Content-Type': paste.mimeType,
    'Content-Disposition': isInlineDisposition(paste.mimeType) ? 'inline' : `attachment; filename="${paste.id}"`,
    'Repr-Digest': `sha-256=:${Buffer.from(paste.sha256, 'hex').toString('base64')}:`,
  };
  // A burn-after-read paste has no validator: nobody gets to ask for it twice.
  const others = paste.burnAfterRead
    ? { 'Accept-Ranges': 'none', 'X-Burn-After-Read': 'true' }
    : { 'Accept-Ranges': 'bytes', ETag: etag };
  return { status: 200, headers: { ...headers, ...others }, etag };
}

// PUT /{id}, DELETE /{id} and GET /pastes: from a request to the rules of pastes/pastes.ts and back to a reply.

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
