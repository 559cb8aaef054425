// Alternating rounds and their medians: what drifts on a machine (clock rate, neighbours, a filling disk) then falls
// on both sides alike. How one round is measured is the caller's.

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
