// What the service must be able to answer for: events with who caused them, in the audit log and among the log lines. An event that
// records a change is stored by the store's call for that change; here it is only made, and announced when it has happened.

import type { Log, LogDetails } from '../core/log.ts';
import { unixSeconds, type Clock } from '../core/time.ts';
import type { AuditEvent } from '../store/store.ts';

/** The contract's events and those of the decisions. */
export const AUDIT_EVENTS = ['cert_issued', 'cert_revoked', 'auth_failure', 'paste_deleted', 'admin_granted'] as const;

export type AuditEventName = (typeof AUDIT_EVENTS)[number];

/** Who a request comes from, as far as it is known. */
export interface Requester {
  readonly fingerprint: string | null;
  readonly clientAddress: string | null;
}

export interface Audit {
  /** An event of this moment. */
  event(name: AuditEventName, outcome: AuditEvent['outcome'], by: Requester, details: LogDetails): AuditEvent;
  /** Writes the log line of an event that has been stored. */
  announce(event: AuditEvent): void;
}

export function createAudit(parts: { clock: Clock; log: Log }): Audit {
  const { clock, log } = parts;
  return {
    event: (name, outcome, by, details) => ({
      time: unixSeconds(clock),
      event: name,
      outcome,
      clientId: by.fingerprint,
      clientIp: by.clientAddress,
      details,
    }),
    announce: ({ event, outcome, clientId, clientIp, details }) => {
      log({
        level: outcome === 'success' ? 'info' : 'warning',
        logger: 'audit',
        event,
        outcome,
        ...(clientId === null ? {} : { clientId }),
        ...(clientIp === null ? {} : { clientIp }),
        details,
      });
    },
  };
}
