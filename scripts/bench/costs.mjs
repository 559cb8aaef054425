// Costs other than the rates of small requests: how long pasted takes to start, how much memory it uses, what a
// registration costs, and what one check costs.

import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  freePort, makeFolder, pastedEnvironment, startFloor, startLoad, startNode, startPasted, startScript, stop,
} from './processes.mjs';
import { headOf } from './requests.mjs';
import { capture, startPrepared } from './scene.mjs';
import { alternate, compare, median, outcomeOf } from './statistics.mjs';
import { PASTE_BYTES, copyOf, stockOf } from './stock.mjs';

const MB = 1e6;
const LONGEST_START_MS = 15_000;
const LONGEST_LOAD_SECONDS = 300;

const inMB = ({ bytes }) => bytes / MB;

/** The time of one check, in microseconds. */
export function checkTime(what) {
  return async ({ main, effort }) => {
    const { pristine: database } = await stockOf(main, effort.stocks.few);
    const order = { what, main, database, seconds: effort.roundSeconds / 2, atOnce: 1, batch: 1000 };
    await using timed = startScript('timed.mjs');
    // This round is not counted: it warms up the compiler.
    const { note } = await timed.ask(order);
    const rounds = [];
    while (rounds.length < effort.rounds) rounds.push({ floor: {}, pasted: await timed.ask(order) });
    return outcomeOf(rounds, ({ answers, seconds }) => (seconds * 1e6) / answers, () => [note]);
  };
}

/** The rate of registrations in a closed loop; the floor is that of the bare operations. */
export function registering({ connections }) {
  return async ({ main, effort }) => {
    const settings = { SERVICE_REGISTER_POW: '0', SERVICE_PKI_CA_PASSWORD: 'only for measuring' };
    await using pasted = await startPasted(main, { settings });
    await using timed = startScript('timed.mjs');
    await using load = startLoad();
    const requests = [`${headOf('POST /register', 'Content-Type: application/json', 'Content-Length: 2')}{}`];
    const loop = { port: pasted.port, plan: { kind: 'fixed', requests }, connections };
    const bare = (seconds) => timed.ask({ what: 'registration', seconds, atOnce: connections, batch: 1 });
    const registered = (seconds) => load.run('closedLoop', { ...loop, seconds });
    return await compare(effort, [bare, registered], ({ answers, seconds }) => answers / seconds);
  };
}

/** Resident memory in MB, of pasted and of a bare server that stores, `seconds` after the start and one request. */
export function memoryAtRest({ seconds }) {
  return async ({ main, effort }) => {
    const { pristine } = await stockOf(main, effort.stocks.few);
    const rounds = await Promise.all(Array.from({ length: effort.rounds }, async () => {
      await using pasted = await startPasted(main);
      const small = await capture(pasted.port, 'GET', '/health');
      await using floor = await startFloor({ small, stores: copyOf(pristine) });
      await capture(floor.port, 'GET', '/health');
      await sleep(seconds * 1000);
      return { floor: { bytes: floor.residentBytes() }, pasted: { bytes: pasted.residentBytes() } };
    }));
    return outcomeOf(rounds, inMB, () => [`${seconds} s after the start and one request`]);
  };
}

/** Several closed loops at once, one for each name in `connections`. */
function loadAll({ port, plans }, { connections, seconds = LONGEST_LOAD_SECONDS, most = {} }) {
  return Promise.all(Object.keys(connections).map(async (name) => {
    await using load = startLoad();
    const loop = { plan: plans[name], connections: connections[name], most: most[name] };
    return await load.run('closedLoop', { ...loop, port, seconds });
  }));
}

const sumOf = (loads, name) => loads.reduce((sum, load) => sum + load[name], 0);

/**
 * Resident memory in MB after many requests, a tenth of them POSTs; the floor is the memory after the first tenth of
 * all. There is only one run, since it takes longer than the rounds of any other operation.
 */
