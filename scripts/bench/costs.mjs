// What is no rate of requests: how long pasted takes to start, how much memory it has, what registering costs it and
// others, what one check costs, and what a proof-of-work costs pastec.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  NotHereError, freePort, makeFolder, pastedEnvironment, startFloor, startLoad, startNode, startPasted, startScript,
  stop,
} from './processes.mjs';
import { headOf } from './requests.mjs';
import { capture, startPrepared } from './scene.mjs';
import { alternate, compare, median, outcomeOf } from './statistics.mjs';
import { stockOf } from './stock.mjs';

const MB = 1e6;
const LONGEST_START_MS = 15_000;

const inMB = ({ bytes }) => bytes / MB;

/** Time for one, in microseconds. */
export function checkTime(what) {
  return async ({ main, effort }) => {
    const { pristine: database } = await stockOf(main, effort.stocks.few);
    const order = { what, main, database, seconds: effort.roundSeconds / 2, atOnce: 1, batch: 1000 };
    await using timed = startScript('timed.mjs');
    // For the compiler to warm up.
    const { note } = await timed.ask(order);
    const rounds = [];
    while (rounds.length < effort.rounds) rounds.push({ floor: {}, pasted: await timed.ask(order) });
    return outcomeOf(rounds, ({ answers, seconds }) => (seconds * 1e6) / answers, () => [note]);
  };
}

/**
 * Registrations in a closed loop against the bare operations: their rate, or the event-loop delay (p99, in ms) of the
 * server beside its own at rest.
 */
export function registering({ connections, figureOf }) {
  return async ({ main, effort }) => {
    const metricsPort = await freePort();
    await using pasted = await startPasted(main, {
      settings: {
        SERVICE_REGISTER_POW: '0',
        SERVICE_PKI_CA_PASSWORD: 'only for measuring',
        SERVICE_METRICS_LISTEN: `127.0.0.1:${metricsPort}`,
      },
    });
    await using timed = startScript('timed.mjs');
    await using load = startLoad();
    const besides = (work) => async (seconds) => {
      await eventLoopDelayMs(metricsPort);
      const done = await work(seconds);
      return { ...done, delayMs: await eventLoopDelayMs(metricsPort) };
    };
    const requests = [`${headOf('POST /register', 'Content-Type: application/json', 'Content-Length: 2')}{}`];
    const loop = { port: pasted.port, plan: { kind: 'fixed', requests }, connections };
    return await compare(
      effort,
      besides((seconds) => timed.ask({ what: 'registration', seconds, atOnce: connections, batch: 1 })),
      besides((seconds) => load.run('closedLoop', { ...loop, seconds })),
      figureOf,
    );
  };
}

/** The p99 since the last call, since reading starts the server's histogram anew. */
async function eventLoopDelayMs(port) {
  const { body } = await capture(port, 'GET', '/metrics');
  const p99 = /^pasted_event_loop_delay_seconds\{quantile="0\.99"\} (\S+)$/m.exec(body)?.[1];
  if (p99 === undefined) throw new Error('no event-loop delay among the metrics');
  return Number(p99) * 1000;
}

/** Resident memory in MB, `seconds` after the start and one request, of pasted and of the bare server. */
export function memoryAtRest({ seconds }) {
  return async ({ main, effort }) => {
    const rounds = await Promise.all(Array.from({ length: effort.rounds }, async () => {
      await using pasted = await startPasted(main);
      await using floor = await startFloor(await capture(pasted.port, 'GET', '/health'));
      await capture(floor.port, 'GET', '/health');
      await sleep(seconds * 1000);
      return { floor: { bytes: floor.residentBytes() }, pasted: { bytes: pasted.residentBytes() } };
    }));
    return outcomeOf(rounds, inMB, () => [`${seconds} s after the start and one request`]);
  };
}

/**
 * Resident memory in MB after many requests, a tenth of them POSTs; the floor is what it was after a tenth of all. One
 * run, since it takes longer than the rounds of any other operation.
 */
