// The database as it is on the disk, beside a running service or as a kill would have left it, and what must hold in it
// whatever was asked. It bypasses the service on purpose.

import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Service } from './service.ts';

export interface Inspection {
  /** What is wrong whatever was asked. */
  readonly faults: readonly string[];
  /** By id. */
  readonly pastes: ReadonlyMap<string, StoredPaste>;
  /** By serial. */
  readonly certificates: ReadonlyMap<string, StoredCertificate>;
  readonly orphans: number;
  /** By id: how many uses an invitation has left. */
  readonly usesLeft: ReadonlyMap<number, number>;
}

export interface StoredCertificate {
  readonly fingerprint: string;
  readonly isRevoked: boolean;
  /** It came from a renewal, and was not presented yet. */
  readonly isUnused: boolean;
}

export interface StoredPaste {
  readonly bytes: number;
  readonly expiresAt: number;
  readonly content: Uint8Array;
}

/** Each counts rows of which there must be none: those that a torn transaction would leave. */
const IMPOSSIBLE: Readonly<Record<string, string>> = {
  'chunks of no content': `SELECT count(*) AS n FROM chunks WHERE content_id NOT IN (
    SELECT content_id FROM pastes WHERE content_id IS NOT NULL UNION ALL SELECT content_id FROM orphans)`,
  'orphans with a paste': `SELECT count(*) AS n FROM orphans WHERE content_id IN (
    SELECT content_id FROM pastes WHERE content_id IS NOT NULL)`,
  'pastes whose chunks are not whole': `SELECT count(*) AS n FROM pastes WHERE content_id IS NOT NULL AND size IS NOT (
    SELECT sum(length(bytes)) FROM chunks WHERE chunks.content_id = pastes.content_id)`,
  'sums of usage that are not true': `SELECT count(*) AS n FROM usage WHERE
    pastes <> (SELECT count(*) FROM pastes) OR bytes <> (SELECT coalesce(sum(size), 0) FROM pastes)`,
  'certificates without an entry in the audit log': `SELECT abs((SELECT count(*) FROM certificates) - (
    SELECT count(*) FROM audit WHERE event = 'cert_issued' AND details ->> 'type' = 'client')) AS n`,
  'revocations without an entry in the audit log': `SELECT abs((
    SELECT count(*) FROM certificates WHERE revoked_at IS NOT NULL) - (
    SELECT count(*) FROM audit WHERE event = 'cert_revoked')) AS n`,
  'admins more or fewer than one': `SELECT abs(count(DISTINCT holder) FILTER (WHERE is_admin) - 1) AS n
    FROM certificates HAVING count(*) > 0`,
};

/** Looks at a database through a connection of its own, which only reads where a service may have it open. */
export function inspect(databasePath: string, { readOnly = true } = {}): Inspection {
  const db = new DatabaseSync(databasePath, { timeout: 5000, readOnly });
  try {
    db.exec('BEGIN');
    const faults = [...integrityFaults(db)];
    for (const [what, sql] of Object.entries(IMPOSSIBLE)) {
      const count = Number(db.prepare(sql).get()?.['n'] ?? 0);
      if (count > 0) faults.push(`${count} ${what}`);
    }
    const orphans = Number(db.prepare('SELECT count(*) AS n FROM orphans').get()?.['n']);
    const invitations = db.prepare('SELECT id, uses_left AS left FROM invitations').all();
    const usesLeft = new Map(invitations.map(({ id, left }) => [Number(id), Number(left)]));
    const result = { faults, orphans, usesLeft, pastes: storedPastes(db), certificates: storedCertificates(db) };
    db.exec('COMMIT');
    return result;
  } finally {
    db.close();
  }
}

function integrityFaults(db: DatabaseSync): string[] {
  try {
    const rows = db.prepare('PRAGMA integrity_check').all().map((row) => String(row['integrity_check']));
    return rows.filter((row) => row !== 'ok');
  } catch (error) {
    return [`integrity_check: ${String(error)}`];
  }
}

function storedPastes(db: DatabaseSync): Map<string, StoredPaste> {
  const chunks = db.prepare('SELECT bytes FROM chunks WHERE content_id = :contentId ORDER BY position');
  const rows = db.prepare(`
    SELECT id, size, expires_at AS expiresAt, content, content_id AS contentId FROM pastes`).all();
  return new Map(rows.map(({ id, size, expiresAt, content, contentId }) => {
    const chunksOf = () => chunks.all({ contentId: contentId ?? null }).map(({ bytes }) => bytes as Uint8Array);
    const whole = content ?? Buffer.concat(chunksOf());
    return [String(id), { bytes: Number(size), expiresAt: Number(expiresAt), content: whole as Uint8Array }];
  }));
}

function storedCertificates(db: DatabaseSync): Map<string, StoredCertificate> {
  const rows = db.prepare(`
    SELECT serial, fingerprint, revoked_at IS NOT NULL AS isRevoked, is_unused AS isUnused FROM certificates`).all();
  return new Map(rows.map(({ serial, fingerprint, isRevoked, isUnused }) => {
    return [String(serial), { fingerprint: String(fingerprint), isRevoked: isRevoked === 1, isUnused: isUnused === 1 }];
  }));
}

/** Inspects what a kill at this moment would leave: the files are copied while the process stands still. */
export function inspectAsKilled(service: Service, folder: string): Inspection {
  const image = join(folder, 'image');
  mkdirSync(image, { recursive: true });
  const copy = join(image, 'pasted.db');
  service.pause();
  try {
    for (const suffix of ['', '-wal', '-journal']) {
      if (existsSync(service.databasePath + suffix)) copyFileSync(service.databasePath + suffix, copy + suffix);
    }
  } finally {
    service.resume();
  }
  try {
    return inspect(copy, { readOnly: false });
  } finally {
    rmSync(image, { recursive: true });
  }
}
