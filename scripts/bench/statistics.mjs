// The arithmetic of a benchmark: medians over rounds in turn, what must hold of them, and draws that are the same in
// every run.

import { setTimeout as sleep } from 'node:timers/promises';

/** Of at least one value. */
export function median(values) {
  const sorted = values.toSorted((one, other) => one - other);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

/** A pause, so that work that one round leaves in the background is not charged to the next. */
const SETTLE_MS = 150;

/**
 * Measures floor, pasted, floor, pasted ... `rounds` times each: then drift of the machine (clock rate, neighbours, a
 * filling disk) affects both sides alike.
 */
export async function alternate(rounds, floor, pasted) {
  const measured = [];
  for (let round = 0; round < rounds; round += 1) {
    const sides = {};
    for (const [side, measure] of Object.entries({ floor, pasted })) {
      await sleep(SETTLE_MS);
      sides[side] = await measure();
    }
    measured.push(sides);
  }
  return measured;
}

/** The outcome of alternating rounds of `roundSeconds`, after one warm-up round, whose errors count too. */
export async function compare({ rounds, roundSeconds, warmUpSeconds }, sides, figureOf, notesOf) {
  const during = (seconds) => sides.map((measure) => () => measure(seconds));
  const warmUp = await alternate(1, ...during(warmUpSeconds));
  const measured = await alternate(rounds, ...during(roundSeconds));
  return { ...outcomeOf(measured, figureOf, notesOf), errors: errorsOf([...warmUp, ...measured]) };
}

/**
 * What is reported of an operation: the medians of both sides' figures, in the row's unit, and of the ratios of the
 * rounds; NaN for a figure that the operation does not have. `errors` of any side make the whole run fail. `cpuMs` is
 * the processor time that a server took for one request, in all its threads; unlike a rate, it is much the same on a
 * busy machine.
 */
export function outcomeOf(rounds, figureOf, notesOf = () => []) {
  const medianOf = (side, of) => median(rounds.map((round) => of(round[side])));
  const ratios = rounds.map(({ floor, pasted }) => figureOf(pasted) / figureOf(floor));
  const cpuOf = ({ cpuMs = NaN }) => cpuMs;
  return {
    floor: medianOf('floor', figureOf),
    pasted: medianOf('pasted', figureOf),
    ratio: median(ratios),
    ratios: ratios.filter((ratio) => !Number.isNaN(ratio)),
    cpuMs: { floor: medianOf('floor', cpuOf), pasted: medianOf('pasted', cpuOf) },
    errors: errorsOf(rounds), notes: notesOf(rounds), rounds,
  };
}

/** What went wrong on each side, counted. */
function errorsOf(rounds) {
  const counted = {};
  for (const [side, { errors = {} }] of rounds.flatMap((round) => Object.entries(round))) {
    for (const [reason, count] of Object.entries(errors)) {
      counted[`${side}: ${reason}`] = (counted[`${side}: ${reason}`] ?? 0) + count;
    }
  }
  return counted;
}

/**
 * Whether a bar is met. `of` is `ratio` (to the floor) or `pasted` (the figure itself); it must be at least or at most
 * the bound. With `timesFloor`, `atMost` is added to so many times the floor's figure. NaN never meets a bar.
 */
export function isMet({ of, atLeast, atMost, timesFloor }, figures) {
  const figure = figures[of];
  if (atLeast !== undefined) return figure >= atLeast;
  return figure <= atMost + (timesFloor === undefined ? 0 : timesFloor * figures.floor);
}

/** Such as `>= 0.8`, `<= 80 MB`, `<= floor + 120 ms`. */
export function barText({ of, atLeast, atMost, timesFloor }, unit) {
  const [relation, bound] = atLeast === undefined ? ['<=', atMost] : ['>=', atLeast];
  if (of === 'ratio') return `${relation} ${bound.toFixed(2)}`;
  const times = timesFloor === 1 ? '' : `${timesFloor} x `;
  const above = timesFloor === undefined ? '' : `${times}floor + `;
  return `${relation} ${above}${bound} ${unit.split(' ').at(-1)}`;
}

/** Pseudorandom numbers of [0, 1) by mulberry32, whose 32 bits of state are enough to pick pastes. */
export function seededRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** 0 to `count` - 1, each once, where every order is equally likely (Fisher and Yates). */
export function permutation(count, random) {
  const order = Uint32Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [order[last], order[other]] = [order[other], order[last]];
  }
  return order;
}

/**
 * Zipf's law: the n-th most popular paste is asked for 1/n times as often as the first. A permutation decides which
 * pastes are popular, so that they are not neighbours in the database.
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
      if (cumulative[middle] > wanted) high = middle;
      else low = middle + 1;
    }
    return byPopularity[low];
  };
}

/** Each index once, in random order; one more draw throws, since it would ask for a paste a second time. */
export function eachOnce(count, random) {
  const order = permutation(count, random);
  let drawn = 0;
  return () => {
    if (drawn === count) throw new RangeError(`all of ${count} pastes were drawn`);
    return order[drawn++];
  };
}

/** Each draw gives every index with the same chance. */
export function uniform(count, random) {
  return () => Math.floor(random() * count);
}
