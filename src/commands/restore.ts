// `pasted restore`: a backup, from a file or standard input, in the place of the database. How the two are exchanged is
// store/restore.ts.

import { accessSync, constants, statSync } from 'node:fs';

import { isoSeconds, unixSeconds } from '../core/time.ts';
import { restoreDatabase, type RestoreRequest, type Restored } from '../store/restore.ts';
import { MIGRATIONS } from '../store/schema.ts';
import { DatabaseInUseError } from '../store/store.ts';
import type { Run } from './commands.ts';
import { CommandError, EXIT, UsageError } from './failures.ts';
import { attempt, explained } from './files.ts';
import { showBytes } from './quantities.ts';
import { operatorSettings } from './settings.ts';
import type { Terminal } from './terminal.ts';

export const run: Run = async (terminal, { operands: [name = ''], options }) => {
  const isStream = name === '-';
  const { databasePath: path } = operatorSettings(terminal);
  if (!isStream) requireBackup(name, path);
  const backup = isStream ? requireStream(terminal) : name;
  // As a part of a file's name: digits, T and Z alone.
  const moment = isoSeconds(unixSeconds(terminal.clock)).replaceAll(/[-:]/g, '');
  const request = { path, backup, moment };
  const restored = await restore(request);
  const made = { ...restored, path, from: isStream ? 'standard input' : name };
  terminal.stdout.write(options.has('--json') ? jsonOf(made) : textOf(made));
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

async function restore(request: RestoreRequest): Promise<Restored> {
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

function textOf({ path, from, pastes, contentBytes, schemaVersion, keptAs }: Made): string {
  const lines = [`Restored ${path} from ${from}: ${pastes} pastes with ${showBytes(contentBytes)} of content.`];
  if (schemaVersion < MIGRATIONS.length) lines.push(`Brought it from schema ${schemaVersion} to ${MIGRATIONS.length}.`);
  if (keptAs !== null) lines.push(`The database that was there is now ${keptAs}.`);
  return `${[...lines, AS_IT_WAS].join('\n')}\n`;
}

function jsonOf({ path, from, pastes, contentBytes, schemaVersion, keptAs }: Made): string {
  const shown = {
    database: path, from, pastes, content_bytes: contentBytes, schema_version: schemaVersion, kept_as: keptAs,
  };
  return `${JSON.stringify(shown)}\n`;
}
