// Files that commands write: one that must not be there before, and one that others may be reading. What goes into them
// is the commands' business.

import { closeSync, fchmodSync, fsyncSync, ftruncateSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

import { randomBytes } from '../crypto/random.ts';
import { CommandError } from './failures.ts';

const OWNER_ONLY = 0o600;
const READABLE_BY_ALL = 0o644;

/** A file of this process alone until it is kept. */
export interface NewFile {
  /** Makes these bytes, durably, all that the file holds. Throws CommandError when they cannot be written. */
  write(bytes: Uint8Array): void;
  keep(): void;
  /** As if it had never been made. */
  discard(): void;
}

/** For its owner alone. Throws CommandError when the file exists already, or cannot be made. */
export function createNewFile(path: string): NewFile {
  const descriptor = attempt(path, () => openSync(path, 'wx', OWNER_ONLY));
  return {
    write(bytes) {
      attempt(path, () => {
        ftruncateSync(descriptor);
        writeWhole(descriptor, bytes);
      });
      syncFolderOf(path);
    },
    keep: () => closeSync(descriptor),
    discard() {
      closeSync(descriptor);
      rmSync(path, { force: true });
    },
  };
}

/**
 * Puts a file that anyone may read in the place of what is there, if anything: readers see the old one or the new one,
 * whole. Throws CommandError when that is not possible.
 */
export function replaceFile(path: string, bytes: Uint8Array): void {
  const beside = `${path}.${Buffer.from(randomBytes(8)).toString('hex')}`;
  attempt(path, () => {
    const descriptor = openSync(beside, 'wx', OWNER_ONLY);
    try {
      writeWhole(descriptor, bytes);
      // Whatever the umask, which keeps the database's files from everyone.
      fchmodSync(descriptor, READABLE_BY_ALL);
      renameSync(beside, path);
    } catch (error) {
      rmSync(beside, { force: true });
      throw error;
    } finally {
      closeSync(descriptor);
    }
  });
  syncFolderOf(path);
}

function writeWhole(descriptor: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) {
    written += writeSync(descriptor, bytes, written, bytes.length - written, written);
  }
  fsyncSync(descriptor);
}

/** So that the name outlives a power cut. Like SQLite, without complaint where a file system does not offer it. */
function syncFolderOf(path: string): void {
  let descriptor;
  try {
    descriptor = openSync(dirname(path), 'r');
    fsyncSync(descriptor);
  } catch {
    return;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function attempt<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    const reason = code === 'EEXIST' ? 'exists already, and is not overwritten' : `cannot be written (${code})`;
    throw new CommandError(`${path} ${reason}`);
  }
}
