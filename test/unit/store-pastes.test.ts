// Store.pastes: what is stored is what is found, burning happens once, expiry is to the second, and a failure fails
// alone.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_TOUCHES } from '../../src/store/content.ts';
import { openReading } from '../../src/store/database.ts';
import { pasteListLookups } from '../../src/store/pastes.ts';
import { CHUNK_BYTES, INLINE_BYTES, StoreError } from '../../src/store/store.ts';
import {
  asFound, CREATED_AT, EXPIRES_AT, inlinePaste, newId, NO_TERMS, openTestStore, patternedBytes, storePaste, uploaded, wholeContent,
} from '../support/store.ts';
import { strayChunks, testStores } from '../support/stores.ts';

testStores('create: every field is found again', async ({ store }) => {
  const full = await storePaste(store, patternedBytes(300), {
    owner: 'a'.repeat(40),
    mimeType: 'image/png',
    burnAfterRead: true,
    passwordHash: 'pbkdf2$...',
    expiresAt: EXPIRES_AT + 7,
  });
  const plain = await storePaste(store, patternedBytes(5));
  for (const paste of [full, plain]) {
    const expected = asFound(paste);
    const { content } = expected;
    const described = await store.pastes.find(paste.id, CREATED_AT);
    assert.deepEqual({ ...described, content }, expected, 'with its content or without');
    assert.deepEqual(await store.pastes.findWithContent(paste.id, CREATED_AT), expected);
  }
});

testStores('create: content at the bounds of a row and of a chunk comes back byte for byte', async (opened) => {
  const bounds = [INLINE_BYTES, CHUNK_BYTES].flatMap((bound) => [bound - 1, bound, bound + 1]);
  const sizes = [1, ...bounds, 3 * CHUNK_BYTES];
  const pastes = [];
  for (const size of sizes) pastes.push(await storePaste(opened.store, patternedBytes(size, size)));
  await opened.reopen();
  for (const { id, size } of pastes) {
    const found = await opened.store.pastes.findWithContent(id, CREATED_AT);
    assert.ok(found);
    assert.equal(found.size, size);
    assert.equal(found.content === null, size > INLINE_BYTES);
    assert.deepEqual(await wholeContent(opened.store, found), Buffer.from(patternedBytes(size, size)));
  }
});

testStores('create: content keeps what text would lose, and the caller keeps its buffers', async ({ store }) => {
  const pool = Buffer.from([1, 2, 0, 0xed, 0xa0, 0x80, 0, 3, 4]);
  const paste = await storePaste(store, pool.subarray(2, 7));
  const found = await store.pastes.findWithContent(paste.id, CREATED_AT);
  assert.deepEqual(found?.content, { latin1: '\0\xed\xa0\x80\0' });
  assert.deepEqual([...pool], [1, 2, 0, 0xed, 0xa0, 0x80, 0, 3, 4]);
  const whole = patternedBytes(100);
  await storePaste(store, whole);
  assert.equal(whole.length, 100);
});

testStores('create: an id that is taken fails alone, as an error of the program', async ({ store }) => {
  const taken = await storePaste(store, patternedBytes(10));
  const others = Array.from({ length: 5 }, (_, index) => inlinePaste(patternedBytes(10 + index)));
  const twice = inlinePaste(patternedBytes(99), { id: taken.id });
  const outcomes = await Promise.allSettled([...others, twice].map((paste) => store.pastes.create(paste, NO_TERMS)));
  assert.deepEqual(outcomes.map(({ status }) => status), [...others.map(() => 'fulfilled'), 'rejected']);
  const refused = outcomes.at(-1) as PromiseRejectedResult;
  assert.ok(refused.reason instanceof Error && !(refused.reason instanceof StoreError));
  assert.match(refused.reason.message, /UNIQUE constraint failed/);
  for (const { id, size } of others) assert.equal((await store.pastes.find(id, CREATED_AT))?.size, size);
  assert.equal((await store.pastes.find(taken.id, CREATED_AT))?.size, 10);
  assert.equal(await store.healthy(), true);
});

