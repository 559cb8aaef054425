// The SQL of what is kept beside pastes: their usage, larger content in chunks, the audit log, used challenges,
// submissions, secrets. Commands and lookups are called as those of pastes.ts.

import type { DatabaseSync } from 'node:sqlite';
import { PAGE_BYTES } from './schema.ts';
import {
  type AuditEntry, type AuditEvent, type AuditFilter, CHUNK_BYTES, type DuplicateLimit, exceedsQuota, type Listed,
  OWN_BYTES, type Page, type Refused, type SpendingRefusal, type SpentChallenge, type StoredUsage, type UploadQuota,
} from './store.ts';

/** Sees its own transaction's changes. The database is measured in used pages, more exact than any count of rows. */
export function prepareUsage(db: DatabaseSync): () => StoredUsage {
  const stored = db.prepare('SELECT pastes, bytes FROM usage');
  const pages = db.prepare('PRAGMA page_count');
  const freePages = db.prepare('PRAGMA freelist_count');
  return () => {
    const { pastes, bytes } = stored.get() as unknown as Pick<StoredUsage, 'pastes' | 'bytes'>;
    const usedPages = Number(pages.get()?.['page_count']) - Number(freePages.get()?.['freelist_count']);
    return { pastes, bytes, databaseBytes: Math.max(0, usedPages * PAGE_BYTES - OWN_BYTES) };
  };
}

// Larger content: chunks, and the orphans that no paste refers to. Who holds what for reading is content.ts.

export function contentCommands(db: DatabaseSync) {
  const quotas = prepareQuotas(db);
  return { writeChunk: prepareWriteChunk(db, quotas), discardChunks: prepareDiscardChunks(db, quotas) };
}

