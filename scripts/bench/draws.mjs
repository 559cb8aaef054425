// Which of many pastes a request is about, drawn so that every run draws alike. Pure.

/**
 * Numbers of [0, 1) that only look random: mulberry32, whose 32 bits of state are enough to pick pastes by.
 * @param {number} seed
 * @returns {() => number}
 */
export function seededRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * 0 to `count` - 1, each once, in an order in which every other is as likely (Fisher and Yates).
 * @param {number} count
 * @param {() => number} random
 */
export function permutation(count, random) {
  const order = Uint32Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    const kept = /** @type {number} */ (order[last]);
    order[last] = /** @type {number} */ (order[other]);
    order[other] = kept;
  }
  return order;
}

/**
 * Zipf's law: what is the n-th in popularity is asked for 1/n times as often as the first. Which these are is a
 * permutation's business, so that popular pastes are not neighbours in the database.
 * @param {number} count
 * @param {() => number} random
 * @returns {() => number} an index below `count`
 */
export function zipf(count, random) {
  const byPopularity = permutation(count, random);
  const cumulative = new Float64Array(count);
  let sum = 0;
  for (let rank = 0; rank < count; rank += 1) cumulative[rank] = sum += 1 / (rank + 1);
  return () => {
    const wanted = random() * sum;
    let low = 0;
    let high = count - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (/** @type {number} */ (cumulative[middle]) > wanted) high = middle;
      else low = middle + 1;
    }
    return /** @type {number} */ (byPopularity[low]);
  };
}

/**
 * Each index once, uniformly; one more is an error, since then something would be asked for a second time.
 * @param {number} count
 * @param {() => number} random
 * @returns {() => number}
 */
export function eachOnce(count, random) {
  const order = permutation(count, random);
  let drawn = 0;
  return () => {
    const index = order[drawn];
    if (index === undefined) throw new RangeError(`all of ${count} pastes were drawn`);
    drawn += 1;
    return index;
  };
}

/** Each index as likely as any other, each time. @param {number} count @param {() => number} random */
export function uniform(count, random) {
  return () => Math.floor(random() * count);
}

/** By name, as plans have them. */
export const DRAWS = { zipf, uniform, eachOnce };
