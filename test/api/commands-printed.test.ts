// What commands print, as processes of their own: nothing is lost without a word, whatever standard output is. What
// the service logs is for main.test.ts.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { builtMain } from '../support/built.ts';
import { startMain } from '../support/main-process.ts';
import { CA_PASSWORD, openDesk } from '../support/operator.ts';
import { smallFileSystem } from '../support/small-file-system.ts';
import { ROOT } from '../support/source.ts';

const FULL = '/dev/full';

/** The exit code, and standard error. */
async function printInto(t: TestContext, path: string, words: readonly string[], SERVICE_DB = 'none.db') {
  const descriptor = openSync(path, 'w');
  const environment = { SERVICE_DB, SERVICE_PKI_CA_PASSWORD: CA_PASSWORD };
  const main = startMain(t, words, { environment, stdout: descriptor });
  closeSync(descriptor);
  return { code: await main.ended, stderr: main.stderr() };
}

test('printed: a command whose output the disk does not take ends with 1, and one line says so', async (t) => {
  if (!existsSync(FULL)) return t.skip(`there is no ${FULL}`);
  const desk = openDesk(t);
  await desk.createAdmin();
  const lines = [
    'help', 'help pki', 'pki --help', 'version', 'config', 'config --json', 'client', 'openapi', 'completion bash',
    'stats', 'check', 'audit', 'audit --json', 'audit --follow', 'pki list', 'pki crl', 'pki crl --der', 'pki ca',
    'paste bans', 'invite list', 'prune',
  ];
  for (const line of lines) {
    assert.deepEqual(await printInto(t, FULL, line.split(' '), desk.databasePath), {
      code: 1, stderr: 'pasted: standard output did not take all that was printed (ENOSPC)\n',
    }, line);
  }
});

test('printed: an invitation whose code nobody can have got is withdrawn', async (t) => {
  if (!existsSync(FULL)) return t.skip(`there is no ${FULL}`);
  const { databasePath, pasted, createAdmin } = openDesk(t);
  await createAdmin();
  for (const [index, words] of [['invite', 'create'], ['invite', 'create', '--json']].entries()) {
    assert.deepEqual(await printInto(t, FULL, words, databasePath), {
      code: 1, stderr: `pasted: invitation ${index + 1} is withdrawn: standard output did not take its code\n`,
    });
  }
  const gone = startMain(t, ['invite', 'create'], { environment: { SERVICE_DB: databasePath } });
  gone.child.stdout!.destroy();
  assert.equal(await gone.ended, 1);
  assert.equal(gone.stderr(), 'pasted: invitation 3 is withdrawn: standard output did not take its code\n');
  assert.deepEqual(JSON.parse((await pasted(['invite', 'list', '--json'])).stdout), { invitations: [], count: 0 });
});

test('printed: a disk that takes only the first part of it is no success', async (t) => {
  const folder = smallFileSystem(t, 1);
  if (folder === undefined) return t.skip('no file system can be mounted here');
  writeFileSync(join(folder, 'hog'), Buffer.alloc(960 * 1024));
  const path = join(folder, 'pastec');
  assert.deepEqual(await printInto(t, path, ['client']), {
    code: 1, stderr: 'pasted: standard output did not take all that was printed (ENOSPC)\n',
  });
  assert.ok(statSync(path).size > 0, 'there was room for a part');
});

test('printed: into a file it is whole, behind what is there', async (t) => {
  const path = join(openDesk(t).folder, 'printed');
  const descriptor = openSync(path, 'a');
  for (const words of [['version'], ['openapi'], ['version']]) {
    assert.equal(await startMain(t, words, { stdout: descriptor }).ended, 0);
  }
  closeSync(descriptor);
  const [first, ...lines] = readFileSync(path, 'utf8').trimEnd().split('\n');
  assert.equal(lines.pop(), first);
  assert.equal((JSON.parse(lines.join('\n')) as { openapi: string }).openapi, '3.1.0');
});

/** Prints into a pipe whose reader begins later than the service would wait for the reader of its log. */
function printSlowly(words: readonly string[], SERVICE_DB: string) {
  const script = '{ "$0" "$@"; echo "code $?" >&2; } | { head -c 1; sleep 1.5; cat; }';
  const environment = { PATH: process.env['PATH'], SERVICE_DB };
  return spawnSync('sh', ['-c', script, process.execPath, builtMain(), ...words], { encoding: 'utf8', env: environment });
}

test('printed: a command waits for its reader, however slow', () => {
  const { stdout, stderr } = printSlowly(['client'], 'none.db');
  assert.equal(stdout, readFileSync(join(ROOT, 'src', 'client', 'pastec'), 'utf8'));
  assert.ok(stdout.length > 2 ** 16, 'more than a pipe holds');
  assert.equal(stderr, 'code 0\n');
});

test('printed: so does one that has failed after it printed', async (t) => {
  const { databasePath, createAdmin } = openDesk(t);
  await createAdmin();
  const ids = Array.from({ length: 3000 }, (_, index) => `${index}`.padStart(26, 'a'));
  const { stdout, stderr } = printSlowly(['paste', 'rm', '--json', ...ids], databasePath);
  assert.deepEqual(JSON.parse(stdout), { removed: 0, not_found: ids });
  assert.equal(stderr, `pasted: paste not found: ${ids.join(', ')}\ncode 1\n`);
});
