// What each route takes and gives when all is well, for the description of the API: a table by the routes' names.
// refusals.ts has what can go wrong, schemas.ts the form of bodies.

import type { RouteName } from '../../src/http/routes.ts';
import {
  binary, count, fingerprint, oneOf, password, pasteId, ref, type Schema, serial, text,
} from './schemas.ts';

interface Given {
  readonly description: string;
  readonly schema: Schema;
}

const deleteToken: Schema = { type: 'string', pattern: '^[A-Za-z0-9_-]{43}$' };
const yes: Schema = { type: 'string', pattern: '^(?:[Tt][Rr][Uu][Ee]|1|[Yy][Ee][Ss])$' };

/** Parameters in headers, queries and paths, by the name they have in the description. */
export const REQUEST_HEADERS = {
  'X-PoW-Token': { description: 'the token of a challenge, where proof-of-work is enabled', schema: text },
  'X-PoW-Solution': { description: 'a number that solves it', schema: { type: 'string', pattern: '^\\d{1,20}$' } },
  'X-Invite': { description: 'the code of an invitation, in the place of proof-of-work', schema: text },
  'X-Burn-After-Read': { description: 'delete the paste when it is read for the first time', schema: yes },
  'X-Expiry': { description: 'seconds until the paste expires', schema: { ...count, minimum: 1 } },
  'X-Paste-Password': { description: 'the password of the paste', schema: password },
  'X-Delete-Token': { description: 'what POST / gave with a paste that has no owner', schema: deleteToken },
  'X-Remove-Password': { description: 'remove the password', schema: yes },
  'Content-Encoding': { description: 'only identity is taken', schema: oneOf('identity') },
  Range: { description: 'a single range of bytes; ignored for burn-after-read pastes', schema: text },
  'If-Range': { description: 'the entity tag that the range is meant for', schema: text },
  'If-Match': { description: 'entity tags of the content that is meant', schema: text },
  'If-None-Match': { description: 'entity tags of content that the client has', schema: text },
  'If-Modified-Since': { description: 'the Last-Modified of what the client has, exactly', schema: text },
} as const satisfies Readonly<Record<string, Given>>;

export const QUERY_PARAMETERS = {
  limit: { description: 'how many at most; the service has a maximum of its own', schema: count },
  offset: { description: 'how many to leave out', schema: count },
  after: { description: 'made after this moment, in Unix seconds', schema: count },
  before: { description: 'made before this moment, in Unix seconds', schema: count },
  type: {
    description: 'a glob that the media type fits, such as image/*',
    schema: { ...text, minLength: 1, maxLength: 64 },
  },
  all: { description: '1 lists the pastes of everyone, for the admin', schema: oneOf('1') },
  event: { description: 'only these events', schema: text },
  outcome: { description: 'only this outcome', schema: text },
  client_id: { description: 'only of this fingerprint; operator: by commands about pastes', schema: text },
} as const satisfies Readonly<Record<string, Given>>;

export const PATH_PARAMETERS: Readonly<Record<string, Given>> = {
  id: { description: 'the id of a paste', schema: pasteId },
  serial: { description: 'the serial number of a certificate', schema: serial },
};

export const RESPONSE_HEADERS = {
  Location: { description: 'the path of the new paste', schema: { type: 'string', pattern: '^/' } },
  Vary: { description: 'the answer depends on Accept', schema: text },
  'X-Delete-Token': {
    description: 'with it DELETE removes the paste; only to callers without an identity', schema: deleteToken,
  },
  'X-Hint': { description: 'how to send it better: multipart/form-data is stored as it is', schema: text },
  'X-RateLimit-Limit': { description: 'creations in a window; absent when there is no limit', schema: count },
  'X-RateLimit-Remaining': { description: 'how many more would be taken now', schema: count },
  'X-RateLimit-Reset': { description: 'when the whole limit is there again, in Unix seconds', schema: count },
  'Retry-After': { description: 'seconds to wait', schema: count },
  'WWW-Authenticate': {
    description: 'what was not presented: the password of the paste, or a client certificate',
    schema: oneOf('X-Paste-Password', 'Client-Certificate'),
  },
  'Content-Disposition': { description: 'whether to show or to save the content', schema: text },
  'Repr-Digest': { description: 'the SHA-256 of the whole content (RFC 9530); none for burn-after-read pastes', schema: text },
  'Accept-Ranges': { description: 'none for burn-after-read pastes', schema: oneOf('bytes', 'none') },
  'X-Burn-After-Read': { description: 'true on the only answer with this content', schema: oneOf('true') },
  ETag: { description: 'changes with the content', schema: text },
  'Last-Modified': { description: 'when it was made', schema: text },
  'X-Robots-Tag': { description: 'noindex on pages of pastes', schema: oneOf('noindex') },
  'Content-Range': { description: 'which bytes these are, or how many there are', schema: text },
  Allow: { description: 'the methods that the path takes', schema: text },
  'X-Fingerprint-SHA1': { description: 'the identity that the certificate gives', schema: fingerprint },
  'X-Certificate-Expires': { description: 'in Unix seconds', schema: count },
  'X-Is-Admin': { description: 'whether it is the admin\'s', schema: oneOf('1', '0') },
} as const satisfies Readonly<Record<string, Given>>;

