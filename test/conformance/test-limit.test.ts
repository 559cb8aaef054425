// scripts/test-limit.mjs: a test file that hangs ends the run with a message, and one that takes long does not.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { temporaryFolder } from '../support/programs.ts';
import { ROOT } from '../support/source.ts';

/** Exit code and output of a test file with this code, under a limit. */
function runFile(t: TestContext, limitMs: number, code: string): { status: number | null; output: string } {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'x.test.mjs'), `import { test } from 'node:test';\n${code}`);
  const limit = `${pathToFileURL(join(ROOT, 'scripts', 'test-limit.mjs')).href}?ms=${limitMs}`;
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const words = ['--import', limit, '--test', 'x.test.mjs'];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: folder, env, encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

for (const [title, code] of [
  ['a test that never gives way', "test('spins', () => { for (;;); });"],
  ['what stays open when its tests are over', "test('is well', () => {}); setInterval(() => {}, 1000);"],
] as const) {
  test(`test-limit: ${title} ends with a message that names the file`, (t) => {
    const { status, output } = runFile(t, 2000, code);
    assert.equal(status, 1);
    assert.match(output, /pasted: x\.test\.mjs is ended: no test of it came to its end within 2 s\n/);
  });
}

test('test-limit: a file whose tests take longer together goes on, and prints nothing of it', (t) => {
  const pause = 'new Promise((resolve) => setTimeout(resolve, 2000))';
  const code = `for (let count = 0; count < 6; count += 1) test(String(count), () => ${pause});`;
  const { status, output } = runFile(t, 10_000, code);
  assert.deepEqual([status, output.includes('pasted:'), /pass 6/.test(output)], [0, false, true], output);
});
