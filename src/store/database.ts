// The database as a file and as connections: how they are opened and set up, whether the file is ours to open, that no
// other process serves it, and the room on its disk that is kept in reserve.

import {
  accessSync, closeSync, constants, existsSync, ftruncateSync, mkdirSync, openSync, readlinkSync, readSync,
  realpathSync, rmSync, statfsSync, statSync, writeSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { codeOf, orUndefined } from '../core/events.ts';
import { KIB, MIB } from '../core/time.ts';
import {
  APPLICATION_ID, isEmpty, type Marks, marksOf, migrate, MIGRATIONS, PAGE_BYTES, schemaVersionOf, whyStrange,
} from './schema.ts';
import {
  DatabaseInUseError, DatabaseRefusedError, failureOf, isDamage, primaryCodeOf, SQLITE, StoreError, type StoreFailure,
} from './store.ts';

/** The log is checkpointed when it reaches this size, and cut back to it when it starts anew. */
export const WAL_LIMIT_BYTES = 8 * MIB;

/** The inner pages for a million pastes take some 3 MiB, more than SQLite's default of 2 MB. */
const READER_CACHE_KIB = (4 * MIB) / KIB;

/** No statement may attach a second database; Node has this limit from 24.15 on. */
const OPTIONS = { timeout: 5000, limits: { attach: 0 } } as const satisfies DatabaseSyncOptions;

/** A damaged or tampered file can't run code or be read past its cells, and no copy has old bytes between the cells. */
const CAUTION = ['PRAGMA trusted_schema = OFF', 'PRAGMA cell_size_check = ON', 'PRAGMA secure_delete = ON'];

/** Takes effect only before the first table. A crash must not leave a file without our application id. */
const LAYOUT = [
  // auto_vacuum writes the file, so one transaction sets the id too. Not IMMEDIATE, which writes before the id is set.
  `PRAGMA page_size = ${PAGE_BYTES}`,
  'BEGIN', 'PRAGMA auto_vacuum = INCREMENTAL', `PRAGMA application_id = ${APPLICATION_ID}`, 'COMMIT',
];

/**
 * Each applies to one connection only. The cache stays at SQLite's 2 MB: what a batch writes beyond it goes to the log
 * before the commit, where no reader sees it, and with 8 MiB nothing was quicker.
 */
const WRITING = [
  'PRAGMA synchronous = FULL',
  `PRAGMA journal_size_limit = ${WAL_LIMIT_BYTES}`,
  `PRAGMA wal_autocheckpoint = ${WAL_LIMIT_BYTES / PAGE_BYTES}`,
];

/** The database must exist with all its tables. */
export function openReading(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { ...OPTIONS, readOnly: true });
  orClosed(db, () => [...CAUTION, `PRAGMA cache_size = -${READER_CACHE_KIB}`].forEach((pragma) => db.exec(pragma)));
  return db;
}

