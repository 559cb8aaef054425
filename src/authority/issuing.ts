// Client certificates: issued, registered, listed, revoked. The store decides which is the first, and so the admin's.
// The contract's "Certificate" states and the decisions' "PKI" are the source.

import type { Caller } from '../core/callers.ts';
import { Refusal } from '../core/refusals.ts';
import { type Clock, DAY_SECONDS, unixSeconds } from '../core/time.ts';
import { sha256 } from '../crypto/digest.ts';
import { fingerprintSha1 } from '../crypto/presented.ts';
import { WorkQueue } from '../limits/work-queue.ts';
import { type Challenges, inTurn } from '../pastes/admission.ts';
import { type Requester, requireIdentity, statusOf } from '../pastes/identity.ts';
import type { SharedParts } from '../pastes/parts.ts';
import { type Certificate, describe, type Issuance, type StoredAuthority, StoreError } from '../store/store.ts';
import type { SigningAuthority } from './authority.ts';
import { makeClientCertificate, makeSerial, type RevocationReason, validityFrom } from './certificates.ts';
import type { CertifiedKey } from './keys.ts';
import { type BundleRequest, BundleThread } from './pkcs12.ts';

/** The contract: issuing draws this many serials before it gives up. */
const SERIAL_ATTEMPTS = 5;

interface IssuingParts extends Pick<SharedParts, 'config' | 'store' | 'audit' | 'clock' | 'random' | 'log'> {
  /** Needed where a request has a `spend`. Absent for the operator, who does no work. */
  readonly challenges?: Pick<Challenges, 'refusal'>;
}

/** With `onlyFirst` it rejects with NotFirstError unless the certificate is the first ever, the admin's. */
export interface IssueRequest extends Pick<Issuance, 'spend' | 'invitation' | 'renews' | 'onlyFirst'> {
  readonly commonName: string;
  readonly key: CertifiedKey;
  readonly requester: Requester;
}

type MadeCertificate = Awaited<ReturnType<typeof make>>;

export type Issued = MadeCertificate & { readonly isAdmin: boolean };

export type CertificateRecord = Certificate & { readonly status: ReturnType<typeof statusOf> };

/** There was a certificate before the one that was to be the first, so nothing was issued. */
export class NotFirstError extends Error {}

/** `before` gets the certificate before it is recorded, so a `before` that fails leaves nothing behind. */
export async function issueCertificate(
  parts: IssuingParts, request: IssueRequest, authority: SigningAuthority,
  before?: (made: MadeCertificate) => Promise<void>,
): Promise<Issued> {
  try {
    // NSS would take the certificate for its own issuer, and for the issuer of the revocation list.
    const isIssuersName = request.renews === undefined && request.commonName === authority.commonName;
    if (isIssuersName) throw new Refusal('commonNameInvalid', { hint: 'this is the name of the authority' });
    for (let attempt = 1; attempt <= SERIAL_ATTEMPTS; attempt += 1) {
      const made = await make(parts, request.commonName, request.key, authority);
      await before?.(made);
      const isAdmin = await record(parts, made, request);
      if (isAdmin === undefined) continue;
      const { serial, createdAt, expiresAt } = made;
      if (expiresAt !== createdAt + parts.config.pkiCertDays * DAY_SECONDS) {
        // Its holder must renew sooner than the settings say, and the operator must renew the authority.
        const details = { serial, expires_at: expiresAt };
        parts.log({ level: 'warning', logger: 'pki', event: 'certificate ends with its CA', details });
      }
      return { ...made, isAdmin };
    }
    throw new Error(`no unused serial in ${SERIAL_ATTEMPTS} attempts`);
  } catch (error) {
    if (error instanceof Refusal || error instanceof StoreError || error instanceof NotFirstError) throw error;
    const details = { reason: describe(error) };
    parts.log({ level: 'error', logger: 'pki', event: 'issuance failed', outcome: 'failure', details });
    throw new Refusal('issuanceFailed');
  }
}

async function make(
  { config, clock, random }: IssuingParts, commonName: string, key: CertifiedKey, authority: SigningAuthority,
) {
  const createdAt = unixSeconds(clock);
  const validity = validityFrom(createdAt, config.pkiCertDays, authority);
  const serial = makeSerial(random);
  const certificate = await makeClientCertificate({ commonName, serial, validity, ...key }, authority);
  const fingerprint = fingerprintSha1(certificate);
  const publicKeySha256 = sha256(key.spki);
  return { serial, commonName, fingerprint, createdAt, expiresAt: validity.notAfter, publicKeySha256, certificate };
}

