// A rate limit for each key over a window that slides: whichever moment a window starts, it holds at most the
// maximum. Every request that was allowed is remembered by its moment, so this is exact and not an estimate. Knows no
// clock and no addresses.

import { createUseOrder, type Used } from '../core/use-order.ts';

export interface SlidingWindowOptions {
  readonly windowMs: number;
  /** How many keys are remembered; the one whose last allowed request is the longest ago is forgotten for a new one. */
  readonly maxKeys: number;
  /** Keys that have run out are pruned once there are this fraction of maxKeys, 0 to 1. */
  readonly cleanupThreshold: number;
}

export interface Allowance {
  readonly allowed: boolean;
  /** How many more would be allowed at this moment. */
  readonly remaining: number;
  /** 0 when allowed, else how long until the next would be. */
  readonly retryAfterMs: number;
  /** How long until everything counted now has left the window and the whole maximum is there again. */
  readonly resetMs: number;
}

export interface SlidingWindow {
  /**
   * Counts a request, unless that would make more than `max` (at least 1) in the window that ends now; a request that
   * is refused does not count. A request counts for windowMs from its moment on, that last moment not included.
   * `nowMs` never goes back from one call to the next. O(1), amortised.
   */
  take(key: string, max: number, nowMs: number): Allowance;
  /** Forgets the keys with nothing left in the window; how many. */
  sweep(nowMs: number): number;
  /** Keys remembered. */
  readonly size: number;
}

/** A key's entry, in a list ordered by the last allowed request: then whatever has run out is at its front. */
interface Entry extends Used<Entry> {
  readonly key: string;
  readonly stamps: StampRing;
}

export function createSlidingWindow({ windowMs, maxKeys, cleanupThreshold }: SlidingWindowOptions): SlidingWindow {
  const entries = new Map<string, Entry>();
  const order = createUseOrder<Entry>();
  const cleanupSize = Math.min(maxKeys, Math.ceil(maxKeys * cleanupThreshold));

  function forget(entry: Entry): void {
    order.remove(entry);
    entries.delete(entry.key);
  }

  function sweep(nowMs: number): number {
    const sizeBefore = entries.size;
    for (let entry = order.oldest(); entry !== undefined; entry = order.oldest()) {
      if (newest(entry.stamps) + windowMs > nowMs) break;
      forget(entry);
    }
    return sizeBefore - entries.size;
  }

  function remember(key: string, nowMs: number): Entry {
    if (entries.size >= cleanupSize) sweep(nowMs);
    const oldest = order.oldest();
    if (oldest !== undefined && entries.size >= maxKeys) forget(oldest);
    const entry: Entry = { key, stamps: new StampRing(), older: undefined, newer: undefined };
    entries.set(key, entry);
    order.append(entry);
    return entry;
  }

  function take(key: string, max: number, nowMs: number): Allowance {
    if (!(max >= 1)) throw new RangeError(`a limit allows at least one request, not ${max}`);
    const entry = entries.get(key) ?? remember(key, nowMs);
    const { stamps } = entry;
    stamps.dropAged(windowMs, nowMs);

    const allowed = stamps.length < max;
    if (allowed) {
      stamps.push(nowMs);
      order.remove(entry);
      order.append(entry);
    }
    return {
      allowed,
      // Callers of different tiers may share a key, so more may be counted than this one's maximum.
      remaining: Math.max(0, max - stamps.length),
      retryAfterMs: allowed ? 0 : stamps.at(stamps.length - max) + windowMs - nowMs,
      resetMs: newest(stamps) + windowMs - nowMs,
    };
  }

  return {
    take,
    sweep,
    get size() {
      return entries.size;
    },
  };
}

function newest(stamps: StampRing): number {
  return stamps.at(stamps.length - 1);
}

// Moments in the order in which they came, the oldest taken off as they run out: what both counters over a window are
// made of. Grows as it is filled and knows no bound itself.

const FIRST_CAPACITY = 4;

/**
 * The invariant: `length` moments from `#head` on, each no earlier than the one before. Every call is O(1),
 * amortised.
 */
export class StampRing {
  #stamps = new Float64Array(FIRST_CAPACITY);
  #head = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The moment at that place, counted from the oldest; there must be one. */
  at(index: number): number {
    return this.#stamps[(this.#head + index) % this.#stamps.length]!;
  }

  push(stampMs: number): void {
    if (this.#length === this.#stamps.length) this.#grow();
    this.#stamps[(this.#head + this.#length) % this.#stamps.length] = stampMs;
    this.#length += 1;
  }

  dropOldest(): void {
    this.#head = (this.#head + 1) % this.#stamps.length;
    this.#length -= 1;
  }

  /** Drops what is `ageMs` old or older. */
  dropAged(ageMs: number, nowMs: number): void {
    while (this.#length > 0 && this.at(0) + ageMs <= nowMs) this.dropOldest();
  }

  #grow(): void {
    const grown = new Float64Array(this.#stamps.length * 2);
    for (let index = 0; index < this.#length; index += 1) grown[index] = this.at(index);
    this.#stamps = grown;
    this.#head = 0;
  }
}
