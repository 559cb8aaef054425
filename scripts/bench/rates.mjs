// Rates and times of requests in a closed or an open loop, on pasted and on something beside it in turn: a bare server,
// pasted with fewer pastes, or pasted on a faster disk.

import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NotHereError, makeFolder, startFloor, startLoad } from './processes.mjs';
import { startPrepared } from './scene.mjs';
import { compare, median, outcomeOf } from './statistics.mjs';
import { PASTE_BYTES, PASTES_OF_AN_OWNER, copyWithExpired, countExpired, stockOf } from './stock.mjs';

/** From here on the load generator may be what limits the floor, and the ratio flatters pasted. */
const LOAD_IS_LIMIT = 0.95;

const LONGEST_CLEANUP_MS = 60_000;

const perSecond = ({ answers, seconds }) => answers / seconds;
const p99 = ({ p99Ms }) => p99Ms;

/** A closed loop against both sides; `amount` is what one request counts in the row's unit, `most` bounds a round. */
export function throughput(preparation, { connections, amount = 1, most }) {
  return async (bench) => {
    await using pasted = await startPrepared(bench, preparation);
    await using bare = await startFloor(pasted.answer);
    const floor = { ...bare, plan: { ...pasted.plan, side: 'floor' } };
    const figureOf = (round) => perSecond(round) * amount;
    return await compareLoops(bench, floor, pasted, { connections, most, figureOf, notesOf: loadNotes });
  };
}

function loadNotes(rounds) {
  const loadShare = median(rounds.map((round) => round.floor.loadShare));
  const notes = [`load generator busy ${Math.round(100 * loadShare)} % of its core beside the floor`];
  if (loadShare > LOAD_IS_LIMIT) notes.push('it may limit the floor: the real ratio may be lower');
  return notes;
}

/** The rate of pages in a closed loop; the floor is that of the content of the same pastes, from the same server. */
export function pagesBesideContent({ bytes, count, connections }) {
  return async (bench) => {
    await using content = await startPrepared(bench, { by: 'store', count, bytes });
    return await compareLoops(bench, content, { ...content, plan: content.pages }, { connections });
  };
}

/**
 * Time for one request in ms, `connections` of them at a time; the floor is pasted itself with few pastes. Deleted
 * pastes are made up for by as many new ones after each round.
 */
export function amongMany({ request, connections }) {
  return async (bench) => {
    await using few = await startPrepared(bench, { by: 'own', stock: 'few', request });
    await using many = await startPrepared(bench, { by: 'own', stock: 'many', request });
    const refill = { plan: { kind: 'post', bytes: PASTE_BYTES }, connections: 32, seconds: 60 };
    return await compareLoops(bench, few, many, {
      connections,
      refill: request === 'delete' ? refill : undefined,
      figureOf: ({ answers, seconds }) => (seconds * 1000) / answers,
      notesOf: () => [`${many.plan.count} pastes beside ${few.plan.count}; each owner has ${PASTES_OF_AN_OWNER}`],
    });
  };
}

/** The rate of POSTs in a closed loop, each sync delayed; the floor is pasted itself on the disk as it is. */
export function writesOnSlowDisk({ bytes, connections, delayMs }) {
  return (bench) => onBothDisks(bench, { by: 'send', kind: 'post', bytes }, delayMs, (usual, slow) => (
    compareLoops(bench, usual, slow, { connections })
  ));
}

/** p99 of GETs at `intervalMs` beside POSTs at theirs, as many on either disk, so that it is syncing all the time. */
export function readsOnSlowDisk({ bytes, count, connections, intervalMs, delayMs, posts }) {
  return (bench) => onBothDisks(bench, { by: 'store', count, bytes }, delayMs, async (usual, slow) => {
    await using load = startLoad();
    await using busyLoad = startLoad({ gentle: true });
    const on = ({ port, plan }) => async (short) => {
      const seconds = 2 * short;
      const [gets, stored] = await Promise.all([
        load.run('openLoop', { port, plan, connections, intervalMs, seconds }),
        busyLoad.run('openLoop', { port, plan: { kind: 'post', bytes }, ...posts, seconds }),
      ]);
      const reasons = Object.keys(stored.errors);
      if (stored.answers === 0 || reasons.length > 0) throw new Error(`POSTs beside it failed: ${reasons.join(', ')}`);
      return gets;
    };
    return await compare(bench.effort, on(usual), on(slow), p99);
  });
}

