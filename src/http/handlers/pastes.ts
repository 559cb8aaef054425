// POST /, GET /{id} and GET /{id}/raw: from a request to the rules of service/pastes.ts and back to a reply.

import { isInlineDisposition } from '../../core/content.ts';
import { Refusal } from '../../core/refusals.ts';
import type { Rates } from '../../service/rates.ts';
import { releaseContent, type OpenedPaste, type Pastes } from '../../service/pastes.ts';
import type { Paste } from '../../store/store.ts';
import type { CallerOf } from '../callers.ts';
import { hintingClient } from '../client-hint.ts';
import type { Handlers } from '../handler.ts';
import { burnRequested, isJson, password, requestedTtlSeconds, requireIdentityEncoding, work } from '../input.ts';
import { presentCreated, presentMetadata } from '../present.ts';
import { allowsRange, namesEtag, parseRange, type ByteRange } from '../range.ts';
import { rateHeaders, refusalReply } from '../refused.ts';
import { emptyReply, jsonReply, textReply, type Reply, type ReplyBody } from '../reply.ts';
import type { Request } from '../request.ts';

export function createPasteHandlers(parts: {
  pastes: Pastes;
  rates: Rates;
  callerOf: CallerOf;
}): Pick<Handlers, 'createPaste' | 'getPaste' | 'getRaw'> {
  const { pastes, rates, callerOf } = parts;

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
    const replyHeaders = { Location: `/${paste.id}`, Vary: 'Accept', ...(rate === null ? {} : rateHeaders(rate)) };
    if (request.prefersText) return textReply(201, `${request.publicUrl}/${paste.id}`, replyHeaders);
    return jsonReply(201, presentCreated(paste, ttlSeconds !== undefined), replyHeaders);
  }

  async function getPaste(request: Request): Promise<Reply> {
    await countLookup(request);
    return jsonReply(200, presentMetadata(await pastes.describe(pasteId(request), password(request.headers))));
  }

  async function getRaw(request: Request): Promise<Reply> {
    await countLookup(request);
    const id = pasteId(request);
    if (request.method === 'HEAD') {
      const paste = await pastes.describe(id, password(request.headers));
      return { status: 200, headers: contentHeaders(paste), body: { bytes: paste.size, chunks: noChunks, close: nothing } };
    }
    const opened = await pastes.open(id, password(request.headers));
    try {
      return opened.paste.burnAfterRead ? wholeContent(opened) : conditionalContent(request, opened);
    } catch (error) {
      releaseContent(opened.content);
      throw error;
    }
  }

  async function countLookup(request: Request): Promise<void> {
    rates.countLookup(request.clientAddress, await callerOf(request));
  }

  return { createPaste, getPaste, getRaw };
}

function pasteId(request: Request): string {
  return request.params['id'] ?? '';
}

/** What HEAD says too. A burn-after-read paste has no validator: nobody gets to ask for it twice. */
function contentHeaders(paste: Paste): Record<string, string> {
  const headers: Record<string, string> = {
    'Content-Type': paste.mimeType,
    'Content-Disposition': isInlineDisposition(paste.mimeType) ? 'inline' : `attachment; filename="${paste.id}"`,
    'Repr-Digest': `sha-256=:${Buffer.from(paste.sha256).toString('base64')}:`,
  };
  if (paste.burnAfterRead) return { ...headers, 'Accept-Ranges': 'none', 'X-Burn-After-Read': 'true' };
  return { ...headers, 'Accept-Ranges': 'bytes', ETag: entityTag(paste) };
}

function entityTag(paste: Paste): string {
  return `"sha256-${Buffer.from(paste.sha256).toString('hex')}"`;
}

function wholeContent({ paste, content }: OpenedPaste): Reply {
  return { status: 200, headers: contentHeaders(paste), body: contentBody(content, { start: 0, end: paste.size }) };
}

/** RFC 9110 section 13.2.2: If-None-Match before Range, which counts only when If-Range holds. */
function conditionalContent(request: Request, opened: OpenedPaste): Reply {
  const { paste, content } = opened;
  const etag = entityTag(paste);
  const ifNoneMatch = request.headers.all('if-none-match').join(',');
  if (namesEtag(ifNoneMatch, etag)) {
    releaseContent(content);
    return emptyReply(304, { ETag: etag });
  }
  const asked = allowsRange(request.headers.single('if-range'), etag) ? request.headers.single('range') : undefined;
  const range = parseRange(asked, paste.size);
  if (range === 'whole') return wholeContent(opened);
  if (range === 'unsatisfiable') {
    releaseContent(content);
    return refusalReply(new Refusal('rangeNotSatisfiable', { size: paste.size }), { 'Content-Range': `bytes */${paste.size}` });
  }
  const headers = { ...contentHeaders(paste), 'Content-Range': `bytes ${range.start}-${range.end - 1}/${paste.size}` };
  return { status: 206, headers, body: contentBody(content, range) };
}

function contentBody(content: OpenedPaste['content'], range: ByteRange): ReplyBody {
  if (content instanceof Uint8Array) return content.subarray(range.start, range.end);
  return {
    bytes: range.end - range.start,
    chunks: () => content.read(range.start, range.end),
    close: () => content.close(),
  };
}

async function* noChunks(): AsyncIterable<Uint8Array> {}

function nothing(): void {}
