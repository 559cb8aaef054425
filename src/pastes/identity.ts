// Who is calling: from the fingerprint that a request presents to a tier. Whether a presented fingerprint may count at
// all (proxy secret, form) is decided in http/forwarded.ts before. The decisions' "Identity and trust of headers" is
// the source.

import { ANONYMOUS, type Caller, clientKey } from '../core/callers.ts';
import type { Log, LogDetails } from '../core/events.ts';
import { Refusal } from '../core/refusals.ts';
import { type Awaitable, type Clock, MINUTE_SECONDS, unixSeconds } from '../core/time.ts';
import { issuedSerial } from '../crypto/presented.ts';
import { createSlidingWindow } from '../limits/sliding-window.ts';
import { StoreError } from '../store/failures.ts';
import type {
  AuditEvent, AuditStore, AuthorityStore, Certificate, CertificateStore,
} from '../store/store.ts';

/**
 * Whoever holds a revoked key can call for ever; the audit log notes so many of its calls a minute and client address.
 */
const FAILURES_NOTED = 60;
const FAILURE_CLIENTS = 1000;

/** Who calls, with the certificate in DER where the whole of it was shown. */
export interface Presenter extends Requester {
  readonly certificate?: Uint8Array | undefined;
}

export interface Identity {
  /**
   * The tier of a request. A certificate of this service that is revoked, has expired or is not on record makes it
   * anonymous, and is audited: revoking must end what a stolen key can do. Any other fingerprint owns what was created
   * with it.
   */
  callerOf(presenter: Presenter): Awaitable<Caller>;
}

export function createIdentity(parts: {
  certificates: Pick<CertificateStore, 'findByFingerprint' | 'findBySerial'>;
  authority: Pick<AuthorityStore, 'find'>;
  auditLog: AuditStore;
  audit: Audit;
  clock: Clock;
}): Identity {
  const { certificates, authority, auditLog, audit, clock } = parts;
  /** Of certificates that were verified. A connection shows the same bytes with each of its requests. */
  const serials = new WeakMap<Uint8Array, string | null>();
  const windowMs = MINUTE_SECONDS * 1000;
  const failures = createSlidingWindow({ windowMs, maxKeys: FAILURE_CLIENTS, cleanupThreshold: 1 });

  async function noteFailure(requester: Requester, reason: 'revoked' | 'expired' | 'unknown'): Promise<void> {
    const key = clientKey(requester.clientAddress ?? '');
    if (!failures.take(key, FAILURES_NOTED, clock.monotonicMs()).allowed) return;
    const event = audit.event('auth_failure', 'failure', requester, { fingerprint: requester.fingerprint, reason });
    audit.announce(event);
    // The log line stands even where the storage fails; the caller is anonymous either way, and reads must stay up.
    await auditLog.record(event).catch((error: unknown) => {
      if (!(error instanceof StoreError)) throw error;
    });
  }

  async function holderOf(presented: string, { certificate: shown, clientAddress }: Presenter): Promise<Caller> {
    const known = await certificates.findByFingerprint(presented);
    const serial = known === undefined && shown !== undefined ? await serialOf(shown) : null;
    const certificate = known ?? (serial === null ? undefined : await certificates.findBySerial(serial));
    if (certificate === undefined && serial === null) return { tier: 'untrusted', fingerprint: presented };
    const fingerprint = certificate?.fingerprint ?? presented;
    const status = certificate === undefined ? 'unknown' : statusOf(certificate, unixSeconds(clock));
    if (status === 'valid') return { tier: certificate?.isAdmin === true ? 'admin' : 'trusted', fingerprint };
    await noteFailure({ fingerprint, clientAddress }, status);
    return ANONYMOUS;
  }

  /**
   * Null unless our authority signed it. Whoever has a certificate can rewrite its ECDSA signature (r, s) into
   * (r, n - s), which is as good: another fingerprint of the same certificate. So one of ours whose fingerprint is not
   * known goes by its serial.
   */
  async function serialOf(certificate: Uint8Array): Promise<string | null> {
    const verified = serials.get(certificate);
    if (verified !== undefined) return verified;
    const issuer = await authority.find();
    const serial = (issuer && issuedSerial(certificate, issuer.certificate)) ?? null;
    serials.set(certificate, serial);
    return serial;
  }

  return {
    callerOf: (presenter) => (
      presenter.fingerprint === null ? ANONYMOUS : holderOf(presenter.fingerprint, presenter)
    ),
  };
}

export type CertificateStatus = 'valid' | 'revoked' | 'expired';

/** `expired` is never stored: it is a matter of the moment. */
export function statusOf(certificate: Certificate, nowSeconds: number): CertificateStatus {
  if (certificate.revokedAt !== null) return 'revoked';
  return certificate.expiresAt <= nowSeconds ? 'expired' : 'valid';
}

/** The fingerprint of a caller who has one. */
export function requireIdentity(caller: Caller): string {
  if (caller.fingerprint === null) throw new Refusal('identityRequired', { hint: 'present a client certificate' });
  return caller.fingerprint;
}

export function requireAdmin(caller: Caller): void {
  requireIdentity(caller);
  if (caller.tier !== 'admin') throw new Refusal('adminRequired');
}

// What the service must be able to answer for: events with who caused them, in the audit log and among the log lines.
// An event that records a change is stored by the store's call for that change; here it is only made, and announced
// when it has happened.

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
