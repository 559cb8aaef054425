// Units of time and size, counts, and how time and randomness are handed in. Below: values made once, order of use.

export interface Clock {
  /** Unix time in milliseconds; may jump when the host's clock is set. For expiry and everything a person reads. */
  readonly unixMs: () => number;
  /** Milliseconds from an arbitrary start that never go back. For durations and the windows of limits. */
  readonly monotonicMs: () => number;
}

/** That many bytes, unpredictable and never used before: from crypto/digest.ts in production. */
export type RandomBytes = (size: number) => Uint8Array;

export const MINUTE_SECONDS = 60;
export const HOUR_SECONDS = 60 * MINUTE_SECONDS;
export const DAY_SECONDS = 24 * HOUR_SECONDS;

/** Certificates and revocation lists begin this long before they are made, for verifiers whose clocks are slow. */
export const BACKDATE_SECONDS = 5 * MINUTE_SECONDS;

export const KIB = 1024;
export const MIB = 1024 * KIB;
export const GIB = 1024 * MIB;

export function unixSeconds(clock: Clock): number {
  return Math.floor(clock.unixMs() / 1000);
}

/** ISO 8601 in UTC with whole seconds, `2026-01-31T12:00:00Z`: the form of times in lists. */
export function isoSeconds(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
}

export function showCount(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}

export type Awaitable<Value> = Value | Promise<Value>;

/** Calls `step` at once if the value is no promise, since an await costs a small read much; then `step` may throw. */
export function andThen<Value, Next>(
  value: Awaitable<Value>, step: (value: Value) => Awaitable<Next>,
): Awaitable<Next> {
  return value instanceof Promise ? value.then(step) : step(value);
}

/** Makes a value once for each subject. The value goes when the subject goes, so it needs no bound of its own. */
export function onceForEach<Subject extends object, Given extends readonly unknown[], Made extends object>(
  make: (subject: Subject, ...given: Given) => Made,
): typeof make {
  const all = new WeakMap<Subject, Made>();
  return (subject, ...given) => {
    let made = all.get(subject);
    if (made === undefined) {
      made = make(subject, ...given);
      all.set(subject, made);
    }
    return made;
  };
}

/** Adds `more`, which may be negative, to the key's count, and returns the new count. A key whose count is 0 goes. */
export function addTo<Key>(counts: Map<Key, number>, key: Key, more: number): number {
  const count = (counts.get(key) ?? 0) + more;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
  return count;
}

/** An entry belongs to one order at most; only that order sets these fields. */
export interface Used<Entry> {
  older: Entry | undefined;
  newer: Entry | undefined;
}

/** Entries by their last use, in O(1): a Map steps over all deleted entries before it reaches its first. */
export class UseOrder<Entry extends Used<Entry>> {
  oldest: Entry | undefined;
  #newest: Entry | undefined;

  /** Adds an entry, which is not in the order yet, as used now. */
  append(entry: Entry): void {
    entry.older = this.#newest;
    entry.newer = undefined;
    if (this.#newest === undefined) this.oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
  }

  remove(entry: Entry): void {
    if (entry.older === undefined) this.oldest = entry.newer;
    else entry.older.newer = entry.newer;
    if (entry.newer === undefined) this.#newest = entry.older;
    else entry.newer.older = entry.older;
  }
}
