// `pasted backup`: a verified copy of the database in a file, or on standard output. `pasted restore`: a backup in the
// place of the database. How the copy is made beside a running server, and how the two are exchanged: store/backup.ts.

import { accessSync, constants, createReadStream, lstatSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isoSeconds, MIB, unixSeconds } from '../core/time.ts';
import { type BackupDraft, draftBackup, restoreDatabase, SIDE_FILES } from '../store/backup.ts';
import { fileBytes, requireDatabase } from '../store/database.ts';
import { MIGRATIONS } from '../store/schema.ts';
import { DatabaseInUseError, StoreError } from '../store/store.ts';
import { attempt, explained, publishFile, randomMark, requireRoom, requireSecretOutput } from './files.ts';
import { operatorSettings } from './session.ts';
import { CommandError, report, type Run, showBytes, type Terminal, UsageError } from './terminal.ts';

export const backup: Run = async (terminal, given) => {
  const [target = ''] = given.operands;
  const isStream = target === '-';
  if (isStream && given.flags.size > 0) {
    throw new UsageError('--force and --json are for a FILE, and - is standard output');
  }
  if (isStream) requireSecretOutput(terminal, 'a backup is bytes for a file or a program, not for this screen');
  const { databasePath } = operatorSettings(terminal);
  const existing = given.flags.has('--force') ? 'replace' : 'refuse';
  if (!isStream) requireFree(target, databasePath, existing);
  const draft = draftBeside(isStream ? `${databasePath}-backup` : target, databasePath, terminal);
  try {
    const startedMs = terminal.clock.monotonicMs();
    const { bytes, pastes, contentBytes, schemaVersion } = await copy(draft, target);
    if (isStream) return await stream(draft, terminal);
    publishFile(draft.path, target, existing);
    const seconds = (terminal.clock.monotonicMs() - startedMs) / 1000;
    const size = `${showBytes(bytes)} in ${seconds.toFixed(1)} s`;
    report(terminal.stdout, given, {
      file: target, bytes, pastes, content_bytes: contentBytes, schema_version: schemaVersion,
      seconds: Number(seconds.toFixed(3)),
    }, `Wrote ${target}: ${pastes} pastes with ${showBytes(contentBytes)} of content, ${size}, verified.\n`);
  } finally {
    draft.discard();
  }
};

/** Throws CommandError when the name is taken, or is one that the database itself needs. */
function requireFree(target: string, databasePath: string, existing: 'refuse' | 'replace'): void {
  const present = attempt(target, () => lstatSync(target, { throwIfNoEntry: false }));
  if (present !== undefined && !present.isFile()) throw new CommandError(`${target} is not a file`);
  if (present !== undefined && existing === 'refuse') {
    throw new CommandError(`${target} exists already, and is not overwritten without --force`);
  }
  const own = ['', ...SIDE_FILES].map((suffix) => `${databasePath}${suffix}`);
  if (own.some((path) => isSamePlace(path, target))) throw new CommandError(`${target} belongs to the database itself`);
}

/** Whether or not there is a file so far; links to folders are followed. */
function isSamePlace(one: string, other: string): boolean {
  const placeOf = (path: string): string => join(attempt(path, () => realpathSync(dirname(path))), basename(path));
  return basename(one) === basename(other) && placeOf(one) === placeOf(other);
}

function draftBeside(beside: string, databasePath: string, terminal: Terminal): BackupDraft {
  requireDatabase(databasePath);
  requireRoom(beside, fileBytes(databasePath) + fileBytes(`${databasePath}-wal`));
  let draft: BackupDraft | undefined;
  terminal.onStopSignal((signal) => {
    draft?.discard();
    terminal.endBy(signal);
  });
  draft = attempt(beside, () => draftBackup({ path: databasePath, beside: resolve(beside), mark: randomMark() }));
  return draft;
}

async function copy(draft: BackupDraft, target: string) {
  try {
    return await draft.copy();
  } catch (error) {
    throw error instanceof StoreError ? new CommandError(`no backup was made as ${target}: ${error.message}`) : error;
  }
}

/** Its name goes first: then nothing stays, however the process ends while it waits for a slow reader. */
async function stream(draft: BackupDraft, { stdout }: Terminal): Promise<void> {
  const chunks = createReadStream(draft.path, { highWaterMark: MIB });
  chunks.once('open', () => draft.discard());
  for await (const chunk of chunks) {
    const isTaken = await stdout.writeWhole(chunk as Uint8Array);
    if (!isTaken) throw new CommandError('the backup is not whole: standard output did not take all of it');
  }
}

const AS_IT_WAS = 'What was deleted, read, burned or revoked since the backup was made is as it was then.';

export const restore: Run = async (terminal, given) => {
  const [name = ''] = given.operands;
  const isStream = name === '-';
  const { databasePath: path } = operatorSettings(terminal);
  if (!isStream) requireBackup(name, path);
  const source = isStream ? openInput(terminal) : name;
  const { pastes, contentBytes, schemaVersion, keptAs } = await exchange(path, source, terminal);
  const from = isStream ? 'standard input' : name;
  const lines = [
    `Restored ${path} from ${from}: ${pastes} pastes with ${showBytes(contentBytes)} of content.`,
    ...(schemaVersion < MIGRATIONS.length ? [`Brought it from schema ${schemaVersion} to ${MIGRATIONS.length}.`] : []),
    ...(keptAs === null ? [] : [`The database that was there is now ${keptAs}.`]),
    AS_IT_WAS,
  ];
  report(terminal.stdout, given, {
    database: path, from, pastes, content_bytes: contentBytes, schema_version: schemaVersion, kept_as: keptAs,
  }, `${lines.join('\n')}\n`);
};

/** Stopped meanwhile, nothing of what came stays. */
function openInput(terminal: Terminal): AsyncIterable<Uint8Array> {
  const stdin = terminal.stdin();
  if (stdin.isTTY === true) throw new UsageError('a backup is bytes from a file or a program, not from this keyboard');
  const stop = (signal: string): void => {
    stdin.destroy(new CommandError(`stopped by ${signal} before the backup was there: nothing was changed`));
  };
  terminal.onStopSignal(stop);
  terminal.onReloadSignal(() => stop('SIGHUP'));
  return stdin;
}

function requireBackup(backup: string, databasePath: string): void {
  const found = attempt(backup, () => statSync(backup, { throwIfNoEntry: false, bigint: true }), 'read');
  if (found === undefined) throw new CommandError(`there is no file ${backup}`);
  if (!found.isFile()) throw new CommandError(`${backup} is not a file`);
  const database = statSync(databasePath, { throwIfNoEntry: false, bigint: true });
  const isDatabase = database?.ino === found.ino && database.dev === found.dev;
  if (isDatabase) throw new CommandError(`${backup} is the database itself`);
  attempt(backup, () => accessSync(backup, constants.R_OK), 'read');
}

async function exchange(path: string, backup: string | AsyncIterable<Uint8Array>, { clock }: Terminal) {
  try {
    // As a part of a file's name: digits, T and Z alone.
    const moment = isoSeconds(unixSeconds(clock)).replaceAll(/[-:]/g, '');
    return await restoreDatabase({ path, backup, moment });
  } catch (error) {
    if (!(error instanceof DatabaseInUseError)) throw explained(error, path);
    throw new DatabaseInUseError(`${error.message}: stop the service that uses it first`, error.lockPath);
  }
}
