// What counts requests in a window that slides: a rate limit for each key, and the proof-of-work difficulty that rises
// with the number of creations. Every request counted is remembered by its moment, so this is exact. Reads no clock.

import type { Config } from '../config/settings.ts';
import { HOUR_SECONDS, type Used, UseOrder } from '../core/time.ts';

interface SlidingWindowOptions {
  readonly windowMs: number;
  /** How many keys are remembered; for one more, the key whose last allowed request is the longest ago is forgotten. */
  readonly maxKeys: number;
  /** Keys that have run out are pruned once there are this fraction of maxKeys, 0 to 1. */
  readonly cleanupThreshold: number;
}

/** Entries are ordered by the last allowed request: then whatever has run out comes first. */
interface Entry extends Used<Entry> {
  readonly key: string;
  readonly stamps: Fifo<number>;
}

/** A window holds at most the maximum, whichever moment it starts. `nowMs` never goes back between calls. */
export class SlidingWindow {
  readonly #options: SlidingWindowOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #order = new UseOrder<Entry>();

  constructor(options: SlidingWindowOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Counts a request for windowMs, that moment not included, unless it is one more than `max` >= 1. Amortised O(1). */
  take(key: string, max: number, nowMs: number) {
    const entry = this.#entries.get(key) ?? this.#remember(key, nowMs);
    const { stamps } = entry;
    const { windowMs } = this.#options;
    dropAged(stamps, windowMs, nowMs);
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
      /** 0 when allowed, else how long until the next would be. */
      retryAfterMs: allowed ? 0 : stamps.at(stamps.length - max) + windowMs - nowMs,
      /** How long until everything counted now has left the window and the whole maximum is there again. */
      resetMs: stamps.at(stamps.length - 1) + windowMs - nowMs,
    };
  }

