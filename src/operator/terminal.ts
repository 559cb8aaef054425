// What a command may see and do of its process, what it prints there, and how it ends: Terminal, the two outputs, and
// the words and exit code of each failure. main.ts makes a Terminal of the real process, tests make one of values.

import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { ConfigError, type Environment, type ReadFile } from '../config/load.ts';
import { SETTINGS } from '../config/settings.ts';
import type { Clock } from '../core/time.ts';
import { DatabaseInUseError, DatabaseRefusedError, StoreError } from '../store/store.ts';

/** As much as may wait for a slow reader. node queues what a pipe does not take at once, without a bound of its own. */
const MOST_WAITING_BYTES = 4 * 1024 * 1024;

/** How long the end of the process waits for a reader that has stopped reading. */
const DRAIN_MS = 1000;

/** process.stdout and process.stderr, as far as they are used: files, pipes and terminals alike. */
export interface OutputStream {
  readonly writableLength: number;
  write(written: string | Uint8Array, whenWritten?: (error?: Error | null) => void): boolean;
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown;
}

export interface DrainableOutput extends Output {
  /** Resolves when all that was taken has been written, or when it is not worth while to wait on. */
  drain(): Promise<void>;
}

/** Without the listener for errors here, a closed pipe would be an uncaught error, whose report is an error again. */
export function outputTo(stream: OutputStream): DrainableOutput {
  let isClosed = false;
  let hasLost = false;
  stream.on('error', (error) => {
    hasLost = true;
    // A full disk may have room again; a reader that went away does not come back.
    if (error.code === 'EPIPE') isClosed = true;
  });

  return {
    write: (written) => {
      if (isClosed || stream.writableLength > MOST_WAITING_BYTES) return false;
      stream.write(written);
      return true;
    },
    writeWhole: (written) => new Promise((resolve) => {
      // A stream of Node's says nothing more of what is written to it after an error.
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

// What a command may see and do of the process that it runs in. main.ts makes it of the real one, tests of values.

/** Where text goes, and bytes that another program is to read. */
export interface Output {
  /** False when it could not take them, which are then lost: nobody reads, or not fast enough. Never waits. */
  write(written: string | Uint8Array): boolean;
  /** Waits for a slow reader, however long. Resolves with false when it was not taken whole: nobody reads any more. */
  writeWhole(written: Uint8Array): Promise<boolean>;
}

/** process.stdin, as far as it is used. */
export interface Input extends AsyncIterable<Uint8Array> {
  /** It is a person at a keyboard. */
  readonly isTTY?: boolean;
  /** Whoever reads it gets this error. */
  destroy(error: Error): unknown;
}

/** What the process runs on, as it calls itself: for whoever looks into a fault. */
export interface Runtime {
  readonly node: string;
  readonly sqlite: string;
  readonly openssl: string;
  /** System and processor, such as `linux-x64`. */
  readonly platform: string;
}

export interface Terminal {
  /** What follows `pasted` on the command line. */
  readonly arguments: readonly string[];
  readonly environment: Environment;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly readFile: ReadFile;
  /** Standard input, which nothing reads before this is called. */
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
  readonly runtime: Runtime;
  /** Processors of this host. */
  readonly cores: number;
  /** Files made from now on are for their owner alone. */
  restrictNewFiles(): void;
  /** Called for SIGTERM and SIGINT, and for SIGHUP on a terminal, each time, instead of ending the process. */
  onStopSignal(listener: (signal: string) => void): void;
  /** Called for SIGHUP without a terminal, each time. Without a listener it ends the process, as by default. */
  onReloadSignal(listener: () => void): void;
  /** Called for an error that nothing caught, once it is on standard error; the process ends with 1 afterwards. */
  onFatalError(listener: (error: unknown) => void): void;
  /** Ends the process now, whatever still runs. */
  exit(code: number): void;
  /** Ends the process by a signal that it has caught, as if it had not: at once, threads and all. */
  endBy(signal: string): void;
}

// Tables for people: cells as text below each other. What is in them is the commands' business.

/** One line for each row; every column but the last as wide as its widest cell. */
export function alignColumns(rows: readonly (readonly string[])[]): string {
  const [first = []] = rows;
  const widths = first.slice(0, -1).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}\n`).join('');
}

// Amounts as people read them, in what commands print. JSON has the plain numbers.

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

// What goes wrong for reasons that the user can do something about, as words and an exit code. Everything else is a
// bug or a failing host, and main.ts reports it with its stack.

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
