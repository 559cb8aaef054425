// Who is calling, from a fingerprint to a tier, after the decisions' "Identity and trust of headers"; and the audit log
// of who did what. Whether the fingerprint of a request may count at all is decided in http/forwarded.ts.

import { ANONYMOUS, type Caller, clientKey } from '../core/callers.ts';
import { type AuditEventName, expected, type Log, type LogDetails } from '../core/events.ts';
import { Refusal } from '../core/refusals.ts';
import { type Awaitable, type Clock, MINUTE_SECONDS, unixSeconds } from '../core/time.ts';
import { SlidingWindow } from '../limits/windows.ts';
import type { Store } from '../store/open.ts';
import { type AuditEvent, type Certificate, StoreError } from '../store/store.ts';

/** Who is named in the audit log. The operator has no address, and no fingerprint or `operator` in its place. */
export type Requester = Readonly<Record<'fingerprint' | 'clientAddress', string | null>>;

/** What a request presents, not looked up yet; the certificate in DER where the whole of it was shown. */
type Presenter = Requester & { readonly certificate?: Uint8Array | undefined };

/** Audited a minute of one fingerprint, and from one address: whoever has a revoked key can call for ever. */
const FAILURES_NOTED = 60;
const FAILURE_WINDOW = { windowMs: MINUTE_SECONDS * 1000, maxKeys: 1000, cleanupThreshold: 1 };

interface IdentityParts {
  readonly store: Pick<Store, 'read' | 'run'>;
  readonly audit: Audit;
  readonly clock: Clock;
}

export class Identity {
  readonly #parts: IdentityParts;
  /** By certificate, null for those of others. A connection shows the same bytes with each of its requests. */
  readonly #serials = new WeakMap<Uint8Array, string | null>();
  readonly #failuresOf = new SlidingWindow(FAILURE_WINDOW);
  readonly #failuresFrom = new SlidingWindow(FAILURE_WINDOW);

  constructor(parts: IdentityParts) {
    this.#parts = parts;
  }

  /** Anonymous with a certificate of this service that is not valid: revoking must end what a stolen key can do. */
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

  /** Null unless our authority signed it. (r, n - s) is as good an ECDSA signature as (r, s): another fingerprint. */
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

  /** What it renews was valid until now. */
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
    // In this order: a fingerprint that has had its share takes no place of an address.
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

/** `expired` is never stored: it is a matter of the moment. */
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
    /** Once the event has been stored. */
    announce: ({ event, outcome, clientId, clientIp, details }: AuditEvent): void => {
      const level = outcome === 'success' ? 'info' : 'warning';
      const client = { ...(clientId !== null && { clientId }), ...(clientIp !== null && { clientIp }) };
      log({ level, logger: 'audit', event, outcome, ...client, details });
    },
  };
}
