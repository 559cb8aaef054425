// What requests and answers hold, as JSON Schema (2020-12, which OpenAPI 3.1 takes): the description of what present.ts
// and the handlers write. A test validates real answers by it, and refuses keywords that it does not know.

import { REFUSALS, type RefusalName } from '../core/refusals.ts';
import { REVOCATION_REASONS } from '../crypto/extensions.ts';

export interface Schema {
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly (string | number | boolean)[];
  readonly pattern?: string;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: false | Schema;
}

type Members = Readonly<Record<string, Schema>>;

export const text: Schema = { type: 'string' };
const integer: Schema = { type: 'integer' };
const number: Schema = { type: 'number' };
const flag: Schema = { type: 'boolean' };
const moment: Schema = { type: 'integer', description: 'Unix seconds' };
const isoMoment: Schema = { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$' };
const seconds: Schema = { type: 'integer', description: 'seconds' };
const bytes: Schema = { type: 'integer', description: 'bytes' };
const pem: Schema = { type: 'string', pattern: '^-----BEGIN ' };
const path: Schema = { type: 'string', pattern: '^/', description: 'relative to the address of the service' };
const mediaType: Schema = { type: 'string', pattern: '^[a-z]+/' };

export const pasteId: Schema = { type: 'string', pattern: '^[A-Za-z0-9]{6,64}$' };
export const fingerprint: Schema = { type: 'string', pattern: '^[0-9a-f]{40}$' };
export const serial: Schema = { type: 'string', pattern: '^[0-9a-f]{32}$' };
const shortOwner: Schema = { type: ['string', 'null'], pattern: '^[0-9a-f]{12}$' };

/** An object with these members and no others. */
export function object(required: Members, optional: Members = {}): Schema {
  const properties = { ...required, ...optional };
  return { type: 'object', required: Object.keys(required), properties, additionalProperties: false };
}

function listOf(items: Schema): Schema {
  return { type: 'array', items };
}

function mapOf(additionalProperties: Schema): Schema {
  return { type: 'object', additionalProperties };
}

export function ref(name: keyof typeof SCHEMAS): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

const metadata: Members = {
  id: pasteId, mime_type: mediaType, size: bytes, created_at: moment, raw: path, expires_at: moment,
};
const authority: Members = { common_name: text, fingerprint_sha1: fingerprint, created_at: moment, expires_at: moment };
const named: Members = { serial, ...authority };
const challenge: Members = { nonce: { type: 'string', pattern: '^[0-9a-f]{32}$' }, expires: moment, token: text };
const work: Members = { enabled: flag, difficulty: { type: 'integer', description: 'leading zero bits' } };
const elevation: Members = { base_difficulty: integer, elevated: flag };
const tier: Members = {
  max_size: bytes,
  default_expiry: seconds,
  max_expiry: seconds,
  creations: { type: ['integer', 'null'], description: 'in a window; null for no limit' },
  creations_window: seconds,
  lookups: { type: ['integer', 'null'], description: 'in a window; null for no limit' },
  lookups_window: seconds,
};
const pageMembers: Members = { total: integer, limit: integer, offset: integer };

export const SCHEMAS = {
  Index: object({
    version: { type: 'string', pattern: '^1\\.5\\.\\d+$' },
    endpoints: mapOf(text),
    usage: mapOf(text),
    client: mapOf(text),
    tiers: object({ anonymous: object(tier), untrusted: object(tier), trusted: object(tier) }),
    proof_of_work: object({ paste: object({ ...work, ...elevation }), register: object(work) }),
    note: text,
  }),
  Health: object({ status: { enum: ['healthy'] }, database: { enum: ['ok'] } }),
  Unhealthy: object({ error: text, status: { enum: ['unhealthy'] }, database: { enum: ['error'] } }),
  Challenge: object(work, challenge),
  PasteChallenge: object(work, { ...challenge, ...elevation }),
  NewPasteJson: { type: 'object', required: ['content'], properties: { content: text } },
  CreatedPaste: object(
    { id: pasteId, url: path, raw: path, mime_type: mediaType, created_at: moment },
    { owner: shortOwner, burn_after_read: flag, expires_at: moment, password_protected: flag },
  ),
  Paste: object(metadata, { password_protected: flag }),
  UpdatedPaste: object({ message: text, ...metadata }, { password_protected: flag }),
  Message: object({ message: text }),
  PasteList: object({
    pastes: listOf(object({
      id: pasteId, size: bytes, mime_type: mediaType, created_at: isoMoment, expires_at: isoMoment,
      burn_after_read: flag, password_protected: flag, owner: shortOwner,
    })),
    ...pageMembers,
  }),
  AuditLog: object({
    entries: listOf(object({
      id: integer, time: isoMoment, event: text, outcome: text, client_id: { type: ['string', 'null'] },
      client_ip: { type: ['string', 'null'] }, details: { type: 'object' },
    })),
    ...pageMembers,
  }),
  RegistrationRequest: {
    type: 'object',
    properties: { common_name: text, p12_password: text, p12_profile: { enum: ['modern', 'compat'] } },
  },
  Authority: object({ enabled: flag }, { ca_exists: flag, hint: text, ...authority, key_algorithm: text }),
  NewAuthorityRequest: { type: 'object', properties: { common_name: text } },
  NewAuthority: object({ message: text, ...authority, download: path }),
  IssueRequest: { type: 'object', required: ['common_name'], properties: { common_name: text, csr: pem } },
  IssuedCertificate: object(
    { message: text, ...named, certificate_pem: pem, is_admin: flag },
    { private_key_pem: pem },
  ),
  CertificateList: object({
    certificates: listOf(object({
      ...named,
      status: { enum: ['valid', 'revoked', 'expired'] },
      issued_to: { type: ['string', 'null'] },
      is_admin: flag,
    })),
    count: integer,
  }),
  RevocationRequest: { type: 'object', properties: { reason: { enum: Object.keys(REVOCATION_REASONS) } } },
  RevokedCertificate: object({ message: text, serial }),
} as const satisfies Readonly<Record<string, Schema>>;

/** Members of a refusal's body beside `error` and `hint`. */
const REFUSAL_MEMBERS: Partial<Readonly<Record<RefusalName, Members>>> = {
  pasteTooSmall: { size: bytes, min_size: bytes },
  pasteTooLarge: { size: bytes, max_size: bytes, authenticated: flag },
  entropyTooLow: { entropy: number, min_entropy: number },
  textRefused: { detected: mediaType },
  duplicateContent: { count: integer, window_seconds: seconds },
  queryInvalid: { parameter: text },
  headerRepeated: { header: text },
  bodyTooLarge: { max_size: bytes },
  passwordRequired: { password_protected: flag },
  rangeNotSatisfiable: { size: bytes },
};

/** The body of any of these refusals. */
export function refusalSchema(refusals: readonly RefusalName[]): Schema {
  const words = [...new Set(refusals.map((refusal) => REFUSALS[refusal].error))];
  const members = Object.assign({}, ...refusals.map((refusal) => REFUSAL_MEMBERS[refusal])) as Members;
  return object({ error: { type: 'string', enum: words } }, { hint: text, ...members });
}
