// Opens the store: the checks of the file, the writer thread, the reader, and what a crash left. The interface is
// store.ts.

import type { Log } from '../core/events.ts';
import type { Clock } from '../core/time.ts';
import { FREE_RESERVE_BYTES, freeBytes } from './ballast.ts';
import { createParcels, type Parcels } from './buffers.ts';
import { type ContentKeeper, createContentStore } from './content-store.ts';
import { DatabaseRefusedError } from './failures.ts';
import { createFile, type DatabaseLock, fileBytes, lockDatabase, refuseOtherFiles } from './file.ts';
import { createHotPastes, createTouches, type HotPastes, READ_ALONG_BYTES, type Touches } from './kept.ts';
import { createAuthorityStore, createCertificateStore } from './pki-store.ts';
import { openReader, type Reader } from './reader.ts';
import { MIGRATIONS } from './schema.ts';
import {
  type ChangedContent, INLINE_BYTES, type PasteStore, type PasteWithContent, type Store, type StoreUpkeep,
} from './store.ts';
import { type Cargo, startWriter, type Writer } from './writer.ts';

export interface StoreOptions {
  /** The SQLite file; made, with its folder, when missing. */
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Orphans not removed by then are removed while serving: they are invisible, and start-up must not wait for gigabytes.
 */
const SWEEP_WAIT_MS = 1000;

/** A service must stop within a second: what is not removed by then is an orphan, gone at the next start. */
const CLOSE_WAIT_MS = 500;

/**
 * Rejects with DatabaseRefusedError, leaving the file untouched, when it is not ours or of a newer version; with
 * DatabaseInUseError when another process has it open; with StoreError when the storage fails.
 */
export async function openStore({ path, clock, log }: StoreOptions): Promise<Store> {
  const startedMs = clock.monotonicMs();
  const lock = lockDatabase(path);
  let writer: Writer | undefined;
  try {
    refuseOtherFiles(path);
    createFile(path);
    writer = await startWriter(path, clock, log);
    const store = await assemble({ reader: openReader(path), writer, lock, path, log });
    const details = { schema: MIGRATIONS.length, milliseconds: Math.round(clock.monotonicMs() - startedMs) };
    log({ level: 'info', logger: 'store', event: 'opened', outcome: 'success', details });
    return store;
  } catch (error) {
    await writer?.close();
    if (error instanceof DatabaseRefusedError) lock.withdraw();
    else lock.release();
    throw error;
  }
}

interface Parts {
  readonly reader: Reader;
  readonly writer: Writer;
  readonly lock: DatabaseLock;
  readonly path: string;
  readonly log: Log;
}

async function assemble({ reader, writer, lock, path, log }: Parts): Promise<Store> {
  const touches = createTouches((accesses) => writer.run('touchPastes', accesses), log);
  const { contents, keeper } = createContentStore(reader, writer, log);
  const hot = createHotPastes();
  await settledWithin(keeper.release(reader.look((lookups) => lookups.listOrphans())), SWEEP_WAIT_MS);

  let closing: Promise<void> | undefined;
  async function closeParts(): Promise<void> {
    await touches.close();
    await settledWithin(keeper.release([]), CLOSE_WAIT_MS);
    reader.close();
    hot.clear();
    await writer.close();
    lock.release();
  }
  return {
    pastes: createPasteStore({ reader, writer, keeper, touches, hot }),
    contents,
    certificates: createCertificateStore(reader, writer),
    authority: createAuthorityStore(reader, writer),
    audit: {
      record: (event) => writer.run('recordAudit', event),
      list: async (filter, page) => reader.look((lookups) => lookups.listAudit(filter, page)),
      removeUntil: (untilSeconds, limit) => writer.run('removeOldAudit', { untilSeconds, limit }),
    },
    challenges: {
      isSpent: async (nonce) => reader.look((lookups) => lookups.isSpent(nonce)),
      removeExpired: (untilSeconds, limit) => writer.run('removeExpiredChallenges', { untilSeconds, limit }),
    },
    submissions: {
      removeUntil: (untilSeconds, limit) => writer.run('removeOldSubmissions', { untilSeconds, limit }),
    },
    secrets: {
      // From the second start on there is nothing to write, and nothing to wait for.
      keep: async (name, value) => (
        reader.look((lookups) => lookups.findSecret(name)) ?? writer.run('keepSecret', { name, value })
      ),
    },
    hasRoomFor: (bytes) => freeBytes(path) - bytes > FREE_RESERVE_BYTES,
    upkeep: createUpkeep(writer, path),
    healthy: createHealthCheck(reader, writer),
    close: () => (closing ??= closeParts()),
  };
}

function createUpkeep(writer: Writer, path: string): StoreUpkeep {
  return {
    truncateWal: () => writer.run('truncateWal', null),
    releasePages: (pages) => writer.run('releasePages', pages),
    optimize: () => writer.run('optimize', null),
    restoreBallast: () => writer.run('restoreBallast', null),
    fileBytes: () => ({ database: fileBytes(path), wal: fileBytes(`${path}-wal`) }),
    writesWaiting: () => writer.waiting,
  };
}

async function settledWithin(work: Promise<void>, milliseconds: number): Promise<void> {
  let timer;
  const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, milliseconds)));
  await Promise.race([work, timeout]);
  clearTimeout(timer);
}

