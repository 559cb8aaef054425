// A request's body on its way to the handler: pushed into its sink piece by piece, never collected here, and bounded in
// its slowness and its number of pieces. Below, the two bounds that all transfers share: Pace and Turns.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ByteSink, type ByteSource, JoinedBytes } from '../../core/content.ts';
import { Refusal } from '../../core/refusals.ts';
import { KIB } from '../../core/time.ts';

export type RequestBody = Pick<BodyReader, keyof BodyReader>;

export const NO_BODY: RequestBody = Object.freeze({
  declaredBytes: 0, isUnfinished: false, mostUnreadBytes: 0, pipe: async () => {}, fail: () => {}, check: () => {},
});

/** Nobody is left to answer. */
export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError';
}

/** What a head says of its body, which may come only after 100 (RFC 9110 section 10.1.1); see checkForm of head.ts. */
export type Form = Pick<RequestBody, 'declaredBytes'> & { readonly expectsContinue: boolean };

/** What the bodies of one server share. */
export interface BodyTransfers {
  readonly minBytesPerSecond: number;
  readonly nowMs: () => number;
  /** libuv would read up to 2 MiB from one socket before it looks at the others; digesting that takes milliseconds. */
  readonly turns: Pick<Turns, 'wait'>;
}

/** Shorter pieces are joined: node hands over each HTTP chunk alone, and a byte costs as much as this many at once. */
const PIECE_BYTES = KIB;

/** As much as node reads at once. */
const READ_BYTES = 64 * KIB;

/** A body may have FREE_PIECES, and one more per BYTES_PER_PIECE bytes: enough to send lines as they are written. */
const FREE_PIECES = 4096;
const BYTES_PER_PIECE = 16;

/** What a chunk may have beside its content: a size of up to twelve digits, and two line ends. */
const FRAMING_BYTES = 16;

export class BodyReader {
  /** `Content-Length`, 0 without a body, undefined when chunked. */
  readonly declaredBytes: number | undefined;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #expectsContinue: boolean;
  readonly #transfers: BodyTransfers;
  #sink: ByteSink | undefined;
  #isSinkBusy = false;
  #receivedBytes = 0;
  #pieces = 0;
  /** Small pieces that the stream has not got yet. */
  readonly #small = new JoinedBytes(READ_BYTES);
  /** How much more than their length the small pieces count, until they are taken. */
  #surchargeBytes = 0;
  /** Bytes taken since this body's last turn. */
  #turnBytes = 0;
  /** What the connection had read when the head was parsed, including body bytes that came in the same read. */
  readonly #bytesReadBefore: number;
  /** The stream's own `push`, which `#arrive` replaces. */
  readonly #push: (bytes: Uint8Array | null) => boolean;
  /** Set while the body is piped. */
  #pace: Pace | undefined;
  /** Ends the running transfer. */
  #settle: ((failure?: unknown) => void) | undefined;
  /** Why no more will come; may be known before the handler asks. */
  #failure: unknown;

  constructor(req: IncomingMessage, res: ServerResponse, form: Form, transfers: BodyTransfers) {
    this.#req = req;
    this.#res = res;
    this.declaredBytes = form.declaredBytes;
    this.#expectsContinue = form.expectsContinue;
    this.#transfers = transfers;
    this.#bytesReadBefore = form.declaredBytes === undefined ? req.socket.bytesRead : 0;
    this.#push = req.push.bind(req);
    req.push = (bytes: Uint8Array | null) => this.#arrive(bytes);
  }

  /** Some of it has not been received, or is thrown away. */
  get isUnfinished(): boolean {
    return !this.#req.complete || this.#failure !== undefined;
  }

  /** How much of a body node may have read before it is piped: node pauses only once it has this much. */
  get mostUnreadBytes(): number {
    return Math.min(this.declaredBytes ?? Infinity, READ_BYTES);
  }

