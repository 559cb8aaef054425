// Command lines as people paste them into a shell: run one after another in a folder and a home of their own.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import type { TestContext } from 'node:test';

export interface CommandLines {
  /** Where they run. */
  readonly folder: string;
  /** What the line writes to standard output. Fails the test unless it succeeds within 30 s. */
  readonly run: (line: string) => Promise<string>;
}

/** The folder is removed when the test ends. */
export function commandLines(t: TestContext): CommandLines {
  const root = mkdtempSync(join(tmpdir(), 'pasted-lines-'));
  t.after(() => rmSync(root, { recursive: true }));
  const [folder, home] = [join(root, 'work'), join(root, 'home')];
  for (const path of [folder, home]) mkdirSync(path);
  const environment = {
    PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}`,
    HOME: home,
    TMPDIR: root,
    LC_ALL: 'C.UTF-8',
  };

  async function run(line: string): Promise<string> {
    const child = spawn('sh', ['-c', line], {
      cwd: folder, env: environment, stdio: ['ignore', 'pipe', 'pipe'], timeout: 30_000,
    });
    const written: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] };
    child.stdout.on('data', (bytes: Buffer) => written.stdout.push(bytes));
    child.stderr.on('data', (bytes: Buffer) => written.stderr.push(bytes));
    const [code] = await once(child, 'close');
    assert.equal(code, 0, `${line}\n${Buffer.concat(written.stderr)}`);
    return Buffer.concat(written.stdout).toString();
  }

  return { folder, run };
}
