// A request's body on its way to the handler: pushed into its sink, never collected here, at no less than the minimum
// rate. What is done with the rest of a body that nobody reads is linger.ts.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ByteSink } from '../core/bytes.ts';
import { Refusal } from '../core/refusals.ts';
import { Pace } from './pace.ts';
import type { RequestBody } from './request.ts';
import { TURN_BYTES, type Turns } from './turns.ts';

/** The client broke off; nobody is left to answer. */
export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError';
}

/** The bodies that are being read, for whoever measures their pace. */
export interface BodyTransfers {
  readonly minBytesPerSecond: number;
  readonly nowMs: () => number;
  readonly active: Set<BodyReader>;
  /** libuv would read up to 2 MiB from one socket before it looks at the others. */
  readonly turns: Turns;
}

/** Bodies that are read on in one turn of the event loop: to digest so much takes a good part of a millisecond. */
export const BODIES_AT_ONCE = 1;

export const NO_BODY: RequestBody = Object.freeze({ declaredBytes: 0, pipe: () => Promise.resolve() });

export class BodyReader implements RequestBody {
  readonly declaredBytes: number | undefined;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #expectsContinue: boolean;
  readonly #transfers: BodyTransfers;
  #sink: ByteSink | undefined;
  #isSinkBusy = false;
  #isEnded = false;
  #receivedBytes = 0;
  /** Since its last turn. */
  #turnBytes = 0;
  #pace: Pace | undefined;
  /** Ends the transfer that runs. */
  #settle: ((failure?: unknown) => void) | undefined;
  /** Why there is no more to come, even before the handler asks. */
  #failure: Error | undefined;

  constructor(parts: {
    req: IncomingMessage;
    res: ServerResponse;
    declaredBytes: number | undefined;
    expectsContinue: boolean;
    transfers: BodyTransfers;
  }) {
    this.#req = parts.req;
    this.#res = parts.res;
    this.declaredBytes = parts.declaredBytes;
    this.#expectsContinue = parts.expectsContinue;
    this.#transfers = parts.transfers;
  }

  /** Whether some of it has not been received. */
  get isUnfinished(): boolean {
    return !this.#req.complete;
  }

  /** A property, so that it can be handed on as a ByteSource. */
  readonly pipe = async (sink: ByteSink): Promise<void> => {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#sink !== undefined) throw new Error('a request body is piped at most once');
    this.#sink = sink;
    if (this.#expectsContinue) this.#res.writeContinue();
    const { minBytesPerSecond, nowMs, active } = this.#transfers;
    this.#pace = new Pace({ minBytesPerSecond, nowMs: nowMs(), movedBytes: 0 });
    active.add(this);
    try {
      await this.#transfer();
    } finally {
      active.delete(this);
    }
  };

  /** Ends the transfer with this error, now or as soon as it is asked for. The first failure stays. */
  fail(failure: Error): void {
    this.#failure ??= failure;
    this.#settle?.(this.#failure);
  }

  /** Refuses a client that is too slow; called about once a second while the body is read. */
  checkPace(): void {
    const nowMs = this.#transfers.nowMs();
    if (this.#isSinkBusy) this.#pace?.pause(nowMs, this.#receivedBytes);
    else if (this.#pace?.isTooSlow(nowMs, this.#receivedBytes) === true) this.fail(new Refusal('requestTimeout'));
  }

  #transfer(): Promise<void> {
    const req = this.#req;
    const take = (bytes: Uint8Array): void => this.#take(bytes);
    const end = (): void => this.#end();
    return new Promise((resolve, reject) => {
      this.#settle = (failure) => {
        this.#settle = undefined;
        req.off('data', take).off('end', end);
        if (failure === undefined) return resolve();
        req.pause();
        reject(failure);
      };
      req.on('data', take).on('end', end);
    });
  }

  #take(bytes: Uint8Array): void {
    // The sink may give the memory back, and then there is no length to ask for.
    const { length } = bytes;
    this.#receivedBytes += length;
    try {
      const taken = this.#sink?.(bytes);
      const turn = this.#nextTurn(length);
      if (taken === undefined && turn === undefined) return;
      this.#isSinkBusy = true;
      this.#req.pause();
      Promise.all([taken, turn]).then(() => this.#goOn(), (error: unknown) => this.#settle?.(error));
    } catch (error) {
      this.#settle?.(error);
    }
  }

  /** Lets others have theirs when this turn is used up. */
  #nextTurn(bytes: number): Promise<void> | undefined {
    this.#turnBytes += bytes;
    if (this.#turnBytes < TURN_BYTES) return undefined;
    this.#turnBytes = 0;
    return this.#transfers.turns.wait();
  }

  #goOn(): void {
    this.#isSinkBusy = false;
    if (this.#isEnded) this.#settle?.();
    else if (this.#settle !== undefined) this.#req.resume();
  }

  /** node may report the end although the reader of the last chunk has just paused the stream. */
  #end(): void {
    this.#isEnded = true;
    if (!this.#isSinkBusy) this.#settle?.();
  }
}
