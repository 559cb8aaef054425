// Other people's programs as oracles. A test that needs one which is not installed is skipped, visibly and with the
// reason.

import { spawnSync } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';

export interface Finished {
  readonly status: number | null;
  readonly stdout: string;
  /** Standard output, then standard error: programs differ in where they say what. */
  readonly output: string;
}

/** Whether the program is on PATH. If not, the test is skipped and must return. */
export function isInstalled(t: Pick<TestContext, 'skip'>, program: string): boolean {
  const isFound = findProgram(program) !== undefined;
  if (!isFound) t.skip(`${program} is not installed`);
  return isFound;
}

/** The path of the program: in one of the folders, before any on PATH. */
export function findProgram(program: string, ...folders: readonly string[]): string | undefined {
  const places = [...folders, ...(process.env.PATH ?? '').split(delimiter)].map((folder) => join(folder, program));
  return places.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Runs a program to its end, at most 30 s, and never throws because of what it answers. */
export function run(program: string, args: readonly string[], cwd: string): Finished {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    timeout: 30_000,
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, LC_ALL: 'C.UTF-8', TZ: 'UTC' },
  });
  if (error !== undefined) throw error;
  return { status, stdout, output: `${stdout}${stderr}` };
}

/** A temporary folder that is removed when the test ends. */
export function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-interop-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}
