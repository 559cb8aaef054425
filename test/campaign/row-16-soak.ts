// Row 16: half of what the service can do, for a long time, with all that happens in a day. After the first while,
// memory, descriptors, the file, the write-ahead log and the time of an answer stay what they are, and the file becomes
// small again when all in it has expired. A unit is ten minutes; in one sitting the same process serves all its units.

import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createClient } from './client.ts';
import { descriptorsOf, memoryOf, metricsAt, readMetrics } from './gauges.ts';
import { startPart } from './part.ts';
import type { Probed, ProberOptions } from './prober.ts';
import type { Row, Sample, Unit } from './row.ts';
import type { Service } from './service.ts';
import type { Soaked, SoakOptions } from './soak-load.ts';

/** For measuring what the service can do, for one unit of the load, and for one sample. */
const CAPACITY_SECONDS = { quick: 1, full: 10 };
const UNIT_SECONDS = { quick: 2, full: 600 };
const SAMPLE_SECONDS = { quick: 1, full: 30 };
const TTL_SECONDS = { quick: 3, full: 60 };

/** By the clock, so that their number does not depend on what the service can do. */
const UPLOAD_SECONDS = { quick: 1, full: 20 };
const REGISTRATION_SECONDS = { quick: 1, full: 10 };

/** A backup in the middle of every sixth unit, which is once an hour. Settings are read again in every unit. */
const BACKUP_UNITS = { quick: 1, full: 6 };

const CONNECTIONS = 16;
const PROBE_MS = 10;
const MIB = 2 ** 20;

/** With fewer samples, growth cannot be told from warming up. */
const FEWEST_SAMPLES = 30;

/** Connections of the load come and go with the time-outs. */
const MORE_DESCRIPTORS = 8;

/** An hour from one removal to the next, and the time that it takes. */
const REMOVED_WITHIN_SECONDS = 3600 + 120;

/** What is left of the file when all in it has expired: empty tables, free pages at its end, and certificates. */
const LEFT_BYTES = MIB;
const CERTIFICATE_BYTES = 4096;

export const soakRow: Row = {
  name: '16',
  title: 'half of what the service can do, for a long time',
  target: '8 h of a mixed day',
  units: 48,
  least: ['requests', 'uploads', 'registrations', 'reloads'],
  bars: { 'MiB more memory': 32, 'ms more p99': 10, 'WAL MiB': 64, 'event loop p99 ms': 50 },
  async run(unit) {
    const service = await unit.start({ folder: unit.folder, environment: metricsAt(unit.folder) });
    const load = loadOf(unit, service);
    const perSecond = Math.max(1, Math.floor(await measureCapacity(unit, load) / 2));
    unit.most('requests a second', perSecond);
    const path = await storeProbed(service);
    const { requests } = await readMetrics(unit.folder);
    const day: Day = { unit, service, load, path, samples: [], startedSeconds: Date.now() / 1000, before: requests };
    let registrations = 0;
    for (let index = 0; index === 0 || unit.goesOn(); index += 1) {
      registrations += await soakUnit(day, perSecond, index);
    }
    judgeGrowth(day);
    await shrink(unit, service, registrations);
  },
};

interface Day {
  readonly unit: Unit;
  readonly service: Service;
  readonly load: Omit<SoakOptions, 'seed' | 'perSecond'>;
  /** Of a paste that stays. */
  readonly path: string;
  readonly samples: Sample[];
  /** The start in Unix seconds, and how many requests there were before it. */
  readonly startedSeconds: number;
  readonly before: number;
}

function loadOf({ effort }: Unit, service: Service): Day['load'] {
  return {
    port: service.port(),
    connections: CONNECTIONS,
    ttlSeconds: TTL_SECONDS[effort],
    uploadSeconds: UPLOAD_SECONDS[effort],
    registrationSeconds: REGISTRATION_SECONDS[effort],
  };
}

async function storeProbed(service: Service): Promise<string> {
  const client = createClient(service.port());
  const answer = await client.ask({ method: 'POST', path: '/', body: Buffer.from('read again\n'.repeat(100)) });
  client.close();
  return `/${(JSON.parse(String(answer?.body)) as { id: string }).id}/raw`;
}

async function measureCapacity(unit: Unit, load: Day['load']): Promise<number> {
  const options: SoakOptions = { ...load, seed: unit.seed + 1_000_000, perSecond: 0 };
  const part = await startPart<SoakOptions, Soaked>('./soak-load.ts', options);
  await new Promise((resolve) => setTimeout(resolve, CAPACITY_SECONDS[unit.effort] * 1000));
  const soaked = await part.end();
  judgeLoad(unit, soaked);
  return soaked.requests / soaked.seconds;
}

/** Resolves with how many certificates it registered. */
async function soakUnit(day: Day, perSecond: number, index: number): Promise<number> {
  const { unit, service, load } = day;
  const options: SoakOptions = { ...load, seed: unit.seed + index, perSecond };
  const soaking = await startPart<SoakOptions, Soaked>('./soak-load.ts', options);
  const samples = UNIT_SECONDS[unit.effort] / SAMPLE_SECONDS[unit.effort];
  for (let sample = 0; sample < samples; sample += 1) {
    if (sample === 0) await reload(unit, service);
    const isBackedUp = sample === Math.floor(samples / 2) && index % BACKUP_UNITS[unit.effort] === 0;
    await takeSample(day, isBackedUp);
  }
  const soaked = await soaking.end();
  judgeLoad(unit, soaked);
  judgeRemoval(day);
  return soaked.registrations;
}

