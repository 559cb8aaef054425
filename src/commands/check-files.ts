// The files of the database and their folder, for `pasted check`: that they are there, for their owner alone, and that
// the service has room. What is in them is check-database.ts.

import { accessSync, constants, statSync, type Stats } from 'node:fs';
import { basename, dirname } from 'node:path';

import { SIDE_FILES } from '../store/backup.ts';
import { measureRoom } from '../store/examine.ts';
import { CommandError } from './failures.ts';
import { attempt } from './files.ts';
import { fail, ok, warn, type Finding } from './findings.ts';
import { showBytes } from './quantities.ts';

const OTHERS_MAY_WRITE = 0o022;
const OTHERS_MAY_ANYTHING = 0o077;

/** So many times what the service keeps free: an operator can still do something. */
const ROOM_NOTICE_FACTOR = 10;

interface Present {
  readonly path: string;
  readonly stats: Stats;
}

export function checkFiles(databasePath: string): Finding[] {
  try {
    return attempt(databasePath, () => lookAtFiles(databasePath), 'read');
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return [fail('files', error.message)];
  }
}

function lookAtFiles(databasePath: string): Finding[] {
  const folder = present(dirname(databasePath));
  if (folder === undefined) return [fail('folder', `there is no folder ${dirname(databasePath)}`)];
  const files = ['', ...SIDE_FILES].map((suffix) => present(`${databasePath}${suffix}`))
    .filter((file) => file !== undefined);
  return [
    checkFolder(folder),
    ...(files[0]?.path === databasePath ? [checkPermissions(files[0], files)] : []),
    ...checkRoom(databasePath),
  ];
}

function present(path: string): Present | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? undefined : { path, stats };
}

/** Whoever may write to it may put a database of their own in the place of this one. */
function checkFolder({ path, stats }: Present): Finding {
  if ((stats.mode & OTHERS_MAY_WRITE) !== 0) return fail('folder', `others may write to ${path}: chmod 700`);
  if (!isUsable(path)) return fail('folder', `this user may not write to ${path}`);
  if ((stats.mode & OTHERS_MAY_ANYTHING) !== 0) return warn('folder', `others may look into ${path}: chmod 700`);
  return ok('folder', `${path} is for its owner alone`);
}

function checkPermissions(database: Present, files: readonly Present[]): Finding {
  const namesOf = (some: readonly Present[]): string => some.map(({ path }) => basename(path)).join(', ');
  const open = files.filter(({ stats }) => (stats.mode & OTHERS_MAY_ANYTHING) !== 0);
  if (open.length > 0) return fail('files', `others may open ${namesOf(open)}: chmod 600`);
  // As a command leaves them that was run by another user; the service can't use them then.
  const strange = files.filter(({ stats }) => stats.uid !== database.stats.uid);
  if (strange.length > 0) return fail('files', `${namesOf(strange)} and the database have different owners: chown`);
  const locked = files.filter(({ path }) => !isUsable(path));
  if (locked.length > 0) return fail('files', `this user may not read and write ${namesOf(locked)}`);
  return ok('files', `${namesOf(files)}: for one owner alone`);
}

function isUsable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function checkRoom(databasePath: string): Finding[] {
  const { freeBytes, reserveBytes, walBytes, usualWalBytes, hasBallast } = measureRoom(databasePath);
  return [room(freeBytes, reserveBytes), log(walBytes, usualWalBytes), reserve(hasBallast)];
}

function room(freeBytes: number, reserveBytes: number): Finding {
  const text = `${showBytes(freeBytes)} are free on the disk of the database`;
  if (freeBytes <= reserveBytes) return fail('room', `${text}: new pastes are refused`);
  if (freeBytes <= ROOM_NOTICE_FACTOR * reserveBytes) return warn('room', text);
  return ok('room', text);
}

function log(walBytes: number, usualWalBytes: number): Finding {
  const text = `takes ${showBytes(walBytes)}`;
  if (walBytes <= usualWalBytes) return ok('write-ahead log', text);
  return warn('write-ahead log', `${text}: a backup, or whatever else reads for long, keeps it from being emptied`);
}

function reserve(hasBallast: boolean): Finding {
  if (hasBallast) return ok('room in reserve', 'is kept for a full disk');
  return warn('room in reserve', 'is not there: a server makes it within seconds, when the disk has room');
}
