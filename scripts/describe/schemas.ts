// What requests and answers hold, as JSON Schema (2020-12, which OpenAPI 3.1 takes): it describes what present.ts and
// the handlers write. Each media type and each object has a schema with a name, since generators of clients make types
// and methods from these. A test validates real answers by it, and refuses members that it does not name.

import { REVOCATION_REASONS } from '../../src/authority/certificates.ts';
import { MAX_CSR_CHARACTERS } from '../../src/authority/keys.ts';

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: 'binary' | 'int64';
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
}

type Members = Readonly<Record<string, Schema>>;

export const text: Schema = { type: 'string' };
export const binary: Schema = { type: 'string', format: 'binary' };
export const count: Schema = { type: 'integer', format: 'int64', minimum: 0 };
const number: Schema = { type: 'number', minimum: 0 };
const flag: Schema = { type: 'boolean' };
const moment: Schema = { ...count, description: 'Unix seconds' };
const isoMoment: Schema = { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$' };
const seconds: Schema = { ...count, description: 'seconds' };
const bytes: Schema = { ...count, description: 'bytes' };
const pem: Schema = { type: 'string', pattern: '^-----BEGIN ' };
const path: Schema = { type: 'string', pattern: '^/', description: 'relative to the address of the service' };
const mediaType: Schema = { type: 'string', pattern: '^[a-z]+/' };
const commonName: Schema = { type: 'string', minLength: 1, maxLength: 64 };
const hexNonce: Schema = { type: 'string', pattern: '^[0-9a-f]{32}$' };

export const pasteId: Schema = { type: 'string', pattern: '^[A-Za-z0-9]{6,64}$' };
export const fingerprint: Schema = { type: 'string', pattern: '^[0-9a-f]{40}$' };
export const serial: Schema = { type: 'string', pattern: '^[0-9a-f]{32}$' };
export const password: Schema = { type: 'string', minLength: 1, maxLength: 1024 };
const bundlePassword: Schema = {
  ...password, description: 'Java reads bundles under ASCII alone, and openssl takes at most 1023 bytes of a password from a file',
};
const shortOwner: Schema = { type: ['string', 'null'], pattern: '^[0-9a-f]{12}$' };

export function oneOf(...values: readonly string[]): Schema {
  return { type: 'string', enum: values };
}

/** Allows more members, since clients generated from this must still work when a later version adds some. */
function object(required: Members, optional: Members = {}): Schema {
  const names = Object.keys(required);
  return { type: 'object', ...(names.length > 0 && { required: names }), properties: { ...required, ...optional } };
}

function listOf(name: string): Schema {
  return { type: 'array', items: ref(name) };
}

function mapOf(additionalProperties: Schema): Schema {
  return { type: 'object', additionalProperties };
}

export function ref(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

const certificationRequest: Schema = { ...pem, maxLength: MAX_CSR_CHARACTERS };
const metadata: Members = {
  id: pasteId, mime_type: mediaType, size: bytes, created_at: moment, raw: path, expires_at: moment,
};
const authority: Members = {
  common_name: commonName, fingerprint_sha1: fingerprint, created_at: moment, expires_at: moment,
};
const named: Members = { serial, ...authority };
const challenge: Members = { nonce: hexNonce, expires: moment, token: text };
const unavailable: Members = {
  available: { ...flag, description: 'only when it is false: no certificate can be had' }, hint: text,
};
const work: Members = { enabled: flag, difficulty: { ...count, description: 'leading zero bits' } };
const elevation: Members = { base_difficulty: count, elevated: flag };
const perWindow: Schema = {
  ...count, type: ['integer', 'null'], minimum: 1, description: 'in a window; null for no limit',
};
const pageMembers: Members = { total: count, limit: count, offset: count };

/** Each object has a name here, since a generator makes up a name for an unnamed object inside another. */
export const SCHEMAS: Readonly<Record<string, Schema>> = {
  ServiceIndex: object({
    version: { type: 'string', pattern: '^1\\.5\\.\\d+$' },
    endpoints: mapOf(text),
    usage: mapOf(text),
    client: mapOf(text),
    tiers: ref('Tiers'),
    proof_of_work: ref('ProofOfWork'),
    note: text,
  }, { creation: ref('Creation'), registration: ref('Registration'), contact: text }),
  Creation: object({ needed: oneOf('identity', 'trusted'), hint: text }),
  Registration: object(unavailable, { invitation_required: flag }),
  Tiers: object({ anonymous: ref('Tier'), untrusted: ref('Tier'), trusted: ref('Tier') }),
  Tier: object({
    max_size: bytes,
    default_expiry: seconds,
    max_expiry: seconds,
    creations: perWindow,
    creations_window: seconds,
    lookups: perWindow,
    lookups_window: seconds,
  }),
  ProofOfWork: object({ paste: ref('PasteWork'), register: ref('RegistrationWork') }, { trusted: ref('PasteWork') }),
  PasteWork: object({ ...work, ...elevation }),
  RegistrationWork: object(work),
  Health: object({ status: oneOf('healthy'), database: oneOf('ok') }),
  Unhealthy: object({ error: text }, { status: oneOf('unhealthy'), database: oneOf('error'), hint: text }),
  Challenge: object(work, { ...challenge, ...unavailable }),
  PasteChallenge: object(work, { ...challenge, ...elevation }),
  PasteContent: object({ content: { type: 'string', minLength: 1 } }),
  CreatedPaste: object(
    { id: pasteId, url: path, raw: path, mime_type: mediaType, created_at: moment },
    { owner: shortOwner, burn_after_read: flag, expires_at: moment, password_protected: flag },
  ),
  Paste: object(metadata, { password_protected: flag }),
  UpdatedPaste: object({ message: text, ...metadata }, { password_protected: flag }),
  Message: object({ message: text }),
  PasteList: object({ pastes: listOf('ListedPaste'), ...pageMembers }),
  ListedPaste: object({
    id: pasteId, size: bytes, mime_type: mediaType, created_at: isoMoment, expires_at: isoMoment,
    burn_after_read: flag, password_protected: flag, owner: shortOwner,
  }),
  AuditLog: object({ entries: listOf('AuditEntry'), ...pageMembers }),
  AuditEntry: object({
    id: count, time: isoMoment, event: text, outcome: text, client_id: { type: ['string', 'null'] },
    client_ip: { type: ['string', 'null'] }, details: mapOf({}),
  }),
  RegistrationRequest: object({}, {
    common_name: commonName, p12_password: bundlePassword, p12_profile: oneOf('modern', 'compat'),
    csr: certificationRequest,
  }),
  Authority: object({ enabled: flag }, { ca_exists: flag, hint: text, ...authority, key_algorithm: text }),
  AuthorityRequest: object({}, { common_name: commonName }),
  CreatedAuthority: object({ message: text, ...authority, download: path }),
  IssueRequest: object({ common_name: commonName }, { csr: certificationRequest }),
  IssuedCertificate: object(
    { message: text, ...named, certificate_pem: pem, is_admin: flag },
    { private_key_pem: pem },
  ),
  CertificateList: object({
    certificates: listOf('CertificateRecord'), count, total: count, limit: count, offset: count,
  }),
  CertificateRecord: object({
    ...named, status: oneOf('valid', 'revoked', 'expired'), issued_to: { type: ['string', 'null'] }, is_admin: flag,
  }),
  RevocationRequest: object({}, { reason: oneOf(...Object.keys(REVOCATION_REASONS)) }),
  RevokedCertificate: object({ message: text, serial }),
  Refusal: object({ error: text }, {
    hint: text,
    size: bytes,
    min_size: bytes,
    max_size: bytes,
    authenticated: flag,
    entropy: number,
    min_entropy: number,
    detected: mediaType,
    count,
    window_seconds: seconds,
    parameter: text,
    header: text,
    password_protected: flag,
  }),
};
