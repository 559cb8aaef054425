// Larger content on the serving thread: uploads, readers, and who holds which content for reading, so that what lost
// its paste goes when its last reader is through. The SQL is in records.ts.

import { freeBytes } from '../core/content.ts';
import type { Log } from '../core/events.ts';
import { KIB } from '../core/time.ts';
import type { contentLookups } from './records.ts';
import { CHUNK_BYTES, describe, StoreError, type UploadQuota } from './store.ts';
import type { Writer } from './writer.ts';

/** Chunks in one command: as much content as a batch is meant to hold, since clearing it costs what writing it did. */
const DISCARD_STEP_CHUNKS = 8;

/** What a reader is given at a time, and holds while it waits. */
const PIECE_BYTES = 64 * KIB;

export type ContentStore = ReturnType<typeof createContentStore>['contents'];
export type Upload = ReturnType<typeof createUpload>;
export type ContentReader = ReturnType<typeof createContentReader>;

type ContentLookups = Pick<ReturnType<typeof contentLookups>, 'isAdopted' | 'readChunk'>;

export function createContentStore(lookups: ContentLookups, writer: Writer, log: Log) {
  const chunks = createChunkBuffers();
  const recent = createRecentChunks(lookups.readChunk);
  const readers = new Map<string, number>();
  /** Orphaned while being read. */
  const deleteWhenUnread = new Set<string>();
  const discards = createDiscards((contentId) => {
    const step = { contentId, limit: DISCARD_STEP_CHUNKS };
    return writer.run('discardChunks', step, DISCARD_STEP_CHUNKS * CHUNK_BYTES);
  }, log);

  /** Removes what has lost its paste, each now or when its last reader closes. Resolves when what can go is gone. */
  function release(contentIds: readonly string[]): Promise<void> {
    for (const contentId of contentIds) if (readers.has(contentId)) deleteWhenUnread.add(contentId);
    return discards.add(contentIds.filter((contentId) => !readers.has(contentId)));
  }

  function letGo(contentId: string): void {
    const others = (readers.get(contentId) ?? 0) - 1;
    if (others > 0) {
      readers.set(contentId, others);
      return;
    }
    readers.delete(contentId);
    recent.forget(contentId);
    if (deleteWhenUnread.delete(contentId)) void discards.add([contentId]);
  }

  const contents = {
    /** What chunks to write are gathered in. */
    chunks,
    /** `contentId` is new and random, made like a paste's id. What the quota has no room for is refused as `full`. */
    upload: (contentId: string, quota: UploadQuota | null = null) => (
      createUpload({ contentId, quota, writer, chunks, release: () => release([contentId]) })
    ),
    /** Holds the content for reading; undefined when it is gone, as after a PUT or DELETE since the paste was found. */
    open(contentId: string): ContentReader | undefined {
      // Synchronous with the look at the database: an acknowledgement that makes it an orphan comes before it or finds
      // the reader.
      if (!lookups.isAdopted(contentId)) return undefined;
      readers.set(contentId, (readers.get(contentId) ?? 0) + 1);
      return createContentReader(contentId, recent, () => letGo(contentId));
    },
  };
  return { contents, release };
}

interface UploadParts {
  readonly contentId: string;
  readonly quota: UploadQuota | null;
  readonly writer: Writer;
  readonly chunks: ReturnType<typeof createChunkBuffers>;
  readonly release: () => Promise<void>;
}

/** Larger content on its way in. What is never given to a paste is removed: by discard, or at the next start. */
function createUpload({ contentId, quota, writer, chunks, release }: UploadParts) {
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
    const write = send(position, bytes);
    position += 1;
    firstWrite ??= write;
    lastWrite = write.catch((error) => (refusal = error));
    return write;
  }

  async function send(at: number, bytes: Uint8Array): Promise<void> {
    // Under a quota the first chunk asks for all: others that went along would come to content that is not there.
    if (quota !== null) await firstWrite;
    const hasRoom = await writer.run('writeChunk', { contentId, position: at, bytes, quota }, bytes.length);
    if (!hasRoom) throw new StoreError('full', 'storage full: the quota has no room for this upload');
  }

  return {
    contentId,
    /**
     * The next chunk: CHUNK_BYTES but for the last. A buffer that was taken from `chunks` is given back there; another
     * is copied. Resolves when it is committed.
     */
    async write(chunk: Uint8Array): Promise<void> {
      try {
        await writeNext(chunk);
      } finally {
        chunks.giveBack(chunk);
      }
    },
    /** Gives the chunks up. */
    async discard(): Promise<void> {
      refusal ??= new Error('the upload has ended');
      await lastWrite;
      if (position > 0) await release();
    },
  };
}

