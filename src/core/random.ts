// The shape in which randomness is handed in: production gives crypto/random.ts, tests may give a seeded one.

/** That many bytes, unpredictable and never used before. */
export type RandomBytes = (size: number) => Uint8Array;
