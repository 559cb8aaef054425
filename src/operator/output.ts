// Standard output and standard error without surprises: a reader that went away or does not keep up neither ends the
// process nor fills its memory. What is written is not looked at.

import type { Environment, ReadFile } from '../config/load.ts';
import type { Clock } from '../core/time.ts';

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
