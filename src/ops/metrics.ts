// What the service does, in numbers for Prometheus: counters that the parts raise, and gauges that are read when
// someone asks. Loaded only where a listener for metrics is set up: that listener is http/metrics-listener.ts.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { VERSION } from '../config/settings.ts';
import { type Count, DELETION_REASONS, DUPLICATE_OUTCOMES, type ObserveRequest, RATE_LIMITS } from '../core/events.ts';
import { REFUSALS } from '../core/refusals.ts';

type Type = 'counter' | 'gauge' | 'summary' | 'histogram';

/** `values` are all values of the label, never what a client sends; without a label there is one value, empty. */
function metric(type: Type, name: string, help: string, label = '', values: readonly string[] = ['']) {
  return { type, name, help, label, values };
}

type Metric = ReturnType<typeof metric>;

/** Every metric, in the order in which they are shown; named as Prometheus' "Metric and label naming" asks. */
export const METRICS = {
  requestDuration: metric('histogram', 'pasted_http_request_duration_seconds',
    'Time from the headers of a request to the end of its answer, by route and class of status.'),

  pastesCreated: metric('counter', 'pasted_pastes_created_total', 'Pastes stored.'),
  pastesAccessed: metric('counter', 'pasted_pastes_accessed_total',
    'Reads of a paste, of its metadata or its content.'),
  pastesDeleted: metric('counter', 'pasted_pastes_deleted_total', 'Pastes removed, by reason.',
    'reason', DELETION_REASONS),
  rateLimitHits: metric('counter', 'pasted_rate_limit_hits_total', 'Requests refused by a rate limit.',
    'limit', RATE_LIMITS),
  proofOfWork: metric('counter', 'pasted_proof_of_work_total',
    'Proof-of-work looked at: accepted, or the refusal; both where another request spends it meanwhile.',
    'outcome', ['accepted', ...Object.keys(REFUSALS).filter((name) => name.startsWith('pow'))]),
  duplicateChecks: metric('counter', 'pasted_duplicate_checks_total', 'Pastes looked at by the duplicate throttle.',
    'outcome', DUPLICATE_OUTCOMES),
  refusals: metric('counter', 'pasted_refusals_total', 'Requests refused, by refusal.',
    'refusal', Object.keys(REFUSALS)),

  databaseBytes: metric('gauge', 'pasted_database_bytes', 'Size of the database file.'),
  walBytes: metric('gauge', 'pasted_wal_bytes', 'Size of the write-ahead log.'),
  pastesStored: metric('gauge', 'pasted_pastes_stored', 'Pastes in the database.'),
  contentBytesStored: metric('gauge', 'pasted_content_bytes_stored', 'Content of all pastes together.'),
  quotaBytesUsed: metric('gauge', 'pasted_quota_bytes_used', 'What counts against SERVICE_MAX_STORAGE.'),
  // Prometheus reserves the label `quantile` for summaries, which need no sum and count.
  eventLoopDelaySeconds: metric('summary', 'pasted_event_loop_delay_seconds',
    'How late the event loop was, by quantile.', 'quantile', ['0.5', '0.99']),
  writerQueueLength: metric('gauge', 'pasted_writer_queue_length', 'Commands that wait for the writer thread.'),
  passwordChecksRunning: metric('gauge', 'pasted_password_checks_running', 'Password checks in progress.'),
  passwordChecksWaiting: metric('gauge', 'pasted_password_checks_waiting', 'Password checks that wait for their turn.'),
  certificates: metric('gauge', 'pasted_certificates', 'Client certificates, by status.',
    'status', ['valid', 'revoked', 'expired']),
  authorityExpiry: metric('gauge', 'pasted_ca_expiry_timestamp_seconds',
    'Unix time at which the certificate of the authority expires; absent without an authority.'),
  connectionsOpen: metric('gauge', 'pasted_connections_open', 'Open connections of clients.'),
  buildInfo: metric('gauge', 'pasted_build_info', 'Always 1; the label says which release runs.', 'version', [VERSION]),
};

/** One number, or one for each value of the metric's label; null when there is nothing to say. */
type Reading = number | null | Readonly<Record<string, number>>;

/** No reader may take long: the answer waits for all. One that throws, or rejects, leaves its metric out of it. */
type Reader = () => Reading | Promise<Reading>;

export type GaugeReaders = Readonly<
  Record<Exclude<keyof typeof METRICS, Parameters<Count>[0] | 'requestDuration' | 'buildInfo'>, Reader>
>;

