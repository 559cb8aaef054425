// Who is calling, from a fingerprint to a tier, after the decisions' "Identity and trust of headers"; and the audit log
// of who did what. Whether the fingerprint of a request may count at all is decided in http/forwarded.ts.

import { ANONYMOUS, type Caller, clientKey } from '../core/callers.ts';
import { type AuditEventName, expected, type Log, type LogDetails } from '../core/events.ts';
import { Refusal } from '../core/refusals.ts';
import { type Awaitable, type Clock, MINUTE_SECONDS, unixSeconds } from '../core/time.ts';
import { SlidingWindow } from '../limits/windows.ts';
import type { Store } from '../store/open.ts';
import { type AuditEvent, type Certificate, StoreError } from '../store/store.ts';

/** Who is named in the audit log. The operator has no address; its fingerprint is null or `operator`. */
export type Requester = Readonly<Record<'fingerprint' | 'clientAddress', string | null>>;

/** What a request presents, before any lookup; with the certificate in DER if the whole of it was shown. */
type Presenter = Requester & { readonly certificate?: Uint8Array | undefined };

/** Failures audited per minute of one fingerprint, and from one address: a revoked key can be shown for ever. */
const FAILURES_NOTED = 60;
const FAILURE_WINDOW = { windowMs: MINUTE_SECONDS * 1000, maxKeys: 1000, cleanupThreshold: 1 };

interface IdentityParts {
  readonly store: Pick<Store, 'read' | 'run'>;
  readonly audit: Audit;
  readonly clock: Clock;
}

export class Identity {
  readonly #parts: IdentityParts;
  /** By certificate; null if our authority did not sign it. A connection shows the same bytes with each request. */
  readonly #serials = new WeakMap<Uint8Array, string | null>();
  readonly #failuresOf = new SlidingWindow(FAILURE_WINDOW);
  readonly #failuresFrom = new SlidingWindow(FAILURE_WINDOW);

  constructor(parts: IdentityParts) {
    this.#parts = parts;
  }

  /** A certificate of this service that is not valid makes its holder anonymous: revoking must disarm a stolen key. */
  callerOf(presenter: Presenter): Awaitable<Caller> {
    return presenter.fingerprint === null ? ANONYMOUS : this.#holderOf(presenter.fingerprint, presenter);
  }

  async #holderOf(presented: string, { certificate: shown, clientAddress }: Presenter): Promise<Caller> {
    const { store: { read }, clock } = this.#parts;
    let recorded = await read.findCertificate(presented);
    if (recorded === undefined) {
      const serial = shown === undefined ? null : await this.#serialOf(shown);
      if (serial === null) return { tier: 'untrusted', fingerprint: presented };
      recorded = await read.findCertificateBySerial(serial);
    }
    const fingerprint = recorded?.holder ?? presented;
    const status = recorded === undefined ? 'unknown' : statusOf(recorded, unixSeconds(clock));
    if (recorded !== undefined && status === 'valid') {
      if (recorded.isUnused) await this.#noteFirstUse(recorded, { fingerprint, clientAddress });
      return { tier: recorded.isAdmin ? 'admin' : 'trusted', fingerprint };
    }
    await this.#noteFailure({ fingerprint, clientAddress }, recorded?.fingerprint ?? presented, status);
    return ANONYMOUS;
  }

  /** Null unless our authority signed it. ECDSA takes (r, n - s) as well as (r, s), which changes the fingerprint. */
  async #serialOf(certificate: Uint8Array): Promise<string | null> {
    const verified = this.#serials.get(certificate);
    if (verified !== undefined) return verified;
    const issuer = await this.#parts.store.read.findAuthority();
    // Loaded already, by TLS or with the proxy secret: nothing else lets a whole certificate in.
    const { issuedSerial } = await import('../crypto/presented.ts');
    const serial = (issuer && issuedSerial(certificate, issuer.certificate)) ?? null;
    this.#serials.set(certificate, serial);
    return serial;
  }

  /** The certificate that this one renews was valid until now. */
  async #noteFirstUse({ serial, holder }: Certificate, by: Requester): Promise<void> {
    const { store, audit, clock } = this.#parts;
    const use = { serial, holder, nowSeconds: unixSeconds(clock), by: audit.event('cert_revoked', 'success', by, {}) };
    // If the storage fails both stay valid until it works again: reads must stay up.
    (await store.run('useCertificate', use).catch(noneIfStorageFails)).forEach(audit.announce);
  }

  async #noteFailure(requester: Requester, presented: string, reason: string): Promise<void> {
    const { store, audit, clock } = this.#parts;
    const { fingerprint, clientAddress } = requester;
    const nowMs = clock.monotonicMs();
    // In this order, so that a fingerprint past its limit uses up nothing of an address's limit.
    if (!this.#failuresOf.take(fingerprint ?? '', FAILURES_NOTED, nowMs).allowed) return;
    if (!this.#failuresFrom.take(clientKey(clientAddress ?? ''), FAILURES_NOTED, nowMs).allowed) return;
    const event = audit.event('auth_failure', 'failure', requester, { fingerprint: presented, reason });
    audit.announce(event);
    // If the storage fails there is still the log line; the caller is anonymous either way, and reads must stay up.
    await store.run('recordAudit', event).catch(noneIfStorageFails);
  }
}

function noneIfStorageFails(error: unknown): readonly AuditEvent[] {
  expected(StoreError, error);
  return [];
}

/** `expired` is never stored: it depends on the time of asking. */
export function statusOf(certificate: Certificate, nowSeconds: number): 'valid' | 'revoked' | 'expired' {
  if (certificate.revokedAt !== null) return 'revoked';
  return certificate.expiresAt <= nowSeconds ? 'expired' : 'valid';
}

export function requireIdentity(caller: Caller, hint = 'present a client certificate'): string {
  if (caller.fingerprint === null) throw new Refusal('identityRequired', { hint });
  return caller.fingerprint;
}

export function requireAdmin(caller: Caller): void {
  requireIdentity(caller);
  if (caller.tier !== 'admin') throw new Refusal('adminRequired');
}

export type Audit = ReturnType<typeof createAudit>;

/** Makes events and logs them; the store writes them, in the transaction of the change that they record. */
export function createAudit({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
  return {
    event: (name: AuditEventName, outcome: AuditEvent['outcome'], by: Requester, details: LogDetails): AuditEvent => {
      const { fingerprint: clientId, clientAddress: clientIp } = by;
      return { time: unixSeconds(clock), event: name, outcome, clientId, clientIp, details };
    },
    /** To be called once the event has been stored; for a failure, which changes nothing, before. */
    announce: ({ event, outcome, clientId, clientIp, details }: AuditEvent): void => {
      const level = outcome === 'success' ? 'info' : 'warning';
      const client = { ...(clientId !== null && { clientId }), ...(clientIp !== null && { clientIp }) };
      log({ level, logger: 'audit', event, outcome, ...client, details });
    },
  };
}
