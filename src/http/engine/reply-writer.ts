// From a reply to bytes on a socket: head, framing, backpressure. It is the only writer of answers, raw ones
// included. How slow the client may be is connections.ts; what the answer says is the handler's.

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { compactBytes } from '../../core/content.ts';
import {
  type Count, countNothing, type Log, observeNothing, type ObserveRequest,
} from '../../core/events.ts';
import { Refusal, type RefusalName } from '../../core/refusals.ts';
import { type Clock, KIB } from '../../core/time.ts';
import { plainAddress } from '../forwarded.ts';
import { BodyReader } from './body.ts';
import type { Exchange } from './connections.ts';
import { STATUS_CODES } from './node-http.ts';
import { createTurns, type Lingering, TURN_BYTES, type Turns } from './pace.ts';
import { refusalReply, type Reply, type ReplyBody, type StreamedBody } from './reply.ts';
import type { RequestIds } from './request.ts';

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

// An answer as text for a socket that node:http gives no response object for: what could not be parsed, CONNECT,
// connections over the cap. The same headers and body as any other refusal.

/** What is known of the request, where something is. */
export interface RawAnswerContext {
  readonly method?: string;
  readonly presentedRequestId?: string | undefined;
  readonly allow?: string;
}

/** Writes the refusal and closes the connection, lingering. */
export type RawAnswer = (socket: Socket, refusal: RefusalName, context?: RawAnswerContext) => void;

export interface RawAnswerParts {
  readonly clock: Clock;
  readonly noteAnswered: NoteAnswered;
  readonly lingering: Lingering;
  readonly requestIds: RequestIds;
}

export function createRawAnswer({ clock, noteAnswered, lingering, requestIds }: RawAnswerParts): RawAnswer {
  return (socket, refusalName, context = {}) => {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    const requestId = requestIds(context.presentedRequestId);
    const refusal = new Refusal(refusalName);
    const reply = refusalReply(refusal, context.allow === undefined ? {} : { Allow: context.allow });
    const body = String(reply.body);
    const head = commonHead(requestId);
    for (const [name, value] of Object.entries(reply.headers)) head.push(name, value);
    head.push('Content-Length', String(Buffer.byteLength(body)));
    head.push('Date', new Date(clock.unixMs()).toUTCString(), 'Connection', 'close');
    socket.write(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${headerLines(head)}\r\n${body}`);
    lingering.close(socket);
    noteAnswered({
      method: context.method ?? '-',
      route: '-',
      status: refusal.status,
      bytes: Buffer.byteLength(body),
      ms: 0,
      requestId,
      clientIp: plainAddress(socket.remoteAddress ?? '') ?? '-',
      fingerprint: null,
      refusal: refusalName,
    });
  };
}

/** Names and values in turn, all of them this server's own: nothing here needs checking or escaping. */
function headerLines(head: readonly string[]): string {
  let lines = '';
  for (let index = 0; index < head.length; index += 2) lines += `${head[index]}: ${head[index + 1]}\r\n`;
  return lines;
}

// The headers that every answer carries, whoever writes it: the contract's "Common response headers". X-Request-ID, the
// one whose value differs, is request.ts.

/** In the contract's order. */
export const COMMON_HEADERS = [
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'strict-origin-when-cross-origin'],
  ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
  ['Permissions-Policy', 'geolocation=(), microphone=(), camera=()'],
  ['Strict-Transport-Security', 'max-age=31536000; includeSubDomains'],
  ['Cache-Control', 'no-store, no-cache, must-revalidate, private'],
  ['Pragma', 'no-cache'],
] as const;

const FLAT: readonly string[] = COMMON_HEADERS.flat();

/** A new list of names and values in turn, as `writeHead` takes it, for the caller to add to. */
export function commonHead(requestId: string): string[] {
  const head = FLAT.slice();
  head.push('X-Request-ID', requestId);
  return head;
}

// What is noted of each answer, whoever wrote it: one line of the log, and the metrics. Never in them: the path itself,
// since the id of a paste is a capability.

export interface AnsweredRequest {
  /** `-` for what could not be parsed. */
  readonly method: string;
  /** The pattern of the route's path, such as `/{id}/raw`; `-` when none matched. */
  readonly route: string;
  readonly status: number;
  /** Of the body, as far as they were handed to the socket. */
  readonly bytes: number;
  readonly ms: number;
  readonly requestId: string;
  readonly clientIp: string;
  readonly fingerprint: string | null;
  /** Why the service said no; undefined when it did not. */
  readonly refusal: RefusalName | undefined;
}

export type NoteAnswered = (answered: AnsweredRequest) => void;

/** Where requests are counted; a listener that is not worth counting has none. */
export interface RequestMetrics {
  readonly count: Count;
  readonly observeRequest: ObserveRequest;
}

const NO_METRICS: RequestMetrics = { count: countNothing, observeRequest: observeNothing };

export function createNoteAnswered(
  log: Log,
  metrics: RequestMetrics = NO_METRICS,
  onStorageFull: () => void = () => {},
): NoteAnswered {
  return (answered) => {
    logRequest(log, answered);
    metrics.observeRequest(answered.route, answered.status, answered.ms / 1000);
    if (answered.refusal !== undefined) metrics.count('refusals', answered.refusal);
    if (answered.refusal === 'storageFull') onStorageFull();
  };
}

function logRequest(log: Log, answered: AnsweredRequest): void {
  const { method, route, status, bytes, ms, requestId, clientIp, fingerprint } = answered;
  const details = { method, route, status, bytes, ms: Math.round(ms * 10) / 10, request_id: requestId };
  const entry = { level: 'info', logger: 'http', event: 'request', clientIp, details } as const;
  log(fingerprint === null ? entry : { ...entry, clientId: fingerprint });
}
