// The /pki endpoints: the authority and what it issues, as far as SERVICE_PKI_ENABLED offers them.

import type { Config } from '../config/settings.ts';
import { UUID_BYTES, uuidFromHex } from '../core/ids.ts';
import { Refusal } from '../core/refusals.ts';
import type { Awaitable, RandomBytes } from '../core/time.ts';
import { emptyReply, type Handler, jsonReply, rateHeaders, type Reply, textReply } from '../http/engine/reply.ts';
import type { Request } from '../http/engine/request.ts';
import {
  type CallerOf, hintingClient, jsonBodyOf, type JsonObject, namesEtag, page, registerCommand, textMember, work,
} from '../http/input.ts';
import { challengeLine, presentChallenge, presentUnavailable } from '../http/present.ts';
import type { Handlers } from '../http/routes.ts';
import { createWorkQueue } from '../limits/work-queue.ts';
import type { Challenges, Rates } from '../pastes/admission.ts';
import type { Requester } from '../pastes/identity.ts';
import type { Parts } from '../pastes/parts.ts';
import type { StoredAuthority, StoredCrl } from '../store/store.ts';
import { type Authorities, createAuthorities, DEFAULT_AUTHORITY_NAME } from './authority.ts';
import { normaliseCommonName } from './der.ts';
import {
  type CertificateRecord, type Certificates, createCertificates, createRegistration, type IssuedCertificate, newKey,
  type Registration, requestedKey,
} from './issuing.ts';
import { encodeLongPem, encodePem, type PemLabel, privateKeyPem } from './keys.ts';
import { createKdfThread } from './pkcs12-kdf-thread.ts';
import type { BundleProfile } from './pkcs12.ts';
import { createRevocationList, isRevocationReason, type RevocationList } from './revocation-list.ts';

/** What the authority is made from. */
export interface AuthorityParts extends Parts {
  readonly callerOf: CallerOf;
  /** A listener that identifies clients by their certificates, from when there is an authority. */
  readonly tls: { trust(certificate: Uint8Array): void } | undefined;
}

export type AuthorityRoom = ReturnType<typeof createRoom>;

/** Bundles of registrations in progress, at a millisecond or two each. */
const BUNDLES_WAITING = 256;

/** A bundle with a password takes seconds of a thread of its own: one at a time, and few wait. */
const SLOW_BUNDLES_WAITING = 4;
const SLOW_BUNDLE_WAIT_MS = 30_000;

/** The authority, what it issues, and the threads that make bundles. */
export function createRoom(parts: AuthorityParts) {
  const { config, store, queue, challenges, rates, audit, callerOf, clock, random, log, tls } = parts;
  const onFound = ({ certificate }: StoredAuthority): void => tls?.trust(certificate);
  const authorities = createAuthorities({ config, store: store.authority, queue, audit, clock, random, log, onFound });
  const certificates = createCertificates({ config, store: store.certificates, challenges, audit, clock, random, log });
  const lists = { store: store.authority, certificates: store.certificates };
  const revocationList = createRevocationList({ authorities, ...lists, clock });
  const kdf = createKdfThread(BUNDLES_WAITING);
  const slowKdf = createKdfThread(SLOW_BUNDLES_WAITING);
  const slowQueue = createWorkQueue({
    concurrency: 1, maxWaiting: SLOW_BUNDLES_WAITING, maxWaitMs: SLOW_BUNDLE_WAIT_MS, clock,
  });
  const registration = createRegistration({ authorities, certificates, challenges, kdf, slowKdf, slowQueue, random });
  return {
    authorities,
    revocationList,
    handlers: {
      ...createPkiHandlers({ config, authorities, certificates, revocationList, rates, callerOf }),
      ...createRegistrationHandlers({ authorities, challenges, registration, callerOf, random }),
    },
    close: async () => {
      await Promise.all([kdf.close(), slowKdf.close()]);
    },
  };
}

const PEM_TYPE = 'application/x-pem-file';

/** As GET /pastes. */
const PAGING = { fallback: 100, maximum: 1000 };

type PkiRoutes =
  | 'describePki' | 'createAuthority' | 'authorityCertificate' | 'revocationList' | 'revocationListPem'
  | 'issueCertificate' | 'listCertificates' | 'revokeCertificate';

