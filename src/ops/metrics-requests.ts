// The durations of requests as a histogram by route and class of status. Runs with every request: everything is
// allocated beforehand, and no text is made before someone asks for it.

import type { ObserveRequest } from '../core/metrics.ts';
import type { Histogram } from './metrics-table.ts';
import { headerLines, sampleLine } from './metrics-text.ts';

/** Of every route that is not in the table, and of every status that is none. */
const NONE = '-';

const STATUS_CLASSES = [NONE, '1xx', '2xx', '3xx', '4xx', '5xx'];

export interface RequestDurations {
  readonly observe: ObserveRequest;
  /** The whole metric; routes and classes that never occurred are left out. */
  render(): string;
}

export function createRequestDurations(metric: Histogram, routes: readonly string[]): RequestDurations {
  const { name, bucketSeconds, labelNames: [routeLabel, statusLabel] } = metric;
  const routePatterns = [NONE, ...new Set(routes)];
  const indexOfRoute = new Map(routePatterns.map((route, index) => [route, index]));
  const bounds = Float64Array.from([...bucketSeconds, Infinity]);
  const seriesCount = routePatterns.length * STATUS_CLASSES.length;
  // Not cumulative: one bucket changes with a request, and they are added up when they are shown.
  const buckets = new Float64Array(seriesCount * bounds.length);
  const sums = new Float64Array(seriesCount);

  function observe(route: string, status: number, seconds: number): void {
    const statusClass = status >= 100 && status < 600 ? Math.floor(status / 100) : 0;
    const series = (indexOfRoute.get(route) ?? 0) * STATUS_CLASSES.length + statusClass;
    let bucket = 0;
    while (seconds > bounds[bucket]!) bucket += 1;
    buckets[series * bounds.length + bucket]! += 1;
    sums[series]! += seconds;
  }

  function seriesLines(series: number, labels: Readonly<Record<string, string>>): string {
    let lines = '';
    let count = 0;
    for (const [index, bound] of bounds.entries()) {
      count += buckets[series * bounds.length + index]!;
      const le = bound === Infinity ? '+Inf' : String(bound);
      lines += sampleLine(`${name}_bucket`, { ...labels, le }, count);
    }
    if (count === 0) return '';
    return lines + sampleLine(`${name}_sum`, labels, sums[series]!) + sampleLine(`${name}_count`, labels, count);
  }

  return {
    observe,
    render: () => {
      let text = headerLines(metric);
      for (const [routeIndex, route] of routePatterns.entries()) {
        for (const [classIndex, statusClass] of STATUS_CLASSES.entries()) {
          const labels = { [routeLabel]: route, [statusLabel]: statusClass };
          text += seriesLines(routeIndex * STATUS_CLASSES.length + classIndex, labels);
        }
      }
      return text;
    },
  };
}
