// What the API says about its values: the only place with the wire's member names and representations of times. The
// contract's "Resources and their fields" is the source.

import type { CertificateRecord, IssuedCertificate } from '../authority/issuing.ts';
import { isoSeconds } from '../core/time.ts';
import type { IssuedChallenge } from '../pastes/admission.ts';
import type { AuditEntry, ListedPaste, Paste, StoredAuthority } from '../store/store.ts';

/** How much of a fingerprint is shown to others than its owner's own tools. */
const OWNER_SHOWN_CHARACTERS = 12;

/** The answer to POST /: optional members only when they say something. */
export function presentCreated(paste: Omit<Paste, 'sha256'>, expiryWasAsked: boolean): object {
  return {
    id: paste.id,
    url: `/${paste.id}`,
    raw: `/${paste.id}/raw`,
    mime_type: paste.mimeType,
    created_at: paste.createdAt,
    ...(paste.owner === null ? {} : { owner: shortOwner(paste) }),
    ...(paste.burnAfterRead ? { burn_after_read: true } : {}),
    ...(expiryWasAsked ? { expires_at: paste.expiresAt } : {}),
    ...(paste.passwordHash === null ? {} : { password_protected: true }),
  };
}

/** The answer to GET /{id}. */
export function presentMetadata(paste: Paste): object {
  return {
    id: paste.id,
    mime_type: paste.mimeType,
    size: paste.size,
    created_at: paste.createdAt,
    raw: `/${paste.id}/raw`,
    expires_at: paste.expiresAt,
    ...(paste.passwordHash === null ? {} : { password_protected: true }),
  };
}

/** The answer to GET /register/challenge. */
export function presentChallenge(challenge: IssuedChallenge | null): object {
  if (challenge === null) return { enabled: false, difficulty: 0 };
  const { difficultyBits, nonce, expiresAt, token } = challenge;
  return { enabled: true, difficulty: difficultyBits, nonce, expires: expiresAt, token };
}

/** What GET /register/challenge and GET / add while nothing can be issued. */
export function presentUnavailable(hint: string): object {
  return { available: false, hint };
}

/** The answer to GET /challenge, which says too how the difficulty came about. */
export function presentPasteChallenge(challenge: IssuedChallenge | null, baseBits: number): object {
  if (challenge === null) return presentChallenge(null);
  return { ...presentChallenge(challenge), base_difficulty: baseBits, elevated: challenge.difficultyBits > baseBits };
}

/** `nonce difficulty expires token` for shells; dashes where there is nothing to solve. */
export function challengeLine(challenge: IssuedChallenge | null): string {
  if (challenge === null) return '- 0 - -';
  return `${challenge.nonce} ${challenge.difficultyBits} ${challenge.expiresAt} ${challenge.token}`;
}

function shortOwner(paste: Pick<Paste, 'owner'>): string | null {
  return paste.owner === null ? null : paste.owner.slice(0, OWNER_SHOWN_CHARACTERS);
}

/**
 * An item of GET /pastes: every member always, times in ISO 8601. An anonymous paste, which only the admin sees, has no
 * owner.
 */
export function presentListItem(paste: ListedPaste) {
  return {
    id: paste.id,
    size: paste.size,
    mime_type: paste.mimeType,
    created_at: isoSeconds(paste.createdAt),
    expires_at: isoSeconds(paste.expiresAt),
    burn_after_read: paste.burnAfterRead,
    password_protected: paste.hasPassword,
    owner: shortOwner(paste),
  };
}

const LIST_COLUMNS = [
  'id', 'size', 'mime_type', 'created_at', 'expires_at', 'burn_after_read', 'password_protected', 'owner',
] as const satisfies readonly (keyof ReturnType<typeof presentListItem>)[];

/** For shells: a header line and a line a paste, separated by tabs. No value can hold a tab. */
export function listText(pastes: readonly ListedPaste[]): string {
  const lines = pastes.map((paste) => {
    const item = presentListItem(paste);
    return LIST_COLUMNS.map((column) => String(item[column] ?? '-')).join('\t');
  });
  return [LIST_COLUMNS.join('\t'), ...lines].join('\n');
}

/** An entry of GET /audit. */
export function presentAuditEntry(entry: AuditEntry): object {
  return {
    id: entry.id,
    time: isoSeconds(entry.time),
    event: entry.event,
    outcome: entry.outcome,
    client_id: entry.clientId,
    client_ip: entry.clientIp,
    details: entry.details,
  };
}

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
