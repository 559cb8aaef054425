// How long the server takes to start, as the row of operations.mjs measures it: from nothing to the first answer,
// with no load.

import { fileURLToPath } from 'node:url';
import { openConnection } from './connection.mjs';
import { NO_LOAD, alternate, compare, median } from './rounds.mjs';
import { freePort, pastedEnvironment } from './servers.mjs';
import { peakBytes } from './site.mjs';

/** @typedef {import('./scene.mjs').Bench} Bench */
/** @typedef {import('./rounds.mjs').Outcome} Outcome */

const FLOOR = fileURLToPath(new URL('./first-answer.mjs', import.meta.url));
const POLL_MS = 1;
const LONGEST_START_MS = 15_000;

/**
 * Time in ms from starting the process to its first 200 on /health, with the stock of many pastes. The floor is a bare
 * node:http server's.
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function startTime() {
  return async (bench) => {
    const { site, stocks, main, nodeArguments, effort } = bench;
    const { folder } = await stocks.of(effort.stocks.many);
    const floor = () => firstAnswer(site, (port) => [FLOOR, String(port)], {});
    const pasted = () => firstAnswer(site, () => [...nodeArguments, main], { folder });
    await alternate(1, floor, pasted);
    const measured = await alternate(effort.starts, floor, pasted);
    return {
      ...compare(measured, ({ ms }) => ms),
      floorSide: { ...NO_LOAD, peakBytes: median(measured.map((round) => round.floor.bytes)) },
      pastedSide: { ...NO_LOAD, peakBytes: median(measured.map((round) => round.pasted.bytes)) },
      errors: {},
      notes: [],
      rounds: measured,
    };
  };
}

/**
 * @param {import('./site.mjs').Site} site
 * @param {(port: number) => string[]} argumentsFor
 * @param {{ folder?: string }} database the folder of pasted's
 */
async function firstAnswer(site, argumentsFor, { folder }) {
  const port = await freePort();
  const begun = performance.now();
  const child = site.startNode(argumentsFor(port), {
    env: folder === undefined ? { PATH: process.env['PATH'] } : pastedEnvironment(folder, port),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  try {
    while (!(await isHealthy(port))) {
      if (child.exitCode !== null) throw new Error(`a server ended with code ${child.exitCode}`);
      if (performance.now() - begun > LONGEST_START_MS) throw new Error(`not healthy within ${LONGEST_START_MS} ms`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    return { ms: performance.now() - begun, bytes: peakBytes(child) };
  } finally {
    await site.stop(child);
  }
}

/** @param {number} port @returns {Promise<boolean>} */
async function isHealthy(port) {
  const connection = await openConnection(port).catch(() => null);
  if (connection === null) return false;
  const status = await new Promise((resolve) => {
    connection.onAnswer = resolve;
    connection.onBroken = () => resolve(0);
    connection.send(Buffer.from('GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'));
  });
  connection.close();
  return status === 200;
}
