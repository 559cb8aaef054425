// ContentStore over the writer and the reader: uploads, and who holds which content for reading, so that what lost its
// paste goes when its last reader is through. The SQL is in contents.ts.

import type { Log } from '../core/log.ts';
import { KIB } from '../core/time.ts';
import { createChunkBuffers } from './chunk-buffers.ts';
import type { ChunkBuffers } from './chunk-buffers.ts';
import { createDiscards } from './discards.ts';
import { createRecentChunks } from './recent-chunks.ts';
import type { RecentChunks } from './recent-chunks.ts';
import type { Reader } from './reader.ts';
import type { Chunk } from './contents.ts';
import { CHUNK_BYTES, StoreError } from './store.ts';
import type { ContentReader, ContentStore, Upload, UploadQuota } from './store.ts';
import type { Writer } from './writer.ts';

/** Chunks in one command: as much content as a batch is meant to hold, since clearing it costs what writing it did. */
const DISCARD_STEP_CHUNKS = 8;

/** What a reader is given at a time, and holds while it waits. */
const PIECE_BYTES = 64 * KIB;

/** Decides when orphaned content goes. */
export interface ContentKeeper {
  /** Removes what has lost its paste, each now or when its last reader closes. Resolves when what can go is gone. */
  release(contentIds: readonly string[]): Promise<void>;
}

export interface ContentParts {
  readonly contents: ContentStore;
  readonly keeper: ContentKeeper;
}

export function createContentStore(reader: Reader, writer: Writer, log: Log): ContentParts {
  const chunks = createChunkBuffers();
  const recent = createRecentChunks((contentId, position) => {
    return reader.look((lookups) => lookups.readChunk(contentId, position));
  });
  const readers = new Map<string, number>();
  /** Orphaned while being read. */
  const condemned = new Set<string>();
  const discards = createDiscards(async (contentId) => {
    const step = { contentId, limit: DISCARD_STEP_CHUNKS };
    return writer.run('discardChunks', step, { bytes: DISCARD_STEP_CHUNKS * CHUNK_BYTES });
  }, log);

  function release(contentIds: readonly string[]): Promise<void> {
    const free = contentIds.filter((contentId) => !readers.has(contentId));
    for (const contentId of contentIds) if (readers.has(contentId)) condemned.add(contentId);
    return discards.add(free);
  }

  function letGo(contentId: string): void {
    const others = (readers.get(contentId) ?? 0) - 1;
    if (others > 0) {
      readers.set(contentId, others);
      return;
    }
    readers.delete(contentId);
    recent.forget(contentId);
    if (condemned.delete(contentId)) void discards.add([contentId]);
  }

  return {
    keeper: { release },
    contents: {
      chunks,
      upload: (contentId, quota = null) => (
        createUpload({ contentId, quota, writer, chunks, release: () => release([contentId]) })
      ),
      // Synchronous with the look at the database: an acknowledgement that makes it an orphan comes before it or finds
      // the reader.
      open(contentId) {
        if (!reader.look((lookups) => lookups.isAdopted(contentId))) return undefined;
        readers.set(contentId, (readers.get(contentId) ?? 0) + 1);
        return createContentReader(contentId, recent, () => letGo(contentId));
      },
    },
  };
}

interface UploadParts {
  readonly contentId: string;
  readonly quota: UploadQuota | null;
  readonly writer: Writer;
  readonly chunks: ChunkBuffers;
  readonly release: () => Promise<void>;
}

function createUpload({ contentId, quota, writer, chunks, release }: UploadParts): Upload {
  let position = 0;
  let lastBytes = CHUNK_BYTES;
  /** What further writes are refused with: after a failure that same one, since there would be a gap. */
  let refusal: unknown;
  let firstWrite: Promise<void> | undefined;
  let lastWrite: Promise<unknown> = Promise.resolve();

  async function writeNext(bytes: Uint8Array): Promise<void> {
    if (refusal !== undefined) throw refusal;
    if (bytes.length === 0 || bytes.length > CHUNK_BYTES || lastBytes !== CHUNK_BYTES) {
      throw new RangeError(`a chunk of ${bytes.length} bytes after one of ${lastBytes}`);
    }
    lastBytes = bytes.length;
    const write = send({ contentId, position, bytes, quota });
    position += 1;
    firstWrite ??= write;
    lastWrite = write.catch((error) => (refusal = error));
    return write;
  }

  async function send(chunk: Chunk): Promise<void> {
    // Under a quota the first chunk asks for all: others that went along would come to content that is not there.
    if (quota !== null) await firstWrite;
    const hasRoom = await writer.run('writeChunk', chunk, { bytes: chunk.bytes.length });
    if (!hasRoom) throw new StoreError('full', 'storage full: the quota has no room for this upload');
  }

  return {
    contentId,
    async write(chunk) {
      try {
        await writeNext(chunk);
      } finally {
        chunks.giveBack(chunk);
      }
    },
    async discard() {
      refusal ??= new Error('the upload has ended');
      await lastWrite;
      if (position > 0) await release();
    },
  };
}

function createContentReader(contentId: string, chunks: RecentChunks, letGo: () => void): ContentReader {
  let closed = false;
  return {
    async *read(start, end) {
      if (start >= end) return;
      const piece = new Uint8Array(Math.min(PIECE_BYTES, end - start));
      for (let next = start; next < end; ) {
        if (closed) throw new Error('the content is closed');
        const place = { contentId, position: Math.floor(next / CHUNK_BYTES), offset: next % CHUNK_BYTES };
        const bytes = chunks.copy(place, piece.subarray(0, end - next));
        if (bytes === 0) throw new RangeError('read past the end of the content');
        next += bytes;
        yield piece.subarray(0, bytes);
      }
    },
    close() {
      if (closed) return;
      closed = true;
      letGo();
    },
  };
}
