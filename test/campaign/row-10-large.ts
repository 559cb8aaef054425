// Row 10: readers of a large paste who take nothing, and large uploads, all at once: memory stays bounded by the chunk
// and not by the pastes, and everyone else is served.

import { createClient } from './client.ts';
import { memoryOf, metricsAt, readMetrics } from './gauges.ts';
import type { Transferred, TransferOptions } from './large-transfers.ts';
import { startPart } from './part.ts';
import type { Probed, ProberOptions } from './prober.ts';
import type { Row, Unit } from './row.ts';

const MIB = 2 ** 20;
const READERS = { quick: 20, full: 200 };
const UPLOADS = { quick: 10, full: 100 };
const CONTENT_MIB = { quick: 6, full: 50 };

const ADDRESSES = Array.from({ length: 20 }, (_, index) => `127.0.2.${index + 1}`);

export const largeRow: Row = {
  name: '10',
  title: '200 stalled readers of 50 MiB and 100 uploads of 50 MiB at once',
  target: 'once',
  units: 1,
  least: ['readers', 'uploads', 'others answered'],
  bars: { 'memory MiB': 256, 'event loop p99 ms': 50 },
  async run(unit) {
    const contentBytes = CONTENT_MIB[unit.effort] * MIB;
    const limits = { SERVICE_MAX_ANON: String(contentBytes), SERVICE_TRUSTED_PROXIES: '192.0.2.1' };
    const service = await unit.start({ folder: unit.folder, environment: { ...metricsAt(unit.folder), ...limits } });
    const port = service.port();
    const path = await storedPath(port, contentBytes);
    const probing: ProberOptions = { port, localAddress: '127.0.0.2', paths: ['/health', '/'], intervalMs: 20 };
    const prober = await startPart<ProberOptions, Probed>('./prober.ts', probing);
    const transfer = { port, path, addresses: ADDRESSES, bytes: contentBytes };
    // This reading takes the delay of the start out of the next one.
    await readMetrics(unit.folder);
    const stalling: TransferOptions = { ...transfer, kind: 'stall', connections: READERS[unit.effort] };
    const readers = await startPart<TransferOptions, Transferred>('./large-transfers.ts', stalling);
    const uploading: TransferOptions = { ...transfer, kind: 'upload', connections: UPLOADS[unit.effort] };
    const uploads = await startPart<TransferOptions, Transferred>('./large-transfers.ts', uploading);
    const startedMs = performance.now();
    const { outcomes } = await uploads.result;
    unit.most('uploads took ms', performance.now() - startedMs);
    const { eventLoopP99Ms } = await readMetrics(unit.folder);
    unit.most('event loop p99 ms', eventLoopP99Ms);
    unit.most('memory MiB', memoryOf(service.pid()).peakMib);
    judgeReaders(unit, (await readers.end()).outcomes);
    judgeUploads(unit, outcomes);
    judgeOthers(unit, await prober.end());
    if (!service.isAlive()) unit.lose('the process ended', service.output().slice(-2000));
  },
};

async function storedPath(port: number, bytes: number): Promise<string> {
  const client = createClient(port);
  const body = Buffer.alloc(bytes, 'something large to read. ');
  const answer = await client.ask({ method: 'POST', path: '/', body });
  client.close();
  return `/${(JSON.parse(String(answer?.body)) as { id: string }).id}/raw`;
}

function judgeReaders(unit: Unit, { '200': begun = 0, ended = 0, ...others }: Transferred['outcomes']): void {
  unit.count('readers', Math.min(begun, READERS[unit.effort]));
  unit.count('readers ended', ended);
  const isWhole = begun >= READERS[unit.effort] && Object.keys(others).length === 0;
  if (!isWhole) unit.lose('not every reader was given the content', { begun, ended, ...others });
}

function judgeUploads(unit: Unit, outcomes: Transferred['outcomes']): void {
  unit.count('uploads', outcomes['201'] ?? 0);
  if (outcomes['201'] !== UPLOADS[unit.effort]) unit.lose('not every upload was taken', outcomes);
}

export function judgeOthers(unit: Unit, { answered, failures, p99Ms, mostMs }: Probed): void {
  unit.count('others answered', answered);
  unit.most('others p99 ms', p99Ms);
  unit.most('others ms', mostMs);
  if (answered === 0 || Object.keys(failures).length > 0) unit.lose('others were not answered', { answered, failures });
}