  /** Forgets the keys with nothing left in the window. */
  sweep(nowMs: number): void {
    for (let entry = this.#order.oldest; entry !== undefined; entry = this.#order.oldest) {
      if (entry.stamps.at(entry.stamps.length - 1) + this.#options.windowMs > nowMs) break;
      this.#forget(entry);
    }
  }

  #remember(key: string, nowMs: number): Entry {
    const { maxKeys, cleanupThreshold } = this.#options;
    if (this.#entries.size >= Math.min(maxKeys, Math.ceil(maxKeys * cleanupThreshold))) this.sweep(nowMs);
    const { oldest } = this.#order;
    if (oldest !== undefined && this.#entries.size >= maxKeys) this.#forget(oldest);
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

/** First in, first out, in O(1), amortised: Array.shift moves all that is left. */
class Fifo<Value> {
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

function dropAged(stamps: Fifo<number>, ageMs: number, nowMs: number): void {
  while (stamps.length > 0 && stamps.at(0) + ageMs <= nowMs) stamps.dropOldest();
}

// Anti-flood, for the whole service (the decisions, Proof-of-work and anti-flood). It does not check any work.
//
// With c > t requests in the window, t being the threshold, the level rises at once to ceil((c - t) / t) steps or more.
// More than L * t requests raise it to level L, so it falls by one when the window has held at most L * t for
// ANTIFLOOD_DECAY without a break since it fell that low or the level changed, whichever was later. There are no levels
// above the fewest steps that reach ANTIFLOOD_MAX: while they fell, the difficulty would stay, and nobody see why.

/** The token that a request has shown its work with; `expiresAt` in Unix seconds. */
export type ShownToken = Readonly<{ nonce: string; expiresAt: number }>;

/** `nowMs` never goes back from one call to the next. */
export class Antiflood {
  readonly #config: Config;
  readonly #windowMs: number;
  /** Fewer than one more than the threshold could never raise anything. */
  readonly #maxEntries: number;
  readonly #isOff: boolean;
  readonly #highestLevel: number;
  readonly #requests = new Fifo<number>();
  #level = 0;
  /** When the level last changed or, if later, when the window last came to hold no more than what raised it. */
  #calmSinceMs = -Infinity;
  readonly #tokens = new Fifo<ShownToken>();
  readonly #nonces = new Set<string>();
  #forgottenUntil = -Infinity;

  constructor(config: Config) {
    const { powDifficultyBits: baseBits, antifloodThreshold, antifloodStepBits, antifloodMaxBits } = config;
    this.#config = config;
    this.#windowMs = config.antifloodWindowSeconds * 1000;
    this.#maxEntries = Math.max(config.antifloodMaxEntries, antifloodThreshold + 1);
    // Without proof-of-work there is nothing to raise. A base above the maximum stays as it is.
    this.#isOff = baseBits === 0 || antifloodThreshold === 0 || antifloodStepBits === 0 || antifloodMaxBits <= baseBits;
    this.#highestLevel = Math.ceil((antifloodMaxBits - baseBits) / antifloodStepBits);
  }

  /** Counts a request that has done its work, unless its token was counted before, in whichever window. */
  record(nowMs: number, token: ShownToken): void {
    const { antifloodThreshold: threshold } = this.#config;
    if (this.#isOff || !this.#isFirstUse(token)) return;
    this.#decay(nowMs);
    this.#calmSinceMs = Math.max(this.#calmSinceMs, Math.min(nowMs, this.#atMostSinceMs(this.#level * threshold)));
    dropAged(this.#requests, this.#windowMs, nowMs);
    if (this.#requests.length === this.#maxEntries) this.#requests.dropOldest();
    this.#requests.push(nowMs);
    const reached = Math.min(this.#highestLevel, Math.ceil((this.#requests.length - threshold) / threshold));
    if (reached <= this.#level) return;
    this.#level = reached;
    this.#calmSinceMs = nowMs;
  }

  /** What a new challenge has to ask for at this moment; elevated when it is more than the base. */
  difficultyBits(nowMs: number): number {
    const { powDifficultyBits: baseBits, antifloodStepBits, antifloodMaxBits } = this.#config;
    if (this.#isOff) return baseBits;
    this.#decay(nowMs);
    return Math.min(antifloodMaxBits, baseBits + this.#level * antifloodStepBits);
  }

  /** Lets the level fall as it would have under a running clock: between two records requests only leave the window. */
  #decay(nowMs: number): void {
    const { antifloodThreshold: threshold, antifloodDecaySeconds } = this.#config;
    while (this.#level > 0) {
      const calmSinceMs = Math.max(this.#atMostSinceMs(this.#level * threshold), this.#calmSinceMs);
      const fallsAtMs = calmSinceMs + antifloodDecaySeconds * 1000;
      if (fallsAtMs > nowMs) return;
      this.#level -= 1;
      this.#calmSinceMs = fallsAtMs;
    }
  }

  /** When the window came, or will come, to hold at most so many: the moment at which one more than that leaves it. */
  #atMostSinceMs(count: number): number {
    const { length } = this.#requests;
    return length > count ? this.#requests.at(length - 1 - count) + this.#windowMs : -Infinity;
  }

  /**
   * Remembers the token. For one too many the first is forgotten, and what expires no later counts as shown before: so
   * nobody gets one counted twice by pushing it out. By more than a token and its upload take, the clock was set back.
   */
  #isFirstUse({ nonce, expiresAt }: ShownToken): boolean {
    if (this.#forgottenUntil - expiresAt > this.#config.powTtlSeconds + HOUR_SECONDS) this.#forgottenUntil = -Infinity;
    if (expiresAt <= this.#forgottenUntil || this.#nonces.has(nonce)) return false;
    if (this.#tokens.length === this.#maxEntries) {
      const forgotten = this.#tokens.at(0);
      this.#tokens.dropOldest();
      this.#nonces.delete(forgotten.nonce);
      this.#forgottenUntil = Math.max(this.#forgottenUntil, forgotten.expiresAt);
    }
    this.#nonces.add(nonce);
    this.#tokens.push({ nonce, expiresAt });
    return true;
  }
}
