// restoreDatabase by itself: what room it asks for, and what it calls the backup and the database that was there. What
// the command says: commands-restore.test.ts.

import assert from 'node:assert/strict';
import fs, { readdirSync, statSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { draftBackup, restoreDatabase } from '../../src/store/backup.ts';
import { FREE_RESERVE_BYTES } from '../../src/store/database.ts';
import { openTestStore, patternedBytes, selectValue, storePaste } from '../support/store.ts';

/** A database with a paste, closed, and a backup of it. */
async function backedUp(t: TestContext) {
  const { path, folder, store } = await openTestStore(t);
  await storePaste(store, patternedBytes(10));
  await store.close();
  const backup = join(folder, 'backup.db');
  using draft = draftBackup({ path, beside: backup, mark: '0123456789abcdef' });
  await draft.copy();
  fs.renameSync(draft.path, backup);
  return { path, folder, backup };
}

test('restoreDatabase: asks for room for a file and its log beside the reserve before it copies anything', async (t) => {
  const { path, folder, backup } = await backedUp(t);
  fs.writeFileSync(`${backup}-wal`, new Uint8Array(100));
  const needed = statSync(backup).size + 100 + FREE_RESERVE_BYTES;
  let free = needed;
  t.mock.method(fs, 'statfsSync', () => ({ blocks: 2 ** 40, bavail: free, bsize: 1, frsize: 1 }));
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const before = readdirSync(folder);
  const said = `no room to restore as ${path}-restore-draft: it takes ${needed} bytes, and ${free} are free`;
  await assert.rejects(restoreDatabase({ path, backup, moment: 'm' }), { name: 'StoreError', failure: 'full', message: said });
  assert.deepEqual(readdirSync(folder), before);
  free += 1;
  assert.equal((await restoreDatabase({ path, backup, moment: 'm' })).keptAs, `${path}.before-restore-m`);
});

test('restoreDatabase: every database that was there is kept, also of several in one moment', async (t) => {
  const { path, backup } = await backedUp(t);
  const names = [];
  for (let count = 0; count < 4; count += 1) names.push((await restoreDatabase({ path, backup, moment: 'm' })).keptAs);
  assert.deepEqual(names, ['', '-2', '-3', '-4'].map((end) => `${path}.before-restore-m${end}`));
  for (const kept of [path, ...names]) assert.equal(selectValue(kept!, 'SELECT count(*) FROM pastes'), 1);
});

test('restoreDatabase: a backup from a pipe is called so, and one from a file by its path', async (t) => {
  const { path, folder } = await backedUp(t);
  const garbage = join(folder, 'garbage');
  fs.writeFileSync(garbage, patternedBytes(8192));
  const said = 'is damaged, or no database, or a disk fails';
  for (const [backup, name] of [[fs.createReadStream(garbage), 'from standard input'], [garbage, garbage]] as const) {
    const message = `the backup ${name} ${said}`;
    await assert.rejects(restoreDatabase({ path, backup, moment: 'm' }), { name: 'DatabaseRefusedError', message });
  }
});

test('draftBackup: a copy that has no place to be written to is a failure of the storage', async (t) => {
  const { path, folder } = await backedUp(t);
  const there = join(folder, 'there');
  fs.mkdirSync(there);
  using draft = draftBackup({ path, beside: join(there, 'backup.db'), mark: '0123456789abcdef' });
  fs.renameSync(there, join(folder, 'moved'));
  const message = `storage unavailable: unable to open database: ${draft.path} (SQLite 14)`;
  await assert.rejects(draft.copy(), { name: 'StoreError', failure: 'unavailable', message });
});
