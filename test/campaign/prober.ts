// The other clients, as a part of a row: a request by the clock, whatever has become of those before, in turn on
// connections that are kept and on new ones. It says how many were answered as they should be, and how long that took.

import { Agent, request } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { runPart } from './part.ts';

export interface ProberOptions {
  readonly port: number;
  /** An address of its own, so that it is a client of its own. */
  readonly localAddress: string;
  readonly paths: readonly string[];
  readonly intervalMs: number;
}

export interface Probed {
  readonly answered: number;
  /** By what happened instead. */
  readonly failures: Readonly<Record<string, number>>;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly mostMs: number;
  /** How late this process itself was: what it says of others is not more exact. */
  readonly ownP99Ms: number;
}

const PATIENCE_MS = 20_000;
const CONNECTIONS_KEPT = 4;
const RESOLUTION_MS = 5;

async function probe({ port, localAddress, paths, intervalMs }: ProberOptions, over: Promise<void>): Promise<Probed> {
  const kept = new Agent({ keepAlive: true, maxSockets: CONNECTIONS_KEPT });
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  const latencies: number[] = [];
  const failures: Record<string, number> = {};
  const underWay = new Set<Promise<void>>();
  let turn = 0;

  function ask(): void {
    const path = paths[turn % paths.length] ?? '/health';
    const agent = turn % 2 === 0 ? kept : false;
    turn += 1;
    const askedMs = performance.now();
    const asked = new Promise<string>((resolve) => {
      const req = request({ port, host: '127.0.0.1', localAddress, path, agent }, (res) => {
        res.resume().on('end', () => resolve(String(res.statusCode))).on('error', (error) => resolve(error.message));
      });
      req.setTimeout(PATIENCE_MS, () => req.destroy(new Error('nothing came')));
      req.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)).end();
    }).then((outcome) => {
      underWay.delete(asked);
      const ms = performance.now() - askedMs;
      // A request that waited for a connection to be free has no time-out of its own.
      const isAnswered = outcome === '200' && ms <= PATIENCE_MS;
      if (isAnswered) latencies.push(ms);
      else failures[outcome === '200' ? 'late' : outcome] = (failures[outcome === '200' ? 'late' : outcome] ?? 0) + 1;
    });
    underWay.add(asked);
  }

  delays.enable();
  // At least one request, even if the end comes before the clock's first turn, as it may on a busy machine.
  ask();
  const timer = setInterval(ask, intervalMs);
  await over;
  clearInterval(timer);
  await Promise.all(underWay);
  kept.destroy();
  latencies.sort((left, right) => left - right);
  const at = (share: number): number => {
    return latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  };
  return {
    answered: latencies.length,
    failures,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    mostMs: at(1),
    ownP99Ms: delays.percentile(99) / 1e6 - RESOLUTION_MS,
  };
}

await runPart(probe);
