// The SQL of what is kept beside pastes: their usage, larger content in chunks, the audit log, used challenges,
// submissions, secrets. Commands and lookups are called like those of pastes.ts.

import { orUndefined } from '../core/events.ts';
import { PAGE_BYTES } from './schema.ts';
import {
  type AuditEntry, type AuditEvent, type AuditFilter, CHUNK_BYTES, type Database, type DuplicateLimit, type Listed,
  type MoreContent, type NewPaste, OWN_BYTES, type Page, type Refused, type SpendingRefusal, type SpentChallenge,
  type Statement, type StoredUsage, StoreError, type UploadQuota,
} from './store.ts';

/**
 * Updates the rows that meet a condition, or deletes them without `set`. Gives their columns as they were. The rows are
 * read first: a change that answers with rows can lie (nodejs/node#63311), and the nodes of a cluster give no rows.
 */
export function prepareChange(
  db: Database, { table, set, where, columns = '1' }: { table: string; set?: string; where: string; columns?: string },
) {
  const select = db.prepare(`SELECT ${columns} FROM ${table} WHERE ${where}`);
  const action = set === undefined ? `DELETE FROM ${table}` : `UPDATE ${table} SET ${set}`;
  const change = db.prepare(`${action} WHERE ${where}`);
  select.setAllowUnknownNamedParameters(true);
  return (named: Parameters<Statement['all']>[0] & object) => {
    const rows = select.all(named);
    if (rows.length > 0) change.run(named);
    return rows;
  };
}

/** SQL that is true for `:limit` rows that meet a condition, in an order, after `:skipped` of them: a bounded step. */
export function amongFirst(table: string, where: string, order: string): string {
  return `rowid IN (SELECT rowid FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT :limit OFFSET :skipped)`;
}

/** Counts the used pages of the file, which is more exact than any count of rows. */
const USED_PAGES = `max(0, (
  SELECT (page_count - freelist_count) * ${PAGE_BYTES} FROM pragma_page_count, pragma_freelist_count) - ${OWN_BYTES})`;

function usageOf({ databaseBytes = USED_PAGES }: Database): string {
  return `pastes, bytes, ${databaseBytes} AS databaseBytes FROM usage`;
}

/** Includes its own transaction's changes. */
export function prepareUsage(db: Database): () => StoredUsage {
  const usage = db.prepare(`SELECT ${usageOf(db)}`);
  return () => ({ ...(usage.get() as unknown as StoredUsage) });
}

export function prepareQuota(db: Database): (more: MoreContent) => boolean {
  const full = db.prepare(`
    SELECT 1
    FROM (SELECT ${usageOf(db)})
    WHERE bytes + :contentBytes > :maxStoredBytes
      OR (:unwrittenBytes > 0 AND databaseBytes + :unwrittenBytes > :maxStoredBytes)`);
  return (more) => full.get({ ...more }) !== undefined;
}

// Larger content: chunks, and the orphans that no paste refers to. Who holds which content for reading: see content.ts.

export function contentLookups(db: Database) {
  const adopted = db.prepare('SELECT 1 FROM pastes WHERE content_id = :contentId');
  const chunk = db.prepare('SELECT bytes FROM chunks WHERE content_id = :contentId AND position = :position');
  const orphans = db.prepare('SELECT content_id AS contentId FROM orphans');
  return {
    isAdopted: (contentId: string) => adopted.get({ contentId }) !== undefined,
    readChunk: (contentId: string, position: number) => (
      chunk.get({ contentId, position })?.['bytes'] as Uint8Array | undefined
    ),
    listOrphans: () => orphans.all().map((row) => row['contentId'] as string),
  };
}

/** `position` counts from 0. */
export interface Chunk {
  readonly contentId: string;
  readonly position: number;
  readonly bytes: Uint8Array;
  readonly quota: UploadQuota | null;
}

/** What admitted uploads have yet to write counts as taken: otherwise all that race for the last room would fail. */
function prepareQuotas(db: Database) {
  const isFull = prepareQuota(db);
  const promisedBytes = new Map<string, number>();
  return {
    /** Gives the same answer when asked again after a rollback. */
    admit({ contentId, position, bytes: { length }, quota }: Chunk): boolean {
      if (quota === null) return true;
      promisedBytes.delete(contentId);
      let unwrittenBytes = position === 0 ? Math.max(quota.declaredBytes, length) : length;
      for (const bytes of promisedBytes.values()) unwrittenBytes += bytes;
      if (isFull({ maxStoredBytes: quota.maxStoredBytes, contentBytes: 0, unwrittenBytes })) return false;
      const leftBytes = quota.declaredBytes - position * CHUNK_BYTES - length;
      if (leftBytes > 0) promisedBytes.set(contentId, leftBytes);
      return true;
    },
    forget: (contentId: string) => promisedBytes.delete(contentId),
  };
}

