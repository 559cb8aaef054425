// Rates and times of requests in a closed or an open loop, in turn on pasted and on what it is compared with: a bare
// server, or pasted with fewer pastes, other answers or another log.

import { startFloor, startLoad } from './processes.mjs';
import { text } from './requests.mjs';
import { capture, startPrepared } from './scene.mjs';
import { compare, median, outcomeOf } from './statistics.mjs';
import {
  PASTE_BYTES, PASTES_OF_AN_OWNER, copyOf, copyWithExpired, countExpired, readThrough, stockOf,
} from './stock.mjs';

/** Above this share of a core, the load generator may be what limits the floor, and the ratio flatters pasted. */
const LOAD_IS_LIMIT = 0.95;

const perSecond = ({ answers, seconds }) => answers / seconds;
export const p99 = ({ p99Ms }) => p99Ms;

/** A closed loop on both sides; one request counts `amount` in the row's unit, a round has at most `most` requests. */
export function throughput(preparation, { connections, amount = 1, most, figureOf = perSecond }) {
  return async (bench) => {
    await using pasted = await startPrepared(bench, preparation);
    await using bare = await startFloor(pasted.floor);
    const floor = { ...bare, plan: { ...pasted.plan, side: 'floor' } };
    const loop = { connections, most, figureOf: (round) => figureOf(round) * amount, notesOf: loadNotes };
    return await compareLoops(bench, floor, pasted, loop);
  };
}

function loadNotes(rounds) {
  const loadShare = median(rounds.map((round) => round.floor.loadShare));
  const warning = loadShare > LOAD_IS_LIMIT ? ', which it may limit: the real ratio may be lower' : '';
  return [`load generator busy ${Math.round(100 * loadShare)} % of its core beside the floor${warning}`];
}

/** The rate of a closed loop on pasted prepared by `other`; the floor is pasted prepared by `usual`. */
export function besideUsual(usual, other, { connections }) {
  return async (bench) => {
    await using floor = await startPrepared(bench, usual);
    await using pasted = await startPrepared(bench, other);
    return await compareLoops(bench, floor, pasted, { connections });
  };
}

/**
 * Time for one request in ms, `connections` of them at a time; the floor is pasted itself with few pastes. Before each
 * round, the whole database is read once, so that both databases are in the system's page cache. After each round,
 * deleted pastes are replaced by as many new ones.
 */
export function amongMany({ request, connections }) {
  return async (bench) => {
    await using few = await startPrepared(bench, { by: 'own', stock: 'few', request });
    await using many = await startPrepared(bench, { by: 'own', stock: 'many', request });
    const refill = { plan: { kind: 'post', bytes: PASTE_BYTES }, connections: 32, seconds: 60 };
    return await compareLoops(bench, few, many, {
      connections, isReadBefore: true,
      refill: request === 'delete' ? refill : undefined,
      figureOf: ({ answers, seconds }) => (seconds * 1000) / answers,
      notesOf: () => [`${many.plan.count} pastes beside ${few.plan.count}; each owner has ${PASTES_OF_AN_OWNER}`],
    });
  };
}

/**
 * p99 of a modest and steady load of GETs while `uploads` of `bytes` run without a pause, and pasted, just started,
 * removes expired pastes. The floor is a bare server that takes as many uploads into the same rows.
 */
export function latencyBesideWork({ connections, intervalMs, uploads, bytes }) {
  return async (bench) => {
    const { effort } = bench;
    const few = await stockOf(bench.main, effort.stocks.few);
    // At a thousand requests a second, a p99 takes longer to settle than a rate does.
    const seconds = 2 * effort.roundSeconds;
    await using load = startLoad();
    await using busyLoad = startLoad({ gentle: true });
    const besideUploads = async (port, plan, stock) => {
      const get = (during) => load.run('openLoop', { port, plan, connections, intervalMs, seconds: during });
      const loop = { port, plan: { kind: 'upload', bytes }, connections: uploads };
      const uploading = busyLoad.run('closedLoop', { ...loop, seconds: effort.warmUpSeconds + seconds });
      await get(effort.warmUpSeconds);
      const expiredBefore = countExpired(stock);
      const measured = await get(seconds);
      const removed = expiredBefore - countExpired(stock);
      return { ...measured, removed, uploads: await uploading };
    };
    const rounds = [];
    while (rounds.length < effort.rounds) {
      await using stock = await copyWithExpired(few, effort.expired);
      await using pasted = await startPrepared(bench, { by: 'draw', stock, suffix: '/raw', draw: 'zipf' });
      const measured = await besideUploads(pasted.port, pasted.plan, stock);
      const stored = await capture(pasted.port, 'POST', '/', text(bytes));
      // Ended now, so that pastes it has still to remove do not disturb the floor.
      await pasted[Symbol.asyncDispose]();
      await using bare = await startFloor({ ...pasted.floor, stored, stores: copyOf(stock.file) });
      const floor = await besideUploads(bare.port, pasted.plan, stock);
      rounds.push({ floor, pasted: measured, uploads: measured.uploads, 'uploads to the floor': floor.uploads });
    }
    const stored = (side) => median(rounds.map((round) => round[side].uploads.answers));
    return outcomeOf(rounds, p99, () => [
      `${stored('pasted')} uploads finished in a round, ${stored('floor')} beside the floor`,
      `${median(rounds.map(({ pasted }) => pasted.removed))} of ${effort.expired} expired pastes removed in one`,
    ]);
  };
}

/**
 * A closed loop on both sides, with the processor time that the server took for a request. Pastes that are asked for
 * once only are shared out over the rounds, half of them in all. `refill` is a load that makes up for each round.
 */
async function compareLoops({ effort }, floor, pasted, { figureOf = perSecond, notesOf, ...options }) {
  const { isReadBefore, refill, ...loop } = options;
  await using load = startLoad();
  const once = floor.plan.draw === 'eachOnce' ? Math.floor(floor.plan.count / (2 * (effort.rounds + 1))) : Infinity;
  const most = Math.min(loop.most ?? Infinity, once);
  const on = ({ port, plan, cpuSeconds, database }) => async (seconds) => {
    if (isReadBefore) readThrough(database);
    const before = cpuSeconds();
    const round = await load.run('closedLoop', { ...loop, port, plan, seconds, most });
    const cpuMs = ((cpuSeconds() - before) * 1000) / round.answers;
    if (refill !== undefined) await load.run('closedLoop', { ...refill, port, most: round.answers });
    return { ...round, cpuMs };
  };
  return await compare(effort, [floor, pasted].map(on), figureOf, notesOf);
}
