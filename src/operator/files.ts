// Files that commands write: one that must not be there before, and one that others may be reading.

import {
  closeSync, existsSync, fchmodSync, fsyncSync, ftruncateSync, linkSync, openSync, renameSync, rmSync, writeSync,
} from 'node:fs';
import { randomBytes } from '../crypto/digest.ts';
import { FREE_RESERVE_BYTES, freeBytes, isWithoutLinks, syncFolderOf } from '../store/database.ts';
import { codeOf, CommandError, showBytes, type Terminal, UsageError } from './terminal.ts';

const OWNER_ONLY = 0o600;
const READABLE_BY_ALL = 0o644;

/** A file that goes again unless it is kept. */
export interface NewFile {
  /** Makes these bytes, durably, all that the file holds. Throws CommandError when they cannot be written. */
  write(bytes: Uint8Array): void | Promise<void>;
  keep(): void;
  discard(): void;
}

/** Throws CommandError when the file exists already, or cannot be made. */
export function createNewFile(path: string, access: 'owner only' | 'readable by all' = 'owner only'): NewFile {
  const mode = access === 'owner only' ? OWNER_ONLY : READABLE_BY_ALL;
  const descriptor = attempt(path, () => openSync(path, 'wx', mode));
  return {
    write: (bytes) => attempt(path, () => {
      ftruncateSync(descriptor);
      writeWhole(descriptor, bytes);
      syncFolderOf(path);
    }),
    keep: () => closeSync(descriptor),
    discard: () => {
      closeSync(descriptor);
      rmSync(path, { force: true });
    },
  };
}

/** Does the work with files that are made for it, and keeps all of them, or none when it fails. */
export async function keepingFiles<Result>(
  files: readonly (() => NewFile)[],
  work: (files: readonly NewFile[]) => Promise<Result>,
): Promise<Result> {
  const made: NewFile[] = [];
  try {
    for (const make of files) made.push(make());
    const result = await work(made);
    for (const file of made) file.keep();
    return result;
  } catch (error) {
    for (const file of made) file.discard();
    throw error;
  }
}

/**
 * Puts a file that anyone may read in the place of what is there, if anything: readers see the old one or the new one,
 * whole. Throws CommandError when that is not possible.
 */
export function replaceFile(path: string, bytes: Uint8Array): void {
  const draft = `${path}.${Buffer.from(randomBytes(8)).toString('hex')}`;
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

/** Standard output for what is secret. The shell has made the file by its umask, before this could choose a mode. */
export function requireSecretOutput({ stderr, writesToScreen, writesForOthers }: Terminal, refusal: string): void {
  if (writesToScreen) throw new UsageError(refusal);
  if (!writesForOthers()) return;
  stderr.write('pasted: warning: others may read the file that standard output is: chmod 600 it, or umask 077 first\n');
}
