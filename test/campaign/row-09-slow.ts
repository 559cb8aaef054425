// Row 9: slow clients in great number, like those of slowhttptest, from one address and from many. Other clients must
// be answered all the same, and the slow ones ended before long.

import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from './client.ts';
import { kernelTcpMib, metricsAt, readMetrics } from './gauges.ts';
import { startPart } from './part.ts';
import type { Probed, ProberOptions } from './prober.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';
import type { AttackKind, Attacked, AttackOptions } from './slow-attack.ts';

const KINDS: readonly AttackKind[] = ['headers', 'body', 'read', 'range'];

/** Attackers come from one address, which may have 50 connections, from as many as they need, or from a proxy's. */
const WAYS = ['one address', 'many addresses', 'a trusted address'] as const;
type Way = (typeof WAYS)[number];

const CONNECTIONS = { quick: 120, full: 1000 };
const SECONDS = { quick: 1, full: 60 };
const CONTENT_BYTES = 8 * 2 ** 20;

/**
 * Ten seconds for a head, and for a body at the slowest rate. The longest lasting reader takes something in its tenth
 * second, which may earn it thirty more, and 64 KiB twenty seconds later, which earn four at 16 KiB/s. It is
 * checked once a second: one passes before the first check and one before the last. One more is for a busy machine.
 */
const LONGEST_MS = 47_000;

/** For a service to let go of the connections that attackers have closed. */
const LET_GO_MS = 10_000;

export const slowRow: Row = {
  name: '9',
  title: 'slow heads, slow bodies, slow readers and ranges, from one address and from many, beside other clients',
  target: '4 kinds x 3 ways, 1 000 connections, 60 s each',
  units: KINDS.length * WAYS.length,
  least: ['others answered'],
  bars: { 'others p99 ms': 100, 'event loop p99 ms': 100 },
  async run(unit) {
    noteKernel(unit);
    if (unit.effort === 'quick') {
      await attackOnce(unit, 'headers', 'one address');
      return attackOnce(unit, 'read', 'many addresses');
    }
    const kind = KINDS[(unit.seed - 1) % KINDS.length]!;
    await attackOnce(unit, kind, WAYS[Math.floor((unit.seed - 1) / KINDS.length) % WAYS.length]!);
  },
};

/**
 * What a stalled reader has not taken waits in the kernel, up to megabytes for each reader, and then the kernel is
 * short of memory for every connection (tcp(7), `tcp_mem`). scripts/deploy/sysctl.conf bounds it.
 */
function noteKernel(unit: Unit): void {
  const bound = Number(readFileSync('/proc/sys/net/ipv4/tcp_notsent_lowat', 'utf8'));
  const isBound = bound <= 2 ** 20;
  const consequence = isBound ? 'bounds what stalled readers leave' : 'bounds nothing here';
  unit.note(`net.ipv4.tcp_notsent_lowat is ${bound}, which ${consequence}`);
  unit.most('unsent KiB allowed', bound / 1024);
}

async function attackOnce(unit: Unit, kind: AttackKind, way: Way): Promise<void> {
  const folder = join(unit.folder, `${kind} ${way}`.replaceAll(' ', '-'));
  mkdirSync(folder);
  // No address on loopback is a proxy, except in the way that tries a trusted address.
  const trust = way === 'a trusted address' ? {} : { SERVICE_TRUSTED_PROXIES: '192.0.2.1' };
  const limits = { SERVICE_MAX_ANON: String(CONTENT_BYTES) };
  const service = await unit.start({ folder, environment: { ...metricsAt(folder), ...trust, ...limits } });
  const path = await storedPath(service);
  const paths = ['/health', '/'];
  const probing: ProberOptions = { port: service.port(), localAddress: '127.0.0.2', paths, intervalMs: 20 };
  const prober = await startPart<ProberOptions, Probed>('./prober.ts', probing);
  const name = `${kind}, ${way}`;
  unit.count(name, CONNECTIONS[unit.effort]);
  // This reading takes the delay of the start out of the next one.
  await readMetrics(folder);
  await attack(unit, name, { kind, way, service, path });
  unit.most('event loop p99 ms', (await readMetrics(folder)).eventLoopP99Ms);
  unit.most('TCP memory MiB afterwards', kernelTcpMib());
  await expectLetGo(unit, name, folder);
  judgeOthers(unit, name, await prober.end());
  if (!service.isAlive()) unit.lose(`${name}: the process ended`, service.output().slice(-2000));
  await service.kill();
}

async function storedPath(service: Service): Promise<string> {
  const client = createClient(service.port());
  const body = Buffer.alloc(CONTENT_BYTES, 'something to read slowly. ');
  const answer = await client.ask({ method: 'POST', path: '/', body });
  client.close();
  return `/${(JSON.parse(String(answer?.body)) as { id: string }).id}/raw`;
}

async function attack(
  unit: Unit,
  name: string,
  { kind, way, service, path }: { kind: AttackKind; way: Way; service: Service; path: string },
): Promise<void> {
  const many = Array.from({ length: 40 }, (_, index) => `127.0.1.${index + 1}`);
  const addresses = way === 'many addresses' ? many : ['127.0.0.3'];
  const options: AttackOptions = { kind, port: service.port(), connections: CONNECTIONS[unit.effort], addresses, path };
  const attacker = await startPart<AttackOptions, Attacked>('./slow-attack.ts', options);
  await new Promise((resolve) => setTimeout(resolve, SECONDS[unit.effort] * 1000));
  const { refused, ended, longestMs } = await attacker.end();
  unit.count('refused', refused);
  unit.count('ended', ended);
  // A range attacker sends a whole request every second, is answered every second, and may stay.
  if (kind !== 'range') unit.most('an attacker lasted ms', longestMs);
  if (kind !== 'range' && longestMs > LONGEST_MS) unit.lose(`${name}: an attacker lasted ${longestMs} ms`);
  if (way === 'one address' && refused === 0) unit.lose(`${name}: none was refused`);
}

/** The attack shows that the service ends attackers. Here they have ended, and none of their connections may stay. */
async function expectLetGo(unit: Unit, name: string, folder: string): Promise<void> {
  const overMs = performance.now();
  const mostOthers = 8;
  for (;;) {
    const { connectionsOpen } = await readMetrics(folder);
    const waitedMs = performance.now() - overMs;
    if (connectionsOpen <= mostOthers) return unit.most('gone after ms', waitedMs);
    if (waitedMs > LET_GO_MS) return unit.lose(`${name}: ${connectionsOpen} connections are left`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

function judgeOthers(unit: Unit, name: string, { answered, failures, p99Ms, mostMs, ownP99Ms }: Probed): void {
  unit.count('others answered', answered);
  unit.most('others p99 ms', p99Ms);
  unit.most('others ms', mostMs);
  unit.most('their own delay p99 ms', ownP99Ms);
  const isFailure = answered === 0 || Object.keys(failures).length > 0;
  if (isFailure) unit.lose(`${name}: others were not answered`, { answered, failures });
}