testStores('create: refuses content that is not there, not whole, or in both places', async ({ store, tables }) => {
  const large = inlinePaste(patternedBytes(INLINE_BYTES + 1), { content: null, contentId: newId() });
  await assert.rejects(store.pastes.create(large, NO_TERMS), /not there, or not whole/);
  const upload = store.contents.upload(newId());
  await upload.write(patternedBytes(1000));
  const short = { ...large, contentId: upload.contentId, size: 1001 };
  await assert.rejects(store.pastes.create(short, NO_TERMS), /not there, or not whole/);
  const content = patternedBytes(1000);
  await assert.rejects(store.pastes.create({ ...short, content, size: 1000 }, NO_TERMS), /CHECK constraint failed/);
  await assert.rejects(store.pastes.create({ ...large, contentId: null }, NO_TERMS), /CHECK constraint failed/);
  assert.equal(await tables.value('SELECT count(*) FROM pastes'), 0);
  // A failure has no effect on the upload either: with the right size it can still be used.
  assert.deepEqual(await store.pastes.create({ ...short, size: 1000 }, NO_TERMS), { refused: null });
});

testStores('create: content belongs to one paste', async ({ store }) => {
  const paste = await storePaste(store, patternedBytes(INLINE_BYTES + 1));
  await assert.rejects(store.pastes.create({ ...paste, id: newId() }, NO_TERMS), /not there, or not whole/);
});

testStores('create: the quota counts content to the byte, once, in its row and in chunks', async ({ store, rowBytes }) => {
  const create = async (size: number, maxStoredBytes: number) => {
    const content = patternedBytes(size);
    const upload = size <= INLINE_BYTES ? undefined : await uploaded(store, content);
    const where = upload === undefined ? {} : { content: null, contentId: upload.contentId };
    const outcome = await store.pastes.create(inlinePaste(content, where), { ...NO_TERMS, maxStoredBytes });
    if (outcome.refused === null) upload?.keep();
    else await upload?.discard();
    return outcome.refused;
  };
  let storedBytes = 0;
  for (const [index, size] of [INLINE_BYTES, 4 * CHUNK_BYTES, 100, 8 * CHUNK_BYTES + 1, INLINE_BYTES].entries()) {
    // Content that is written already needs no more room in the database, whatever the database has beside content.
    const roomBytes = storedBytes + size + (size <= INLINE_BYTES ? index * rowBytes : 0);
    assert.equal(await create(size, roomBytes - 1), 'storageFull', `${index}`);
    assert.equal(await create(size, roomBytes), null, `${index}`);
    storedBytes += size;
  }
});

testStores('find: a paste is gone from the second of its expiry on', async ({ store }) => {
  const { id } = await storePaste(store, patternedBytes(10));
  for (const find of [store.pastes.find, store.pastes.findWithContent]) {
    assert.ok(await find(id, EXPIRES_AT - 1));
    assert.equal(await find(id, EXPIRES_AT), undefined);
    assert.equal(await find(id, EXPIRES_AT + 1), undefined);
  }
});

testStores('find: ids are compared byte for byte', async ({ store }) => {
  const { id } = await storePaste(store, patternedBytes(10), { id: 'abcdefgh' });
  assert.ok(await store.pastes.find(id, CREATED_AT));
  for (const other of ['ABCDEFGH', 'abcdefg', 'abcdefgh ', 'abcdefg%', '']) {
    assert.equal(await store.pastes.find(other, CREATED_AT), undefined);
  }
});

testStores('burn: of 64 at once exactly one is true', async ({ store }) => {
  for (const size of [10, CHUNK_BYTES + 1]) {
    const { id } = await storePaste(store, patternedBytes(size), { burnAfterRead: true });
    const claims = await Promise.all(Array.from({ length: 64 }, () => store.pastes.burn(id, null, CREATED_AT)));
    assert.equal(claims.filter(Boolean).length, 1);
    assert.equal(await store.pastes.find(id, CREATED_AT), undefined);
  }
});

