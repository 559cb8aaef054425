// The tables, as numbered migrations, and what marks a database as ours. Statements on the tables are in other files.

import type { DatabaseSync } from 'node:sqlite';

/** "pstd": at offset 68 of the file, so that file(1) and this program know whose it is. */
export const APPLICATION_ID = 0x70737464;

/** Larger pages make chunks faster and small pastes slower; of 4, 8 and 16 KiB, 8 KiB loses little either way. */
export const PAGE_BYTES = 8192;

/** Lists of statements, applied in order; `user_version` counts the lists applied. To what was released, only add. */
export const MIGRATIONS: readonly (readonly string[])[] = [
  // Pastes and their content.
  [
    // The content comes last, so that reading the other columns does not touch its overflow pages.
    `CREATE TABLE pastes (
        id TEXT NOT NULL UNIQUE,
        owner TEXT,
        mime_type TEXT NOT NULL,
        size INTEGER NOT NULL,
        sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        burn_after_read INTEGER NOT NULL CHECK (burn_after_read IN (0, 1)),
        password_hash TEXT,
        accessed_at INTEGER NOT NULL,
        content_id TEXT,
        content BLOB CHECK (length(content) = size),
        CHECK ((content IS NULL) <> (content_id IS NULL))
      ) STRICT`,
    'CREATE INDEX pastes_by_expiry ON pastes (expires_at)',
    'CREATE UNIQUE INDEX pastes_by_content ON pastes (content_id) WHERE content_id IS NOT NULL',
    `CREATE TABLE chunks (
        content_id TEXT NOT NULL,
        position INTEGER NOT NULL,
        bytes BLOB NOT NULL,
        PRIMARY KEY (content_id, position)
      ) STRICT`,
    // Every content without a paste: it is being uploaded or removed. What a crash leaves is found here without a scan.
    'CREATE TABLE orphans (content_id TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID',
  ],
  // Abuse controls: used challenges, submissions by content, stored bytes.
  [
    'CREATE TABLE spent_challenges (nonce TEXT NOT NULL UNIQUE, expires_at INTEGER NOT NULL) STRICT',
    'CREATE INDEX spent_challenges_by_expiry ON spent_challenges (expires_at)',
    'CREATE TABLE submissions (sha256 BLOB NOT NULL, stored_at INTEGER NOT NULL) STRICT',
    'CREATE INDEX submissions_by_content ON submissions (sha256, stored_at)',
    'CREATE INDEX submissions_by_time ON submissions (stored_at)',
    'CREATE TABLE secrets (name TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID',
    // One row, kept true by triggers: counting a million pastes anew for every paste would be too slow.
    'CREATE TABLE usage (pastes INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT',
    'INSERT INTO usage (pastes, bytes) SELECT count(*), coalesce(sum(size), 0) FROM pastes',
    `CREATE TRIGGER usage_of_new AFTER INSERT ON pastes BEGIN
        UPDATE usage SET pastes = pastes + 1, bytes = bytes + new.size;
      END`,
    `CREATE TRIGGER usage_of_removed AFTER DELETE ON pastes BEGIN
        UPDATE usage SET pastes = pastes - 1, bytes = bytes - old.size;
      END`,
    `CREATE TRIGGER usage_of_changed AFTER UPDATE OF size ON pastes BEGIN
        UPDATE usage SET bytes = bytes - old.size + new.size;
      END`,
  ],
  // Identity: certificates by fingerprint, lists by owner and by time, the audit log.
  [
    `CREATE TABLE certificates (
        serial TEXT NOT NULL PRIMARY KEY,
        common_name TEXT NOT NULL,
        fingerprint TEXT NOT NULL UNIQUE,
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        issued_to TEXT,
        is_admin INTEGER NOT NULL CHECK (is_admin IN (0, 1)),
        revoked_at INTEGER,
        revocation_reason TEXT
      ) STRICT, WITHOUT ROWID`,
    // Both indexes hold all that a list filters and sorts by: skipping to a page and counting never read the pastes.
    `CREATE INDEX pastes_by_owner ON pastes (owner, created_at, id, expires_at, mime_type)
        WHERE owner IS NOT NULL`,
    'CREATE INDEX pastes_by_time ON pastes (created_at, id, expires_at, mime_type)',
    // AUTOINCREMENT: an entry's id is never given to another, even when the newest were pruned.
    `CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        time INTEGER NOT NULL,
        event TEXT NOT NULL,
        outcome TEXT NOT NULL,
        client_id TEXT,
        client_ip TEXT,
        details TEXT NOT NULL
      ) STRICT`,
    'CREATE INDEX audit_by_time ON audit (time)',
  ],
  // The certificate authority, its revocation list, and what it needs to know of certificates.
  [
    `CREATE TABLE authority (
        only INTEGER NOT NULL PRIMARY KEY CHECK (only = 1),
        common_name TEXT NOT NULL,
        certificate BLOB NOT NULL,
        locked_key BLOB NOT NULL,
        fingerprint TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
      ) STRICT`,
    `CREATE TABLE crl (
        only INTEGER NOT NULL PRIMARY KEY CHECK (only = 1),
        number INTEGER NOT NULL,
        der BLOB NOT NULL,
        this_update INTEGER NOT NULL,
        revoked_count INTEGER NOT NULL
      ) STRICT`,
    'ALTER TABLE certificates ADD COLUMN public_key_sha256 BLOB',
    'CREATE UNIQUE INDEX certificates_by_key ON certificates (public_key_sha256)',
    'CREATE INDEX certificates_by_requester ON certificates (issued_to)',
    'CREATE INDEX certificates_revoked ON certificates (revoked_at) WHERE revoked_at IS NOT NULL',
  ],
  // An owner's list is read from the index alone.
  [
    // Before, each paste shown was read from a page of its own: a hundred of those for one page of the list.
    'DROP INDEX pastes_by_owner',
    `CREATE INDEX pastes_by_owner ON pastes (owner, created_at, id, expires_at, mime_type, size, burn_after_read,
        password_hash IS NOT NULL)
        WHERE owner IS NOT NULL`,
  ],
  // Pages of a requester's certificates, their removal once they have expired, and a count of revocations.
  [
    // In the order of the list, so that skipping to a page and counting never read the certificates themselves.
    'DROP INDEX certificates_by_requester',
    `CREATE INDEX certificates_by_requester ON certificates (issued_to, created_at DESC, serial, fingerprint)
        WHERE issued_to IS NOT NULL`,
    'CREATE INDEX certificates_by_expiry ON certificates (expires_at) WHERE is_admin = 0',
    // The count only grows, so it shows that a revocation list is old even though certificates have been removed.
    'CREATE TABLE revocations (count INTEGER NOT NULL) STRICT',
    'INSERT INTO revocations (count) SELECT count(*) FROM certificates WHERE revoked_at IS NOT NULL',
    `CREATE TRIGGER revocations_of_revoked AFTER UPDATE OF revoked_at ON certificates BEGIN
        UPDATE revocations SET count = count + 1;
      END`,
  ],
  // Invitations, refused content, renewed certificates, what each owner stores, what the operator removed.
  [
    `CREATE TABLE invitations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        code_sha256 BLOB NOT NULL UNIQUE CHECK (length(code_sha256) = 32),
        note TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        uses_left INTEGER NOT NULL CHECK (uses_left >= 0)
      ) STRICT`,
    `CREATE TABLE bans (
        sha256 BLOB NOT NULL PRIMARY KEY CHECK (length(sha256) = 32),
        note TEXT NOT NULL,
        created_at INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`,
    // The first fingerprint of a chain of renewals: pastes and certificates are owned by it.
    'ALTER TABLE certificates ADD COLUMN holder TEXT',
    'UPDATE certificates SET holder = fingerprint',
    'DROP INDEX certificates_by_requester',
    `CREATE INDEX certificates_by_requester ON certificates (issued_to, created_at DESC, serial, holder)
        WHERE issued_to IS NOT NULL`,
    'CREATE INDEX certificates_by_holder ON certificates (holder, created_at DESC, serial)',
    // 1 for a renewal that was not presented yet: the certificate that it will replace is still valid.
    'ALTER TABLE certificates ADD COLUMN is_unused INTEGER NOT NULL DEFAULT 0 CHECK (is_unused IN (0, 1))',
    // A key may be certified again for its holder.
    'DROP INDEX certificates_by_key',
    'CREATE INDEX certificates_by_key ON certificates (public_key_sha256)',
    'CREATE TABLE owners (owner TEXT NOT NULL PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID',
    'INSERT INTO owners (owner, bytes) SELECT owner, sum(size) FROM pastes WHERE owner IS NOT NULL GROUP BY owner',
    `CREATE TRIGGER owners_of_new AFTER INSERT ON pastes WHEN new.owner IS NOT NULL BEGIN
        INSERT INTO owners (owner, bytes) VALUES (new.owner, new.size)
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
      END`,
    `CREATE TRIGGER owners_of_removed AFTER DELETE ON pastes WHEN old.owner IS NOT NULL BEGIN
        UPDATE owners SET bytes = bytes - old.size WHERE owner = old.owner;
        DELETE FROM owners WHERE owner = old.owner AND bytes = 0;
      END`,
    `CREATE TRIGGER owners_of_changed AFTER UPDATE OF size ON pastes WHEN new.owner IS NOT NULL BEGIN
        UPDATE owners SET bytes = bytes - old.size + new.size WHERE owner = new.owner;
      END`,
    // Counts pastes that other processes have removed, since the service keeps pastes in memory and must notice.
    'CREATE TABLE removals (count INTEGER NOT NULL) STRICT',
    'INSERT INTO removals (count) VALUES (0)',
  ],
];

