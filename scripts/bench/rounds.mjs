// Alternating rounds and their medians: what drifts on a machine (clock rate, neighbours, a filling disk) then falls
// on both sides alike. How one round is measured is the caller's.

/** @typedef {import('./load.mjs').Measured & { cpuMs?: number }} Measured */

/**
 * Medians over the rounds, the figures in the row's unit; NaN for what the operation does not have. `ratio` is the
 * median of `ratios`, one of each round. `errors` of either side make the whole run fail. `cpuMs` is the processor time
 * that the server took for one request, in all its threads; unlike a rate, it is much the same on a busy machine.
 * @typedef {{ p50Ms: number, p99Ms: number, cpuMs: number, peakBytes: number }} Side
 * @typedef {{ floor: number, pasted: number, ratio: number, ratios: number[], floorSide: Side, pastedSide: Side,
 *   errors: Record<string, number>, notes: string[], rounds: unknown[] }} Outcome
 */

/** @type {Side} */
export const NO_LOAD = { p50Ms: NaN, p99Ms: NaN, cpuMs: NaN, peakBytes: NaN };

/** @param {readonly number[]} values at least one */
export function median(values) {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

/** What is left from one round to do in the background should not be charged to the next. */
const SETTLE_MS = 150;

/**
 * floor, pasted, floor, pasted ... `rounds` times each.
 * @template One, Other
 * @param {number} rounds
 * @param {() => Promise<One>} floor
 * @param {() => Promise<Other>} pasted
 * @returns {Promise<Array<{ floor: One, pasted: Other }>>}
 */
export async function alternate(rounds, floor, pasted) {
  const measured = [];
  for (let round = 0; round < rounds; round += 1) {
    await settle();
    const below = await floor();
    await settle();
    measured.push({ floor: below, pasted: await pasted() });
  }
  return measured;
}

/**
 * Medians of both sides' figures, and of the ratios that each round has of its own.
 * @template Figures
 * @param {Array<{ floor: Figures, pasted: Figures }>} rounds
 * @param {(figures: Figures) => number} figureOf
 */
export function compare(rounds, figureOf) {
  const ratios = rounds.map(({ floor, pasted }) => figureOf(pasted) / figureOf(floor));
  return {
    floor: median(rounds.map(({ floor }) => figureOf(floor))),
    pasted: median(rounds.map(({ pasted }) => figureOf(pasted))),
    ratio: median(ratios),
    ratios,
  };
}

function settle() {
  return new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
}

/** @param {Measured[]} rounds @param {number} bytes @returns {Side} */
export function sideOf(rounds, bytes) {
  return {
    p50Ms: median(rounds.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(rounds.map(({ p99Ms }) => p99Ms)),
    cpuMs: median(rounds.map(({ cpuMs = NaN }) => cpuMs)),
    peakBytes: bytes,
  };
}

/** What went wrong on each side, counted. @param {Array<Record<string, Measured>>} rounds */
export function errorsOf(rounds) {
  /** @type {Record<string, number>} */
  const counted = {};
  for (const round of rounds) {
    for (const [side, { errors }] of Object.entries(round)) {
      for (const [reason, count] of Object.entries(errors)) {
        counted[`${side}: ${reason}`] = (counted[`${side}: ${reason}`] ?? 0) + count;
      }
    }
  }
  return counted;
}
