// store/backup.ts, syncFolderOf: a folder that cannot be synced is no success, wherever a name must outlive a power cut.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { existsSync, fstatSync, readdirSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { syncFolderOf } from '../../src/store/backup.ts';
import { assertHolds, fill, inStore } from '../support/databases.ts';
import { openDesk } from '../support/operator.ts';

/** From now on each sync of a folder fails with this code, except for the first `spared` ones. */
function failFolderSyncs(t: TestContext, code: string, spared = 0): void {
  let left = spared;
  const fsync = fs.fsyncSync;
  const mocked = t.mock.method(fs, 'fsyncSync', (descriptor: number) => {
    if (!fstatSync(descriptor).isDirectory()) return fsync(descriptor);
    left -= 1;
    if (left < 0) throw Object.assign(new Error(`${code}: words of the system`), { code });
  });
  syncBuiltinESMExports();
  t.after(() => {
    mocked.mock.restore();
    syncBuiltinESMExports();
  });
}

for (const [code, isLetBe] of [
  ['EINVAL', true], ['ENOTSUP', true], ['EIO', false], ['ENOSPC', false], ['EBADF', false], ['ERR_ACCESS_DENIED', false],
] as const) {
  test(`syncFolderOf: ${code} is ${isLetBe ? 'let be' : 'an error'}`, (t) => {
    const { folder } = openDesk(t);
    failFolderSyncs(t, code);
    const sync = (): void => syncFolderOf(join(folder, 'file'));
    if (isLetBe) sync();
    else assert.throws(sync, { code });
  });
}

test('syncFolderOf: a folder that cannot be opened is an error', (t) => {
  const { folder } = openDesk(t);
  assert.throws(() => syncFolderOf(join(folder, 'missing', 'file')), { code: 'ENOENT' });
});

test('backup: a folder that cannot be synced ends with 1 and says what that means; the file is whole', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const pastes = await fill(databasePath, 1);
  const file = join(folder, 'copy.db');
  failFolderSyncs(t, 'EIO');
  const { code, stdout, stderr } = await pasted(['backup', file]);
  const reason = 'is written, but a power cut may undo that: its folder cannot be synced (EIO)';
  assert.deepEqual([code, stdout, stderr], [1, '', `pasted: ${file} ${reason}\n`]);
  await inStore(file, (store) => assertHolds(store, pastes, 1));
});

test('restore: a folder that cannot be synced before the exchange leaves the database that there was', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const file = join(folder, 'copy.db');
  await inStore(databasePath, async () => {});
  assert.equal((await pasted(['backup', file])).code, 0);
  const pastes = await fill(databasePath, 1);
  failFolderSyncs(t, 'EIO');
  const { code, stderr } = await pasted(['restore', file]);
  assert.deepEqual([code, stderr], [1, `pasted: ${databasePath} cannot be written (EIO)\n`]);
  await inStore(databasePath, (store) => assertHolds(store, pastes, 1));
});

test('restore: a folder that cannot be synced after the exchange ends with 1 and says what that means', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const pastes = await fill(databasePath, 1);
  const file = join(folder, 'copy.db');
  assert.equal((await pasted(['backup', file])).code, 0);
  failFolderSyncs(t, 'EIO', 1);
  const { code, stderr } = await pasted(['restore', file]);
  assert.equal(code, 1);
  assert.match(stderr, /^pasted: the backup is in the place of \S+, but a power cut may undo that: [^\n]*EIO[^\n]*\n$/);
  assert.ok(readdirSync(folder).some((name) => name.includes('.before-restore-')));
  await inStore(databasePath, (store) => assertHolds(store, pastes, 1));
});

test('admin create: a folder that cannot be synced means that nothing is issued', async (t) => {
  const { folder, pasted } = openDesk(t);
  const file = join(folder, 'admin.p12');
  failFolderSyncs(t, 'EIO');
  const { code, stderr } = await pasted(['admin', 'create', '--out', file]);
  assert.equal(code, 1);
  assert.match(stderr, /admin\.p12 cannot be written \(EIO\)/);
  assert.equal(existsSync(file), false);
  assert.match((await pasted(['pki', 'list'])).stdout, /^(?!.*admin)/);
});
