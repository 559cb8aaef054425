// What is no rate of requests: how long pasted takes to start, how much memory it has, what registering costs it and
// others, what one check costs, and what a proof-of-work costs pastec.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  NotHereError, freePort, makeFolder, pastedEnvironment, removeFolder, startLoad, startNode, startPasted, startScript,
  stop,
} from './processes.mjs';
import { headOf } from './requests.mjs';
import { asking, capture, readingStock, startPrepared, withScene, writing } from './scene.mjs';
import { alternate, median, outcomeOf, outcomeWithoutFloor, takeTurns } from './statistics.mjs';
import { stockOf } from './stock.mjs';

const MB = 1e6;
const LONGEST_START_MS = 15_000;

/** Of `memoryAfterRequests`: so many equal parts, with a POST among each ONE_POST_OF requests. */
const LOADS = 10;
const ONE_POST_OF = 10;

/** Time for one, in microseconds. */
export function checkTime(what) {
  return async ({ main, effort }) => {
    const { pristine: database } = await stockOf(main, effort.stocks.few);
    const order = { what, dist: path.dirname(main), database, seconds: effort.roundSeconds / 2 };
    await using timed = startScript('timed.mjs');
    const rounds = [];
    for (let round = 0; round < effort.rounds + 1; round += 1) rounds.push(await timed.ask(order));
    // The first is for the compiler to warm up.
    const [{ note }, ...measured] = rounds;
    return outcomeWithoutFloor(measured, ({ answers, seconds }) => (seconds * 1e6) / answers, { notes: [note] });
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
    const { rounds, errors } = await takeTurns(
      effort,
      besides((seconds) => timed.ask({ what: 'registration', atOnce: connections, seconds })),
      besides((seconds) => load.run('closedLoop', { ...loop, seconds })),
    );
    return outcomeOf(rounds, figureOf, { errors });
  };
}

/** The p99 since the last call, since reading starts the server's histogram anew. */
async function eventLoopDelayMs(port) {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  const p99 = /^pasted_event_loop_delay_seconds\{quantile="0\.99"\} (\S+)$/m.exec(await response.text())?.[1];
  if (p99 === undefined) throw new Error(`no event-loop delay among the metrics (status ${response.status})`);
  return Number(p99) * 1000;
}

/** Resident memory in MB, `seconds` after the start and one request, of pasted and of the bare server. */
export function memoryAtRest({ seconds }) {
  return async (bench) => {
    const rounds = await Promise.all(Array.from({ length: bench.effort.rounds }, () => (
      withScene(bench, asking('/health'), async ({ floor, pasted }) => {
        await capture(floor.port, 'GET', '/health');
        await sleep(seconds * 1000);
        return { floor: { bytes: floor.residentBytes() }, pasted: { bytes: pasted.residentBytes() } };
      })
    )));
    return outcomeOf(rounds, ({ bytes }) => bytes / MB, { notes: [`${seconds} s after the start and one request`] });
  };
}

/**
 * Resident memory in MB after many requests; the floor is what it was after the first of LOADS equal parts. One run,
 * since it takes longer than the rounds of any other operation.
 */
export function memoryAfterRequests({ connections }) {
  return async (bench) => {
    await using pasted = await startPrepared(bench, readingStock('some', '/raw', 'zipf'));
    await using load = startLoad();
    const plan = { kind: 'mix', usual: pasted.plan, rare: { kind: 'post', bytes: 1024 }, outOf: ONE_POST_OF };
    const most = bench.effort.requests / LOADS;
    const loads = [];
    for (let part = 0; part < LOADS; part += 1) {
      const measured = await load.run('closedLoop', { port: pasted.port, plan, connections, seconds: 300, most });
      if (measured.answers < most) throw new Error(`${measured.answers} of ${most} requests were answered well`);
      loads.push({ ...measured, bytes: pasted.residentBytes() });
    }
    return outcomeOf([{ floor: loads[0], pasted: loads.at(-1) }], ({ bytes }) => bytes / MB, {
      notes: [`after each ${most}: ${loads.map(({ bytes }) => Math.round(bytes / MB)).join(', ')} MB; one run`],
    });
  };
}

