// The SQL of what an operator decides: who is invited to register, and which content is refused.

import type { DatabaseSync } from 'node:sqlite';
import { prepareAudit } from './records.ts';
import type { AuditEvent, Ban, Invitation } from './store.ts';

export function governingCommands(db: DatabaseSync) {
  const invite = db.prepare(`
    INSERT INTO invitations (code_sha256, note, created_at, expires_at, uses_left)
    VALUES (:codeSha256, :note, :createdAt, :expiresAt, :usesLeft)`);
  const withdraw = db.prepare('DELETE FROM invitations WHERE id = :id');
  const ban = db.prepare(`
    INSERT INTO bans (sha256, note, created_at)
    VALUES (:sha256, :note, :createdAt)
    ON CONFLICT DO NOTHING`);
  const unban = db.prepare('DELETE FROM bans WHERE sha256 = :sha256');
  const audit = prepareAudit(db);
  return {
    /** Gives its id. */
    createInvitation: (invitation: NewInvitation): number => Number(invite.run({ ...invitation }).lastInsertRowid),
    /** Whether there was one. What was obtained with it stays. */
    withdrawInvitation: (id: number): boolean => withdraw.run({ id }).changes === 1,
    /** Whether it was not refused before. From its commit on no paste is stored with this content. */
    banContent: ({ banned, ...content }: NewBan): boolean => {
      const isNew = ban.run({ ...content }).changes === 1;
      if (isNew) audit(banned);
      return isNew;
    },
    /** Whether it was refused before. */
    unbanContent: (sha256: Uint8Array): boolean => unban.run({ sha256 }).changes === 1,
  };
}

export interface NewInvitation extends Omit<Invitation, 'id'> {
  readonly codeSha256: Uint8Array;
}

export interface NewBan extends Omit<Ban, 'sha256'> {
  readonly sha256: Uint8Array;
  readonly banned: AuditEvent;
}

export function governingLookups(db: DatabaseSync) {
  const invitations = db.prepare(`
    SELECT id, note, created_at AS createdAt, expires_at AS expiresAt, uses_left AS usesLeft
    FROM invitations
    ORDER BY id`);
  const bans = db.prepare(`
    SELECT lower(hex(sha256)) AS sha256, note, created_at AS createdAt
    FROM bans
    ORDER BY created_at, sha256`);
  return {
    listInvitations: () => invitations.all() as unknown as Invitation[],
    isInvitationOpen: prepareInviting(db).isOpen,
    listBans: () => bans.all() as unknown as Ban[],
  };
}

/** An invitation is spent in the transaction that stores the certificate. */
export function prepareInviting(db: DatabaseSync) {
  const open = db.prepare(`
    SELECT 1
    FROM invitations
    WHERE code_sha256 = :codeSha256
      AND uses_left > 0
      AND expires_at > :nowSeconds`);
  const spend = db.prepare('UPDATE invitations SET uses_left = uses_left - 1 WHERE code_sha256 = :codeSha256');
  return {
    isOpen: (codeSha256: Uint8Array, nowSeconds: number) => open.get({ codeSha256, nowSeconds }) !== undefined,
    spend: (codeSha256: Uint8Array): void => void spend.run({ codeSha256 }),
  };
}

/** Whether content is refused, for the transaction that would store it. */
export function prepareBanned(db: DatabaseSync): (sha256: Uint8Array) => boolean {
  const find = db.prepare('SELECT 1 FROM bans WHERE sha256 = :sha256');
  return (sha256) => find.get({ sha256 }) !== undefined;
}

const FAULTS = {
  'owners whose bytes are not the sum of their pastes': `
    SELECT count(*) AS count
    FROM owners
    FULL JOIN (SELECT owner, sum(size) AS bytes FROM pastes WHERE owner IS NOT NULL GROUP BY owner) AS stored
      USING (owner)
    WHERE coalesce(owners.bytes, 0) <> coalesce(stored.bytes, 0)`,
  'certificates whose holder is not the first of their chain, or that are unused and renew none': `
    SELECT count(*) AS count
    FROM certificates
    LEFT JOIN certificates AS first ON first.fingerprint = certificates.holder
    WHERE first.holder IS NOT certificates.holder
      OR certificates.holder IS NULL
      OR (certificates.is_unused = 1 AND certificates.holder = certificates.fingerprint)`,
  'invitations that end before they begin': `
    SELECT count(*) AS count
    FROM invitations
    WHERE expires_at <= created_at`,
};

/** What contradicts itself in what is governed by, in words behind a number. How many uses are left, SQLite checks. */
export function faultsOf(db: DatabaseSync): string[] {
  return Object.entries(FAULTS).flatMap(([what, select]) => {
    const count = Number(db.prepare(select).all()[0]?.['count']);
    return count === 0 ? [] : [`${count} ${what}`];
  });
}
