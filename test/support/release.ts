// scripts/release.mjs as a process, from this source or from a copy of it.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from './programs.ts';
import { ROOT, repositoryFiles } from './source.ts';

export interface ReleaseOptions {
  /** The folder of the source, this one by default. */
  readonly source?: string;
  /** Variables beside PATH, which they may replace. */
  readonly environment?: Readonly<Record<string, string>>;
  /** In octal. */
  readonly umask?: string;
  /** Arguments after the folder. */
  readonly words?: readonly string[];
}

export interface ReleaseRun {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Makes a release in the folder `out`, and says how that went. */
export function tryRelease(out: string, options: ReleaseOptions = {}): ReleaseRun {
  const { source = ROOT, environment = {}, umask = '022', words = [] } = options;
  const command = [process.execPath, join(source, 'scripts', 'release.mjs'), out, ...words];
  return spawnSync('/bin/sh', ['-c', 'umask "$0"; exec "$@"', umask, ...command], {
    cwd: source,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...environment },
    timeout: 60_000,
  });
}

/** The same, and throws unless it succeeds. */
export function makeRelease(out: string, options: ReleaseOptions = {}): ReleaseRun {
  const ended = tryRelease(out, options);
  if (ended.status !== 0) throw new Error(`the release ended with ${ended.status}: ${ended.stderr}`);
  return ended;
}

/** Copies this source, without what git ignores. */
export function copySource(target: string): void {
  for (const path of repositoryFiles()) {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    cpSync(join(ROOT, path), join(target, path));
  }
}

/** The same, as a git repository with one commit; gives the id of the commit. */
export function commitSource(target: string): string {
  copySource(target);
  const git = (...words: string[]): string => {
    const named = ['-c', 'user.name=A', '-c', 'user.email=a@example.invalid', '-c', 'commit.gpgSign=false'];
    const { status, output, stdout } = run('git', ['-C', target, ...named, ...words], target);
    if (status !== 0) throw new Error(`git ${words.join(' ')}: ${output}`);
    return stdout.trim();
  };
  git('init', '--quiet');
  git('add', '--all');
  git('commit', '--quiet', '--message=Everything');
  return git('rev-parse', 'HEAD');
}
