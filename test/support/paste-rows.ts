// Many pastes at once, as rows that a test writes without the service: for tests of lists, whose speed depends on how
// many pastes there are.

import { DatabaseSync } from 'node:sqlite';
import { CREATED_AT } from './store.ts';

export interface PasteRows {
  readonly count: number;
  readonly owner: string | null;
  /** How many pastes are created in the same second: at CREATED_AT, CREATED_AT + 1 ... */
  readonly perSecond?: number;
  /** Unix seconds. */
  readonly expiresAt?: number;
  readonly mimeType?: string;
  /** What ids begin with, so that those of two calls differ. */
  readonly prefix?: string;
}

/** Inserts text pastes with one byte of content; the ids rise with the time of creation, and are 26 characters long. */
export function insertPastes(databasePath: string, rows: PasteRows): void {
  const { count, owner, perSecond = 1, expiresAt = CREATED_AT + 10 ** 9, mimeType = 'text/plain', prefix = 'a' } = rows;
  const db = new DatabaseSync(databasePath, { timeout: 5000 });
  db.exec('PRAGMA synchronous = OFF');
  db.prepare(`
    WITH RECURSIVE turn (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM turn WHERE n + 1 < :count)
    INSERT INTO pastes (id, owner, mime_type, size, sha256, created_at, expires_at, burn_after_read, accessed_at, content)
    SELECT printf('%s%025d', :prefix, n), :owner, :mimeType, 1, zeroblob(32), :createdAt + n / :perSecond, :expiresAt, 0,
      :createdAt, x'61'
    FROM turn`)
    .run({ count, owner, perSecond: BigInt(perSecond), expiresAt, mimeType, prefix, createdAt: CREATED_AT });
  db.close();
}
