// The pastes kept in memory: bounded, gone when they expire or change, and never behind the database.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import test from 'node:test';
import { compactBytes, holdBytes, letGoOfBytes } from '../../src/core/content.ts';
import {
  HOT_CONTENT_BYTES, HOT_PASTE_BYTES, HotPastes, MAX_MISSED, READ_ALONG_BYTES,
} from '../../src/store/content.ts';
import type { NewPaste, PasteWithContent, UpdateTerms } from '../../src/store/store.ts';
import {
  asFound, CREATED_AT, EXPIRES_AT, inlinePaste, newId, NO_TERMS, openTestStore, patternedBytes, storePaste,
} from '../support/store.ts';

const TERMS: UpdateTerms = { duplicates: null, maxStoredBytes: null, maxOwnerBytes: null, nowSeconds: CREATED_AT };

const foundPaste = (size: number, changes: Partial<NewPaste> = {}): PasteWithContent =>
  asFound(inlinePaste(patternedBytes(size), changes));

test('find: gives what was kept until the second in which it expires', () => {
  const hot = new HotPastes();
  const found = foundPaste(10);
  const { id } = found;
  hot.keep(found);
  assert.equal(hot.find(id, EXPIRES_AT - 1), found);
  assert.equal(hot.find(id, EXPIRES_AT), undefined);
  assert.equal(hot.find(id, EXPIRES_AT - 1), undefined, 'it does not come back when the clock does');
});

test('keep: content up to the limit, and no burn-after-read paste', () => {
  const hot = new HotPastes();
  const isKept = (found: PasteWithContent) => {
    hot.keep(found);
    return hot.find(found.id, CREATED_AT) !== undefined;
  };
  const sizes = [HOT_CONTENT_BYTES - 1, HOT_CONTENT_BYTES, HOT_CONTENT_BYTES + 1];
  assert.deepEqual(sizes.map((size) => isKept(foundPaste(size))), [true, true, false]);
  assert.equal(isKept(foundPaste(10, { burnAfterRead: true })), false);
  assert.equal(isKept(foundPaste(10, { content: null, contentId: newId() })), false);
});

test('keep: what was used longest ago makes room, and bytes are counted once for each paste', () => {
  const hot = new HotPastes(3 * (HOT_PASTE_BYTES + 10));
  const [first, second, third, fourth] = [foundPaste(10), foundPaste(10), foundPaste(10), foundPaste(10)];
  for (const found of [first, second, third, third, third]) hot.keep(found);
  hot.find(first.id, CREATED_AT);
  for (const found of [fourth, fourth]) hot.keep(found);
  const kept = [first, second, third, fourth].map(({ id }) => hot.find(id, CREATED_AT) !== undefined);
  assert.deepEqual(kept, [true, false, true, true]);
});

test('keep: one large paste makes several small ones go, so that the bound is on bytes', () => {
  const hot = new HotPastes(3 * (HOT_PASTE_BYTES + 10));
  const small = [foundPaste(10), foundPaste(10), foundPaste(10)];
  for (const found of small) hot.keep(found);
  const large = foundPaste(2 * (HOT_PASTE_BYTES + 10));
  for (const found of [large, large]) hot.keep(found);
  assert.deepEqual(small.map(({ id }) => hot.find(id, CREATED_AT)), [undefined, undefined, undefined]);
});

test('keep: anything while there is room; then what is missed a second time, for which others go', () => {
  const hot = new HotPastes(2 * (HOT_PASTE_BYTES + 10));
  const isKept = (found: PasteWithContent) => {
    hot.keep(found);
    return hot.find(found.id, CREATED_AT) !== undefined;
  };
  const [first, second, third, fourth] = [foundPaste(10), foundPaste(10), foundPaste(10), foundPaste(10)];
  assert.deepEqual([first, second].map(isKept), [true, true]);
  assert.deepEqual([third, third].map(isKept), [false, true]);
  assert.deepEqual([first, first].map(isKept), [false, true], 'it went, and what was kept before is forgotten');
  assert.equal(isKept(fourth), false);
  hot.keep(foundPaste(10, { burnAfterRead: true }));
  for (let count = 1; count < MAX_MISSED; count += 1) assert.equal(isKept(foundPaste(10)), false);
  assert.equal(isKept(fourth), true, 'what is never kept is not remembered either');
  for (const found of [fourth, second, third]) hot.keep(found);
  for (let count = 0; count < MAX_MISSED; count += 1) hot.keep(foundPaste(10));
  assert.equal(isKept(second), false, 'too many were missed meanwhile');
});

const LARGE = 10 * 1024;

/** How many bytes are left of content that is kept as bytes, not as text of one character a byte. */
const bytesLeft = ({ content }: PasteWithContent): number => (content as Uint8Array).length;

