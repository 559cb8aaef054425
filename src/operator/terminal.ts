// What a command may see and do of its process, what it prints there, and how it ends: Terminal, the outputs, and the
// words and exit code of each failure. main.ts makes a Terminal of the real process, tests make one of values.

import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { ConfigError, type Environment, type ReadFile } from '../config/load.ts';
import { SETTINGS } from '../config/settings.ts';
import type { Clock } from '../core/time.ts';
import { DatabaseInUseError, DatabaseRefusedError, StoreError } from '../store/store.ts';

export interface Terminal {
  /** What follows `pasted` on the command line. */
  readonly arguments: readonly string[];
  readonly environment: Environment;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly readFile: ReadFile;
  /** Nothing reads standard input before this is called. */
  readonly stdin: () => Input;
  readonly clock: Clock;
  /** Sockets that systemd handed to this very process (sd_listen_fds(3)), from descriptor 3 on. */
  readonly inheritedSockets: number;
  /** Standard output is a screen with a person before it. */
  readonly writesToScreen: boolean;
  /** Standard output is a file that its group or others may read. */
  readonly writesForOthers: () => boolean;
  /** Standard output goes to the journal (JOURNAL_STREAM of systemd.exec(5)), which takes priorities. */
  readonly writesToJournal: boolean;
  /** Versions, for whoever looks into a fault; the platform is such as `linux-x64`. */
  readonly runtime: Readonly<Record<'node' | 'sqlite' | 'openssl' | 'platform', string>>;
  readonly cores: number;
  /** Files made from now on are for their owner alone. */
  restrictNewFiles(): void;
  /** Called for each SIGTERM and SIGINT, and on a terminal for each SIGHUP; the process then goes on. */
  onStopSignal(listener: (signal: string) => void): void;
  /** Called for each SIGHUP without a terminal. Without a listener SIGHUP ends the process, as by default. */
  onReloadSignal(listener: () => void): void;
  /** Called for an error that nothing caught, once it is on standard error; the process then ends with 1. */
  onFatalError(listener: (error: unknown) => void): void;
  /** Ends the process now, whatever still runs. */
  exit(code: number): void;
  /** Ends the process by a signal that it has caught, as if it had not: at once, threads and all. */
  endBy(signal: string): void;
}

/** The arguments of one command, which its entry in the table allows. */
export interface Given {
  /** The options without a value, such as `--json`. */
  readonly flags: ReadonlySet<string>;
  /** Those that have one, by name; never empty. */
  readonly values: ReadonlyMap<string, string>;
  readonly operands: readonly string[];
}

/** A command. It resolves with the exit code, or with nothing for success. */
export type Run = (terminal: Terminal, given: Given) => number | void | Promise<number | void>;

export interface Output {
  /** False when it could not take them, which are then lost: nobody reads, or not fast enough. Never waits. */
  write(written: string | Uint8Array): boolean;
  /** Waits for a slow reader, however long. Resolves with false when it was not taken whole: nobody reads any more. */
  writeWhole(written: Uint8Array): Promise<boolean>;
}

/** Standard input; isTTY of a person at a keyboard. */
export type Input = Readable & { readonly isTTY?: boolean };

/** How much may wait for a slow reader. node queues without a bound what a pipe does not take at once. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

const DRAIN_MS = 1000;

/**
 * An output whose reader may go away or not keep up: neither ends the process, nor fills its memory. `drain`, for the
 * end of the process, waits for what was taken, but not for long.
 */
export function outputTo(stream: Writable): Output & { drain(): Promise<void> } {
  let isClosed = false;
  let hasLost = false;
  // Without a listener a closed pipe would be an uncaught error, whose report is an error again.
  stream.on('error', (error: NodeJS.ErrnoException) => {
    hasLost = true;
    // A full disk may have room again; a reader that went away does not come back.
    if (error.code === 'EPIPE') isClosed = true;
  });
  return {
    write: (written) => {
      if (isClosed || stream.writableLength > MAX_WAITING_BYTES) return false;
      stream.write(written);
      return true;
    },
    writeWhole: (written) => new Promise((resolve) => {
      // After an error, a stream of Node's no longer says what becomes of what is written to it.
      if (hasLost) return resolve(false);
      stream.write(written, (error) => resolve(error === undefined || error === null));
    }),
    drain: () => new Promise((resolve) => {
      if (isClosed || stream.writableLength === 0) return resolve();
      const timer = setTimeout(resolve, DRAIN_MS);
      stream.write('', () => {
        clearTimeout(timer);
        resolve();
      });
    }),
  };
}

/** Prints what a command found: one line of JSON with --json, text for people otherwise. */
export function report(output: Output, { flags }: Given, json: object, text: string): void {
  output.write(flags.has('--json') ? `${JSON.stringify(json)}\n` : text);
}

export function printWarnings({ stderr }: Terminal, warnings: readonly string[]): void {
  for (const warning of warnings) stderr.write(`pasted: ${warning}\n`);
}

