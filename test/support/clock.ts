// A clock that tests move by hand. It never runs by itself, and moves no timer of Node's.

import type { Clock } from '../../src/core/time.ts';

export interface MovableClock extends Clock {
  /** Time goes by: both readings move forward. */
  readonly advance: (ms: number) => void;
  /** The host's clock is set: the Unix time moves, forward or (negative) back; the monotonic time does not. */
  readonly jump: (ms: number) => void;
}

/** 2026-01-31T12:00:00Z, a whole second, so that tests can name what they expect. */
const START_UNIX_MS = 1_769_860_800_000;

export function movableClock(startUnixMs: number = START_UNIX_MS): MovableClock {
  let unixMs = startUnixMs;
  let monotonicMs = 1000;
  return {
    unixMs: () => unixMs,
    monotonicMs: () => monotonicMs,
    advance: (ms) => {
      if (ms < 0) throw new RangeError('time does not go back; jump() sets the clock');
      unixMs += ms;
      monotonicMs += ms;
    },
    jump: (ms) => {
      unixMs += ms;
    },
  };
}