export function memoryAfterRequests({ connections }) {
  return async (bench) => {
    await using pasted = await startPrepared(bench, { by: 'draw', stock: 'some', suffix: '/raw', draw: 'zipf' });
    await using load = startLoad();
    const plan = { kind: 'mix', usual: pasted.plan, rare: { kind: 'post', bytes: 1024 }, outOf: 10 };
    const most = bench.effort.requests / 10;
    const loads = [];
    while (loads.length < 10) {
      const measured = await load.run('closedLoop', { port: pasted.port, plan, connections, seconds: 300, most });
      if (measured.answers < most) throw new Error(`${measured.answers} of ${most} requests were answered well`);
      loads.push({ ...measured, bytes: pasted.residentBytes() });
    }
    const megabytes = loads.map((part) => Math.round(inMB(part))).join(', ');
    const rounds = [{ floor: loads[0], pasted: loads.at(-1) }];
    return outcomeOf(rounds, inMB, () => [`after each ${most}: ${megabytes} MB; one run`]);
  };
}

/** Peak memory with many paced uploads at once, in MB, of a pasted that has done nothing else. */
export function memoryUnderUploads({ connections }) {
  return async ({ main, effort: { rounds: count, crowdBytes: bytes, crowdSeconds: seconds } }) => {
    const rounds = [];
    while (rounds.length < count) {
      await using pasted = await startPasted(main);
      await using load = startLoad();
      const uploaded = await load.run('pacedUploads', { port: pasted.port, bytes, connections, seconds });
      rounds.push({ floor: {}, pasted: { ...uploaded, bytes: pasted.peakBytes() } });
    }
    const medianOf = (name) => median(rounds.map(({ pasted }) => pasted[name]));
    return outcomeOf(rounds, inMB, () => [
      `${medianOf('answers')} of ${connections} stored, ${Math.round(bytes / MB)} MB each`,
      `all at once for ${medianOf('togetherSeconds').toFixed(1)} s, ${medianOf('seconds').toFixed(1)} s in all`,
    ]);
  };
}

const BARE_SERVER = `import http from 'node:http';
http.createServer((request, response) => {
  response.writeHead(200, { 'Content-Length': '2' });
  response.end('ok');
}).listen(Number(process.env.SERVICE_PORT), '127.0.0.1');`;

/** Time in ms from starting the process to its first 200 on /health, with the stock of many pastes and without load. */
export function startTime() {
  return async ({ main, effort }) => {
    const { folder } = await stockOf(main, effort.stocks.many);
    const floor = () => firstAnswer(['--input-type=module', '-e', BARE_SERVER], folder);
    const pasted = () => firstAnswer([main], folder);
    await alternate(1, floor, pasted);
    return outcomeOf(await alternate(effort.starts, floor, pasted), ({ ms }) => ms);
  };
}

async function firstAnswer(args, folder) {
  const port = await freePort();
  const isHealthy = () => fetch(`http://127.0.0.1:${port}/health`).then(({ ok }) => ok, () => false);
  const begun = performance.now();
  const child = startNode(args, { env: pastedEnvironment(folder, port), stdio: ['ignore', 'ignore', 'inherit'] });
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

const CLIENT = new URL('../../src/client/pastec', import.meta.url);
const MAIN = '{ main "$@"; exit; }';

/** Arguments: a folder and a solver. It says how many more it has tried, until nobody reads that. */
const SEARCH = `
prepare_shell
work=$1
solver_works "$2" || exit 7
[ "$2" != batches ] || { trap '' PIPE; make_scratch_folder; }
: >"$work/reports"
printf '+0\\n'
run_solver "$2" "$probe_nonce" 32 0 1
remove "$scratch"
`;

/** What a solution takes on average, with the start of its search: perl-base beside batches, which every host has. */
export function solving({ bits }) {
  return async ({ effort }) => {
    const script = readFileSync(CLIENT, 'utf8').replace(MAIN, SEARCH);
    const cost = (solver) => async () => {
      const begun = performance.now();
      const child = spawn('sh', ['-c', script, 'sh', makeFolder(), solver], { stdio: ['ignore', 'pipe', 'ignore'] });
      const closed = once(child, 'close');
      const reports = [];
      for await (const line of createInterface({ input: child.stdout })) {
        reports.push({ ms: performance.now() - begun, tried: Number(line) });
        if (reports.at(-1).ms - reports[0].ms >= effort.roundSeconds * 1000) break;
      }
      child.stdout.destroy();
      await closed;
      if (reports.length < 2) throw new NotHereError(`${solver} does not work here`);
      const tried = reports.reduce((sum, report) => sum + report.tried, 0);
      const rate = (tried / (reports.at(-1).ms - reports[0].ms)) * 1000;
      return { rate, ms: reports[0].ms + (2 ** bits / rate) * 1000 };
    };
    return outcomeOf(await alternate(effort.rounds, cost('batches'), cost('perl-base')), ({ ms }) => ms);
  };
}