export type Metrics = ReturnType<typeof createMetrics>;

/** `routes` are the patterns of all routes' paths; they may repeat. */
export function createMetrics({ routes, readers }: { routes: readonly string[]; readers: GaugeReaders }) {
  const metrics = Object.entries<Metric>(METRICS);
  const durations = createDurations(routes);
  const counters = new Map(metrics.filter(([, { type }]) => type === 'counter')
    .map(([name, { values }]) => [name, Object.fromEntries(values.map((value) => [value, 0]))]));
  const gauges = new Map<string, Reader>(Object.entries({ ...readers, buildInfo: () => ({ [VERSION]: 1 }) }));

  async function textOf([name, metric]: [string, Metric]): Promise<string> {
    if (metric.type === 'histogram') return durations.render();
    try {
      return valueText(metric, counters.get(name) ?? await gauges.get(name)?.() ?? null);
    } catch {
      // Nothing at all: an absent metric raises an alert, and a wrong one does not.
      return '';
    }
  }

  const count: Count = (name, value: string = '', amount = 1) => {
    const values = counters.get(name);
    if (values !== undefined && Object.hasOwn(values, value)) values[value]! += amount;
  };
  return {
    count,
    observeRequest: durations.observe,
    /** Every metric in the text format of Prometheus. Never rejects. */
    render: async () => (await Promise.all(metrics.map(textOf))).join(''),
  };
}

function valueText(metric: Metric, reading: Reading): string {
  if (reading === null) return '';
  let text = headerLines(metric);
  for (const value of metric.values) {
    const number = typeof reading === 'number' ? reading : reading[value];
    const labels = metric.label === '' ? {} : { [metric.label]: value };
    if (number !== undefined) text += sampleLine(metric.name, labels, number);
  }
  return text;
}

/** The label of every route that is not in the table, and of every status that is none. */
const NONE = '-';

const STATUS_CLASSES = [NONE, '1xx', '2xx', '3xx', '4xx', '5xx'];

/** Upper bounds of the buckets in seconds, ascending: the last takes all that is above the others. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, Infinity];

/** A histogram by route and class of status. It runs with every request, and so allocates everything beforehand. */
function createDurations(routes: readonly string[]) {
  // Buckets are not cumulative: one changes with a request, and they are added up when they are shown.
  const series = new Map([NONE, ...routes].map((route) => [route, STATUS_CLASSES.map((status) => (
    { labels: { route, status }, buckets: new Float64Array(BOUNDS.length), sum: 0 }
  ))]));

  const observe: ObserveRequest = (route, status, seconds) => {
    const statusClass = status >= 100 && status < 600 ? Math.floor(status / 100) : 0;
    const observed = (series.get(route) ?? series.get(NONE)!)[statusClass]!;
    observed.buckets[BOUNDS.findIndex((bound) => seconds <= bound)]! += 1;
    observed.sum += seconds;
  };

  /** Routes and classes that never occurred are left out. */
  function render(): string {
    const { name } = METRICS.requestDuration;
    let text = headerLines(METRICS.requestDuration);
    for (const { labels, buckets, sum } of [...series.values()].flat()) {
      const count = buckets.reduce((before, inBucket) => before + inBucket);
      if (count === 0) continue;
      let upToBound = 0;
      for (const [index, bound] of BOUNDS.entries()) {
        upToBound += buckets[index]!;
        text += sampleLine(`${name}_bucket`, { ...labels, le: bound === Infinity ? '+Inf' : String(bound) }, upToBound);
      }
      text += sampleLine(`${name}_sum`, labels, sum) + sampleLine(`${name}_count`, labels, count);
    }
    return text;
  }

  return { observe, render };
}

/** Like all above, by Prometheus' "Exposition formats", version 0.0.4. Help and labels are ours: no escaping needed. */
export function headerLines({ name, type, help }: Pick<Metric, 'name' | 'type' | 'help'>): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

export function sampleLine(name: string, labels: Readonly<Record<string, string>>, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`;
}

const RESOLUTION_MS = 10;

/** How late the event loop is, as node measures it: seconds beyond the timer's own time, since the last reading. */
export function measureEventLoopDelay() {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  const secondsAt = (percentile: number) => Math.max(0, histogram.percentile(percentile) / 1e9 - RESOLUTION_MS / 1000);
  return {
    read: () => {
      const delays = { '0.5': secondsAt(50), '0.99': secondsAt(99) };
      histogram.reset();
      return delays;
    },
    stop: (): void => void histogram.disable(),
  };
}
