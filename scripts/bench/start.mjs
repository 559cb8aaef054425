// How long the server takes to start, as the row of operations.mjs measures it: from nothing to the first answer,
// with no load.

import { openConnection } from './connection.mjs';
import { alternate, compare, median } from './rounds.mjs';
import { freePort, pastedEnvironment } from './servers.mjs';
import { peakBytes } from './site.mjs';

/** @typedef {import('./scene.mjs').Bench} Bench */
/** @typedef {import('./measures.mjs').Outcome} Outcome */

const POLL_MS = 1;
const LONGEST_START_MS = 15_000;

/**
 * Time in ms from starting the process to its first 200 on /health, each time with a new database. The floor is
 * Node's own start and end with nothing to run.
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function startTime() {
  return async (bench) => {
    const floor = () => emptyStart(bench);
    const pasted = () => firstAnswer(bench);
    await alternate(1, floor, pasted);
    const measured = await alternate(bench.effort.starts, floor, pasted);
    return {
      ...compare(measured, ({ ms }) => ms),
      floorSide: noLoad(NaN),
      pastedSide: noLoad(median(measured.map((round) => round.pasted.bytes))),
      errors: {},
      notes: ['floor: node -e 0, start to exit'],
      rounds: measured,
    };
  };
}

/** @param {number} peakBytes @returns {import('./measures.mjs').Side} */
function noLoad(peakBytes) {
  return { p50Ms: NaN, p99Ms: NaN, cpuMs: NaN, peakBytes };
}

/** @param {Bench} bench */
async function emptyStart({ site }) {
  const begun = performance.now();
  const child = site.startNode(['-e', '0'], { stdio: 'ignore' });
  await new Promise((resolve) => child.once('exit', resolve));
  return { ms: performance.now() - begun };
}

/** @param {Bench} bench */
async function firstAnswer({ site, main, nodeArguments }) {
  const folder = site.makeFolder();
  const port = await freePort();
  const begun = performance.now();
  const child = site.startNode([...nodeArguments, main], {
    env: pastedEnvironment(folder, port),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  try {
    while (!(await isHealthy(port))) {
      if (child.exitCode !== null) throw new Error(`pasted ended with code ${child.exitCode}`);
      if (performance.now() - begun > LONGEST_START_MS) throw new Error(`not healthy within ${LONGEST_START_MS} ms`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    return { ms: performance.now() - begun, bytes: peakBytes(child) };
  } finally {
    await site.stop(child);
    site.removeFolder(folder);
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
