// What goes wrong for reasons that the user can do something about, as words and an exit code. Everything else is a
// bug or a failing host, and main.ts reports it with its stack.

import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { ConfigError } from '../config/load.ts';
import { SETTINGS } from '../config/settings.ts';
import { DatabaseInUseError, DatabaseRefusedError, StoreError } from '../store/failures.ts';

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

// Which process has a file or a port, as far as /proc shows it: to root every process, to others their own. Where there
// is no /proc nobody is found.

/** Who is refused wants an answer soon, also on a host with thousands of connections. */
const MOST_DESCRIPTORS = 50_000;

/** Of a command line: the program, its script and what it does. What follows may be anything, secrets included. */
const SHOWN_WORDS = 3;
const SHOWN_CHARACTERS = 120;

/** TCP_LISTEN of proc(5), /proc/net/tcp. */
const LISTENING = '0A';

/** `process 123 (node dist/main.js)`; undefined when it is not to be seen. Never this process. */
export function holderOfFile(path: string): string | undefined {
  const real = readable(() => realpathSync(path));
  return real === undefined ? undefined : findHolder((target) => target === real);
}

/** The same of whoever listens on this TCP port, on any address. */
export function holderOfPort(port: number): string | undefined {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = ['tcp', 'tcp6'].flatMap((table) => (
    readable(() => readFileSync(`/proc/net/${table}`, 'latin1').split('\n')) ?? []
  ));
  const sockets = lines.map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', , state]) => local.endsWith(suffix) && state === LISTENING)
    .map((fields) => `socket:[${fields[9]}]`);
  return sockets.length === 0 ? undefined : findHolder((target) => sockets.includes(target));
}

/** By what its descriptors are links to. */
function findHolder(isIt: (target: string) => boolean): string | undefined {
  const own = readable(() => readlinkSync('/proc/self'));
  let left = MOST_DESCRIPTORS;
  for (const pid of readable(() => readdirSync('/proc')) ?? []) {
    if (!/^\d+$/.test(pid) || pid === own) continue;
    for (const descriptor of readable(() => readdirSync(`/proc/${pid}/fd`)) ?? []) {
      left -= 1;
      if (left < 0) return undefined;
      const target = readable(() => readlinkSync(`/proc/${pid}/fd/${descriptor}`));
      if (target !== undefined && isIt(target)) return `process ${pid} (${commandOf(pid)})`;
    }
  }
  return undefined;
}

function commandOf(pid: string): string {
  const words = readable(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')) ?? [];
  const shown = words.filter((word) => word !== '' && !word.startsWith('-')).slice(0, SHOWN_WORDS).join(' ');
  return shown.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, SHOWN_CHARACTERS);
}

/** What is not there any more, or is somebody else's, is passed over. */
function readable<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
