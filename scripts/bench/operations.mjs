// The table of what is measured and what must hold: a row for each operation. How each kind is measured is
// measures.mjs.

import { latencyUnderUploads, memoryUnderUploads, throughput } from './measures.mjs';
import { readingLarge, readingSmall, writing } from './scene.mjs';
import { registering } from './registration.mjs';
import { startTime } from './start.mjs';

const KIB = 1024;
const MIB = 1024 * KIB;

const SMALL_BYTES = KIB;
const LARGE_BYTES = 50 * MIB;
const POPULATION = 1000;

/**
 * How long to try. `roundSeconds` of each side make a round. `crowdBytes` and `crowdSeconds` are the size and the
 * intended time of each of the concurrent uploads.
 * @typedef {{ rounds: number, roundSeconds: number, warmUpSeconds: number, starts: number, crowdBytes: number,
 *   crowdSeconds: number }} Effort
 */

/** @type {Effort} */
export const FULL_EFFORT = {
  rounds: 7, roundSeconds: 2, warmUpSeconds: 3, starts: 10, crowdBytes: LARGE_BYTES, crowdSeconds: 15,
};

/**
 * For a look while working: too short to judge by, and its crowd is smaller than what the bar is about. @type
 * {Effort}
 */
export const QUICK_EFFORT = {
  rounds: 3, roundSeconds: 0.7, warmUpSeconds: 1, starts: 3, crowdBytes: 5 * MIB, crowdSeconds: 2,
};

/**
 * What must hold of the `ratio` to the floor or of the `pasted` figure itself, at least or at most.
 * @typedef {{ of: 'ratio' | 'pasted', atLeast?: number, atMost?: number }} Bar
 */

/**
 * @typedef {{ name: string, title: string, unit: 'requests/s' | 'MiB/s' | 'p99 ms' | 'peak MB' | 'ms', bar: Bar,
 *   measure: (bench: import('./scene.mjs').Bench) => Promise<import('./measures.mjs').Outcome> }} Operation
 */

/** @type {Operation[]} */
export const OPERATIONS = [
  {
    name: 'get-raw',
    title: 'GET raw 1 KiB, 32 connections',
    unit: 'requests/s',
    bar: { of: 'ratio', atLeast: 0.7 },
    measure: throughput({ prepare: readingSmall(POPULATION, SMALL_BYTES, '/raw'), connections: 32 }),
  },
  {
    name: 'get-metadata',
    title: 'GET metadata, 32 connections',
    unit: 'requests/s',
    bar: { of: 'ratio', atLeast: 0.7 },
    measure: throughput({ prepare: readingSmall(POPULATION, SMALL_BYTES, ''), connections: 32 }),
  },
  {
    name: 'post',
    title: 'POST 1 KiB durable, 32 connections',
    unit: 'requests/s',
    bar: { of: 'ratio', atLeast: 0.45 },
    measure: throughput({ prepare: writing('post', SMALL_BYTES), connections: 32 }),
  },
  {
    name: 'download',
    title: 'download 50 MiB, one after the other',
    unit: 'MiB/s',
    bar: { of: 'ratio', atLeast: 0.5 },
    measure: throughput({ prepare: readingLarge(LARGE_BYTES), connections: 1, amount: LARGE_BYTES / MIB }),
  },
  {
    name: 'upload',
    title: 'upload 50 MiB, one after the other',
    unit: 'MiB/s',
    bar: { of: 'ratio', atLeast: 0.4 },
    measure: throughput({
      prepare: writing('upload', LARGE_BYTES), connections: 1, amount: LARGE_BYTES / MIB, most: 20,
    }),
  },
  {
    name: 'get-under-uploads',
    title: 'GET raw 1 KiB beside 2 uploads of 50 MiB',
    unit: 'p99 ms',
    bar: { of: 'ratio', atMost: 3 },
    measure: latencyUnderUploads({
      prepare: readingSmall(POPULATION, SMALL_BYTES, '/raw'),
      connections: 4, intervalMs: 3, uploads: 2, uploadBytes: LARGE_BYTES,
    }),
  },
  {
    name: 'memory',
    title: '100 uploads of 50 MiB at once',
    unit: 'peak MB',
    bar: { of: 'pasted', atMost: 300 },
    measure: memoryUnderUploads({ prepare: writing('upload', SMALL_BYTES), connections: 100 }),
  },
  {
    name: 'register',
    title: 'registration, 8 connections',
    unit: 'requests/s',
    bar: { of: 'ratio', atLeast: 0.6 },
    measure: registering({ connections: 8, figure: 'rate' }),
  },
  {
    name: 'register-delay',
    title: 'event-loop delay beside 8 registrations',
    unit: 'p99 ms',
    bar: { of: 'pasted', atMost: 20 },
    measure: registering({ connections: 8, figure: 'delay' }),
  },
  {
    name: 'start',
    title: 'start to first answer',
    unit: 'ms',
    bar: { of: 'pasted', atMost: 250 },
    measure: startTime(),
  },
];

/**
 * Whether the bar is met; false for a figure that could not be had.
 * @param {Bar} bar
 * @param {import('./measures.mjs').Outcome} outcome
 */
export function isMet({ of, atLeast = -Infinity, atMost = Infinity }, outcome) {
  return outcome[of] >= atLeast && outcome[of] <= atMost;
}
