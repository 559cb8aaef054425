// `pasted check --full` where a disk has changed what is stored, `backup` and `restore` where a log lies beside a backup
// that it does not belong to, where what a killed backup left can't be removed, and where a log is all that there is.
// Damage that SQLite itself sees: commands-check, -backup and -restore.test.ts.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs, {
  copyFileSync, createReadStream, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, truncateSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { runCommandLine } from '../../src/operator/arguments.ts';
import { CHUNK_BYTES } from '../../src/store/store.ts';
import { assertHolds, fill, inStore } from '../support/databases.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';
import { openDesk } from '../support/operator.ts';
import { smallFileSystem } from '../support/small-file-system.ts';
import { patternedBytes, storePaste } from '../support/store.ts';

test('check --full: names each paste whose content is no more what was stored, by one byte or by the order of its pieces', async (t) => {
  const { databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const integrity = async (...words: readonly string[]): Promise<string[]> => {
    const { stdout } = await pasted(['check', ...words]);
    return stdout.split('\n').filter((line) => line.includes(' integrity: '));
  };
  const ids: string[] = [];
  await inStore(databasePath, async (store) => {
    for (const size of [0, 100, CHUNK_BYTES - 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 1]) {
      ids.push((await storePaste(store, patternedBytes(size))).id);
    }
  });
  assert.match((await integrity('--full')).join(), /^ok integrity: no damage by a full check, 9 pastes/);
  const [empty, small, , , large] = ids;
  const flipped = patternedBytes(100);
  flipped[50]! ^= 1;
  const ofLarge = `content_id = (SELECT content_id FROM pastes WHERE id = '${large}')`;
  const sound = readFileSync(databasePath);
  for (const [id, sql, bytes] of [
    [small, `UPDATE pastes SET content = :bytes WHERE id = '${small}'`, flipped],
    [empty, `UPDATE pastes SET sha256 = :bytes WHERE id = '${empty}'`, new Uint8Array(32)],
    [large, `UPDATE chunks SET position = 9 WHERE position = 0 AND ${ofLarge}`, null],
    [large, `UPDATE chunks SET position = 9 WHERE position = 3 AND ${ofLarge}`, null],
  ] as const) {
    using db = new DatabaseSync(databasePath);
    assert.equal(db.prepare(sql).run(bytes === null ? {} : { bytes }).changes, 1, sql);
    db.close();
    assert.deepEqual(await integrity('--full'), [`fail integrity: the content of ${id} is not what was stored`], sql);
    assert.match((await pasted(['check', '--full'])).stdout, /^ok schema: [^]*^ok records: /m);
    assert.match((await integrity()).join(), /^ok integrity: no damage by a quick check/);
    writeFileSync(databasePath, sound);
  }
});

async function backedUp(t: TestContext) {
  const desk = openDesk(t);
  const pastes = await fill(desk.databasePath, 1);
  const file = join(desk.folder, 'copy.db');
  assert.equal((await desk.pasted(['backup', file])).code, 0);
  return { ...desk, pastes, file };
}

test('backup, restore: a log beside a backup that it does not belong to is neither left there nor taken for its own', async (t) => {
  const { folder, databasePath, pasted, pastes, file } = await backedUp(t);
  // Somebody opens the backup to try it, and is killed.
  using tried = new DatabaseSync(file);
  tried.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; DELETE FROM pastes WHERE rowid < 4');
  const log = join(folder, 'log');
  copyFileSync(`${file}-wal`, log);
  tried.close();
  for (const suffix of ['-wal', '-journal']) {
    renameSync(log, `${file}${suffix}`);
    const { code, stderr } = await pasted(['backup', '--force', file]);
    assert.deepEqual([code, stderr], [1, `pasted: ${file}${suffix} would be taken for a log of ${file}: remove it first\n`]);
    renameSync(`${file}${suffix}`, log);
  }
  // The same as `pasted backup - > new.db && mv new.db copy.db`.
  const fresh = join(folder, 'fresh.db');
  assert.equal((await pasted(['backup', fresh])).code, 0);
  renameSync(fresh, file);
  renameSync(log, `${file}-wal`);
  assert.deepEqual((await pasted(['restore', file])).code, 0);
  await inStore(databasePath, (store) => assertHolds(store, pastes, 1));
});

test('restore: a link to nowhere with the name of a database that was kept is left alone', async (t) => {
  const { databasePath, pasted, pastes, file } = await backedUp(t);
  symlinkSync('nowhere', `${databasePath}.before-restore-20260101T000000Z`);
  assert.deepEqual((await pasted(['restore', file])).stderr, '');
  await inStore(databasePath, (store) => assertHolds(store, pastes, 1));
});

test('backup: what a killed one left, and cannot be removed now, is removed by the next that can', async (t) => {
  const folder = smallFileSystem(t, 1);
  if (folder === undefined) return t.skip('mounting a file system in memory is not permitted here');
  const { folder: home, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const left = join(folder, 'backup.0123456789abcdef.partial');
  writeFileSync(left, 'half a copy');
  writeFileSync(`${databasePath}-backup-note`, left);
  const remount = (mode: string): void => void execFileSync('mount', ['-o', `remount,${mode}`, folder]);
  remount('ro');
  for (let round = 0; round < 2; round += 1) {
    const { code, stderr } = await pasted(['backup', join(home, 'copy.db')]);
    assert.deepEqual([code, stderr.split('\n').length], [1, 2], stderr);
    assert.match(stderr, /EROFS/);
  }
  remount('rw');
  assert.equal((await pasted(['backup', join(home, 'copy.db')])).code, 0);
  assert.deepEqual(readdirSync(folder), []);
});

test('a log whose database is away or empty is removed by no start and no command, and is whole once that is back', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  // The files as a kill leaves them: what is in the log is nowhere else.
  const last = await inStore(databasePath, async (store) => {
    const stored = await storePaste(store, patternedBytes(100));
    for (const suffix of ['', '-wal']) copyFileSync(`${databasePath}${suffix}`, join(folder, `killed${suffix}`));
    return stored;
  });
  const log = readFileSync(join(folder, 'killed-wal'));
  assert.ok(log.length > 0);
  for (const isThere of [true, false]) {
    copyFileSync(join(folder, 'killed-wal'), `${databasePath}-wal`);
    if (isThere) truncateSync(databasePath);
    else rmSync(databasePath);
    const refusal = `${databasePath} is away or empty, and its log is not: put it back, or move ${databasePath}-wal away`;
    await assert.rejects(inStore(databasePath, async () => {}), { name: 'DatabaseRefusedError', message: refusal });
    for (const words of [['stats'], ['backup', join(folder, 'copy.db')], ['prune'], ['check'], ['pki', 'list']]) {
      const { code, stderr } = await pasted(words);
      assert.notEqual(code, 0, words.join(' '));
      if (isThere && words[0] !== 'check') assert.equal(stderr, `pasted: ${refusal}\n`);
      assert.ok(readFileSync(`${databasePath}-wal`).equals(log), `${words.join(' ')}: ${stderr}`);
    }
    copyFileSync(join(folder, 'killed'), databasePath);
    await inStore(databasePath, async ({ pastes }) => assert.ok(await pastes.find(last.id, last.createdAt)));
  }
});

test('check and backup: a disk that turned read-only after an error is named, and the database can still be copied', async (t) => {
  const { databasePath, folder, pasted } = openDesk(t);
  const pastes = await fill(databasePath, 3);
  const reserve = async () => (await pasted(['check'])).stdout.split('\n').filter((line) => line.includes(' room in reserve: '));
  await inStore(databasePath, ({ upkeep }) => upkeep.restoreBallast());
  assert.deepEqual(await reserve(), ['ok room in reserve: is kept for a full disk']);
  const refused = (path: string) => Object.assign(new Error(`EROFS: read-only file system, '${path}'`), { code: 'EROFS' });
  const { openSync, rmSync: remove } = fs;
  t.mock.method(fs, 'openSync', (path: string, flags: string, mode?: number) => {
    if (flags !== 'r' && path.startsWith(`${databasePath}-`)) throw refused(path);
    return openSync(path, flags, mode);
  });
  t.mock.method(fs, 'rmSync', (path: string, options?: object) => {
    if (path.startsWith(`${databasePath}-`)) throw refused(path);
    remove(path, options);
  });
  // The files of a backup that is under way, or was when the disk turned read-only. Only its lock could tell which.
  const draft = join(folder, `backup.${'0'.repeat(16)}.partial`);
  for (const [path, content] of [[`${databasePath}-backup-note`, draft], [draft, 'half']] as const) writeFileSync(path, content);
  syncBuiltinESMExports();
  const mend = () => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  };
  t.after(mend);
  const file = join(folder, 'copy.db');
  // A store is open, as under a service, because SQLite opens a database only if its log is there or can be made.
  await inStore(databasePath, async () => {
    assert.deepEqual(await reserve(), ['fail room in reserve: cannot be written: its disk may have turned read-only']);
    const { code, stderr } = await pasted(['backup', file]);
    assert.deepEqual([code, stderr, readFileSync(draft, 'utf8')], [0, '', 'half']);
  });
  mend();
  await inStore(file, (store) => assertHolds(store, pastes, 3));
});

// This test is the last one: under coverage, when a process signals itself, Node writes its counts and stops counting.
test('restore -: a signal that comes while the whole copy is examined ends the command before anything is changed', async (t) => {
  const { databasePath, file } = await backedUp(t);
  const { ino: before } = statSync(databasePath);
  const fsync = fs.fsyncSync;
  t.mock.method(fs, 'fsyncSync', (descriptor: number) => {
    process.kill(process.pid, 'SIGWINCH');
    fsync(descriptor);
  }, { times: 1 });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const parts = { environment: { SERVICE_DB: databasePath }, stdin: createReadStream(file) };
  const fake = fakeTerminal(['restore', '-'], parts);
  const found: unknown[] = [];
  // A real process would end here.
  const endBy = (signal: string): void => void found.push(signal, statSync(databasePath).ino);
  const onSignal = (): void => fake.signal('SIGTERM');
  process.once('SIGWINCH', onSignal);
  t.after(() => process.off('SIGWINCH', onSignal));
  assert.equal(await runCommandLine({ ...fake.terminal, endBy }), 0);
  assert.deepEqual(found, ['SIGTERM', before]);
});
