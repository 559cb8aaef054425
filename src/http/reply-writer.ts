// From a reply to bytes on a socket: head, framing, backpressure. It is the only writer of answers beside
// raw-answer.ts. How slow the client may be is connections.ts; what the answer says is the handler's.

import type { ServerResponse } from 'node:http';
import { compactBytes } from '../core/bytes.ts';
import { KIB } from '../core/time.ts';
import { BodyReader } from './body.ts';
import { commonHead } from './common-headers.ts';
import type { Exchange } from './exchange.ts';
import type { Lingering } from './linger.ts';
import type { Reply, ReplyBody, StreamedBody } from './reply.ts';
import { createTurns, TURN_BYTES, type Turns } from './turns.ts';

/** Bytes given to the socket at a time: how finely one can see what a slow client has taken, and what it holds. */
const SLICE_BYTES = 64 * KIB;

/**
 * In one turn of the event loop, in which libuv also takes in one new connection, and no more: whoever connects beside
 * a thousand large answers waits for as many turns as others connected before.
 */
const ANSWERS_AT_ONCE = 1;

/**
 * Writes the answer of an exchange whose client may have gone. Throws, or rejects, when the reply can't be written as
 * it is: with `res.headersSent` still false when nothing of it has been.
 */
export type ReplyWriter = (exchange: Exchange, reply: Reply) => void | Promise<void>;

export function createReplyWriter(parts: { lingering: Lingering; isStopping: () => boolean }): ReplyWriter {
  const { lingering, isStopping } = parts;
  const turns = createTurns(ANSWERS_AT_ONCE);
  const endWithTurn = createEndings();

  function writeHead(exchange: Exchange, reply: Reply, bytes: number): void {
    const { connection, res } = exchange;
    const head = commonHead(exchange.requestId);
    for (const name in reply.headers) head.push(name, reply.headers[name]!);
    // RFC 9110 section 8.6: neither has a length. (A 304 could give that of the 200, which is of no use to anyone.)
    if (reply.status !== 204 && reply.status !== 304) head.push('Content-Length', String(bytes));
    exchange.isLast ||= isStopping() || hasUnfinishedBody(exchange);
    if (exchange.isLast) head.push('Connection', 'close');
    res.writeHead(reply.status, head);
    exchange.status = reply.status;
    // node ends a connection by itself too: the client said so, or asked for a 100 that it did not need.
    exchange.isLast ||= !res.shouldKeepAlive;
    if (exchange.isLast) lingering.arm(connection.socket);
    connection.ignoresInput ||= exchange.isLast;
  }

  return (exchange, reply) => {
    const { body } = reply;
    if (exchange.isOver || hasNoContent(exchange, reply)) {
      if (isStreamed(body)) body.close();
      if (exchange.isOver) return undefined;
      writeHead(exchange, reply, isStreamed(body) ? body.bytes : wholeBody(body).length);
      endWithTurn(exchange.res, '');
      return undefined;
    }
    if (isStreamed(body)) return writeStream(exchange, body, turns, () => writeHead(exchange, reply, body.bytes));
    const whole = wholeBody(body);
    if (whole.length > SLICE_BYTES) {
      return writeStream(exchange, streamed(whole), turns, () => writeHead(exchange, reply, whole.length));
    }
    writeHead(exchange, reply, whole.length);
    exchange.sentBytes = whole.length;
    endWithTurn(exchange.res, whole);
    return undefined;
  };
}

/**
 * Ends answers when all requests that arrived in this turn of the event loop have been taken up. Between the requests
 * each write would find its reader asleep and wake it, which costs more than all of a small answer; one right after the
 * other they find it at work.
 */
function createEndings(): (res: ServerResponse, body: string | Uint8Array) => void {
  let waiting: { readonly res: ServerResponse; readonly body: string | Uint8Array }[] = [];

  function endAll(): void {
    const ready = waiting;
    waiting = [];
    for (const { res, body } of ready) res.end(body, 'latin1');
  }

  return (res, body) => {
    waiting.push({ res, body });
    if (waiting.length === 1) setImmediate(endAll);
  };
}

/** The head goes out with the first bytes, so that a source that fails at once can still be answered as an error. */
async function writeStream(
  exchange: Exchange,
  body: StreamedBody,
  turns: Turns,
  writeHead: () => void,
): Promise<void> {
  const { res } = exchange;
  let turnBytes = 0;
  try {
    await turns.wait();
    for await (const bytes of body.chunks()) {
      if (exchange.isOver) return;
      if (!res.headersSent) writeHead();
      for (let start = 0; start < bytes.length; start += SLICE_BYTES) {
        const slice = bytes.subarray(start, start + SLICE_BYTES);
        await writeSlice(exchange, slice, body.bytes);
        turnBytes += slice.length;
        if (turnBytes >= TURN_BYTES || turns.areAwaited()) {
          turnBytes = 0;
          await turns.wait();
        }
        if (exchange.isOver) return;
      }
    }
    if (exchange.isOver) return;
    const { sentBytes } = exchange;
    if (sentBytes !== body.bytes) throw new RangeError(`the body ended after ${sentBytes} of ${body.bytes} bytes`);
    if (!res.headersSent) writeHead();
    res.end();
  } finally {
    body.close();
  }
}

/** Resolves when the kernel has the slice, whose memory may then be used again, or there is nobody left to write to. */
function writeSlice(exchange: Exchange, slice: Uint8Array, mostBytes: number): Promise<void> {
  exchange.sentBytes += slice.length;
  if (exchange.sentBytes > mostBytes) throw new RangeError(`the body has more than the ${mostBytes} bytes announced`);
  return new Promise((resolve) => {
    exchange.wake = resolve;
    exchange.res.write(slice, () => resolve());
  });
}

/** An answer before the end of the request must be the last one: what follows on the connection is no request. */
function hasUnfinishedBody({ body }: Exchange): boolean {
  return body instanceof BodyReader && body.isUnfinished;
}

/** Content whose head is all there is to send: HEAD, 204 and 304 (RFC 9110 section 6.4.1). */
function hasNoContent(exchange: Exchange, reply: Reply): boolean {
  return exchange.method === 'HEAD' || reply.status === 204 || reply.status === 304;
}

function isStreamed(body: ReplyBody): body is StreamedBody {
  return typeof body === 'object' && body !== null && 'chunks' in body;
}

/** Bytes, or text of one character a byte where that is quicker: its length is that of the body either way. */
function wholeBody(body: Exclude<ReplyBody, StreamedBody>): string | Uint8Array {
  if (body === null) return '';
  if (typeof body === 'object' && 'latin1' in body) return body.latin1;
  if (typeof body === 'string' && Buffer.byteLength(body) === body.length) return body;
  const sendable = compactBytes(typeof body === 'string' ? Buffer.from(body) : body);
  return 'latin1' in sendable ? sendable.latin1 : sendable;
}

/** Known bytes in the manner of a stream, so that a large answer is written a slice at a time. */
function streamed(body: string | Uint8Array): StreamedBody {
  const bytes = typeof body === 'string' ? Buffer.from(body, 'latin1') : body;
  return {
    bytes: bytes.length,
    chunks: async function* chunks() {
      yield bytes;
    },
    close: () => {},
  };
}
