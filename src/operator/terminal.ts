// What a command may see and do of its process, and what it prints there. main.ts makes a Terminal, and so do tests.

import type { Readable } from 'node:stream';
import type { Worker } from 'node:worker_threads';
import type { Environment, ReadFile } from '../config/load.ts';
import { type Clock, showCount } from '../core/time.ts';
import type { Output } from '../ops/log.ts';

export interface Terminal {
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
  readonly writesToScreen: boolean;
  /** Standard output is a file that its group or others may read. */
  readonly writesForOthers: () => boolean;
  /** Standard output goes to the journal (JOURNAL_STREAM of systemd.exec(5)), which takes priorities. */
  readonly writesToJournal: boolean;
  readonly runtime: Readonly<Record<'node' | 'sqlite' | 'openssl' | 'platform', string>>;
  readonly cores: number;
  /** The store's writer thread, started early for `pasted serve`: it takes as long to load as all the rest. */
  readonly thread?: Worker | undefined;
  /** From now on, V8's young generation takes no more room than under a moderate load. */
  boundYoungGeneration(): Promise<void>;
  restrictNewFiles(): void;
  /** Called for each SIGTERM and SIGINT, and on a terminal for each SIGHUP; the process then goes on. */
  onStopSignal(listener: (signal: string) => void): void;
  /** Called for each SIGHUP without a terminal. Without a listener SIGHUP ends the process, as by default. */
  onReloadSignal(listener: () => void): void;
  /** Called for an error that nothing caught, once it is on standard error; the process then ends with 1. */
  onFatalError(listener: (error: unknown) => void): void;
  /** Ends the process now, whatever still runs. */
  exit(code: number): void;
  /** Ends the process by a signal as if nothing had caught that signal: at once, threads and all. */
  endBy(signal: string): void;
}

export interface Given {
  /** The values by name. An option that takes no value, such as `--json`, has an empty one; no other has. */
  readonly options: ReadonlyMap<string, string>;
  readonly operands: readonly string[];
}

/** A command. It resolves with the exit code, or with nothing for success. */
export type Run = (terminal: Terminal, given: Given) => number | void | Promise<number | void>;

export type Input = Readable & { readonly isTTY?: boolean };

/** One line of JSON with --json, text for people otherwise. */
export function report(output: Output, { options }: Given, json: object, text: string): void {
  output.write(options.has('--json') ? `${JSON.stringify(json)}\n` : text);
}

export function printWarnings({ stderr }: Terminal, warnings: readonly string[]): void {
  for (const warning of warnings) stderr.write(`pasted: ${warning}\n`);
}

/** One line for each row. The last column may have any width, so what may be long comes there. */
export function alignColumns(rows: readonly (readonly string[])[]): string {
  const [first = []] = rows;
  const widths = first.slice(0, -1).map((_, at) => rows.reduce((most, row) => Math.max(most, row[at]!.length), 0));
  return rows.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}\n`).join('');
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;

/** Such as `512 bytes` and `3.1 MiB`: one digit after the point, rounded down, so that nothing seems full too early. */
export function showBytes(bytes: number): string {
  if (bytes === Infinity) return 'any number of bytes';
  let [size, unit] = [bytes, 0];
  for (; size >= 1024 && unit < UNITS.length - 1; unit += 1) size /= 1024;
  return unit === 0 ? `${bytes} bytes` : `${(Math.floor(size * 10) / 10).toFixed(1)} ${UNITS[unit]}`;
}

export function heldText(pastes: number, contentBytes: number): string {
  return `${showCount(pastes, 'paste')} with ${showBytes(contentBytes)} of content`;
}
