// scripts/release.mjs as a process, from this source or from a copy of it.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT, repositoryFiles } from './source.ts';

export interface ReleaseOptions {
  /** The folder of the source, this one by default. */
  readonly source?: string;
  /** Beside PATH, or instead of it. */
  readonly environment?: Readonly<Record<string, string>>;
  /** In octal. */
  readonly umask?: string;
}

export interface ReleaseRun {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Makes a release in the folder `out`, and says how that went. */
export function tryRelease(out: string, options: ReleaseOptions = {}): ReleaseRun {
  const { source = ROOT, environment = {}, umask = '022' } = options;
  const command = [process.execPath, join(source, 'scripts', 'release.mjs'), out];
  return spawnSync('/bin/sh', ['-c', 'umask "$0"; exec "$@"', umask, ...command], {
    cwd: source,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...environment },
  });
}

/** The same, and throws unless it succeeds. */
export function makeRelease(out: string, options: ReleaseOptions = {}): ReleaseRun {
  const run = tryRelease(out, options);
  if (run.status !== 0) throw new Error(`the release ended with ${run.status}: ${run.stderr}`);
  return run;
}

/** Copies this source, without what git ignores. */
export function copySource(target: string): void {
  for (const path of repositoryFiles()) {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    cpSync(join(ROOT, path), join(target, path));
  }
}
