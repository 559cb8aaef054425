// Pastes and their content on the serving thread: small pastes in memory, access times on their way to the database,
// uploads and readers of larger content. The SQL is in pastes.ts and records.ts.

import { freeBytes, holdBytes, letGoOfBytes } from '../core/content.ts';
import type { Log } from '../core/events.ts';
import { addTo, type Awaitable, KIB, MIB, type Used, UseOrder } from '../core/time.ts';
import type { Access } from './pastes.ts';
import type { Chunk, contentLookups } from './records.ts';
import { CHUNK_BYTES, describe, INLINE_BYTES, type PasteWithContent, StoreError, type UploadQuota } from './store.ts';
import { createChunkBuffers, type Writer } from './writer.ts';

/** Content is kept up to the size that fits into a row: reading such a row costs more than everything else in a GET. */
export const HOT_CONTENT_BYTES = INLINE_BYTES;

/** Up to this size, content is read together with metadata, so that it is in memory when it is asked for. */
export const READ_ALONG_BYTES = 16 * KIB;

/** Memory of a paste beside its content: objects, strings, answer heads, and as much again that V8 leaves unused. */
export const HOT_PASTE_BYTES = 3 * KIB;

/** Enough for some five hundred of the largest pastes, or eight thousand of 1 KiB. */
const MAX_HOT_BYTES = 32 * MIB;

/** As many ids as there is room for pastes of 1 KiB; an id takes a fortieth of the room of such a paste. */
export const MAX_MISSED = 8192;

interface HotPaste extends Used<HotPaste> {
  readonly found: PasteWithContent;
}

/** Small pastes that were read lately. Never older than the database, since none is kept while it is being changed. */
export class HotPastes {
  readonly #maxBytes: number;
  readonly #kept = new Map<string, HotPaste>();
  #order = new UseOrder<HotPaste>();
  #bytes = 0;
  /** Ids of pastes that were read lately but not kept, because there was no room. */
  readonly #missed = new Set<string>();
  /** How many changes of each paste are under way. */
  readonly #changing = new Map<string, number>();
  /** Pastes that had expired by this time may be gone from the database: if the clock is set back, none is kept. */
  #removedUntilSeconds = -Infinity;

  constructor(maxBytes = MAX_HOT_BYTES) {
    this.#maxBytes = maxBytes;
  }

  find(id: string, nowSeconds: number): PasteWithContent | undefined {
    if (nowSeconds < this.#removedUntilSeconds) {
      this.clear();
      this.#removedUntilSeconds = nowSeconds;
    }
    const paste = this.#kept.get(id);
    if (paste === undefined) return undefined;
    if (paste.found.expiresAt <= nowSeconds) return void this.#drop(id);
    this.#order.remove(paste);
    this.#order.append(paste);
    return paste.found;
  }

