// `pasted backup`: a verified copy of the database in a file, or on standard output. How it is made beside a running
// server is store/backup.ts and store/copy.ts.

import { createReadStream, lstatSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

import { MIB } from '../core/time.ts';
import { randomBytes } from '../crypto/random.ts';
import { SIDE_FILES, draftBackup, type BackupDraft } from '../store/backup.ts';
import type { Copied } from '../store/copy.ts';
import { fileBytes, requireDatabase } from '../store/file.ts';
import { StoreError } from '../store/store.ts';
import type { Given, Run } from './commands.ts';
import { CommandError, EXIT, UsageError } from './failures.ts';
import { attempt, publishFile, requireRoom, warnOfReaders } from './files.ts';
import { showBytes } from './quantities.ts';
import { operatorSettings } from './settings.ts';
import type { Terminal } from './terminal.ts';

const MARK_BYTES = 8;

export const run: Run = async (terminal, given) => {
  const [target = ''] = given.operands;
  const isStream = target === '-';
  if (isStream) requireStream(terminal, given);
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
    terminal.stdout.write(given.options.has('--json') ? jsonOf(made) : textOf(made));
    return EXIT.success;
  } finally {
    draft.discard();
  }
};

function requireStream(terminal: Terminal, { options }: Given): void {
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

interface Made extends Copied {
  readonly path: string;
  readonly seconds: number;
}

function textOf({ path, pastes, contentBytes, bytes, seconds }: Made): string {
  const held = `${pastes} pastes with ${showBytes(contentBytes)} of content`;
  return `Wrote ${path}: ${held}, ${showBytes(bytes)} in ${seconds.toFixed(1)} s, verified.\n`;
}

function jsonOf({ path, pastes, contentBytes, bytes, schemaVersion, seconds }: Made): string {
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
