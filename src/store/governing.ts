// The SQL of what an operator decides: who is invited to register, and which content is refused.

import { prepareAudit, prepareChange } from './records.ts';
import type { AuditEvent, Ban, Database, Invitation } from './store.ts';

export function governingCommands(db: Database) {
  const nextId = db.prepare("SELECT coalesce(max(seq), 0) + 1 AS id FROM sqlite_sequence WHERE name = 'invitations'");
  const invite = db.prepare(`
    INSERT INTO invitations (id, code_sha256, note, created_at, expires_at, uses_left)
    VALUES (:id, :codeSha256, :note, :createdAt, :expiresAt, :usesLeft)`);
  const withdraw = prepareChange(db, { table: 'invitations', where: 'id = :id' });
  const ban = db.prepare(`
    INSERT INTO bans (sha256, note, created_at) VALUES (:sha256, :note, :createdAt)
    ON CONFLICT (sha256) DO UPDATE SET note = :note WHERE :note <> ''`);
  const unban = prepareChange(db, { table: 'bans', where: 'sha256 = :sha256' });
  const isBanned = prepareBanned(db);
  const audit = prepareAudit(db);
  return {
    /** Gives its id. */
    createInvitation: (invitation: Omit<Invitation, 'id'> & { codeSha256: Uint8Array }): number => {
      const id = Number(nextId.get()!['id']);
      invite.run({ ...invitation, id });
      return id;
    },
    /** Whether there was such an invitation. What was obtained with it stays. */
    withdrawInvitation: (id: number): boolean => withdraw({ id }).length === 1,
    /** False if it was refused already; a note is replaced even then. After its commit, no paste gets this content. */
    banContent: ({ banned, ...content }: Omit<Ban, 'sha256'> & { sha256: Uint8Array; banned: AuditEvent }): boolean => {
      const isNew = !isBanned(content.sha256);
      ban.run({ ...content });
      if (isNew) audit(banned);
      return isNew;
    },
    /** Whether it was refused before: only then is it audited. */
    unbanContent: ({ sha256, unbanned }: { sha256: Uint8Array; unbanned: AuditEvent }): boolean => {
      const wasBanned = unban({ sha256 }).length === 1;
      if (wasBanned) audit(unbanned);
      return wasBanned;
    },
  };
}

export function governingLookups(db: Database) {
  const invitations = db.prepare(`
    SELECT id, note, created_at AS createdAt, expires_at AS expiresAt, uses_left AS usesLeft
    FROM invitations ORDER BY id`);
  const bans = db.prepare(`
    SELECT lower(hex(sha256)) AS sha256, note, created_at AS createdAt
    FROM bans ORDER BY created_at, sha256`);
  return {
    listInvitations: () => invitations.all() as unknown as Invitation[],
    isInvitationOpen: prepareInviting(db).isOpen,
    listBans: () => bans.all() as unknown as Ban[],
  };
}

/** An invitation is spent in the transaction that stores the certificate. */
export function prepareInviting(db: Database) {
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

export function prepareBanned(db: Database): (sha256: Uint8Array) => boolean {
  const find = db.prepare('SELECT 1 FROM bans WHERE sha256 = :sha256');
  return (sha256) => find.get({ sha256 }) !== undefined;
}

const FAULTS = {
  'owners whose bytes are not the sum of their pastes': `
    FROM owners
    FULL JOIN (SELECT owner, sum(size) AS bytes FROM pastes WHERE owner IS NOT NULL GROUP BY owner) AS stored
      USING (owner)
    WHERE coalesce(owners.bytes, 0) <> coalesce(stored.bytes, 0)`,
  'certificates whose holder is not the first of their chain, or that are unused and renew none': `
    FROM certificates
    LEFT JOIN certificates AS first ON first.fingerprint = certificates.holder
    WHERE first.holder IS NOT certificates.holder
      OR certificates.holder IS NULL
      OR (certificates.is_unused = 1 AND certificates.holder = certificates.fingerprint)`,
  'invitations that end before they begin': 'FROM invitations WHERE expires_at <= created_at',
};

/** What contradicts itself in the tables, as words behind a number. SQLite itself checks how many uses are left. */
export function faultsOf(db: Database, faults: Readonly<Record<string, string>> = FAULTS): string[] {
  return Object.entries(faults).flatMap(([what, rows]) => {
    const count = Number(db.prepare(`SELECT count(*) AS count ${rows}`).all()[0]!['count']);
    return count === 0 ? [] : [`${count} ${what}`];
  });
}
