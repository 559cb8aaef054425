// The database file before SQLite sees it: whether it is ours to open, its folder, its permissions, and that no other
// process serves it. It is looked at without a connection: even a read-only one leaves files beside a WAL database.

import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  asStoreError, DatabaseInUseError, DatabaseRefusedError, primaryCodeOf, SQLITE_BUSY, StoreError,
} from './failures.ts';
import { APPLICATION_ID, MIGRATIONS } from './schema.ts';

/** https://sqlite.org/fileformat2.html#the_database_header */
const HEADER_BYTES = 100;
const HEADER_MAGIC = 'SQLite format 3\0';
const USER_VERSION_OFFSET = 60;
const APPLICATION_ID_OFFSET = 68;

const OWNER_ONLY_FOLDER = 0o700;
const OWNER_ONLY_FILE = 0o600;

/** Long enough for a predecessor that has just been told to stop. */
export const LOCK_WAIT_MS = 1000;

/**
 * Refuses a file that another program or, unless it is to be replaced, a newer version wrote. A missing or an empty
 * file may become ours. Only for who holds the lock: to close a file takes the locks away that this process has on it
 * (https://sqlite.org/howtocorrupt.html, 2.2).
 */
export function refuseOtherFiles(path: string, newer: 'refuseNewer' | 'allowNewer' = 'refuseNewer'): void {
  const header = readHeader(path);
  if (header.length === 0) return;
  if (header.length < HEADER_BYTES || header.toString('latin1', 0, HEADER_MAGIC.length) !== HEADER_MAGIC) {
    throw notADatabaseRefused(path);
  }
  const applicationId = header.readUInt32BE(APPLICATION_ID_OFFSET);
  if (applicationId !== APPLICATION_ID) throw otherProgramRefused(path, applicationId);
  const version = header.readInt32BE(USER_VERSION_OFFSET);
  if (version > MIGRATIONS.length && newer === 'refuseNewer') throw newerVersionRefused(path, version);
}

/** At most HEADER_BYTES; none when there is no file. */
function readHeader(path: string): Buffer {
  let descriptor;
  try {
    descriptor = openSync(path, 'r');
    const header = Buffer.alloc(HEADER_BYTES);
    return header.subarray(0, readSync(descriptor, header, 0, HEADER_BYTES, 0));
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return Buffer.alloc(0);
    throw new StoreError('unavailable', `the database ${path} cannot be read`, { cause: error });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/**
 * Makes folder and file for their owner alone, whatever the umask; whether there was no file. SQLite gives -wal and
 * -shm the mode of the database.
 */
export function createFile(path: string): boolean {
  const folder = dirname(path);
  try {
    mkdirSync(folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
    closeSync(openSync(path, 'wx', OWNER_ONLY_FILE));
    return true;
  } catch (error) {
    if (isSystemError(error, 'EEXIST') && error.path !== folder) return false;
    throw new StoreError('unavailable', `the file ${path} cannot be created`, { cause: error });
  }
}

export interface DatabaseLock {
  release(): void;
  /** As if it had never been taken: for a database that turns out not to be ours. */
  withdraw(): void;
}

/**
 * Keeps every other process from serving the same database: leases and orphans are known to one process only. The lock
 * is SQLite's own on an empty file beside the database, so the system lets go of it however the process ends. Released,
 * the file stays, since another process may be waiting for it. Throws DatabaseInUseError.
 */
export function lockDatabase(path: string, waitMs = LOCK_WAIT_MS): DatabaseLock {
  const lockPath = `${path}-lock`;
  const isNew = createFile(lockPath);
  let db: DatabaseSync | undefined;
  const release = () => db?.close();
  try {
    db = new DatabaseSync(lockPath, { timeout: waitMs });
    db.exec('PRAGMA journal_mode = MEMORY');
    db.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    release();
    if (primaryCodeOf(error) !== SQLITE_BUSY) throw asStoreError(error);
    throw new DatabaseInUseError(`the database ${path} is in use by another process`, lockPath);
  }
  return {
    release,
    withdraw() {
      if (isNew) rmSync(lockPath);
      release();
    },
  };
}

/** How link(2) fails where the file system has no second names for a file. */
const WITHOUT_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

export function isWithoutLinks(error: unknown): boolean {
  return WITHOUT_LINKS.some((code) => isSystemError(error, code));
}

function isSystemError(error: unknown, code: string): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** For what must not make one: a mistyped path must not look like an empty service. */
export function requireDatabase(path: string): void {
  if (existsSync(path)) return;
  throw new DatabaseRefusedError(`there is no database ${path}: set SERVICE_DB to the one of the service`);
}

export function newerVersionRefused(path: string, version: number): DatabaseRefusedError {
  return new DatabaseRefusedError(
    `the database ${path} is of a newer version (schema ${version}, this one knows ${MIGRATIONS.length}): ` +
      'run the newer version, or restore a backup that this one made',
  );
}

export function otherProgramRefused(path: string, applicationId: number): DatabaseRefusedError {
  return new DatabaseRefusedError(
    `the database ${path} is of another program (application id ${applicationId}): set SERVICE_DB to another path`,
  );
}

function notADatabaseRefused(path: string): DatabaseRefusedError {
  return new DatabaseRefusedError(`the file ${path} is not a SQLite database: set SERVICE_DB to another path`);
}

export function damagedRefused(path: string): DatabaseRefusedError {
  return new DatabaseRefusedError(`the database ${path} is damaged: restore a backup`);
}

/** Makes what was written into the file outlive a power cut. Not for a database that this process has open. */
export function syncFile(path: string): void {
  const descriptor = openSync(path, 'r+');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** So that a name outlives a power cut; without complaint only where a file system does not offer that for folders. */
export function syncFolderOf(path: string): void {
  const descriptor = openSync(dirname(path), 'r');
  try {
    fsyncSync(descriptor);
  } catch (error) {
    if (!isSystemError(error, 'EINVAL') && !isSystemError(error, 'ENOTSUP')) throw error;
  } finally {
    closeSync(descriptor);
  }
}

/** 0 when there is no such file. */
export function fileBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
