// Files that commands write, and what the operator is told when one cannot be read or written.

import {
  closeSync, existsSync, fchmodSync, fsyncSync, ftruncateSync, linkSync, openSync, renameSync, rmSync, writeSync,
} from 'node:fs';
import { randomBytes } from '../crypto/digest.ts';
import { FREE_RESERVE_BYTES, freeBytes, isWithoutLinks, syncFolderOf } from '../store/database.ts';
import { codeOf, CommandError, showBytes, type Terminal, UsageError } from './terminal.ts';

const OWNER_ONLY = 0o600;
export const READABLE_BY_ALL = 0o644;

/** A file that must not exist before, and is removed at the end of its scope unless it is kept. Throws CommandError. */
export function createNewFile(path: string, mode = OWNER_ONLY) {
  const descriptor = attempt(path, () => openSync(path, 'wx', mode));
  let isKept = false;
  return {
    /** Makes these bytes, durably, all that the file holds. Throws CommandError. */
    write: (bytes: Uint8Array): void => attempt(path, () => {
      ftruncateSync(descriptor);
      writeWhole(descriptor, bytes);
      syncFolderOf(path);
    }),
    keep: (): void => {
      isKept = true;
    },
    [Symbol.dispose]: (): void => {
      closeSync(descriptor);
      if (!isKept) rmSync(path, { force: true });
    },
  };
}

/** Part of the name of a draft, which nobody else uses. */
export function randomMark(): string {
  return Buffer.from(randomBytes(8)).toString('hex');
}

/** Makes or replaces a file that all may read: they see the old one or the new one, whole. Throws CommandError. */
export function replaceFile(path: string, bytes: Uint8Array): void {
  const draft = `${path}.${randomMark()}`;
  const descriptor = attempt(path, () => openSync(draft, 'wx', OWNER_ONLY));
  try {
    attempt(path, () => {
      writeWhole(descriptor, bytes);
      // Whatever the umask, which keeps the database's files from everyone.
      fchmodSync(descriptor, READABLE_BY_ALL);
    });
    publishFile(draft, path, 'replace');
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

function writeWhole(descriptor: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) {
    written += writeSync(descriptor, bytes, written, bytes.length - written, written);
  }
  fsyncSync(descriptor);
}

/** Gives a whole file its name, in the same folder. Throws CommandError for a taken name that is not to be replaced. */
export function publishFile(draft: string, path: string, existing: 'refuse' | 'replace'): void {
  attempt(path, () => {
    if (existing === 'replace') renameSync(draft, path);
    else nameAnew(draft, path);
  });
  syncName(path);
}

function nameAnew(draft: string, path: string): void {
  try {
    linkSync(draft, path);
    rmSync(draft);
  } catch (error) {
    // Where a file has one name at most, the look beforehand must do.
    if (!isWithoutLinks(error) || existsSync(path)) throw error;
    renameSync(draft, path);
  }
}

/** Throws CommandError when the name, which the file has by now, may not outlive a power cut. */
function syncName(path: string): void {
  try {
    syncFolderOf(path);
  } catch (error) {
    const reason = `its folder cannot be synced (${codeOf(error)})`;
    throw new CommandError(`${path} is written, but a power cut may undo that: ${reason}`);
  }
}

/** Throws CommandError when the disk of that path has no room for so many bytes beside what the service needs. */
export function requireRoom(path: string, bytes: number): void {
  const free = attempt(path, () => freeBytes(path));
  if (free - bytes > FREE_RESERVE_BYTES) return;
  const needed = `${showBytes(bytes)} and ${showBytes(FREE_RESERVE_BYTES)} to spare`;
  throw new CommandError(`${path} cannot be written: it may take ${needed}, and ${showBytes(free)} are free`);
}

/** The text of a file. Whatever node refuses is the file's fault, also without a code of the system, as of its size. */
export function readText({ readFile }: Terminal, path: string, name = path): string {
  try {
    return readFile(path);
  } catch (error) {
    throw new CommandError(`${name} cannot be read (${codeOf(error)})`);
  }
}

/** Throws CommandError in the place of an error of the system. */
export function attempt<Result>(path: string, work: () => Result, purpose: 'written' | 'read' = 'written'): Result {
  try {
    return work();
  } catch (error) {
    throw explained(error, path, purpose);
  }
}

/** A CommandError for an error of the system or of node --permission; any other is an error of this program. */
export function explained(error: unknown, path: string, purpose: 'written' | 'read' = 'written'): unknown {
  const code = codeOf(error);
  if (!/^(?:E[A-Z0-9]+|ERR_ACCESS_DENIED)$/.test(code)) return error;
  const reason = code === 'EEXIST' ? 'exists already, and is not overwritten' : `cannot be ${purpose} (${code})`;
  return new CommandError(`${path} ${reason}`);
}

/** Before a secret goes to standard output, which may be a file that the shell made by its umask, readable to all. */
export function requireSecretOutput({ stderr, writesToScreen, writesForOthers }: Terminal, refusal: string): void {
  if (writesToScreen) throw new UsageError(refusal);
  if (!writesForOthers()) return;
  stderr.write('pasted: warning: others may read the file that standard output is: chmod 600 it, or umask 077 first\n');
}
