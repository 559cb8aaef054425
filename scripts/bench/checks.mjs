// What one check of a proof-of-work and one of a rate limit cost, in a process of its own that calls the built modules:
// check-times.mjs.

import path from 'node:path';
import { NO_LOAD, median } from './rounds.mjs';
import { startWorker } from './servers.mjs';

/** @typedef {import('./scene.mjs').Bench} Bench */
/** @typedef {import('./rounds.mjs').Outcome} Outcome */

/** @param {'work' | 'rate'} check @returns {(bench: Bench) => Promise<Outcome>} time for one, in microseconds */
export function checkTime(check) {
  return async ({ site, stocks, main, effort }) => {
    const { pristine: database } = await stocks.of(effort.stocks.few);
    const order = { check, dist: path.dirname(main), database, seconds: effort.roundSeconds / 2 };
    await using worker = await startWorker(site, 'check-times.mjs');
    const rounds = [];
    // The first is for the compiler to warm up.
    for (let round = 0; round < effort.rounds + 1; round += 1) rounds.push(await worker.run(order));
    const [, ...measured] = rounds;
    return {
      floor: NaN,
      pasted: median(measured.map(({ microseconds }) => microseconds)),
      ratio: NaN,
      ratios: [],
      floorSide: NO_LOAD,
      pastedSide: NO_LOAD,
      errors: {},
      notes: measured.slice(0, 1).map(({ note }) => note),
      rounds: measured,
    };
  };
}