  /** At most once. Refuses a body that is too slow; rejects when the client breaks off. */
  readonly pipe: ByteSource = async (sink) => {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#sink !== undefined) throw new Error('a request body is piped at most once');
    this.#sink = sink;
    if (this.#expectsContinue) this.#res.writeContinue();
    const { minBytesPerSecond, nowMs } = this.#transfers;
    this.#pace = new Pace({ minBytesPerSecond, nowMs: nowMs(), movedBytes: 0 });
    const req = this.#req;
    const end = (): void => {
      // node may report the end although #take has just paused the stream for the last chunk.
      if (!this.#isSinkBusy) this.#settle?.();
    };
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#settle = (failure) => {
      this.#settle = undefined;
      this.#pace = undefined;
      req.off('data', this.#take).off('end', end);
      if (failure === undefined) return resolve();
      this.#failure ??= failure;
      req.pause();
      reject(failure);
    };
    req.on('data', this.#take).on('end', end);
    await promise;
  };

  /** Ends the transfer with this error, now or as soon as it is asked for. The first failure stays. */
  fail(failure: Error): void {
    this.#failure ??= failure;
    this.#settle?.(this.#failure);
  }

  /** Refuses a client that is too slow or sends mere framing; to be called about once a second. */
  check(nowMs: number): void {
    if (this.isUnfinished) this.#checkPieces();
    if (this.#isSinkBusy) this.#pace?.pause(nowMs, this.#receivedBytes);
    else if (this.#pace?.isTooSlow(nowMs, this.#receivedBytes) === true) this.fail(new Refusal('requestTimeout'));
  }

  /** Padding counts like pieces: leading zeros and extensions of chunk sizes, for which the parser has no bound. */
  #checkPieces(): void {
    // Bytes that this read has brought, and that the parser has not come to yet, look like framing too.
    const framingBytes = this.declaredBytes === undefined
      ? this.#req.socket.bytesRead - this.#bytesReadBefore - this.#receivedBytes - READ_BYTES
      : 0;
    const padding = Math.max(0, framingBytes - this.#pieces * FRAMING_BYTES);
    if (this.#pieces + padding / BYTES_PER_PIECE <= this.#maxPieces()) return;
    const hint = `send pieces of ${BYTES_PER_PIECE} bytes or more, without padding or extensions of chunk sizes`;
    this.fail(new Refusal('bodyFragmented', { hint }));
  }

  /** In place of the stream's push: takes each piece from node's parser, null at the end. False asks it to pause. */
  #arrive(bytes: Uint8Array | null): boolean {
    if (bytes === null) return this.#passOn() && this.#push(null);
    if (this.#failure !== undefined) return false;
    this.#pieces += 1;
    this.#receivedBytes += bytes.length;
    // Most small bodies have only this one piece.
    if (this.#pieces === 1 || bytes.length >= PIECE_BYTES) return this.#passOn() && this.#push(bytes);
    this.#surchargeBytes += PIECE_BYTES - bytes.length;
    const isFull = this.#small.length + bytes.length > READ_BYTES || this.#pieces > this.#maxPieces();
    if (isFull && !this.#passOn()) return false;
    // Passed on together with all that arrives in this turn of the event loop.
    if (this.#small.length === 0) setImmediate(() => this.#passOn());
    this.#small.add(bytes);
    return this.#surchargeBytes < TURN_BYTES && this.#req.readableLength < this.#req.readableHighWaterMark;
  }

  #maxPieces(): number {
    return FREE_PIECES + this.#receivedBytes / BYTES_PER_PIECE;
  }

  /** Gives the stream the small pieces so far; false when there are too many, or no more will come. */
  #passOn(): boolean {
    this.#checkPieces();
    if (this.#failure !== undefined) return false;
    if (this.#small.length > 0) this.#push(this.#small.take());
    return true;
  }

  readonly #take = (bytes: Uint8Array): void => {
    // Counted before the sink has the bytes: it may give their memory back, and then their length is gone.
    this.#turnBytes += bytes.length + this.#surchargeBytes;
    this.#surchargeBytes = 0;
    try {
      const taken = this.#sink?.(bytes);
      const turn = this.#nextTurn();
      if (taken === undefined && turn === undefined) return;
      this.#isSinkBusy = true;
      this.#req.pause();
      Promise.all([taken, turn]).then(() => {
        this.#isSinkBusy = false;
        if (this.#req.readableEnded) this.#settle?.();
        else if (this.#settle !== undefined) this.#req.resume();
      }, (error: unknown) => this.#settle?.(error));
    } catch (error) {
      this.#settle?.(error);
    }
  };

  /** When this turn is used up, waits for the next one: once for each TURN_BYTES that the pieces have cost. */
  #nextTurn(): Promise<void> | undefined {
    if (this.#turnBytes < TURN_BYTES) return undefined;
    this.#turnBytes -= TURN_BYTES;
    const turn = this.#transfers.turns.wait();
    return turn === undefined ? this.#nextTurn() : turn.then(() => this.#nextTurn());
  }
}

/** The time over which SERVICE_MIN_TRANSFER_RATE is averaged: how long a peer may pause altogether. */
const ALLOWANCE_MS = 10_000;

/** The slowest pace that is allowed: time uses up an allowance of time, and moved bytes earn it back up to a bound. */
export class Pace {
  readonly #msPerByte: number;
  readonly #maxMs: number;
  #leftMs = ALLOWANCE_MS;
  #atMs: number;
  #movedBytes: number;

  /** `minBytesPerSecond` 0 allows any pace; `maxAllowances` is how many times the first allowance can be saved up. */
  constructor(start: { minBytesPerSecond: number; nowMs: number; movedBytes: number; maxAllowances?: number }) {
    this.#msPerByte = start.minBytesPerSecond === 0 ? Infinity : 1000 / start.minBytesPerSecond;
    this.#maxMs = ALLOWANCE_MS * (start.maxAllowances ?? 1);
    this.#atMs = start.nowMs;
    this.#movedBytes = start.movedBytes;
  }

  /** Whether the peer has used up its time, given how many bytes have moved by now. */
  isTooSlow(nowMs: number, movedBytes: number): boolean {
    const earnedMs = movedBytes > this.#movedBytes ? (movedBytes - this.#movedBytes) * this.#msPerByte : 0;
    const spentMs = this.#msPerByte === Infinity ? 0 : nowMs - this.#atMs;
    this.#leftMs = Math.min(this.#maxMs, this.#leftMs + earnedMs - spentMs);
    this.pause(nowMs, movedBytes);
    return this.#leftMs < 0;
  }

  /** The time up to now was not the peer's: this side was not ready. */
  pause(nowMs: number, movedBytes: number): void {
    this.#atMs = nowMs;
    this.#movedBytes = movedBytes;
  }
}

/** What may be moved in one turn: as much as the store reads or writes at once. */
export const TURN_BYTES = 256 * KIB;

/** One large transfer at most goes on in a turn of the event loop: many would keep all others waiting for seconds. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;

  /** Resolves when the next TURN_BYTES may be moved. Undefined if that is now: this turn of the event loop is free. */
  wait(): Promise<void> | undefined {
    if (this.#isTaken) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#isTaken = true;
    setImmediate(this.#passOn);
    return undefined;
  }

  /** Whether others wait: then the transfer that has the turn should not go on for long. */
  areAwaited(): boolean {
    return this.#waiting.length > 0;
  }

  readonly #passOn = (): void => {
    const next = this.#waiting.shift();
    this.#isTaken = next !== undefined;
    if (next === undefined) return;
    next();
    setImmediate(this.#passOn);
  };
}
