// The draft of a backup: a copy under a name of its own until it is whole and verified. Where it goes then is the
// command's business.

import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { ThreadRefusal } from './batch.ts';
import {
  type DatabaseLock, fileBytes, lockDatabase, openReading, openWhole, requireDatabase, syncFile,
} from './database.ts';
import { APPLICATION_ID, applicationIdOf, MIGRATIONS, schemaVersionOf } from './schema.ts';
import {
  asStoreError, DatabaseInUseError, DatabaseRefusedError, describe, isDamage, StoreError,
} from './store.ts';
import { errorOfThread, firstReport, startThread } from './writer.ts';

/** All that can lie beside a database under its name: a backup must be none of these. */
export const SIDE_FILES = [
  '-wal', '-shm', '-journal', '-lock', '-ballast', '-backup', '-backup-lock', '-restore',
] as const;

const OWNER_ONLY_FILE = 0o600;

/** As draftBackup names them, and nothing else. */
const DRAFT_NAME = /\.[0-9a-f]{16}\.partial$/;

export interface BackupDraft {
  readonly path: string;
  /** Resolves when the copy is durable and found sound. Rejects with DatabaseRefusedError or StoreError. */
  copy(): Promise<Copied>;
  /** Removes what there is of it; a draft that has been moved elsewhere stays there. Further calls do nothing. */
  discard(): void;
}

export interface DraftOptions {
  /** Of the database. */
  readonly path: string;
  /** What the draft's name begins with; its folder must exist. */
  readonly beside: string;
  /** 16 hexadecimal digits that no other draft has. */
  readonly mark: string;
}

/**
 * One at a time for each database: then what a killed one has left can be told from what is being made. Throws
 * DatabaseInUseError, DatabaseRefusedError where there is no database, and errors of the system.
 */
export function draftBackup({ path, beside, mark }: DraftOptions): BackupDraft {
  requireDatabase(path);
  const lock = lockBackups(path);
  const notePath = `${path}-backup`;
  const draftPath = `${beside}.${mark}.partial`;
  let isDiscarded = false;

  function discard(): void {
    if (isDiscarded) return;
    isDiscarded = true;
    removeDraft(draftPath);
    rmSync(notePath, { force: true });
    lock.release();
  }
  try {
    removeNoted(notePath);
    // First, so that a kill at any moment leaves a note of what there is to remove.
    writeFileSync(notePath, draftPath, { mode: OWNER_ONLY_FILE });
    closeSync(openSync(draftPath, 'wx', OWNER_ONLY_FILE));
  } catch (error) {
    discard();
    throw error;
  }
  return { path: draftPath, copy: () => copyOnThread(path, draftPath), discard };
}

function lockBackups(path: string): DatabaseLock {
  try {
    return lockDatabase(`${path}-backup`, 0);
  } catch (error) {
    if (!(error instanceof DatabaseInUseError)) throw error;
    throw new DatabaseInUseError(`another backup of the database ${path} is being made`);
  }
}

function removeNoted(notePath: string): void {
  if (!existsSync(notePath)) return;
  const draftPath = readFileSync(notePath, 'utf8');
  if (DRAFT_NAME.test(basename(draftPath))) removeDraft(draftPath);
}

function removeDraft(draftPath: string): void {
  for (const suffix of ['', '-journal']) rmSync(`${draftPath}${suffix}`, { force: true });
}

// A verified copy of a database that others may be writing to. Where it goes and what it is for: backup.ts. The thread
// that it is made on: copy-thread.ts.

export interface Copied extends Holdings {
  /** Of the copy. */
  readonly bytes: number;
}

/** What the thread is started with. */
export interface CopyRequest {
  readonly kind: 'copy';
  readonly from: string;
  /** An empty file, which has the permissions that the copy is to have. */
  readonly to: string;
}

export type CopyReport = { readonly kind: 'copied'; readonly copied: Copied } | ThreadRefusal;

/**
 * One consistent moment of the database, durable when this returns. VACUUM INTO holds one snapshot, so that writers
 * beside it neither wait nor make it begin again, and copies rows, not pages: nothing of removed content comes along.
 * Throws DatabaseRefusedError when it is not ours or the copy is not sound, and StoreError.
 */
export function copyDatabase({ from, to }: Omit<CopyRequest, 'kind'>): Copied {
  try {
    copyRows(from, to);
    syncFile(to);
    return { ...verified(from, to), bytes: fileBytes(to) };
  } catch (error) {
    throw asStoreError(error);
  }
}

