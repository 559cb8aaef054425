// Store.contents: uploads in chunks, reading by range, and that content stays while somebody holds it and goes when
// nobody does.

import assert from 'node:assert/strict';
import test from 'node:test';
import type { ContentReader } from '../../src/store/content.ts';
import type { Store } from '../../src/store/open.ts';
import { CHUNK_BYTES, INLINE_BYTES, StoreError } from '../../src/store/store.ts';
import {
  CREATED_AT, EXPIRES_AT, gather, inlinePaste, newId, NO_TERMS, openTestStore, patternedBytes, readContent, storePaste,
  uploadContent,
} from '../support/store.ts';
import { removalsDone, strayChunks, testStores } from '../support/stores.ts';

async function hold(store: Store, contentId: string | null): Promise<ContentReader> {
  const reader = await store.contents.open(contentId ?? '');
  assert.ok(reader, 'the content can be opened');
  return reader;
}

testStores('read: any range comes back as it is', async ({ store }) => {
  const content = patternedBytes(2 * CHUNK_BYTES + 100);
  const { contentId } = await storePaste(store, content);
  const { length } = content;
  const bounds = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, length - 1, length];
  const reader = await hold(store, contentId);
  for (const start of bounds) {
    for (const end of bounds.filter((bound) => bound >= start)) {
      const expected = Buffer.from(content.subarray(start, end));
      assert.deepEqual(await gather(reader.read(start, end)), expected, `${start}-${end}`);
    }
  }
  reader.close();
});

/** The lengths of its pieces, and what memory they were in. */
async function piecesOf(reader: ContentReader, start: number, end: number) {
  const lengths: number[] = [];
  const memory = new Set<ArrayBufferLike>();
  let mostBytes = 0;
  for await (const piece of reader.read(start, end)) {
    lengths.push(piece.length);
    memory.add(piece.buffer);
    mostBytes = Math.max(mostBytes, heldBytes(memory));
  }
  return { lengths, memory, mostBytes };
}

const heldBytes = (memory: Iterable<ArrayBufferLike>): number => (
  Array.from(memory, ({ byteLength }) => byteLength).reduce((sum, bytes) => sum + bytes, 0)
);

test('read: in a crowd a reader holds 64 KiB, in which each piece takes the place of the last', async (t) => {
  const { store } = await openTestStore(t);
  const { contentId } = await storePaste(store, patternedBytes(2 * CHUNK_BYTES + 100));
  const crowd = await Promise.all(Array.from({ length: 8 }, async () => (await hold(store, contentId)).read(0, CHUNK_BYTES)));
  for (const pieces of crowd) assert.equal((await pieces.next()).value?.length, CHUNK_BYTES);
  const reader = await hold(store, contentId);
  const { lengths, memory } = await piecesOf(reader, CHUNK_BYTES - 10, 2 * CHUNK_BYTES + 100);
  assert.deepEqual(lengths, [10, 65_536, 65_536, 65_536, 65_536, 100]);
  assert.deepEqual([...memory].map(({ byteLength }) => byteLength), [65_536]);
  // A reader that leaves in the middle makes room for another.
  await crowd[0]!.return();
  const { lengths: after } = await piecesOf(reader, 0, CHUNK_BYTES);
  assert.equal(after.length, 4, 'the crowd has left pieces of this chunk in memory');
  assert.deepEqual((await piecesOf(reader, 0, 3)).lengths, [3]);
  const end = CHUNK_BYTES / 4 + 10;
  assert.deepEqual((await piecesOf(reader, 0, end)).lengths, [65_536, 10], 'no more than was asked for');
  reader.close();
});

test('read: alone, a reader holds one whole chunk, and none at its end', async (t) => {
  const { store } = await openTestStore(t);
  const { contentId } = await storePaste(store, patternedBytes(2 * CHUNK_BYTES + 100));
  const reader = await hold(store, contentId);
  const { lengths, memory, mostBytes } = await piecesOf(reader, CHUNK_BYTES - 10, 2 * CHUNK_BYTES + 100);
  assert.deepEqual(lengths, [10, CHUNK_BYTES, 100]);
  assert.equal(mostBytes, CHUNK_BYTES);
  assert.equal(heldBytes(memory), 0);
  const begun = reader.read(0, 2 * CHUNK_BYTES);
  const { value = assert.fail('there is a first piece') } = await begun.next();
  await begun.return();
  assert.equal(value.length, 0, 'given up in the middle, it holds none either');
  reader.close();
});

testStores('read: past the end is an error, never silence', async ({ store }) => {
  for (const size of [INLINE_BYTES + 1, CHUNK_BYTES]) {
    const { contentId } = await storePaste(store, patternedBytes(size));
    const reader = await hold(store, contentId);
    assert.equal((await gather(reader.read(size - 1, size))).length, 1);
    await assert.rejects(gather(reader.read(0, size + 1)), RangeError);
    reader.close();
  }
});

