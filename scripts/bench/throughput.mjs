// Rates: as many requests as a closed loop of connections makes, on pasted and on a floor in turn.

import { alternate, compare, errorsOf, median, sideOf } from './rounds.mjs';
import { withScene } from './scene.mjs';

/** @typedef {import('./scene.mjs').Bench} Bench */
/** @typedef {import('./servers.mjs').Server} Server */
/** @typedef {import('./rounds.mjs').Outcome} Outcome */
/** @typedef {import('./rounds.mjs').Measured} Measured */

/** From here on the load generator may be what limits the floor, and the ratio flatters pasted. */
const LOAD_IS_LIMIT = 0.95;

/**
 * Requests in a closed loop against both sides in turn.
 * @param {{ preparation: import('./scene.mjs').Preparation, connections: number, amount?: number, most?: number }}
 *   operation amount: what one request counts in the row's unit; most: requests in a round
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function throughput({ preparation, connections, amount = 1, most = Infinity }) {
  return (bench) => withScene(bench, preparation, async ({ pasted, floor, load, plan }) => {
    const { rounds, roundSeconds, warmUpSeconds } = bench.effort;
    const once = plan.kind === 'drawn' && plan.draw === 'eachOnce' ? Math.floor(plan.count / (rounds + 1)) : Infinity;
    const on = (/** @type {'floor' | 'pasted'} */ side, /** @type {number} */ seconds) => () => (
      timedLoop(load, { floor, pasted }[side], {
        plan: { ...plan, side }, connections, seconds, most: Math.min(most, once),
      })
    );
    const warmUp = await alternate(1, on('floor', warmUpSeconds), on('pasted', warmUpSeconds));
    const measured = await alternate(rounds, on('floor', roundSeconds), on('pasted', roundSeconds));
    const loadShare = median(measured.map((round) => round.floor.loadShare));
    return {
      ...compare(measured, ({ answers, seconds }) => (answers * amount) / seconds),
      floorSide: sideOf(measured.map((round) => round.floor), floor.peakBytes()),
      pastedSide: sideOf(measured.map((round) => round.pasted), pasted.peakBytes()),
      errors: errorsOf([...warmUp, ...measured]),
      notes: [
        `load generator busy ${Math.round(100 * loadShare)} % of its core beside the floor`,
        ...(loadShare > LOAD_IS_LIMIT ? ['it may limit the floor: the real ratio may be lower'] : []),
      ],
      rounds: measured,
    };
  });
}

/**
 * One closed loop, with the processor time that the server took for a request.
 * @param {import('./servers.mjs').Load} load
 * @param {Server} server
 * @param {object} closedLoop of load.mjs, without the port
 * @returns {Promise<Measured>}
 */
export async function timedLoop(load, server, closedLoop) {
  const before = server.cpuSeconds();
  const round = await load.run('closedLoop', { port: server.port, ...closedLoop });
  return { ...round, cpuMs: ((server.cpuSeconds() - before) * 1000) / round.answers };
}