export function contentLookups(db: DatabaseSync) {
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
interface Chunk {
  readonly contentId: string;
  readonly position: number;
  readonly bytes: Uint8Array;
  readonly quota: UploadQuota | null;
}

type Quotas = ReturnType<typeof prepareQuotas>;

/** What admitted uploads still have to write counts as taken: otherwise all that race for the last room would fail. */
function prepareQuotas(db: DatabaseSync) {
  const usage = prepareUsage(db);
  const promisedBytes = new Map<string, number>();
  return {
    /** Gives the same answer when asked again after a rollback. */
    admit({ contentId, position, bytes: { length }, quota }: Chunk): boolean {
      if (quota === null) return true;
      promisedBytes.delete(contentId);
      let unwrittenBytes = position === 0 ? Math.max(quota.declaredBytes, length) : length;
      for (const bytes of promisedBytes.values()) unwrittenBytes += bytes;
      if (exceedsQuota(usage(), quota.maxStoredBytes, { contentBytes: 0, unwrittenBytes })) return false;
      const leftBytes = quota.declaredBytes - position * CHUNK_BYTES - length;
      if (leftBytes > 0) promisedBytes.set(contentId, leftBytes);
      return true;
    },
    forget: (contentId: string) => promisedBytes.delete(contentId),
  };
}

/** Whether the quota had room for it; without, nothing is written. */
function prepareWriteChunk(db: DatabaseSync, quotas: Quotas): (chunk: Chunk) => boolean {
  const orphan = db.prepare('INSERT INTO orphans (content_id) VALUES (:contentId)');
  // A chunk that comes after its content was discarded, or was given to a paste, finds no orphan to belong to.
  const insert = db.prepare(`
    INSERT INTO chunks (content_id, position, bytes)
    SELECT content_id, :position, :bytes
    FROM orphans
    WHERE content_id = :contentId`);
  return (chunk) => {
    if (!quotas.admit(chunk)) return false;
    const { contentId, position, bytes } = chunk;
    if (position === 0) orphan.run({ contentId });
    const { changes } = insert.run({ contentId, position, bytes });
    if (changes !== 1) throw new Error('a chunk came for content that is closed');
    return true;
  };
}

/** Whether the content is gone now. Content of a paste is left alone, and counts as gone. */
function prepareDiscardChunks(db: DatabaseSync, quotas: Quotas) {
  const remove = db.prepare(`
    DELETE FROM chunks
    WHERE rowid IN (
      SELECT rowid
      FROM chunks
      WHERE content_id = (SELECT content_id FROM orphans WHERE content_id = :contentId)
      LIMIT :limit)`);
  const forget = db.prepare('DELETE FROM orphans WHERE content_id = :contentId');
  return ({ contentId, limit }: { contentId: string; limit: number }): boolean => {
    quotas.forget(contentId);
    if (remove.run({ contentId, limit }).changes === limit) return false;
    forget.run({ contentId });
    return true;
  };
}

/** For commands that must be answered for: their entry is written in their transaction. */
export function prepareAudit(db: DatabaseSync): (event: AuditEvent) => void {
  const insert = db.prepare(`
    INSERT INTO audit (time, event, outcome, client_id, client_ip, details)
    VALUES (:time, :event, :outcome, :clientId, :clientIp, :details)`);
  return (event) => {
    insert.run({ ...event, details: JSON.stringify(event.details) });
  };
}

export function auditLookups(db: DatabaseSync) {
  const matching = `
    FROM audit
    WHERE time > :after
      AND time < :before
      AND (:event IS NULL OR event = :event)
      AND (:outcome IS NULL OR outcome = :outcome)
      AND (:clientId IS NULL OR client_id = :clientId)`;
  const select = db.prepare(`
    SELECT id, time, event, outcome, client_id AS clientId, client_ip AS clientIp, details ${matching}
    ORDER BY time DESC, id DESC
    LIMIT :limit OFFSET :offset`);
  const total = db.prepare(`SELECT count(*) AS total ${matching}`);
  return {
    /** Newest first. */
    listAudit(filter: AuditFilter, { limit, offset }: Page): Listed<AuditEntry> {
      const items = select.all({ ...filter, limit, offset }).map((row) => fromAuditRow(row));
      return { items, total: Number(total.get({ ...filter })?.['total']) };
    },
  };
}

/** For who follows the log, in the order in which entries were written: ids only grow, whatever is pruned. */
export function auditTailLookups(db: DatabaseSync) {
  const newest = db.prepare('SELECT max(id) AS id FROM audit');
  const select = db.prepare(`
    SELECT id, time, event, outcome, client_id AS clientId, client_ip AS clientIp, details
    FROM audit
    WHERE id > :afterId
      AND id <= :untilId
      AND time > :after
      AND (:event IS NULL OR event = :event)
      AND (:outcome IS NULL OR outcome = :outcome)
      AND (:clientId IS NULL OR client_id = :clientId)
    ORDER BY id
    LIMIT :limit`);
  return {
    newestAuditId: () => Number(newest.get()?.['id'] ?? 0),
    auditBetween: (afterId: number, untilId: number, { before: _, ...filter }: AuditFilter, limit: number) => (
      select.all({ afterId, untilId, limit, ...filter }).map((row) => fromAuditRow(row))
    ),
  };
}

function fromAuditRow(row: Record<string, unknown>): AuditEntry {
  return { ...(row as unknown as AuditEntry), details: JSON.parse(row['details'] as string) };
}

/** For commands that sell something for work: a challenge is spent in the transaction of what it buys. */
export function prepareSpending(db: DatabaseSync) {
  const { isSpent } = recordLookups(db);
  const spend = db.prepare('INSERT INTO spent_challenges (nonce, expires_at) VALUES (:nonce, :expiresAt)');
  return {
    /** Why the challenge can't buy anything, or not any more. */
    refusal({ nonce, spendableUntil }: SpentChallenge, nowSeconds: number): Refused<SpendingRefusal> | undefined {
      if (nowSeconds >= spendableUntil) return { refused: 'powExpired' };
      return isSpent(nonce) ? { refused: 'powAlreadyUsed' } : undefined;
    },
    spend: ({ nonce, expiresAt }: SpentChallenge) => spend.run({ nonce, expiresAt }),
  };
}

export function recordLookups(db: DatabaseSync) {
  const spent = db.prepare('SELECT 1 FROM spent_challenges WHERE nonce = :nonce');
  const secret = db.prepare('SELECT value FROM secrets WHERE name = :name');
  return {
    isSpent: (nonce: string) => spent.get({ nonce }) !== undefined,
    findSecret: (name: string) => secret.get({ name })?.['value'] as Uint8Array | undefined,
  };
}

/** The duplicate throttle. Its records outlive pastes, so that storing what was deleted does not go round it. */
export function prepareSubmissions(db: DatabaseSync) {
  // Never more rows than decide the question.
  const recent = db.prepare(`
    SELECT stored_at AS storedAt
    FROM submissions
    WHERE sha256 = :sha256
      AND stored_at > :sinceSeconds
    ORDER BY stored_at DESC
    LIMIT :max`);
  const insert = db.prepare('INSERT INTO submissions (sha256, stored_at) VALUES (:sha256, :nowSeconds)');
  return {
    /** When one more would exceed the limit: how many there are, and when one of them leaves the window. */
    refusal(sha256: Uint8Array, nowSeconds: number, limit: DuplicateLimit): Refused<'duplicateContent'> | undefined {
      const { max, windowSeconds } = limit;
      const stored = recent.all({ sha256, sinceSeconds: nowSeconds - windowSeconds, max });
      if (stored.length < max) return undefined;
      const oldestCounted = Number(stored.at(-1)?.['storedAt']);
      return {
        refused: 'duplicateContent',
        fields: { count: stored.length, windowSeconds },
        retryAfterSeconds: oldestCounted + windowSeconds - nowSeconds,
      };
    },
    record: (sha256: Uint8Array, nowSeconds: number) => insert.run({ sha256, nowSeconds }),
  };
}

export function recordCommands(db: DatabaseSync) {
  const insert = db.prepare('INSERT INTO secrets (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING');
  const { findSecret } = recordLookups(db);
  return {
    recordAudit: prepareAudit(db),
    removeOldAudit: preparePruning(db, 'audit', 'id', 'time'),
    removeExpiredChallenges: preparePruning(db, 'spent_challenges', 'rowid', 'expires_at'),
    removeOldSubmissions: preparePruning(db, 'submissions', 'rowid', 'stored_at'),
    /** A key that must be found again after a restart: the one given, when there was none of that name. */
    keepSecret({ name, value }: { name: string; value: Uint8Array }): Uint8Array {
      insert.run({ name, value });
      return findSecret(name)!;
    },
  };
}

/** Removes at most `limit` rows that had run out by then; how many those were. */
function preparePruning(db: DatabaseSync, table: string, key: string, time: string) {
  const remove = db.prepare(`
    DELETE FROM ${table}
    WHERE ${key} IN (
      SELECT ${key}
      FROM ${table}
      WHERE ${time} <= :untilSeconds
      ORDER BY ${time}
      LIMIT :limit)`);
  return (step: { untilSeconds: number; limit: number }) => Number(remove.run(step).changes);
}