/** Tables that the database of a cluster, and each copy of it, has besides. */
export const CLUSTER_TABLES: readonly string[] = [
  // Commands that were carried out, with their answers, since an answer can be lost on its way.
  'CREATE TABLE claims (id TEXT NOT NULL PRIMARY KEY, at INTEGER NOT NULL, answer TEXT NOT NULL) STRICT',
  'CREATE INDEX claims_by_time ON claims (at)',
  // Which host reads or writes a content, or cleans up, and until when; `promised`: what its upload will still write.
  `CREATE TABLE leases (
      name TEXT NOT NULL,
      host TEXT NOT NULL,
      until INTEGER NOT NULL,
      promised INTEGER NOT NULL,
      PRIMARY KEY (name, host)
    ) STRICT, WITHOUT ROWID`,
  // Takes whether a condition still holds, and makes the whole transaction fail if it does not.
  'CREATE VIEW guards AS SELECT 1 AS holds',
  `CREATE TRIGGER guard INSTEAD OF INSERT ON guards WHEN new.holds IS NOT 1 BEGIN
      SELECT RAISE(ABORT, 'stale');
    END`,
];

/** The application id that a database bears, 0 when it bears none, and how many migrations it has seen. */
export type Marks = ReturnType<typeof marksOf>;

export function marksOf(db: DatabaseSync) {
  const applicationId = Number(db.prepare('PRAGMA application_id').get()!['application_id']);
  return { applicationId, version: schemaVersionOf(db) };
}

export function schemaVersionOf(db: DatabaseSync): number {
  return Number(db.prepare('PRAGMA user_version').get()!['user_version']);
}

export function isEmpty(db: DatabaseSync): boolean {
  return Number(db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get()!['tables']) === 0;
}

/** Why this version may not open such a database, in words that follow its name; undefined when it may. */
export function whyStrange({ applicationId, version }: Marks): string | undefined {
  if (applicationId !== APPLICATION_ID) return `is of another program (application id ${applicationId})`;
  if (version <= MIGRATIONS.length) return undefined;
  return `is of a newer version (schema ${version}, this one knows ${MIGRATIONS.length})`;
}

/** Applies missing migrations, each whole or not at all, and marks the database as ours. Gives how many there were. */
export function migrate(db: DatabaseSync, migrations = MIGRATIONS): number {
  const before = schemaVersionOf(db);
  const missing = migrations.slice(before);
  for (const [index, statements] of missing.entries()) {
    const marks = [`PRAGMA application_id = ${APPLICATION_ID}`, `PRAGMA user_version = ${before + index + 1}`];
    try {
      db.exec(['BEGIN IMMEDIATE', ...statements, ...marks, 'COMMIT'].join(';\n'));
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      throw error;
    }
  }
  return missing.length;
}
