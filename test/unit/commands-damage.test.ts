// `pasted check --full` where a disk has changed what is stored, and `backup` and `restore` where a log lies beside a
// backup that it does not belong to. Damage that SQLite itself sees: commands-check, -backup and -restore.test.ts.

import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { CHUNK_BYTES } from '../../src/store/store.ts';
import { assertHolds, fill, inStore } from '../support/databases.ts';
import { openDesk } from '../support/operator.ts';
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
  // Somebody tries it, and is killed.
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
  // As by `pasted backup - > new.db && mv new.db copy.db`.
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
