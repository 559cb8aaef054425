// `pasted backup`: a verified copy of the database in a file, or on standard output. How it is made beside a running
// server is store/backup.ts.

import { accessSync, constants, createReadStream, lstatSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isoSeconds, MIB, unixSeconds } from '../core/time.ts';
import { randomBytes } from '../crypto/digest.ts';
import {
  type BackupDraft, type Copied, draftBackup, restoreDatabase, type Restored, type RestoreRequest, SIDE_FILES,
} from '../store/backup.ts';
import { fileBytes, requireDatabase } from '../store/database.ts';
import { MIGRATIONS } from '../store/schema.ts';
import { DatabaseInUseError, StoreError } from '../store/store.ts';
import type { Given, Run } from './commands.ts';
import { attempt, explained, publishFile, requireRoom, warnOfReaders } from './files.ts';
import { operatorSettings } from './session.ts';
import { CommandError, EXIT, showBytes, type Terminal, UsageError } from './terminal.ts';

const MARK_BYTES = 8;

export const backup: Run = async (terminal, given) => {
  const [target = ''] = given.operands;
  const isStream = target === '-';
  if (isStream) requireOutputStream(terminal, given);
  const { databasePath } = operatorSettings(terminal);
  const existing = given.options.has('--force') ? 'replace' : 'refuse';
  if (!isStream) requireFree(target, databasePath, existing);
  const draft = draftBeside(isStream ? `${databasePath}-backup` : target, databasePath, terminal);
  try {
    const startedMs = terminal.clock.monotonicMs();
    const copied = await copy(draft, target);
    if (isStream) {
      await stream(draft, terminal);
      return EXIT.success;
    }
    publishFile(draft.path, target, existing);
    const made = { ...copied, path: target, seconds: (terminal.clock.monotonicMs() - startedMs) / 1000 };
    terminal.stdout.write(given.options.has('--json') ? backupJson(made) : backupText(made));
    return EXIT.success;
  } finally {
    draft.discard();
  }
};

function requireOutputStream(terminal: Terminal, { options }: Given): void {
  if (options.size > 0) throw new UsageError('--force and --json are for a FILE, and - is standard output');
  if (terminal.writesToScreen) throw new UsageError('a backup is bytes for a file or a program, not for this screen');
  warnOfReaders(terminal);
}

/** Throws CommandError when the name is taken, or is one that the database itself needs. */
function requireFree(target: string, databasePath: string, existing: 'refuse' | 'replace'): void {
  const present = attempt(target, () => lstatSync(target, { throwIfNoEntry: false }));
  if (present !== undefined && !present.isFile()) throw new CommandError(`${target} is not a file`);
  if (present !== undefined && existing === 'refuse') {
    throw new CommandError(`${target} exists already, and is not overwritten without --force`);
  }
  const own = [databasePath, ...SIDE_FILES.map((suffix) => `${databasePath}${suffix}`)];
  if (own.some((path) => isSamePlace(path, target))) throw new CommandError(`${target} belongs to the database itself`);
}

/** Whether or not there is a file so far; links to folders are followed. */
function isSamePlace(one: string, other: string): boolean {
  const placeOf = (path: string): string => join(attempt(path, () => realpathSync(dirname(path))), basename(path));
  return basename(one) === basename(other) && placeOf(one) === placeOf(other);
}

function draftBeside(beside: string, databasePath: string, terminal: Terminal): BackupDraft {
  requireDatabase(databasePath);
  const mark = Buffer.from(randomBytes(MARK_BYTES)).toString('hex');
  requireRoom(beside, fileBytes(databasePath) + fileBytes(`${databasePath}-wal`));
  let draft: BackupDraft | undefined;
  terminal.onStopSignal((signal) => {
    draft?.discard();
    terminal.endBy(signal);
  });
  draft = attempt(beside, () => draftBackup({ path: databasePath, beside: resolve(beside), mark }));
  return draft;
}

async function copy(draft: BackupDraft, target: string): Promise<Copied> {
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

interface MadeBackup extends Copied {
  readonly path: string;
  readonly seconds: number;
}

function backupText({ path, pastes, contentBytes, bytes, seconds }: MadeBackup): string {
  const held = `${pastes} pastes with ${showBytes(contentBytes)} of content`;
  return `Wrote ${path}: ${held}, ${showBytes(bytes)} in ${seconds.toFixed(1)} s, verified.\n`;
}

function backupJson({ path, pastes, contentBytes, bytes, schemaVersion, seconds }: MadeBackup): string {
  const shown = {
    file: path,
    bytes,
    pastes,
    content_bytes: contentBytes,
    schema_version: schemaVersion,
    seconds: Number(seconds.toFixed(3)),
  };
  return `${JSON.stringify(shown)}\n`;
}

// `pasted restore`: a backup, from a file or standard input, in the place of the database. How the two are exchanged is
// store/backup.ts.

export const restore: Run = async (terminal, { operands: [name = ''], options }) => {
  const isStream = name === '-';
  const { databasePath: path } = operatorSettings(terminal);
  if (!isStream) requireBackup(name, path);
  const backup = isStream ? requireStream(terminal) : name;
  // As a part of a file's name: digits, T and Z alone.
  const moment = isoSeconds(unixSeconds(terminal.clock)).replaceAll(/[-:]/g, '');
  const request = { path, backup, moment };
  const restored = await exchange(request);
  const made = { ...restored, path, from: isStream ? 'standard input' : name };
  terminal.stdout.write(options.has('--json') ? restoreJson(made) : restoreText(made));
  return EXIT.success;
};

/** Stopped meanwhile, nothing of what came stays. */
function requireStream(terminal: Terminal): AsyncIterable<Uint8Array> {
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
  const present = statSync(databasePath, { throwIfNoEntry: false, bigint: true });
  const isDatabase = present !== undefined && present.ino === found.ino && present.dev === found.dev;
  if (isDatabase) throw new CommandError(`${backup} is the database itself`);
  attempt(backup, () => accessSync(backup, constants.R_OK), 'read');
}

async function exchange(request: RestoreRequest): Promise<Restored> {
  try {
    return await restoreDatabase(request);
  } catch (error) {
    if (!(error instanceof DatabaseInUseError)) throw explained(error, request.path);
    throw new DatabaseInUseError(`${error.message}: stop the service that uses it first`, error.lockPath);
  }
}

const AS_IT_WAS = 'What was deleted, read, burned or revoked since the backup was made is as it was then.';

interface Made extends Restored {
  readonly path: string;
  readonly from: string;
}

function restoreText({ path, from, pastes, contentBytes, schemaVersion, keptAs }: Made): string {
  const lines = [`Restored ${path} from ${from}: ${pastes} pastes with ${showBytes(contentBytes)} of content.`];
  if (schemaVersion < MIGRATIONS.length) lines.push(`Brought it from schema ${schemaVersion} to ${MIGRATIONS.length}.`);
  if (keptAs !== null) lines.push(`The database that was there is now ${keptAs}.`);
  return `${[...lines, AS_IT_WAS].join('\n')}\n`;
}

function restoreJson({ path, from, pastes, contentBytes, schemaVersion, keptAs }: Made): string {
  const shown = {
    database: path, from, pastes, content_bytes: contentBytes, schema_version: schemaVersion, kept_as: keptAs,
  };
  return `${JSON.stringify(shown)}\n`;
}
