// Row 20: bodies in the smallest pieces that HTTP and JSON allow, a hundred uploads at once. What row 10 requires with
// large pieces must hold with these too.

import { memoryOf, metricsAt, readMetrics } from './gauges.ts';
import { startPart } from './part.ts';
import type { Probed, ProberOptions } from './prober.ts';
import { judgeOthers } from './row-10-large.ts';
import type { Row, Unit } from './row.ts';
import type { TinyOptions, TinySent } from './tiny-pieces.ts';

const TINY_WAYS = ['packed bytes', 'lone bytes', 'escaped', 'lone escaped', 'forms'] as const;
export type TinyWay = (typeof TINY_WAYS)[number];

const CONNECTIONS = { quick: 6, full: 100 };
const SECONDS = { quick: 0, full: 30 };
const ADDRESSES = Array.from({ length: 20 }, (_, index) => `127.0.3.${index + 1}`);

/**
 * Packed bytes have a bar of their own: Node itself makes eleven thousand pieces of one read of 64 KiB, all at once,
 * which takes some 12 ms, and each of the hundred uploads may have such a read at the same time. Bare node:http takes
 * as long, so the service can only refuse such bodies early, which it does.
 */
export const tinyRow: Row = {
  name: '20',
  title: '100 uploads at once in chunks of a byte, in escaped JSON, in forms',
  target: '5 ways x 2, 100 uploads at once, 30 s each',
  units: 2 * TINY_WAYS.length,
  least: ['KiB read back', 'others answered'],
  bars: { 'memory MiB': 256, 'event loop p99 ms': 50, 'event loop p99 ms of packed bytes': 150 },
  async run(unit) {
    // No address on loopback is a proxy, so each has its share only. There is no minimum rate, because single bytes may
    // take long to send on the machine that also receives them: row 9 tries slow clients.
    const limits = { SERVICE_TRUSTED_PROXIES: '192.0.2.1', SERVICE_MIN_TRANSFER_RATE: '0' };
    const environment = { ...metricsAt(unit.folder), ...limits };
    const { port, pid, isAlive, output } = await unit.start({ folder: unit.folder, environment });
    const probing: ProberOptions = { port: port(), localAddress: '127.0.0.2', paths: ['/health', '/'], intervalMs: 20 };
    const prober = await startPart<ProberOptions, Probed>('./prober.ts', probing);
    // This reading takes the delay of the start out of the next one.
    await readMetrics(unit.folder);
    const ways = unit.effort === 'quick' ? TINY_WAYS : [TINY_WAYS[(unit.seed - 1) % TINY_WAYS.length]!];
    await sendIn(unit, ways, port());
    const { eventLoopP99Ms } = await readMetrics(unit.folder);
    unit.most(`event loop p99 ms${ways.includes('packed bytes') ? ' of packed bytes' : ''}`, eventLoopP99Ms);
    unit.most('memory MiB', memoryOf(pid()).peakMib);
    judgeOthers(unit, await prober.end());
    if (!isAlive()) unit.lose('the process ended', output().slice(-2000));
  },
};

async function sendIn(unit: Unit, ways: readonly TinyWay[], port: number): Promise<void> {
  const { effort } = unit;
  const load = { ways, port, connections: CONNECTIONS[effort], addresses: ADDRESSES, seconds: SECONDS[effort] };
  const sending = await startPart<TinyOptions, TinySent>('./tiny-pieces.ts', load);
  const { sent, wrong, bytes } = await sending.result;
  for (const [outcome, count] of Object.entries(sent)) unit.count(outcome, count);
  unit.count('KiB read back', Math.round(bytes / 1024));
  for (const way of ways) {
    const [told = 0, unheard = 0] = ['refused', 'unheard'].map((outcome) => sent[`${way}: ${outcome}`]);
    if (unheard > told) unit.lose(`${way}: ${unheard} were cut off before they were told, and ${told} were told`);
  }
  if (Object.keys(wrong).length > 0) unit.lose('bodies were not answered as they must be', wrong);
}
