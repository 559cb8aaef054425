// Puts a backup in the place of the database: verified and brought to this version under another name, then exchanged
// in one step. A kill at any moment leaves the old database or the new one, whole; what was there is kept.

import {
  closeSync, constants, copyFileSync, existsSync, linkSync, openSync, readdirSync, readSync, realpathSync,
  renameSync, rmSync, statSync, writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { MIB } from '../core/time.ts';
import { type CheckDepth, damageOf, type Holdings, holdingsOf, strangenessOf } from './backup.ts';
import { authorityLookups } from './certificates.ts';
import {
  BALLAST_BYTES, fileBytes, FREE_RESERVE_BYTES, freeBytes, isWithoutLinks, lockDatabase, openReading,
  openWhole, openWriting, refuseOtherFiles, syncFile, syncFolderOf, WAL_LIMIT_BYTES,
} from './database.ts';
import { MIGRATIONS, schemaVersionOf } from './schema.ts';
import {
  asStoreError, DatabaseInUseError, DatabaseRefusedError, describe, isDamage, primaryCodeOf, SQLITE_BUSY,
  type StoredAuthority, type StoredCrl, StoreError,
} from './store.ts';

export interface RestoreRequest {
  /** Of the database, which need not exist. */
  readonly path: string;
  /** The path of the backup, which stays as it is; or the bytes of one as they come. */
  readonly backup: string | AsyncIterable<Uint8Array>;
  /** What the old database's new name ends with, so that a person knows when it was. */
  readonly moment: string;
}

export interface Restored extends Holdings {
  /** Where the old database is now; null when there was none. */
  readonly keptAs: string | null;
}

/** Beside a database, what it needs to be whole after a crash. */
const LOGS = ['-wal', '-journal'] as const;

const OWNER_ONLY_FILE = 0o600;

/**
 * Throws DatabaseInUseError while any process has the database open, DatabaseRefusedError when the backup is not ours,
 * of a newer version or damaged, or when what is in its place is not a database of ours; StoreError and errors of the
 * system. Then everything is as it was, unless the error says that only the folder could not be synced.
 */
export async function restoreDatabase({ path, backup, moment }: RestoreRequest): Promise<Restored> {
  const lock = lockDatabase(path);
  try {
    refuseToReplace(path);
    const restored = await replace(path, backup, moment);
    lock.release();
    return restored;
  } catch (error) {
    lock.giveUp(error);
    throw asStoreError(error);
  }
}

/** What is in the way may be there by a mistake in the settings; a database of ours, even a damaged one, is not. */
function refuseToReplace(path: string): void {
  try {
    refuseOtherFiles(path, 'allowNewer');
  } catch (error) {
    if (!(error instanceof DatabaseRefusedError)) throw error;
    throw new DatabaseRefusedError(`${error.message}, or move the file away`);
  }
}

async function replace(path: string, backup: RestoreRequest['backup'], moment: string): Promise<Restored> {
  const target = existsSync(path) ? realpathSync(path) : path;
  const draft = `${target}-restore`;
  const name = typeof backup === 'string' ? backup : 'from standard input';
  removeDraft(draft);
  try {
    if (typeof backup === 'string') copyUnused(backup, draft);
    else await receive(backup, draft);
    const holdings = prepare(name, draft);
    return { ...holdings, keptAs: exchange(target, draft, moment) };
  } finally {
    removeDraft(draft);
  }
}

function removeDraft(draft: string): void {
  for (const suffix of ['', '-shm', ...LOGS]) rmSync(`${draft}${suffix}`, { force: true });
}

function requireRoom(draft: string, bytes: number): void {
  const needed = bytes + FREE_RESERVE_BYTES;
  const free = freeBytes(draft);
  if (free > needed) return;
  throw new StoreError('full', `no room to restore as ${draft}: it takes ${needed} bytes, and ${free} are free`);
}

/** A folder that was copied whole has a lock that nobody holds; in that of a service, the file may change meanwhile. */
function copyUnused(backup: string, draft: string): void {
  requireRoom(draft, ['', ...LOGS].reduce((sum, suffix) => sum + fileBytes(`${backup}${suffix}`), 0));
  const lock = existsSync(`${backup}-lock`) ? lockIfPossible(backup) : undefined;
  try {
    for (const suffix of ['', ...LOGS]) {
      if (suffix === '' || fileBytes(`${backup}${suffix}`) > 0) copyBytes(`${backup}${suffix}`, `${draft}${suffix}`);
    }
  } finally {
    lock?.release();
  }
}

function lockIfPossible(backup: string): ReturnType<typeof lockDatabase> | undefined {
  try {
    return lockDatabase(backup, 0);
  } catch (error) {
    if (error instanceof DatabaseInUseError) throw error;
    // A file system that can't be written to has nobody who writes to it.
    return undefined;
  }
}

/** Not copyFile: that would give the copy the permissions of the backup, be they for everyone. */
function copyBytes(from: string, to: string): void {
  const source = openSync(from, 'r');
  const copy = openSync(to, 'wx', OWNER_ONLY_FILE);
  try {
    const buffer = new Uint8Array(MIB);
    for (let count = readSync(source, buffer); count > 0; count = readSync(source, buffer)) {
      writeWhole(copy, buffer.subarray(0, count));
    }
  } finally {
    closeSync(copy);
    closeSync(source);
  }
}

/** How long it will be is not known before: there must be room for each piece as it comes. */
async function receive(pieces: AsyncIterable<Uint8Array>, draft: string): Promise<void> {
  const copy = openSync(draft, 'wx', OWNER_ONLY_FILE);
  try {
    for await (const piece of pieces) {
      requireRoom(draft, piece.length);
      writeWhole(copy, piece);
    }
  } finally {
    closeSync(copy);
  }
}

function writeWhole(descriptor: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(descriptor, bytes, written);
}

/** What the draft holds, now sound, of this version, durable, and in one file. */
function prepare(backup: string, draft: string): Holdings {
  const found = inspect(backup, draft);
  // The last connection to close moves the log into the file and removes it.
  openWriting(draft).close();
  syncFile(draft);
  return found;
}

function inspect(backup: string, draft: string): Holdings {
  const db = openWhole(draft, 'writable');
  try {
    const strangeness = strangenessOf(db);
    if (strangeness !== undefined) throw new DatabaseRefusedError(`the backup ${backup} ${strangeness}`);
    const [damage] = damageOf(db, 'full');
    if (damage !== undefined) throw new DatabaseRefusedError(`the backup ${backup} is damaged: ${damage}`);
    return holdingsOf(db);
  } catch (error) {
    if (!isDamage(error)) throw error;
    throw new DatabaseRefusedError(`the backup ${backup} is damaged, or no database`);
  } finally {
    db.close();
  }
}

/** Where the old database is from now on. Until the one renaming of the draft it is in its place as well. */
function exchange(target: string, draft: string, moment: string): string | null {
  const hold = existsSync(target) ? holdAlone(target) : undefined;
  try {
    const keptAs = keepOld(target, moment);
    rmSync(`${target}-shm`, { force: true });
    syncFolderOf(target);
    renameSync(draft, target);
    syncExchanged(target);
    return existsSync(keptAs) ? keptAs : null;
  } finally {
    hold?.close();
  }
}

function syncExchanged(target: string): void {
  try {
    syncFolderOf(target);
  } catch (error) {
    const message = `the backup is in the place of ${target}, but a power cut may undo that: ` +
      'its folder cannot be synced';
    throw new StoreError('unavailable', message, { cause: error });
  }
}

/**
 * Moves the log of the old database into it, and keeps every other process out until it is closed: a log that stayed
 * would be taken for the new database's. undefined when it is too damaged for that.
 */
function holdAlone(target: string): DatabaseSync | undefined {
  let db;
  try {
    db = openWhole(target, 'writable');
    db.exec('PRAGMA busy_timeout = 1000');
    db.exec('PRAGMA journal_mode = DELETE');
    db.exec('BEGIN EXCLUSIVE');
    return db;
  } catch (error) {
    db?.close();
    if (isDamage(error)) return undefined;
    if (primaryCodeOf(error) !== SQLITE_BUSY) throw error;
    throw new DatabaseInUseError(`the database ${target} is in use by another command`);
  }
}

/** A second name for the file, and with it for logs that no database could be asked to take in. The name. */
function keepOld(target: string, moment: string): string {
  removeSecondNames(target);
  const keptAs = unusedName(`${target}.before-restore-${moment}`);
  if (existsSync(target)) linkOrCopy(target, keptAs);
  for (const suffix of LOGS) {
    if (existsSync(`${target}${suffix}`)) renameSync(`${target}${suffix}`, `${keptAs}${suffix}`);
  }
  return keptAs;
}

/** Of the database that is still in its place, as a restore that was killed leaves them. */
function removeSecondNames(target: string): void {
  const present = statSync(target, { throwIfNoEntry: false, bigint: true });
  const prefix = `${basename(target)}.before-restore-`;
  for (const name of readdirSync(dirname(target)).filter((candidate) => candidate.startsWith(prefix))) {
    const path = join(dirname(target), name);
    const kept = statSync(path, { bigint: true });
    if (present !== undefined && kept.ino === present.ino && kept.dev === present.dev) rmSync(path);
  }
}

function unusedName(name: string): string {
  let candidate = name;
  for (let count = 2; ['', ...LOGS].some((suffix) => existsSync(`${candidate}${suffix}`)); count += 1) {
    candidate = `${name}-${count}`;
  }
  return candidate;
}

function linkOrCopy(target: string, keptAs: string): void {
  try {
    linkSync(target, keptAs);
  } catch (error) {
    if (!isWithoutLinks(error)) throw error;
    copyFileSync(target, keptAs, constants.COPYFILE_EXCL);
    syncFile(keptAs);
  }
}

// What can be told about a database without changing anything: for `pasted check`, beside a running server or where
// nobody serves, of any version and in any state. What of it is good or bad is the command's to say.

/** What a sound database of this version says of itself. Times are Unix seconds. */
export interface Contents {
  readonly holdings: Holdings;
  /** Null without pastes. */
  readonly newestCreatedAt: number | null;
  /** How many were ever issued. */
  readonly certificates: number;
  readonly authority: StoredAuthority | undefined;
  readonly crl: StoredCrl | undefined;
}

export interface Examination {
  /** Why it is none that this version may open, in words that follow its name. */
  readonly strangeness: string | undefined;
  readonly schemaVersion: number;
  readonly newestSchemaVersion: number;
  /** A line each; none when it is sound. Not looked for in a strange one. */
  readonly damage: readonly string[];
  /** undefined of one that is strange, damaged, or not of this version. */
  readonly contents: Contents | undefined;
}

export interface Room {
  readonly walBytes: number;
  /** Above this something keeps the log from being emptied. */
  readonly usualWalBytes: number;
  readonly freeBytes: number;
  /** What the service leaves free: with less, new pastes are refused. */
  readonly reserveBytes: number;
  readonly hasBallast: boolean;
}

const NOTHING_KNOWN: Examination = {
  strangeness: undefined, schemaVersion: 0, newestSchemaVersion: MIGRATIONS.length, damage: [], contents: undefined,
};

/** The file must exist. Throws StoreError when it can't be opened. */
export function examineDatabase(path: string, depth: CheckDepth): Examination {
  const isAlone = isUnused(path);
  const examination = examineAs(path, depth, isAlone);
  // Who opened it meanwhile may have changed what had been taken for immutable.
  return isAlone && !isUnused(path) ? examineAs(path, depth, false) : examination;
}

/** Without files beside it nobody has it open, and nothing but the file itself counts. */
function isUnused(path: string): boolean {
  return !['-wal', '-shm', '-journal'].some((suffix) => existsSync(`${path}${suffix}`));
}

function examineAs(path: string, depth: CheckDepth, isAlone: boolean): Examination {
  let db;
  try {
    // To read one that has a log, without one beside it, would leave an empty log and its index there.
    db = isAlone ? openWhole(path, 'immutable') : openReading(path);
    return examine(db, depth);
  } catch (error) {
    if (!isDamage(error)) throw asStoreError(error);
    const damage = [describe(error)];
    return { ...NOTHING_KNOWN, damage };
  } finally {
    db?.close();
  }
}

function examine(db: DatabaseSync, depth: CheckDepth): Examination {
  const strangeness = strangenessOf(db);
  const schemaVersion = schemaVersionOf(db);
  const damage = strangeness === undefined ? damageOf(db, depth) : [];
  const isReadable = strangeness === undefined && damage.length === 0 && schemaVersion === MIGRATIONS.length;
  const contents = isReadable ? contentsOf(db) : undefined;
  return { strangeness, schemaVersion, newestSchemaVersion: MIGRATIONS.length, damage, contents };
}

function contentsOf(db: DatabaseSync): Contents {
  const newest = db.prepare('SELECT max(created_at) AS newest FROM pastes').get()?.['newest'];
  const { findAuthority, findCrl } = authorityLookups(db);
  return {
    holdings: holdingsOf(db),
    newestCreatedAt: typeof newest === 'number' ? newest : null,
    certificates: Number(db.prepare('SELECT count(*) AS issued FROM certificates').get()?.['issued']),
    authority: findAuthority(),
    crl: findCrl(),
  };
}

/** `path` is the database's; its folder must exist. */
export function measureRoom(path: string): Room {
  return {
    walBytes: fileBytes(`${path}-wal`),
    usualWalBytes: 2 * WAL_LIMIT_BYTES,
    freeBytes: freeBytes(path),
    reserveBytes: FREE_RESERVE_BYTES,
    hasBallast: fileBytes(`${path}-ballast`) >= BALLAST_BYTES,
  };
}
