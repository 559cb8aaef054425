// The table of what is measured and what must hold: a row for each operation. `floor` says what stands beside it in the
// same run, on the same machine.

import {
  checkTime, memoryAfterRequests, memoryAtRest, memoryUnderUploads, registering, solving, startTime,
} from './costs.mjs';
import {
  amongMany, latencyBesideWork, pagesBesideContent, readsOnSlowDisk, throughput, writesOnSlowDisk,
} from './rates.mjs';

const KIB = 1024;
const MIB = 1024 * KIB;
const LARGE = 50 * MIB;
const BARE = 'bare node:http';
const SINK = `${BARE} that reads the body and answers the same`;

/**
 * How long to try. `roundSeconds` of each side make a round. `stocks` are numbers of pastes, `expired` those that
 * cleanup has to remove, `requests` those after which memory must not have grown. `crowdBytes` and `crowdSeconds` are
 * the size and the intended time of each of the concurrent uploads.
 */
export const FULL_EFFORT = {
  rounds: 5, roundSeconds: 2, warmUpSeconds: 2, starts: 7, stocks: { few: 10_000, some: 100_000, many: 1_000_000 },
  expired: 10_000, requests: 1_000_000, crowdBytes: LARGE, crowdSeconds: 15,
};

/** For a look while working: too short to judge by, with fewer pastes and a smaller crowd than the bars are about. */
export const QUICK_EFFORT = {
  rounds: 3, roundSeconds: 0.7, warmUpSeconds: 1, starts: 3, stocks: { few: 2000, some: 20_000, many: 100_000 },
  expired: 1000, requests: 100_000, crowdBytes: 5 * MIB, crowdSeconds: 2,
};

const get = (stock, suffix, draw) => throughput({ by: 'draw', stock, suffix, draw }, { connections: 32 });
const post = (connections) => throughput({ by: 'send', kind: 'post', bytes: KIB }, { connections });
const transfer = (preparation, most) => throughput(preparation, { connections: 1, amount: LARGE / MIB, most });
const among = (request) => amongMany({ request, connections: 8 });
const register = (figureOf) => registering({ connections: 8, figureOf });
const ratio = (bound) => ({ of: 'ratio', ...bound });
const figure = (bound) => ({ of: 'pasted', ...bound });

/** In this order: what deletes of a stock comes after what reads it. */
export const OPERATIONS = [
  ['get-raw', 'GET raw 1 KiB, 32 connections, 100 000 pastes, Zipf', `${BARE}, same headers`,
    'requests/s', ratio({ atLeast: 0.8 }), get('some', '/raw', 'zipf')],
  ['get-raw-64k', 'GET raw 64 KiB, 32 connections, 1 000 pastes, Zipf', `${BARE}, same headers`, 'requests/s',
    ratio({ atLeast: 0.85 }), throughput({ by: 'store', count: 1000, bytes: 64 * KIB }, { connections: 32 })],
  ['get-metadata', 'GET metadata, 32 connections, 100 000 pastes, Zipf', `${BARE}, same JSON`,
    'requests/s', ratio({ atLeast: 0.8 }), get('some', '', 'zipf')],
  ['page', 'page of 1 KiB of text, 32 connections, 1 000 pastes, Zipf', 'their content, of the same server',
    'requests/s', ratio({ atLeast: 0.6 }), pagesBesideContent({ bytes: KIB, count: 1000, connections: 32 })],
  ['get-cold', 'GET raw 1 KiB never read before, 32 connections, 1 000 000 pastes',
    `${BARE} and one prepared SELECT by primary key`,
    'requests/s', ratio({ atLeast: 0.75 }), get('many', '/raw', 'eachOnce')],
  ['post', 'POST 1 KiB durable, 32 connections', SINK, 'requests/s', ratio({ atLeast: 0.5 }), post(32)],
  ['post-128', 'POST 1 KiB durable, 128 connections', SINK, 'requests/s', ratio({ atLeast: 0.55 }), post(128)],
  ['download', 'download 50 MiB, one after the other', 'bare stream of as many bytes',
    'MiB/s', ratio({ atLeast: 0.7 }), transfer({ by: 'store', count: 1, bytes: LARGE })],
  ['upload', 'upload 50 MiB, one after the other', 'bare sink with SHA-256',
    'MiB/s', ratio({ atLeast: 0.55 }), transfer({ by: 'send', kind: 'upload', bytes: LARGE }, 10)],
  ['get-beside', 'GET raw 1 KiB beside 4 uploads of 50 MiB and a delete of 10 000 expired pastes', 'itself at rest',
    'p99 ms', ratio({ atMost: 2 }), latencyBesideWork({ connections: 4, intervalMs: 1, uploads: 4, bytes: LARGE })],
  ['list', 'list page among 1 000 000 pastes', 'itself among 10 000', 'ms', ratio({ atMost: 1.3 }), among('list')],
  ['update', 'update among 1 000 000 pastes', 'itself among 10 000', 'ms', ratio({ atMost: 1.3 }), among('update')],
  ['delete', 'delete among 1 000 000 pastes', 'itself among 10 000', 'ms', ratio({ atMost: 1.3 }), among('delete')],
  ['register', 'registration, 8 connections', 'bare P-384 key pair, signature, 2048 hashes',
    'requests/s', ratio({ atLeast: 0.7 }), register(({ answers, seconds }) => answers / seconds)],
  ['register-delay', 'event-loop delay beside 8 registrations', 'itself at rest',
    'p99 ms', figure({ atMost: 20 }), register(({ delayMs }) => delayMs)],
  ['work-check', 'proof-of-work check', 'none', 'us', figure({ atMost: 20 }), checkTime('work')],
  ['solve', 'proof-of-work of 20 bits by pastec with perl-base, on average',
    'batches of files through sha256sum', 'ms', ratio({ atMost: 0.1 }), solving({ bits: 20 })],
  ['rate-check', 'rate limit check', 'none', 'us', figure({ atMost: 20 }), checkTime('rate')],
  ['memory-rest', 'memory at rest', BARE, 'MB', figure({ atMost: 80 }), memoryAtRest({ seconds: 5 })],
  ['memory-flat', 'memory after 1 000 000 requests', 'itself after a tenth of them',
    'MB', figure({ timesFloor: 1.1, atMost: 8 }), memoryAfterRequests({ connections: 32 })],
  ['memory-uploads', 'memory with 100 uploads of 50 MiB at once', 'none',
    'peak MB', figure({ atMost: 200 }), memoryUnderUploads({ connections: 100 })],
  ['start', 'start to first answer, 1 000 000 pastes', BARE, 'ms', figure({ timesFloor: 1, atMost: 120 }), startTime()],
  ['slow-disk-get', 'GET raw 1 KiB beside POSTs, each sync 20 ms slower', 'itself without the delay',
    'p99 ms', ratio({ atMost: 1.3 }), readsOnSlowDisk({
      bytes: KIB, count: 1000, connections: 4, intervalMs: 1, delayMs: 20, posts: { connections: 32, intervalMs: 5 },
    })],
  ['slow-disk-post', 'POST 1 KiB durable, 128 connections, each sync 20 ms slower', 'itself without the delay',
    'requests/s', figure({ atLeast: 3000 }), writesOnSlowDisk({ bytes: KIB, connections: 128, delayMs: 20 })],
].map(([name, title, floor, unit, bar, measure]) => ({ name, title, floor, unit, bar, measure }));
