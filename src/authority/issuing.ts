// Client certificates: issuing, registering, listing, revoking. The bytes are made in crypto/; the one decision that
// counts, who is the first and so the admin, is made in the store. The contract's "Certificate" states and the
// decisions' "PKI" are the source.

import type { Config } from '../config/settings.ts';
import type { Caller } from '../core/callers.ts';
import type { Log } from '../core/events.ts';
import { Refusal } from '../core/refusals.ts';
import { type Clock, type RandomBytes, unixSeconds } from '../core/time.ts';
import { sha256 } from '../crypto/digest.ts';
import { fingerprintSha1 } from '../crypto/presented.ts';
import type { WorkQueue } from '../limits/work-queue.ts';
import type { Challenges, Work } from '../pastes/admission.ts';
import { type Audit, type CertificateStatus, type Requester, requireIdentity, statusOf } from '../pastes/identity.ts';
import { inTurn } from '../pastes/passwords.ts';
import type { CertificateStore } from '../store/open.ts';
import { type Certificate, type Listed, type Page, type SpentChallenge, StoreError } from '../store/store.ts';
import type { Authorities, SigningAuthority } from './authority.ts';
import { makeClientCertificate, makeSerial, type RevocationReason, validityFrom } from './certificates.ts';
import { CsrRefused, readCertificationRequest } from './csr.ts';
import { generateKeyPair, type PrivateKey, subjectPublicKeyInfo } from './keys.ts';
import { KdfQueueFull, type KdfThread } from './pkcs12-kdf-thread.ts';
import { type BundleProfile, makeBundle } from './pkcs12.ts';

/** The contract: a serial that is taken is drawn anew so often. */
const SERIAL_ATTEMPTS = 5;

/** A public key to certify, with its private key where the service made it. */
export interface CertifiedKey {
  readonly spki: Uint8Array;
  readonly privateKey?: PrivateKey;
}

export interface IssuedCertificate {
  readonly serial: string;
  readonly commonName: string;
  readonly fingerprint: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly isAdmin: boolean;
  /** DER. */
  readonly certificate: Uint8Array;
}

/** A certificate as it is at this moment. */
export interface CertificateRecord extends Certificate {
  readonly status: CertificateStatus;
}

export interface IssueRequest {
  readonly commonName: string;
  readonly key: CertifiedKey;
  readonly requester: Requester;
  readonly spend: SpentChallenge | null;
  /** Runs with the certificate before it is recorded: what fails here leaves nothing behind. */
  readonly before?: (certificate: Uint8Array) => Promise<void>;
  /** Issues only the first certificate ever, the admin's; else rejects with NotFirstError. */
  readonly onlyFirst?: boolean;
}

/** Some certificate was issued before the one that was to be the first; nothing was issued now. */
export class NotFirstError extends Error {
  override readonly name = 'NotFirstError';
}

export interface Certificates {
  issue(request: IssueRequest, authority: SigningAuthority): Promise<IssuedCertificate>;
  /** A page of those that the caller obtained or holds; none for the anonymous. */
  listOf(caller: Caller, page: Page): Promise<Listed<CertificateRecord>>;
  /**
   * Revokes a certificate that the caller obtained or holds. One that is revoked already is refused as such to whoever
   * presents a fingerprint, so that a holder who repeats the call sees it.
   */
  revoke(serial: string, revoker: Revoker, reason: RevocationReason | null): Promise<void>;
  /** Refuses where revoke would, before anyone has said why. */
  requireRevocable(serial: string, revoker: Revoker): Promise<Certificate>;
}

export interface Revoker {
  readonly caller: Caller;
  readonly requester: Requester;
}

/** A new key of the kind that clients get. */
export async function newKey(): Promise<Required<CertifiedKey>> {
  const { publicKey, privateKey } = await generateKeyPair();
  return { spki: subjectPublicKeyInfo(publicKey), privateKey };
}

