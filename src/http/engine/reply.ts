// An answer as handlers give it, and how it becomes bytes on a socket; nothing else writes any. Pace: connections.ts.

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type CompactBytes, compactBytes, letGoOfBytes } from '../../core/content.ts';
import { type RateStanding, Refusal, type RefusalName, REFUSALS } from '../../core/refusals.ts';
import { type Awaitable, KIB } from '../../core/time.ts';
import { TURN_BYTES, Turns } from './body.ts';
import type { Lingering } from './connections.ts';
import { HeaderLines, plainAddress, requestIdOf } from './head.ts';
import { STATUS_CODES } from './node-http.ts';
import { NO_CERTIFICATE, NO_ROUTE, type Request, type RequestParts } from './request.ts';

/** From a request to its answer. Throws a Refusal to say no; anything else that it throws is the server's failure. */
export type Handler = (request: Request) => Awaitable<Reply>;

export interface Reply {
  readonly status: number;
  /** Without Content-Length, Connection and Date, which the server sets: framing is its task. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ReplyBody;
  /** Browsers get another form of it, where the service serves HTML. */
  readonly isNegotiated?: boolean;
  /** Why the service says no; for the metrics. */
  readonly refusal?: RefusalName;
}

export type ReplyBody = string | CompactBytes | StreamedBody | null;

/** Content whose length is known before it is read. `close` is called exactly once, whatever happens. */
export class StreamedBody {
  readonly bytes: number;
  readonly chunks: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  readonly close: () => void;

  constructor(bytes: number, chunks: StreamedBody['chunks'], close = () => {}) {
    this.bytes = bytes;
    this.chunks = chunks;
    this.close = close;
  }
}

/** JSON on one line, ended by a newline. The value has its final member names already. */
export function jsonReply(status: number, value: object, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body: `${JSON.stringify(value)}\n` };
}

/** One line of text for people and shells. */
export function textReply(status: number, line: string, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, headers: { 'Content-Type': 'text/plain; charset=utf-8', ...headers }, body: `${line}\n` };
}

export function emptyReply(status: number, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, headers, body: null };
}

/** One line of JSON: `error` first, then `hint`, so that a shell can take both out; then other fields in snake_case. */
export function refusalReply(refusal: Refusal, headers: Readonly<Record<string, string>> = {}): Reply {
  const members = Object.entries({ error: refusal.message, hint: undefined, ...refusal.fields });
  const value = Object.fromEntries(members.map(([name, member]) => (
    [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), member]
  )));
  const { rate, retryAfterSeconds } = refusal.terms;
  const reply = jsonReply(REFUSALS[refusal.refusal].status, value, {
    ...(rate && rateHeaders(rate)),
    // RFC 9110 section 15.5.2 wants this header with every 401; no scheme is registered for either.
    ...(refusal.refusal === 'passwordRequired' && { 'WWW-Authenticate': 'X-Paste-Password' }),
    ...(refusal.refusal === 'identityRequired' && { 'WWW-Authenticate': 'Client-Certificate' }),
    // RFC 9110 section 10.2.3: a whole number; 0 would ask to come back at once.
    ...(retryAfterSeconds !== undefined && { 'Retry-After': String(Math.max(1, Math.ceil(retryAfterSeconds))) }),
    ...headers,
  });
  return { ...reply, refusal: refusal.refusal, isNegotiated: true };
}

/** The contract's headers of a rate-limited endpoint. */
export function rateHeaders({ limit, remaining, resetAtSeconds }: RateStanding): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(resetAtSeconds),
  };
}

/** The contract's "Common response headers", in its order; X-Request-ID comes after them. Every answer has them. */
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

/** Names and values in turn, as `writeHead` takes them. */
const FLAT: readonly string[] = COMMON_HEADERS.flat();

/** Given to the socket at a time, then awaited. Each slice wakes the client, which may take 8 s for it by default. */
// Twice as much costs an eighth less processor time, but could then take 16 s, and a client has 10 s (Pace).
const SLICE_BYTES = 128 * KIB;

export class ReplyWriter {
  readonly #server;
  /** For large answers: a turn of the event loop accepts only one new connection, so it must not take long. */
  readonly #turns = new Turns();
  #ending: { readonly res: ServerResponse; readonly body: string | Uint8Array }[] = [];

  constructor(server: { servesHtml: boolean; lingering: Lingering; isStopping: () => boolean }) {
    this.#server = server;
  }

  /** The client may have gone. Throws, or rejects, if the reply can't be written as it is, or not to its end. */
  write(request: Request, reply: Reply): void | Promise<void> {
    const { body, status } = reply;
    // RFC 9110 section 6.4.1.
    if (isOver(request) || request.method === 'HEAD' || status === 204 || status === 304) {
      if (body instanceof StreamedBody) body.close();
      if (isOver(request)) return undefined;
      this.#writeHead(request, reply, body instanceof StreamedBody ? body.bytes : wholeBody(body).length);
      return this.#endWithTurn(request.res, '');
    }
    if (body instanceof StreamedBody) return this.#writeStream(request, reply, body);
    const whole = wholeBody(body);
    if (whole.length > SLICE_BYTES) {
      const bytes = typeof whole === 'string' ? Buffer.from(whole, 'latin1') : whole;
      return this.#writeStream(request, reply, new StreamedBody(bytes.length, () => [bytes]));
    }
    this.#writeHead(request, reply, whole.length);
    request.sentBytes = whole.length;
    return this.#endWithTurn(request.res, whole);
  }

