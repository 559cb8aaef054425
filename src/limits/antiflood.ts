// The proof-of-work difficulty that rises with the number of creations in a sliding window, for the whole service.
// (The decisions, Proof-of-work and anti-flood.) Knows no clock, and does not check any work.
//
// With c requests in the window and threshold t, the level is at least ceil((c - t) / t) steps for c > t: it rises at
// once to that. What raised it to level L is having more than L * t requests, so it falls by one when the window has
// held at most L * t for decayMs without a break, counted from when it fell that low or from the last change of the
// level, whichever was later. A burst in between starts that time anew. There are no levels above the fewest steps that
// reach maxBits: the difficulty would stay at its maximum until they have fallen, and nobody would see why.

import { dropAged, Fifo } from './sliding-window.ts';

export interface AntifloodOptions {
  /** The difficulty in quiet times; 0 for no proof-of-work, and then none whatever comes. */
  readonly baseBits: number;
  /** The requests in a window that raise nothing; 0 switches anti-flood off. */
  readonly thresholdCount: number;
  readonly windowMs: number;
  readonly stepBits: number;
  /** The highest difficulty; a base above it stays as it is. */
  readonly maxBits: number;
  readonly decayMs: number;
  /** How many requests, and how many tokens, are remembered; with more in the window the oldest are forgotten. */
  readonly maxEntries: number;
}

/** The token that a request has shown its work with. */
export interface ShownToken {
  readonly nonce: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** `nowMs` never goes back from one call to the next. */
export class Antiflood {
  readonly #options: AntifloodOptions;
  readonly #isOff: boolean;
  readonly #highestLevel: number;
  readonly #requests = new Fifo<number>();
  #level = 0;
  /** When the level last changed or, if later, when the window last came to hold no more than what raised it. */
  #calmSinceMs = -Infinity;
  readonly #tokens = new Fifo<ShownToken>();
  readonly #nonces = new Set<string>();
  /** Tokens that expire no later count as shown before. */
  #forgottenUntil = -Infinity;

  constructor(options: AntifloodOptions) {
    const { baseBits, thresholdCount, stepBits, maxBits } = options;
    this.#options = options;
    this.#isOff = baseBits === 0 || thresholdCount === 0 || stepBits === 0 || maxBits <= baseBits;
    this.#highestLevel = Math.ceil((maxBits - baseBits) / stepBits);
  }

  /** Counts a request that has done its work, unless its token was counted before, in whichever window. */
  record(nowMs: number, token: ShownToken): void {
    const { thresholdCount, windowMs, maxEntries } = this.#options;
    if (this.#isOff || !this.#isFirstUse(token)) return;
    this.#decay(nowMs);
    this.#calmSinceMs = Math.max(this.#calmSinceMs, Math.min(nowMs, this.#atMostSinceMs(this.#level * thresholdCount)));
    dropAged(this.#requests, windowMs, nowMs);
    if (this.#requests.length === maxEntries) this.#requests.dropOldest();
    this.#requests.push(nowMs);
    const reached = Math.ceil((this.#requests.length - thresholdCount) / thresholdCount);
    if (Math.min(this.#highestLevel, reached) <= this.#level) return;
    this.#level = Math.min(this.#highestLevel, reached);
    this.#calmSinceMs = nowMs;
  }

  /** What a new challenge has to ask for at this moment; elevated when it is more than the base. */
  difficultyBits(nowMs: number): number {
    const { baseBits, stepBits, maxBits } = this.#options;
    if (this.#isOff) return baseBits;
    this.#decay(nowMs);
    return Math.min(maxBits, baseBits + this.#level * stepBits);
  }

  /** Lets the level fall as it would have under a running clock: between two records requests only leave the window. */
  #decay(nowMs: number): void {
    const { thresholdCount, decayMs } = this.#options;
    while (this.#level > 0) {
      const fallsAtMs = Math.max(this.#atMostSinceMs(this.#level * thresholdCount), this.#calmSinceMs) + decayMs;
      if (fallsAtMs > nowMs) return;
      this.#level -= 1;
      this.#calmSinceMs = fallsAtMs;
    }
  }

  /** When the window came, or will come, to hold at most so many: the moment at which one more than that leaves it. */
  #atMostSinceMs(count: number): number {
    const { length } = this.#requests;
    return length > count ? this.#requests.at(length - 1 - count) + this.#options.windowMs : -Infinity;
  }

  /**
   * Remembers the token. When too many are remembered, the one that came first is forgotten, and every token that
   * expires no later counts as shown before: nobody gets a token counted twice by pushing it out with others, and new
   * tokens, which expire later, still count.
   */
  #isFirstUse(token: ShownToken): boolean {
    if (token.expiresAt <= this.#forgottenUntil || this.#nonces.has(token.nonce)) return false;
    if (this.#tokens.length === this.#options.maxEntries) {
      const forgotten = this.#tokens.at(0);
      this.#tokens.dropOldest();
      this.#nonces.delete(forgotten.nonce);
      this.#forgottenUntil = Math.max(this.#forgottenUntil, forgotten.expiresAt);
    }
    this.#nonces.add(token.nonce);
    this.#tokens.push(token);
    return true;
  }
}
