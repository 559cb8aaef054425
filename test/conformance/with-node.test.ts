// The scripts that find or fetch a Node: what a host with a new Node, with an older one and without a registry gets.
// Nothing here reaches a registry: what stands in for npm is a program of the test.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { olderNode } from '../support/older-node.ts';
import { ROOT } from '../support/source.ts';

type WithLock = (path: string, onWait: () => void, work: () => Promise<void>) => Promise<void>;

/** A folder with the scripts of the repository and a script that tells how it was run; removed when the test ends. */
function checkout(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-with-node-'));
  t.after(() => rmSync(folder, { recursive: true }));
  cpSync(join(ROOT, 'scripts'), join(folder, 'scripts'), { recursive: true });
  writeFileSync(join(folder, 'tell.mjs'), `
    console.log(JSON.stringify({ node: process.execPath, path: process.env.PATH, args: process.argv.slice(2) }));
    process.exitCode = 7;`);
  return folder;
}

/** The pinned versions of a checkout, oldest first. */
function pinnedVersions(folder: string): string[] {
  const source = readFileSync(join(folder, 'scripts', 'runtime.mjs'), 'utf8');
  return [...source.matchAll(/^ {2}'([\d.]+)': \{$/gm)].map(([, version = '']) => version);
}

function runtimeFolder(folder: string, version = ''): string {
  const bin = join(folder, '.runtime', `node-${version}-${process.platform}-${process.arch}`, 'bin');
  mkdirSync(bin, { recursive: true });
  return bin;
}

/** Puts the running Node where a fetched one would be kept, and returns its folder. */
function keepRuntime(folder: string): string {
  const bin = runtimeFolder(folder, pinnedVersions(folder)[0]);
  symlinkSync(process.execPath, join(bin, 'node'));
  return bin;
}

function withNode(node: string, folder: string, args: readonly string[], path: string) {
  const script = join(folder, 'scripts', 'with-node.mjs');
  return spawnSync(node, [script, ...args], { cwd: folder, encoding: 'utf8', env: { PATH: path } });
}

test('with-node: a Node that is new enough runs the script itself', (t) => {
  const folder = checkout(t);
  const { status, stdout, stderr } = withNode(process.execPath, folder, ['tell.mjs', 'one', '--two'], '/nowhere');
  assert.equal(stderr, '');
  assert.deepEqual(JSON.parse(stdout), { node: process.execPath, path: '/nowhere', args: ['one', '--two'] });
  assert.equal(status, 7);
  assert.ok(!existsSync(join(folder, '.runtime')));
});

test('with-node: no script is a usage error', (t) => {
  const { status, stderr } = withNode(process.execPath, checkout(t), [], '');
  assert.match(stderr, /^pasted: usage: [^\n]+\n$/);
  assert.equal(status, 2);
});

test('with-node: an older Node hands over to the kept one, first on PATH for its children', (t) => {
  const older = olderNode(t);
  if (older === undefined) return;
  const folder = checkout(t);
  const bin = keepRuntime(folder);
  const { status, stdout, stderr } = withNode(older, folder, ['tell.mjs', 'one', '--two'], '/nowhere');
  assert.equal(stderr, '');
  const told = JSON.parse(stdout) as { node: string; path: string; args: string[] };
  assert.equal(told.node, process.execPath);
  assert.equal(told.path, `${bin}:/nowhere`);
  assert.deepEqual(told.args, ['one', '--two']);
  assert.equal(status, 7);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`with-node: ${signal} reaches the script, whose exit code counts`, async (t) => {
    const older = olderNode(t);
    if (older === undefined) return;
    const folder = checkout(t);
    keepRuntime(folder);
    writeFileSync(join(folder, 'wait.mjs'), `
      const timer = setInterval(() => {}, 1000);
      process.on('${signal}', () => { console.log('told to stop'); process.exit(5); });
      console.log('waiting');`);
    const child = spawn(older, [join(folder, 'scripts', 'with-node.mjs'), join(folder, 'wait.mjs')]);
    t.after(() => child.kill('SIGKILL'));
    let output = '';
    child.stdout.on('data', (text) => (output += String(text)));
    await once(child.stdout, 'data');
    child.kill(signal);
    assert.deepEqual(await once(child, 'close'), [5, null]);
    assert.equal(output, 'waiting\ntold to stop\n');
  });
}

test('campaign --node: goes on with the pinned Node of that major version, and refuses any other', (t) => {
  const folder = checkout(t);
  const script = join(folder, 'scripts', 'campaign.mjs');
  const campaign = (...args: string[]) => spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  for (const version of pinnedVersions(folder)) {
    const bin = runtimeFolder(folder, version);
    writeFileSync(join(bin, 'node'), '#!/bin/sh\necho "$0" "$@" "$PATH"\n', { mode: 0o755 });
    const major = version.split('.', 1)[0]!;
    for (const choice of [['--node', major], [`--node=${major}`]]) {
      const { status, stdout, stderr } = campaign('--fresh', ...choice, '9');
      assert.deepEqual({ status, stderr }, { status: 0, stderr: '' });
      assert.ok(stdout.startsWith(`${join(bin, 'node')} ${script} --fresh 9 ${bin}:`), stdout);
    }
  }
  for (const major of ['2', '23', '24.21.0', 'x']) {
    const { status, stdout, stderr } = campaign('--node', major);
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, /^no Node \S+ is pinned; there are 24\.[\d.]+ and 26\.[\d.]+\n\nusage: /);
  }
});

test('with-node: without npm, one sentence says what to install', (t) => {
  const older = olderNode(t);
  if (older === undefined) return;
  const folder = checkout(t);
  const { status, stdout, stderr } = withNode(older, folder, ['tell.mjs'], '');
  assert.match(stderr.trimEnd().split('\n').at(-1)!, /^pasted: needs Node 24 .*\(.+\): please install Node 24 .*\.$/);
  assert.equal(stdout, '');
  assert.equal(status, 1);
  assert.deepEqual(existsSync(join(folder, '.runtime')) ? readdirSync(join(folder, '.runtime')) : [], []);
});

test('with-node: a package that is not the known one is refused and not kept', (t) => {
  const older = olderNode(t);
  if (older === undefined) return;
  const folder = checkout(t);
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'npm'), '#!/bin/sh\nfor arg; do :; test "${arg#--pack-destination=}" = "$arg" || ' +
    'echo other > "${arg#--pack-destination=}/node.tgz"; done\n', { mode: 0o755 });
  const { status, stderr } = withNode(older, folder, ['tell.mjs'], bin);
  assert.match(stderr, /\(the package is not the one whose SHA-512 is known here\)/);
  assert.equal(status, 1);
  assert.deepEqual(readdirSync(join(folder, '.runtime')), []);
});

test('withLock: work under one lock does not overlap, and a dead holder\'s lock is taken over', async (t) => {
  const path = join(checkout(t), 'lock');
  const module: string = join(dirname(path), 'scripts', 'lock.mjs');
  const { withLock } = await import(module) as { withLock: WithLock };
  // Nobody touches this lock: its holder is dead.
  writeFileSync(path, '1\n');
  let inside = 0;
  let most = 0;
  let waits = 0;
  const work = async () => {
    inside += 1;
    most = Math.max(most, inside);
    await new Promise((resolve) => setTimeout(resolve, 20));
    inside -= 1;
  };
  await Promise.all([1, 2, 3].map(() => withLock(path, () => { waits += 1; }, work)));
  assert.equal(most, 1);
  assert.equal(waits, 3);
  assert.ok(!existsSync(path));
});
