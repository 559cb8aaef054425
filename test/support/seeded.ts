// Randomness that can be repeated, for property tests: the same seed gives the same values on every machine. Not for
// secrets.

export interface Seeded {
  /** A whole number from 0 up to, not including, `limit`. */
  below(limit: number): number;
  /** A whole number between the two, both possible. */
  between(lowest: number, highest: number): number;
  /** True once in `times`. */
  oneIn(times: number): boolean;
  pick<Value>(values: readonly Value[]): Value;
  bytes(size: number): Uint8Array;
}

/** The mulberry32 generator by Tommy Ettinger: 32 bits of state, which is enough to vary tests. */
export function createSeeded(seed: number): Seeded {
  let state = seed >>> 0;

  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  const below = (limit: number): number => Math.floor((next() / 2 ** 32) * limit);
  return {
    below,
    between: (lowest, highest) => lowest + below(highest - lowest + 1),
    oneIn: (times) => below(times) === 0,
    pick: (values) => values[below(values.length)]!,
    bytes: (size) => Uint8Array.from({ length: size }, () => below(256)),
  };
}

/** Runs a property once for each seed; a failure names its seed. */
export function forSeeds(count: number, property: (random: Seeded, seed: number) => void): void {
  for (let seed = 1; seed <= count; seed += 1) {
    try {
      property(createSeeded(seed), seed);
    } catch (error) {
      throw new Error(`property fails for seed ${seed}`, { cause: error });
    }
  }
}

/** The bytes cut into pieces at random places, some of them empty. */
export function cutAtRandom(bytes: Uint8Array, random: Seeded, longest: number): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let start = 0; start < bytes.length; ) {
    const end = Math.min(bytes.length, start + random.between(0, longest));
    pieces.push(bytes.subarray(start, end));
    start = end;
  }
  return pieces;
}
