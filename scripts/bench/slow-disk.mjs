// What a slower disk does: the same pasted twice, one of them with every sync delayed.

import { alternate, compare, errorsOf, sideOf } from './rounds.mjs';
import { readingStored, startPrepared, writing } from './scene.mjs';
import { startLoad } from './servers.mjs';
import { NotHereError } from './site.mjs';
import { slowSyncEnvironment, slowSyncObstacle } from './slow-sync.mjs';
import { timedLoop } from './throughput.mjs';

/** @typedef {import('./scene.mjs').Bench} Bench */
/** @typedef {import('./servers.mjs').Server} Server */
/** @typedef {import('./servers.mjs').Load} Load */
/** @typedef {import('./rounds.mjs').Outcome} Outcome */
/** @typedef {import('./rounds.mjs').Measured} Measured */

const POPULATION = 1000;

/**
 * The rate of POSTs in a closed loop. The floor is pasted itself on the disk as it is.
 * @param {{ bytes: number, connections: number, delayMs: number }} operation
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function writesOnSlowDisk({ bytes, connections, delayMs }) {
  const preparation = writing('post', bytes);
  const figureOf = (/** @type {Measured} */ { answers, seconds }) => answers / seconds;
  return (bench) => onBothDisks(bench, { preparation, delayMs, figureOf }, (load, server, seconds) => (
    timedLoop(load, server, { plan: server.plan, connections, seconds })
  ));
}

/**
 * p99 of GETs at `intervalMs` beside POSTs at theirs, as many on either disk, so that it is syncing all the time.
 * @param {{ bytes: number, connections: number, intervalMs: number, delayMs: number, postIntervalMs: number,
 *   postConnections: number }} operation
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function readsOnSlowDisk({ bytes, connections, intervalMs, delayMs, postIntervalMs, postConnections }) {
  const preparation = readingStored(POPULATION, bytes);
  const figureOf = (/** @type {Measured} */ { p99Ms }) => p99Ms;
  return async (bench) => {
    await using busyLoad = await startLoad(bench.site, { gentle: true });
    return await onBothDisks(bench, { preparation, delayMs, figureOf }, async (load, { port, plan }, short) => {
      const seconds = 2 * short;
      const posts = { port, plan: { kind: 'post', bytes }, connections: postConnections, intervalMs: postIntervalMs };
      const [gets] = await Promise.all([
        load.run('openLoop', { port, plan, connections, intervalMs, seconds }),
        busyLoad.run('openLoop', { ...posts, seconds }).then(mustHaveAnswered),
      ]);
      return gets;
    });
  };
}

/**
 * @param {Bench} bench
 * @param {{ preparation: import('./scene.mjs').Preparation, delayMs: number, figureOf: (round: Measured) => number }}
 *   operation
 * @param {(load: Load, server: Server & import('./scene.mjs').Prepared, seconds: number) => Promise<Measured>} round
 * @returns {Promise<Outcome>}
 */
async function onBothDisks(bench, { preparation, delayMs, figureOf }, round) {
  const obstacle = slowSyncObstacle();
  if (obstacle !== null) throw new NotHereError(obstacle);
  const { site, effort } = bench;
  const libraryFolder = site.makeFolder();
  await using usual = await startPrepared(bench, preparation);
  await using slow = await startPrepared(bench, preparation, slowSyncEnvironment(libraryFolder, delayMs));
  await using load = await startLoad(site);
  const on = (/** @type {typeof usual} */ server, /** @type {number} */ seconds) => () => round(load, server, seconds);
  const warmUp = await alternate(1, on(usual, effort.warmUpSeconds), on(slow, effort.warmUpSeconds));
  const rounds = await alternate(effort.rounds, on(usual, effort.roundSeconds), on(slow, effort.roundSeconds));
  return {
    ...compare(rounds, figureOf),
    floorSide: sideOf(rounds.map(({ floor }) => floor), usual.peakBytes()),
    pastedSide: sideOf(rounds.map(({ pasted }) => pasted), slow.peakBytes()),
    errors: errorsOf([...warmUp, ...rounds]),
    notes: [],
    rounds,
  };
}

/** @param {Measured} posts */
function mustHaveAnswered({ answers, errors }) {
  const reasons = Object.keys(errors);
  if (answers === 0 || reasons.length > 0) throw new Error(`POSTs beside it failed: ${reasons.join(', ')}`);
}
