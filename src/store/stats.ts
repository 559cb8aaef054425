// What the database holds, counted for the operator. Nothing here names a paste or who it belongs to. The statements
// are short ones, so that counting a million pastes beside a running server never keeps its log from being emptied.

import type { DatabaseSync } from 'node:sqlite';

/** All stored pastes, expired ones that have not been removed included. Times are Unix seconds, null without any. */
export interface PasteCounts {
  readonly count: number;
  /** Of content. */
  readonly bytes: number;
  /** Waiting for cleanup. */
  readonly expired: number;
  readonly anonymous: number;
  /** Owned by a fingerprint without a certificate of this service that is valid now. */
  readonly untrusted: number;
  readonly trusted: number;
  readonly oldestCreatedAt: number | null;
  readonly newestCreatedAt: number | null;
}

/** Kept in no index, so counted paste by paste. */
export interface PasteOptionCounts {
  readonly burnAfterRead: number;
  readonly passwordProtected: number;
}

export interface AuditCounts {
  readonly entries: number;
  readonly oldestTime: number | null;
  readonly newestTime: number | null;
}

export interface FileSizes {
  readonly schemaVersion: number;
  readonly databaseBytes: number;
  readonly walBytes: number;
  /** Inside the database: to be used again, or given back by the cleanup. */
  readonly unusedBytes: number;
  /** Of its disk. */
  readonly diskFreeBytes: number;
}

export interface StatsStore {
  pastes(nowSeconds: number): Promise<PasteCounts & PasteOptionCounts>;
  /** Valid certificates that make their holder an admin. */
  admins(nowSeconds: number): Promise<number>;
  audit(): Promise<AuditCounts>;
  files(): Promise<FileSizes>;
}

interface Slice extends PasteOptionCounts {
  /** The last row looked at; null when there was none. */
  readonly lastRow: number | null;
}

export interface StatsLookups {
  countPastes(nowSeconds: number): PasteCounts;
  /** Looks at so many pastes behind a row. */
  countPasteOptions(afterRow: number, limit: number): Slice;
  countAdmins(nowSeconds: number): number;
  countAudit(): AuditCounts;
  pages(): Pick<FileSizes, 'schemaVersion' | 'unusedBytes'>;
}

export function statsLookups(db: DatabaseSync): StatsLookups {
  const pastes = db.prepare(`
    SELECT usage.pastes AS count, usage.bytes, expired, usage.pastes - owned AS anonymous, owned - trusted AS untrusted,
      trusted, oldestCreatedAt, newestCreatedAt
    FROM usage,
      (SELECT count(*) AS expired FROM pastes WHERE expires_at <= :nowSeconds),
      (SELECT count(*) AS owned FROM pastes WHERE owner IS NOT NULL),
      (SELECT count(*) AS trusted
        FROM certificates
        JOIN pastes ON pastes.owner = certificates.fingerprint
        WHERE certificates.revoked_at IS NULL
          AND certificates.expires_at > :nowSeconds),
      (SELECT min(created_at) AS oldestCreatedAt FROM pastes),
      (SELECT max(created_at) AS newestCreatedAt FROM pastes)`);
  const options = db.prepare(`
    SELECT
      count(*) FILTER (WHERE burn_after_read = 1) AS burnAfterRead,
      count(password_hash) AS passwordProtected,
      max(row) AS lastRow
    FROM (
      SELECT rowid AS row, burn_after_read, password_hash
      FROM pastes
      WHERE rowid > :afterRow
      ORDER BY rowid
      LIMIT :limit)`);
  const admins = db.prepare(`
    SELECT count(*) AS admins
    FROM certificates
    WHERE is_admin = 1
      AND revoked_at IS NULL
      AND expires_at > :nowSeconds`);
  const audit = db.prepare(`
    SELECT entries, oldestTime, newestTime
    FROM (SELECT count(*) AS entries FROM audit),
      (SELECT min(time) AS oldestTime FROM audit),
      (SELECT max(time) AS newestTime FROM audit)`);
  const pages = db.prepare(`
    SELECT user_version AS schemaVersion, freelist_count * page_size AS unusedBytes
    FROM pragma_user_version, pragma_freelist_count, pragma_page_size`);
  return {
    countPastes: (nowSeconds) => pastes.get({ nowSeconds }) as unknown as PasteCounts,
    countPasteOptions: (afterRow, limit) => options.get({ afterRow, limit }) as unknown as Slice,
    countAdmins: (nowSeconds) => Number(admins.get({ nowSeconds })?.['admins']),
    countAudit: () => audit.get() as unknown as AuditCounts,
    pages: () => pages.get() as unknown as ReturnType<StatsLookups['pages']>,
  };
}