export function memoryAfterRequests({ connections }) {
  return async (bench) => {
    await using pasted = await startPrepared(bench, { by: 'draw', stock: 'some', suffix: '/raw', draw: 'zipf' });
    const plans = { get: pasted.plan, post: { kind: 'post', bytes: PASTE_BYTES } };
    const part = bench.effort.requests / 10;
    const rounds = [];
    while (rounds.length < 10) {
      const most = { get: 0.9 * part, post: 0.1 * part };
      const answers = sumOf(await loadAll({ ...pasted, plans }, { connections, most }), 'answers');
      if (answers < part) throw new Error(`${answers} of ${part} requests were answered well`);
      rounds.push({ bytes: pasted.residentBytes() });
    }
    const note = `after each ${part}: ${rounds.map((round) => Math.round(inMB(round))).join(', ')} MB; one run`;
    return outcomeOf([{ floor: rounds[0], pasted: rounds.at(-1) }], inMB, () => [note]);
  };
}

/** Peak memory in MB of a fresh pasted that takes one upload on each connection, all begun at once. */
export function memoryUnderUploads({ connections }) {
  return async ({ main, effort: { rounds: count, crowdBytes: bytes } }) => {
    const rounds = [];
    while (rounds.length < count / 2) {
      await using pasted = await startPasted(main);
      const server = { ...pasted, plans: { upload: { kind: 'upload', bytes } } };
      const [uploaded] = await loadAll(server, { connections: { upload: connections }, most: { upload: connections } });
      rounds.push({ floor: {}, pasted: { ...uploaded, bytes: pasted.peakBytes() } });
    }
    const medianOf = (name) => median(rounds.map(({ pasted }) => pasted[name]));
    return outcomeOf(rounds, inMB, () => [
      `${medianOf('answers')} of ${connections} stored, ${Math.round(bytes / MB)} MB each`,
      `half of them in ${(medianOf('p50Ms') / 1000).toFixed(1)} s, ${medianOf('seconds').toFixed(1)} s in all`,
    ]);
  };
}

/** Peak memory in MB under several loads at once; the floor is a bare server that stores and sends the same rows. */
export function memoryUnderMix({ bytes, connections }) {
  return async (bench) => {
    const seconds = bench.effort.warmUpSeconds + bench.effort.roundSeconds;
    const rounds = [];
    while (rounds.length < bench.effort.rounds) {
      await using pasted = await startPrepared(bench, { by: 'mix', bytes });
      await using floor = await startFloor(pasted.floor);
      const beside = await loadAll({ ...floor, plans: pasted.plans }, { connections, seconds });
      const loads = await loadAll(pasted, { connections, seconds });
      const answers = sumOf(loads, 'answers');
      rounds.push({ floor: { bytes: floor.peakBytes() }, pasted: { bytes: pasted.peakBytes(), answers }, ...loads });
    }
    return outcomeOf(rounds, inMB, () => [`${median(rounds.map(({ pasted }) => pasted.answers))} answers in a round`]);
  };
}

/**
 * Time in ms from starting the process to its first 200 on /health, with the stock of many pastes and without load.
 * The floor is the time that node takes to start, run an empty module, and exit.
 */
export function startTime() {
  return async ({ main, effort }) => {
    const { folder } = await stockOf(main, effort.stocks.many);
    const empty = path.join(makeFolder(), 'empty.mjs');
    writeFileSync(empty, '');
    const floor = async () => {
      const begun = performance.now();
      await once(startNode([empty], { stdio: ['ignore', 'ignore', 'inherit'] }), 'exit');
      return { ms: performance.now() - begun };
    };
    const pasted = () => firstAnswer(main, folder);
    await alternate(1, floor, pasted);
    return outcomeOf(await alternate(effort.starts, floor, pasted), ({ ms }) => ms);
  };
}

async function firstAnswer(main, folder) {
  const port = await freePort();
  const isHealthy = () => fetch(`http://127.0.0.1:${port}/health`).then(({ ok }) => ok, () => false);
  const begun = performance.now();
  const child = startNode([main], { env: pastedEnvironment(folder, port), stdio: ['ignore', 'ignore', 'inherit'] });
  try {
    while (!(await isHealthy())) {
      if (child.exitCode !== null) throw new Error(`a server ended with code ${child.exitCode}`);
      if (performance.now() - begun > LONGEST_START_MS) throw new Error(`not healthy within ${LONGEST_START_MS} ms`);
      await sleep(1);
    }
    return { ms: performance.now() - begun };
  } finally {
    await stop(child);
  }
}
