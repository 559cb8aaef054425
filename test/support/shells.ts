// The command-line client under the shells that it is made for. A run gets a home and a temporary folder of its own,
// and must leave the temporary folder empty, as it found it.

import assert from 'node:assert/strict';
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

export const SCRIPT = fileURLToPath(new URL('../../src/client/pastec', import.meta.url));

export interface Shell {
  readonly name: string;
  readonly program: string;
  readonly options: readonly string[];
}

/** Each is the /bin/sh of some system, or a shell that people run scripts with. */
export const SHELLS: readonly Shell[] = [
  { name: 'dash', program: 'dash', options: [] },
  { name: 'bash --posix', program: 'bash', options: ['--posix'] },
  { name: 'busybox ash', program: 'busybox', options: ['ash'] },
  { name: 'ksh', program: 'ksh', options: [] },
  { name: 'mksh', program: 'mksh', options: [] },
  { name: 'yash', program: 'yash', options: [] },
  { name: 'zsh', program: 'zsh', options: [] },
];

/** For tests that do not depend on the shell. */
export const SH: Shell = { name: 'sh', program: 'sh', options: [] };

export interface Ended {
  /** The exit code, or the name of the signal that ended it. */
  readonly code: number | string;
  readonly stdout: Buffer;
  readonly stderr: string;
  /** Standard output as text. */
  readonly text: string;
}

export interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<Ended>;
  /** Resolves when standard error or standard output matches; rejects when the run ends without a match. */
  says(pattern: RegExp): Promise<void>;
}

interface RunOptions {
  readonly input?: string | Uint8Array;
  readonly environment?: Readonly<Record<string, string>>;
}

export interface Client {
  /** The working folder, with room for files. */
  readonly folder: string;
  readonly home: string;
  run(args: readonly string[], options?: RunOptions): Promise<Ended>;
  /** Runs in a process group of its own, whose id is the child's. Standard input stays open without `input`. */
  start(args: readonly string[], options?: RunOptions): Running;
  /** On a pseudo-terminal of util-linux's script(1), which must be there; `line` follows the client's name in sh. */
  onTerminal(line: string, options?: RunOptions): Running;
}

/** `url` is the server's; everything is removed when the test ends. */
export function clientOf(t: TestContext, url: string, shell: Shell = SH, script: string = SCRIPT): Client {
  const root = mkdtempSync(join(tmpdir(), 'pastec-'));
  const [folder, home] = [join(root, 'work'), join(root, 'home')];
  for (const path of [folder, home]) mkdirSync(path);
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const environment = {
    PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}`,
    HOME: home,
    PASTEC_SERVER: url,
    LC_ALL: 'C.UTF-8',
    TERM: 'xterm',
  };

  const interpreter = [shell.program, ...shell.options].join(' ');

  const start = (args: readonly string[], options: RunOptions = {}): Running =>
    startProgram(shell.program, [...shell.options, script, ...args], options);

  const onTerminal = (line: string, options: RunOptions = {}): Running =>
    startProgram('script', ['-qec', `${interpreter} '${script}' ${line}`, '/dev/null'], options);

  function startProgram(program: string, args: readonly string[], options: RunOptions): Running {
    const temporary = mkdtempSync(join(root, 'tmp-'));
    const child = spawn(program, args, {
      cwd: folder,
      env: { ...environment, TMPDIR: temporary, ...options.environment },
      detached: true,
    });
    t.after(() => endGroup(child.pid));
    if (options.input !== undefined) child.stdin.on('error', () => undefined).end(options.input);
    return watch(child, temporary);
  }

  return { folder, home, start, onTerminal, run: (args, options) => start(args, { input: '', ...options }).ended };
}

function watch(child: ChildProcessWithoutNullStreams, temporary: string): Running {
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on('data', (bytes: Buffer) => out.push(bytes));
  child.stderr.on('data', (bytes: Buffer) => err.push(bytes));
  const said = (): string => `${Buffer.concat(err)}${Buffer.concat(out)}`;

  const ended = once(child, 'close').then(([code, signal]): Ended => {
    // A killed client cleans up nothing, and the processes killed with it may still be ending.
    if (signal !== 'SIGKILL') assert.deepEqual(leftovers(temporary, child.pid ?? 0), [], 'nothing is left behind');
    const [stdout, stderr] = [Buffer.concat(out), Buffer.concat(err).toString()];
    return { code: (code ?? signal) as number | string, stdout, stderr, text: stdout.toString() };
  });

  const says = (pattern: RegExp): Promise<void> => new Promise((resolve, reject) => {
    const look = (): void => {
      if (pattern.test(said())) resolve();
    };
    child.stderr.on('data', look);
    child.stdout.on('data', look);
    ended.then(() => reject(new Error(`ended without saying ${pattern}: ${said()}`)), reject);
    look();
  });

  return { child, ended, says };
}

/** Files in the temporary folder, files in shared memory with the process's id, and living processes of its group. */
function leftovers(temporary: string, pid: number): string[] {
  const shared = listed('/dev/shm').filter((name) => name.startsWith(`pastec.${pid}.`));
  return [...readdirSync(temporary), ...shared, ...livingMembers(pid)];
}

/**
 * The living members of a process group. Zombies do not count, nor do processes that are ending: their files are closed
 * before they are zombies, and that is how the end of a run is known here. Finds none where there is no /proc.
 */
function livingMembers(group: number): string[] {
  if (!hasMembers(group)) return [];
  return listed('/proc').filter((name) => /^\d+$/.test(name)).filter((id) => {
    const stat = /\) (\S) \d+ (\d+) \d+ -?\d+ -?\d+ (\d+) /.exec(readOr(`/proc/${id}/stat`));
    const [, state, memberOf, flags] = stat ?? [];
    return Number(memberOf) === group && state !== 'Z' && (Number(flags) & PF_EXITING) === 0;
  });
}

/** linux/sched.h; the flags are in proc_pid_stat(5). */
const PF_EXITING = 4;

/** Whether the group has members, zombies too. To ask costs nothing beside a look at every process of the host. */
function hasMembers(group: number): boolean {
  try {
    return process.kill(-group, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended, as it should.
  }
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