export function createPkiHandlers(parts: {
  config: Config;
  authorities: Authorities;
  certificates: Certificates;
  revocationList: RevocationList;
  rates: Rates;
  callerOf: CallerOf;
}): Pick<Handlers, PkiRoutes> {
  const { config, authorities, certificates, revocationList, rates, callerOf } = parts;
  let pem: { readonly list: StoredCrl; readonly bytes: Promise<Uint8Array> } | undefined;

  function whenEnabled(handler: Handler): Handler {
    return (request) => {
      if (!config.pkiEnabled) throw new Refusal('pkiDisabled', { hint: 'the operator can set SERVICE_PKI_ENABLED' });
      return handler(request);
    };
  }

  /** Who the audit log names: nobody, for a certificate that is revoked. */
  async function requesterOf(request: Request): Promise<Requester> {
    return { fingerprint: (await callerOf(request)).fingerprint, clientAddress: request.clientAddress };
  }

  async function describePki(): Promise<Reply> {
    if (!config.pkiEnabled) return jsonReply(200, { enabled: false });
    return jsonReply(200, presentAuthority(await authorities.find()));
  }

  async function createAuthority(request: Request): Promise<Reply> {
    const requester = await requesterOf(request);
    await authorities.requireNone();
    const body = await jsonBodyOf(request);
    const commonName = commonNameOf(body) ?? DEFAULT_AUTHORITY_NAME;
    const authority = await authorities.create(commonName, requester);
    return jsonReply(201, presentNewAuthority(authority));
  }

  async function authorityCertificate(): Promise<Reply> {
    const authority = await authorities.find();
    if (authority === undefined) throw new Refusal('authorityMissing');
    return pemReply('CERTIFICATE', authority.certificate);
  }

  /** The number is the list's own: no two have the same. */
  async function listReply(
    request: Request,
    type: string,
    bytesOf: (list: StoredCrl) => Awaitable<Uint8Array>,
  ): Promise<Reply> {
    const list = await revocationList.current();
    const etag = `"${list.number}"`;
    const headers = { ETag: etag, 'Last-Modified': new Date(list.thisUpdate * 1000).toUTCString() };
    const known = request.headers.all('if-none-match');
    if (known.length > 0 && namesEtag(known.join(','), etag)) return emptyReply(304, headers);
    return { status: 200, headers: { 'Content-Type': type, ...headers }, body: await bytesOf(list) };
  }

  /** Made once for each list, which may have megabytes. */
  async function pemOf(list: StoredCrl): Promise<Uint8Array> {
    if (pem?.list !== list) pem = { list, bytes: encodeLongPem('X509 CRL', list.der) };
    return pem.bytes;
  }

  async function issueCertificate(request: Request): Promise<Reply> {
    const caller = await callerOf(request);
    const rate = rates.countCreation(request.clientAddress, caller);
    const body = await jsonBodyOf(request);
    const commonName = commonNameOf(body);
    if (commonName === undefined) throw new Refusal('commonNameRequired');
    const authority = await authorities.signing();
    const csr = textMember(body, 'csr', () => new Refusal('csrInvalid', { hint: 'csr must be PEM text' }));
    const key = csr === undefined ? await newKey() : requestedKey(csr);
    const requester = { fingerprint: caller.fingerprint, clientAddress: request.clientAddress };
    const issued = await certificates.issue({ commonName, key, requester, spend: null }, authority);
    const keyPem = key.privateKey === undefined ? undefined : privateKeyPem(key.privateKey);
    const replyHeaders = rate === null ? {} : rateHeaders(rate);
    return jsonReply(201, presentIssued(issued, encodePem('CERTIFICATE', issued.certificate), keyPem), replyHeaders);
  }

  async function listCertificates(request: Request): Promise<Reply> {
    const asked = page(request.query, PAGING);
    const { items, total } = await certificates.listOf(await callerOf(request), asked);
    return jsonReply(200, { ...presentCertificates(items), total });
  }

  async function revokeCertificate(request: Request): Promise<Reply> {
    const serial = (request.params['serial'] ?? '').toLowerCase();
    const caller = await callerOf(request);
    // Of a holder the fingerprint on record; of anyone else what was presented.
    const requester = { fingerprint: caller.fingerprint ?? request.fingerprint, clientAddress: request.clientAddress };
    await certificates.requireRevocable(serial, { caller, requester });
    const reason = await revocationReason(request);
    await certificates.revoke(serial, { caller, requester }, reason);
    return jsonReply(200, { message: 'certificate revoked', serial });
  }

  return {
    describePki,
    createAuthority: whenEnabled(createAuthority),
    authorityCertificate: whenEnabled(authorityCertificate),
    revocationList: whenEnabled((request) => listReply(request, 'application/pkix-crl', ({ der }) => der)),
    revocationListPem: whenEnabled((request) => listReply(request, PEM_TYPE, pemOf)),
    issueCertificate: whenEnabled(issueCertificate),
    listCertificates: whenEnabled(listCertificates),
    revokeCertificate: whenEnabled(revokeCertificate),
  };
}

/** The normalised name; undefined when none is given, or an empty one. */
export function commonNameOf(body: JsonObject): string | undefined {
  const given = textMember(body, 'common_name', () => new Refusal('commonNameInvalid'));
  if (given === undefined || given === '') return undefined;
  const commonName = normaliseCommonName(given);
  if (commonName === undefined) throw new Refusal('commonNameInvalid');
  return commonName;
}

async function revocationReason(request: Request) {
  const body = await jsonBodyOf(request);
  const reason = textMember(body, 'reason', () => new Refusal('reasonInvalid'));
  if (reason === undefined) return null;
  if (!isRevocationReason(reason)) throw new Refusal('reasonInvalid', { hint: 'such as keyCompromise or superseded' });
  return reason;
}

function pemReply(label: PemLabel, der: Uint8Array): Reply {
  return { status: 200, headers: { 'Content-Type': PEM_TYPE }, body: encodePem(label, der) };
}

