// Row 16: half of what the service can do, for a long time: memory, descriptors and the write-ahead log stay what they
// are after the first while, and the file becomes small again when everything in it has expired.

import { statSync } from 'node:fs';
import { createClient } from './client.ts';
import { descriptorsOf, memoryOf, metricsAt, readMetrics } from './gauges.ts';
import { startPart } from './part.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';
import type { Soaked, SoakOptions } from './soak-load.ts';

/** Of a unit: what it takes to know what the service can do, and the load itself. */
const CAPACITY_SECONDS = { quick: 1, full: 10 };
const SOAK_SECONDS = { quick: 2, full: 30 * 60 };
const TTL_SECONDS = { quick: 3, full: 60 };
const SAMPLES = 60;

const CONNECTIONS = 16;
const MIB = 2 ** 20;

/** Connections of the load come and go with the time-outs. */
const MORE_DESCRIPTORS = 8;

/** What is left of a file of which everything has expired: empty tables, and free pages at its end. */
const LEFT_BYTES = MIB;

export const soakRow: Row = {
  name: '16',
  title: 'half of what the service can do, for a long time',
  target: '30 min; longer with more units',
  units: 1,
  bars: { 'MiB more memory': 32, 'WAL MiB': 64, 'event loop p99 ms': 50 },
  async run(unit) {
    const service = await unit.start({ folder: unit.folder, environment: metricsAt(unit.folder) });
    const load = { port: service.port(), connections: CONNECTIONS, ttlSeconds: TTL_SECONDS[unit.effort] };
    const capacity = await measureCapacity(unit, load);
    const perSecond = Math.max(1, Math.floor(capacity / 2));
    unit.most('requests a second', perSecond);
    await readMetrics(unit.folder);
    const options: SoakOptions = { ...load, seed: unit.seed, perSecond };
    const soaking = await startPart<SoakOptions, Soaked>('./soak-load.ts', options);
    await watch(unit, service);
    judgeLoad(unit, await soaking.end());
    unit.most('event loop p99 ms', (await readMetrics(unit.folder)).eventLoopP99Ms);
    await shrink(unit, service);
  },
};

async function measureCapacity(unit: Unit, load: Omit<SoakOptions, 'seed' | 'perSecond'>): Promise<number> {
  const options: SoakOptions = { ...load, seed: unit.seed + 1_000_000, perSecond: 0 };
  const part = await startPart<SoakOptions, Soaked>('./soak-load.ts', options);
  await new Promise((resolve) => setTimeout(resolve, CAPACITY_SECONDS[unit.effort] * 1000));
  const soaked = await part.end();
  judgeLoad(unit, soaked);
  return soaked.requests / soaked.seconds;
}

/** The last third against the one before: what fills up once at the beginning is not growth. */
async function watch(unit: Unit, service: Service): Promise<void> {
  const resident: number[] = [];
  const descriptors: number[] = [];
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    await new Promise((resolve) => setTimeout(resolve, (SOAK_SECONDS[unit.effort] * 1000) / SAMPLES));
    resident.push(memoryOf(service.pid()).residentMib);
    descriptors.push(descriptorsOf(service.pid()));
    unit.most('WAL MiB', sizeOf(`${service.databasePath}-wal`) / MIB);
    unit.most('file MiB', sizeOf(service.databasePath) / MIB);
  }
  const third = SAMPLES / 3;
  const grown = (values: readonly number[]): number => {
    return middle(values.slice(-third)) - middle(values.slice(third, 2 * third));
  };
  unit.most('memory MiB', Math.max(...resident));
  unit.most('MiB more memory', Math.max(0, grown(resident)));
  unit.most('descriptors', Math.max(...descriptors));
  if (grown(descriptors) > MORE_DESCRIPTORS) unit.lose('descriptors are not given back', descriptors);
}

function middle(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? 0;
}

function judgeLoad(unit: Unit, { requests, wrong }: Soaked): void {
  unit.count('requests', requests);
  if (requests === 0 || Object.keys(wrong).length > 0) unit.lose('answers that must not be', wrong);
}

/** The server itself looks every hour; who does not want to wait stops it and asks for the same work. */
async function shrink(unit: Unit, service: Service): Promise<void> {
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
  if (leftBytes > LEFT_BYTES) unit.lose(`${leftBytes} bytes are left when everything has expired`);
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