/** Whether it is the admin's; undefined when the serial is taken. */
async function record(
  { store, challenges, audit }: IssuingParts, { certificate: _, ...made }: MadeCertificate,
  { requester, spend, invitation, renews, onlyFirst = false }: IssueRequest,
): Promise<boolean | undefined> {
  const { commonName, fingerprint, expiresAt, serial } = made;
  const renewal = renews === undefined ? {} : { renews };
  const details = { type: 'client', common_name: commonName, fingerprint, expires_at: expiresAt, ...renewal };
  const issued = audit.event('cert_issued', 'success', requester, details);
  const granted = audit.event('admin_granted', 'success', requester, { serial, fingerprint });
  const certificate = { ...made, issuedTo: requester.fingerprint };
  const issuance = { certificate, spend, invitation, renews, onlyFirst, issued, granted };
  const outcome = await store.run('issueCertificate', issuance);
  const { refused } = outcome;
  if (refused === 'serialTaken') return undefined;
  if (refused === 'notFirst') throw new NotFirstError('a certificate was issued before');
  if (refused === 'powAlreadyUsed' || refused === 'powExpired') throw challenges!.refusal(refused, 'register');
  if (refused === 'invitationRequired') throw invitationRefused();
  if (refused !== null) throw new Refusal(refused, {}, { retryAfterSeconds: outcome.retryAfterSeconds });
  outcome.audited.forEach(audit.announce);
  return outcome.isAdmin;
}

export function invitationRefused(): Refusal {
  return new Refusal('invitationRequired', { hint: 'this one is unknown, was used, was withdrawn, or has expired' });
}

export function recordsOf(certificates: readonly Certificate[], clock: Clock): CertificateRecord[] {
  const nowSeconds = unixSeconds(clock);
  return certificates.map((certificate) => ({ ...certificate, status: statusOf(certificate, nowSeconds) }));
}

export function presentCertificate(record: CertificateRecord): object {
  const { serial, status, issuedTo, isAdmin } = record;
  return { serial, ...presentIssued(record), status, issued_to: issuedTo, is_admin: isAdmin };
}

/** What answers say in the same way of the authority's certificate and of those that it issues. */
export function presentIssued(
  { commonName, fingerprint, createdAt, expiresAt }: Omit<StoredAuthority, 'certificate' | 'lockedKey'>,
): object {
  return { common_name: commonName, fingerprint_sha1: fingerprint, created_at: createdAt, expires_at: expiresAt };
}

type Revoker = { readonly caller: Caller; readonly requester: Requester };

/** Also called before the body is read. A holder who repeats the call is anonymous by now, but sees it is revoked. */
export async function requireRevocable(
  { store }: Pick<IssuingParts, 'store'>, serial: string, { caller, requester }: Revoker,
): Promise<Certificate> {
  if (requester.fingerprint === null) requireIdentity(caller);
  const certificate = await store.read.findCertificateBySerial(serial);
  if (certificate !== undefined && certificate.revokedAt !== null) {
    const hint = 'one that took its place by renewal is revoked by itself: ask its holder, or the operator';
    throw new Refusal('certificateRevoked', certificate.revocationReason === 'superseded' ? { hint } : {});
  }
  const holder = requireIdentity(caller);
  if (certificate === undefined) throw new Refusal('certificateNotFound');
  if (certificate.issuedTo !== holder && certificate.holder !== holder) throw new Refusal('permissionDenied');
  return certificate;
}

/** Refuses a caller who neither obtained nor holds the certificate. */
export async function revokeCertificate(
  parts: Pick<IssuingParts, 'store' | 'audit' | 'clock'>, serial: string, revoker: Revoker,
  reason: RevocationReason | null,
): Promise<void> {
  const { store, audit, clock } = parts;
  const { fingerprint } = await requireRevocable(parts, serial, revoker);
  const revoked = audit.event('cert_revoked', 'success', revoker.requester, { serial, fingerprint });
  const outcome = await store.run('revokeCertificate', { serial, nowSeconds: unixSeconds(clock), reason, revoked });
  if (outcome.refused !== null) throw new Refusal(outcome.refused);
  outcome.audited.forEach(audit.announce);
}

/** Bundles without a password take a few milliseconds each. */
const BUNDLES_WAITING = 256;

/** A bundle with a password takes seconds of a thread, so one is made at a time and few wait. */
const SLOW_BUNDLES_WAITING = 4;
const BUNDLE_WAIT_MS = 30_000;

/** Makes bundles without holding up other requests. Those without a password do not wait for those with one. */
export class Bundles {
  readonly #quick: WorkQueue;
  readonly #slow: WorkQueue;
  readonly #closing = new AbortController();
  readonly #quickThread = new BundleThread(this.#closing.signal);
  readonly #slowThread = new BundleThread(this.#closing.signal);

  constructor(clock: Clock) {
    const waiting = { maxWaitMs: BUNDLE_WAIT_MS, clock };
    // With 2 the bundle thread has its next job when it ends one, even if this thread is busy at that moment.
    this.#quick = new WorkQueue({ ...waiting, concurrency: 2, maxWaiting: BUNDLES_WAITING });
    this.#slow = new WorkQueue({ ...waiting, concurrency: 1, maxWaiting: SLOW_BUNDLES_WAITING });
  }

  /** Refuses when too many wait. */
  async make(request: BundleRequest, clientAddress: string): Promise<Uint8Array> {
    if (request.password === '') return inTurn(this.#quick, clientAddress, () => this.#quickThread.make(request));
    // Few bundles have a password, so their thread ends with each.
    const thread = this.#slowThread;
    return inTurn(this.#slow, clientAddress, () => thread.make(request).finally(() => thread.close()));
  }

  /** Bundles that are not done by now fail. */
  close(): void {
    this.#closing.abort();
  }
}
