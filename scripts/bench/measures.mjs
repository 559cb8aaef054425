// The kinds of measurement under load, each a function that makes the `measure` of a row in operations.mjs. The bars
// are there, too; the time to start is start.mjs.

import { alternate, compare, median } from './rounds.mjs';
import { withScene } from './scene.mjs';

/** @typedef {import('./scene.mjs').Bench} Bench */
/** @typedef {import('./scene.mjs').Prepared} Prepared */
/** @typedef {import('./servers.mjs').Server} Server */
/** @typedef {import('./load.mjs').Measured & { cpuMs?: number }} Measured */

/**
 * Medians over the rounds, the figures in the row's unit; NaN for what the operation does not have. `ratio` is the
 * median of `ratios`, one of each round. `errors` of either side make the whole run fail. `cpuMs` is the processor time
 * that the server took for one request, in all its threads; unlike a rate, it is much the same on a busy machine.
 * @typedef {{ p50Ms: number, p99Ms: number, cpuMs: number, peakBytes: number }} Side
 * @typedef {{ floor: number, pasted: number, ratio: number, ratios: number[], floorSide: Side, pastedSide: Side,
 *   errors: Record<string, number>, notes: string[], rounds: unknown[] }} Outcome
 */

const MB = 1e6;

/** From here on the load generator may be what limits the floor, and the ratio flatters pasted. */
const LOAD_IS_LIMIT = 0.95;

/**
 * Requests in a closed loop, against both sides in turn.
 * @param {{ prepare: (port: number) => Promise<Prepared>, connections: number, amount?: number, most?: number }}
 *   operation amount: what one request counts in the row's unit; most: requests in a round
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function throughput({ prepare, connections, amount = 1, most }) {
  return (bench) => withScene(bench, prepare, async ({ pasted, floor, load, plan }) => {
    const { rounds, roundSeconds, warmUpSeconds } = bench.effort;
    const on = (/** @type {Server} */ server, /** @type {number} */ seconds) => async () => {
      const before = server.cpuSeconds();
      const round = await load.run('closedLoop', { port: server.port, plan, connections, seconds, most });
      return { ...round, cpuMs: ((server.cpuSeconds() - before) * 1000) / round.answers };
    };
    const warmUp = await alternate(1, on(floor, warmUpSeconds), on(pasted, warmUpSeconds));
    const measured = await alternate(rounds, on(floor, roundSeconds), on(pasted, roundSeconds));
    const rate = (/** @type {Measured} */ { answers, seconds }) => (answers * amount) / seconds;
    const loadShare = median(measured.map((round) => round.floor.loadShare));
    return {
      ...compare(measured, rate),
      floorSide: sideOf(measured.map((round) => round.floor), floor.peakBytes()),
      pastedSide: sideOf(measured.map((round) => round.pasted), pasted.peakBytes()),
      errors: errorsOf([...warmUp, ...measured]),
      notes: [
        `load generator busy ${percent(loadShare)} of its core beside the floor`,
        ...(loadShare > LOAD_IS_LIMIT ? ['the load generator may limit the floor: the real ratio may be lower'] : []),
      ],
      rounds: measured,
    };
  });
}

/**
 * p99 of a modest, steady load at rest, and while `uploads` of `uploadBytes` run beside it without a pause. The floor
 * is pasted itself at rest.
 * @param {{ prepare: (port: number) => Promise<Prepared>, connections: number, intervalMs: number, uploads: number,
 *   uploadBytes: number }} operation
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function latencyUnderUploads({ prepare, connections, intervalMs, uploads, uploadBytes }) {
  return (bench) => withScene(bench, prepare, async ({ pasted, load, plan }) => {
    const { rounds, roundSeconds, warmUpSeconds } = bench.effort;
    const { port } = pasted;
    const beside = { plan: { kind: 'upload', bytes: uploadBytes }, connections: uploads };
    const on = (/** @type {number} */ seconds, /** @type {object} */ busyWith) => () => (
      load.run('openLoop', { port, plan, connections, intervalMs, seconds, ...busyWith })
    );
    const warmUp = await alternate(1, on(warmUpSeconds, {}), on(warmUpSeconds, { uploads: beside }));
    // Of a few hundred requests a second, a p99 takes longer to settle than a rate does.
    const seconds = 2 * roundSeconds;
    const measured = await alternate(rounds, on(seconds, {}), on(seconds, { uploads: beside }));
    const uploaded = measured.map((round) => round.pasted.uploadsBeside ?? 0);
    return {
      ...compare(measured, ({ p99Ms }) => p99Ms),
      floorSide: sideOf(measured.map((round) => round.floor), NaN),
      pastedSide: sideOf(measured.map((round) => round.pasted), pasted.peakBytes()),
      errors: errorsOf([...warmUp, ...measured]),
      notes: [`floor: itself at rest; ${median(uploaded)} uploads finished in a round`],
      rounds: measured,
    };
  });
}

/**
 * Peak memory with many paced uploads at once, in MB, of a pasted that has done little else.
 * @param {{ prepare: (port: number) => Promise<Prepared>, connections: number }} operation
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function memoryUnderUploads({ prepare, connections }) {
  return (bench) => withScene(bench, prepare, async ({ pasted, floor, load, plan }) => {
    const { crowdBytes: bytes, crowdSeconds: seconds } = bench.effort;
    const on = (/** @type {number} */ port) => load.run('pacedUploads', { port, bytes, connections, seconds });
    const round = { floor: await on(floor.port), pasted: await on(pasted.port) };
    const peaks = { floor: floor.peakBytes(), pasted: pasted.peakBytes() };
    const { answers, togetherSeconds = 0, seconds: allSeconds } = round.pasted;
    return {
      ...compare([peaks], (peak) => peak / MB),
      floorSide: sideOf([round.floor], peaks.floor),
      pastedSide: sideOf([round.pasted], peaks.pasted),
      errors: errorsOf([round]),
      notes: [
        `${answers} of ${connections} stored, ${Math.round(bytes / MB)} MB each`,
        `all at once for ${togetherSeconds.toFixed(1)} s, ${allSeconds.toFixed(1)} s in all`,
      ],
      rounds: [round],
    };
  });
}

/** @param {Measured[]} rounds @param {number} bytes @returns {Side} */
function sideOf(rounds, bytes) {
  return {
    p50Ms: median(rounds.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(rounds.map(({ p99Ms }) => p99Ms)),
    cpuMs: median(rounds.map(({ cpuMs = NaN }) => cpuMs)),
    peakBytes: bytes,
  };
}

/** @param {Array<{ floor: Measured, pasted: Measured }>} rounds */
function errorsOf(rounds) {
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

/** @param {number} share */
function percent(share) {
  return `${Math.round(100 * share)} %`;
}
