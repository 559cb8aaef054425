// The endpoints of the certificate authority: /pki, as far as SERVICE_PKI_ENABLED offers it, and /register.

import { Refusal } from '../core/refusals.ts';
import { type Awaitable, unixSeconds } from '../core/time.ts';
import { sha256 } from '../crypto/digest.ts';
import { UUID_BYTES, uuidFromHex } from '../http/engine/head.ts';
import { emptyReply, type Handler, jsonReply, rateHeaders, type Reply, textReply } from '../http/engine/reply.ts';
import type { Request } from '../http/engine/request.ts';
import { jsonBodyOf, type JsonObject, namesEtag, page, textMember, work } from '../http/input.ts';
import {
  challengeLine, hintingClient, presentChallenge, presentUnavailable, registerCommand,
} from '../http/present.ts';
import type { Requester } from '../pastes/identity.ts';
import type { Parts } from '../pastes/parts.ts';
import type { StoredAuthority, StoredCrl } from '../store/store.ts';
import { Authorities, DEFAULT_AUTHORITY_NAME } from './authority.ts';
import { normaliseCommonName } from './der.ts';
import {
  Bundles, issueCertificate, listCertificates, presentCertificates, requireRevocable, revokeCertificate,
} from './issuing.ts';
import { encodeLongPem, encodePem, generateKeyPair, privateKeyPem, readCertificationRequest } from './keys.ts';
import { type BundleProfile, isBundlePassword } from './pkcs12.ts';
import { isRevocationReason, RevocationList } from './revocation-list.ts';

export interface AuthorityParts extends Parts {
  /** A listener that identifies clients by their certificates, from when there is an authority. */
  readonly tls: { trust(certificate: Uint8Array): void } | undefined;
}

interface Room extends AuthorityParts {
  readonly authorities: Authorities;
  readonly revocationList: RevocationList;
  readonly bundles: Bundles;
}

export type AuthorityRoom = ReturnType<typeof createRoom>;

/** The authority, what it issues, and its routes. */
export function createRoom(parts: AuthorityParts) {
  const authorities = new Authorities(parts, ({ certificate }) => parts.tls?.trust(certificate));
  const revocationList = new RevocationList({ ...parts, authorities });
  const room: Room = { ...parts, authorities, revocationList, bundles: new Bundles(parts.clock) };
  const always = (handler: RoomHandler): Handler => (request) => handler(room, request);
  const whenEnabled = (handler: RoomHandler): Handler => (request) => {
    if (parts.config.pkiEnabled) return handler(room, request);
    throw new Refusal('pkiDisabled', { hint: 'the operator can set SERVICE_PKI_ENABLED' });
  };
  return {
    authorities,
    revocationList,
    handlers: {
      describePki: always(describePki),
      createAuthority: whenEnabled(createAuthority),
      authorityCertificate: whenEnabled(authorityCertificate),
      revocationList: whenEnabled((_, request) => listReply(room, request, 'application/pkix-crl', ({ der }) => der)),
      revocationListPem: whenEnabled((_, request) => listReply(room, request, PEM_TYPE, pemOfList)),
      issueCertificate: whenEnabled(answerIssued),
      listCertificates: whenEnabled(answerListed),
      revokeCertificate: whenEnabled(answerRevoked),
      registrationChallenge: always(registrationChallenge),
      register: always(answerRegistered),
    },
    close: () => room.bundles.close(),
  };
}

type RoomHandler = (room: Room, request: Request) => Promise<Reply>;

const PEM_TYPE = 'application/x-pem-file';

/** As GET /pastes. */
const PAGING = { fallback: 100, maximum: 1000 };

async function describePki({ config, authorities }: Room): Promise<Reply> {
  if (!config.pkiEnabled) return jsonReply(200, { enabled: false });
  const authority = await authorities.find();
  if (authority === undefined) {
    const hint = 'POST /pki/ca creates the CA; so does the first registration';
    return jsonReply(200, { enabled: true, ca_exists: false, hint });
  }
  const key = { key_algorithm: 'ec:secp384r1' };
  return jsonReply(200, { enabled: true, ca_exists: true, ...presentAuthority(authority), ...key });
}