testStores('open: gives nothing for content that is unknown or that no paste has', async ({ store }) => {
  assert.equal(await store.contents.open(newId()), undefined);
  const contentId = await uploadContent(store, patternedBytes(INLINE_BYTES + 1));
  assert.equal(await store.contents.open(contentId), undefined);
  await store.pastes.create(inlinePaste(patternedBytes(INLINE_BYTES + 1), { content: null, contentId }), NO_TERMS);
  (await hold(store, contentId)).close();
});

testStores('burn: who holds the content reads it to its end, nobody else gets it, and then it goes', async ({ store, tables }) => {
  const content = patternedBytes(20 * CHUNK_BYTES);
  const { id, contentId } = await storePaste(store, content, { burnAfterRead: true });
  const reader = await hold(store, contentId);
  assert.equal(await store.pastes.burn(id, null, CREATED_AT), true);
  assert.equal(await store.contents.open(contentId ?? ''), undefined);
  await removalsDone(store);
  assert.deepEqual(await gather(reader.read(0, content.length)), Buffer.from(content));
  assert.equal(await strayChunks(tables), 20);
  reader.close();
  await removalsDone(store);
  assert.equal(await strayChunks(tables), 0);
});

testStores('burn: content that several hold goes with the last of them, and closing twice counts once', async ({ store, tables }) => {
  const { id, contentId } = await storePaste(store, patternedBytes(CHUNK_BYTES + 1), { burnAfterRead: true });
  const readers = await Promise.all(Array.from({ length: 8 }, () => hold(store, contentId)));
  const claims = await Promise.all(readers.map(() => store.pastes.burn(id, null, CREATED_AT)));
  assert.equal(claims.filter(Boolean).length, 1);
  const [winner = assert.fail('there are eight'), ...others] = readers;
  for (const reader of others) {
    reader.close();
    reader.close();
  }
  await removalsDone(store);
  assert.equal((await gather(winner.read(0, CHUNK_BYTES + 1))).length, CHUNK_BYTES + 1);
  winner.close();
  await removalsDone(store);
  assert.equal(await strayChunks(tables), 0);
});

testStores('burn: content that nobody holds goes at once', async ({ store, tables }) => {
  const { id } = await storePaste(store, patternedBytes(9 * CHUNK_BYTES), { burnAfterRead: true });
  assert.equal(await store.pastes.burn(id, null, CREATED_AT), true);
  await removalsDone(store);
  assert.equal(await strayChunks(tables), 0);
});