export type ResponseHeader = keyof typeof RESPONSE_HEADERS;

/** Bodies by media type. Generators of clients use the first one. */
type Content = Readonly<Record<string, Schema>>;

export interface Answer {
  readonly description: string;
  readonly content?: Content;
  readonly headers?: readonly ResponseHeader[];
}

export interface Body {
  readonly isRequired: boolean;
  readonly description?: string;
  readonly content: Content;
}

export interface Operation {
  readonly tag: 'service' | 'pastes' | 'certificates';
  /** Whether the caller needs an identity, may have one that matters, or is never asked for one. */
  readonly identity: 'required' | 'optional' | 'none';
  readonly headers?: readonly (keyof typeof REQUEST_HEADERS)[];
  readonly query?: readonly (keyof typeof QUERY_PARAMETERS)[];
  readonly body?: Body;
  /** The body of the method that is an alias, if it is described differently. */
  readonly aliasBody?: Body;
  /** By status; includes failures that are no refusals. */
  readonly answers: Readonly<Record<number, Answer>>;
}

const TEXT = { 'text/plain; charset=utf-8': text };
const HTML = { 'text/html; charset=utf-8': text };
const PEM = { 'application/x-pem-file': text };
const BYTES = { 'application/octet-stream': binary, '*/*': binary };
const RATE: readonly ResponseHeader[] = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];
const RAW: readonly ResponseHeader[] = ['Content-Disposition', 'Repr-Digest', 'Accept-Ranges', 'ETag', 'Vary'];
const WORK = ['X-PoW-Token', 'X-PoW-Solution'] as const;
const PAGE = ['limit', 'offset', 'after', 'before'] as const;

function json(name: string): Content {
  return { 'application/json': ref(name) };
}

/**
 * Generators make nothing usable from a body that may be JSON or bytes. So each way to send content is described with
 * one of them, and says in words that the other is accepted too.
 */
const PASTE_JSON: Body = {
  isRequired: true,
  description: 'a body of another media type is the content itself',
  content: json('PasteContent'),
};
const PASTE_BYTES: Body = {
  isRequired: true,
  description: 'the content, of any media type; of application/json, the member `content` of an object',
  content: { 'application/octet-stream': binary },
};

function challengeIn(name: 'PasteChallenge' | 'Challenge', orElse = ''): Answer {
  const description = `a challenge; as text, nonce, difficulty, expiry and token on one line${orElse}`;
  return { description, content: { ...json(name), ...TEXT }, headers: ['Vary'] };
}

function listIn(description: string, content: Content): Operation {
  const headers = ['ETag', 'Last-Modified'] as const;
  const answers = { 200: { description, content, headers }, 304: { description: 'the client has it', headers } };
  return { tag: 'certificates', identity: 'none', headers: ['If-None-Match', 'If-Modified-Since'], answers };
}

/** The headers of RATE come only when no proof-of-work was done. */
const ISSUED = ['X-Fingerprint-SHA1', 'X-Certificate-Expires', 'X-Is-Admin', ...RATE] as const;

const REGISTERED = {
  200: {
    description: 'certificate, key and CA certificate, under the empty password unless one was asked for',
    content: { 'application/x-pkcs12': binary },
    headers: ['Content-Disposition', ...ISSUED],
  },
  201: { description: 'for the key of a csr: the certificate', content: json('IssuedCertificate'), headers: ISSUED },
} as const;

/** Required, since clients generated in Go send null for an optional body, and null is no object. */
const DEFAULTED = { isRequired: true, description: 'an empty object is as good as no body' };