test('content that makes room is freed once everyone who held it has let go', () => {
  const hot = new HotPastes(2 * (HOT_PASTE_BYTES + LARGE));
  const [unused, held, third, fourth] = [foundPaste(LARGE), foundPaste(LARGE), foundPaste(LARGE), foundPaste(LARGE)];
  for (const found of [unused, held]) hot.keep(found);
  for (const found of [held, held]) holdBytes(found.content!);
  for (const found of [third, third, fourth, fourth]) hot.keep(found);
  assert.deepEqual([unused, held, third, fourth].map(bytesLeft), [0, LARGE, LARGE, LARGE]);
  assert.deepEqual(held.content, patternedBytes(LARGE));
  letGoOfBytes(held.content!);
  assert.equal(bytesLeft(held), LARGE);
  letGoOfBytes(held.content!);
  assert.equal(bytesLeft(held), 0);
  // What is not freed: content when all memory is forgotten at once, and bytes that nobody holds.
  hot.clear();
  const other = foundPaste(LARGE);
  letGoOfBytes(other.content!);
  assert.deepEqual([third, fourth, other].map(bytesLeft), [LARGE, LARGE, LARGE]);
});

test('findWithContent: holds the content, which outlives its paste; the last to let go frees it', async (t) => {
  const { store } = await openTestStore(t);
  const { id } = await storePaste(store, patternedBytes(LARGE));
  const find = async () => await store.pastes.findWithContent(id, CREATED_AT) ?? assert.fail('it is there');
  const [first, second] = [await find(), await find()];
  assert.equal(first, second);
  await store.pastes.find(id, CREATED_AT);
  await store.pastes.remove(id, first.owner, CREATED_AT, null);
  assert.deepEqual(first.content, patternedBytes(LARGE));
  letGoOfBytes(first.content!);
  assert.equal(bytesLeft(first), LARGE);
  letGoOfBytes(second.content!);
  assert.equal(bytesLeft(first), 0);
});

test('around: a paste is not kept until its last change has settled, whichever way', async () => {
  const hot = new HotPastes();
  const found = foundPaste(10);
  const { id } = found;
  const isKept = () => {
    hot.keep(found);
    return hot.find(id, CREATED_AT) !== undefined;
  };
  assert.equal(isKept(), true);
  const changes = [Promise.withResolvers<number>(), Promise.withResolvers<number>()] as const;
  const settled = changes.map(({ promise }) => hot.around(id, () => promise));
  assert.equal(hot.find(id, CREATED_AT), undefined);
  assert.equal(isKept(), false);
  changes[0].resolve(1);
  assert.equal(await settled[0], 1);
  assert.equal(isKept(), false, 'the other change is still under way');
  changes[1].reject(new Error('the disk broke'));
  await assert.rejects(settled[1]!, /the disk broke/);
  assert.equal(isKept(), true);
});

test('pastes.find: answers from memory what was read before, and says the same', async (t) => {
  const { store } = await openTestStore(t);
  const { id } = await storePaste(store, patternedBytes(100));
  const [described, whole] = [await store.pastes.find(id, CREATED_AT), await store.pastes.findWithContent(id, CREATED_AT)];
  assert.equal(store.pastes.find(id, CREATED_AT), described, 'the very same object, at once');
  assert.deepEqual(await store.pastes.findWithContent(id, CREATED_AT), whole);
  assert.deepEqual(whole, { ...described, content: compactBytes(patternedBytes(100)) });
});

