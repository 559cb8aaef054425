// ContentStore over the writer and the reader: uploads, and who holds which content for reading, so that what lost its
// paste goes when its last reader is through. The SQL is in contents.ts.

import { freeBytes } from '../core/content.ts';
import type { Log } from '../core/events.ts';
import { KIB } from '../core/time.ts';
import { createChunkBuffers } from './buffers.ts';
import type { Chunk } from './contents.ts';
import { describe, StoreError } from './failures.ts';
import type { Reader } from './reader.ts';
import {
  CHUNK_BYTES, type ChunkBuffers, type ContentReader, type ContentStore, type Upload, type UploadQuota,
} from './store.ts';
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

// Removes the chunks of orphaned content in steps, one content at a time, so that other writes come in between. That a
// content may go now, since nobody reads it, is content-store.ts's knowledge.

export interface Discards {
  /** Resolves when nothing is left, or after a failure: what remains is tried again by the next call or start. */
  add(contentIds: readonly string[]): Promise<void>;
}

/** `step` removes some chunks of one content and says whether it is gone. */
export function createDiscards(step: (contentId: string) => Promise<boolean>, log: Log): Discards {
  const waiting = new Set<string>();
  let running: Promise<void> | undefined;

  /** Its last step and `running = undefined` are one turn: what is added after it begins a run of its own. */
  async function run(): Promise<void> {
    try {
      for (const contentId of waiting) await discard(contentId);
    } catch (error) {
      const details = { reason: describe(error), waiting: waiting.size };
      log({ level: 'warning', logger: 'store', event: 'content not removed', outcome: 'failure', details });
    } finally {
      running = undefined;
    }
  }

  async function discard(contentId: string): Promise<void> {
    try {
      while (!(await step(contentId)));
      waiting.delete(contentId);
    } catch (error) {
      // To the end of the row, so that one content that can't be removed does not keep the others.
      waiting.delete(contentId);
      waiting.add(contentId);
      throw error;
    }
  }

  return {
    add(contentIds) {
      for (const contentId of contentIds) waiting.add(contentId);
      // A run without anything to do would be over before it is noted here.
      if (waiting.size > 0) running ??= run();
      return running ?? Promise.resolve();
    },
  };
}

// The few chunks of larger content that were read last. Readers take pieces out of them: one that waits for its client
// then holds a piece, and all of them together no more chunks than are kept here.

export interface RecentChunks {
  /** Copies what is there into `target`; how many bytes, 0 past the end of the chunk or where there is none. */
  copy(place: PlaceInContent, target: Uint8Array): number;
  /** Nobody reads the content any more. */
  forget(contentId: string): void;
}

export interface PlaceInContent {
  readonly contentId: string;
  /** Of the chunk. */
  readonly position: number;
  /** Bytes into the chunk. */
  readonly offset: number;
}

interface Kept {
  readonly contentId: string;
  readonly position: number;
  readonly bytes: Uint8Array;
}

/** 2 MiB: more than readers take pieces of in one turn of the event loop. */
const MAX_KEPT_CHUNKS = 8;

/** `read` gives a chunk in a buffer of its own. */
export function createRecentChunks(
  read: (contentId: string, position: number) => Uint8Array | undefined,
): RecentChunks {
  /** The one used last is at the end. */
  let kept: Kept[] = [];

  function find(contentId: string, position: number): Kept | undefined {
    const index = kept.findIndex((chunk) => chunk.position === position && chunk.contentId === contentId);
    return index === -1 ? undefined : kept.splice(index, 1)[0];
  }

  function fetch(contentId: string, position: number): Kept | undefined {
    const bytes = read(contentId, position);
    if (bytes === undefined) return undefined;
    // Left to the collector, what hundreds of readers have been through would fill the memory before it comes.
    if (kept.length === MAX_KEPT_CHUNKS) freeBytes(kept.shift()!.bytes);
    return { contentId, position, bytes };
  }

  return {
    copy({ contentId, position, offset }, target) {
      const chunk = find(contentId, position) ?? fetch(contentId, position);
      if (chunk === undefined) return 0;
      kept.push(chunk);
      const piece = chunk.bytes.subarray(offset, offset + target.length);
      target.set(piece);
      return piece.length;
    },
    forget(contentId) {
      for (const chunk of kept) if (chunk.contentId === contentId) freeBytes(chunk.bytes);
      kept = kept.filter((chunk) => chunk.contentId !== contentId);
    },
  };
}