  #writeHead(request: Request, reply: Reply, bytes: number): void {
    const { res } = request;
    const head = [...FLAT, 'X-Request-ID', request.id];
    for (const name in reply.headers) head.push(name, reply.headers[name]!);
    if (reply.isNegotiated === true && this.#server.servesHtml) head.push('Vary', 'Accept');
    // RFC 9110 section 8.6: 204 and 304 get no length, so node ends a connection of HTTP/1.0. (A 304 might have one.)
    if (reply.status !== 204 && reply.status !== 304) head.push('Content-Length', String(bytes));
    else if (res.req.httpVersionMinor === 0) request.beLast();
    // An answer before the end of the request must be the last one: what follows on the connection is no request.
    if (this.#server.isStopping() || request.body.isUnfinished) request.beLast();
    if (request.state === 'last') head.push('Connection', 'close');
    res.writeHead(reply.status, head);
    request.status = reply.status;
    // node also ends connections by itself: the client said so, or asked for a 100 that was not needed.
    if (!res.shouldKeepAlive) request.beLast();
    if (request.state === 'last') this.#server.lingering.arm(request.connection.socket);
  }

  /** Ends answers when all requests that arrived in this turn of the event loop have been taken up. */
  #endWithTurn(res: ServerResponse, body: string | Uint8Array): void {
    // A write between them would wake the client, which costs more than a small answer; many in a row wake it once.
    this.#ending.push({ res, body });
    if (this.#ending.length === 1) setImmediate(this.#endAll);
  }

  readonly #endAll = (): void => {
    const ending = this.#ending;
    this.#ending = [];
    for (const { res, body } of ending) {
      // node calls back when the kernel has all of the body; if the client has gone, it never does.
      res.end(body, 'latin1', typeof body === 'string' ? undefined : () => letGoOfBytes(body));
    }
  };

  /** The head goes out with the first bytes, so that a source that fails at once can still be answered as an error. */
  async #writeStream(request: Request, reply: Reply, body: StreamedBody): Promise<void> {
    const { res } = request;
    let turnBytes = 0;
    try {
      await this.#turns.wait();
      for await (const bytes of body.chunks()) {
        if (isOver(request)) return;
        if (!res.headersSent) this.#writeHead(request, reply, body.bytes);
        for (let start = 0; start < bytes.length; start += SLICE_BYTES) {
          const slice = bytes.subarray(start, start + SLICE_BYTES);
          await writeSlice(request, slice, body.bytes);
          turnBytes += slice.length;
          if (turnBytes >= TURN_BYTES || this.#turns.areAwaited()) {
            turnBytes = 0;
            await this.#turns.wait();
          }
          if (isOver(request)) return;
        }
      }
      if (isOver(request)) return;
      const { sentBytes } = request;
      if (sentBytes !== body.bytes) throw new RangeError(`the body ended after ${sentBytes} of ${body.bytes} bytes`);
      if (!res.headersSent) this.#writeHead(request, reply, body.bytes);
      res.end();
    } finally {
      body.close();
    }
  }
}

/** A function, so that it is asked anew after each wait. */
function isOver({ state }: Request): boolean {
  return state === 'over';
}

/** Resolves when the kernel has the slice, whose memory may then be used again, or when the client has gone. */
function writeSlice(request: Request, slice: Uint8Array, maxBytes: number): Promise<void> {
  request.sentBytes += slice.length;
  if (request.sentBytes > maxBytes) throw new RangeError(`the body has more than the ${maxBytes} bytes announced`);
  return new Promise((resolve) => {
    request.wake = resolve;
    request.res.write(slice, () => resolve());
  });
}

/** Bytes, or text of one character per byte where that is quicker: either way its `length` is that of the body. */
function wholeBody(body: Exclude<ReplyBody, StreamedBody>): string | Uint8Array {
  if (body === null) return '';
  if (typeof body === 'string') return Buffer.byteLength(body) === body.length ? body : wholeBody(Buffer.from(body));
  const compact = body instanceof Uint8Array ? compactBytes(body) : body;
  return compact instanceof Uint8Array ? compact : compact.latin1;
}

/** Called at the end of an answer that took `ms`. It never gets the path itself: the id of a paste is a capability. */
export type NoteAnswered = (answered: Pick<
  Request, 'id' | 'method' | 'route' | 'status' | 'sentBytes' | 'origin' | 'refusal'
>, ms: number) => void;

/** Refuses where node:http gives no response object: what could not be parsed, CONNECT, connections over the cap. */
export function answerRaw(
  parts: Pick<RequestParts, 'clock' | 'newUuid'> & { noteAnswered: NoteAnswered; lingering: Lingering },
  socket: Socket, refusal: RefusalName, known: { method?: string; headers?: HeaderLines; allow?: string } = {},
): void {
  if (!socket.writable) return void socket.destroy();
  const { method = '-', headers: presented = new HeaderLines([]), allow } = known;
  const id = requestIdOf(presented, parts.newUuid);
  const { status, headers, body } = refusalReply(new Refusal(refusal), allow === undefined ? {} : { Allow: allow });
  const text = String(body);
  const sentBytes = Buffer.byteLength(text);
  // All values are the server's own, but for an id that requestIdOf has checked: nothing here needs escaping.
  const head = Object.entries({
    ...Object.fromEntries(COMMON_HEADERS), 'X-Request-ID': id, ...headers, 'Content-Length': sentBytes,
    Date: new Date(parts.clock.unixMs()).toUTCString(), Connection: 'close',
  });
  const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${text}`);
  parts.lingering.close(socket);
  const clientAddress = plainAddress(socket.remoteAddress ?? '') ?? '-';
  const origin = { ...NO_CERTIFICATE, clientAddress, isForwarded: false };
  parts.noteAnswered({ id, method, route: NO_ROUTE, status, sentBytes, origin, refusal }, 0);
}
