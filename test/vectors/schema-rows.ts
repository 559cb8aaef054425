// The rows in the databases of every schema version beside this file, which tests look for after an upgrade. Ids, times
// and secrets are fixed. make-schema-vectors.ts makes the databases.

import { createHash, pbkdf2Sync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { DAY_SECONDS } from '../../src/core/time.ts';
import { CHUNK_BYTES, INLINE_BYTES } from '../../src/store/store.ts';
import { CREATED_AT } from '../support/store.ts';

/** One hour before the time that the clock of a test starts at, in Unix seconds. */
export const MADE_AT = CREATED_AT - 3600;

const sha256 = (content: Uint8Array | string): Buffer => createHash('sha256').update(content).digest();

const fingerprint = (name: string): string => createHash('sha1').update(name).digest('hex');

/** Fingerprints. OWNER is nobody that the service knows; the others are of the certificates below. */
export const OWNER = fingerprint('owner');
export const ADMIN = fingerprint('admin');
export const CLIENT = fingerprint('client');
export const REVOKED = fingerprint('revoked');
/** The fingerprint of the certificate that renews the client's and has not been presented yet. */
export const RENEWED = fingerprint('renewed');

export const PASSWORD = 'correct horse battery staple';

/** The code of an invitation, and content that is refused. */
export const INVITATION = 'abcdefghijklmnopqrstuvwxyz';
export const BANNED = 'Content that is refused.\n';

interface OldPaste {
  readonly id: string;
  readonly content: Uint8Array;
  readonly mimeType?: string;
  readonly owner?: string;
  readonly isBurn?: boolean;
  readonly password?: string;
  /** How long it lives after MADE_AT. */
  readonly ttlSeconds?: number;
}

/** Each line has its own number and padding, and nothing else, so that the content packs small. */
function numberedLines(bytes: number): Uint8Array {
  const lines = Array.from({ length: Math.ceil(bytes / 512) }, (_, index) => `${String(index).padEnd(511, '-')}\n`);
  return Buffer.from(lines.join('')).subarray(0, bytes);
}

/** 26 characters, like the ids that the service makes. */
const id = (word: string): string => word.padEnd(26, '2');

/** One paste of each kind. Each is a second newer than the one before it. */
export const PASTES = {
  text: { id: id('text'), content: Buffer.from('An old paste, and it stays.\n') },
  image: { id: id('image'), content: Buffer.of(0xff, 0xd8, 0, 1, 2), mimeType: 'image/jpeg', owner: OWNER },
  chunked: { id: id('chunked'), content: numberedLines(2 * CHUNK_BYTES + 1), owner: OWNER },
  locked: { id: id('locked'), content: Buffer.from('behind a password'), password: PASSWORD, owner: OWNER },
  burn: { id: id('burn'), content: Buffer.from('read once'), isBurn: true },
  chunkedBurn: { id: id('chunkedburn'), content: numberedLines(CHUNK_BYTES + 1), isBurn: true },
  expired: { id: id('expired'), content: Buffer.from('gone already'), owner: OWNER, ttlSeconds: 3600 },
} as const satisfies Record<string, OldPaste>;

/** The nonce of a challenge that was solved and spent, and the key that signed it. */
export const SPENT_NONCE = '0123456789abcdef0123456789abcdef';
export const CHALLENGE_KEY = sha256('the key that signs challenges');

/** A real authority. Its key is locked with the password of support/pki.ts, and its revocation list is number 3. */
export const AUTHORITY = JSON.parse(readFileSync(new URL('./schema-authority.json', import.meta.url), 'utf8')) as {
  readonly fingerprint: string;
  readonly expiresAt: number;
  readonly certificate: string;
  readonly lockedKey: string;
  readonly crl: string;
};

/** A serial as makeSerial of authority/certificates.ts makes it. */
const serial = (digit: number): string => `4${String(digit).repeat(31)}`;

export const REVOKED_SERIAL = serial(3);

/** For each schema version, inserts rows for what it brought, into a database of that version or a later one. */
export const ROWS: readonly ((db: DatabaseSync) => void)[] = [
  insertPastes, insertAbuseControls, insertIdentities, insertAuthority, insertNothing, countRevocations, insertGoverning,
];

function insertPastes(db: DatabaseSync): void {
  for (const [index, paste] of Object.values(PASTES).entries()) insertPaste(db, paste, MADE_AT + index);
  // An upload that a crash cut off.
  db.prepare('INSERT INTO orphans (content_id) VALUES (?)').run('cut off');
  insertChunk(db, 'cut off', 0, Buffer.from('half of an upload'));
}

function insertPaste(db: DatabaseSync, paste: OldPaste, createdAt: number): void {
  const { content, mimeType = 'text/plain', owner = null, isBurn = false, password } = paste;
  const expiresAt = MADE_AT + (paste.ttlSeconds ?? 30 * DAY_SECONDS);
  const contentId = content.length > INLINE_BYTES ? `content of ${paste.id}` : null;
  for (let start = 0; contentId !== null && start < content.length; start += CHUNK_BYTES) {
    insertChunk(db, contentId, start / CHUNK_BYTES, content.subarray(start, start + CHUNK_BYTES));
  }
  db.prepare(`
    INSERT INTO pastes (id, owner, mime_type, size, sha256, created_at, expires_at, burn_after_read, password_hash,
      accessed_at, content_id, content)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    .run(paste.id, owner, mimeType, content.length, sha256(content), createdAt, expiresAt, isBurn ? 1 : 0,
      password === undefined ? null : hashOf(password), createdAt, contentId, contentId === null ? content : null);
}

function insertChunk(db: DatabaseSync, contentId: string, position: number, bytes: Uint8Array): void {
  db.prepare('INSERT INTO chunks (content_id, position, bytes) VALUES (?, ?, ?)').run(contentId, position, bytes);
}

/** In the form that crypto/passwords.ts writes. */
function hashOf(password: string): string {
  const salt = sha256('salt');
  const key = pbkdf2Sync(password, salt, 600_000, 32, 'sha256');
  return `pbkdf2-sha256$600000$${salt.toString('base64url')}$${key.toString('base64url')}`;
}

function insertAbuseControls(db: DatabaseSync): void {
  db.prepare('INSERT INTO spent_challenges (nonce, expires_at) VALUES (?, ?)').run(SPENT_NONCE, CREATED_AT + 100);
  db.prepare('INSERT INTO submissions (sha256, stored_at) VALUES (?, ?)')
    .run(sha256(PASTES.text.content), CREATED_AT - 60);
  db.prepare('INSERT INTO secrets (name, value) VALUES (?, ?)').run('proof-of-work', CHALLENGE_KEY);
}

function insertIdentities(db: DatabaseSync): void {
  const insert = db.prepare(`
    INSERT INTO certificates (serial, common_name, fingerprint, created_at, expires_at, issued_to, is_admin, revoked_at,
      revocation_reason)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const until = MADE_AT + 365 * DAY_SECONDS;
  insert.run(serial(1), 'admin', ADMIN, MADE_AT, until, null, 1, null, null);
  insert.run(serial(2), 'client', CLIENT, MADE_AT, until, ADMIN, 0, null, null);
  insert.run(REVOKED_SERIAL, 'revoked', REVOKED, MADE_AT, until, ADMIN, 0, MADE_AT, 'keyCompromise');
  db.prepare('INSERT INTO audit (time, event, outcome, client_id, client_ip, details) VALUES (?, ?, ?, ?, ?, ?)')
    .run(MADE_AT, 'cert_issued', 'success', ADMIN, '192.0.2.1', JSON.stringify({ common_name: 'admin' }));
}

function insertAuthority(db: DatabaseSync): void {
  const bytes = (base64: string): Buffer => Buffer.from(base64, 'base64');
  const { certificate, lockedKey, crl, expiresAt } = AUTHORITY;
  db.prepare(`
    INSERT INTO authority (only, common_name, certificate, locked_key, fingerprint, created_at, expires_at)
    VALUES (1, 'Paste Service CA', ?, ?, ?, ?, ?)`)
    .run(bytes(certificate), bytes(lockedKey), AUTHORITY.fingerprint, MADE_AT, expiresAt);
  db.prepare('INSERT INTO crl (only, number, der, this_update, revoked_count) VALUES (1, 3, ?, ?, 1)')
    .run(bytes(crl), MADE_AT);
  db.prepare('UPDATE certificates SET public_key_sha256 = ? WHERE fingerprint = ?').run(sha256('a public key'), CLIENT);
}

/** This version only makes an index again, so there are no new rows. */
function insertNothing(): void {}

/** Counts as the migration does if certificates were revoked before it. */
function countRevocations(db: DatabaseSync): void {
  db.exec('UPDATE revocations SET count = (SELECT count(*) FROM certificates WHERE revoked_at IS NOT NULL)');
}

/** Sets holders as the migration does for certificates that are older than it, and inserts the new rows. */
function insertGoverning(db: DatabaseSync): void {
  db.exec('UPDATE certificates SET holder = fingerprint');
  db.prepare(`
    INSERT INTO invitations (code_sha256, note, created_at, expires_at, uses_left)
    VALUES (?, 'for a colleague', ?, ?, 2)`)
    .run(sha256(INVITATION), MADE_AT, MADE_AT + 30 * DAY_SECONDS);
  db.prepare("INSERT INTO bans (sha256, note, created_at) VALUES (?, 'not here', ?)").run(sha256(BANNED), MADE_AT);
  db.prepare(`
    INSERT INTO certificates (serial, common_name, fingerprint, created_at, expires_at, issued_to, is_admin, revoked_at,
      revocation_reason, public_key_sha256, holder, is_unused)
    VALUES (?, 'client', ?, ?, ?, ?, 0, NULL, NULL, ?, ?, 1)`)
    .run(serial(4), RENEWED, MADE_AT + 60, MADE_AT + 365 * DAY_SECONDS, ADMIN, sha256('another key'), CLIENT);
}
