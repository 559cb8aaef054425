// Row 11: wrong passwords from 500 connections at once. Guesses that are too many are told to come back later, and
// clients that ask for something else do not notice.

import { createClient, type Client } from './client.ts';
import { metricsAt, readMetrics } from './gauges.ts';
import { startPart } from './part.ts';
import type { Flooded, FloodOptions } from './password-flood.ts';
import type { Probed, ProberOptions } from './prober.ts';
import type { Row, Unit } from './row.ts';

const CONNECTIONS = 500;
const SECONDS = { quick: 1, full: 60 };
const PATIENCE_MS = 30_000;
const CONTENT = 'what the password protects';

export const passwordsRow: Row = {
  name: '11',
  title: 'wrong passwords from 500 connections for 60 s',
  target: 'once',
  units: 1,
  least: ['wrong passwords', 'told to come back', 'others answered'],
  bars: { 'others p99 ms': 50 },
  async run(unit) {
    const service = await unit.start({ folder: unit.folder, environment: metricsAt(unit.folder) });
    const port = service.port();
    const client = createClient(port);
    const store = async (headers: Record<string, string>): Promise<string> => {
      const answer = await client.ask({ method: 'POST', path: '/', headers, body: Buffer.from(CONTENT) });
      return `/${(JSON.parse(String(answer?.body)) as { id: string }).id}/raw`;
    };
    const path = await store({ 'X-Paste-Password': 'the password' });
    const open = await store({});
    const paths = ['/health', open, '/', '/challenge'];
    const probing: ProberOptions = { port, localAddress: '127.0.0.2', paths, intervalMs: 10 };
    const prober = await startPart<ProberOptions, Probed>('./prober.ts', probing);
    await readMetrics(unit.folder);
    const flooding: FloodOptions = { port, connections: CONNECTIONS, path };
    const flood = await startPart<FloodOptions, Flooded>('./password-flood.ts', flooding);
    await new Promise((resolve) => setTimeout(resolve, SECONDS[unit.effort] * 1000));
    unit.most('event loop p99 ms', (await readMetrics(unit.folder)).eventLoopP99Ms);
    const { outcomes } = await flood.end();
    judgeFlood(unit, outcomes);
    judgeOthers(unit, await prober.end());
    await openAfterwards(unit, client, path);
    client.close();
  },
};

/** A client with the right password has to come back as told, while the last guesses are being checked. */
async function openAfterwards(unit: Unit, client: Client, path: string): Promise<void> {
  const asked = { method: 'GET', path, headers: { 'X-Paste-Password': 'the password' } };
  const startedMs = performance.now();
  for (;;) {
    const answer = await client.ask(asked);
    const waitedMs = performance.now() - startedMs;
    if (answer?.status === 200 && String(answer.body) === CONTENT) return unit.most('the right password ms', waitedMs);
    if (answer?.status !== 503 || waitedMs > PATIENCE_MS) return unit.lose('it is not opened afterwards', answer?.status);
    await new Promise((resolve) => setTimeout(resolve, 1000 * Number(answer.headers['retry-after'])));
  }
}

/** Each guess was checked, or told to come back because the queue was full. */
function judgeFlood(unit: Unit, outcomes: Flooded['outcomes']): void {
  const { '403': wrong = 0, '503 after 1': shed = 0, ...others } = outcomes;
  unit.count('wrong passwords', wrong);
  unit.count('told to come back', shed);
  if (wrong === 0 || shed === 0) unit.lose('the flood was none', outcomes);
  if (Object.keys(others).length > 0) unit.lose('other answers than 403, and 503 with Retry-After', others);
}

function judgeOthers(unit: Unit, { answered, failures, p50Ms, p99Ms, mostMs, ownP99Ms }: Probed): void {
  unit.count('others answered', answered);
  unit.most('others p50 ms', p50Ms);
  unit.most('others p99 ms', p99Ms);
  unit.most('others ms', mostMs);
  unit.most('their own delay p99 ms', ownP99Ms);
  if (answered === 0 || Object.keys(failures).length > 0) unit.lose('others were not answered', { answered, failures });
}
