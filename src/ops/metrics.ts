// What the service does, in numbers for Prometheus: counters that the parts raise, and gauges that are read when
// someone asks. Which metrics there are is metrics-table.ts; who may ask, and how, is http/metrics-server.ts.

import type { Count, CounterName, ObserveRequest } from '../core/metrics.ts';
import { VERSION } from '../version.ts';
import { METRICS, type GaugeName, type Metric } from './metrics-table.ts';
import { createRequestDurations } from './metrics-requests.ts';
import { headerLines, sampleLine } from './metrics-text.ts';

/** Reads a gauge at the moment of the call. One that throws, or rejects, leaves its metric out of that answer. */
export type Read<Value> = () => Value | Promise<Value>;

/** Where the gauges come from. None of them may take long: whoever asks waits for all. */
export interface GaugeReaders {
  readonly databaseBytes: Read<number>;
  readonly walBytes: Read<number>;
  readonly pastesStored: Read<number>;
  readonly contentBytesStored: Read<number>;
  readonly quotaBytesUsed: Read<number>;
  /** Seconds by quantile. */
  readonly eventLoopDelaySeconds: Read<{ readonly '0.5': number; readonly '0.99': number }>;
  readonly writerQueueLength: Read<number>;
  readonly passwordChecksRunning: Read<number>;
  readonly passwordChecksWaiting: Read<number>;
  /** How many of each status. */
  readonly certificates: Read<{ readonly valid: number; readonly revoked: number; readonly expired: number }>;
  /** Unix seconds; null when there is no authority. */
  readonly authorityExpiry: Read<number | null>;
  readonly connectionsOpen: Read<number>;
}

export interface Metrics {
  readonly count: Count;
  readonly observeRequest: ObserveRequest;
  /** Every metric in the text format of metrics-text.ts. Never rejects. */
  render(): Promise<string>;
}

export interface MetricsParts {
  /** The patterns of all routes' paths; they may repeat. */
  readonly routes: readonly string[];
  readonly readers: GaugeReaders;
}

/** One number, or one for each value of the metric's label; null when there is nothing to say. */
type Reading = number | null | Readonly<Record<string, number>>;

/** The values of a metric by those of its label; by NO_LABEL where it has none. */
type Values = ReadonlyMap<string, number>;

const NO_LABEL = '';

export function createMetrics({ routes, readers }: MetricsParts): Metrics {
  const metrics = Object.entries<Metric>(METRICS);
  const durations = createRequestDurations(METRICS.requestDuration, routes);
  const counters = new Map(metrics.filter(([, { type }]) => type === 'counter')
    .map(([name, { label }]) => [name, new Map((label?.values ?? [NO_LABEL]).map((value) => [value, 0]))]));
  const allReaders: Readonly<Record<GaugeName, Read<Reading>>> = { ...readers, buildInfo: () => ({ [VERSION]: 1 }) };
  const gauges = new Map(Object.entries(allReaders));

  function count(name: CounterName, labelValue: string = NO_LABEL, amount = 1): void {
    const values = counters.get(name);
    const before = values?.get(labelValue);
    if (before !== undefined) values?.set(labelValue, before + amount);
  }

  function lines(name: string, metric: Metric): string | Promise<string> {
    const counted = counters.get(name);
    if (counted !== undefined) return valueLines(metric, counted);
    const read = gauges.get(name);
    return read === undefined ? durations.render() : gaugeLines(metric, read);
  }

  return {
    count,
    observeRequest: durations.observe,
    render: async () => (await Promise.all(metrics.map(([name, metric]) => lines(name, metric)))).join(''),
  };
}

/** Nothing at all when it can't be read: an absent metric raises an alert, and a wrong one does not. */
async function gaugeLines(metric: Metric, read: Read<Reading>): Promise<string> {
  try {
    return valueLines(metric, valuesOf(metric, await read()));
  } catch {
    return '';
  }
}

/** The values of the label that the table has, as far as they were read. */
function valuesOf({ label }: Metric, reading: Reading): Values {
  if (reading === null) return new Map();
  if (typeof reading === 'number') return new Map([[NO_LABEL, reading]]);
  return new Map((label?.values ?? []).flatMap((value) => {
    const number = reading[value];
    return number === undefined ? [] : [[value, number]];
  }));
}

function valueLines(metric: Metric, values: Values): string {
  if (values.size === 0) return '';
  let text = headerLines(metric);
  for (const [value, number] of values) {
    text += sampleLine(metric.name, metric.label === undefined ? {} : { [metric.label.name]: value }, number);
  }
  return text;
}
