// A start on a disk that is really full, as a small file system in memory. What a service does there: crash/full-disk.

import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { MIB } from '../../src/core/time.ts';
import { openStore } from '../../src/store/open.ts';
import { startWriter } from '../../src/store/writer.ts';
import { movableClock } from '../support/clock.ts';
import { smallFileSystem } from '../support/small-file-system.ts';
import { CREATED_AT, inlinePaste, NO_TERMS, patternedBytes, temporaryFolder } from '../support/store.ts';

/** Takes every byte that is left. */
function fillUp(path: string): void {
  const descriptor = openSync(path, 'w');
  for (const piece of [new Uint8Array(MIB), new Uint8Array(4096)]) {
    try {
      while (writeSync(descriptor, piece) > 0);
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
    }
  }
  closeSync(descriptor);
}

test('startWriter: what cannot be opened for another reason is not told to have no room', async (t) => {
  const path = join(temporaryFolder(t), 'no-such-folder', 'pasted.db');
  await assert.rejects(startWriter(path, movableClock(), () => {}), {
    failure: 'unavailable', message: `the database ${path} cannot be opened: unable to open database file (SQLite 14)`,
  });
});

test('openStore: on a full disk it gives up the room in reserve; without any, it says that there is no room', async (t) => {
  const folder = smallFileSystem(t, 64);
  if (folder === undefined) return t.skip('mounting a file system in memory is not permitted here');
  const [path, filler] = [join(folder, 'pasted.db'), join(folder, 'filler')];
  const open = () => openStore({ path, clock: movableClock(), log: () => {} });
  const first = await open();
  const paste = inlinePaste(patternedBytes(10));
  assert.deepEqual(await first.pastes.create(paste, NO_TERMS), { refused: null });
  assert.equal(await first.upkeep.restoreBallast(), true);
  await first.close();
  fillUp(filler);

  const store = await open();
  assert.equal(existsSync(`${path}-ballast`), false);
  assert.equal((await store.pastes.find(paste.id, CREATED_AT))?.size, 10);
  const isFull = { name: 'StoreError', failure: 'full' };
  await assert.rejects(Promise.resolve(store.pastes.create(inlinePaste(patternedBytes(10)), NO_TERMS)), isFull);
  await store.close();

  fillUp(join(folder, 'more'));
  await assert.rejects(open(), { ...isFull, message: /^the database \S+ cannot be opened: no room on its disk: / });
  rmSync(filler);
  await (await open()).close();
});
