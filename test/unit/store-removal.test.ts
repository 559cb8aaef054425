// What was burned or has expired is gone from the files, not only from the tables; and upkeep keeps the files small.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { storeTasks } from '../../src/pastes/upkeep.ts';
import { upkeepCommands } from '../../src/store/batch.ts';
import { openWriting } from '../../src/store/database.ts';
import type { Store } from '../../src/store/open.ts';
import { PAGE_BYTES } from '../../src/store/schema.ts';
import { CHUNK_BYTES, INLINE_BYTES } from '../../src/store/store.ts';
import {
  CREATED_AT, EXPIRES_AT, inlinePaste, openTestStore, patternedBytes, selectValue, storePaste,
  strayChunks, temporaryFolder, type TestStore,
} from '../support/store.ts';
import { testConfig } from '../support/test-config.ts';

/** Names of the files that contain any of the canaries. */
function filesWithAny(folder: string, canaries: readonly Buffer[]): string[] {
  return readdirSync(folder).filter((name) => {
    const bytes = readFileSync(join(folder, name));
    return canaries.some((canary) => bytes.includes(canary));
  });
}

/**
 * Stores content of the sizes that are kept in different ways, each with its own canary at both ends and in the middle.
 */
async function storeCanaries({ store }: TestStore, burnAfterRead: boolean) {
  const canaries: Buffer[] = [];
  const ids: string[] = [];
  for (const size of [64, 5000, INLINE_BYTES, INLINE_BYTES + 1, 9 * CHUNK_BYTES + 1000]) {
    const canary = randomBytes(16);
    const content = patternedBytes(size, size);
    for (const start of [0, Math.floor(size / 2), size - canary.length]) content.set(canary, start);
    canaries.push(canary);
    ids.push((await storePaste(store, content, { burnAfterRead })).id);
  }
  return { canaries, ids };
}

test('burn: nothing of the content is left in any file after the log is truncated', async (t) => {
  const opened = await openTestStore(t);
  await storePaste(opened.store, patternedBytes(100_000));
  const { canaries, ids } = await storeCanaries(opened, true);
  for (const canary of canaries) assert.notDeepEqual(filesWithAny(opened.folder, [canary]), [], 'it was there before');
  for (const id of ids) assert.equal(await opened.store.pastes.burn(id, null, CREATED_AT), true);
  while (strayChunks(opened.path) !== 0) await setTimeout(5);
  assert.equal(await opened.store.upkeep.truncateWal(), true);
  assert.deepEqual(filesWithAny(opened.folder, canaries), []);
});

test('removeExpired: nothing of the content is left in any file after the log is truncated', async (t) => {
  const opened = await openTestStore(t);
  const { canaries, ids } = await storeCanaries(opened, false);
  await opened.store.upkeep.truncateWal();
  assert.equal(await opened.store.pastes.removeExpired(EXPIRES_AT, 100), ids.length);
  await opened.store.upkeep.truncateWal();
  assert.deepEqual(filesWithAny(opened.folder, canaries), []);
});

test('discard: nothing of an upload that was given up is left in any file after the log is truncated', async (t) => {
  const { folder, store } = await openTestStore(t);
  const canary = randomBytes(16);
  const upload = store.contents.upload('upload0');
  await upload.write(new Uint8Array(Buffer.concat([patternedBytes(CHUNK_BYTES - 16), canary])));
  assert.notDeepEqual(filesWithAny(folder, [canary]), []);
  await upload.discard();
  await store.upkeep.truncateWal();
  assert.deepEqual(filesWithAny(folder, [canary]), []);
});

