// A start on a disk that is really full, as a small file system in memory. What a service does there: crash/full-disk.

import assert from 'node:assert/strict';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openStore } from '../../src/store/open.ts';
import { startWriter } from '../../src/store/writer.ts';
import { movableClock } from '../support/clock.ts';
import { fillUp, smallFileSystem } from '../support/small-file-system.ts';
import { CREATED_AT, inlinePaste, NO_TERMS, patternedBytes, temporaryFolder } from '../support/store.ts';

test('startWriter: what cannot be opened for another reason is not told to have no room', async (t) => {
  const path = join(temporaryFolder(t), 'no-such-folder', 'pasted.db');
  await assert.rejects(startWriter(path, movableClock(), () => {}), {
    failure: 'unavailable', message: `the database ${path} cannot be opened: unable to open database file (SQLite 14)`,
  });
});

test('openStore: on a full disk it gives up the room in reserve; without any, it says that there is no room', async (t) => {
  const folder = smallFileSystem(t, 64);
  if (folder === undefined) return t.skip('mounting a file system in memory is not permitted here');
  const path = join(folder, 'pasted.db');
  const open = () => openStore({ path, clock: movableClock(), log: () => {} });
  const first = await open();
  const paste = inlinePaste(patternedBytes(10));
  assert.deepEqual(await first.pastes.create(paste, NO_TERMS), { refused: null });
  assert.equal(await first.upkeep.restoreBallast(), true);
  await first.close();
  const filler = fillUp(folder);

  const store = await open();
  assert.equal(existsSync(`${path}-ballast`), false);
  assert.equal((await store.pastes.find(paste.id, CREATED_AT))?.size, 10);
  const isFull = { name: 'StoreError', failure: 'full' };
  await assert.rejects(Promise.resolve(store.pastes.create(inlinePaste(patternedBytes(10)), NO_TERMS)), isFull);
  await store.close();

  fillUp(folder, 'more');
  await assert.rejects(open(), { ...isFull, message: /^the database \S+ cannot be opened: no room on its disk: / });
  rmSync(filler);
  await (await open()).close();
});
