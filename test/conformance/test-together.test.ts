// scripts/test-together.mjs and test-shared.mjs: test files that share a process cannot disturb each other unseen.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { temporaryFolder } from '../support/programs.ts';
import { ROOT } from '../support/source.ts';

interface Together {
  readonly files: readonly string[];
  readonly members: ReadonlyMap<string, readonly string[]>;
}

const { together } = await import(pathToFileURL(join(ROOT, 'scripts', 'test-together.mjs')).href) as {
  together(root: string, files: readonly string[]): Together;
};

/** A folder with these files under test/, and which of them share a process, by their names. */
function arrange(t: TestContext, texts: Readonly<Record<string, string>>) {
  const root = temporaryFolder(t);
  for (const [path, text] of Object.entries(texts)) {
    mkdirSync(dirname(join(root, 'test', path)), { recursive: true });
    writeFileSync(join(root, 'test', path), text);
  }
  const paths = Object.keys(texts).filter((path) => path.endsWith('.test.ts')).map((path) => join(root, 'test', path));
  const { files, members } = together(root, paths);
  const shared = [...members.values()].map((files) => files.map((file) => basename(file, '.test.ts')).join(' '));
  return { files, shared };
}

/** Two files that share a process, the first with a test of this body. */
function runShared(t: TestContext, body: string): { status: number | null; output: string } {
  const begin = "import { test } from 'node:test';\n";
  const { files, shared } = arrange(t, {
    'unit/first.test.ts': `${begin}test('the first', async (t) => { ${body} });`,
    'unit/second.test.ts': `${begin}test('the second', () => {});`,
  });
  assert.deepEqual(shared, ['first second']);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(process.execPath, [...files], { env, encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

test('together: files that may share a process do, in the place of the first of them', (t) => {
  const { files, shared } = arrange(t, {
    'api/a.test.ts': "import '../support/harmless.ts';",
    'api/hooks.test.ts': "import { before, test } from 'node:test';",
    'api/measures.test.ts': 'process.cpuUsage();',
    'api/patches.test.ts': "import '../support/patches.ts';",
    'api/quick-a.test.ts': "import '../support/quick-derivation.ts';",
    'api/quick-b.test.ts': "import '../support/quick-derivation.ts';",
    'api/starts.test.ts': "import '../support/starts.ts';",
    'api/z.test.ts': 'process.env.PATH;',
    'crash/a.test.ts': '',
    'support/harmless.ts': '',
    'support/patches.ts': 'syncBuiltinESMExports();',
    'support/quick-derivation.ts': 'syncBuiltinESMExports();',
    'support/starts.ts': "import { spawn } from 'node:child_process';",
  });
  assert.deepEqual(shared, ['a z', 'quick-a quick-b']);
  assert.deepEqual(files.map((file) => basename(file).replace('.test', '')), [
    'api-1.mjs', 'hooks.ts', 'measures.ts', 'patches.ts', 'api-quick-1.mjs', 'starts.ts', 'a.ts',
  ]);
});

test('together: what a test changes and gives back is no matter', (t) => {
  const { status, output } = runShared(t, "t.mock.method(globalThis, 'fetch'); await t.test('one', () => {});");
  assert.deepEqual([status, /pass 3/.test(output)], [0, true], output);
});

for (const [change, body] of [
  ['process.env.LEFT', "process.env['LEFT'] = '1';"],
  ['the folder', "process.chdir('/');"],
  ['the umask', 'process.umask(0o077);'],
  ['listeners of SIGTERM', "process.on('SIGTERM', () => {});"],
  ['globalThis.fetch', 'globalThis.fetch = () => {};'],
  ['fs.readFileSync', "(await import('node:fs')).default.readFileSync = () => {};"],
] as const) {
  test(`together: a test that changes ${change} fails the run, and is named`, (t) => {
    // With `process` written like this, the text of the file does not tell what the test does.
    const { status, output } = runShared(t, body.replaceAll('process.', "globalThis['process']."));
    assert.equal(status, 1, output);
    assert.match(output, new RegExp(`the test 'the first' has changed its process: ${change}\\b`));
  });
}

for (const [title, body] of [
  ['ends its process', "globalThis['process'].exit(0);"],
  ['leaves an error behind', "setImmediate(() => { throw new Error('x'); }); await new Promise(() => {});"],
] as const) {
  test(`together: a test that ${title} fails the run, and is named`, (t) => {
    const { status, output } = runShared(t, body);
    assert.equal(status, 1, output);
    assert.match(output, /the first/);
  });
}
