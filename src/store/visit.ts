// Opens the store for a command of the command line, beside a running server or where nobody serves. Offers only what a
// second process may do: nothing here discards content or cleans up, since leases and orphans are known to the server
// alone. The server's own way in is open.ts.

import { freeBytes } from './ballast.ts';
import { openReading } from './connection.ts';
import {
  asStoreError, DatabaseInUseError, DatabaseRefusedError, primaryCodeOf, SQLITE_CANTOPEN,
} from './failures.ts';
import {
  createFile, type DatabaseLock, fileBytes, LOCK_WAIT_MS, lockDatabase, newerVersionRefused,
  refuseOtherFiles, requireDatabase,
} from './file.ts';
import type { StoreOptions } from './open.ts';
import { createAuthorityStore, createCertificateStore } from './pki-store.ts';
import { openReader, type Reader } from './reader.ts';
import { MIGRATIONS, schemaVersionOf } from './schema.ts';
import type { PasteOptionCounts, StatsStore } from './stats.ts';
import type { AuditStore, AuthorityStore, CertificateStore, PasteStore } from './store.ts';
import { startWriter, type Writer } from './writer.ts';

export interface VisitOptions extends StoreOptions {
  /** What becomes of a path without a file. */
  readonly ifMissing: 'create' | 'refuse';
}

export interface VisitedStore {
  readonly certificates: CertificateStore;
  readonly authority: AuthorityStore;
  readonly audit: Pick<AuditStore, 'list'>;
  readonly pastes: Pick<PasteStore, 'usage'>;
  readonly stats: StatsStore;
  close(): Promise<void>;
}

/**
 * Where nobody has the database, makes and migrates it as the server would, under the server's lock, which is free
 * again when this resolves: a server may start beside the command. Where a server has it, writes queue up with the
 * server's own by SQLite's locking. Rejects as openStore does, and with DatabaseInUseError beside a server of an older
 * version.
 */
export async function visitStore({ path, clock, log, ifMissing }: VisitOptions): Promise<VisitedStore> {
  if (ifMissing === 'refuse') requireDatabase(path);
  const lock = lockUnlessServed(path);
  let writer: Writer | undefined;
  try {
    if (lock !== undefined) {
      refuseOtherFiles(path);
      createFile(path);
    }
    writer = await startWriter(path, clock, log, { keepsBallast: false });
    const visited = assemble(path, writer);
    lock?.release();
    return visited;
  } catch (error) {
    await writer?.close();
    if (error instanceof DatabaseRefusedError) lock?.withdraw();
    else lock?.release();
    throw error;
  }
}

function assemble(path: string, writer: Writer): VisitedStore {
  const reader = openReader(path);
  let closing: Promise<void> | undefined;
  async function closeParts(): Promise<void> {
    reader.close();
    await writer.close();
  }
  return {
    certificates: createCertificateStore(reader, writer),
    authority: createAuthorityStore(reader, writer),
    audit: { list: async (filter, page) => reader.look((lookups) => lookups.listAudit(filter, page)) },
    pastes: { usage: async () => reader.look((lookups) => lookups.usage()) },
    stats: createStatsStore(reader, path),
    close: () => (closing ??= closeParts()),
  };
}

/** undefined beside whoever has the lock and has brought the database to exactly this version. */
function lockUnlessServed(path: string): DatabaseLock | undefined {
  // Whoever has the lock may be making or migrating the database at this moment: worth a wait before giving up.
  for (const waitMs of [0, LOCK_WAIT_MS]) {
    try {
      return lockDatabase(path, waitMs);
    } catch (error) {
      if (!(error instanceof DatabaseInUseError)) throw error;
      const version = versionBeside(path);
      if (version === MIGRATIONS.length) return undefined;
      if (version > MIGRATIONS.length) throw newerVersionRefused(path, version);
    }
  }
  throw new DatabaseInUseError(
    `the database ${path} is in use by a server of an older version, or by one that is still starting: ` +
      'try again when it runs this version',
  );
}

/** Through SQLite, as what another process has open must not be opened and closed by hand (see refuseOtherFiles). */
function versionBeside(path: string): number {
  let db;
  try {
    db = openReading(path);
    return schemaVersionOf(db);
  } catch (error) {
    // It has the lock, and has not made the file so far.
    if (primaryCodeOf(error) === SQLITE_CANTOPEN) return 0;
    throw asStoreError(error);
  } finally {
    db?.close();
  }
}

export function createStatsStore(reader: Reader, path: string): StatsStore {
  return {
    pastes: async (nowSeconds) => ({
      ...reader.look((lookups) => lookups.countPastes(nowSeconds)),
      ...countOptions(reader),
    }),
    admins: async (nowSeconds) => reader.look((lookups) => lookups.countAdmins(nowSeconds)),
    audit: async () => reader.look((lookups) => lookups.countAudit()),
    files: async () => ({
      ...reader.look((lookups) => lookups.pages()),
      databaseBytes: fileBytes(path),
      walBytes: fileBytes(`${path}-wal`),
      diskFreeBytes: freeBytes(path),
    }),
  };
}

export function countOptions(reader: Reader): PasteOptionCounts {
  const counted = { burnAfterRead: 0, passwordProtected: 0 };
  let lastRow: number | null = 0;
  while (lastRow !== null) {
    const afterRow: number = lastRow;
    const slice = reader.look((lookups) => lookups.countPasteOptions(afterRow, SLICE_PASTES));
    counted.burnAfterRead += slice.burnAfterRead;
    counted.passwordProtected += slice.passwordProtected;
    lastRow = slice.lastRow;
  }
  return counted;
}

/** Pastes in one statement: some milliseconds, or as long as their pages take to be read from a disk. */
export const SLICE_PASTES = 5000;
