// The endpoints of the certificate authority: /pki, as far as SERVICE_PKI_ENABLED offers it, and /register.

import { type Caller, hasTrustedLimits } from '../core/callers.ts';
import { type RateStanding, Refusal } from '../core/refusals.ts';
import { type Awaitable, onceForEach, unixSeconds } from '../core/time.ts';
import { sha256 } from '../crypto/digest.ts';
import { emptyReply, jsonReply, rateHeaders, type Reply, textReply } from '../http/engine/reply.ts';
import type { Request } from '../http/engine/request.ts';
import { jsonBodyOf, type JsonObject, namesEtag, page, textMember, work } from '../http/input.ts';
import {
  challengeLine, hintingClient, INVITATION_NEEDED, presentChallenge, registerCommand, REGISTRATION_CLOSED,
} from '../http/present.ts';
import { type Requester, requireIdentity } from '../pastes/identity.ts';
import type { Parts } from '../pastes/parts.ts';
import type { StoredCrl } from '../store/store.ts';
import { Authorities, DEFAULT_AUTHORITY_NAME, type SigningAuthority } from './authority.ts';
import { MISLEADING, normaliseCommonName } from './der.ts';
import * as issuing from './issuing.ts';
import {
  type CertifiedKey, encodeLongPem, encodePem, generateKeyPair, privateKeyPem, readCertificationRequest,
} from './keys.ts';
import { type BundleRequest, isBundlePassword } from './pkcs12.ts';
import { isRevocationReason, RevocationList } from './revocation-list.ts';

/** `tls` is a listener that identifies clients by their certificates, once there is an authority. */
export type AuthorityParts = Parts & { readonly tls: { trust(certificate: Uint8Array): void } | undefined };

interface Room extends AuthorityParts {
  readonly authorities: Authorities;
  readonly revocationList: RevocationList;
  readonly bundles: issuing.Bundles;
}

export type AuthorityRoom = ReturnType<typeof createRoom>;

export function createRoom(parts: AuthorityParts) {
  const authorities = new Authorities(parts, ({ certificate }) => parts.tls?.trust(certificate));
  const revocationList = new RevocationList({ ...parts, authorities });
  const room: Room = { ...parts, authorities, revocationList, bundles: new issuing.Bundles(parts.clock) };
  return { ...room, handle: (name: RoomRoute, request: Request) => HANDLERS[name](room, request) };
}

export type RoomRoute = keyof typeof HANDLERS;

const HANDLERS = {
  describePki, createAuthority, authorityCertificate, issueCertificate, listCertificates, revokeCertificate,
  registrationChallenge, register, renewCertificate,
  revocationList: (room, request) => listReply(room, request, 'application/pkix-crl', ({ der }) => der),
  revocationListPem: (room, request) => listReply(room, request, PEM_TYPE, pemOfList),
} satisfies Readonly<Record<string, (room: Room, request: Request) => Promise<Reply>>>;

const PEM_TYPE = 'application/x-pem-file';

function requireEnabled({ config }: Room): void {
  if (!config.pkiEnabled) throw new Refusal('pkiDisabled', { hint: 'the operator can set SERVICE_PKI_ENABLED' });
}

async function describePki({ config, authorities }: Room): Promise<Reply> {
  if (!config.pkiEnabled) return jsonReply(200, { enabled: false });
  const authority = await authorities.find();
  if (authority === undefined) {
    const hint = authorities.whyUnavailable() ?? 'POST /pki/ca creates the CA; so does the first registration';
    return jsonReply(200, { enabled: true, ca_exists: false, hint });
  }
  const described = issuing.presentIssued(authority);
  return jsonReply(200, { enabled: true, ca_exists: true, ...described, key_algorithm: 'ec:secp384r1' });
}

async function createAuthority(room: Room, request: Request): Promise<Reply> {
  requireEnabled(room);
  const caller = await room.identity.callerOf(request.origin);
  await room.authorities.requireNone();
  const name = commonNameOf(await jsonBodyOf(request)) ?? DEFAULT_AUTHORITY_NAME;
  const authority = await room.authorities.create(name, requesterOf(request, await callerNow(room, request, caller)));
  return jsonReply(201, { message: 'CA created', ...issuing.presentIssued(authority), download: '/pki/ca.crt' });
}

async function authorityCertificate(room: Room): Promise<Reply> {
  requireEnabled(room);
  const authority = await room.authorities.find();
  if (authority === undefined) throw new Refusal('authorityMissing');
  return { status: 200, headers: { 'Content-Type': PEM_TYPE }, body: encodePem('CERTIFICATE', authority.certificate) };
}