/** The key of a certificate signing request in PEM. */
export function requestedKey(csr: string): CertifiedKey {
  try {
    return { spki: readCertificationRequest(csr) };
  } catch (error) {
    if (error instanceof CsrRefused) throw new Refusal('csrInvalid', { hint: error.message });
    throw error;
  }
}

export function createCertificates(parts: {
  config: Config;
  store: CertificateStore;
  challenges: Pick<Challenges, 'notSpent'>;
  audit: Audit;
  clock: Clock;
  random: RandomBytes;
  log: Log;
}): Certificates {
  const { config, store, challenges, audit, clock, random, log } = parts;

  async function issue(request: IssueRequest, authority: SigningAuthority): Promise<IssuedCertificate> {
    try {
      return await attemptIssue(request, authority);
    } catch (error) {
      if (error instanceof Refusal || error instanceof StoreError || error instanceof NotFirstError) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      log({ level: 'error', logger: 'pki', event: 'issuance failed', outcome: 'failure', details: { reason } });
      throw new Refusal('issuanceFailed');
    }
  }

  async function attemptIssue(request: IssueRequest, authority: SigningAuthority): Promise<IssuedCertificate> {
    for (let attempt = 1; attempt <= SERIAL_ATTEMPTS; attempt += 1) {
      const made = await make(request, authority);
      await request.before?.(made.certificate);
      const isAdmin = await record(made, request);
      if (isAdmin !== undefined) return { ...made, isAdmin };
    }
    throw new Error(`no unused serial in ${SERIAL_ATTEMPTS} attempts`);
  }

  async function make(
    { commonName, key }: IssueRequest,
    authority: SigningAuthority,
  ): Promise<Omit<IssuedCertificate, 'isAdmin'>> {
    const createdAt = unixSeconds(clock);
    const validity = validityFrom(createdAt, config.pkiCertDays, authority.stored.expiresAt);
    const serial = makeSerial(random);
    const certificate = await makeClientCertificate({ commonName, serial, validity, ...key }, authority);
    const fingerprint = fingerprintSha1(certificate);
    return { serial, commonName, fingerprint, createdAt, expiresAt: validity.notAfter, certificate };
  }

  /** Whether it is the admin's; undefined when the serial is taken. */
  async function record(
    { certificate: _, ...made }: Omit<IssuedCertificate, 'isAdmin'>,
    { key, requester, spend, onlyFirst = false }: IssueRequest,
  ): Promise<boolean | undefined> {
    const { commonName, fingerprint, expiresAt, serial } = made;
    const details = { type: 'client', common_name: commonName, fingerprint, expires_at: expiresAt };
    const issued = audit.event('cert_issued', 'success', requester, details);
    const granted = audit.event('admin_granted', 'success', requester, { serial, fingerprint });
    const certificate = { ...made, issuedTo: requester.fingerprint, publicKeySha256: sha256(key.spki) };
    const outcome = await store.issue({ certificate, spend, onlyFirst, issued, granted });
    if (outcome.refused === 'powAlreadyUsed' || outcome.refused === 'powExpired') {
      throw challenges.notSpent(outcome.refused, 'register');
    }
    if (outcome.refused === 'notFirst') throw new NotFirstError('a certificate was issued before');
    if (outcome.refused === 'serialTaken') return undefined;
    if (outcome.refused !== null) throw new Refusal(outcome.refused);
    audit.announce(issued);
    if (outcome.isAdmin) audit.announce(granted);
    return outcome.isAdmin;
  }

  async function requireRevocable(serial: string, { caller, requester }: Revoker): Promise<Certificate> {
    if (requester.fingerprint === null) requireIdentity(caller);
    const certificate = await store.findBySerial(serial);
    if (certificate !== undefined && certificate.revokedAt !== null) throw new Refusal('certificateRevoked');
    const holder = requireIdentity(caller);
    if (certificate === undefined) throw new Refusal('certificateNotFound');
    if (certificate.issuedTo !== holder && certificate.fingerprint !== holder) throw new Refusal('permissionDenied');
    return certificate;
  }

  async function revoke(serial: string, revoker: Revoker, reason: RevocationReason | null): Promise<void> {
    const { fingerprint } = await requireRevocable(serial, revoker);
    const revoked = audit.event('cert_revoked', 'success', revoker.requester, { serial, fingerprint });
    const outcome = await store.revoke({ serial, nowSeconds: unixSeconds(clock), reason, revoked });
    if (outcome.refused !== null) throw new Refusal(outcome.refused);
    audit.announce(revoked);
  }

  return {
    issue,
    requireRevocable,
    revoke,
    listOf: async ({ fingerprint }, page) => {
      if (fingerprint === null) return { items: [], total: 0 };
      const nowSeconds = unixSeconds(clock);
      const { items, total } = await store.listOf(fingerprint, page);
      const records = items.map((certificate) => ({ ...certificate, status: statusOf(certificate, nowSeconds) }));
      return { items: records, total };
    },
  };
}

