// Opens the store: the checks of the file, the writer thread, the reader, and what a crash left. The interface is
// store.ts.

import type { Log } from '../core/log.ts';
import type { Clock } from '../core/time.ts';
import { FREE_RESERVE_BYTES, freeBytes } from './ballast.ts';
import { createContentStore } from './content-store.ts';
import { createFile, fileBytes, lockDatabase, refuseOtherFiles } from './file.ts';
import type { DatabaseLock } from './file.ts';
import { createHealthCheck } from './health.ts';
import { createHotPastes } from './hot-pastes.ts';
import { createPasteStore } from './paste-store.ts';
import { createAuthorityStore, createCertificateStore } from './pki-store.ts';
import { openReader } from './reader.ts';
import type { Reader } from './reader.ts';
import { MIGRATIONS } from './schema.ts';
import { DatabaseRefusedError } from './store.ts';
import type { Store, StoreUpkeep } from './store.ts';
import { createTouches } from './touches.ts';
import { startWriter } from './writer.ts';
import type { Writer } from './writer.ts';

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
