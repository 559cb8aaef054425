// Databases for tests of commands that work on a whole database: filled with pastes, of an older version, damaged, or
// opened again as a server opens it.

import assert from 'node:assert/strict';
import { closeSync, openSync, statSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { openStore, type Store } from '../../src/store/open.ts';
import { APPLICATION_ID, migrate, MIGRATIONS, PAGE_BYTES } from '../../src/store/schema.ts';
import type { NewPaste } from '../../src/store/store.ts';
import { movableClock } from './clock.ts';
import { CREATED_AT, patternedBytes, storePaste, wholeContent } from './store.ts';

/** Opens the store as a server does, does the work, and closes it as a server does. */
export async function inStore<Result>(path: string, work: (store: Store) => Promise<Result>): Promise<Result> {
  const store = await openStore({ path, clock: movableClock(), log: () => {} });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Sizes of content that is stored in a row, and in chunks. */
const SIZES = [10, 3000, 65_537, 700_000];

/** Stores a paste of each size, with content of its own for each seed. */
export async function fill(path: string, seed: number): Promise<readonly NewPaste[]> {
  return inStore(path, async (store) => {
    const stored = [];
    for (const size of SIZES) stored.push(await storePaste(store, patternedBytes(size, seed * 1000 + size)));
    return stored;
  });
}

/** Fails the test unless the store has exactly the pastes that fill() made of this seed, each byte of them. */
export async function assertHolds(store: Store, pastes: readonly NewPaste[], seed: number): Promise<void> {
  for (const { id, size } of pastes) {
    const paste = await store.pastes.findWithContent(id, CREATED_AT);
    assert.ok(paste, `the paste of ${size} bytes is there`);
    const content = await wholeContent(store, paste);
    assert.ok(Buffer.from(patternedBytes(size, seed * 1000 + size)).equals(content), `its ${size} bytes are as stored`);
  }
  assert.equal((await store.read.usage()).pastes, pastes.length);
}

/** Makes a database as the first version of the schema left it, with one paste. */
export function makeOldest(path: string): void {
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
  migrate(db, MIGRATIONS.slice(0, 1));
  db.exec(`
    INSERT INTO pastes (id, mime_type, size, sha256, created_at, expires_at, burn_after_read, accessed_at, content)
    VALUES ('oldest', 'text/plain', 5, zeroblob(32), ${CREATED_AT}, ${CREATED_AT + 1000}, 0, 0, x'68656c6c6f')`);
  db.exec('PRAGMA journal_mode = WAL');
  db.close();
}

/** A sound database that says it is of a newer version of this program. */
export function makeNewer(path: string): void {
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  db.exec(`PRAGMA user_version = ${MIGRATIONS.length + 1}`);
  db.exec('CREATE TABLE future (x)');
  db.close();
}

/** A sound database of another program. */
export function makeStranger(path: string): void {
  const db = new DatabaseSync(path);
  db.exec('CREATE TABLE diary (day TEXT)');
  db.close();
}

/** Overwrites whole pages in the middle of the file. */
export function damage(path: string): void {
  const pages = Math.floor(statSync(path).size / PAGE_BYTES);
  const descriptor = openSync(path, 'r+');
  const garbage = Buffer.alloc(3 * PAGE_BYTES, 0xa5);
  writeSync(descriptor, garbage, 0, garbage.length, Math.floor(pages / 2) * PAGE_BYTES);
  closeSync(descriptor);
}
