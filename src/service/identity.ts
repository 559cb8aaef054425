// Who is calling: from the fingerprint that a request presents to a tier. Whether a presented fingerprint may count at all (proxy
// secret, form) is decided in http/forwarded.ts before. The decisions' "Identity and trust of headers" is the source.

import { clientKey } from '../core/client-key.ts';
import { Refusal } from '../core/refusals.ts';
import type { Awaitable } from '../core/awaitable.ts';
import { ANONYMOUS, type Caller } from '../core/tiers.ts';
import { MINUTE_SECONDS, unixSeconds, type Clock } from '../core/time.ts';
import { createSlidingWindow } from '../limits/sliding-window.ts';
import type { Certificate, CertificateStore } from '../store/pki-store.ts';
import { StoreError, type AuditStore } from '../store/store.ts';
import type { Audit, Requester } from './audit.ts';

/** Whoever holds a revoked key can call for ever; the audit log notes so many of its calls a minute and client address. */
const FAILURES_NOTED = 60;
const FAILURE_CLIENTS = 1000;

export interface Identity {
  /**
   * The tier of a request. A certificate of this service that is revoked or has expired makes it anonymous, and is audited: revoking
   * must end what a stolen key can do. Any other fingerprint owns what was created with it.
   */
  callerOf(requester: Requester): Awaitable<Caller>;
}

export function createIdentity(parts: {
  certificates: CertificateStore;
  auditLog: AuditStore;
  audit: Audit;
  clock: Clock;
}): Identity {
  const { certificates, auditLog, audit, clock } = parts;
  const failures = createSlidingWindow({ windowMs: MINUTE_SECONDS * 1000, maxKeys: FAILURE_CLIENTS, cleanupThreshold: 1 });

  async function noteFailure(requester: Requester, reason: 'revoked' | 'expired'): Promise<void> {
    const key = clientKey(requester.clientAddress ?? '');
    if (!failures.take(key, FAILURES_NOTED, clock.monotonicMs()).allowed) return;
    const event = audit.event('auth_failure', 'failure', requester, { fingerprint: requester.fingerprint, reason });
    audit.announce(event);
    // The log line stands even where the storage fails; the caller is anonymous either way, and reads must stay up.
    await auditLog.record(event).catch((error: unknown) => {
      if (!(error instanceof StoreError)) throw error;
    });
  }

  async function holderOf(fingerprint: string, requester: Requester): Promise<Caller> {
    const certificate = await certificates.findByFingerprint(fingerprint);
    if (certificate === undefined) return { tier: 'untrusted', fingerprint };
    const status = statusOf(certificate, unixSeconds(clock));
    if (status === 'valid') return { tier: certificate.isAdmin ? 'admin' : 'trusted', fingerprint };
    await noteFailure(requester, status);
    return ANONYMOUS;
  }

  return {
    callerOf: (requester) => (
      requester.fingerprint === null ? ANONYMOUS : holderOf(requester.fingerprint, requester)
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
