// The slowest pace at which a peer may send or take bytes. Does not know sockets: it is told how far a transfer has
// come.

import { Socket } from 'node:net';
import { KIB, MIB } from '../../core/time.ts';

/** The averaging time of SERVICE_MIN_TRANSFER_RATE: how long a peer may pause altogether. */
const ALLOWANCE_MS = 10_000;

/**
 * An allowance of time that passing time uses up and moved bytes earn back, up to a bound. A transfer at the minimum
 * rate goes on for ever, a stalled one for the allowance, one at half the rate for twice as long.
 */
export class Pace {
  readonly #msPerByte: number;
  readonly #mostMs: number;
  #leftMs = ALLOWANCE_MS;
  #atMs: number;
  #moved: number;

  /**
   * @param start `minBytesPerSecond` 0 allows any pace; `mostAllowances` is how many times the first allowance can be
   * saved up.
   */
  constructor(start: { minBytesPerSecond: number; nowMs: number; movedBytes: number; mostAllowances?: number }) {
    this.#msPerByte = start.minBytesPerSecond === 0 ? Infinity : 1000 / start.minBytesPerSecond;
    this.#mostMs = ALLOWANCE_MS * (start.mostAllowances ?? 1);
    this.#atMs = start.nowMs;
    this.#moved = start.movedBytes;
  }

  /** Whether the peer has used up its time, given how many bytes have moved by now. */
  isTooSlow(nowMs: number, movedBytes: number): boolean {
    const earnedMs = movedBytes > this.#moved ? (movedBytes - this.#moved) * this.#msPerByte : 0;
    const spentMs = this.#msPerByte === Infinity ? 0 : nowMs - this.#atMs;
    this.#leftMs = Math.min(this.#mostMs, this.#leftMs + earnedMs - spentMs);
    this.pause(nowMs, movedBytes);
    return this.#leftMs < 0;
  }

  /** Time up to now was not the peer's: this side was not ready. */
  pause(nowMs: number, movedBytes: number): void {
    this.#atMs = nowMs;
    this.#moved = movedBytes;
  }
}

// Whose turn it is to go on with a large transfer: so many in one turn of the event loop, in the order asked for. A
// socket gives or takes megabytes without a pause; many of them at once would keep everyone else waiting for seconds.

export interface Turns {
  /** Resolves when the next TURN_BYTES may be moved: at once, unless others have had this turn of the event loop. */
  wait(): Promise<void> | undefined;
  /** Whether others wait: then whoever moves something should not go on for long. */
  areAwaited(): boolean;
}

/** As much as the store reads or writes at once. */
export const TURN_BYTES = 256 * KIB;

/** `atOnce` transfers are moved in one turn of the event loop. */
export function createTurns(atOnce: number): Turns {
  const waiting: (() => void)[] = [];
  let left = atOnce;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      left = atOnce;
      for (const resolve of waiting.splice(0, atOnce)) {
        left -= 1;
        resolve();
      }
      if (waiting.length > 0) schedule();
    });
  }

  return {
    wait: () => {
      schedule();
      if (left > 0) {
        left -= 1;
        return undefined;
      }
      return new Promise((resolve) => waiting.push(resolve));
    },
    areAwaited: () => waiting.length > 0,
  };
}

// The lingering close (RFC 9112 section 9.6): the answer is written whole, this side is closed, and what the client
// still sends is read and thrown away within bounds. Closing at once would reset the connection under an answer that
// the client has not read yet.

export interface LingerBounds {
  /** Past these a connection is cut off. */
  readonly maxBytes: number;
  readonly maxMs: number;
  /** More than so many at a time are closed without lingering. */
  readonly maxSockets: number;
}

export interface Lingering {
  /** Closes after what has been written, lingering. Requests that still arrive are not parsed any more. */
  close(socket: Socket): void;
  /** Makes node:http close the connection in this way, when it does so after the answer in progress. */
  arm(socket: Socket): void;
  /** From now on no connection lingers longer than this: the process is about to end. */
  hurry(ms: number): void;
}

const BOUNDS: LingerBounds = { maxBytes: 64 * MIB, maxMs: 5000, maxSockets: 64 };

export function createLingering(bounds: LingerBounds = BOUNDS): Lingering {
  const timers = new Map<Socket, NodeJS.Timeout>();
  let { maxMs } = bounds;

  function limit(socket: Socket): void {
    clearTimeout(timers.get(socket));
    timers.set(socket, setTimeout(() => socket.destroy(), maxMs));
  }

  function close(socket: Socket): void {
    if (socket.destroyed || timers.has(socket)) return;
    if (timers.size >= bounds.maxSockets) {
      Socket.prototype.destroySoon.call(socket);
      return;
    }
    let leftBytes = bounds.maxBytes;
    // node's parser is one of these listeners; adding another takes the socket's handle back from it.
    socket.removeAllListeners('data').on('data', (bytes: Uint8Array) => {
      leftBytes -= bytes.length;
      if (leftBytes < 0) socket.destroy();
    });
    socket.once('close', () => {
      clearTimeout(timers.get(socket));
      timers.delete(socket);
    });
    limit(socket);
    socket.end();
    socket.resume();
    // What made the handle read again after a pause was the parser's; resume() alone takes the handle to be reading.
    socket._read(0);
  }

  return {
    close,
    arm: (socket) => {
      socket.destroySoon = () => close(socket);
    },
    hurry: (ms) => {
      maxMs = Math.min(maxMs, ms);
      for (const socket of timers.keys()) limit(socket);
    },
  };
}
