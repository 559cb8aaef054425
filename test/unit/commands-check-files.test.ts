// `pasted check`: what it says of the place of the database: folder, files and their owners, room, log.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import {
  chmodSync, chownSync, readdirSync, statSync, symlinkSync, truncateSync, writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { check, levelOf } from '../support/checked.ts';
import { fill } from '../support/databases.ts';
import { openDesk } from '../support/operator.ts';

test('check: files and folders that others may open', async (t) => {
  const { folder, databasePath } = openDesk(t);
  await fill(databasePath, 1);
  for (const [mode, level] of [[0o600, 'ok'], [0o640, 'fail'], [0o604, 'fail'], [0o666, 'fail']] as const) {
    chmodSync(databasePath, mode);
    assert.equal(levelOf(await check(t, { databasePath }), 'files'), level, mode.toString(8));
  }
  chmodSync(databasePath, 0o600);
  for (const [mode, level] of [
    [0o700, 'ok'], [0o750, 'warn'], [0o755, 'warn'], [0o770, 'fail'], [0o707, 'fail'],
  ] as const) {
    chmodSync(folder, mode);
    assert.equal(levelOf(await check(t, { databasePath }), 'folder'), level, mode.toString(8));
  }
});

test('check: a file that a command of another user left', async (t) => {
  const { databasePath } = openDesk(t);
  await fill(databasePath, 1);
  try {
    chownSync(`${databasePath}-lock`, 65_534, 65_534);
  } catch {
    return t.skip('this user may not give files away');
  }
  const checked = await check(t, { databasePath });
  assert.equal(checked.found.get('files'), 'fail pasted.db-lock and the database have different owners: chown');
});

/** From now on node:fs gives this for any path, until the test ends. */
function answerAlways(t: TestContext, name: 'accessSync' | 'statfsSync', answer: () => unknown): void {
  t.mock.method(fs, name, answer);
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
}

test('check: a folder and files that this user may not use', async (t) => {
  const { folder, databasePath } = openDesk(t);
  await fill(databasePath, 1);
  answerAlways(t, 'accessSync', () => {
    throw Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
  });
  const { code, found } = await check(t, { databasePath });
  assert.deepEqual([code, found.get('folder'), found.get('files')], [
    1, `fail this user may not write to ${folder}`, 'fail this user may not read and write pasted.db, pasted.db-lock',
  ]);
  // What others may do is told first, since it is more dangerous.
  chmodSync(folder, 0o777);
  assert.equal((await check(t, { databasePath })).found.get('folder'), `fail others may write to ${folder}: chmod 700`);
});

test('check: a path that the system does not follow is named with its reason, and is not missing', async (t) => {
  const { folder } = openDesk(t);
  const loop = join(folder, 'loop.db');
  symlinkSync('loop.db', loop);
  for (const path of [loop, join(loop, 'pasted.db'), join(folder, `${'x'.repeat(256)}.db`)]) {
    const { code, found } = await check(t, { databasePath: path });
    const reason = path.includes('xxx') ? 'ENAMETOOLONG' : 'ELOOP';
    assert.deepEqual([code, found.get('files')], [1, `fail ${path} cannot be read (${reason})`]);
    assert.match(found.get('database')!, /^fail storage unavailable: /);
    assert.equal(found.get('clock'), 'ok says 2026-01-31T12:00:00Z');
  }
  assert.deepEqual(readdirSync(folder), ['loop.db']);
});

test('check: room that will soon be short, and room with which new pastes are refused', async (t) => {
  const { databasePath } = openDesk(t);
  await fill(databasePath, 1);
  const block = 4096;
  const reserveBlocks = (16 * 1024 * 1024) / block;
  let bavail = 0;
  answerAlways(t, 'statfsSync', () => ({ bavail, bsize: block }));
  const refused = ': new pastes are refused';
  for (const [blocks, code, expected] of [
    [0, 1, `fail 0 bytes are free on the disk of the database${refused}`],
    [reserveBlocks, 1, `fail 16.0 MiB are free on the disk of the database${refused}`],
    [reserveBlocks + 1, 0, 'warn 16.0 MiB are free on the disk of the database'],
    [10 * reserveBlocks, 0, 'warn 160.0 MiB are free on the disk of the database'],
    [10 * reserveBlocks + 1, 0, 'ok 160.0 MiB are free on the disk of the database'],
  ] as const) {
    bavail = blocks;
    const checked = await check(t, { databasePath });
    assert.deepEqual([checked.code, checked.found.get('room')], [code, expected]);
  }
});

test('check: a log that somebody keeps from being emptied', async (t) => {
  const { databasePath } = openDesk(t);
  await fill(databasePath, 1);
  const log = `${databasePath}-wal`;
  writeFileSync(log, '', { mode: 0o600 });
  const reason = 'a backup, Litestream or another long reader keeps it from being emptied';
  for (const [bytes, expected] of [
    [16 * 1024 * 1024, 'ok takes 16.0 MiB'],
    [16 * 1024 * 1024 + 1, `warn takes 16.0 MiB: ${reason}`],
  ] as const) {
    truncateSync(log, bytes);
    const { code, found } = await check(t, { databasePath });
    assert.deepEqual([code, found.get('write-ahead log')], [0, expected]);
    assert.equal(statSync(log).size, bytes);
  }
});