export const OPERATIONS: Readonly<Record<RouteName, Operation>> = {
  index: {
    tag: 'service',
    identity: 'none',
    answers: {
      200: {
        description: 'what the service is; for browsers a page', content: { ...json('ServiceIndex'), ...HTML }, headers: ['Vary'],
      },
    },
  },
  createPaste: {
    tag: 'pastes',
    identity: 'optional',
    headers: [...WORK, 'X-Burn-After-Read', 'X-Expiry', 'X-Paste-Password', 'Content-Encoding'],
    body: PASTE_JSON,
    aliasBody: PASTE_BYTES,
    answers: {
      201: {
        description: 'stored; as text, its URL',
        content: { ...json('CreatedPaste'), ...TEXT },
        headers: ['Location', 'Vary', 'X-Delete-Token', 'X-Hint', ...RATE],
      },
    },
  },
  health: {
    tag: 'service',
    identity: 'none',
    answers: {
      200: { description: 'all is well', content: json('Health') },
      503: { description: 'the service stops, or its database fails', content: json('Unhealthy') },
    },
  },
  getChallenge: {
    tag: 'pastes',
    identity: 'optional',
    answers: { 200: challengeIn('PasteChallenge') },
  },
  securityText: {
    tag: 'service',
    identity: 'none',
    answers: { 200: { description: 'security.txt of RFC 9116', content: { 'text/plain; charset=utf-8': text } } },
  },
  getClient: {
    tag: 'service',
    identity: 'none',
    answers: {
      200: {
        description: 'a shell script',
        content: { 'text/x-shellscript; charset=utf-8': text },
        headers: ['Content-Disposition'],
      },
    },
  },
  listPastes: {
    tag: 'pastes',
    identity: 'required',
    query: [...PAGE, 'type', 'all'],
    answers: {
      200: {
        description: 'newest first; as text, one line each',
        content: { ...json('PasteList'), ...TEXT },
        headers: ['Vary'],
      },
    },
  },
  listAudit: {
    tag: 'service',
    identity: 'required',
    query: [...PAGE, 'event', 'outcome', 'client_id'],
    answers: { 200: { description: 'newest first', content: json('AuditLog') } },
  },
  registrationChallenge: {
    tag: 'certificates',
    identity: 'none',
    headers: ['X-Invite'],
    answers: { 200: challengeIn('Challenge', ', or unavailable and why') },
  },
  register: {
    tag: 'certificates',
    identity: 'optional',
    headers: [...WORK, 'X-Invite'],
    body: { ...DEFAULTED, content: json('RegistrationRequest') },
    answers: REGISTERED,
  },
  renewCertificate: {
    tag: 'certificates',
    identity: 'required',
    body: { ...DEFAULTED, content: json('RegistrationRequest') },
    answers: REGISTERED,
  },
  describePki: {
    tag: 'certificates',
    identity: 'none',
    answers: { 200: { description: 'whether there is an authority, and which', content: json('Authority') } },
  },
  createAuthority: {
    tag: 'certificates',
    identity: 'optional',
    body: { ...DEFAULTED, content: json('AuthorityRequest') },
    answers: { 201: { description: 'created', content: json('CreatedAuthority') } },
  },
  authorityCertificate: {
    tag: 'certificates', identity: 'none', answers: { 200: { description: 'PEM', content: PEM } },
  },
  revocationList: listIn('DER', { 'application/pkix-crl': binary }),
  revocationListPem: listIn('PEM', PEM),
  issueCertificate: {
    tag: 'certificates',
    identity: 'optional',
    headers: ['X-Invite'],
    body: { isRequired: true, content: json('IssueRequest') },
    answers: {
      201: { description: 'issued; the key is not kept', content: json('IssuedCertificate'), headers: RATE },
    },
  },
  listCertificates: {
    tag: 'certificates',
    identity: 'optional',
    query: ['limit', 'offset'],
    answers: { 200: { description: 'newest first; none for anonymous callers', content: json('CertificateList') } },
  },
  revokeCertificate: {
    tag: 'certificates',
    identity: 'required',
    body: { ...DEFAULTED, content: json('RevocationRequest') },
    answers: { 200: { description: 'revoked', content: json('RevokedCertificate') } },
  },
  getPaste: {
    tag: 'pastes',
    identity: 'optional',
    headers: ['X-Paste-Password'],
    answers: {
      200: {
        description: 'metadata; for browsers a page, with the content of text that does not burn',
        content: { ...json('Paste'), ...HTML },
        headers: ['Vary', 'X-Robots-Tag'],
      },
    },
  },
  getRaw: {
    tag: 'pastes',
    identity: 'optional',
    headers: ['X-Paste-Password', 'Range', 'If-Range', 'If-Match', 'If-None-Match'],
    answers: {
      200: { description: 'the content', content: BYTES, headers: [...RAW, 'X-Burn-After-Read'] },
      206: { description: 'a part of the content', content: BYTES, headers: [...RAW, 'Content-Range'] },
      304: { description: 'the client has it', headers: ['ETag', 'Vary'] },
    },
  },
  answerForm: {
    tag: 'pastes',
    identity: 'optional',
    headers: ['Content-Encoding'],
    body: {
      isRequired: true,
      description: 'password, and reveal=1 to read what burns; only where Accept prefers text/html, and else 405',
      content: { 'application/x-www-form-urlencoded': text },
    },
    answers: {
      200: {
        description: 'the content: text as a page, anything else to be saved',
        content: { ...HTML, ...BYTES },
        headers: ['Content-Disposition', 'Repr-Digest', 'Vary', 'X-Burn-After-Read', 'X-Robots-Tag'],
      },
    },
  },
  updatePaste: {
    tag: 'pastes',
    identity: 'required',
    headers: [
      'X-Expiry', 'X-Paste-Password', 'X-Remove-Password', 'Content-Encoding', 'If-Match', 'If-None-Match',
    ],
    body: { ...PASTE_BYTES, isRequired: false },
    answers: { 200: { description: 'updated', content: json('UpdatedPaste'), headers: RATE } },
  },
  deletePaste: {
    tag: 'pastes',
    identity: 'optional',
    headers: ['X-Delete-Token', 'If-Match', 'If-None-Match'],
    answers: { 200: { description: 'deleted', content: json('Message') } },
  },
};
