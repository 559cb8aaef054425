// How long a modest and steady load of GETs waits while pasted is busy with something else.

import { setTimeout as sleep } from 'node:timers/promises';
import { compare, errorsOf, median, sideOf } from './rounds.mjs';
import { startLoad, startPasted } from './servers.mjs';
import { copyWithExpired, countExpired } from './stock.mjs';
import { ID } from './requests.mjs';

/** @typedef {import('./scene.mjs').Bench} Bench */
/** @typedef {import('./rounds.mjs').Outcome} Outcome */
/** @typedef {import('./stock.mjs').Stock} Stock */

const LONGEST_CLEANUP_SECONDS = 60;

/**
 * p99 at rest, and while `uploads` of `uploadBytes` run without a pause and a service just started removes what has
 * expired meanwhile. The floor is the same process at rest, when that is through.
 * @param {{ connections: number, intervalMs: number, uploads: number, uploadBytes: number }} operation
 * @returns {(bench: Bench) => Promise<Outcome>}
 */
export function latencyBesideWork(operation) {
  return async (bench) => {
    const { effort, stocks } = bench;
    const stock = await stocks.of(effort.stocks.few);
    const rounds = [];
    for (let round = 0; round < effort.rounds; round += 1) rounds.push(await measureRound(bench, operation, stock));
    return {
      ...compare(rounds, ({ p99Ms }) => p99Ms),
      floorSide: sideOf(rounds.map(({ floor }) => floor), NaN),
      pastedSide: sideOf(rounds.map(({ pasted }) => pasted), median(rounds.map(({ peakBytes }) => peakBytes))),
      errors: errorsOf(rounds.map(({ floor, pasted, beside }) => ({ floor, pasted, uploads: beside }))),
      notes: [
        `${median(rounds.map(({ beside }) => beside.answers))} uploads finished in a round`,
        `${median(rounds.map(({ removed }) => removed))} of ${effort.expired} expired pastes removed in one`,
      ],
      rounds,
    };
  };
}

/**
 * @param {Bench} bench
 * @param {Parameters<typeof latencyBesideWork>[0]} operation
 * @param {Stock} stock
 */
async function measureRound({ site, main, nodeArguments, effort }, operation, stock) {
  const { folder, file } = await copyWithExpired(site, main, stock, effort.expired);
  try {
    await using load = await startLoad(site);
    await using busyLoad = await startLoad(site, { gentle: true });
    await using pasted = await startPasted(site, main, nodeArguments, { folder });
    const { connections, intervalMs, uploads, uploadBytes } = operation;
    const template = `GET /${ID}/raw HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
    const plan = { kind: 'drawn', template, ids: stock.ids, count: stock.count, draw: 'zipf' };
    const get = (/** @type {number} */ seconds) => (
      load.run('openLoop', { port: pasted.port, plan, connections, intervalMs, seconds })
    );
    // Of a thousand requests a second, a p99 takes longer to settle than a rate does.
    const seconds = 2 * effort.roundSeconds;
    const uploading = busyLoad.run('closedLoop', {
      port: pasted.port,
      plan: { kind: 'upload', bytes: uploadBytes },
      connections: uploads,
      seconds: effort.warmUpSeconds + seconds,
    });
    await get(effort.warmUpSeconds);
    const expiredBefore = countExpired(file);
    const beside = await get(seconds);
    const removed = expiredBefore - countExpired(file);
    const uploaded = await uploading;
    await noneExpired(file);
    return { floor: await get(seconds), pasted: beside, beside: uploaded, removed, peakBytes: pasted.peakBytes() };
  } finally {
    site.removeFolder(folder);
  }
}

/** @param {string} file */
async function noneExpired(file) {
  const deadline = performance.now() + LONGEST_CLEANUP_SECONDS * 1000;
  while (countExpired(file) > 0) {
    if (performance.now() > deadline) throw new Error(`expired pastes were there for ${LONGEST_CLEANUP_SECONDS} s`);
    await sleep(200);
  }
}