test('pastes.find: while changes run it never falls behind what a list shows, and afterwards it has the change', async (t) => {
  const { store } = await openTestStore(t);
  const owner = 'a'.repeat(40);
  const { id } = await storePaste(store, patternedBytes(100), { owner });
  const filter = { owner, typeGlob: null, after: 0, before: Number.MAX_SAFE_INTEGER };
  for (let round = 1; round <= 50; round += 1) {
    await store.pastes.findWithContent(id, CREATED_AT);
    let isOver = false;
    const expiresAt = EXPIRES_AT + round;
    const updating = store.pastes.update(id, owner, { expiresAt }, TERMS).finally(() => (isOver = true));
    while (!isOver) {
      const { items: [listed] } = await store.read.listPastes(filter, { limit: 1, offset: 0 }, CREATED_AT);
      const found = await store.pastes.findWithContent(id, CREATED_AT);
      assert.ok(found!.expiresAt >= listed!.expiresAt, 'found is not older than listed');
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal((await updating).refused, null);
    assert.equal((await store.pastes.find(id, CREATED_AT))?.expiresAt, expiresAt);
  }
});

test('pastes.find: nothing that was deleted, or removed when it had expired, comes out of memory', async (t) => {
  const { store } = await openTestStore(t);
  const owner = 'a'.repeat(40);
  const { id } = await storePaste(store, patternedBytes(100), { owner });
  const { id: expired } = await storePaste(store, patternedBytes(100), { expiresAt: CREATED_AT + 1 });
  for (const each of [id, expired]) assert.ok(await store.pastes.findWithContent(each, CREATED_AT));
  assert.equal((await store.pastes.remove(id, owner, CREATED_AT, null)).refused, null);
  assert.equal(await store.pastes.find(id, CREATED_AT), undefined);
  assert.equal(await store.pastes.removeExpired(CREATED_AT + 1, 10), 1);
  assert.equal(await store.pastes.find(expired, CREATED_AT), undefined, 'even with the clock set back');
});

test('pastes.removeExpired: what stays is still found in memory', async (t) => {
  const { store } = await openTestStore(t);
  const { id } = await storePaste(store, patternedBytes(100), { expiresAt: CREATED_AT + 2 });
  await storePaste(store, patternedBytes(100), { expiresAt: CREATED_AT + 1 });
  const found = await store.pastes.find(id, CREATED_AT);
  assert.equal(await store.pastes.removeExpired(CREATED_AT + 1, 10), 1);
  assert.equal(await store.pastes.find(id, CREATED_AT + 1), found, 'the same object');
});

test('pastes.find: what a step left expired is found in the file, when the clock is set back', async (t) => {
  const { store } = await openTestStore(t);
  const ids: string[] = [];
  for (const expiresAt of [CREATED_AT + 1, CREATED_AT + 2]) {
    ids.push((await storePaste(store, patternedBytes(100), { expiresAt })).id);
  }
  for (const id of ids) assert.ok(await store.pastes.find(id, CREATED_AT));
  assert.equal(await store.pastes.removeExpired(CREATED_AT + 2, 1), 1);
  for (const turn of ['first', 'again']) {
    const found = await Promise.all(ids.map(async (id) => (await store.pastes.find(id, CREATED_AT))?.id));
    assert.deepEqual(found, [undefined, ids[1]], turn);
  }
});

test('pastes.find: a clock that was ahead for once does not keep pastes out of memory for good', async (t) => {
  const { store } = await openTestStore(t);
  await storePaste(store, patternedBytes(100));
  assert.equal(await store.pastes.removeExpired(EXPIRES_AT + 1000, 10), 1);
  const { id } = await storePaste(store, patternedBytes(100));
  const found = await store.pastes.find(id, CREATED_AT);
  assert.ok(found);
  assert.equal(store.pastes.find(id, CREATED_AT), found, 'the very same object, at once');
});

test('pastes.find: a closed store gives nothing from memory', async (t) => {
  const opened = await openTestStore(t);
  const { store } = opened;
  const { id } = await storePaste(store, patternedBytes(100));
  await store.pastes.find(id, CREATED_AT);
  await opened.reopen();
  await assert.rejects(async () => store.pastes.find(id, CREATED_AT), /closed/);
});

test('pastes.find: reading the metadata of a paste too large for that leaves its content alone', async (t) => {
  const { store } = await openTestStore(t);
  const paste = inlinePaste(patternedBytes(READ_ALONG_BYTES + 1));
  await store.pastes.create(paste, NO_TERMS);
  const described = await store.pastes.find(paste.id, CREATED_AT);
  assert.equal(described?.size, READ_ALONG_BYTES + 1);
  assert.notEqual(await store.pastes.find(paste.id, CREATED_AT), described, 'read anew');
  assert.deepEqual((await store.pastes.findWithContent(paste.id, CREATED_AT))?.content, paste.content);
});

test('pastes.find: memory stays until another process has removed pastes, which is noticed a millisecond later', async (t) => {
  const { store, path, clock } = await openTestStore(t);
  const { id } = await storePaste(store, patternedBytes(100));
  const first = await store.pastes.find(id, CREATED_AT);
  clock.advance(1000);
  assert.equal(store.pastes.find(id, CREATED_AT), first);
  const other = new DatabaseSync(path, { timeout: 5000 });
  other.exec('UPDATE removals SET count = count + 1');
  other.close();
  clock.advance(0.5);
  assert.equal(store.pastes.find(id, CREATED_AT), first);
  clock.advance(0.5);
  assert.notEqual(store.pastes.find(id, CREATED_AT), first);
});

test('clear: gives all of its room free again', () => {
  const hot = new HotPastes(HOT_PASTE_BYTES + 10);
  for (let round = 0; round < 3; round += 1) {
    const paste = foundPaste(10);
    hot.keep(paste);
    assert.equal(hot.find(paste.id, CREATED_AT), paste);
    hot.clear();
    assert.equal(hot.find(paste.id, CREATED_AT), undefined);
  }
});