testStores('open: racing with burn it gives content that can be read whole, or none', async ({ store, tables }) => {
  for (let round = 0; round < 20; round += 1) {
    const content = patternedBytes(INLINE_BYTES + 1 + round);
    const { id, contentId } = await storePaste(store, content, { burnAfterRead: true });
    let burned = false;
    const opening = hold(store, contentId);
    void store.pastes.burn(id, null, CREATED_AT).then(() => (burned = true));
    let last = await opening;
    while (!burned) {
      const reader = await store.contents.open(contentId ?? '');
      if (reader !== undefined) {
        last.close();
        last = reader;
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(await store.contents.open(contentId ?? ''), undefined);
    assert.deepEqual(await gather(last.read(0, content.length)), Buffer.from(content));
    last.close();
  }
  await removalsDone(store);
  assert.equal(await strayChunks(tables), 0);
});

testStores('removeExpired: content that is being read stays until it is closed', async ({ store, tables }) => {
  const content = patternedBytes(3 * CHUNK_BYTES);
  const { contentId } = await storePaste(store, content);
  const reader = await hold(store, contentId);
  assert.equal(await store.pastes.removeExpired(EXPIRES_AT, 10), 1);
  assert.equal(await strayChunks(tables), 3);
  assert.deepEqual(await gather(reader.read(0, content.length)), Buffer.from(content));
  reader.close();
  await removalsDone(store);
  assert.equal(await strayChunks(tables), 0);
});

testStores('content that was read before goes at once with its paste: removed, replaced, expired', async ({ store, tables }) => {
  const owner = 'a'.repeat(40);
  const { mimeType, size, sha256, content } = inlinePaste(patternedBytes(10));
  const replacement = { content: { mimeType, size, sha256, content, contentId: null } };
  const ways = {
    removed: async (id: string) => store.pastes.remove(id, owner, CREATED_AT, null),
    replaced: async (id: string) => store.pastes.update(id, owner, replacement, { ...NO_TERMS, nowSeconds: CREATED_AT }),
    expired: async () => store.pastes.removeExpired(EXPIRES_AT, 10),
  };
  for (const [way, end] of Object.entries(ways)) {
    const { id, contentId } = await storePaste(store, patternedBytes(3 * CHUNK_BYTES), { owner });
    const readers = [await hold(store, contentId), await hold(store, contentId)];
    for (const reader of readers) reader.close();
    await end(id);
    await removalsDone(store);
    assert.equal(await strayChunks(tables), 0, way);
    assert.equal(await store.contents.open(contentId ?? ''), undefined, way);
  }
});

testStores('close: a reader that is closed reads no more', async ({ store }) => {
  const { contentId } = await storePaste(store, patternedBytes(3 * CHUNK_BYTES));
  const reader = await hold(store, contentId);
  const chunks = reader.read(0, 3 * CHUNK_BYTES)[Symbol.asyncIterator]();
  assert.notEqual((await chunks.next()).value, undefined);
  reader.close();
  await assert.rejects(chunks.next(), /closed/);
});

testStores('discard: removes what was written, also with writes still under way, and refuses more', async ({ store, tables }) => {
  const upload = store.contents.upload(newId());
  const writes = Array.from({ length: 10 }, () => upload.write(patternedBytes(CHUNK_BYTES)));
  await upload.discard();
  await Promise.all(writes);
  assert.equal(await strayChunks(tables), 0);
  await assert.rejects(upload.write(patternedBytes(CHUNK_BYTES)), /ended/);
  await upload.discard();
});

testStores('discard: right after the first write under a quota, it leaves nothing behind and no room promised', async ({ store, tables }) => {
  const quota = { maxStoredBytes: 4 * CHUNK_BYTES, declaredBytes: 3 * CHUNK_BYTES };
  for (let round = 0; round < 3; round += 1) {
    const upload = store.contents.upload(newId(), quota);
    const written = upload.write(patternedBytes(CHUNK_BYTES));
    await Promise.all([written, upload.discard()]);
  }
  assert.equal(await strayChunks(tables), 0);
  assert.equal(await tables.value('SELECT count(*) FROM orphans'), 0);
});

testStores('discard: does nothing to an upload without chunks, or to content that a paste has', async ({ store }) => {
  await store.contents.upload(newId()).discard();
  const upload = store.contents.upload(newId());
  await upload.write(patternedBytes(CHUNK_BYTES));
  const { contentId } = upload;
  const paste = inlinePaste(patternedBytes(CHUNK_BYTES), { content: null, contentId });
  await store.pastes.create(paste, NO_TERMS);
  await upload.discard();
  assert.equal((await readContent(store, contentId, 0, CHUNK_BYTES)).length, CHUNK_BYTES);
});

testStores('discard: racing with create, the paste has its content whole or there is no paste', async ({ store, tables }) => {
  for (const discardFirst of [true, false]) {
    const size = 20 * CHUNK_BYTES;
    const upload = store.contents.upload(newId());
    for (let count = 0; count < 20; count += 1) await upload.write(patternedBytes(CHUNK_BYTES));
    const paste = inlinePaste(patternedBytes(size), { content: null, contentId: upload.contentId });
    const discarding = discardFirst ? upload.discard() : undefined;
    const creating = store.pastes.create(paste, NO_TERMS).then(() => true, () => false);
    await Promise.all([discarding ?? upload.discard(), creating]);
    const found = await store.pastes.find(paste.id, CREATED_AT);
    assert.equal(found !== undefined, await creating);
    if (found !== undefined) assert.equal((await readContent(store, upload.contentId, 0, size)).length, size);
    assert.equal(await strayChunks(tables), 0);
  }
});

testStores('write: gives a buffer taken for it back, and copies any other', async ({ store }) => {
  const { chunks } = store.contents;
  const upload = store.contents.upload(newId());
  const content = patternedBytes(CHUNK_BYTES + 50);
  const lent = chunks.take();
  lent.set(content.subarray(0, CHUNK_BYTES));
  const pool = Buffer.concat([Buffer.alloc(7), content.subarray(CHUNK_BYTES), Buffer.alloc(9)]);
  const writing = upload.write(lent);
  assert.equal(chunks.taken, 1, 'not before it is committed');
  await writing;
  assert.equal(chunks.taken, 0);
  await upload.write(pool.subarray(7, 57));
  assert.equal(pool.length, 66);
  const { contentId } = upload;
  await store.pastes.create(inlinePaste(content, { content: null, contentId }), NO_TERMS);
  assert.deepEqual(await readContent(store, contentId, 0, content.length), Buffer.from(content));
});

testStores('write: a buffer goes back when its chunk is refused too', async ({ store }) => {
  const { chunks } = store.contents;
  const upload = store.contents.upload(newId());
  await assert.rejects(upload.write(chunks.take().subarray(0, 0)), RangeError);
  await upload.discard();
  await assert.rejects(upload.write(chunks.take()), /has ended/);
  assert.equal(chunks.taken, 0);
});

testStores('write: refuses an empty chunk, one too long, and one after a short one', async ({ store, tables }) => {
  const upload = store.contents.upload(newId());
  await assert.rejects(upload.write(new Uint8Array(0)), RangeError);
  await assert.rejects(upload.write(patternedBytes(CHUNK_BYTES + 1)), RangeError);
  await upload.write(patternedBytes(CHUNK_BYTES));
  await upload.write(patternedBytes(CHUNK_BYTES - 1));
  await assert.rejects(upload.write(patternedBytes(1)), RangeError);
  assert.equal(await strayChunks(tables), 2);
});

testStores('write: an upload under the id of another has no effect on it', async ({ store }) => {
  const content = patternedBytes(CHUNK_BYTES);
  const { contentId } = await storePaste(store, content);
  const upload = store.contents.upload(contentId ?? '');
  await assert.rejects(upload.write(patternedBytes(10, 2)), /constraint failed/);
  await upload.discard();
  assert.deepEqual(await readContent(store, contentId ?? '', 0, CHUNK_BYTES), Buffer.from(content));
});

testStores('write: many uploads at once keep their own order', async ({ store }) => {
  const contents = Array.from({ length: 10 }, (_, index) => patternedBytes(3 * CHUNK_BYTES + 1 + index, index));
  const uploaded = await Promise.all(contents.map(async (content) => {
    const upload = store.contents.upload(newId());
    const starts = [0, 1, 2, 3].map((position) => position * CHUNK_BYTES);
    await Promise.all(starts.map((start) => upload.write(content.slice(start, start + CHUNK_BYTES))));
    const { contentId } = upload;
    await store.pastes.create(inlinePaste(content, { content: null, contentId }), NO_TERMS);
    return contentId;
  }));
  for (const [index, contentId] of uploaded.entries()) {
    const content = contents[index] ?? new Uint8Array();
    assert.deepEqual(await readContent(store, contentId, 0, content.length), Buffer.from(content));
  }
});

testStores('write: under a quota, a first chunk without room for all that is declared is refused, and nothing is written', async ({ store, tables }) => {
  const isFull = (error: unknown): boolean => error instanceof StoreError && error.failure === 'full';
  const quota = { maxStoredBytes: 5 * CHUNK_BYTES, declaredBytes: 4 * CHUNK_BYTES };
  const first = store.contents.upload(newId(), quota);
  await first.write(patternedBytes(CHUNK_BYTES));
  // Room that was promised to the first upload is not given to another one, declared or not.
  const declared = store.contents.upload(newId(), { ...quota, declaredBytes: 3 * CHUNK_BYTES });
  const writes = [1, 2].map((seed) => declared.write(patternedBytes(CHUNK_BYTES, seed)));
  for (const write of writes) await assert.rejects(write, isFull);
  await declared.discard();
  const growing = store.contents.upload(newId(), { ...quota, declaredBytes: 0 });
  const outcomes = [];
  for (let count = 0; count < 4; count += 1) {
    outcomes.push(await growing.write(patternedBytes(CHUNK_BYTES)).then(() => 'written', isFull));
  }
  assert.equal(outcomes.at(-1), true);
  assert.ok(await store.healthy());
  await first.write(patternedBytes(CHUNK_BYTES, 2));
  await first.write(patternedBytes(CHUNK_BYTES, 3));
  await growing.discard();
  await first.discard();
  assert.equal(await strayChunks(tables), 0);
  // Room that was promised to an upload that is gone is free again.
  const next = store.contents.upload(newId(), quota);
  await next.write(patternedBytes(CHUNK_BYTES));
  await next.discard();
  const last = store.contents.upload(newId(), { ...quota, declaredBytes: 5 * CHUNK_BYTES });
  await last.write(patternedBytes(CHUNK_BYTES));
});

test('close: a reader of content that still has its paste leaves nothing to write, nor does one that is closed twice', async (t) => {
  const { store } = await openTestStore(t);
  const { contentId } = await storePaste(store, patternedBytes(CHUNK_BYTES));
  const [reader, other] = [await hold(store, contentId), await hold(store, contentId)];
  reader.close();
  reader.close();
  other.close();
  assert.equal(store.upkeep.writesWaiting(), 0);
  assert.equal((await readContent(store, contentId!, 0, CHUNK_BYTES)).length, CHUNK_BYTES);
  assert.equal(store.upkeep.writesWaiting(), 0);
});
