// The proof-of-work difficulty that rises with the number of creations in a sliding window, for the whole service.
// (The decisions, Proof-of-work and anti-flood.) Knows no clock, and does not check any work.
//
// With c requests in the window and threshold t, the level is at least ceil((c - t) / t) steps for c > t: it rises at
// once to that. What raised it to level L is having more than L * t requests, so it falls by one when the window has
// held at most L * t for decayMs without a break, counted from when it fell that low or from the last change of the
// level, whichever was later. A burst in between starts that time anew. Levels above the fewest steps that reach
// maxBits do not exist, or the difficulty would stay at its maximum for as long as they take to fall without anyone
// seeing them.

import { StampRing } from './sliding-window.ts';

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
  /**
   * How many requests, and how many tokens, are remembered: with more in the window the oldest are forgotten, so that
   * the count goes no higher.
   */
  readonly maxEntries: number;
}

/** The token that a request has shown its work with. */
export interface ShownToken {
  readonly nonce: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

export interface Antiflood {
  /**
   * Counts a request that has done its work, unless its token was counted before, in whichever window. As with
   * `difficultyBits`, `nowMs` never goes back from one call to the next.
   */
  record(nowMs: number, token: ShownToken): void;
  /** What a new challenge has to ask for at this moment; elevated when it is more than the base. */
  difficultyBits(nowMs: number): number;
}

export function createAntiflood(options: AntifloodOptions): Antiflood {
  const { baseBits, thresholdCount, windowMs, stepBits, maxBits, decayMs, maxEntries } = options;
  const isOff = baseBits === 0 || thresholdCount === 0 || stepBits === 0 || maxBits <= baseBits;
  if (isOff) return { record: () => undefined, difficultyBits: () => baseBits };

  const highestLevel = Math.ceil((maxBits - baseBits) / stepBits);
  const requests = new StampRing();
  const isFirstUse = createFirstUses(maxEntries);
  let level = 0;
  // The level last changed then, or the window last came to hold no more than what raised it, as far as `requests` no
  // longer tell.
  let calmSinceMs = -Infinity;

  /** When the window came, or will come, to hold at most so many: the moment at which one more than that leaves it. */
  function atMostSinceMs(count: number): number {
    return requests.length > count ? requests.at(requests.length - 1 - count) + windowMs : -Infinity;
  }

  /** Lets the level fall as it would have under a running clock: between two records requests only leave the window. */
  function decay(nowMs: number): void {
    while (level > 0) {
      const fallsAtMs = Math.max(atMostSinceMs(level * thresholdCount), calmSinceMs) + decayMs;
      if (fallsAtMs > nowMs) return;
      level -= 1;
      calmSinceMs = fallsAtMs;
    }
  }

  return {
    record(nowMs, token) {
      if (!isFirstUse(token)) return;
      decay(nowMs);
      calmSinceMs = Math.max(calmSinceMs, Math.min(nowMs, atMostSinceMs(level * thresholdCount)));
      requests.dropAged(windowMs, nowMs);
      if (requests.length === maxEntries) requests.dropOldest();
      requests.push(nowMs);
      const reached = Math.min(highestLevel, Math.ceil((requests.length - thresholdCount) / thresholdCount));
      if (reached <= level) return;
      level = reached;
      calmSinceMs = nowMs;
    },
    difficultyBits(nowMs) {
      decay(nowMs);
      return Math.min(maxBits, baseBits + level * stepBits);
    },
  };
}

/**
 * Tells whether a token is shown for the first time, and remembers it. When too many are remembered, the one that came
 * first is forgotten, and every token that expires no later counts as shown before: nobody can have a token counted
 * twice by pushing it out with others, and new tokens, which expire later, still count.
 */
function createFirstUses(maxTokens: number): (token: ShownToken) => boolean {
  const nonces = new Set<string>();
  /** In the order in which they came; once it is full, round and round. */
  const tokens: ShownToken[] = [];
  let oldest = 0;
  let forgottenUntil = -Infinity;
  return (token) => {
    if (token.expiresAt <= forgottenUntil || nonces.has(token.nonce)) return false;
    const forgotten = tokens[oldest];
    if (forgotten !== undefined) {
      nonces.delete(forgotten.nonce);
      forgottenUntil = Math.max(forgottenUntil, forgotten.expiresAt);
    }
    nonces.add(token.nonce);
    tokens[oldest] = token;
    oldest = (oldest + 1) % maxTokens;
    return true;
  };
}