export function contentCommands(db: Database) {
  const quotas = prepareQuotas(db);
  const orphan = db.prepare('INSERT INTO orphans (content_id) VALUES (:contentId)');
  const insert = db.prepare('INSERT INTO chunks (content_id, position, bytes) VALUES (:contentId, :position, :bytes)');
  const orphaned = db.prepare('SELECT 1 FROM orphans WHERE content_id = :contentId');
  const ofOrphan = 'content_id = (SELECT content_id FROM orphans WHERE content_id = :contentId)';
  const remove = prepareChange(db, { table: 'chunks', where: amongFirst('chunks', ofOrphan, 'position') });
  const forget = db.prepare('DELETE FROM orphans WHERE content_id = :contentId');
  return {
    /** Whether the quota had room for the chunk; if not, nothing is written. */
    writeChunk(chunk: Chunk): boolean {
      if (!quotas.admit(chunk)) return false;
      const { contentId, position, bytes } = chunk;
      if (position === 0) orphan.run({ contentId });
      // The content was discarded, as another host does with uploads of a suspended host, or it was given to a paste.
      else if (orphaned.get({ contentId }) === undefined) throw new StoreError('unavailable', 'a chunk came too late');
      insert.run({ contentId, position, bytes });
      return true;
    },
    /** Whether the content is gone now. Content of a paste is left alone, and counts as gone. */
    discardChunks({ contentId, limit }: { contentId: string; limit: number }): boolean {
      quotas.forget(contentId);
      if (remove({ contentId, limit, skipped: 0 }).length === limit) return false;
      forget.run({ contentId });
      return true;
    },
  };
}

/** Gives chunks to a paste: only content that is whole and has no paste, so none that is being discarded meanwhile. */
export function prepareAdoption(db: Database): (content: Pick<NewPaste, 'contentId' | 'size'>) => void {
  const adopt = prepareChange(db, {
    table: 'orphans',
    where: `content_id = :contentId
      AND :size = (SELECT sum(length(bytes)) FROM chunks WHERE content_id = :contentId)`,
  });
  return ({ contentId, size }) => {
    if (contentId === null || adopt({ contentId, size }).length === 1) return;
    throw new StoreError('unavailable', 'the content of a paste is not there, or not whole');
  };
}

/** For commands that are audited: the entry is written in the transaction of the command. */
export function prepareAudit(db: Database): (event: AuditEvent) => void {
  const insert = db.prepare(`
    INSERT INTO audit (time, event, outcome, client_id, client_ip, details)
    VALUES (:time, :event, :outcome, :clientId, :clientIp, :details)`);
  return (event) => void insert.run({ ...event, details: JSON.stringify(event.details) });
}

const AUDIT_COLUMNS = 'id, time, event, outcome, client_id AS clientId, client_ip AS clientIp, details';

/** The conditions of an AuditFilter, except `before`. */
const IS_AUDITED = `time > :after
      AND (:event IS NULL OR event = :event)
      AND (:outcome IS NULL OR outcome = :outcome)
      AND (:clientId IS NULL OR client_id = :clientId)`;

export function auditLookups(db: Database) {
  const matching = `FROM audit WHERE time < :before AND ${IS_AUDITED}`;
  const select = db.prepare(`
    SELECT ${AUDIT_COLUMNS} ${matching}
    ORDER BY time DESC, id DESC
    LIMIT :limit OFFSET :offset`);
  const total = db.prepare(`SELECT count(*) AS total ${matching}`);
  return {
    /** Newest first. */
    listAudit(filter: AuditFilter, { limit, offset }: Page): Listed<AuditEntry> {
      const items = select.all({ ...filter, limit, offset }).map((row) => fromAuditRow(row));
      return { items, total: Number(total.get({ ...filter })!['total']) };
    },
    /** When the last of the newest `rows` entries, of any event, was written; undefined if there are fewer. */
    nthAuditedAt({ before, after }: AuditFilter, rows: number): number | undefined {
      const every = { before, after, event: null, outcome: null, clientId: null };
      return select.get({ ...every, limit: 1, offset: rows - 1 })?.['time'] as number | undefined;
    },
  };
}