/** If expired pastes stayed, the file would go on growing after the first hour. */
function judgeRemoval({ unit, service }: Day): void {
  using db = new DatabaseSync(service.databasePath, { readOnly: true, timeout: 5000 });
  const before = Math.floor(Date.now() / 1000) - REMOVED_WITHIN_SECONDS;
  const left = Number(db.prepare('SELECT count(*) AS n FROM pastes WHERE expires_at < :before').get({ before })?.['n']);
  if (left > 0) unit.lose(`${left} pastes are there that expired ${REMOVED_WITHIN_SECONDS} s ago`);
}

async function reload(unit: Unit, service: Service): Promise<void> {
  const done = service.says(/\breloaded\b/);
  process.kill(service.pid(), 'SIGHUP');
  await done;
  unit.count('reloads');
}

/** A process of its own measures how long a stranger waits for an answer meanwhile, with or without a backup. */
async function takeSample(day: Day, isBackedUp: boolean): Promise<void> {
  const { unit, service, path, samples } = day;
  const seconds = SAMPLE_SECONDS[unit.effort];
  const startedMs = performance.now();
  const prober = await startPart<ProberOptions, Probed>('./prober.ts', {
    port: service.port(), localAddress: '127.0.0.1', paths: [path], intervalMs: PROBE_MS,
  });
  if (isBackedUp) await backUp(unit, service);
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, seconds * 1000 - (performance.now() - startedMs))));
  const { answered, failures, p50Ms, p99Ms } = await prober.end();
  if (answered === 0 || Object.keys(failures).length > 0) unit.lose('a stranger was not answered', failures);
  const { eventLoopP99Ms, requests } = await readMetrics(unit.folder);
  const sample = {
    sitting: day.startedSeconds,
    seconds: Date.now() / 1000 - day.startedSeconds,
    requests: requests - day.before,
    p50Ms,
    p99Ms,
    eventLoopP99Ms,
    memoryMib: memoryOf(service.pid()).residentMib,
    descriptors: descriptorsOf(service.pid()),
    fileMib: sizeOf(service.databasePath) / MIB,
    walMib: sizeOf(`${service.databasePath}-wal`) / MIB,
    backups: Number(isBackedUp),
  };
  unit.sample(sample);
  samples.push(sample);
  unit.most('memory MiB', sample.memoryMib);
  unit.most('file MiB', sample.fileMib);
  unit.most('WAL MiB', sample.walMib);
  unit.most('descriptors', sample.descriptors);
  unit.most('event loop p99 ms', eventLoopP99Ms);
}

async function backUp(unit: Unit, service: Service): Promise<void> {
  const file = join(unit.folder, 'backup.db');
  const { status, output } = await service.beginCommand(['backup', file]).ended;
  if (status !== 0) unit.lose(`backup ended with ${status}`, output);
  rmSync(file, { force: true });
  unit.count('backups');
}

/** Compares the last third of a sitting with the middle one: what fills up once at the beginning is not growth. */
function judgeGrowth({ unit, samples }: Day): void {
  if (samples.length < FEWEST_SAMPLES) return;
  const third = Math.floor(samples.length / 3);
  const grown = (name: string): number => {
    const middleOf = (part: readonly Sample[]): number => {
      return part.map((sample) => sample[name]!).sort((one, other) => one - other)[Math.floor(part.length / 2)]!;
    };
    return Math.max(0, middleOf(samples.slice(-third)) - middleOf(samples.slice(third, 2 * third)));
  };
  // A sitting that was too short says nothing about growth, and is not counted.
  unit.count('sittings judged for growth');
  unit.most('MiB more memory', grown('memoryMib'));
  unit.most('ms more p99', grown('p99Ms'));
  if (grown('descriptors') > MORE_DESCRIPTORS) unit.lose('descriptors are not given back', samples.at(-1));
}

function judgeLoad(unit: Unit, { requests, wrong, uploads, registrations }: Soaked): void {
  unit.count('requests', requests);
  unit.count('uploads', uploads);
  unit.count('registrations', registrations);
  if (requests === 0 || Object.keys(wrong).length > 0) unit.lose('answers that must not be', wrong);
}

/** The service removes what has expired once an hour; instead of waiting, this stops it and runs `prune`. */
async function shrink(unit: Unit, service: Service, registrations: number): Promise<void> {
  const client = createClient(service.port());
  const health = await client.ask({ method: 'GET', path: '/health' });
  client.close();
  if (health?.status !== 200) unit.lose('not well afterwards', health?.status);
  await service.stop();
  await new Promise((resolve) => setTimeout(resolve, (TTL_SECONDS[unit.effort] + 1) * 1000));
  const { status, output } = service.command(['prune']);
  if (status !== 0) unit.lose(`prune ended with ${status}`, output);
  const leftBytes = sizeOf(service.databasePath) + sizeOf(`${service.databasePath}-wal`);
  unit.most('KiB left', leftBytes / 1024);
  const bound = LEFT_BYTES + registrations * CERTIFICATE_BYTES;
  if (leftBytes > bound) unit.lose(`${leftBytes} bytes are left when everything has expired, more than ${bound}`);
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
