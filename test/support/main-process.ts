// dist/main.js as a process of its own, whose environment holds only what the test gives. It is killed when the test
// ends, if it still runs.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { builtMain } from './built.ts';

export interface MainProcess {
  readonly child: ChildProcess;
  /** Its working directory, removed with the test. */
  readonly folder: string;
  /** What has come so far. */
  stdout(): string;
  stderr(): string;
  /** The first match in standard output, as soon as there is one. Rejects when the process ends without a match. */
  printed(pattern: RegExp): Promise<RegExpMatchArray>;
  /** The exit code, or the name of the signal, after everything that it wrote has arrived. */
  readonly ended: Promise<number | string>;
}

interface StartOptions {
  readonly environment?: Readonly<Record<string, string>>;
  /** A program, and its words, that starts node or becomes it. */
  readonly through?: readonly [string, ...string[]];
  /** Options of node itself. */
  readonly nodeOptions?: readonly string[];
  /** The main.js of another build. */
  readonly build?: string;
  /** Standard input; nothing unless given. */
  readonly stdin?: 'pipe' | number;
  /** A descriptor that standard output goes to instead of the test. */
  readonly stdout?: number;
}

/** A folder that is removed when the test ends. */
export function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-main-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Starts the process. To know when it serves, wait for what it prints. */
export function startMain(t: TestContext, words: readonly string[], options: StartOptions = {}): MainProcess {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-main-'));
  const [program, ...before] = options.through ?? [process.execPath];
  const { nodeOptions = [], build = builtMain() } = options;
  const child = spawn(program, [...before, ...nodeOptions, build, ...words], {
    cwd: folder,
    env: { ...options.environment },
    stdio: [options.stdin ?? 'ignore', options.stdout ?? 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true });
  });

  function printed(pattern: RegExp): Promise<RegExpMatchArray> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const match = pattern.exec(out);
        if (match !== null) resolve(match);
      };
      child.stdout?.on('data', look);
      void ended.then((code) => reject(new Error(`ended with ${code} before it printed ${pattern}:\n${out}${err}`)));
      look();
    });
  }

  return { child, folder, stdout: () => out, stderr: () => err, printed, ended };
}

/** The service on a free port; resolves with its address once it listens. */
export async function startServing(
  t: TestContext,
  options: StartOptions & { readonly words?: readonly string[] } = {},
): Promise<MainProcess & { readonly url: string; readonly port: number }> {
  const main = startMain(t, options.words ?? [], { ...options, environment: { SERVICE_PORT: '0', ...options.environment } });
  const [, url = ''] = await main.printed(/(https?:\/\/127\.0\.0\.1:\d+)\b/);
  return { ...main, url, port: Number(new URL(url).port) };
}
