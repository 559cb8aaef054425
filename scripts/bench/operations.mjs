// The table of what is measured and which bar it must meet: a row for each operation. `floor` says what it is compared
// with, in the same run on the same machine.

import {
  checkTime, memoryAfterRequests, memoryAtRest, memoryUnderMix, memoryUnderUploads, registering, startTime,
} from './costs.mjs';
import { amongMany, besideUsual, latencyBesideWork, p99, throughput } from './rates.mjs';

const KIB = 1024;
const MIB = 1024 * KIB;
const LARGE = 50 * MIB;
const BARE = 'bare node:http';
const LOGGED = `${BARE}, same headers, one log line`;
const INSERTED = `${BARE}, a thread, one INSERT with the same indexes, group commit, FULL`;
const SENT_CHUNKS = `${BARE} over the same chunk rows`;
const STORED_CHUNKS = `${BARE} with SHA-256 that stores the same chunk rows, FULL`;

/**
 * How much to measure. `roundSeconds` of each side make a round. `stocks` are numbers of pastes, `expired` is how many
 * cleanup has to remove, `requests` is after how many memory must not have grown, `crowdBytes` is the size of each of
 * many concurrent uploads.
 */
export const FULL_EFFORT = {
  rounds: 5, roundSeconds: 2, warmUpSeconds: 2, starts: 7, stocks: { few: 10_000, some: 100_000, many: 1_000_000 },
  expired: 10_000, requests: 1_000_000, crowdBytes: LARGE,
};

/** For a quick look: too short to judge by, with fewer pastes and a smaller crowd than the bars assume. */
export const QUICK_EFFORT = {
  rounds: 3, roundSeconds: 0.7, warmUpSeconds: 1, starts: 3, stocks: { few: 2000, some: 20_000, many: 100_000 },
  expired: 1000, requests: 100_000, crowdBytes: 5 * MIB,
};

const POPULAR = { by: 'draw', stock: 'some', suffix: '/raw', draw: 'zipf' };
const STORED = { by: 'store', count: 1000, bytes: KIB };
const get = (preparation, figures) => throughput({ ...POPULAR, ...preparation }, { connections: 32, ...figures });
const post = (connections) => throughput({ by: 'send', kind: 'post', bytes: KIB }, { connections });
const download = (bytes) => throughput({ by: 'store', count: 1, bytes }, { connections: 1, amount: bytes / MIB });
const upload = (bytes) => throughput(
  { by: 'send', kind: 'upload', bytes }, { connections: 1, amount: bytes / MIB, most: (10 * LARGE) / bytes },
);
const onNodes = (usual) => besideUsual(usual, { ...usual, inCluster: true }, { connections: 32 });
const among = (request) => amongMany({ request, connections: 8 });
const ratio = (bound) => ({ of: 'ratio', ...bound });
const figure = (bound) => ({ of: 'pasted', ...bound });

