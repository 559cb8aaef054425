// The SQL of larger content: chunks, and the orphans that no paste refers to. Who holds what for reading is
// content-store.ts.

import type { DatabaseSync } from 'node:sqlite';
import { prepareUsage } from './pastes.ts';
import { CHUNK_BYTES, passesQuota, type UploadQuota } from './store.ts';

export interface Chunk {
  readonly contentId: string;
  /** From 0. */
  readonly position: number;
  readonly bytes: Uint8Array;
  readonly quota: UploadQuota | null;
}

export interface DiscardStep {
  readonly contentId: string;
  /** Chunks at most. */
  readonly limit: number;
}

/** Each runs inside the writer's transaction (batch.ts) and throws to have no effect. */
export interface ContentCommands {
  /** Whether the quota had room for it; without, nothing is written. */
  writeChunk(chunk: Chunk): boolean;
  /** Whether the content is gone now. Content of a paste is left alone, and counts as gone from the orphans. */
  discardChunks(step: DiscardStep): boolean;
}

export interface ContentLookups {
  /** Whether a paste refers to the content. */
  isAdopted(contentId: string): boolean;
  readChunk(contentId: string, position: number): Uint8Array | undefined;
  listOrphans(): string[];
}

export function contentCommands(db: DatabaseSync): ContentCommands {
  const admission = prepareAdmission(db);
  return { writeChunk: prepareWriteChunk(db, admission), discardChunks: prepareDiscardChunks(db, admission) };
}

/** Which chunks the quota has room for, beside what uploads that were let in have declared and not written yet. */
interface Admission {
  /** Asking again, as after a rollback, is answered as the first time. */
  admits(chunk: Chunk): boolean;
  forget(contentId: string): void;
}

/** Of uploads that race for the last room, some get all that they declared: without that, all would fail halfway. */
function prepareAdmission(db: DatabaseSync): Admission {
  const usage = prepareUsage(db);
  const promisedBytes = new Map<string, number>();
  return {
    admits({ contentId, position, bytes: { length }, quota }) {
      if (quota === null) return true;
      promisedBytes.delete(contentId);
      let unwrittenBytes = position === 0 ? Math.max(quota.declaredBytes, length) : length;
      for (const bytes of promisedBytes.values()) unwrittenBytes += bytes;
      if (passesQuota(usage(), quota.maxStoredBytes, { contentBytes: 0, unwrittenBytes })) return false;
      const leftBytes = quota.declaredBytes - position * CHUNK_BYTES - length;
      if (leftBytes > 0) promisedBytes.set(contentId, leftBytes);
      return true;
    },
    forget: (contentId) => void promisedBytes.delete(contentId),
  };
}

function prepareWriteChunk(db: DatabaseSync, admission: Admission): ContentCommands['writeChunk'] {
  const orphan = db.prepare('INSERT INTO orphans (content_id) VALUES (:contentId)');
  // A chunk that comes after its content was discarded, or was given to a paste, finds no orphan to belong to.
  const insert = db.prepare(`
    INSERT INTO chunks (content_id, position, bytes)
    SELECT content_id, :position, :bytes
    FROM orphans
    WHERE content_id = :contentId`);
  return (chunk) => {
    if (!admission.admits(chunk)) return false;
    const { contentId, position, bytes } = chunk;
    if (position === 0) orphan.run({ contentId });
    const { changes } = insert.run({ contentId, position, bytes });
    if (changes !== 1) throw new Error('a chunk came for content that is closed');
    return true;
  };
}

function prepareDiscardChunks(db: DatabaseSync, admission: Admission): ContentCommands['discardChunks'] {
  const remove = db.prepare(`
    DELETE FROM chunks
    WHERE rowid IN (
      SELECT rowid
      FROM chunks
      WHERE content_id = (SELECT content_id FROM orphans WHERE content_id = :contentId)
      LIMIT :limit)`);
  const forget = db.prepare('DELETE FROM orphans WHERE content_id = :contentId');
  return ({ contentId, limit }) => {
    admission.forget(contentId);
    if (remove.run({ contentId, limit }).changes === limit) return false;
    forget.run({ contentId });
    return true;
  };
}

export function contentLookups(db: DatabaseSync): ContentLookups {
  const adopted = db.prepare('SELECT 1 FROM pastes WHERE content_id = :contentId');
  const chunk = db.prepare(`
    SELECT bytes
    FROM chunks
    WHERE content_id = :contentId
      AND position = :position`);
  const orphans = db.prepare('SELECT content_id AS contentId FROM orphans');
  return {
    isAdopted: (contentId) => adopted.get({ contentId }) !== undefined,
    readChunk: (contentId, position) => chunk.get({ contentId, position })?.['bytes'] as Uint8Array | undefined,
    listOrphans: () => orphans.all().map((row) => row['contentId'] as string),
  };
}
