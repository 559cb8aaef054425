// podman with a storage of its own in a temporary folder, and containers that are removed when the test ends.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { isInstalled, run, type Finished } from './programs.ts';

/** Exit codes of `podman run` when it cannot run containers: for its own failures, and for those of the runtime. */
const CANNOT_RUN = [125, 126];

// podman's default limits are higher than some hosts allow.
const LIMITS = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024'];

/** As strict as the Containerfile says; on this host's loopback. */
const STRICT = [
  '--rm', '--network', 'host', '--read-only', '--read-only-tmpfs=false', '--cap-drop', 'all',
  '--security-opt', 'no-new-privileges', ...LIMITS,
];

export interface Running {
  readonly child: ChildProcess;
  /** Resolves with all output so far once it matches; rejects when the container ends before. */
  readonly said: (pattern: RegExp) => Promise<string>;
  readonly ended: Promise<readonly [code: number | null, signal: string | null]>;
}

export interface Containers {
  podman(...args: readonly string[]): Finished;
  /** Runs a command of the image to its end. */
  run(image: string, options: readonly string[], ...command: readonly string[]): Finished;
  /** Starts the command that the image names. */
  start(image: string, name: string, options: readonly string[]): Running;
  /**
   * What `attempt` gives with the first runtime that can run containers here, since some need another form of control
   * groups. If there is none, the test is skipped and must return.
   */
  onSomeRuntime(attempt: () => Finished): Finished | undefined;
}

/** Whether the command line of any process names the folder. */
function isNamedByProcesses(folder: string): boolean {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).some((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(folder);
    } catch (error) {
      if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
      throw error;
    }
  });
}

/** If podman is not installed, the test is skipped and must return. */
export function containers(t: TestContext): Containers | undefined {
  if (!isInstalled(t, 'podman')) return undefined;
  // Not where TMPDIR says: podman takes no --runroot of more than 50 characters.
  const folder = mkdtempSync('/tmp/pasted-containers-');
  const storage = [
    '--root', join(folder, 'storage'), '--runroot', join(folder, 'run'), '--tmpdir', join(folder, 'tmp'),
    '--storage-driver', 'vfs', '--cgroup-manager', 'cgroupfs', '--events-backend', 'none',
  ];
  let runtime: string[] = [];
  const podman = (...args: readonly string[]): Finished => run('podman', [...storage, ...runtime, ...args], folder);
  t.after(async () => {
    podman('rm', '--all', '--force', '--time', '0');
    // The processes that watched the containers still clean up after them.
    while (isNamedByProcesses(folder)) await setTimeout(50);
    rmSync(folder, { recursive: true });
  });

  return {
    podman,
    run: (image, options, ...command) => podman('run', ...STRICT, ...options, image, ...command),
    start: (image, name, options) => {
      const words = [...storage, ...runtime, 'run', '--name', name, ...STRICT, ...options, image];
      const child = spawn('podman', words, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
      let text = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (data) => (text += data));
      }
      const ended = once(child, 'close') as Promise<[number | null, string | null]>;
      const failed = ended.then(([code]) => Promise.reject(new Error(`ended with ${code}: ${text}`)));
      failed.catch(() => {});
      const said = async (pattern: RegExp): Promise<string> => {
        while (!pattern.test(text)) await Promise.race([once(child.stdout, 'data'), failed]);
        return text;
      };
      return { child, said, ended };
    },
    onSomeRuntime: (attempt) => {
      let said = '';
      for (const choice of [[], ['--runtime', 'runc'], ['--runtime', 'crun']]) {
        runtime = choice;
        const finished = attempt();
        if (!CANNOT_RUN.includes(finished.status ?? 125)) return finished;
        said = finished.output.trim().split('\n').at(-1) ?? '';
      }
      t.skip(`podman cannot run containers here: ${said}`);
      return undefined;
    },
  };
}