/**
 * The list's number is its ETag: no two lists have the same. It is also the second in which the list was made, or a
 * later one if that was taken, so Last-Modified is cut to now: no date may be in the future (RFC 9110 section 8.8.2.1).
 * thisUpdate is minutes earlier: with it, a client that goes by dates would take a newer list for the one it has.
 */
async function listReply(
  room: Room, request: Request, type: string, bytesOf: (list: StoredCrl) => Awaitable<Uint8Array>,
): Promise<Reply> {
  requireEnabled(room);
  const list = await room.revocationList.current();
  const etag = `"${list.number}"`;
  const headers = { ETag: etag, 'Last-Modified': httpDate(Math.min(list.number, unixSeconds(room.clock))) };
  if (namesEtag(request.headers, 'if-none-match', etag)) return emptyReply(304, headers);
  // RFC 9110 section 13.1.3, but only the exact date matches: one from a fast clock would hide later revocations.
  const hasDate = request.headers.all('if-modified-since').join() === httpDate(list.number);
  if (hasDate && request.headers.all('if-none-match').length === 0) return emptyReply(304, headers);
  return { status: 200, headers: { 'Content-Type': type, ...headers }, body: await bytesOf(list) };
}

function httpDate(seconds: number): string {
  return new Date(seconds * 1000).toUTCString();
}

/** A list may have megabytes, so its PEM is made once. */
const pemOfList = onceForEach((list: StoredCrl) => encodeLongPem('X509 CRL', list.der));

async function issueCertificate(room: Room, request: Request): Promise<Reply> {
  requireEnabled(room);
  const caller = await room.identity.callerOf(request.origin);
  const invitation = await admit(room, request);
  const rate = room.rates.countCreation(request.origin.clientAddress, caller);
  const body = await jsonBodyOf(request);
  const commonName = body['common_name'] === '' ? undefined : commonNameOf(body);
  if (commonName === undefined) throw new Refusal('commonNameRequired');
  await refuseFirstToPages(room, request);
  const authority = await room.authorities.signing();
  const key = requestedKey(body) ?? await generateKeyPair();
  const requester = requesterOf(request, await callerNow(room, request, caller));
  const asked = { commonName, key, requester, spend: null, invitation };
  const issued = await issuing.issueCertificate(room, asked, authority);
  return pemReply(issued, key, rate === null ? {} : rateHeaders(rate));
}

/** The certificate, and its key if that was made here: a client that sent a signing request has the key already. */
function pemReply(issued: issuing.Issued, key: CertifiedKey, headers: Readonly<Record<string, string>>): Reply {
  return jsonReply(201, {
    message: 'certificate issued', serial: issued.serial, ...issuing.presentIssued(issued),
    certificate_pem: encodePem('CERTIFICATE', issued.certificate),
    ...(key.privateKey === undefined ? {} : { private_key_pem: privateKeyPem(key.privateKey) }),
    is_admin: issued.isAdmin,
  }, headers);
}

async function listCertificates(room: Room, request: Request): Promise<Reply> {
  const caller = await room.identity.callerOf(request.origin);
  // Holders can list their certificates even where the rest of /pki is not offered.
  if (!hasTrustedLimits(caller)) requireEnabled(room);
  // The contract has no pages here, so a caller who asks for no page gets the maximum.
  const asked = page(request.query, { fallback: 1000, maximum: 1000 });
  // Counted like lists of pastes: a thousand certificates, which anybody can obtain, take 20 ms of the processor.
  room.rates.countLookup(request.origin.clientAddress, caller);
  const { items, total } = await room.store.read.listCertificatesOf(caller.fingerprint ?? '', asked);
  const certificates = issuing.recordsOf(items, room.clock).map(issuing.presentCertificate);
  return jsonReply(200, { certificates, count: certificates.length, total, ...asked });
}

async function revokeCertificate(room: Room, request: Request): Promise<Reply> {
  const serial = request.parameter.toLowerCase();
  const caller = await room.identity.callerOf(request.origin);
  // The audit log names a holder by the fingerprint on record, anyone else by what was presented.
  const presented = requesterOf(request, { fingerprint: caller.fingerprint ?? request.origin.fingerprint });
  // A holder who repeats the call is anonymous by now, but is still told that the certificate is revoked.
  const isHolder = hasTrustedLimits(caller)
    || (await room.store.read.findCertificate(request.origin.fingerprint ?? '')) !== undefined;
  if (!isHolder) requireEnabled(room);
  await issuing.requireRevocable(room, serial, { caller, requester: presented });
  const reason = textMember(await jsonBodyOf(request), 'reason', () => new Refusal('reasonInvalid')) ?? null;
  if (reason !== null && !isRevocationReason(reason)) {
    throw new Refusal('reasonInvalid', { hint: 'such as keyCompromise or superseded' });
  }
  const revoker = { caller: await callerNow(room, request, caller), requester: presented };
  await issuing.revokeCertificate(room, serial, revoker, reason);
  return jsonReply(200, { message: 'certificate revoked', serial });
}

