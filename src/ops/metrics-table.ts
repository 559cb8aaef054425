// Every metric there is: its name, type, meaning and labels, in the order in which they are shown. Names and units as
// Prometheus' "Metric and label naming" asks. Where the numbers come from is metrics.ts.

import {
  DELETION_REASONS,
  DUPLICATE_OUTCOMES,
  RATE_LIMITS,
  WORK_OUTCOMES,
  type CounterName,
} from '../core/metrics.ts';
import { REFUSALS } from '../core/refusals.ts';
import { VERSION } from '../version.ts';

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