async function createAuthority({ identity, authorities }: Room, request: Request): Promise<Reply> {
  // The audit log names nobody for a certificate that is revoked.
  const requester = requesterOf(request, (await identity.callerOf(request)).fingerprint);
  await authorities.requireNone();
  const body = await jsonBodyOf(request);
  const authority = await authorities.create(commonNameOf(body) ?? DEFAULT_AUTHORITY_NAME, requester);
  return jsonReply(201, { message: 'CA created', ...presentAuthority(authority), download: '/pki/ca.crt' });
}

async function authorityCertificate({ authorities }: Room): Promise<Reply> {
  const authority = await authorities.find();
  if (authority === undefined) throw new Refusal('authorityMissing');
  const body = encodePem('CERTIFICATE', authority.certificate);
  return { status: 200, headers: { 'Content-Type': PEM_TYPE }, body };
}

/** The list's number is its ETag: no two lists have the same. */
async function listReply(
  { revocationList }: Room,
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

/** A list may have megabytes, so its PEM is made once. */
const listsInPem = new WeakMap<StoredCrl, Promise<Uint8Array>>();

function pemOfList(list: StoredCrl): Promise<Uint8Array> {
  const pem = listsInPem.get(list) ?? encodeLongPem('X509 CRL', list.der);
  listsInPem.set(list, pem);
  return pem;
}

async function answerIssued(room: Room, request: Request): Promise<Reply> {
  const caller = await room.identity.callerOf(request);
  const rate = room.rates.countCreation(request.clientAddress, caller);
  const body = await jsonBodyOf(request);
  const commonName = commonNameOf(body);
  if (commonName === undefined) throw new Refusal('commonNameRequired');
  const authority = await room.authorities.signing();
  const csr = textMember(body, 'csr', () => new Refusal('csrInvalid', { hint: 'csr must be PEM text' }));
  const key = csr === undefined ? await generateKeyPair() : { spki: readCertificationRequest(csr) };
  const requester = requesterOf(request, caller.fingerprint);
  const issued = await issueCertificate(room, { commonName, key, requester, spend: null }, authority);
  const answer = {
    message: 'certificate issued',
    serial: issued.serial,
    common_name: commonName,
    fingerprint_sha1: issued.fingerprint,
    created_at: issued.createdAt,
    expires_at: issued.expiresAt,
    certificate_pem: encodePem('CERTIFICATE', issued.certificate),
    // Who sent a request has the key already.
    ...('privateKey' in key ? { private_key_pem: privateKeyPem(key.privateKey) } : {}),
    is_admin: issued.isAdmin,
  };
  return jsonReply(201, answer, rate === null ? {} : rateHeaders(rate));
}

async function answerListed(room: Room, request: Request): Promise<Reply> {
  const asked = page(request.query, PAGING);
  const { items, total } = await listCertificates(room, await room.identity.callerOf(request), asked);
  return jsonReply(200, { ...presentCertificates(items), total });
}

async function answerRevoked(room: Room, request: Request): Promise<Reply> {
  const serial = (request.params['serial'] ?? '').toLowerCase();
  const caller = await room.identity.callerOf(request);
  // The audit log names a holder by the fingerprint on record, anyone else by what was presented.
  const revoker = { caller, requester: requesterOf(request, caller.fingerprint ?? request.fingerprint) };
  await requireRevocable(room, serial, revoker);
  const reason = textMember(await jsonBodyOf(request), 'reason', () => new Refusal('reasonInvalid')) ?? null;
  if (reason !== null && !isRevocationReason(reason)) {
    throw new Refusal('reasonInvalid', { hint: 'such as keyCompromise or superseded' });
  }
  await revokeCertificate(room, serial, revoker, reason);
  return jsonReply(200, { message: 'certificate revoked', serial });
}

async function registrationChallenge({ authorities, challenges }: Room, request: Request): Promise<Reply> {
  // Nobody should do work for a certificate that can't be had.
  await authorities.checkKey();
  const hint = authorities.whyUnavailable();
  const challenge = challenges.issue('register');
  const line = hint === undefined ? challengeLine(challenge) : `unavailable ${hint}`;
  if (request.prefersText) return textReply(200, line, { Vary: 'Accept' });
  const unavailable = hint === undefined ? {} : presentUnavailable(hint);
  return jsonReply(200, { ...presentChallenge(challenge), ...unavailable }, { Vary: 'Accept' });
}

/** Whoever has done the work gets a certificate and its key; the authority is made when there is none. */
async function answerRegistered(room: Room, request: Request): Promise<Reply> {
  const { fingerprint } = await room.identity.callerOf(request);
  const shown = work(request.headers);
  await room.authorities.requireUsable();
  const invitation = await invitationOf(room, request);
  const spend = invitation !== undefined ? null : await room.challenges.require('register', shown).catch((error) => {
    throw hintingClient(error, request.publicUrl, registerCommand(request.publicUrl));
  });
  const body = await jsonBodyOf(request);
  const commonName = commonNameOf(body) ?? uuidFromHex(Buffer.from(room.random(UUID_BYTES)).toString('hex'));
  const wanted = { profile: bundleProfile(body), password: bundlePassword(body) };
  const requester = requesterOf(request, fingerprint);
  const authority = await room.authorities.ensured(requester);
  let bundle: Uint8Array = new Uint8Array();
  const key = await generateKeyPair();
  const wish = { commonName, key, requester, spend, invitation };
  const issued = await issueCertificate(room, wish, authority, async ({ certificate }) => {
    const content = { commonName, certificate, privateKey: key.privateKey, authority: authority.certificate };
    bundle = await room.bundles.make({ ...content, ...wanted }, request.clientAddress);
  });
  const headers = {
    'Content-Type': 'application/x-pkcs12',
    'Content-Disposition': 'attachment; filename="client.p12"',
    'X-Fingerprint-SHA1': issued.fingerprint,
    'X-Certificate-Expires': String(issued.expiresAt),
    'X-Is-Admin': issued.isAdmin ? '1' : '0',
  };
  return { status: 200, headers, body: bundle };
}

/** The digest of the invitation that is presented, undefined without one. It takes the place of work. */
async function invitationOf({ store, clock }: Room, { headers }: Request): Promise<Uint8Array | undefined> {
  const code = headers.single('x-invite');
  if (code === undefined) return undefined;
  const codeSha256 = sha256(Buffer.from(code, 'latin1'));
  if (await store.governing.isInvitationOpen(codeSha256, unixSeconds(clock))) return codeSha256;
  throw new Refusal('invitationRequired', { hint: 'this one is unknown, was used, was withdrawn, or has expired' });
}

function requesterOf({ clientAddress }: Request, fingerprint: string | null): Requester {
  return { fingerprint, clientAddress };
}

/** The normalised name; undefined when none is given, or an empty one. */
function commonNameOf(body: JsonObject): string | undefined {
  const given = textMember(body, 'common_name', () => new Refusal('commonNameInvalid'));
  if (given === undefined || given === '') return undefined;
  const commonName = normaliseCommonName(given);
  if (commonName === undefined) throw new Refusal('commonNameInvalid');
  return commonName;
}

function bundleProfile(body: JsonObject): BundleProfile {
  const profile = textMember(body, 'p12_profile', () => new Refusal('bundleProfileInvalid')) ?? 'modern';
  if (profile !== 'modern' && profile !== 'compat') throw new Refusal('bundleProfileInvalid');
  return profile;
}

/** Empty when none is asked for. */
function bundlePassword(body: JsonObject): string {
  const password = textMember(body, 'p12_password', () => new Refusal('bundlePasswordInvalid'));
  if (password !== undefined && !isBundlePassword(password)) throw new Refusal('bundlePasswordInvalid');
  return password ?? '';
}

function presentAuthority({ commonName, fingerprint, createdAt, expiresAt }: StoredAuthority): object {
  return { common_name: commonName, fingerprint_sha1: fingerprint, created_at: createdAt, expires_at: expiresAt };
}

