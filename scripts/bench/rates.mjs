// Rates and times of requests in a closed or an open loop, on pasted and on something beside it in turn: a bare server,
// pasted with fewer pastes, or pasted on a faster disk.

import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NotHereError, makeFolder, removeFolder, startLoad, startPasted } from './processes.mjs';
import { ID, OWNER, STAMP, headOf, text } from './requests.mjs';
import { readingPages, readingStored, startPrepared, withScene, writing } from './scene.mjs';
import { median, outcomeOf, takeTurns } from './statistics.mjs';
import { PASTE_BYTES, PASTES_OF_AN_OWNER, copyWithExpired, countExpired, fingerprintOf, stockOf } from './stock.mjs';

/** From here on the load generator may be what limits the floor, and the ratio flatters pasted. */
const LOAD_IS_LIMIT = 0.95;

const LONGEST_CLEANUP_SECONDS = 60;

/** A closed loop against both sides; `amount` is what one request counts in the row's unit, `most` bounds a round. */
export function throughput({ preparation, connections, amount = 1, most = Infinity }) {
  return (bench) => withScene(bench, preparation, async ({ pasted, floor, load, plan }) => {
    const once = plan.draw === 'eachOnce' ? Math.floor(plan.count / (bench.effort.rounds + 1)) : Infinity;
    const on = (server, side) => (seconds) => (
      timedLoop(load, server, { plan: { ...plan, side }, connections, seconds, most: Math.min(most, once) })
    );
    const { rounds, errors } = await takeTurns(bench.effort, on(floor, 'floor'), on(pasted, 'pasted'));
    const loadShare = median(rounds.map((round) => round.floor.loadShare));
    const notes = [`load generator busy ${Math.round(100 * loadShare)} % of its core beside the floor`];
    if (loadShare > LOAD_IS_LIMIT) notes.push('it may limit the floor: the real ratio may be lower');
    return outcomeOf(rounds, ({ answers, seconds }) => (answers * amount) / seconds, { errors, notes });
  });
}

/** The rate of pages in a closed loop; the floor is that of the content of the same pastes, from the same server. */
export function pagesBesideContent({ bytes, population, connections }) {
  return async (bench) => {
    await using pasted = await startPrepared(bench, readingPages(population, bytes));
    await using load = startLoad();
    const on = (plan) => (seconds) => timedLoop(load, pasted, { plan, connections, seconds });
    const { rounds, errors } = await takeTurns(bench.effort, on(pasted.rawPlan), on(pasted.plan));
    return outcomeOf(rounds, ({ answers, seconds }) => answers / seconds, { errors });
  };
}

const AS_OWNER = `X-SSL-Client-SHA1: ${OWNER}`;
const CONTENT = ['Content-Type: text/plain', `Content-Length: ${PASTE_BYTES}`];

/** Templates of what owners do; a list is the first page of an owner's own. */
const REQUESTS = {
  list: headOf('GET /pastes', AS_OWNER),
  update: headOf(`PUT /${ID}`, AS_OWNER, ...CONTENT) + STAMP + text(PASTE_BYTES - STAMP.length).toString('latin1'),
  delete: headOf(`DELETE /${ID}`, AS_OWNER),
};

/**
 * Time for one request in ms, `connections` of them at a time; the floor is pasted itself with few pastes. Deleted
 * pastes are made up for by as many new ones after each round.
 */
export function amongMany({ request, connections }) {
  return async ({ main, effort }) => {
    const [few, many] = [await stockOf(main, effort.stocks.few), await stockOf(main, effort.stocks.many)];
    await using amongFew = await startPasted(main, { folder: few.folder, stays: true });
    await using amongTheMany = await startPasted(main, { folder: many.folder, stays: true });
    await using load = startLoad();
    const isDelete = request === 'delete';
    const most = isDelete ? Math.floor(few.count / (2 * (effort.rounds + 1))) : Infinity;
    const on = (server, { ids, count }) => {
      const owners = Array.from({ length: Math.ceil(count / PASTES_OF_AN_OWNER) }, (_, owner) => fingerprintOf(owner));
      const draw = isDelete ? 'eachOnce' : 'uniform';
      const plan = { kind: 'drawn', template: REQUESTS[request], ids, count, draw, owners };
      return async (seconds) => {
        const round = await timedLoop(load, server, { plan, connections, seconds, most });
        const refill = { port: server.port, plan: { kind: 'post', bytes: PASTE_BYTES }, connections: 32, seconds: 60 };
        if (isDelete) await load.run('closedLoop', { ...refill, most: round.answers });
        return round;
      };
    };
    const { rounds, errors } = await takeTurns(effort, on(amongFew, few), on(amongTheMany, many));
    const notes = [`${many.count} pastes beside ${few.count}; each owner has ${PASTES_OF_AN_OWNER}`];
    return outcomeOf(rounds, ({ answers, seconds }) => (seconds * 1000) / answers, { errors, notes });
  };
}

/** The rate of POSTs in a closed loop, each sync delayed; the floor is pasted itself on the disk as it is. */
export function writesOnSlowDisk({ bytes, connections, delayMs }) {
  return (bench) => onBothDisks(bench, writing('post', bytes), delayMs, ({ answers, seconds }) => answers / seconds, (
    (load, server, seconds) => timedLoop(load, server, { plan: server.plan, connections, seconds })
  ));
}

