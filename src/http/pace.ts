// The slowest pace at which a peer may send or take bytes. Does not know sockets: it is told how far a transfer has
// come.

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
