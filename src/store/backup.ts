// Backups. To make one, the database is copied to a draft under a name of its own, on a thread of its own (thread.ts),
// and verified; the command decides where the draft goes. To restore one, it is put in the place of the database.

import {
  closeSync, constants, copyFileSync, createReadStream, existsSync, fsyncSync, linkSync, lstatSync, openSync,
  readdirSync, readFileSync, renameSync, rmSync, statSync, unlinkSync, writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { DatabaseSync } from 'node:sqlite';
import { codeOf, expected, orUndefined } from '../core/events.ts';
import { MIB } from '../core/time.ts';
import {
  type DatabaseLock, failureAt, fileBytes, FREE_RESERVE_BYTES, freeBytes, isFile, lockDatabase, openAsIs,
  openModel, openWriting, OWNER_ONLY_FILE, placeOf, readHeader, refuseLoneLog, refuseOtherFiles, withFile,
} from './database.ts';
import { faultsOf } from './governing.ts';
import { CLUSTER_TABLES, isEmpty, marksOf, schemaVersionOf, whyStrange } from './schema.ts';
import {
  asStoreError, DatabaseInUseError, DatabaseRefusedError, describe, isDamage, primaryCodeOf, SQLITE, StoreError,
} from './store.ts';
import { firstWord, startThread } from './writer.ts';

/** Suffixes of the files that can lie beside a database: a backup must not be written to any of them. */
export const SIDE_FILES = [
  '-wal', '-shm', '-journal', '-lock', '-ballast', '-probe', '-backup-note', '-backup-lock', '-restore-draft',
];

/** Suffixes of the logs beside a database, without which it is not whole after a crash. */
const LOGS = ['-wal', '-journal'] as const;

export type BackupDraft = ReturnType<typeof draftBackup>;

/** Creates an empty draft; `mark` is 16 new hex digits. One at a time per database: one note tells what a kill left. */
export function draftBackup({ path, beside, mark }: { path: string; beside: string; mark: string }) {
  requireDatabase(path);
  const notePath = `${path}-backup-note`;
  // The name is short, so that the draft and its log have valid names wherever the backup has one.
  const draftPath = join(dirname(beside), `backup.${mark}.partial`);
  using opening = new DisposableStack();
  if (opening.use(lockBackups(path)) !== undefined) removeNoted(notePath);
  opening.defer(() => orUndefined(() => rmSync(notePath)));
  opening.defer(() => removeWith(draftPath, ['-journal']));
  // Written first: after a kill the next backup knows what to remove. It may fail, as the database's disk may be full.
  orUndefined(() => writeFileSync(notePath, draftPath, { mode: OWNER_ONLY_FILE }));
  closeSync(openSync(draftPath, 'wx', OWNER_ONLY_FILE));
  // Before anything is copied, this shows whether it could be made durable.
  syncFile(draftPath);
  const made = opening.move();
  /** Removes the draft, its log and the note; a draft that was moved elsewhere stays. Further calls do nothing. */
  const discard = () => made.dispose();
  return {
    path: draftPath,
    /** Resolves when the copy is durable and found sound. It can't be interrupted; only ending the process stops it. */
    copy: () => firstWord<Copied>(startThread('store copy', [path, draftPath]), 'the copying thread ended early'),
    discard,
    [Symbol.dispose]: discard,
  };
}

/** Removes what a killed backup left: copies of pastes. Throws, as draftBackup does, while another one is made. */
export function removeDraft(path: string): void {
  using lock = lockBackups(path);
  if (lock !== undefined) removeNoted(`${path}-backup-note`);
}

function removeNoted(notePath: string): void {
  const noted = existsSync(notePath) ? readFileSync(notePath, 'utf8') : '';
  if (/\.[0-9a-f]{16}\.partial$/.test(noted)) removeWith(noted, ['-journal']);
}

function lockBackups(path: string): DatabaseLock | undefined {
  try {
    return lockDatabase(`${path}-backup`, 0);
  } catch (error) {
    // A disk that turned read-only takes no lock, but its database needs a backup: go on without the lock.
    if (error instanceof Error && codeOf(error.cause) === 'EROFS') return undefined;
    expected(DatabaseInUseError, error);
    throw new DatabaseInUseError(`another backup of the database ${path} is being made`);
  }
}

/** Skips a path where this process may not look, since it has made nothing there. */
function removeWith(path: string, suffixes: readonly string[]): void {
  const paths = ['', ...suffixes].map((suffix) => `${path}${suffix}`);
  for (const one of paths) if (orUndefined(() => lstatSync(one)) !== undefined) unlinkSync(one);
}

/** Runs without a journal, so only on a draft: when this fails, the draft is given up. */
const WITHOUT_ORPHANS = `PRAGMA journal_mode = OFF; DELETE FROM chunks WHERE
  content_id IN (SELECT content_id FROM orphans); DELETE FROM orphans; PRAGMA incremental_vacuum`;

/** What the thread is started with. `to` is an empty file that already has the permissions for the copy. */
export type CopyRequest = Parameters<typeof copyDatabase>;

export type Copied = ReturnType<typeof copyDatabase>;

/** The copy is durable on return. Throws StoreError, or DatabaseRefusedError if `from` is not ours or not sound. */
export function copyDatabase(from: string, to: string) {
  const name = `the database ${from}`;
  try {
    // VACUUM INTO reads one snapshot: writers beside it neither wait nor make it start again. It copies rows instead of
    // pages: the only removed content in the copy is orphans that nobody has discarded yet, and those are removed next.
    inOurs(from, name, (db) => db.prepare('VACUUM INTO :to').run({ to }));
    inOurs(to, name, (db) => db.exec(WITHOUT_ORPHANS));
    syncFile(to);
    return { ...inOurs(to, name, soundHoldings), bytes: fileBytes(to) };
  } catch (error) {
    // It may be the sync alone that finds the disk full or failing; its error is not SQLite's, and has a `syscall`.
    throw asStoreError(error, error instanceof Error && 'syscall' in error ? 'unavailable' : failureAt(to, error));
  }
}

// Restoring: the backup is verified and brought to this version under another name, then takes the database's place in
// one step. A kill at any moment leaves the old database or the new one, whole. The old database is kept.

/** The path of a backup, which is not changed, or the bytes of a backup as they arrive. */
type Source = string | AsyncIterable<Uint8Array>;

/** The old database gets a name with `moment` in it. A failure leaves all as it was, or its message says otherwise. */
export async function restoreDatabase(
  { path, backup, moment }: { readonly path: string; readonly backup: Source; readonly moment: string },
) {
  using lock = lockDatabase(path);
  try {
    // A file that is not ours is not replaced: the settings may name it by mistake.
    refuseOtherFiles(path, 'replace');
    return await replace(path, backup, moment);
  } catch (error) {
    lock.giveUp(error);
    throw asStoreError(error);
  }
}

async function replace(path: string, backup: Source, moment: string) {
  const target = placeOf(path);
  const draft = `${target}-restore-draft`;
  removeWith(draft, ['-shm', ...LOGS]);
  try {
    if (typeof backup === 'string') await copyUnused(backup, draft);
    else await receive(backup, draft);
    const name = `the backup ${typeof backup === 'string' ? backup : 'from standard input'}`;
    const holdings = inOurs(draft, name, soundHoldings);
    // Brings the draft to this version; closing the last connection moves the log into the file and removes the log.
    openWriting(draft).close();
    syncFile(draft);
    // Two turns: a signal that came meanwhile is handled in the turn after this one, before anything is changed.
    await setImmediate();
    await setImmediate();
    return { ...holdings, keptAs: exchange(target, draft, moment) };
  } finally {
    removeWith(draft, ['-shm', ...LOGS]);
  }
}

function requireRoom(draft: string, bytes: number): void {
  const [needed, free] = [bytes + FREE_RESERVE_BYTES, freeBytes(draft)];
  if (free > needed) return;
  throw new StoreError('full', `no room to restore as ${draft}: it takes ${needed} bytes, and ${free} are free`);
}

/** Holds the backup's lock if it has one, as the file may change. An open file may have no path but a link in /proc. */
async function copyUnused(named: string, draft: string): Promise<void> {
  const backup = existsSync(placeOf(named)) ? placeOf(named) : named;
  requireRoom(draft, ['', ...LOGS].reduce((sum, suffix) => sum + fileBytes(`${backup}${suffix}`), 0));
  using _ = lockIfPossible(backup);
  for (const suffix of ['', ...LOGS]) {
    // Byte 18 is 2 in a database with a -wal. `pasted backup` writes 1; a -wal there is of a database that it replaced.
    const isForeign = suffix === '-wal' && readHeader(backup)[18] === 1;
    if (suffix !== '' && (isForeign || fileBytes(`${backup}${suffix}`) === 0)) continue;
    // Not copyFile: that would also copy the backup's permissions, which may let everyone read it.
    await receive(createReadStream(`${backup}${suffix}`, { highWaterMark: MIB }), `${draft}${suffix}`);
  }
}

function lockIfPossible(backup: string): DatabaseLock | undefined {
  if (!existsSync(`${backup}-lock`)) return undefined;
  try {
    return lockDatabase(backup, 0);
  } catch (error) {
    if (error instanceof DatabaseInUseError) throw error;
    // It is not busy but can't be opened, as when another user owns it: goes on without it, as the copy is verified.
    return undefined;
  }
}

/** The length may not be known beforehand, so each piece is checked for room as it comes. */
async function receive(pieces: AsyncIterable<Uint8Array>, draft: string): Promise<void> {
  await using copy = await open(draft, 'wx', OWNER_ONLY_FILE);
  for await (const piece of pieces) {
    requireRoom(draft, piece.length);
    await copy.writeFile(piece);
  }
}

/** Gives the old database's new path, null without one. Until the draft is renamed, it keeps its old name as well. */
function exchange(target: string, draft: string, moment: string): string | null {
  using _ = existsSync(target) ? holdAlone(target) : undefined;
  const keptAs = keepOld(target, moment);
  rmSync(`${target}-shm`, { force: true });
  syncFolderOf(target);
  renameSync(draft, target);
  try {
    syncFolderOf(target);
  } catch (cause) {
    const reason = 'but a power cut may undo that: its folder cannot be synced';
    throw new StoreError('unavailable', `the backup is in the place of ${target}, ${reason}`, { cause });
  }
  return existsSync(keptAs) ? keptAs : null;
}

/** A connection that keeps every other process out until it is closed; undefined if the database is too damaged. */
function holdAlone(target: string): DatabaseSync | undefined {
  let db;
  try {
    db = openAsIs(target, 'writable');
    db.exec('PRAGMA busy_timeout = 1000');
    // Moves the log into the database: a log that stayed would be taken for the new database's.
    db.exec('PRAGMA journal_mode = DELETE');
    db.exec('BEGIN EXCLUSIVE');
    return db;
  } catch (error) {
    db?.close();
    if (isDamage(error)) return undefined;
    if (primaryCodeOf(error) !== SQLITE.BUSY) throw error;
    throw new DatabaseInUseError(`the database ${target} is in use by another command`);
  }
}

/** Links the old database to a new name, and moves along logs that could not be checkpointed. Gives the name. */
function keepOld(target: string, moment: string): string {
  removeSecondNames(target);
  const keptAs = unusedName(`${target}.before-restore-${moment}`);
  if (existsSync(target)) linkOrCopy(target, keptAs);
  for (const suffix of LOGS) {
    if (existsSync(`${target}${suffix}`)) renameSync(`${target}${suffix}`, `${keptAs}${suffix}`);
  }
  return keptAs;
}

/** Removes second names that a killed restore left of a database that is still in its place. */
function removeSecondNames(target: string): void {
  const present = statSync(target, { throwIfNoEntry: false, bigint: true });
  const prefix = `${basename(target)}.before-restore-`;
  for (const name of readdirSync(dirname(target)).filter((candidate) => candidate.startsWith(prefix))) {
    const path = join(dirname(target), name);
    const kept = lstatSync(path, { bigint: true });
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

// Checks whether all that a database holds is whole, page by page and paste by paste.

/** `quick` does not check whether every index agrees with its table. */
export type CheckDepth = 'quick' | 'full';

/** Gives what `use` returns. Refuses a database that is not ours, or damaged; the message calls it `name`. */
function inOurs<Result>(path: string, name: string, use: (db: DatabaseSync, name: string) => Result): Result {
  try {
    using db = openAsIs(path, 'writable');
    const reason = whyRefused(db) ?? strangeParts(db)[0];
    if (reason !== undefined) throw new DatabaseRefusedError(`${name} ${reason}`);
    return use(db, name);
  } catch (error) {
    if (!isDamage(error)) throw error;
    throw new DatabaseRefusedError(`${name} is damaged, or no database, or a disk fails`);
  }
}

function soundHoldings(db: DatabaseSync, name: string) {
  const [damage] = damageOf(db, 'full');
  if (damage !== undefined) throw new DatabaseRefusedError(`${name} is damaged, or a disk fails: ${damage}`);
  return holdingsOf(db);
}

/** Why the database is not one of this program's, in words that follow its name; undefined when it is. */
export function whyRefused(db: DatabaseSync): string | undefined {
  return isEmpty(db) ? 'is empty' : whyStrange(marksOf(db));
}

/** One line for each thing that is wrong; none when the database is sound. Throws what is no damage, such as a lock. */
export function damageOf(db: DatabaseSync, depth: CheckDepth): readonly string[] {
  try {
    const damage = [...damagedPages(db, depth), ...strangeParts(db)];
    if (damage.length > 0) return damage;
    return faultsOf(db, schemaVersionOf(db) < 2 ? BROKEN : { ...BROKEN, ...MISCOUNTED });
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [describe(error)];
  }
}

function damagedPages(db: DatabaseSync, depth: CheckDepth): string[] {
  const rows = db.prepare(depth === 'full' ? 'PRAGMA integrity_check' : 'PRAGMA quick_check').all();
  const lines = rows.flatMap((row) => String(Object.values(row)[0]).split('\n'));
  return lines.filter((line) => line !== 'ok' && !line.startsWith('***'));
}

/** How the tables, indexes and triggers differ from those of the database's version, in words that follow its name. */
function strangeParts(db: DatabaseSync): string[] {
  const isOfCluster = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'guard'").get() !== undefined;
  using model = openModel(isOfCluster ? CLUSTER_TABLES : [], schemaVersionOf(db));
  const parts = model.prepare(`
    SELECT json_group_array(json_array(type || ' ' || name, sql)) AS parts FROM sqlite_schema`).get()!;
  // An extra trigger would run with each change and could pass content on. SQLite takes `type` in upper and lower case.
  const strange = db.prepare(`
    WITH meant AS (SELECT value ->> 0 AS part, value ->> 1 AS sql FROM json_each(:parts)),
      found AS (SELECT lower(type) || ' ' || name AS part, sql FROM sqlite_schema)
    SELECT 'has no ' || part || ' as it should be' AS line FROM meant
    WHERE NOT EXISTS (SELECT 1 FROM found WHERE found.part = meant.part AND found.sql IS meant.sql)
    UNION ALL
    SELECT 'has a trigger that is none of this program''s' FROM found
    WHERE part LIKE 'trigger %' AND part NOT IN (SELECT part FROM meant)`);
  return strange.all({ ...parts }).map(({ line }) => String(line));
}

/** SQLite knows a blob's length without reading it. */
const BROKEN = {
  'pastes without their whole content': `
    FROM pastes
    WHERE content_id IS NOT NULL
      AND size <> (SELECT coalesce(sum(length(bytes)), 0) FROM chunks WHERE chunks.content_id = pastes.content_id)`,
};

/** Checked against `usage`, a table that exists from schema 2 on. */
const MISCOUNTED = {
  'counts of pastes that are not those of the pastes there are': `
    FROM (SELECT count(*) AS pastes, coalesce(sum(size), 0) AS bytes FROM pastes)
    LEFT JOIN usage USING (pastes, bytes) WHERE usage.pastes IS NULL`,
};

export function holdingsOf(db: DatabaseSync) {
  const select = db.prepare('SELECT count(*) AS pastes, coalesce(sum(size), 0) AS contentBytes FROM pastes');
  return { ...select.get() as { pastes: number; contentBytes: number }, schemaVersion: schemaVersionOf(db) };
}

// File functions for commands, which the server does not need.

/** A mistyped path must not look like an empty service. Throws StoreError where this user may not look. */
export function requireDatabase(path: string): void {
  if (!existsSync(path)) readHeader(path);
  if (isFile(path) === true) return refuseLoneLog(path);
  throw new DatabaseRefusedError(`there is no database ${path}: set SERVICE_DB to the one of the service`);
}

/** Whether link(2) failed as it does on a file system without hard links. */
export function isWithoutLinks(error: unknown): boolean {
  return ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(codeOf(error));
}

/** So that the file's bytes outlive a power cut. Not for a database that this process has open. */
export function syncFile(path: string): void {
  withFile(path, 'r+', fsyncSync);
}

/** So that a file's name outlives a power cut. Some file systems can't sync folders; only that error is ignored. */
export function syncFolderOf(path: string): void {
  withFile(dirname(path), 'r', (folder) => {
    try {
      fsyncSync(folder);
    } catch (error) {
      if (!['EINVAL', 'ENOTSUP'].includes(codeOf(error))) throw error;
    }
  });
}