/** Gives what `use` returns. If it throws, as for a file that is no database, closes `db`: nobody else would. */
export function orClosed<Result>(db: DatabaseSync, use: (db: DatabaseSync) => Result): Result {
  try {
    return use(db);
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Sets nothing up, so any version in any state can be opened, also while others use it. The file must exist. */
export function openAsIs(path: string, mode: 'writable' | 'immutable'): DatabaseSync {
  const url = pathToFileURL(path);
  // A writable connection removes its side files if nobody else has the database open; mode=rw creates no database;
  // an immutable connection ignores all files beside the database (https://sqlite.org/uri.html).
  url.search = mode === 'writable' ? 'mode=rw' : 'immutable=1';
  // VACUUM INTO attaches the file that it writes.
  const limits = { attach: mode === 'writable' ? 1 : 0 };
  const db = new DatabaseSync(url, { ...OPTIONS, limits, readOnly: mode === 'immutable' });
  orClosed(db, () => [...CAUTION, 'PRAGMA temp_store = MEMORY'].forEach((pragma) => db.exec(pragma)));
  return db;
}

/** The only connection that writes. Brings the database to the newest schema, and refuses one that is not ours. */
export function openWriting(path: string): DatabaseSync {
  const db = new DatabaseSync(path, OPTIONS);
  try {
    // Checked again: a log left by a crash may hold a newer header than the one that refuseOtherFiles saw.
    refuseStrange(path, { ...marksOf(db), ...(isEmpty(db) ? { applicationId: APPLICATION_ID } : {}) });
    for (const pragma of [...CAUTION, ...WRITING]) db.exec(pragma);
    if (schemaVersionOf(db) === 0) for (const statement of LAYOUT) db.exec(statement);
    // Building an index may sort in a temporary file: ids and owners are no content, and may not fit into memory.
    const migrations = migrate(db);
    // From here on a statement keeps what it may have to undo in memory: content must stay out of temporary files.
    db.exec('PRAGMA temp_store = MEMORY');
    // Only once a new database has its tables: then any file with something in it bears our application id.
    db.exec('PRAGMA journal_mode = WAL');
    // Puts the new version into the file's header, so that an older program refuses this database even after a crash.
    if (migrations > 0) db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    return db;
  } catch (error) {
    db.close();
    if (!isDamage(error)) throw error;
    const advice = 'mend the disk, or restore a backup';
    throw new DatabaseRefusedError(`the database ${path} is damaged, or its disk fails: ${advice}`);
  }
}

/** An empty database in memory with a version's tables and `more`: shows what should exist, and statements' columns. */
export function openModel(more: readonly string[], version = MIGRATIONS.length): DatabaseSync {
  const db = new DatabaseSync(':memory:');
  migrate(db, MIGRATIONS.slice(0, version));
  for (const statement of more) db.exec(statement);
  return db;
}

const ANOTHER_PATH = 'set SERVICE_DB to another path';

export function refuseStrange(path: string, marks: Marks, adviceToOthers = ANOTHER_PATH): void {
  const reason = whyStrange(marks);
  if (reason === undefined) return;
  const isOurs = marks.applicationId === APPLICATION_ID;
  const advice = isOurs ? 'run the newer version, or restore a backup that this one made' : adviceToOthers;
  throw new DatabaseRefusedError(`the database ${path} ${reason}: ${advice}`);
}

// The file before SQLite opens it, read without a connection: even a read-only one leaves files beside a WAL database.

/** https://sqlite.org/fileformat2.html#the_database_header */
const HEADER_BYTES = 100;
const HEADER_MAGIC = 'SQLite format 3\0';
const USER_VERSION_OFFSET = 60;
const APPLICATION_ID_OFFSET = 68;

const OWNER_ONLY_FOLDER = 0o700;
export const OWNER_ONLY_FILE = 0o600;

/** Long enough for a predecessor that has just been told to stop. */
export const LOCK_WAIT_MS = 1000;

/**
 * Accepts a missing or empty file and, to `replace` it, one of a newer version. Only for the holder of the lock:
 * closing a file drops all locks that this process has on it (https://sqlite.org/howtocorrupt.html, 2.2).
 */
export function refuseOtherFiles(path: string, purpose: 'open' | 'replace' = 'open'): void {
  const advice = purpose === 'open' ? ANOTHER_PATH : `${ANOTHER_PATH}, or move the file away`;
  // Opening a pipe, for example, would never end.
  if (isFile(path) === false) throw new DatabaseRefusedError(`${path} is not a file: ${ANOTHER_PATH}`);
  const header = readHeader(path);
  if (header.length === 0) return purpose === 'open' ? refuseLoneLog(path) : undefined;
  if (header.length < HEADER_BYTES || header.toString('latin1', 0, HEADER_MAGIC.length) !== HEADER_MAGIC) {
    throw new DatabaseRefusedError(`the file ${path} is not a SQLite database: ${advice}`);
  }
  const version = purpose === 'open' ? header.readInt32BE(USER_VERSION_OFFSET) : 0;
  refuseStrange(path, { applicationId: header.readUInt32BE(APPLICATION_ID_OFFSET), version }, advice);
}

/** SQLite removes a log beside an empty file. But if our file was lost, its log is all that is left of it. */
export function refuseLoneLog(path: string): void {
  if (fileBytes(path) > 0 || fileBytes(`${path}-wal`) === 0) return;
  throw new DatabaseRefusedError(`${path} is away or empty, and its log is not: put it back, or move ${path}-wal away`);
}

/** Undefined where there is nothing, or nothing that this process may see. */
export function isFile(path: string): boolean | undefined {
  return orUndefined(() => statSync(path).isFile());
}

/** Empty if there is no file. */
export function readHeader(path: string): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  try {
    return header.subarray(0, withFile(path, 'r', (file) => readSync(file, header, 0, HEADER_BYTES, 0)));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return Buffer.alloc(0);
    throw new StoreError('unavailable', `the database ${path} cannot be read`, { cause: error });
  }
}

export function withFile<Result>(path: string, flags: string, use: (descriptor: number) => Result): Result {
  const descriptor = openSync(path, flags, OWNER_ONLY_FILE);
  try {
    return use(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Creates it for its owner alone, whatever the umask; -wal and -shm get the same mode. Whether it was missing. */
export function createFile(path: string): boolean {
  try {
    createFolder(dirname(path));
    const isNew = !existsSync(path);
    if (isNew) withFile(path, 'a', () => {});
    // Without this check SQLite would open the file for reading only, or not say why it can't open it.
    else accessSync(path, constants.R_OK | constants.W_OK);
    return isNew;
  } catch (error) {
    throw new StoreError('unavailable', `the file ${path} cannot be used`, { cause: error });
  }
}

/** Makes parents too. `recursive` only if --permission hides the parent: it never ends where a folder can't be made. */
function createFolder(path: string): void {
  const isParentThere = orUndefined(() => existsSync(dirname(path)));
  if (isParentThere === false) createFolder(dirname(path));
  try {
    mkdirSync(path, { recursive: isParentThere === undefined, mode: OWNER_ONLY_FOLDER });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/** Where a file is or will be, with links followed. A path that is no link stays: it may be all that is permitted. */
export function placeOf(path: string, mostLinks = 40): string {
  const target = orUndefined(() => resolve(realpathSync(dirname(path)), readlinkSync(path)));
  return target === undefined || mostLinks === 0 ? path : placeOf(target, mostLinks - 1);
}

export type DatabaseLock = ReturnType<typeof lockDatabase>;

/**
 * Keeps all other processes from serving the same database, as only one process knows who reads which content. It is a
 * SQLite lock on an empty file: the system releases it however the process ends. Throws DatabaseInUseError.
 */
export function lockDatabase(path: string, waitMs = LOCK_WAIT_MS) {
  const lockPath = `${placeOf(path)}-lock`;
  const isNew = createFile(lockPath);
  let db: DatabaseSync | undefined;
  const release = () => void (db?.isOpen && db.close());
  try {
    db = new DatabaseSync(lockPath, { timeout: waitMs });
    db.exec('PRAGMA journal_mode = MEMORY');
    db.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    release();
    if (primaryCodeOf(error) === SQLITE.BUSY) {
      throw new DatabaseInUseError(`the database ${path} is in use by another process`, lockPath);
    }
    if (failureOf(error) === undefined) throw error;
    throw new StoreError('unavailable', `the lock ${lockPath} cannot be taken`, { cause: error });
  }
  return {
    /** The file stays, since another process may be waiting for it. */
    release,
    [Symbol.dispose]: release,
    /** Releases the lock after a failure, and removes a new lock file beside a database that is not ours. */
    giveUp(error: unknown): void {
      if (isNew && error instanceof DatabaseRefusedError) rmSync(lockPath);
      release();
    },
  };
}

/** 0 when there is no such file. */
export function fileBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

// The ballast: room kept in reserve. With the disk full to the last byte, SQLite in WAL mode can neither delete nor
// checkpoint. Then this file is removed, so that deleting works and frees more; pastes/upkeep.ts has it made again.

/** Enough for a log at its limit and for moving it into the database. */
export const BALLAST_BYTES = 2 * WAL_LIMIT_BYTES;

/** Must stay free besides the ballast. Content that would leave less is refused when offered, and when written. */
export const FREE_RESERVE_BYTES = BALLAST_BYTES;

export type Ballast = ReturnType<typeof createBallast>;

export function createBallast(path: string) {
  const ballastPath = `${path}-ballast`;
  let isGivenUp = false;
  return {
    /** Nothing more may be stored: free room is below the reserve, or the ballast was given up. */
    isDiskShort: (): boolean => isGivenUp || !hasRoomFor(path, 0),
    /** Whether the log is over twice its limit, as happens while somebody reads for long. */
    isLogLong: (): boolean => orUndefined(() => fileBytes(`${path}-wal`) > BALLAST_BYTES) === true,
    /** Frees the room; false when there was none to free. */
    giveUp(): boolean {
      const bytes = fileBytes(ballastPath);
      isGivenUp = true;
      // A file system that copies what it changes may have no room even to remove a file.
      orUndefined(() => rmSync(ballastPath));
      return fileBytes(ballastPath) < bytes;
    },
    /** Makes the file whole if there is room for it and the reserve. Gives whether more may be stored. */
    restore(): boolean {
      // Free disk space says nothing about a quota: once storage was full, the reserve is written too, as a test.
      const bytes = BALLAST_BYTES + (isGivenUp ? FREE_RESERVE_BYTES : 0);
      const isThere = !isGivenUp && fileBytes(ballastPath) >= BALLAST_BYTES;
      if (!isThere && hasRoomFor(path, BALLAST_BYTES)) {
        const obstacle = fill(ballastPath, bytes, BALLAST_BYTES);
        // A command may have given the ballast up at a quota: only filling it ends that.
        isGivenUp = obstacle === 'full' || (isGivenUp && obstacle !== undefined);
      }
      return !isGivenUp && hasRoomFor(path, 0);
    },
  };
}

/** SQLite reports a reached quota as a disk that fails or takes no file: whether it is a quota, writing more tells. */
export function failureAt(path: string | null, error: unknown): StoreFailure | undefined {
  const code = primaryCodeOf(error);
  if (path === null || (code !== SQLITE.IOERR && code !== SQLITE.CANTOPEN)) return failureOf(error);
  const obstacle = fill(`${path}-probe`, MIB, 0) ?? 'unavailable';
  orUndefined(() => rmSync(`${path}-probe`));
  return obstacle;
}

/** Whether so many bytes fit and leave the disk's reserve, to which the part of the log beyond its limit is added. */
export function hasRoomFor(path: string, bytes: number): boolean {
  const room = orUndefined(() => freeBytes(path) - Math.max(0, fileBytes(`${path}-wal`) - WAL_LIMIT_BYTES));
  // If the disk does not say how much is free, the write itself will show what is wrong.
  return (room ?? Infinity) - bytes > FREE_RESERVE_BYTES;
}

/** Bytes that this process may still write to the path's file system. The first versions of Node 24 lack `frsize`. */
export function freeBytes(path: string): number {
  const { blocks, bavail, bsize, frsize = bsize } = statfsSync(dirname(path));
  // A file system with 0 blocks does not count them: ramfs, tmpfs with size=0, some FUSE ones.
  return blocks === 0 ? Infinity : bavail * frsize;
}

/** Fills the file with noise: a hole takes no room, nor do zeros where the file system compresses. */
function fill(path: string, bytes: number, keptBytes: number): StoreFailure | undefined {
  const noise = new Uint8Array(MIB);
  for (let at = 0, value = 1; at < MIB; at += 1) noise[at] = (value = Math.imul(value, 1664525) + 1013904223) >>> 24;
  try {
    withFile(path, 'w', (file) => {
      for (let written = 0; written < bytes; written += writeSync(file, noise));
      ftruncateSync(file, keptBytes);
    });
    return undefined;
  } catch (error) {
    orUndefined(() => rmSync(path));
    return ['EDQUOT', 'ENOSPC'].includes(codeOf(error)) ? 'full' : 'unavailable';
  }
}