testStores('burn: needs the password hash that was checked', async ({ store }) => {
  const { id: locked } = await storePaste(store, patternedBytes(10), { burnAfterRead: true, passwordHash: 'right' });
  const { id: open } = await storePaste(store, patternedBytes(10), { burnAfterRead: true });
  assert.equal(await store.pastes.burn(locked, null, CREATED_AT), false);
  assert.equal(await store.pastes.burn(locked, 'wrong', CREATED_AT), false);
  assert.equal(await store.pastes.burn(open, 'right', CREATED_AT), false);
  assert.ok(await store.pastes.find(locked, CREATED_AT));
  assert.equal(await store.pastes.burn(locked, 'right', CREATED_AT), true);
  assert.equal(await store.pastes.burn(open, null, CREATED_AT), true);
});

testStores('burn: leaves alone what is not burn-after-read, has expired, or is unknown', async ({ store }) => {
  const { id: lasting } = await storePaste(store, patternedBytes(10));
  const { id: burning } = await storePaste(store, patternedBytes(10), { burnAfterRead: true });
  assert.equal(await store.pastes.burn(lasting, null, CREATED_AT), false);
  assert.equal(await store.pastes.burn(newId(), null, CREATED_AT), false);
  assert.equal(await store.pastes.burn(burning, null, EXPIRES_AT), false);
  assert.equal(await store.pastes.burn(burning, null, EXPIRES_AT - 1), true);
  assert.ok(await store.pastes.find(lasting, CREATED_AT));
});

testStores('removeExpired: removes what has expired, content too, and nothing else', async ({ store, tables }) => {
  const before = await storePaste(store, patternedBytes(INLINE_BYTES + 1), { expiresAt: EXPIRES_AT - 1 });
  const at = await storePaste(store, patternedBytes(10), { expiresAt: EXPIRES_AT });
  const after = await storePaste(store, patternedBytes(INLINE_BYTES + 1), { expiresAt: EXPIRES_AT + 1 });
  assert.equal(await store.pastes.removeExpired(EXPIRES_AT, 100), 2);
  for (const { id } of [before, at]) assert.equal(await store.pastes.find(id, CREATED_AT), undefined);
  assert.ok(await store.pastes.find(after.id, EXPIRES_AT));
  assert.equal(await strayChunks(tables), 0);
  assert.equal(await tables.value('SELECT count(*) FROM chunks'), 1);
});

testStores('removeExpired: removes at most its limit, the longest expired first', async ({ store }) => {
  const pastes = [];
  for (let late = 0; late < 6; late += 1) {
    pastes.push(await storePaste(store, patternedBytes(10), { expiresAt: EXPIRES_AT - late }));
  }
  const [latest] = pastes;
  assert.equal(await store.pastes.removeExpired(EXPIRES_AT, 5), 5);
  assert.ok(await store.pastes.find(latest?.id ?? '', CREATED_AT));
  assert.equal(await store.pastes.removeExpired(EXPIRES_AT, 2), 1);
  assert.equal(await store.pastes.removeExpired(EXPIRES_AT, 1), 0);
});

testStores('touch: the access time is written by the time the store is closed', async ({ store, tables }) => {
  const { id } = await storePaste(store, patternedBytes(INLINE_BYTES));
  const accessedAt = () => tables.value(`SELECT accessed_at FROM pastes WHERE id = '${id}'`);
  assert.equal(await accessedAt(), CREATED_AT);
  store.pastes.touch(id, CREATED_AT + 1);
  store.pastes.touch(id, CREATED_AT + 60);
  store.pastes.touch(newId(), CREATED_AT);
  assert.equal(await accessedAt(), CREATED_AT);
  await store.close();
  assert.equal(await accessedAt(), CREATED_AT + 60);
});

testStores('touch: a full batch is written at once, and a paste that is gone does not matter', async ({ store, tables }) => {
  const { id } = await storePaste(store, patternedBytes(10));
  store.pastes.touch(id, CREATED_AT + 5);
  for (let count = 1; count < MAX_TOUCHES; count += 1) store.pastes.touch(newId(), CREATED_AT);
  // This command is behind the batch, so it is answered after it.
  await store.pastes.removeExpired(CREATED_AT, 1);
  assert.equal(await tables.value(`SELECT accessed_at FROM pastes WHERE id = '${id}'`), CREATED_AT + 5);
});

