// What a service says of itself on its listener of metrics, and what Linux says of its process.

import { readdirSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';

/** For the environment of a service whose metrics are read. */
export function metricsAt(folder: string): { SERVICE_METRICS_LISTEN: string } {
  return { SERVICE_METRICS_LISTEN: socketPath(folder) };
}

export interface Metrics {
  readonly connectionsOpen: number;
  /** Since the last reading. */
  readonly eventLoopP99Ms: number;
  /** Those that were answered since the service was started. */
  readonly requests: number;
}

/** `folder` as it was given to metricsAt. */
export async function readMetrics(folder: string): Promise<Metrics> {
  const text = await new Promise<string>((resolve, reject) => {
    get({ socketPath: socketPath(folder), path: '/metrics', agent: false }, (res) => {
      let body = '';
      res.setEncoding('utf8').on('data', (piece) => (body += piece)).on('end', () => resolve(body)).on('error', reject);
    }).on('error', reject);
  });
  const valueOf = (series: string): number => {
    const line = text.split('\n').find((one) => one.startsWith(`${series} `));
    if (line === undefined) throw new Error(`no ${series} in the metrics`);
    return Number(line.slice(series.length));
  };
  const counts = [...text.matchAll(/^pasted_http_request_duration_seconds_count\{.*\} (\d+)$/gm)];
  return {
    requests: counts.reduce((sum, [, count]) => sum + Number(count), 0),
    connectionsOpen: valueOf('pasted_connections_open'),
    eventLoopP99Ms: 1000 * valueOf('pasted_event_loop_delay_seconds{quantile="0.99"}'),
  };
}

function socketPath(folder: string): string {
  return join(folder, 'metrics');
}

/** `peakMib` is the most that it ever had resident. */
export function memoryOf(pid: number): { residentMib: number; peakMib: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mibOf = (name: string): number => {
    return Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(status)?.[1] ?? NaN) / 1024;
  };
  return { residentMib: mibOf('VmRSS'), peakMib: mibOf('VmHWM') };
}

/** What all connections of this host together keep in the kernel. Linux only. */
export function kernelTcpMib(): number {
  const pages = /^TCP: .*\bmem (\d+)$/m.exec(readFileSync('/proc/net/sockstat', 'utf8'))?.[1];
  return Number(pages) * 4096 / 2 ** 20;
}

/** Open descriptors. */
export function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