// GET /register/challenge and POST /register: a client certificate for whoever has done the work.

const MAX_BUNDLE_PASSWORD_LENGTH = 1024;

export function createRegistrationHandlers(parts: {
  authorities: Pick<Authorities, 'checkKey' | 'whyUnavailable'>;
  challenges: Challenges;
  registration: Registration;
  callerOf: CallerOf;
  random: RandomBytes;
}): Pick<Handlers, 'registrationChallenge' | 'register'> {
  const { authorities, challenges, registration, callerOf, random } = parts;
  return {
    registrationChallenge: async (request) => {
      // Nobody is to work for a certificate that can't be had.
      await authorities.checkKey();
      const hint = authorities.whyUnavailable();
      const challenge = challenges.issue('register');
      const line = hint === undefined ? challengeLine(challenge) : `unavailable ${hint}`;
      if (request.prefersText) return textReply(200, line, { Vary: 'Accept' });
      const unavailable = hint === undefined ? {} : presentUnavailable(hint);
      return jsonReply(200, { ...presentChallenge(challenge), ...unavailable }, { Vary: 'Accept' });
    },
    register: async (request) => {
      const { fingerprint } = await callerOf(request);
      const spend = await registration.admit(work(request.headers)).catch((error: unknown) => {
        throw hintingClient(error, request.publicUrl, registerCommand(request.publicUrl));
      });
      const body = await jsonBodyOf(request);
      const registered = await registration.register({
        commonName: commonNameOf(body) ?? uuidFromHex(Buffer.from(random(UUID_BYTES)).toString('hex')),
        profile: bundleProfile(body),
        bundlePassword: bundlePassword(body),
        spend,
        requester: { fingerprint, clientAddress: request.clientAddress },
      });
      const headers = {
        'Content-Type': 'application/x-pkcs12',
        'Content-Disposition': 'attachment; filename="client.p12"',
        'X-Fingerprint-SHA1': registered.fingerprint,
        'X-Certificate-Expires': String(registered.expiresAt),
        'X-Is-Admin': registered.isAdmin ? '1' : '0',
      };
      return { status: 200, headers, body: registered.bundle };
    },
  };
}

function bundleProfile(body: JsonObject): BundleProfile {
  const profile = textMember(body, 'p12_profile', () => new Refusal('bundleProfileInvalid')) ?? 'modern';
  if (profile !== 'modern' && profile !== 'compat') throw new Refusal('bundleProfileInvalid');
  return profile;
}

/** Empty when none is asked for. PKCS#12 has no form for U+0000 in it, nor for half a character. */
function bundlePassword(body: JsonObject): string {
  const password = textMember(body, 'p12_password', () => new Refusal('bundlePasswordInvalid'));
  if (password === undefined) return '';
  const length = [...password].length;
  const isOfLength = length >= 1 && length <= MAX_BUNDLE_PASSWORD_LENGTH;
  const isUsable = isOfLength && password.isWellFormed() && !password.includes('\0');
  if (!isUsable) throw new Refusal('bundlePasswordInvalid');
  return password;
}

// What the API says about certificates.

/** The answer to GET /pki where it is enabled. */
export function presentAuthority(authority: StoredAuthority | undefined): object {
  if (authority === undefined) {
    const hint = 'POST /pki/ca creates the CA; so does the first registration';
    return { enabled: true, ca_exists: false, hint };
  }
  return { enabled: true, ca_exists: true, ...authorityMembers(authority), key_algorithm: 'ec:secp384r1' };
}

/** The answer to POST /pki/ca. */
export function presentNewAuthority(authority: StoredAuthority): object {
  return { message: 'CA created', ...authorityMembers(authority), download: '/pki/ca.crt' };
}

function authorityMembers({ commonName, fingerprint, createdAt, expiresAt }: StoredAuthority): object {
  return { common_name: commonName, fingerprint_sha1: fingerprint, created_at: createdAt, expires_at: expiresAt };
}

/** The answer to POST /pki/issue; without a private key when the requester has it already. */
export function presentIssued(
  issued: IssuedCertificate,
  certificatePem: string,
  privateKeyPem: string | undefined,
): object {
  return {
    message: 'certificate issued',
    serial: issued.serial,
    common_name: issued.commonName,
    fingerprint_sha1: issued.fingerprint,
    created_at: issued.createdAt,
    expires_at: issued.expiresAt,
    certificate_pem: certificatePem,
    ...(privateKeyPem === undefined ? {} : { private_key_pem: privateKeyPem }),
    is_admin: issued.isAdmin,
  };
}

/** The answer to GET /pki/certs. */
export function presentCertificates(records: readonly CertificateRecord[]): object {
  return { certificates: records.map(presentCertificate), count: records.length };
}

/** An item of GET /pki/certs. */
export function presentCertificate(record: CertificateRecord): object {
  return {
    serial: record.serial,
    common_name: record.commonName,
    fingerprint_sha1: record.fingerprint,
    created_at: record.createdAt,
    expires_at: record.expiresAt,
    status: record.status,
    issued_to: record.issuedTo,
    is_admin: record.isAdmin,
  };
}