test('truncateWal: empties the log while pastes are read and written', async (t) => {
  const { path, store } = await openTestStore(t);
  const { id } = await storePaste(store, patternedBytes(INLINE_BYTES));
  for (let round = 0; round < 5; round += 1) {
    await storePaste(store, patternedBytes(2 * CHUNK_BYTES));
    let done = false;
    const truncating = store.upkeep.truncateWal().then((empty) => {
      done = true;
      return { empty, bytes: statSync(`${path}-wal`).size };
    });
    while (!done) {
      assert.ok(await store.pastes.findWithContent(id, CREATED_AT));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(await truncating, { empty: true, bytes: 0 });
  }
});

test('truncateWal: waits for a reader, and says so when it waited in vain', async (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  const db = openWriting(path);
  db.exec('PRAGMA busy_timeout = 20');
  const { truncateWal } = upkeepCommands(db);
  const reader = new DatabaseSync(path, { readOnly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM pastes').get();
  db.exec("INSERT INTO orphans VALUES ('a')");
  assert.equal(truncateWal(null), false);
  assert.deepEqual({ ...db.prepare('PRAGMA busy_timeout').get() }, { timeout: 20 }, 'other writes wait as before');
  reader.exec('COMMIT');
  assert.equal(truncateWal(null), true);
  assert.equal(statSync(`${path}-wal`).size, 0);
  reader.close();
  db.close();
});

test('truncateWal: beside a reader that goes on for long, writes wait far less than for another writer', async (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  const db = openWriting(path);
  const { truncateWal } = upkeepCommands(db);
  const reader = new DatabaseSync(path, { readOnly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM pastes').get();
  db.exec("INSERT INTO orphans VALUES ('a')");
  const startedMs = performance.now();
  assert.equal(truncateWal(null), false);
  assert.ok(performance.now() - startedMs < 4000, 'the time-out of writes is 5000 ms');
  reader.close();
  db.close();
});

/** Zeroes the third page that holds rows of the table, and opens the store again on what is left. */
async function damaged(opened: TestStore, table: string): Promise<Store> {
  const { path, store } = opened;
  await store.upkeep.truncateWal();
  const leaf = Number(selectValue(path, `
    SELECT pageno FROM dbstat WHERE name = '${table}' AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET 2`));
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(PAGE_BYTES), 0, PAGE_BYTES, (leaf - 1) * PAGE_BYTES);
  closeSync(file);
  return opened.reopen();
}

/** Runs the task this many times; each run fails. */
async function runs(times: number, { clock }: TestStore, store: Store, task: string): Promise<void> {
  const config = testConfig({ auditRetentionSeconds: 60 });
  const { step } = storeTasks({ config, store, clock }, () => {}).find(({ name }) => name === task)!;
  for (let run = 0; run < times; run += 1) {
    await assert.rejects(async () => {
      while ((await step()) === true);
    }, /malformed/);
  }
}

test('expired pastes: a damaged page keeps the first ones from being removed, and not those behind them', async (t) => {
  const opened = await openTestStore(t);
  for (let count = 0; count < 200; count += 1) await storePaste(opened.store, patternedBytes(2000, count));
  const store = await damaged(opened, 'pastes');
  opened.clock.advance((EXPIRES_AT - CREATED_AT) * 1000);
  await runs(2, opened, store, 'expired pastes');
  const left = selectValue(opened.path, 'SELECT count(*) FROM pastes INDEXED BY pastes_by_expiry');
  assert.equal(left, 32, 'of one step');
});

test('audit log: a damaged page keeps the first entries from being removed, and not those behind them', async (t) => {
  const opened = await openTestStore(t);
  const details = { text: 'x'.repeat(200) };
  const event = { event: 'cert_issued', outcome: 'success', clientId: null, clientIp: null, details } as const;
  for (let time = 1; time <= 600; time += 1) await opened.store.run('recordAudit', { ...event, time });
  const store = await damaged(opened, 'audit');
  await runs(3, opened, store, 'audit log');
  const left = selectValue(opened.path, 'SELECT count(*) FROM audit INDEXED BY audit_by_time');
  assert.equal(left, 200, 'of two steps: the page beside the damaged one can not be emptied either');
});

test('releasePages: gives free pages back in steps, until the file is small again', async (t) => {
  const { path, store } = await openTestStore(t);
  await store.upkeep.truncateWal();
  const smallBytes = statSync(path).size;
  await storePaste(store, patternedBytes(20 * CHUNK_BYTES));
  assert.equal(await store.upkeep.releasePages(256), 0, 'nothing to give');
  await store.pastes.removeExpired(EXPIRES_AT, 1);
  await store.upkeep.truncateWal();
  assert.ok(statSync(path).size > 20 * CHUNK_BYTES);
  const free = Number(selectValue(path, 'PRAGMA freelist_count'));
  assert.equal(await store.upkeep.releasePages(100), free - 100);
  while ((await store.upkeep.releasePages(256)) > 0);
  await store.upkeep.truncateWal();
  assert.ok(statSync(path).size <= smallBytes + 64 * 1024, `${statSync(path).size} bytes are left`);
});

test('the log is cut back by itself when much is written', async (t) => {
  const { path, store } = await openTestStore(t);
  for (let count = 0; count < 4; count += 1) await storePaste(store, patternedBytes(20 * CHUNK_BYTES));
  assert.ok(statSync(`${path}-wal`).size < 16 * 1024 * 1024, `${statSync(`${path}-wal`).size} bytes of log`);
});

test('optimize: resolves, and leaves pastes as they are', async (t) => {
  const { store } = await openTestStore(t);
  const paste = inlinePaste(patternedBytes(10));
  await storePaste(store, patternedBytes(10), paste);
  await store.upkeep.optimize();
  assert.ok(await store.pastes.find(paste.id, CREATED_AT));
});
