// A process for commands under test: it keeps what they write, and the test sends signals and fatal errors.

import { Readable } from 'node:stream';
import type { Environment, ReadFile } from '../../src/config/load.ts';
import type { Clock } from '../../src/core/time.ts';
import { exitCodeOf } from '../../src/operator/failures.ts';
import type { Input, Terminal } from '../../src/operator/terminal.ts';
import type { Output } from '../../src/ops/log.ts';
import { movableClock } from './clock.ts';

export interface FakeTerminal {
  readonly terminal: Terminal;
  /** All that was written so far. */
  stdout(): string;
  stderr(): string;
  /** Exit codes that the command asked for while it ran. */
  readonly exits: number[];
  /** Whether new files are for their owner alone. */
  isRestricted(): boolean;
  signal(name: string): void;
  /** SIGHUP. */
  reload(): void;
  fatalError(error: unknown): void;
  /** Time goes by. */
  advance(ms: number): void;
}

export interface FakeParts {
  readonly environment?: Environment;
  readonly readFile?: ReadFile;
  readonly inheritedSockets?: number;
  /** Empty unless given. */
  readonly stdin?: Input;
  readonly writesToScreen?: boolean;
  readonly writesForOthers?: boolean;
  readonly writesToJournal?: boolean;
  /** Used instead of the clock that the test moves. */
  readonly clock?: Clock;
}

export function fakeTerminal(words: readonly string[] = [], parts: FakeParts = {}): FakeTerminal {
  const out: string[] = [];
  const err: string[] = [];
  const exits: number[] = [];
  const signalListeners: ((signal: string) => void)[] = [];
  const reloadListeners: (() => void)[] = [];
  const fatalListeners: ((error: unknown) => void)[] = [];
  let isRestricted = false;
  const clock = movableClock();

  const terminal: Terminal = {
    arguments: words,
    environment: parts.environment ?? {},
    stdout: outputInto(out),
    stderr: outputInto(err),
    readFile: parts.readFile ?? noFile,
    clock: parts.clock ?? clock,
    inheritedSockets: parts.inheritedSockets ?? 0,
    stdin: () => parts.stdin ?? Readable.from([]),
    writesForOthers: () => parts.writesForOthers ?? false,
    writesToScreen: parts.writesToScreen ?? false,
    writesToJournal: parts.writesToJournal ?? false,
    runtime: { node: '24.0.0', sqlite: '3.50.0', openssl: '3.5.0', platform: 'linux-x64' },
    cores: 2,
    boundYoungGeneration: async () => {},
    restrictNewFiles: () => {
      isRestricted = true;
    },
    onStopSignal: (listener) => signalListeners.push(listener),
    onReloadSignal: (listener) => reloadListeners.push(listener),
    onFatalError: (listener) => fatalListeners.push(listener),
    exit: (code) => exits.push(code),
    endBy: (signal) => {
      throw new Error(`ended by ${signal}`);
    },
  };

  return {
    terminal,
    advance: clock.advance,
    stdout: () => out.join(''),
    stderr: () => err.join(''),
    exits,
    isRestricted: () => isRestricted,
    signal: (name) => signalListeners.forEach((listener) => listener(name)),
    reload: () => reloadListeners.forEach((listener) => listener()),
    fatalError: (error) => fatalListeners.forEach((listener) => listener(error)),
  };
}

function outputInto(taken: string[]): Output {
  return {
    write: (written) => taken.push(textOf(written)) > 0,
    writeWhole: async (written) => taken.push(textOf(written)) > 0,
    whyLost: () => undefined,
  };
}

/** Bytes as one character each. */
function textOf(written: string | Uint8Array): string {
  return typeof written === 'string' ? written : Buffer.from(written).toString('latin1');
}

function noFile(path: string | 0): never {
  throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
}

/** What the user is told of the error, and the exit code. Throws the error if it is a bug. */
export function toldOf(error: unknown): { readonly exitCode: number; readonly text: string } {
  let text = '';
  const exitCode = exitCodeOf({ stderr: { write: (written) => (text += String(written)).length > 0 } }, error);
  return { exitCode, text };
}