/** For following the log in the order in which entries were written: ids only grow, even when entries are pruned. */
export function auditTailLookups(db: Database) {
  const newest = db.prepare('SELECT max(id) AS id FROM audit');
  const select = db.prepare(`
    SELECT ${AUDIT_COLUMNS}
    FROM audit
    WHERE id > :afterId
      AND id <= :untilId
      AND ${IS_AUDITED}
    ORDER BY id
    LIMIT :limit`);
  return {
    /** All entries up to `untilId` were looked at: those that the filter leaves out need not be looked at again. */
    auditAfter: (afterId: number, { before: _, ...filter }: AuditFilter, limit: number) => {
      const newestId = Number(newest.get()!['id'] ?? 0);
      const entries = select.all({ afterId, untilId: newestId, limit, ...filter }).map((row) => fromAuditRow(row));
      return { entries, untilId: entries.length < limit ? newestId : entries.at(-1)!.id };
    },
  };
}

function fromAuditRow(row: Record<string, unknown>): AuditEntry {
  const details = orUndefined(() => JSON.parse(row['details'] as string)) ?? { damaged: row['details'] };
  return { ...(row as unknown as AuditEntry), details };
}

/** For commands that are paid for with work: a challenge is spent in the transaction that stores what it buys. */
export function prepareSpending(db: Database) {
  const { isSpent } = recordLookups(db);
  const spend = db.prepare('INSERT INTO spent_challenges (nonce, expires_at) VALUES (:nonce, :expiresAt)');
  return {
    /** Why the challenge can't be spent, or not any more; undefined if it can. */
    refusal({ nonce, spendableUntil }: SpentChallenge, nowSeconds: number): Refused<SpendingRefusal> | undefined {
      if (nowSeconds >= spendableUntil) return { refused: 'powExpired' };
      return isSpent(nonce) ? { refused: 'powAlreadyUsed' } : undefined;
    },
    spend: ({ nonce, expiresAt }: SpentChallenge) => spend.run({ nonce, expiresAt }),
  };
}

export function recordLookups(db: Database) {
  const spent = db.prepare('SELECT 1 FROM spent_challenges WHERE nonce IN (:nonce, upper(:nonce))');
  const secret = db.prepare('SELECT value FROM secrets WHERE name = :name');
  return {
    isSpent: (nonce: string) => spent.get({ nonce }) !== undefined,
    findSecret: (name: string) => secret.get({ name })?.['value'] as Uint8Array | undefined,
  };
}

/** The duplicate throttle. Its records outlive pastes, so deleting a paste and storing it again does not evade it. */
export function prepareSubmissions(db: Database) {
  // Reads no more rows than the decision needs, and none by a clock that was ahead by more than the window.
  const recent = db.prepare(`
    SELECT stored_at AS storedAt
    FROM submissions
    WHERE sha256 = :sha256
      AND stored_at BETWEEN :nowSeconds - :windowSeconds + 1 AND :nowSeconds + :windowSeconds
    ORDER BY stored_at DESC
    LIMIT :max`);
  const insert = db.prepare('INSERT INTO submissions (sha256, stored_at) VALUES (:sha256, :nowSeconds)');
  return {
    /** If one more would exceed the limit: how many there are, and in how many seconds one leaves the window. */
    refusal(sha256: Uint8Array, nowSeconds: number, limit: DuplicateLimit): Refused<'duplicateContent'> | undefined {
      const { max, windowSeconds } = limit;
      const stored = recent.all({ sha256, nowSeconds, windowSeconds, max });
      if (stored.length < max) return undefined;
      const oldestCounted = Number(stored.at(-1)!['storedAt']);
      return {
        refused: 'duplicateContent', fields: { count: stored.length, windowSeconds },
        retryAfterSeconds: oldestCounted + windowSeconds - nowSeconds,
      };
    },
    record: (sha256: Uint8Array, nowSeconds: number) => insert.run({ sha256, nowSeconds }),
  };
}

export function recordCommands(db: Database) {
  const keep = db.prepare('INSERT INTO secrets (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING');
  return {
    recordAudit: prepareAudit(db),
    removeOldAudit: preparePruning(db, 'audit', 'time'),
    removeExpiredChallenges: preparePruning(db, 'spent_challenges', 'expires_at'),
    removeOldSubmissions: preparePruning(db, 'submissions', 'stored_at'),
    /** Keeps a key that must be found again after a restart, unless there is one of that name. */
    keepSecret: (secret: { name: string; value: Uint8Array }): void => void keep.run({ ...secret }),
  };
}

/** Removes at most `limit` rows whose time is not after `untilSeconds`; gives how many it removed. */
function preparePruning(db: Database, table: string, time: string) {
  const remove = prepareChange(db, { table, where: amongFirst(table, `${time} <= :untilSeconds`, `${time}, rowid`) });
  return (step: { untilSeconds: number; limit: number; skipped?: number }) => remove({ skipped: 0, ...step }).length;
}
