// What goes wrong for reasons that the user can do something about, as words and an exit code. Everything else is a
// bug or a failing host, and main.ts reports it with its stack.

import { ConfigError } from '../config/load.ts';
import { SETTINGS } from '../config/settings.ts';
import { DatabaseInUseError, DatabaseRefusedError, StoreError } from '../store/store.ts';
import { holderOfFile } from './holders.ts';

/**
 * What the process ends with. 75 and 78 are EX_TEMPFAIL and EX_CONFIG of sysexits.h: they say whether it can help to
 * try the same again.
 */
export const EXIT = { success: 0, failure: 1, usage: 2, busy: 75, configuration: 78 } as const;

/** A command line that cannot be carried out; the message says why, and which name is nearest. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A command that failed; the message says it all, in one line. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

export interface Failure {
  readonly exitCode: number;
  /** Whole lines for standard error. */
  readonly text: string;
}

/** Undefined for an error that is not one of these. */
export function failureOf(error: unknown): Failure | undefined {
  if (error instanceof UsageError) return failure(EXIT.usage, `${error.message}\nTry: pasted help`);
  if (error instanceof CommandError) return failure(EXIT.failure, error.message);
  if (error instanceof ConfigError) return failure(EXIT.configuration, problemList(error.problems));
  if (error instanceof DatabaseRefusedError) return failure(EXIT.configuration, error.message);
  if (error instanceof DatabaseInUseError) return failure(EXIT.busy, withHolder(error));
  if (error instanceof StoreError) return failure(EXIT.failure, withCause(error));
  return undefined;
}

function withHolder({ message, lockPath }: DatabaseInUseError): string {
  if (lockPath === undefined) return message;
  const holder = holderOfFile(lockPath);
  return `${message}; ${holder === undefined ? `root can see which: fuser ${lockPath}` : `it is ${holder}`}`;
}

function failure(exitCode: number, message: string): Failure {
  return { exitCode, text: `pasted: ${message}\n` };
}

function problemList(problems: readonly string[]): string {
  return ['the settings cannot be used', ...problems.map((problem) => `  ${problem}`)].join('\n');
}

/** The storage says what could not be done; why is what the system or SQLite said. */
function withCause({ message, cause }: StoreError): string {
  const reason = cause instanceof Error ? `: ${cause.message}` : '';
  return `${message}${reason} (${SETTINGS.databasePath.name})`;
}