async function registrationChallenge(room: Room, request: Request): Promise<Reply> {
  const invitation = await admit(room, request);
  // Nobody should do work for a certificate that can't be had.
  await room.authorities.checkKey();
  const hint = room.authorities.whyUnavailable();
  const issued = invitation === undefined ? room.challenges.issue('register') : null;
  const line = hint === undefined ? challengeLine(issued) : `unavailable ${hint}`;
  if (request.prefersText) return textReply(200, line, { Vary: 'Accept' });
  return jsonReply(200, { ...presentChallenge(issued), ...(hint && { available: false, hint }) }, { Vary: 'Accept' });
}

/** Gives a certificate to anyone who is invited or has done the work; makes the authority when there is none. */
async function register(room: Room, request: Request): Promise<Reply> {
  const caller = await room.identity.callerOf(request.origin);
  const shown = work(request.headers);
  const invitation = await admit(room, request);
  await room.authorities.requireUsable();
  // Spent work is a bound by itself. An invitation, until it is spent, would pay for any number of keys and bundles.
  const isFree = invitation !== undefined || room.config.registerPowDifficultyBits === 0;
  const rate = isFree ? room.rates.countCreation(request.origin.clientAddress, caller) : null;
  const spend = invitation !== undefined ? null : await room.challenges.require('register', shown).catch((error) => {
    throw hintingClient(error, request.publicUrl, registerCommand(request.publicUrl));
  });
  const body = await jsonBodyOf(request);
  // A refused request spends no work, so without this bound one token would buy keys and signatures for ever.
  if (!isFree) room.rates.countLookup(request.origin.clientAddress, caller);
  const commonName = commonNameOf(body) ?? room.newUuid();
  const wanted = wantedOf(body);
  await refuseFirstToPages(room, request);
  const requester = requesterOf(request, await callerNow(room, request, caller));
  const authority = await room.authorities.ensured(requester);
  return issueWanted(room, request, wanted, { commonName, requester, spend, invitation, rate }, authority);
}

/** No page may get the admin's certificate: a browser takes a page for ours if the page's host name now leads here. */
async function refuseFirstToPages({ store }: Room, { headers }: Request): Promise<void> {
  if (headers.all('origin').length + headers.all('sec-fetch-site').length === 0) return;
  const hint = 'the first certificate is the admin\'s: pasted admin create';
  if (!(await store.read.hasCertificates())) throw new Refusal('crossSite', { hint });
}

/** A holder renews without an invitation or new work: the new certificate has the same holder and the same name. */
async function renewCertificate(room: Room, request: Request): Promise<Reply> {
  const caller = await room.identity.callerOf(request.origin);
  requireIdentity(caller);
  if (!hasTrustedLimits(caller)) {
    throw new Refusal('permissionDenied', { hint: 'only a certificate of this service can be renewed: register' });
  }
  const rate = room.rates.countCreation(request.origin.clientAddress, caller);
  const authority = await room.authorities.signing();
  const body = await jsonBodyOf(request);
  const wanted = wantedOf(body);
  const presented = await room.store.read.findCertificate(request.origin.fingerprint!);
  if (presented === undefined) throw new Refusal('certificateNotFound');
  const { commonName, serial: renews } = presented;
  if ((commonNameOf(body) ?? commonName) !== commonName) {
    throw new Refusal('commonNameInvalid', { hint: 'a renewed certificate keeps its name: leave common_name out' });
  }
  // Asked here so that nothing is made in vain: the store decides, in the transaction that stores the certificate.
  const { refused, retryAfterSeconds } = await room.store.read.findRenewable(renews, unixSeconds(room.clock));
  if (refused !== null) throw new Refusal(refused, {}, { retryAfterSeconds });
  const asked = { commonName, requester: requesterOf(request, caller), spend: null, renews, rate };
  return issueWanted(room, request, wanted, asked, authority);
}

