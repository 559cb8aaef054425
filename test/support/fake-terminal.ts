// A process for commands under test: what they write is kept, signals and fatal errors come from the test.

import type { Environment, ReadFile } from '../../src/config/sources.ts';
import type { Terminal } from '../../src/commands/terminal.ts';
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
  fatalError(error: unknown): void;
  /** Time goes by. */
  advance(ms: number): void;
}

export interface FakeParts {
  readonly environment?: Environment;
  readonly readFile?: ReadFile;
}

export function fakeTerminal(words: readonly string[] = [], parts: FakeParts = {}): FakeTerminal {
  const out: string[] = [];
  const err: string[] = [];
  const exits: number[] = [];
  const signalListeners: ((signal: string) => void)[] = [];
  const fatalListeners: ((error: unknown) => void)[] = [];
  let isRestricted = false;
  const clock = movableClock();

  const terminal: Terminal = {
    arguments: words,
    environment: parts.environment ?? {},
    stdout: { write: (written) => out.push(textOf(written)) > 0 },
    stderr: { write: (written) => err.push(textOf(written)) > 0 },
    readFile: parts.readFile ?? noFile,
    clock,
    cores: 2,
    restrictNewFiles: () => {
      isRestricted = true;
    },
    onStopSignal: (listener) => signalListeners.push(listener),
    onFatalError: (listener) => fatalListeners.push(listener),
    exit: (code) => exits.push(code),
  };

  return {
    terminal,
    advance: clock.advance,
    stdout: () => out.join(''),
    stderr: () => err.join(''),
    exits,
    isRestricted: () => isRestricted,
    signal: (name) => signalListeners.forEach((listener) => listener(name)),
    fatalError: (error) => fatalListeners.forEach((listener) => listener(error)),
  };
}

/** Bytes as one character each. */
function textOf(written: string | Uint8Array): string {
  return typeof written === 'string' ? written : Buffer.from(written).toString('latin1');
}

function noFile(path: string): never {
  throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
}
