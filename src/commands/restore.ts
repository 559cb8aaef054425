// `pasted restore`: a backup in the place of the database. How the two are exchanged is store/restore.ts.

import { accessSync, constants, statSync } from 'node:fs';

import { isoSeconds, unixSeconds } from '../core/time.ts';
import { restoreDatabase, type RestoreRequest, type Restored } from '../store/restore.ts';
import { MIGRATIONS } from '../store/schema.ts';
import { DatabaseInUseError } from '../store/store.ts';
import type { Run } from './commands.ts';
import { CommandError, EXIT } from './failures.ts';
import { attempt } from './files.ts';
import { showBytes } from './quantities.ts';
import { operatorSettings } from './settings.ts';

export const run: Run = (terminal, { operands: [backup = ''], options }) => {
  const { databasePath: path } = operatorSettings(terminal);
  requireBackup(backup, path);
  // As a part of a file's name: digits, T and Z alone.
  const moment = isoSeconds(unixSeconds(terminal.clock)).replaceAll(/[-:]/g, '');
  const request = { path, backup, moment };
  const restored = restore(request);
  terminal.stdout.write(options.has('--json') ? jsonOf(request, restored) : textOf(request, restored));
  return EXIT.success;
};

function requireBackup(backup: string, databasePath: string): void {
  const found = attempt(backup, () => statSync(backup, { throwIfNoEntry: false, bigint: true }), 'read');
  if (found === undefined) throw new CommandError(`there is no file ${backup}`);
  if (!found.isFile()) throw new CommandError(`${backup} is not a file`);
  const present = statSync(databasePath, { throwIfNoEntry: false, bigint: true });
  const isDatabase = present !== undefined && present.ino === found.ino && present.dev === found.dev;
  if (isDatabase) throw new CommandError(`${backup} is the database itself`);
  attempt(backup, () => accessSync(backup, constants.R_OK), 'read');
}

function restore(request: RestoreRequest): Restored {
  try {
    return attempt(request.path, () => restoreDatabase(request));
  } catch (error) {
    if (!(error instanceof DatabaseInUseError)) throw error;
    throw new DatabaseInUseError(`${error.message}: stop the service that uses it first`);
  }
}

const AS_IT_WAS = 'What was deleted, read, burned or revoked since the backup was made is as it was then.';

function textOf({ path, backup }: RestoreRequest, { pastes, contentBytes, schemaVersion, keptAs }: Restored): string {
  const lines = [`Restored ${path} from ${backup}: ${pastes} pastes with ${showBytes(contentBytes)} of content.`];
  if (schemaVersion < MIGRATIONS.length) lines.push(`Brought it from schema ${schemaVersion} to ${MIGRATIONS.length}.`);
  if (keptAs !== null) lines.push(`The database that was there is now ${keptAs}.`);
  return `${[...lines, AS_IT_WAS].join('\n')}\n`;
}

function jsonOf({ path, backup }: RestoreRequest, { pastes, contentBytes, schemaVersion, keptAs }: Restored): string {
  const shown = {
    database: path, from: backup, pastes, content_bytes: contentBytes, schema_version: schemaVersion, kept_as: keptAs,
  };
  return `${JSON.stringify(shown)}\n`;
}
