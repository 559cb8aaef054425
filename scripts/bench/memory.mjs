// How much memory pasted has: with nothing to do, after many requests, and with many uploads at once.

import { setTimeout as sleep } from 'node:timers/promises';
import { NO_LOAD, compare, errorsOf, median, sideOf } from './rounds.mjs';
import { asking, readingStock, startPrepared, withScene, writing } from './scene.mjs';
import { startLoad } from './servers.mjs';

/** @typedef {import('./scene.mjs').Bench} Bench */
/** @typedef {import('./rounds.mjs').Outcome} Outcome */
/** @typedef {import('./rounds.mjs').Measured} Measured */

const MB = 1e6;

const LOADS = 10;
const ONE_POST_OF = 10;
const CONNECTIONS = 32;
const LONGEST_LOAD_SECONDS = 300;

/**
 * Resident memory in MB, `seconds` after the start and one request, of pasted and of the bare server.
 * @param {{ seconds: number }} operation
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function memoryAtRest({ seconds }) {
  return async (bench) => {
    const rounds = await Promise.all(Array.from({ length: bench.effort.rounds }, () => (
      withScene(bench, asking('/health'), async ({ floor, pasted, load, plan }) => {
        const asked = { port: floor.port, plan, connections: 1, seconds: 60, most: 1 };
        const { errors } = await load.run('closedLoop', asked);
        await sleep(seconds * 1000);
        return { floor: floor.residentBytes() / MB, pasted: pasted.residentBytes() / MB, errors };
      })
    )));
    return {
      ...compare(rounds, (megabytes) => megabytes),
      floorSide: NO_LOAD,
      pastedSide: NO_LOAD,
      errors: Object.assign({}, ...rounds.map(({ errors }) => errors)),
      notes: [`${seconds} s after the start and one request`],
      rounds,
    };
  };
}

/**
 * Resident memory in MB after many requests, GETs with a POST among each ONE_POST_OF; the floor is what it was after
 * the first of LOADS equal parts. One run, since it takes longer than the rounds of any other operation.
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function memoryAfterRequests() {
  return async (bench) => {
    const { site, effort } = bench;
    await using pasted = await startPrepared(bench, readingStock('some', '/raw', 'zipf'));
    await using load = await startLoad(site);
    const plan = { kind: 'mix', usual: pasted.plan, rare: { kind: 'post', bytes: 1024 }, outOf: ONE_POST_OF };
    const most = effort.requests / LOADS;
    /** @type {Array<Measured & { bytes: number }>} */
    const loads = [];
    for (let part = 0; part < LOADS; part += 1) {
      const options = { port: pasted.port, plan, connections: CONNECTIONS, seconds: LONGEST_LOAD_SECONDS, most };
      const measured = await load.run('closedLoop', options);
      if (measured.answers < most) throw new Error(`${measured.answers} of ${most} requests were answered well`);
      loads.push({ ...measured, bytes: pasted.residentBytes() });
    }
    const [first, last] = [loads[0], loads.at(-1)].map((measured) => ({ bytes: measured?.bytes ?? NaN }));
    return {
      ...compare([{ floor: first, pasted: last }], (measured) => (measured?.bytes ?? NaN) / MB),
      floorSide: NO_LOAD,
      pastedSide: sideOf(loads, pasted.peakBytes()),
      errors: {},
      notes: [`after each ${most}: ${loads.map(({ bytes }) => Math.round(bytes / MB)).join(', ')} MB; one run`],
      rounds: loads,
    };
  };
}

/**
 * Peak memory with many paced uploads at once, in MB, of a pasted that has done nothing else.
 * @param {{ connections: number }} operation
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function memoryUnderUploads({ connections }) {
  return async (bench) => {
    const { crowdBytes: bytes, crowdSeconds: seconds, rounds: count } = bench.effort;
    const rounds = [];
    for (let round = 0; round < count; round += 1) {
      await using pasted = await startPrepared(bench, writing('upload', 1024));
      await using load = await startLoad(bench.site);
      const uploaded = await load.run('pacedUploads', { port: pasted.port, bytes, connections, seconds });
      rounds.push({ ...uploaded, bytes: pasted.peakBytes() });
    }
    const together = median(rounds.map(({ togetherSeconds = 0 }) => togetherSeconds));
    return {
      floor: NaN,
      pasted: median(rounds.map((round) => round.bytes / MB)),
      ratio: NaN,
      ratios: [],
      floorSide: NO_LOAD,
      pastedSide: sideOf(rounds, Math.max(...rounds.map((round) => round.bytes))),
      errors: errorsOf(rounds.map((pasted) => ({ pasted }))),
      notes: [
        `${median(rounds.map(({ answers }) => answers))} of ${connections} stored, ${Math.round(bytes / MB)} MB each`,
        `all at once for ${together.toFixed(1)} s, ${median(rounds.map((round) => round.seconds)).toFixed(1)} s in all`,
      ],
      rounds,
    };
  };
}
