// The table of what is measured and what must hold: a row for each operation. How each kind is measured is the files
// named here.

import { amongMany } from './among.mjs';
import { checkTime } from './checks.mjs';
import { latencyBesideWork } from './latency.mjs';
import { memoryAfterRequests, memoryAtRest, memoryUnderUploads } from './memory.mjs';
import { registering } from './registration.mjs';
import { readingLarge, readingStock, readingStored, writing } from './scene.mjs';
import { readsOnSlowDisk, writesOnSlowDisk } from './slow-disk.mjs';
import { solving } from './solvers.mjs';
import { startTime } from './start.mjs';
import { throughput } from './throughput.mjs';

const KIB = 1024;
const MIB = 1024 * KIB;

const SMALL_BYTES = KIB;
const MEDIUM_BYTES = 64 * KIB;
const LARGE_BYTES = 50 * MIB;
const POPULATION = 1000;
const SLOW_SYNC_MS = 20;

/**
 * How long to try. `roundSeconds` of each side make a round. `stocks` are numbers of pastes, `expired` those that
 * cleanup has to remove, `requests` those after which memory must not have grown. `crowdBytes` and `crowdSeconds` are
 * the size and the intended time of each of the concurrent uploads.
 * @typedef {{ rounds: number, roundSeconds: number, warmUpSeconds: number, starts: number, stocks: { few: number,
 *   some: number, many: number }, expired: number, requests: number, crowdBytes: number, crowdSeconds: number }} Effort
 */

/** @type {Effort} */
export const FULL_EFFORT = {
  rounds: 5, roundSeconds: 2, warmUpSeconds: 2, starts: 7, stocks: { few: 10_000, some: 100_000, many: 1_000_000 },
  expired: 10_000, requests: 1_000_000, crowdBytes: LARGE_BYTES, crowdSeconds: 15,
};

/**
 * For a look while working: too short to judge by, with fewer pastes and a smaller crowd than the bars are about. @type
 * {Effort}
 */
export const QUICK_EFFORT = {
  rounds: 3, roundSeconds: 0.7, warmUpSeconds: 1, starts: 3, stocks: { few: 2000, some: 20_000, many: 100_000 },
  expired: 1000, requests: 100_000, crowdBytes: 5 * MIB, crowdSeconds: 2,
};

/**
 * `floor` says what stands beside it in the same run, on the same machine.
 * @typedef {{ name: string, title: string, floor: string,
 *   unit: 'requests/s' | 'MiB/s' | 'p99 ms' | 'ms' | 'us' | 'MB' | 'peak MB',
 *   bar: import('./bars.mjs').Bar,
 *   measure: (bench: import('./scene.mjs').Bench) => Promise<import('./rounds.mjs').Outcome> }} Operation
 */