/** A table for people: one line for each row, every column but the last as wide as its widest cell. */
export function alignColumns(rows: readonly (readonly string[])[]): string {
  const [first = []] = rows;
  const widths = first.slice(0, -1).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}\n`).join('');
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;

/** Such as `512 bytes` and `3.1 MiB`: one digit after the point, rounded down, so that nothing seems full too early. */
export function showBytes(bytes: number): string {
  let [size, unit] = [bytes, 0];
  for (; size >= 1024 && unit < UNITS.length - 1; unit += 1) size /= 1024;
  return unit === 0 ? `${bytes} bytes` : `${(Math.floor(size * 10) / 10).toFixed(1)} ${UNITS[unit]}`;
}

/** Whole percent, rounded down. */
export function showShare(part: number, whole: number): string {
  return `${Math.floor((part / whole) * 100)} %`;
}

/** Exit codes. 75 and 78 are EX_TEMPFAIL and EX_CONFIG of sysexits.h: they say whether trying again can help. */
export const EXIT = { success: 0, failure: 1, usage: 2, busy: 75, configuration: 78 } as const;

/** A command line that cannot be carried out; the message says why, and which name is nearest. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A command that failed; the message says it all, in one line. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** Runs a command. What the user can do something about goes to standard error; a bug rejects, for main.ts. */
export async function exitCodeOf(terminal: Terminal, run: () => ReturnType<Run>): Promise<number> {
  try {
    return (await run()) ?? EXIT.success;
  } catch (error) {
    const failure = failureOf(error);
    if (failure === undefined) throw error;
    terminal.stderr.write(failure.text);
    return failure.exitCode;
  }
}

/** The exit code and whole lines for standard error; undefined for a bug or a failing host. */
export function failureOf(error: unknown): ReturnType<typeof failure> | undefined {
  if (error instanceof UsageError) return failure(EXIT.usage, `${error.message}\nTry: pasted help`);
  if (error instanceof CommandError) return failure(EXIT.failure, error.message);
  if (error instanceof ConfigError) {
    const problems = error.problems.map((problem) => `\n  ${problem}`).join('');
    return failure(EXIT.configuration, `the settings cannot be used${problems}`);
  }
  if (error instanceof DatabaseRefusedError) return failure(EXIT.configuration, error.message);
  if (error instanceof DatabaseInUseError) return failure(EXIT.busy, withHolder(error));
  if (error instanceof StoreError) {
    // The store says what could not be done; SQLite or the system said why.
    const reason = error.cause instanceof Error ? `: ${error.cause.message}` : '';
    return failure(EXIT.failure, `${error.message}${reason} (${SETTINGS.databasePath.name})`);
  }
  return undefined;
}

function failure(exitCode: number, message: string) {
  return { exitCode, text: `pasted: ${message}\n` };
}

/** Of errno(3) or of node. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}

// Which process has a file or a port, where there is /proc: root sees every process, others their own.

function withHolder({ message, lockPath }: DatabaseInUseError): string {
  if (lockPath === undefined) return message;
  const real = orUndefined(() => realpathSync(lockPath));
  const holder = real === undefined ? undefined : findHolder((target) => target === real);
  return `${message}; ${holder === undefined ? `root can see which: fuser ${lockPath}` : `it is ${holder}`}`;
}

/** TCP_LISTEN of proc(5), /proc/net/tcp. */
const LISTENING = '0A';

/** Who listens on this TCP port, on any address: `process 123 (node dist/main.js)`. */
export function holderOfPort(port: number): string | undefined {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = ['tcp', 'tcp6'].flatMap((table) => (
    orUndefined(() => readFileSync(`/proc/net/${table}`, 'latin1').split('\n')) ?? []
  ));
  const sockets = lines.map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', , state]) => local.endsWith(suffix) && state === LISTENING)
    .map((fields) => `socket:[${fields[9]}]`);
  return sockets.length === 0 ? undefined : findHolder((target) => sockets.includes(target));
}

/** The answer must come soon, also on a host with thousands of connections. */
const MAX_DESCRIPTORS = 50_000;

/** The process, never this one, that has a descriptor which is a link to what `isIt` takes. */
function findHolder(isIt: (target: string) => boolean): string | undefined {
  const own = orUndefined(() => readlinkSync('/proc/self'));
  let left = MAX_DESCRIPTORS;
  for (const pid of orUndefined(() => readdirSync('/proc')) ?? []) {
    if (!/^\d+$/.test(pid) || pid === own) continue;
    for (const descriptor of orUndefined(() => readdirSync(`/proc/${pid}/fd`)) ?? []) {
      left -= 1;
      if (left < 0) return undefined;
      const target = orUndefined(() => readlinkSync(`/proc/${pid}/fd/${descriptor}`));
      if (target !== undefined && isIt(target)) return `process ${pid} (${commandOf(pid)})`;
    }
  }
  return undefined;
}

/** The program, its script and what it does. What follows on a command line may be anything, secrets included. */
function commandOf(pid: string): string {
  const words = orUndefined(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')) ?? [];
  const shown = words.filter((word) => word !== '' && !word.startsWith('-')).slice(0, 3).join(' ');
  return shown.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 120);
}

/** For what may not be there any more, or be somebody else's, or make no sense: undefined when the work throws. */
export function orUndefined<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
