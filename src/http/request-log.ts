// One line of the log for each answer, whoever wrote it. Never in it: the path itself, since the id of a paste is a capability.

import type { Log } from '../core/log.ts';

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
}

export function logRequest(log: Log, answered: AnsweredRequest): void {
  const { method, route, status, bytes, ms, requestId, clientIp, fingerprint } = answered;
  log({
    level: 'info',
    logger: 'http',
    event: 'request',
    clientIp,
    ...(fingerprint === null ? {} : { clientId: fingerprint }),
    details: { method, route, status, bytes, ms: Math.round(ms * 10) / 10, request_id: requestId },
  });
}
