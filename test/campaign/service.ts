// The built service as a process that a row starts, pauses and kills, again and again on the same database. Limits are
// switched off unless the row sets them; test/support/main-process.ts is for tests that start the service once.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';

export interface ServiceOptions {
  /** The built service's entry. */
  readonly main: string;
  /** Where the database is, and whatever else the process leaves. */
  readonly folder: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Keeps the terminal's signals away, for a runner that ends its units, and so its services, by itself. */
  readonly ownGroup?: boolean;
  /** A program, with its words, that starts the service: `pid` is then its own, and `kill` ends all it has started. */
  readonly parent?: readonly string[];
}

export interface Service {
  /** Resolves when it listens; rejects when it ends before, with what it wrote. */
  readonly ready: Promise<void>;
  /** 0 until the service is ready. */
  readonly port: () => number;
  /** From its start until it listened. */
  readonly readyMs: () => number;
  readonly databasePath: string;
  readonly pid: () => number;
  /** Only the end of its output, because a service under load logs gigabytes. */
  readonly output: () => string;
  /** Resolves when it next writes something that matches; rejects when it does not within SAYING_MS. */
  says(pattern: RegExp): Promise<void>;
  readonly isAlive: () => boolean;
  /** Runs another command of the program with the same settings, to its end. */
  command(words: readonly string[]): Commanded;
  /** The same, while everything else goes on. */
  beginCommand(words: readonly string[]): { readonly ended: Promise<Commanded>; kill(): void };
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
  /** SIGTERM; resolves with the exit code, or the signal's name. */
  stop(): Promise<number | string>;
  /** From `pause` to `resume` none of its threads runs, so its files are as a kill would leave them. Linux only. */
  pause(): void;
  resume(): void;
}

export interface Commanded {
  /** Null when it was killed. */
  readonly status: number | null;
  readonly output: string;
}

/** Switches off everything that would refuse a row's requests because of their number. */
export const WITHOUT_LIMITS = {
  SERVICE_PORT: '0',
  SERVICE_RATE_MAX: '0',
  SERVICE_LOOKUP_RATE_MAX: '0',
  SERVICE_DEDUP_MAX: '0',
  SERVICE_POW_DIFFICULTY: '0',
  SERVICE_REGISTER_POW: '0',
  SERVICE_POW_SECRET: 'the campaign signs its own challenges',
  SERVICE_PKI_ENABLED: '1',
  SERVICE_PKI_CA_PASSWORD: 'the password of the CA',
};

const OUTPUT_KEPT = 2 ** 22;

/** For messages that the service writes at once. */
const SAYING_MS = 30_000;

const LISTENING = /https?:\/\/127\.0\.0\.1:(\d+)\b/;

/** Starts at once; await `ready` before asking it for anything. */
export function startService(options: ServiceOptions): Service {
  const { main, folder, environment = {}, ownGroup = false, parent } = options;
  mkdirSync(folder, { recursive: true });
  const databasePath = environment['SERVICE_DB'] ?? join(folder, 'pasted.db');
  const startedMs = performance.now();
  let readyMs = 0;
  let port = 0;
  let output = '';
  const waiting = new Map<RegExp, () => void>();
  const env = { ...WITHOUT_LIMITS, SERVICE_DB: databasePath, ...environment };
  const [program = process.execPath, ...words] = parent ?? [process.execPath, main];
  const child = spawn(program, words, {
    cwd: folder,
    env,
    detached: ownGroup || parent !== undefined,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let isClosed = false;
  const killAll = (): void => {
    if (parent === undefined) child.kill('SIGKILL');
    // Until its output is closed, some process of the group lives, so no other group has its number.
    else if (!isClosed && child.pid !== undefined) killGroup(child.pid);
  };
  // A row may end without its `finally`; even then nothing may outlive the campaign.
  process.once('exit', killAll);
  const ended = once(child, 'close').then(([code, signal]) => {
    isClosed = true;
    process.off('exit', killAll);
    return (code ?? signal) as number | string;
  });

  const ready = new Promise<void>((resolve, reject) => {
    const hear = (heard: string): void => {
      output += heard;
      if (output.length > 2 * OUTPUT_KEPT) output = output.slice(-OUTPUT_KEPT);
      // 500 characters more, because a line may come in two pieces.
      for (const [pattern, resolve] of waiting) if (pattern.test(output.slice(-heard.length - 500))) resolve();
      if (port !== 0) return;
      port = Number(LISTENING.exec(output)?.[1] ?? 0);
      if (port === 0) return;
      readyMs = performance.now() - startedMs;
      resolve();
    };
    for (const stream of [child.stdout, child.stderr] as Readable[]) stream.setEncoding('utf8').on('data', hear);
    void ended.then((how) => reject(new Error(`the service ended with ${how} before it listened:\n${output}`)));
  });
  // A kill before it listens rejects it too; that must not count as unhandled.
  ready.catch(() => undefined);

  return {
    ready,
    port: () => port,
    readyMs: () => readyMs,
    databasePath,
    pid: () => child.pid ?? 0,
    output: () => output,
    says: async (pattern) => {
      const said = new Promise<boolean>((resolve) => waiting.set(pattern, () => resolve(true)));
      const isSaid = await Promise.race([said, pause(SAYING_MS, false, { ref: false })]);
      waiting.delete(pattern);
      if (!isSaid) throw new Error(`the service did not say ${pattern} in ${SAYING_MS} ms:\n${output.slice(-2000)}`);
    },
    isAlive: () => child.exitCode === null && child.signalCode === null,
    command: (words) => {
      const options = { cwd: folder, env, encoding: 'utf8' } as const;
      const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...words], options);
      return { status, output: stdout + stderr };
    },
    beginCommand: (words) => {
      let output = '';
      const begun = spawn(process.execPath, [main, ...words], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
      const hear = (text: string): void => void (output += text);
      for (const stream of [begun.stdout, begun.stderr]) stream.setEncoding('utf8').on('data', hear);
      const ended = once(begun, 'close').then(([status]) => ({ status: status as number | null, output }));
      return { ended, kill: () => void begun.kill('SIGKILL') };
    },
    kill: async () => {
      killAll();
      await ended;
    },
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
    pause: () => {
      child.kill('SIGSTOP');
      while (!isStopped(child.pid ?? 0));
    },
    resume: () => void child.kill('SIGCONT'),
  };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // The whole group has just ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Each thread stops some time after the signal was sent (proc_pid_stat(5): the state comes after the name). */
function isStopped(pid: number): boolean {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.every((task) => /\) [TtZX] /.test(readFileSync(`/proc/${pid}/task/${task}/stat`, 'latin1')));
}