function copyRows(from: string, to: string): void {
  const db = openWhole(from, 'writable');
  try {
    const strangeness = strangenessOf(db);
    if (strangeness !== undefined) throw new DatabaseRefusedError(`the database ${from} ${strangeness}`);
    db.prepare('VACUUM INTO :to').run({ to });
  } finally {
    db.close();
  }
}

function verified(from: string, to: string): Holdings {
  const copy = openReading(to);
  try {
    const [damage] = damageOf(copy, 'full');
    if (damage !== undefined) throw new DatabaseRefusedError(`the database ${from} is damaged: ${damage}`);
    return holdingsOf(copy);
  } finally {
    copy.close();
  }
}

/** The same on a thread of its own. It can't be interrupted: who cannot wait for it ends the process. */
async function copyOnThread(from: string, to: string): Promise<Copied> {
  const report = await firstReport<CopyReport>(startThread('store copy', { kind: 'copy', from, to }));
  if (report === undefined) throw new StoreError('unavailable', 'the copying thread ended early');
  if (report.kind === 'refused') throw errorOfThread(report);
  return report.copied;
}

// Whether what a database holds is whole, page by page and paste by paste. Reads alone; what follows from it is for
// restore.ts to say.

/** `quick` leaves out whether every index agrees with its table. */
export type CheckDepth = 'quick' | 'full';

/** What a sound database holds. */
export interface Holdings {
  readonly schemaVersion: number;
  readonly pastes: number;
  /** Of the pastes' content. */
  readonly contentBytes: number;
}

/** The schema that counts pastes as they come and go, in `usage`. */
const COUNTS_SINCE_SCHEMA = 2;

/** Why the database is none of this program's, in words that follow its name; undefined when it is. */
export function strangenessOf(db: DatabaseSync): string | undefined {
  const applicationId = applicationIdOf(db);
  const version = schemaVersionOf(db);
  if (Number(db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get()?.['tables']) === 0) return 'is empty';
  if (applicationId !== APPLICATION_ID) return `is of another program (application id ${applicationId})`;
  if (version <= MIGRATIONS.length) return undefined;
  return `is of a newer version (schema ${version}, this one knows ${MIGRATIONS.length})`;
}

/** What is wrong with it, a line each; none when it is sound. Throws what is no damage, such as a lock. */
export function damageOf(db: DatabaseSync, depth: CheckDepth): readonly string[] {
  try {
    const pages = damagedPages(db, depth);
    return pages.length > 0 ? pages : damagedPastes(db);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [describe(error)];
  }
}

function damagedPages(db: DatabaseSync, depth: CheckDepth): string[] {
  const rows = db.prepare(depth === 'full' ? 'PRAGMA integrity_check' : 'PRAGMA quick_check').all();
  return rows.map((row) => String(Object.values(row)[0])).filter((line) => line !== 'ok');
}

/** SQLite knows a length without reading what has it. */
function damagedPastes(db: DatabaseSync): string[] {
  const broken = db.prepare(`
    SELECT count(*) AS broken
    FROM pastes
    WHERE content_id IS NOT NULL
      AND size <> (SELECT coalesce(sum(length(bytes)), 0) FROM chunks WHERE chunks.content_id = pastes.content_id)`);
  const count = Number(broken.get()?.['broken']);
  return [
    ...(count === 0 ? [] : [`${count} pastes without their whole content`]),
    ...(isCountedRight(db) ? [] : ['the count of pastes is not that of the pastes there are']),
  ];
}

function isCountedRight(db: DatabaseSync): boolean {
  if (schemaVersionOf(db) < COUNTS_SINCE_SCHEMA) return true;
  const right = db.prepare(`
    SELECT (pastes, bytes) = (SELECT count(*), coalesce(sum(size), 0) FROM pastes) AS isRight
    FROM usage`);
  return right.get()?.['isRight'] === 1;
}

export function holdingsOf(db: DatabaseSync): Holdings {
  const select = db.prepare('SELECT count(*) AS pastes, coalesce(sum(size), 0) AS contentBytes FROM pastes');
  const counted = select.get() as unknown as Omit<Holdings, 'schemaVersion'>;
  return { ...counted, schemaVersion: schemaVersionOf(db) };
}
