// The SQL of larger content: chunks, and the orphans that no paste refers to. Who holds what for reading is
// content-store.ts.

import type { DatabaseSync } from 'node:sqlite';

export interface Chunk {
  readonly contentId: string;
  /** From 0. */
  readonly position: number;
  readonly bytes: Uint8Array;
}

export interface DiscardStep {
  readonly contentId: string;
  /** Chunks at most. */
  readonly limit: number;
}

/** Each runs inside the writer's transaction (batch.ts) and throws to have no effect. */
export interface ContentCommands {
  writeChunk(chunk: Chunk): void;
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
  return { writeChunk: prepareWriteChunk(db), discardChunks: prepareDiscardChunks(db) };
}

function prepareWriteChunk(db: DatabaseSync): ContentCommands['writeChunk'] {
  const orphan = db.prepare('INSERT INTO orphans (content_id) VALUES (:contentId)');
  // A chunk that comes after its content was discarded, or was given to a paste, finds no orphan to belong to.
  const insert = db.prepare(`
    INSERT INTO chunks (content_id, position, bytes)
    SELECT content_id, :position, :bytes
    FROM orphans
    WHERE content_id = :contentId`);
  return ({ contentId, position, bytes }) => {
    if (position === 0) orphan.run({ contentId });
    const { changes } = insert.run({ contentId, position, bytes });
    if (changes !== 1) throw new Error('a chunk came for content that is closed');
  };
}

function prepareDiscardChunks(db: DatabaseSync): ContentCommands['discardChunks'] {
  const remove = db.prepare(`
    DELETE FROM chunks
    WHERE rowid IN (
      SELECT rowid
      FROM chunks
      WHERE content_id = (SELECT content_id FROM orphans WHERE content_id = :contentId)
      LIMIT :limit)`);
  const forget = db.prepare('DELETE FROM orphans WHERE content_id = :contentId');
  return ({ contentId, limit }) => {
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