  /** A paste that was read in this turn of the event loop. The object is shared from now on: nobody may change it. */
  keep(found: PasteWithContent): void {
    const { id, burnAfterRead, content, size } = found;
    if (content === null || size > HOT_CONTENT_BYTES || burnAfterRead || this.#changing.has(id)) return;
    this.#drop(id);
    if (this.#bytes + size + HOT_PASTE_BYTES > this.#maxBytes && !this.#wasMissed(id)) return;
    holdBytes(content);
    const paste = { found, older: undefined, newer: undefined };
    this.#kept.set(id, paste);
    this.#order.append(paste);
    this.#bytes += size + HOT_PASTE_BYTES;
    while (this.#bytes > this.#maxBytes) this.#drop(this.#order.oldest!.found.id);
  }

  /** Carries out a change of a paste. Until it has settled, the paste is neither found nor kept here. */
  async around<Result>(id: string, change: () => Promise<Result>): Promise<Result> {
    this.#drop(id);
    addTo(this.#changing, id, 1);
    try {
      return await change();
    } finally {
      addTo(this.#changing, id, -1);
    }
  }

  noteRemoved(nowSeconds: number): void {
    this.#removedUntilSeconds = Math.max(this.#removedUntilSeconds, nowSeconds);
  }

  clear(): void {
    this.#kept.clear();
    this.#order = new UseOrder();
    this.#bytes = 0;
  }

  /** Most pastes are read only once, so kept ones are dropped only for a paste that is missed a second time. */
  #wasMissed(id: string): boolean {
    if (this.#missed.delete(id)) return true;
    if (this.#missed.size === MAX_MISSED) this.#missed.clear();
    this.#missed.add(id);
    return false;
  }

  #drop(id: string): void {
    const paste = this.#kept.get(id);
    if (paste === undefined) return;
    this.#kept.delete(id);
    this.#order.remove(paste);
    this.#bytes -= paste.found.size + HOT_PASTE_BYTES;
    // Left to the garbage collector, large content makes it run ten times a second: a quarter of what GETs of it cost.
    letGoOfBytes(paste.found.content!);
  }
}

const FLUSH_AFTER_MS = 5000;

/** When this many pastes are noted, no access to another is noted until some are written. */
export const MAX_TOUCHES = 10_000;

/** At most this many are written per FLUSH_AFTER_MS: rows all over a large file cost many times what the reads cost. */
export const BATCH_TOUCHES = 2048;

/** Rows in one command. Each is read whole: 16 MiB at worst. */
const STEP_ROWS = 256;

/** Access times, written in batches so that a lookup costs no commit. Nothing depends on them: a failure loses them. */
export class Touches {
  readonly #write: (accesses: readonly Access[]) => Promise<void>;
  readonly #log: Log;
  readonly #noted = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  /** True from the last batch until the timer fires. */
  #isResting = false;
  #flushing = Promise.resolve();
  #isClosed = false;

  constructor(write: (accesses: readonly Access[]) => Promise<void>, log: Log) {
    this.#write = write;
    this.#log = log;
  }

  note(id: string, atSeconds: number): void {
    const isNew = !this.#noted.has(id);
    if (this.#isClosed || (isNew && this.#noted.size >= MAX_TOUCHES)) return;
    this.#noted.set(id, atSeconds);
    if (isNew && this.#noted.size === MAX_TOUCHES && !this.#isResting) void this.#flush();
    else this.#timer ??= this.#startTimer();
  }

  /** Takes no more; resolves when all that was noted is written, or has failed and been logged. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.#flush();
  }

  #startTimer(): NodeJS.Timeout {
    return setTimeout(() => {
      this.#isResting = false;
      this.#timer = undefined;
      if (this.#noted.size > 0) void this.#flush();
    }, FLUSH_AFTER_MS).unref();
  }

  #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = this.#startTimer();
    this.#isResting = true;
    return (this.#flushing = this.#flushing.then(() => this.#writeNoted()));
  }

  async #writeNoted(): Promise<void> {
    const most = this.#isClosed ? MAX_TOUCHES : BATCH_TOUCHES;
    const accesses = Array.from(this.#noted, ([id, atSeconds]) => ({ id, atSeconds })).slice(0, most);
    for (const { id } of accesses) this.#noted.delete(id);
    try {
      for (let start = 0; start < accesses.length; start += STEP_ROWS) {
        await this.#write(accesses.slice(start, start + STEP_ROWS));
      }
    } catch (error) {
      const details = { reason: describe(error), accesses: accesses.length };
      this.#log({ level: 'warning', logger: 'store', event: 'access times lost', outcome: 'failure', details });
    }
  }
}

// Larger content: uploads, and which content is read, so that content without a paste goes with its last reader.

/** Chunks in one command: as much content as fits into a batch, since clearing content costs as much as writing it. */
const DISCARD_STEP_CHUNKS = 8;

/** How much a reader holds while its client is slow, except for the few readers that hold a whole chunk. */
const PIECE_BYTES = 64 * KIB;

export type ContentStore = ReturnType<typeof createContentStore>['contents'];
export type Upload = ReturnType<typeof createUpload>;
export type ContentReader = ReturnType<typeof createContentReader>;

/** An upload that ends skips the discard if its content has a paste. If asking fails it does not: that does no harm. */
export function createContentStore(lookups: ReturnType<typeof contentLookups>, writer: Writer, log: Log) {
  const [chunks, recent] = [createChunkBuffers(), createRecentChunks(lookups.readChunk)];
  const readers = new Map<string, number>();
  const deleteWhenUnread = new Set<string>();
  /** Content that is being uploaded is an orphan too, but only its upload may discard it. */
  const uploading = new Set<string>();
  const step = (contentId: string) => (
    writer.run('discardChunks', { contentId, limit: DISCARD_STEP_CHUNKS }, DISCARD_STEP_CHUNKS * CHUNK_BYTES)
  );
  // Uploads have discards of their own: an answer waits until its upload is discarded, behind other uploads alone.
  const [discards, ofUploads] = [createDiscards(step, log), createDiscards(step, log)];

  /** Removes content that lost its paste, now or when its last reader closes. Resolves when unread content is gone. */
  function release(contentIds: readonly string[], removal = discards): Promise<void> {
    for (const contentId of contentIds) if (readers.has(contentId)) deleteWhenUnread.add(contentId);
    return removal.add(contentIds.filter((contentId) => !readers.has(contentId)));
  }

  function letGo(contentId: string): void {
    if (addTo(readers, contentId, -1) > 0) return;
    recent.forget(contentId);
    if (deleteWhenUnread.delete(contentId)) void discards.add([contentId]);
  }

  return {
    contents: {
      chunks,
      /** `contentId` is new and random. Writing rejects with `full` when the quota has no room. */
      upload(contentId: string, quota: UploadQuota | null = null): Upload {
        uploading.add(contentId);
        return createUpload(contentId, quota, writer, chunks.giveBack, async (hasChunks) => {
          uploading.delete(contentId);
          const isAdopted = Promise.resolve(contentId).then(lookups.isAdopted).catch(() => false);
          if (hasChunks && !(await isAdopted)) await release([contentId], ofUploads);
        });
      },
      /** Holds the content for reading; undefined if it is gone, as by a PUT or DELETE since the paste was found. */
      open(contentId: string): Awaitable<ContentReader | undefined> {
        // The reader is counted in the turn of this look: a removal is acknowledged before it, or finds the reader.
        if (!lookups.isAdopted(contentId)) return undefined;
        addTo(readers, contentId, 1);
        return createContentReader(contentId, recent, () => letGo(contentId));
      },
    },
    release,
    /** Removes content whose paste another process has removed: that process cannot know who reads the content. */
    releaseStrays: () => release(lookups.listOrphans().filter((contentId) => !uploading.has(contentId))),
  };
}

type ChunkWriter = { readonly run: (name: 'writeChunk', chunk: Chunk, bytes: number) => Promise<boolean> };

/** Larger content that is being written. Unless a paste is created with it, discard or the next start removes it. */
export function createUpload(
  contentId: string, quota: UploadQuota | null, writer: ChunkWriter, giveBack: (chunk: Uint8Array) => void,
  end: (hasChunks: boolean) => Promise<void>,
) {
  let position = 0;
  let lastBytes = CHUNK_BYTES;
  /** Why further writes are refused. After a failed write it is that failure: the next chunk would leave a gap. */
  let refusal: unknown;
  let firstWrite: Promise<void> | undefined;
  let lastWrite: Promise<unknown> = Promise.resolve();

  async function send(chunk: { readonly position: number; readonly bytes: Uint8Array }): Promise<void> {
    // Under a quota the first chunk asks for room for the whole upload: if it is refused, no other may be written.
    if (quota !== null) await firstWrite;
    const hasRoom = await writer.run('writeChunk', { contentId, quota, ...chunk }, chunk.bytes.length);
    if (!hasRoom) throw new StoreError('full', 'storage full: the quota has no room for this upload');
  }

  return {
    contentId,
    /** Writes the next chunk: CHUNK_BYTES but for the last. Resolves when it is committed and its buffer given back. */
    async write(bytes: Uint8Array): Promise<void> {
      try {
        if (refusal !== undefined) throw refusal;
        if (bytes.length === 0 || bytes.length > CHUNK_BYTES || lastBytes !== CHUNK_BYTES) {
          throw new RangeError(`a chunk of ${bytes.length} bytes after one of ${lastBytes}`);
        }
        lastBytes = bytes.length;
        const write = send({ position, bytes });
        position += 1;
        firstWrite ??= write;
        lastWrite = write.catch((error) => (refusal = error));
        await write;
      } finally {
        giveBack(bytes);
      }
    },
    /** To be called once a paste has the chunks. If another process has removed that paste since, the chunks go too. */
    keep: (): void => void end(true),
    /** Gives the chunks up. */
    async discard(): Promise<void> {
      refusal ??= new Error('the upload has ended');
      await lastWrite;
      await end(position > 0);
    },
  };
}

interface Chunks extends Pick<ReturnType<typeof createRecentChunks>, 'giveBack' | 'copy'> {
  readonly borrow: (contentId: string, position: number) => Awaitable<Uint8Array | undefined>;
}

/** Reads larger content, which stays readable until the reader is closed, whatever happens to its paste meanwhile. */
export function createContentReader(contentId: string, chunks: Chunks, letGo: () => void) {
  let closed = false;
  return {
    /** The bytes from `start` up to `end`, in pieces. A piece's memory is used again when the next one is asked for. */
    async *read(start: number, end: number): AsyncGenerator<Uint8Array, void> {
      const piece = new Uint8Array(Math.min(PIECE_BYTES, end - start));
      let whole: Uint8Array | undefined;
      try {
        for (let next = start; next < end; ) {
          if (closed) throw new Error('the content is closed');
          const [position, offset] = [Math.floor(next / CHUNK_BYTES), next % CHUNK_BYTES];
          const last = whole;
          whole = await chunks.borrow(contentId, position);
          // Only when the next is there: memory freed earlier goes back to the system, which returns it page by page.
          chunks.giveBack(last);
          const bytes = whole?.subarray(offset, offset + end - next)
            ?? piece.subarray(0, chunks.copy(contentId, position, offset, piece.subarray(0, end - next)));
          if (bytes.length === 0) throw new RangeError('read past the end of the content');
          next += bytes.length;
          yield bytes;
        }
      } finally {
        chunks.giveBack(whole);
      }
    },
    /** Must be called: only then is content removed that has lost its paste. Further calls do nothing. */
    close(): void {
      if (closed) return;
      closed = true;
      letGo();
    },
  };
}

/** Removes orphaned contents by turns, in steps between which others write. `step` says whether its content is gone. */
export function createDiscards(step: (contentId: string) => Promise<boolean>, log: Log) {
  const waiting = new Map<string, PromiseWithResolvers<void>>();
  let running: Promise<void> | undefined;

  /** The last step and `running = undefined` are in one turn, so whatever is added later starts a new run. */
  async function run(): Promise<void> {
    try {
      for (const [contentId, removal] of waiting) {
        // Moved to the end, so that neither large content nor content that can't be removed holds up the others.
        waiting.delete(contentId);
        waiting.set(contentId, removal);
        if (!(await step(contentId))) continue;
        waiting.delete(contentId);
        removal.resolve();
      }
    } catch (error) {
      for (const { resolve } of waiting.values()) resolve();
      const details = { reason: describe(error), waiting: waiting.size };
      log({ level: 'warning', logger: 'store', event: 'content not removed', outcome: 'failure', details });
    } finally {
      running = undefined;
    }
  }

  return {
    /** Resolves when these are gone (for none: when all are) or after a failure; the next call or start tries again. */
    async add(contentIds: readonly string[]): Promise<void> {
      for (const contentId of contentIds) if (!waiting.has(contentId)) waiting.set(contentId, Promise.withResolvers());
      const removals = contentIds.map((contentId) => waiting.get(contentId)!.promise);
      // A run with nothing to do would end before it is assigned to `running`, which then would never be reset.
      if (waiting.size > 0) running ??= run();
      await (contentIds.length === 0 ? running : Promise.all(removals));
    },
  };
}

/** 2 MiB, more than is read in one turn of the event loop. */
const MAX_RECENT_CHUNKS = 8;

/** Another 2 MiB, lent to readers as whole chunks: copies and small writes took a quarter of a download's CPU time. */
const MAX_BORROWED_CHUNKS = 8;

/** The chunks read last: a reader with a slow client holds only a piece. `read` gives each chunk its own buffer. */
export function createRecentChunks(read: (contentId: string, position: number) => Uint8Array | undefined) {
  /** By content and position; the one used last is at the end. */
  const kept = new Map<string, Uint8Array>();
  let borrowed = 0;

  // Freed at once: the garbage collector would come too late for all the chunks that hundreds of readers go through.
  function drop(key: string): void {
    freeBytes(kept.get(key)!);
    kept.delete(key);
  }

  return {
    /** Lends a whole chunk until it is given back; undefined if several read it, enough are lent, or there is none. */
    borrow(contentId: string, position: number): Uint8Array | undefined {
      if (borrowed === MAX_BORROWED_CHUNKS || kept.has(`${contentId} ${position}`)) return undefined;
      const chunk = read(contentId, position);
      if (chunk !== undefined) borrowed += 1;
      return chunk;
    },
    giveBack(chunk: Uint8Array | undefined): void {
      if (chunk === undefined) return;
      borrowed -= 1;
      freeBytes(chunk);
    },
    /** Copies bytes from `offset` on in a chunk; gives how many, 0 past its end or if there is no such chunk. */
    copy(contentId: string, position: number, offset: number, target: Uint8Array): number {
      const key = `${contentId} ${position}`;
      const chunk = kept.get(key) ?? read(contentId, position);
      if (chunk === undefined) return 0;
      kept.delete(key);
      for (const oldest of kept.keys()) if (kept.size >= MAX_RECENT_CHUNKS) drop(oldest);
      kept.set(key, chunk);
      const piece = chunk.subarray(offset, offset + target.length);
      target.set(piece);
      return piece.length;
    },
    forget(contentId: string): void {
      for (const key of kept.keys()) if (key.startsWith(`${contentId} `)) drop(key);
    },
  };
}