/** Refuses as SERVICE_REGISTER says. Returns an invitation's digest: it replaces work, even if anyone may register. */
async function admit({ config, store, clock }: Room, { headers }: Request): Promise<Uint8Array | undefined> {
  if (config.registerBy === 'off') throw new Refusal('registrationClosed', { hint: REGISTRATION_CLOSED });
  const code = headers.single('x-invite');
  if (code === undefined && config.registerBy === 'open') return undefined;
  if (code === undefined) throw new Refusal('invitationRequired', { hint: INVITATION_NEEDED });
  const codeSha256 = sha256(Buffer.from(code, 'latin1'));
  if (await store.read.isInvitationOpen(codeSha256, unixSeconds(clock))) return codeSha256;
  throw issuing.invitationRefused();
}

/** A certificate for a key that the sender has, or a bundle with a new key; its password is empty if none is given. */
type Wanted = CertifiedKey | Pick<BundleRequest, 'profile' | 'password'>;

function wantedOf(body: JsonObject): Wanted {
  const key = requestedKey(body);
  if (key !== undefined) {
    const hint = 'p12_profile and p12_password are for a bundle with a key: leave them out beside csr';
    if ((body['p12_profile'] ?? body['p12_password'] ?? null) !== null) throw new Refusal('csrInvalid', { hint });
    return key;
  }
  const profile = textMember(body, 'p12_profile', () => new Refusal('bundleProfileInvalid')) ?? 'modern';
  if (profile !== 'modern' && profile !== 'compat') throw new Refusal('bundleProfileInvalid');
  const password = textMember(body, 'p12_password', () => new Refusal('bundlePasswordInvalid'));
  if (password !== undefined && !isBundlePassword(password)) throw new Refusal('bundlePasswordInvalid');
  return { profile, password: password ?? '' };
}

/** `rate` is the state of the creation rate that this request counted against. */
type Asked = Omit<issuing.IssueRequest, 'key'> & { readonly rate: RateStanding | null };

async function issueWanted(
  room: Room, request: Request, wanted: Wanted, asked: Asked, authority: SigningAuthority,
): Promise<Reply> {
  if ('spki' in wanted) {
    const issued = await issuing.issueCertificate(room, { ...asked, key: wanted }, authority);
    return pemReply(issued, wanted, issuedHeaders(issued, asked));
  }
  let bundle: Uint8Array = new Uint8Array();
  const key = await generateKeyPair();
  const issued = await issuing.issueCertificate(room, { ...asked, key }, authority, async ({ certificate }) => {
    const { commonName } = asked;
    const content = { commonName, certificate, privateKey: key.privateKey, authority: authority.certificate };
    bundle = await room.bundles.make({ ...content, ...wanted }, request.origin.clientAddress);
    // The client is gone, so nobody would have the key: do not record the certificate. Nobody sees this refusal.
    if (request.state === 'over') throw new Refusal('requestTimeout');
  });
  const headers = {
    'Content-Type': 'application/x-pkcs12', 'Content-Disposition': 'attachment; filename="client.p12"',
    ...issuedHeaders(issued, asked),
  };
  return { status: 200, headers, body: bundle };
}

function issuedHeaders({ fingerprint, expiresAt, isAdmin }: issuing.Issued, { rate }: Asked) {
  return {
    ...(rate && rateHeaders(rate)), 'X-Fingerprint-SHA1': fingerprint,
    'X-Certificate-Expires': String(expiresAt), 'X-Is-Admin': isAdmin ? '1' : '0',
  };
}

/** Looks the caller up again once the body is here: a certificate revoked meanwhile is neither obeyed nor named. */
async function callerNow({ identity }: Room, { origin }: Request, before: Caller): Promise<Caller> {
  return before.fingerprint === null ? before : identity.callerOf(origin);
}

function requesterOf({ origin: { clientAddress } }: Request, { fingerprint }: Pick<Caller, 'fingerprint'>): Requester {
  return { fingerprint, clientAddress };
}

/** The normalised name; undefined when none is given. */
function commonNameOf(body: JsonObject): string | undefined {
  const given = textMember(body, 'common_name', () => new Refusal('commonNameInvalid'));
  if (given === undefined) return undefined;
  const commonName = normaliseCommonName(given);
  const hint = 'leave out what is invisible, as in some emoji, or for private use';
  if (commonName === undefined) throw new Refusal('commonNameInvalid', MISLEADING.test(given) ? { hint } : {});
  return commonName;
}

function requestedKey(body: JsonObject): CertifiedKey | undefined {
  const csr = textMember(body, 'csr', () => new Refusal('csrInvalid', { hint: 'csr must be PEM text' }));
  return csr === undefined ? undefined : { spki: readCertificationRequest(csr) };
}