/** In this order: what deletes of a stock comes after what reads it. @type {Operation[]} */
export const OPERATIONS = [
  {
    name: 'get-raw',
    title: 'GET raw 1 KiB, 32 connections, 100 000 pastes, Zipf',
    floor: 'bare node:http, same headers',
    unit: 'requests/s',
    bar: { of: 'ratio', atLeast: 0.8 },
    measure: throughput({ preparation: readingStock('some', '/raw', 'zipf'), connections: 32 }),
  },
  {
    name: 'get-raw-64k',
    title: 'GET raw 64 KiB, 32 connections, 1 000 pastes, Zipf',
    floor: 'bare node:http, same headers',
    unit: 'requests/s',
    bar: { of: 'ratio', atLeast: 0.85 },
    measure: throughput({ preparation: readingStored(POPULATION, MEDIUM_BYTES), connections: 32 }),
  },
  {
    name: 'get-metadata',
    title: 'GET metadata, 32 connections, 100 000 pastes, Zipf',
    floor: 'bare node:http, same JSON',
    unit: 'requests/s',
    bar: { of: 'ratio', atLeast: 0.8 },
    measure: throughput({ preparation: readingStock('some', '', 'zipf'), connections: 32 }),
  },
  {
    name: 'get-cold',
    title: 'GET raw 1 KiB never read before, 32 connections, 1 000 000 pastes',
    floor: 'bare node:http and one prepared SELECT by primary key',
    unit: 'requests/s',
    bar: { of: 'ratio', atLeast: 0.75 },
    measure: throughput({ preparation: readingStock('many', '/raw', 'eachOnce'), connections: 32 }),
  },
  {
    name: 'post',
    title: 'POST 1 KiB durable, 32 connections',
    floor: 'bare node:http that reads the body and answers the same',
    unit: 'requests/s',
    bar: { of: 'ratio', atLeast: 0.5 },
    measure: throughput({ preparation: writing('post', SMALL_BYTES), connections: 32 }),
  },
  {
    name: 'post-128',
    title: 'POST 1 KiB durable, 128 connections',
    floor: 'bare node:http that reads the body and answers the same',
    unit: 'requests/s',
    bar: { of: 'ratio', atLeast: 0.55 },
    measure: throughput({ preparation: writing('post', SMALL_BYTES), connections: 128 }),
  },
  {
    name: 'download',
    title: 'download 50 MiB, one after the other',
    floor: 'bare stream of as many bytes',
    unit: 'MiB/s',
    bar: { of: 'ratio', atLeast: 0.7 },
    measure: throughput({ preparation: readingLarge(LARGE_BYTES), connections: 1, amount: LARGE_BYTES / MIB }),
  },
  {
    name: 'upload',
    title: 'upload 50 MiB, one after the other',
    floor: 'bare sink with SHA-256',
    unit: 'MiB/s',
    bar: { of: 'ratio', atLeast: 0.55 },
    measure: throughput({
      preparation: writing('upload', LARGE_BYTES), connections: 1, amount: LARGE_BYTES / MIB, most: 10,
    }),
  },
  {
    name: 'get-beside',
    title: 'GET raw 1 KiB beside 4 uploads of 50 MiB and a delete of 10 000 expired pastes',
    floor: 'itself at rest',
    unit: 'p99 ms',
    bar: { of: 'ratio', atMost: 2 },
    measure: latencyBesideWork({ connections: 4, intervalMs: 1, uploads: 4, uploadBytes: LARGE_BYTES }),
  },
  {
    name: 'list',
    title: 'list page among 1 000 000 pastes',
    floor: 'itself among 10 000',
    unit: 'ms',
    bar: { of: 'ratio', atMost: 1.3 },
    measure: amongMany({ request: 'list', connections: 8 }),
  },
  {
    name: 'update',
    title: 'update among 1 000 000 pastes',
    floor: 'itself among 10 000',
    unit: 'ms',
    bar: { of: 'ratio', atMost: 1.3 },
    measure: amongMany({ request: 'update', connections: 8 }),
  },
  {
    name: 'delete',
    title: 'delete among 1 000 000 pastes',
    floor: 'itself among 10 000',
    unit: 'ms',
    bar: { of: 'ratio', atMost: 1.3 },
    measure: amongMany({ request: 'delete', connections: 8 }),
  },
  {
    name: 'register',
    title: 'registration, 8 connections',
    floor: 'bare P-384 key pair, signature, 2048 hashes',
    unit: 'requests/s',
    bar: { of: 'ratio', atLeast: 0.7 },
    measure: registering({ connections: 8, figure: 'rate' }),
  },
  {
    name: 'register-delay',
    title: 'event-loop delay beside 8 registrations',
    floor: 'itself at rest',
    unit: 'p99 ms',
    bar: { of: 'pasted', atMost: 20 },
    measure: registering({ connections: 8, figure: 'delay' }),
  },
  {
    name: 'work-check',
    title: 'proof-of-work check',
    floor: 'none',
    unit: 'us',
    bar: { of: 'pasted', atMost: 20 },
    measure: checkTime('work'),
  },
  {
    name: 'solve',
    title: 'proof-of-work of 20 bits by pastec with perl-base, on average',
    floor: 'batches of files through sha256sum',
    unit: 'ms',
    bar: { of: 'ratio', atMost: 0.1 },
    measure: solving({ bits: 20 }),
  },
  {
    name: 'rate-check',
    title: 'rate limit check',
    floor: 'none',
    unit: 'us',
    bar: { of: 'pasted', atMost: 20 },
    measure: checkTime('rate'),
  },
  {
    name: 'memory-rest',
    title: 'memory at rest',
    floor: 'bare node:http',
    unit: 'MB',
    bar: { of: 'pasted', atMost: 80 },
    measure: memoryAtRest({ seconds: 5 }),
  },
  {
    name: 'memory-flat',
    title: 'memory after 1 000 000 requests',
    floor: 'itself after a tenth of them',
    unit: 'MB',
    bar: { of: 'pasted', timesFloor: 1.1, atMost: 8 },
    measure: memoryAfterRequests(),
  },
  {
    name: 'memory-uploads',
    title: 'memory with 100 uploads of 50 MiB at once',
    floor: 'none',
    unit: 'peak MB',
    bar: { of: 'pasted', atMost: 200 },
    measure: memoryUnderUploads({ connections: 100 }),
  },
  {
    name: 'start',
    title: 'start to first answer, 1 000 000 pastes',
    floor: 'bare node:http',
    unit: 'ms',
    bar: { of: 'pasted', timesFloor: 1, atMost: 120 },
    measure: startTime(),
  },
  {
    name: 'slow-disk-get',
    title: 'GET raw 1 KiB beside POSTs, each sync 20 ms slower',
    floor: 'itself without the delay',
    unit: 'p99 ms',
    bar: { of: 'ratio', atMost: 1.3 },
    measure: readsOnSlowDisk({
      bytes: SMALL_BYTES, connections: 4, intervalMs: 1, delayMs: SLOW_SYNC_MS, postIntervalMs: 5, postConnections: 32,
    }),
  },
  {
    name: 'slow-disk-post',
    title: 'POST 1 KiB durable, 128 connections, each sync 20 ms slower',
    floor: 'itself without the delay',
    unit: 'requests/s',
    bar: { of: 'pasted', atLeast: 3000 },
    measure: writesOnSlowDisk({ bytes: SMALL_BYTES, connections: 128, delayMs: SLOW_SYNC_MS }),
  },
];