/** Peak memory with many paced uploads at once, in MB, of a pasted that has done nothing else. */
export function memoryUnderUploads({ connections }) {
  return async (bench) => {
    const { crowdBytes: bytes, crowdSeconds: seconds } = bench.effort;
    const rounds = [];
    for (let round = 0; round < bench.effort.rounds; round += 1) {
      await using pasted = await startPrepared(bench, writing('upload', 1024));
      await using load = startLoad();
      const uploaded = await load.run('pacedUploads', { port: pasted.port, bytes, connections, seconds });
      rounds.push({ ...uploaded, bytes: pasted.peakBytes() });
    }
    const medianOf = (name) => median(rounds.map((round) => round[name]));
    return outcomeWithoutFloor(rounds, (round) => round.bytes / MB, {
      notes: [
        `${medianOf('answers')} of ${connections} stored, ${Math.round(bytes / MB)} MB each`,
        `all at once for ${medianOf('togetherSeconds').toFixed(1)} s, ${medianOf('seconds').toFixed(1)} s in all`,
      ],
    });
  };
}

const BARE_SERVER = `import http from 'node:http';
http.createServer((request, response) => {
  response.writeHead(200, { 'Content-Length': '2' });
  response.end('ok');
}).listen(Number(process.argv[1]), '127.0.0.1');`;

/** Time in ms from starting the process to its first 200 on /health, with the stock of many pastes and without load. */
export function startTime() {
  return async ({ main, effort }) => {
    const { folder } = await stockOf(main, effort.stocks.many);
    const bare = ['--input-type=module', '-e', BARE_SERVER];
    const floor = () => firstAnswer((port) => [...bare, String(port)], () => ({ PATH: process.env.PATH }));
    const pasted = () => firstAnswer(() => [main], (port) => pastedEnvironment(folder, port));
    await alternate(1, floor, pasted);
    const rounds = await alternate(effort.starts, floor, pasted);
    return outcomeOf(rounds, ({ ms }) => ms);
  };
}

async function firstAnswer(argumentsFor, environmentFor) {
  const port = await freePort();
  const begun = performance.now();
  const child = startNode(argumentsFor(port), { env: environmentFor(port), stdio: ['ignore', 'ignore', 'inherit'] });
  try {
    while (!(await isHealthy(port))) {
      if (child.exitCode !== null) throw new Error(`a server ended with code ${child.exitCode}`);
      if (performance.now() - begun > LONGEST_START_MS) throw new Error(`not healthy within ${LONGEST_START_MS} ms`);
      await sleep(1);
    }
    return { ms: performance.now() - begun };
  } finally {
    await stop(child);
  }
}

async function isHealthy(port) {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/health`);
    await response.text();
    return response.ok;
  } catch {
    return false;
  }
}

const CLIENT = new URL('../../src/client/pastec', import.meta.url);
const MAIN = '{ main "$@"; exit; }';

/** Arguments: a folder and a solver. It searches for what is not found, until its file of reports has gone. */
const SEARCH = `
prepare_shell
work=$1
solver_works "$2" || exit 7
[ "$2" != batches ] || make_scratch_folder
: >"$work/reports"
printf 'ready\\n'
run_solver "$2" "$probe_nonce" 32 0 1
remove "$scratch"
`;

/** What a solution takes on average: perl-base beside batches, which every host has. */
export function solving({ bits }) {
  return async ({ effort }) => {
    const cost = (solver) => () => costOf(solver, bits, effort.roundSeconds);
    return outcomeOf(await alternate(effort.rounds, cost('batches'), cost('perl-base')), ({ ms }) => ms);
  };
}

/** Numbers a second, and the ms that a solution takes with the start of its search. */
async function costOf(solver, bits, seconds) {
  const folder = makeFolder();
  const begun = performance.now();
  const script = readFileSync(CLIENT, 'utf8').replace(MAIN, SEARCH);
  const child = spawn('sh', ['-c', script, 'sh', folder, solver], { stdio: ['ignore', 'pipe', 'ignore'] });
  const closed = once(child, 'close');
  let [startMs, tried, tryingMs] = [NaN, 0, 0];
  for await (const line of createInterface({ input: child.stdout })) {
    const now = performance.now();
    if (line === 'ready') {
      startMs = now - begun;
      continue;
    }
    tried += Number(line);
    tryingMs = now - begun - startMs;
    if (tryingMs >= seconds * 1000) break;
  }
  rmSync(path.join(folder, 'reports'), { force: true });
  if (solver !== 'batches') child.kill('SIGKILL');
  child.stdout.resume();
  await closed;
  removeFolder(folder);
  if (tried === 0) throw new NotHereError(`${solver} does not work here`);
  const rate = (tried / tryingMs) * 1000;
  return { rate, ms: startMs + (2 ** bits / rate) * 1000 };
}
