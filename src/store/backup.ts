// The draft of a backup: a copy under a name of its own until it is whole and verified. Where it goes then is the
// command's business.

import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

import { copyOnThread } from './copy.ts';
import type { Copied } from './copy.ts';
import { lockDatabase, requireDatabase } from './file.ts';
import type { DatabaseLock } from './file.ts';
import { DatabaseInUseError } from './store.ts';

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
  return { path: draftPath, copy: () => copyOnThread({ from: path, to: draftPath }), discard };
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
