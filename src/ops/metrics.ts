// What the service does, in numbers for Prometheus: counters that the parts raise, and gauges that are read when
// someone asks. Which metrics there are is the table below; who may ask, and how, is http/servers.ts.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import {
  type Count, type CounterName, DELETION_REASONS, DUPLICATE_OUTCOMES, type ObserveRequest, RATE_LIMITS,
  WORK_OUTCOMES,
} from '../core/events.ts';
import { REFUSALS } from '../core/refusals.ts';
import { VERSION } from '../version.ts';

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
  /** Every metric in the text format of Prometheus. Never rejects. */
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

// The durations of requests as a histogram by route and class of status. Runs with every request: everything is
// allocated beforehand, and no text is made before someone asks for it.

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

// Every metric there is: its name, type, meaning and labels, in the order in which they are shown. Names and units as
// Prometheus' "Metric and label naming" asks. Where the numbers come from is metrics.ts.

/** A label with every value that it can have: nothing that a client sends is ever among them. */
export interface Label {
  readonly name: string;
  readonly values: readonly string[];
}

export interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'summary' | 'histogram';
  /** One line. */
  readonly help: string;
  /** Undefined where there is one series only. */
  readonly label?: Label;
}

export interface Histogram extends Metric {
  readonly type: 'histogram';
  /** Upper bounds, ascending; everything above the last is counted too. */
  readonly bucketSeconds: readonly number[];
  /** Of the route's pattern and of the class of the status, such as `2xx`. */
  readonly labelNames: readonly [string, string];
}

export type GaugeName =
  | 'databaseBytes'
  | 'walBytes'
  | 'pastesStored'
  | 'contentBytesStored'
  | 'quotaBytesUsed'
  | 'eventLoopDelaySeconds'
  | 'writerQueueLength'
  | 'passwordChecksRunning'
  | 'passwordChecksWaiting'
  | 'certificates'
  | 'authorityExpiry'
  | 'connectionsOpen'
  | 'buildInfo';

type MetricsTable =
  & { readonly requestDuration: Histogram }
  & Readonly<Record<CounterName, Metric>>
  & Readonly<Record<GaugeName, Metric>>;

function counter(name: string, help: string, label?: Label): Metric {
  return { name, type: 'counter', help, ...(label === undefined ? {} : { label }) };
}

function gauge(name: string, help: string, label?: Label): Metric {
  return { name, type: 'gauge', help, ...(label === undefined ? {} : { label }) };
}

export const METRICS: MetricsTable = {
  requestDuration: {
    name: 'pasted_http_request_duration_seconds',
    type: 'histogram',
    help: 'Time from the headers of a request to the end of its answer, by route and class of status.',
    bucketSeconds: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    labelNames: ['route', 'status'],
  },

  pastesCreated: counter('pasted_pastes_created_total', 'Pastes stored.'),
  pastesAccessed: counter('pasted_pastes_accessed_total', 'Reads of a paste, of its metadata or its content.'),
  pastesDeleted: counter('pasted_pastes_deleted_total', 'Pastes removed, by reason.',
    { name: 'reason', values: DELETION_REASONS }),
  rateLimitHits: counter('pasted_rate_limit_hits_total', 'Requests refused by a rate limit.',
    { name: 'limit', values: RATE_LIMITS }),
  proofOfWork: counter('pasted_proof_of_work_total', 'Proof-of-work looked at: accepted, or the refusal.',
    { name: 'outcome', values: WORK_OUTCOMES }),
  duplicateChecks: counter('pasted_duplicate_checks_total', 'Pastes looked at by the duplicate throttle.',
    { name: 'outcome', values: DUPLICATE_OUTCOMES }),
  refusals: counter('pasted_refusals_total', 'Requests refused, by refusal.',
    { name: 'refusal', values: Object.keys(REFUSALS) }),

  databaseBytes: gauge('pasted_database_bytes', 'Size of the database file.'),
  walBytes: gauge('pasted_wal_bytes', 'Size of the write-ahead log.'),
  pastesStored: gauge('pasted_pastes_stored', 'Pastes in the database.'),
  contentBytesStored: gauge('pasted_content_bytes_stored', 'Content of all pastes together.'),
  quotaBytesUsed: gauge('pasted_quota_bytes_used', 'What counts against SERVICE_MAX_STORAGE.'),
  // Prometheus reserves the label `quantile` for summaries; without a sum and a count it is still a whole one.
  eventLoopDelaySeconds: {
    name: 'pasted_event_loop_delay_seconds',
    type: 'summary',
    help: 'How late the event loop was, by quantile.',
    label: { name: 'quantile', values: ['0.5', '0.99'] },
  },
  writerQueueLength: gauge('pasted_writer_queue_length', 'Commands that wait for the writer thread.'),
  passwordChecksRunning: gauge('pasted_password_checks_running', 'Password checks in progress.'),
  passwordChecksWaiting: gauge('pasted_password_checks_waiting', 'Password checks that wait for their turn.'),
  certificates: gauge('pasted_certificates', 'Client certificates, by status.',
    { name: 'status', values: ['valid', 'revoked', 'expired'] }),
  authorityExpiry: gauge('pasted_ca_expiry_timestamp_seconds',
    'Unix time at which the certificate of the authority expires; absent without an authority.'),
  connectionsOpen: gauge('pasted_connections_open', 'Open connections of clients.'),
  buildInfo: gauge('pasted_build_info', 'Always 1; the label says which release runs.',
    { name: 'version', values: [VERSION] }),
};

// The Prometheus text format, version 0.0.4 ("Exposition formats", "Text format details"). Does not know which metrics
// there are.

/** The lines that precede a metric's samples. */
export function headerLines({ name, type, help }: Metric): string {
  return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`;
}

/** One sample. `labels` are names with values; the values are escaped here. */
export function sampleLine(name: string, labels: Readonly<Record<string, string>>, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeValue(text)}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`;
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeValue(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}

// How long the event loop was held up, as node measures it. One histogram for the life of the process.

const RESOLUTION_MS = 10;
const NANOSECONDS = 1e9;

export interface EventLoopDelay {
  /** Seconds beyond the timer's own time, since the last reading. */
  read(): { readonly '0.5': number; readonly '0.99': number };
  stop(): void;
}

export function measureEventLoopDelay(): EventLoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  const secondsAt = (percentile: number): number =>
    histogram.count === 0 ? 0 : Math.max(0, histogram.percentile(percentile) / NANOSECONDS - RESOLUTION_MS / 1000);
  return {
    read: () => {
      const delays = { '0.5': secondsAt(50), '0.99': secondsAt(99) };
      histogram.reset();
      return delays;
    },
    stop: () => {
      histogram.disable();
    },
  };
}