/** The second pasted is one whose every fsync and fdatasync takes so much longer: by slow-sync.c, preloaded. */
async function onBothDisks(bench, preparation, delayMs, measure) {
  if (process.platform !== 'linux') throw new NotHereError('syncs are delayed on Linux only');
  const library = path.join(makeFolder(), 'slow-sync.so');
  const source = path.join(import.meta.dirname, 'slow-sync.c');
  const flags = ['-shared', '-fPIC', '-O1', '-Wall', '-Werror', '-o', library, source, '-ldl'];
  const { error, status, stderr } = spawnSync('cc', flags, { encoding: 'utf8' });
  if (error !== undefined) throw new NotHereError('there is no C compiler (cc)');
  if (status !== 0) throw new Error(`cc ended with ${status}: ${stderr}`);
  await using usual = await startPrepared(bench, preparation);
  await using slow = await startPrepared(bench, preparation, { LD_PRELOAD: library, SLOW_SYNC_MS: String(delayMs) });
  return await measure(usual, slow);
}

/**
 * p99 of a modest and steady load of GETs at rest, and while `uploads` of `bytes` run without a pause and a
 * service just started removes what has expired meanwhile. The floor is the same process at rest, after all that.
 */
export function latencyBesideWork({ connections, intervalMs, uploads: atOnce, bytes }) {
  return async (bench) => {
    const { effort } = bench;
    const few = await stockOf(bench.main, effort.stocks.few);
    // Of a thousand requests a second, a p99 takes longer to settle than a rate does.
    const seconds = 2 * effort.roundSeconds;
    await using load = startLoad();
    await using busyLoad = startLoad({ gentle: true });
    const rounds = [];
    while (rounds.length < effort.rounds) {
      await using stock = await copyWithExpired(few, effort.expired);
      await using pasted = await startPrepared(bench, { by: 'draw', stock, suffix: '/raw', draw: 'zipf' });
      const { port, plan } = pasted;
      const get = (duration) => load.run('openLoop', { port, plan, connections, intervalMs, seconds: duration });
      const upload = { port, plan: { kind: 'upload', bytes }, connections: atOnce };
      const uploading = busyLoad.run('closedLoop', { ...upload, seconds: effort.warmUpSeconds + seconds });
      await get(effort.warmUpSeconds);
      const expiredBefore = countExpired(stock);
      const beside = await get(seconds);
      const removed = expiredBefore - countExpired(stock);
      const uploads = await uploading;
      const deadline = performance.now() + LONGEST_CLEANUP_MS;
      while (countExpired(stock) > 0) {
        if (performance.now() > deadline) throw new Error(`expired pastes were there for ${LONGEST_CLEANUP_MS} ms`);
        await sleep(200);
      }
      rounds.push({ floor: await get(seconds), pasted: beside, uploads, removed });
    }
    return outcomeOf(rounds, p99, () => [
      `${median(rounds.map(({ uploads }) => uploads.answers))} uploads finished in a round`,
      `${median(rounds.map(({ removed }) => removed))} of ${effort.expired} expired pastes removed in one`,
    ]);
  };
}

/**
 * A closed loop on both sides, with the processor time that the server took for a request. What is asked for once only
 * is asked for half of it in all rounds. `refill` is a load that makes up for each round.
 */
async function compareLoops({ effort }, floor, pasted, { refill, figureOf = perSecond, notesOf, ...loop }) {
  await using load = startLoad();
  const once = floor.plan.draw === 'eachOnce' ? Math.floor(floor.plan.count / (2 * (effort.rounds + 1))) : Infinity;
  const most = Math.min(loop.most ?? Infinity, once);
  const on = ({ port, plan, cpuSeconds }) => async (seconds) => {
    const before = cpuSeconds();
    const round = await load.run('closedLoop', { ...loop, port, plan, seconds, most });
    const cpuMs = ((cpuSeconds() - before) * 1000) / round.answers;
    if (refill !== undefined) await load.run('closedLoop', { ...refill, port, most: round.answers });
    return { ...round, cpuMs };
  };
  return await compare(effort, on(floor), on(pasted), figureOf, notesOf);
}