// PasteStore over the writer, the reader and what is kept of small pastes. The SQL is in pastes.ts.

export interface PasteStoreParts {
  readonly reader: Reader;
  readonly writer: Writer;
  readonly keeper: ContentKeeper;
  readonly touches: Touches;
  readonly hot: HotPastes;
}

export function createPasteStore({ reader, writer, keeper, touches, hot }: PasteStoreParts): PasteStore {
  const parcels = createParcels();
  /** What had expired by then has been removed, and still is when the clock is set back. */
  let removedUntilSeconds = -Infinity;

  function find(id: string, nowSeconds: number, mostContentBytes: number): PasteWithContent | undefined {
    if (nowSeconds < removedUntilSeconds) {
      hot.clear();
      removedUntilSeconds = nowSeconds;
    }
    const kept = hot.find(id, nowSeconds);
    if (kept !== undefined) return kept;
    const found = reader.look((lookups) => lookups.find(id, nowSeconds, mostContentBytes));
    if (found !== undefined) hot.keep(found);
    return found;
  }

  return {
    find: (id, nowSeconds) => find(id, nowSeconds, READ_ALONG_BYTES),
    findWithContent: (id, nowSeconds) => find(id, nowSeconds, INLINE_BYTES),
    create(paste, terms) {
      const { wrapped, cargo } = wrapContent(paste, parcels);
      return writer.run('createPaste', { paste: wrapped, terms }, cargo);
    },
    async update(id, owner, changes, terms) {
      const { wrapped, cargo } = wrapContent(changes.content, parcels);
      const update = { id, owner, changes: { ...changes, content: wrapped }, terms };
      const { outcome, orphanedContentIds } = await hot.around(id, () => writer.run('updatePaste', update, cargo));
      void keeper.release(orphanedContentIds);
      return outcome;
    },
    async remove(id, by, nowSeconds, asAdmin) {
      const deletion = { id, by, nowSeconds, asAdmin };
      const { outcome, orphanedContentIds } = await hot.around(id, () => writer.run('deletePaste', deletion));
      void keeper.release(orphanedContentIds);
      return outcome;
    },
    async list(filter, page, nowSeconds) {
      return reader.look((lookups) => lookups.listPastes(filter, page, nowSeconds));
    },
    async burn(id, passwordHash, nowSeconds) {
      const removal = await writer.run('burnPaste', { id, passwordHash, nowSeconds });
      void keeper.release(removal.orphanedContentIds);
      return removal.count === 1;
    },
    touch: (id, nowSeconds) => touches.note(id, nowSeconds),
    async removeExpired(nowSeconds, limit) {
      const removal = await writer.run('removeExpired', { nowSeconds, limit });
      if (removal.count > 0) removedUntilSeconds = Math.max(removedUntilSeconds, nowSeconds);
      await keeper.release(removal.orphanedContentIds);
      return removal.count;
    },
    async usage() {
      return reader.look((lookups) => lookups.usage());
    },
  };
}

function wrapContent<Stored extends ChangedContent | undefined>(
  stored: Stored,
  parcels: Parcels,
): { wrapped: Stored; cargo: Cargo } {
  if (stored === undefined) return { wrapped: stored, cargo: { bytes: 0 } };
  const content = stored.content && parcels.wrap(stored.content);
  const cargo = { bytes: content?.length ?? 0 };
  return { wrapped: { ...stored, sha256: parcels.wrap(stored.sha256), content }, cargo };
}

// Whether the storage works at this moment, as GET /health asks. Does not judge how much room is left.

/** Resolves with false, and never rejects. */
export function createHealthCheck(
  reader: Pick<Reader, 'look'>,
  writer: Pick<Writer, 'run' | 'state'>,
): Store['healthy'] {
  let probing: Promise<boolean> | undefined;

  async function probe(): Promise<boolean> {
    try {
      await writer.run('probe', null);
      return true;
    } catch {
      return false;
    } finally {
      probing = undefined;
    }
  }
  return async () => {
    try {
      reader.look((lookups) => lookups.isAdopted(''));
    } catch {
      return false;
    }
    const state = writer.state();
    // Concurrent checks share one probe, so that asking often costs no more.
    return state === 'failed' ? (probing ??= probe()) : state === 'working';
  };
}