/** Larger content on its way out. It stays readable until closed, whatever happens to its paste meanwhile. */
function createContentReader(contentId: string, chunks: RecentChunks, letGo: () => void) {
  let closed = false;
  return {
    /** The bytes from `start` up to `end`, a piece at a time. Each is good until the next takes its place. */
    async *read(start: number, end: number): AsyncGenerator<Uint8Array, void> {
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
    /** Must be called once; what no paste refers to any more is then removed. Further calls do nothing. */
    close(): void {
      if (closed) return;
      closed = true;
      letGo();
    },
  };
}

/**
 * Removes the chunks of orphaned content that nobody reads, one content at a time, so that other writes come in
 * between. `step` removes some chunks of one content and says whether it is gone.
 */
export function createDiscards(step: (contentId: string) => Promise<boolean>, log: Log) {
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
    /** Resolves when nothing is left, or after a failure: what remains is tried again by the next call or start. */
    add(contentIds: readonly string[]): Promise<void> {
      for (const contentId of contentIds) waiting.add(contentId);
      // A run without anything to do would be over before it is noted here.
      if (waiting.size > 0) running ??= run();
      return running ?? Promise.resolve();
    },
  };
}

interface PlaceInContent {
  readonly contentId: string;
  /** Of the chunk. */
  readonly position: number;
  /** Bytes into the chunk. */
  readonly offset: number;
}

interface RecentChunk {
  readonly contentId: string;
  readonly position: number;
  readonly bytes: Uint8Array;
}

/** 2 MiB: more than readers take pieces of in one turn of the event loop. */
const MAX_RECENT_CHUNKS = 8;

type RecentChunks = ReturnType<typeof createRecentChunks>;

/**
 * The few chunks that were read last. Readers take pieces out of them: one that waits for its client then holds a
 * piece, and all of them together no more chunks than are kept here. `read` gives a chunk in a buffer of its own.
 */
export function createRecentChunks(read: (contentId: string, position: number) => Uint8Array | undefined) {
  /** The one used last is at the end. */
  let kept: RecentChunk[] = [];

  function find(contentId: string, position: number): RecentChunk | undefined {
    const index = kept.findIndex((chunk) => chunk.position === position && chunk.contentId === contentId);
    return index === -1 ? undefined : kept.splice(index, 1)[0];
  }

  function fetch(contentId: string, position: number): RecentChunk | undefined {
    const bytes = read(contentId, position);
    if (bytes === undefined) return undefined;
    // Left to the collector, what hundreds of readers have been through would fill the memory before it comes.
    if (kept.length === MAX_RECENT_CHUNKS) freeBytes(kept.shift()!.bytes);
    return { contentId, position, bytes };
  }

  return {
    /** Copies what is there into `target`; how many bytes, 0 past the end of the chunk or where there is none. */
    copy({ contentId, position, offset }: PlaceInContent, target: Uint8Array): number {
      const chunk = find(contentId, position) ?? fetch(contentId, position);
      if (chunk === undefined) return 0;
      kept.push(chunk);
      const piece = chunk.bytes.subarray(offset, offset + target.length);
      target.set(piece);
      return piece.length;
    },
    /** Nobody reads the content any more. */
    forget(contentId: string): void {
      for (const chunk of kept) if (chunk.contentId === contentId) freeBytes(chunk.bytes);
      kept = kept.filter((chunk) => chunk.contentId !== contentId);
    },
  };
}

/** 4 MiB that stay when nobody uploads: two batches of the writer. */
const MAX_KEPT_BUFFERS = 16;

/**
 * Buffers in which chunks are gathered and cross to the writer thread: shared with it and used again. A new one for
 * each chunk, zeroed and handed over, is work for the collector.
 */
export function createChunkBuffers() {
  const taken = new Set<ArrayBufferLike>();
  const kept: SharedArrayBuffer[] = [];
  return {
    /** CHUNK_BYTES of whatever was in them before, for the taker alone until it gives them back. */
    take(): Uint8Array<SharedArrayBuffer> {
      const buffer = kept.pop() ?? new SharedArrayBuffer(CHUNK_BYTES);
      taken.add(buffer);
      return new Uint8Array(buffer);
    },
    /** From any view of a buffer that was taken; other bytes, and those that were given back already, are let be. */
    giveBack({ buffer }: Uint8Array): void {
      if (!taken.delete(buffer) || kept.length === MAX_KEPT_BUFFERS) return;
      kept.push(buffer as SharedArrayBuffer);
    },
    /** How many are taken. */
    get taken() {
      return taken.size;
    },
  };
}

/** Some fifty small pastes: what stays behind when one of them is held for long is little. */
const PARCEL_BYTES = 64 * KIB;

/**
 * Small bytes on their way to the writer thread, which lie together in shared memory: a buffer for each, copied and
 * made anew on the other side, costs more than the bytes themselves. Gives a copy that nothing is written to again;
 * unreferenced, it goes.
 */
export function createParcels(): (bytes: Uint8Array) => Uint8Array {
  let parcel = new SharedArrayBuffer(0);
  let usedBytes = 0;
  return (bytes) => {
    if (usedBytes + bytes.length > parcel.byteLength) {
      parcel = new SharedArrayBuffer(Math.max(PARCEL_BYTES, bytes.length));
      usedBytes = 0;
    }
    const wrapped = new Uint8Array(parcel, usedBytes, bytes.length);
    wrapped.set(bytes);
    usedBytes += bytes.length;
    return wrapped;
  };
}