/** p99 of GETs at `intervalMs` beside POSTs at theirs, as many on either disk, so that it is syncing all the time. */
export function readsOnSlowDisk({ bytes, population, connections, intervalMs, delayMs, posts }) {
  return async (bench) => {
    await using busyLoad = startLoad({ gentle: true });
    const round = async (load, { port, plan }, short) => {
      const seconds = 2 * short;
      const [gets, stored] = await Promise.all([
        load.run('openLoop', { port, plan, connections, intervalMs, seconds }),
        busyLoad.run('openLoop', { port, plan: { kind: 'post', bytes }, ...posts, seconds }),
      ]);
      const reasons = Object.keys(stored.errors);
      if (stored.answers === 0 || reasons.length > 0) throw new Error(`POSTs beside it failed: ${reasons.join(', ')}`);
      return gets;
    };
    return await onBothDisks(bench, readingStored(population, bytes), delayMs, ({ p99Ms }) => p99Ms, round);
  };
}

async function onBothDisks(bench, preparation, delayMs, figureOf, round) {
  const delay = slowSyncs(delayMs);
  await using usual = await startPrepared(bench, preparation);
  await using slow = await startPrepared(bench, preparation, delay);
  await using load = startLoad();
  const on = (server) => (seconds) => round(load, server, seconds);
  const { rounds, errors } = await takeTurns(bench.effort, on(usual), on(slow));
  return outcomeOf(rounds, figureOf, { errors });
}

/** The environment of a process whose every fsync and fdatasync takes so much longer: slow-sync.c, preloaded. */
function slowSyncs(delayMs) {
  if (process.platform !== 'linux') throw new NotHereError('syncs are delayed on Linux only');
  if (spawnSync('cc', ['--version']).status !== 0) throw new NotHereError('there is no C compiler (cc)');
  const library = path.join(makeFolder(), 'slow-sync.so');
  const source = path.join(import.meta.dirname, 'slow-sync.c');
  const flags = ['-shared', '-fPIC', '-O1', '-Wall', '-Werror', '-o', library, source, '-ldl'];
  const { status, stderr } = spawnSync('cc', flags, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`cc ended with ${status}: ${stderr}`);
  return { LD_PRELOAD: library, SLOW_SYNC_MS: String(delayMs) };
}

/**
 * p99 of a modest and steady load of GETs at rest, and while `uploads` of `bytes` run without a pause and a
 * service just started removes what has expired meanwhile. The floor is the same process at rest, after all that.
 */
export function latencyBesideWork(operation) {
  return async ({ main, effort }) => {
    const stock = await stockOf(main, effort.stocks.few);
    const rounds = [];
    while (rounds.length < effort.rounds) rounds.push(await besideWork(main, effort, operation, stock));
    return outcomeOf(rounds, ({ p99Ms }) => p99Ms, {
      notes: [
        `${median(rounds.map(({ uploads }) => uploads.answers))} uploads finished in a round`,
        `${median(rounds.map(({ removed }) => removed))} of ${effort.expired} expired pastes removed in one`,
      ],
    });
  };
}

async function besideWork(main, effort, { connections, intervalMs, uploads: atOnce, bytes }, stock) {
  const { folder, file } = await copyWithExpired(stock, effort.expired);
  await using load = startLoad();
  await using busyLoad = startLoad({ gentle: true });
  await using pasted = await startPasted(main, { folder, stays: true });
  const { port } = pasted;
  const plan = { kind: 'drawn', template: headOf(`GET /${ID}/raw`), ids: stock.ids, count: stock.count, draw: 'zipf' };
  const get = (duration) => load.run('openLoop', { port, plan, connections, intervalMs, seconds: duration });
  // Of a thousand requests a second, a p99 takes longer to settle than a rate does.
  const seconds = 2 * effort.roundSeconds;
  const upload = { port, plan: { kind: 'upload', bytes }, connections: atOnce };
  const uploading = busyLoad.run('closedLoop', { ...upload, seconds: effort.warmUpSeconds + seconds });
  await get(effort.warmUpSeconds);
  const expiredBefore = countExpired(file);
  const pastedRound = await get(seconds);
  const removed = expiredBefore - countExpired(file);
  const uploads = await uploading;
  await noneExpired(file);
  const floor = await get(seconds);
  await pasted[Symbol.asyncDispose]();
  removeFolder(folder);
  return { floor, pasted: pastedRound, uploads, removed };
}

async function noneExpired(file) {
  const deadline = performance.now() + LONGEST_CLEANUP_SECONDS * 1000;
  while (countExpired(file) > 0) {
    if (performance.now() > deadline) throw new Error(`expired pastes were there for ${LONGEST_CLEANUP_SECONDS} s`);
    await sleep(200);
  }
}

/** One closed loop, with the processor time that the server took for a request. */
async function timedLoop(load, server, closedLoop) {
  const before = server.cpuSeconds();
  const round = await load.run('closedLoop', { port: server.port, ...closedLoop });
  return { ...round, cpuMs: ((server.cpuSeconds() - before) * 1000) / round.answers };
}