// POST /register: anyone who has done the work gets a certificate and its key in a PKCS#12 bundle; the authority is
// made when there is none. The bundle is made before the certificate is recorded, so that a failure costs the caller
// nothing.

export interface RegistrationRequest {
  readonly commonName: string;
  readonly profile: BundleProfile;
  /** Of the bundle; empty for none. */
  readonly bundlePassword: string;
  /** What admit gave. */
  readonly spend: SpentChallenge | null;
  readonly requester: Requester & { readonly clientAddress: string };
}

export interface Registered extends IssuedCertificate {
  /** PKCS#12 in DER. */
  readonly bundle: Uint8Array;
}

export interface Registration {
  /** Refuses while nothing can be issued, and work that does not hold; gives what is to be used up. */
  admit(work: Work): Promise<SpentChallenge | null>;
  register(request: RegistrationRequest): Promise<Registered>;
}

export function createRegistration(parts: {
  authorities: Authorities;
  certificates: Certificates;
  challenges: Challenges;
  /** For bundles without a password, which take a millisecond or two each. */
  kdf: KdfThread;
  /** For those with one, which take seconds: neither other registrations nor password checks wait for them. */
  slowKdf: KdfThread;
  slowQueue: WorkQueue;
  random: RandomBytes;
}): Registration {
  const { authorities, certificates, challenges, kdf, slowKdf, slowQueue, random } = parts;

  async function bundleOf(request: RegistrationRequest, keyed: Keyed): Promise<Uint8Array> {
    const { profile, bundlePassword, commonName, requester } = request;
    const isSlow = bundlePassword !== '';
    const { derive } = isSlow ? slowKdf : kdf;
    const make = (): Promise<Uint8Array> =>
      makeBundle({ profile, password: bundlePassword, friendlyName: commonName, ...keyed }, { random, derive });
    try {
      return await (isSlow ? inTurn(slowQueue, requester.clientAddress, make) : make());
    } catch (error) {
      if (error instanceof KdfQueueFull) throw new Refusal('passwordQueueFull', {}, { retryAfterSeconds: 1 });
      throw error;
    }
  }

  async function register(request: RegistrationRequest): Promise<Registered> {
    const { commonName, spend, requester } = request;
    const authority = await authorities.ensured(requester);
    const key = await newKey();
    let bundle = new Uint8Array();
    const before = async (certificate: Uint8Array): Promise<void> => {
      bundle = new Uint8Array(
        await bundleOf(request, { certificate, privateKey: key.privateKey, authority: authority.certificate }),
      );
    };
    const issued = await certificates.issue({ commonName, key, requester, spend, before }, authority);
    return { ...issued, bundle };
  }

  return {
    admit: async (work) => {
      await authorities.requireUsable();
      return challenges.require('register', work);
    },
    register,
  };
}

type Keyed = Pick<Parameters<typeof makeBundle>[0], 'certificate' | 'privateKey' | 'authority'>;
