// A rate limit for each key over a window that slides: whichever moment a window starts, it holds at most the maximum.
// Every request that was allowed is remembered by its moment, so this is exact. Knows no clock and no addresses.

import { UseOrder, type Used } from '../core/use-order.ts';

export interface SlidingWindowOptions {
  readonly windowMs: number;
  /** How many keys are remembered; for a new one the key whose last allowed request is the longest ago is forgotten. */
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

/** Entries are ordered by the last allowed request: then whatever has run out comes first. */
interface Entry extends Used<Entry> {
  readonly key: string;
  readonly stamps: Fifo<number>;
}

/** `nowMs` never goes back from one call to the next. */
export class SlidingWindow {
  readonly #windowMs: number;
  readonly #maxKeys: number;
  readonly #cleanupSize: number;
  readonly #entries = new Map<string, Entry>();
  readonly #order = new UseOrder<Entry>();

  constructor({ windowMs, maxKeys, cleanupThreshold }: SlidingWindowOptions) {
    this.#windowMs = windowMs;
    this.#maxKeys = maxKeys;
    this.#cleanupSize = Math.min(maxKeys, Math.ceil(maxKeys * cleanupThreshold));
  }

  /** Keys remembered. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Counts a request, unless that would make more than `max` (at least 1) in the window that ends now; a request that
   * is refused does not count. A request counts for windowMs from its moment on, that last moment not included. O(1),
   * amortised.
   */
  take(key: string, max: number, nowMs: number): Allowance {
    if (!(max >= 1)) throw new RangeError(`a limit allows at least one request, not ${max}`);
    const entry = this.#entries.get(key) ?? this.#remember(key, nowMs);
    const { stamps } = entry;
    dropAged(stamps, this.#windowMs, nowMs);

    const allowed = stamps.length < max;
    if (allowed) {
      stamps.push(nowMs);
      this.#order.remove(entry);
      this.#order.append(entry);
    }
    return {
      allowed,
      // Callers of different tiers may share a key, so more may be counted than this one's maximum.
      remaining: Math.max(0, max - stamps.length),
      retryAfterMs: allowed ? 0 : stamps.at(stamps.length - max) + this.#windowMs - nowMs,
      resetMs: stamps.at(stamps.length - 1) + this.#windowMs - nowMs,
    };
  }

  /** Forgets the keys with nothing left in the window; how many. */
  sweep(nowMs: number): number {
    const sizeBefore = this.#entries.size;
    for (let entry = this.#order.oldest; entry !== undefined; entry = this.#order.oldest) {
      if (entry.stamps.at(entry.stamps.length - 1) + this.#windowMs > nowMs) break;
      this.#forget(entry);
    }
    return sizeBefore - this.#entries.size;
  }

  #remember(key: string, nowMs: number): Entry {
    if (this.#entries.size >= this.#cleanupSize) this.sweep(nowMs);
    const { oldest } = this.#order;
    if (oldest !== undefined && this.#entries.size >= this.#maxKeys) this.#forget(oldest);
    const entry: Entry = { key, stamps: new Fifo(), older: undefined, newer: undefined };
    this.#entries.set(key, entry);
    this.#order.append(entry);
    return entry;
  }

  #forget(entry: Entry): void {
    this.#order.remove(entry);
    this.#entries.delete(entry.key);
  }
}

/** First in, first out, in O(1), amortised: Array.shift moves all that is left. Knows no bound itself. */
export class Fifo<Value> {
  readonly #values: Value[] = [];
  /** Where the oldest is; what was dropped before it is given back once it is half of the array. */
  #head = 0;

  get length(): number {
    return this.#values.length - this.#head;
  }

  /** The value at that place, counted from the oldest; there must be one. */
  at(index: number): Value {
    return this.#values[this.#head + index]!;
  }

  push(value: Value): void {
    this.#values.push(value);
  }

  dropOldest(): void {
    this.#head += 1;
    if (this.#head * 2 < this.#values.length) return;
    this.#values.splice(0, this.#head);
    this.#head = 0;
  }
}

/** Drops the moments that are `ageMs` ago or longer. */
export function dropAged(stamps: Fifo<number>, ageMs: number, nowMs: number): void {
  while (stamps.length > 0 && stamps.at(0) + ageMs <= nowMs) stamps.dropOldest();
}
