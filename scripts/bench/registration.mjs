// What registering costs beside the cryptography that it can't do without, and what it does meanwhile to others: the
// rows of operations.mjs about POST /register.

import http from 'node:http';
import { NO_LOAD, alternate, compare, median } from './rounds.mjs';
import { freePort, startLoad, startPasted, startWorker } from './servers.mjs';

/** @typedef {import('./scene.mjs').Bench} Bench */
/** @typedef {import('./rounds.mjs').Outcome} Outcome */
/** @typedef {{ answers: number, seconds: number }} Work */

const MS = 1000;

/**
 * Registrations in a closed loop against the bare operations: their rate, or the event-loop delay (p99, in ms) of the
 * server beside its own at rest.
 * @param {{ connections: number, figure: 'rate' | 'delay' }} operation
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function registering({ connections, figure }) {
  return async ({ site, main, nodeArguments, effort }) => {
    const metricsPort = await freePort();
    await using pasted = await startPasted(site, main, nodeArguments, {
      settings: {
        SERVICE_REGISTER_POW: '0',
        SERVICE_PKI_CA_PASSWORD: 'only for measuring',
        SERVICE_METRICS_LISTEN: `127.0.0.1:${metricsPort}`,
      },
    });
    await using floor = await startWorker(site, 'registration-floor.mjs');
    await using load = await startLoad(site);
    const onFloor = (/** @type {number} */ seconds) => async () => {
      await eventLoopDelayMs(metricsPort);
      const work = await floor.run({ atOnce: connections, seconds });
      return { ...work, delayMs: await eventLoopDelayMs(metricsPort), errors: {} };
    };
    const onPasted = (/** @type {number} */ seconds) => async () => {
      await eventLoopDelayMs(metricsPort);
      const loop = { port: pasted.port, plan: { kind: 'register' }, connections, seconds };
      const work = await load.run('closedLoop', loop);
      return { ...work, delayMs: await eventLoopDelayMs(metricsPort) };
    };
    await alternate(1, onFloor(effort.warmUpSeconds), onPasted(effort.warmUpSeconds));
    const rounds = await alternate(effort.rounds, onFloor(effort.roundSeconds), onPasted(effort.roundSeconds));
    const figureOf = { rate: (/** @type {Work} */ { answers, seconds }) => answers / seconds, delay: delayOf }[figure];
    const ofPasted = rounds.map((round) => round.pasted);
    return {
      ...compare(rounds, figureOf),
      floorSide: NO_LOAD,
      pastedSide: {
        p50Ms: median(ofPasted.map(({ p50Ms }) => p50Ms)),
        p99Ms: median(ofPasted.map(({ p99Ms }) => p99Ms)),
        cpuMs: NaN,
        peakBytes: pasted.peakBytes(),
      },
      errors: Object.assign({}, ...ofPasted.map(({ errors }) => errors)),
      notes: [],
      rounds,
    };
  };
}

/** @param {{ delayMs: number }} round */
function delayOf({ delayMs }) {
  return delayMs;
}

/** The p99 since the last call, since reading starts the server's histogram anew. @param {number} port */
function eventLoopDelayMs(port) {
  return new Promise((/** @type {(ms: number) => void} */ resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, path: '/metrics' }, async (response) => {
      const text = (await response.setEncoding('utf8').toArray()).join('');
      const p99 = /^pasted_event_loop_delay_seconds\{quantile="0\.99"\} (\S+)$/m.exec(text)?.[1];
      if (p99 === undefined) reject(new Error(`no event-loop delay among the metrics (status ${response.statusCode})`));
      else resolve(Number(p99) * MS);
    });
    request.on('error', reject);
  });
}