/** The order matters: operations that delete from a stock come after those that read it. */
export const OPERATIONS = [
  ['get-raw', 'GET raw 1 KiB, 32 connections, 100 000 pastes, Zipf', LOGGED,
    'requests/s', ratio({ atLeast: 0.75 }), get()],
  ['get-p99', 'GET raw 1 KiB, slowest percent, 32 connections, 100 000 pastes, Zipf', LOGGED,
    'p99 ms', ratio({ atMost: 2 }), get({}, { figureOf: p99 })],
  ['get-log-file', 'GET raw 1 KiB, 32 connections, 1 000 pastes, log in a file', 'itself, log in a drained pipe',
    'requests/s', ratio({ atLeast: 0.9 }), besideUsual(STORED, { ...STORED, logsToFile: true }, { connections: 32 })],
  ['get-raw-64k', 'GET raw 64 KiB, 32 connections, 1 000 pastes, Zipf', `${BARE}, same headers`, 'requests/s',
    ratio({ atLeast: 0.85 }), throughput({ ...STORED, bytes: 64 * KIB }, { connections: 32 })],
  ['get-metadata', 'GET metadata, 32 connections, 100 000 pastes, Zipf', LOGGED,
    'requests/s', ratio({ atLeast: 0.75 }), get({ suffix: '' })],
  ['page', 'page of 1 KiB of text, 32 connections, 1 000 pastes, Zipf', 'content of such pastes',
    'requests/s', ratio({ atLeast: 0.6 }), besideUsual(STORED, { ...STORED, pages: true }, { connections: 32 })],
  ['get-cold', 'GET raw 1 KiB never read before, 32 connections, 1 000 000 pastes', `${LOGGED}, one prepared SELECT`,
    'requests/s', ratio({ atLeast: 0.85 }), get({ stock: 'many', draw: 'eachOnce' })],
  ['post', 'POST 1 KiB durable, 32 connections', INSERTED, 'requests/s', ratio({ atLeast: 0.75 }), post(32)],
  ['post-128', 'POST 1 KiB durable, 128 connections', INSERTED, 'requests/s', ratio({ atLeast: 0.75 }), post(128)],
  ['download', 'download 50 MiB, one after the other', SENT_CHUNKS, 'MiB/s', ratio({ atLeast: 0.9 }), download(LARGE)],
  ['download-10', 'download 10 MiB, one after the other', SENT_CHUNKS,
    'MiB/s', ratio({ atLeast: 0.9 }), download(10 * MIB)],
  ['upload', 'upload 50 MiB, one after the other', STORED_CHUNKS, 'MiB/s', ratio({ atLeast: 0.8 }), upload(LARGE)],
  ['upload-10', 'upload 10 MiB, one after the other', STORED_CHUNKS,
    'MiB/s', ratio({ atLeast: 0.8 }), upload(10 * MIB)],
  ['get-beside', 'GET raw 1 KiB beside 4 uploads of 50 MiB and a delete of 10 000 expired pastes',
    `${BARE} that stores 4 such uploads in the same rows`,
    'p99 ms', ratio({ atMost: 1.5 }), latencyBesideWork({ connections: 4, intervalMs: 1, uploads: 4, bytes: LARGE })],
  ['list', 'list page among 1 000 000 pastes', 'itself among 10 000', 'ms', ratio({ atMost: 1.3 }), among('list')],
  ['update', 'update among 1 000 000 pastes', 'itself among 10 000', 'ms', ratio({ atMost: 1.3 }), among('update')],
  ['delete', 'delete among 1 000 000 pastes', 'itself among 10 000', 'ms', ratio({ atMost: 1.3 }), among('delete')],
  ['register', 'registration, 8 connections', 'bare P-384 key pair, signature, 2048 hashes',
    'requests/s', ratio({ atLeast: 0.7 }), registering({ connections: 8 })],
  ['work-check', 'proof-of-work check', 'none', 'us', figure({ atMost: 20 }), checkTime('work')],
  ['rate-check', 'rate limit check', 'none', 'us', figure({ atMost: 20 }), checkTime('rate')],
  ['memory-rest', 'memory at rest', `${BARE} with a thread, SQLite and SHA-256`,
    'MB', figure({ atMost: 80 }), memoryAtRest({ seconds: 5 })],
  ['memory-flat', 'memory after 1 000 000 requests', 'itself after a tenth of them',
    'MB', figure({ timesFloor: 1.1, atMost: 8 }), memoryAfterRequests({ connections: { get: 29, post: 3 } })],
  ['memory-uploads', 'memory with 100 uploads of 50 MiB at once', 'none',
    'peak MB', figure({ atMost: 150 }), memoryUnderUploads({ connections: 100 })],
  ['memory-mixed', 'memory with 32 GET and 32 POST of 1 KiB, 4 uploads and 4 downloads of 10 MiB at a time',
    `${BARE} that stores and sends the same rows`, 'peak MB', figure({ atMost: 150 }),
    memoryUnderMix({ bytes: 10 * MIB, connections: { get: 32, post: 32, upload: 4, download: 4 } })],
  ['start', 'start to first answer, 1 000 000 pastes', 'node, from start to exit, of an empty ES module',
    'ms', figure({ timesFloor: 1, atMost: 60 }), startTime()],
  ['cluster', 'POST 1 KiB durable, 32 connections, on three nodes of rqlite', 'itself on a file',
    'requests/s', ratio({ atLeast: 0.1 }), onNodes({ by: 'send', kind: 'post', bytes: KIB })],
  ['cluster-get', 'GET raw 1 KiB, 32 connections, 1 000 pastes, on three nodes of rqlite', 'itself on a file',
    'requests/s', ratio({ atLeast: 0.02 }), onNodes(STORED)],
].map(([name, title, floor, unit, bar, measure]) => ({ name, title, floor, unit, bar, measure }));
