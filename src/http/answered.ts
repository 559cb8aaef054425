// What is noted of each answer, whoever wrote it: one line of the log, and the metrics. Never in them: the path itself, since the id of a paste is a
// capability.

import type { Log } from '../core/log.ts';
import { countNothing, observeNothing, type Count, type ObserveRequest } from '../core/metrics.ts';
import type { RefusalName } from '../core/refusals.ts';

export interface AnsweredRequest {
  /** `-` for what could not be parsed. */
  readonly method: string;
  /** The pattern of the route's path, such as `/{id}/raw`; `-` when none matched. */
  readonly route: string;
  readonly status: number;
  /** Of the body, as far as they were handed to the socket. */
  readonly bytes: number;
  readonly ms: number;
  readonly requestId: string;
  readonly clientIp: string;
  readonly fingerprint: string | null;
  /** Why the service said no; undefined when it did not. */
  readonly refusal: RefusalName | undefined;
}

export type NoteAnswered = (answered: AnsweredRequest) => void;

/** Where requests are counted; a listener that is not worth counting has none. */
export interface RequestMetrics {
  readonly count: Count;
  readonly observeRequest: ObserveRequest;
}

const NO_METRICS: RequestMetrics = { count: countNothing, observeRequest: observeNothing };

export function createNoteAnswered(
  log: Log,
  metrics: RequestMetrics = NO_METRICS,
  onStorageFull: () => void = () => {},
): NoteAnswered {
  return (answered) => {
    logRequest(log, answered);
    metrics.observeRequest(answered.route, answered.status, answered.ms / 1000);
    if (answered.refusal !== undefined) metrics.count('refusals', answered.refusal);
    if (answered.refusal === 'storageFull') onStorageFull();
  };
}

function logRequest(log: Log, answered: AnsweredRequest): void {
  const { method, route, status, bytes, ms, requestId, clientIp, fingerprint } = answered;
  const details = { method, route, status, bytes, ms: Math.round(ms * 10) / 10, request_id: requestId };
  const entry = { level: 'info', logger: 'http', event: 'request', clientIp, details } as const;
  log(fingerprint === null ? entry : { ...entry, clientId: fingerprint });
}
