// Units of time and size, and the one shape in which time is handed in. Does not read any clock itself.

export interface Clock {
  /** Unix time in milliseconds; may jump when the host's clock is set. Expiry and everything a person reads. */
  readonly unixMs: () => number;
  /** Milliseconds from an arbitrary start that never go back. Durations and the windows of limits. */
  readonly monotonicMs: () => number;
}

export const MINUTE_SECONDS = 60;
export const HOUR_SECONDS = 60 * MINUTE_SECONDS;
export const DAY_SECONDS = 24 * HOUR_SECONDS;

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

// Values that are there at once or come later. A wait for what is there already costs a fair part of what a small read
// does in all, so that the way of a read awaits nothing that need not be awaited.

export type Awaitable<Value> = Value | Promise<Value>;

/** `step` with the value: in this very turn when it is there, and then it may throw; otherwise once it has come. */
export function andThen<Value, Next>(
  value: Awaitable<Value>,
  step: (value: Value) => Awaitable<Next>,
): Awaitable<Next> {
  return value instanceof Promise ? value.then(step) : step(value);
}

// The shape in which randomness is handed in: production gives crypto/digest.ts, tests may give a seeded one.

/** That many bytes, unpredictable and never used before. */
export type RandomBytes = (size: number) => Uint8Array;