testStores('a closed store refuses every call', async ({ store }) => {
  const { id, contentId } = await storePaste(store, patternedBytes(INLINE_BYTES + 1));
  const upload = store.contents.upload(newId());
  await store.close();
  const closed = (error: unknown) => error instanceof StoreError && error.failure === 'unavailable';
  await assert.rejects(async () => store.pastes.find(id, CREATED_AT), closed);
  await assert.rejects(async () => store.pastes.findWithContent(id, CREATED_AT), closed);
  await assert.rejects(store.pastes.create(inlinePaste(patternedBytes(1)), NO_TERMS), closed);
  await assert.rejects(store.pastes.burn(id, null, CREATED_AT), closed);
  await assert.rejects(store.pastes.removeExpired(CREATED_AT, 1), closed);
  await assert.rejects(upload.write(patternedBytes(1)), closed);
  await assert.rejects(store.upkeep.truncateWal(), closed);
  await assert.rejects(async () => store.contents.open(contentId ?? ''), closed);
  assert.equal(await store.healthy(), false);
  store.pastes.touch(id, CREATED_AT);
  await store.close();
});

testStores('listPastes: says of each whether it burns and has a password; a page that begins behind the last is empty', async ({ store }) => {
  const owner = 'a'.repeat(40);
  const at = (createdAt: number) => ({ createdAt, owner, mimeType: 'text/plain' });
  const plain = await storePaste(store, patternedBytes(1), at(CREATED_AT));
  const burning = await storePaste(store, patternedBytes(2), { ...at(CREATED_AT + 1), burnAfterRead: true });
  const locked = await storePaste(store, patternedBytes(3), { ...at(CREATED_AT + 2), passwordHash: 'x' });
  const filter = { owner: null, typeGlob: null, after: 0, before: EXPIRES_AT };
  const pages = [[0, 3], [1, 1], [2, 1], [2, 2], [3, 1], [4, 1]] as const;
  const rows = [[locked.id, false, true], [burning.id, true, false], [plain.id, false, false]];
  for (const typeGlob of [null, 'text/*', '*ext/plain']) {
    for (const asked of [null, owner]) {
      for (const [offset, limit] of pages) {
        const found = await store.read.listPastes({ ...filter, owner: asked, typeGlob }, { offset, limit }, CREATED_AT);
        const shown = found.items.map(({ id, burnAfterRead, hasPassword }) => [id, burnAfterRead, hasPassword]);
        assert.deepEqual([shown, found.total], [rows.slice(offset, offset + limit), 3], `${typeGlob} ${asked} ${offset}`);
      }
    }
  }
  for (const typeGlob of ['image/*', '*mage/png']) {
    assert.deepEqual(await store.read.listPastes({ ...filter, typeGlob }, { offset: 0, limit: 9 }, CREATED_AT), { items: [], total: 0 });
  }
});

test('nthPasteAt: for globs that cost, when the last of so many was made; of an owner\'s or of all', async (t) => {
  const { store, path } = await openTestStore(t);
  const [mine, others] = ['a'.repeat(40), 'b'.repeat(40)];
  for (const [index, owner] of [mine, others, mine, null].entries()) {
    await storePaste(store, patternedBytes(1), { owner, createdAt: CREATED_AT + index });
  }
  using db = openReading(path);
  const { nthPasteAt } = pasteListLookups(db);
  const filter = { owner: null, typeGlob: '*x', after: 0, before: EXPIRES_AT };
  const ages = (owner: string | null) => (
    [1, 2, 3, 4, 5].map((rows) => nthPasteAt({ ...filter, owner }, rows)).map((madeAt) => madeAt && madeAt - CREATED_AT)
  );
  assert.deepEqual(ages(null), [3, 2, 1, 0, undefined]);
  assert.deepEqual(ages(mine), [2, 0, undefined, undefined, undefined]);
  for (const typeGlob of [null, 'text/*', 'x']) assert.equal(nthPasteAt({ ...filter, typeGlob }, 1), undefined);
});
