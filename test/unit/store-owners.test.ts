// What each owner stores: the bytes that triggers keep beside the pastes, and the quota of an owner.

import assert from 'node:assert/strict';
import { INLINE_BYTES, type NewPaste } from '../../src/store/store.ts';
import { createSeeded } from '../support/seeded.ts';
import {
  CREATED_AT, EXPIRES_AT, inlineContent, inlinePaste, NO_TERMS, patternedBytes, storePaste, uploaded,
} from '../support/store.ts';
import { type Tables, testStores } from '../support/stores.ts';

const OWNER = 'a'.repeat(40);
const OTHER = 'b'.repeat(40);

/** Fails unless each owner has as many bytes on record as its pastes have together, and nobody else has any. */
async function assertSummed(tables: Tables, what: string): Promise<void> {
  const sums = 'SELECT owner, sum(size) FROM pastes WHERE owner IS NOT NULL GROUP BY owner ORDER BY owner';
  assert.deepEqual(await tables.rows('SELECT owner, bytes FROM owners ORDER BY owner'), await tables.rows(sums), what);
}

testStores('owners: what each stores is the sum of its pastes, whatever is created, changed, burned, deleted or expires', async ({ store, tables }) => {
  for (const seed of [1, 2, 3]) {
    const random = createSeeded(seed);
    const ids: { id: string; owner: string | null; isBurn: boolean }[] = [];
    let nowSeconds = CREATED_AT;
    const sizeOf = (): number => (random.oneIn(4) ? INLINE_BYTES + random.between(1, 9000) : random.between(1, 3000));
    for (let turn = 0; turn < 150; turn += 1) {
      const what = `seed ${seed}, turn ${turn}`;
      const one = ids.length === 0 || random.oneIn(2) ? undefined : random.pick(ids);
      if (one === undefined) {
        const [owner, burnAfterRead] = [random.pick([OWNER, OTHER, null]), random.oneIn(4)];
        const expiresAt = nowSeconds + random.between(1, 40);
        const changes = { owner, burnAfterRead, createdAt: nowSeconds, expiresAt };
        const { id } = await storePaste(store, patternedBytes(sizeOf(), turn), changes);
        ids.push({ id, owner, isBurn: burnAfterRead });
      } else if (one.isBurn) {
        await store.pastes.burn(one.id, null, nowSeconds);
      } else if (random.oneIn(4)) {
        await store.pastes.remove(one.id, one.owner, nowSeconds, null);
      } else if (one.owner !== null) {
        const bytes = patternedBytes(sizeOf(), turn);
        const isInline = bytes.length <= INLINE_BYTES;
        const upload = isInline ? undefined : await uploaded(store, bytes);
        const where = upload === undefined ? {} : { contentId: upload.contentId, content: null };
        const content = { ...inlineContent(bytes), ...where };
        await store.pastes.update(one.id, one.owner, { content }, { ...NO_TERMS, nowSeconds });
        upload?.keep();
      }
      if (random.oneIn(10)) {
        nowSeconds += random.between(1, 20);
        await store.pastes.removeExpired(nowSeconds, 5);
      }
      if (turn % 5 === 0) await assertSummed(tables, what);
    }
    assert.notEqual(await tables.value('SELECT count(*) FROM owners'), 0, 'it has seen owners');
    while (await store.pastes.removeExpired(EXPIRES_AT, 100) > 0);
    assert.equal(await tables.value('SELECT count(*) FROM owners'), 0, `seed ${seed}`);
  }
});

testStores('owners: of many creations, updates and deletions at once, none is counted twice or forgotten', async ({ store, tables }) => {
  const pastes = await Promise.all(Array.from({ length: 40 }, (_, index) => (
    storePaste(store, patternedBytes(100 + index, index), { owner: index % 2 === 0 ? OWNER : OTHER })
  )));
  await Promise.all(pastes.flatMap(({ id, owner }, index) => {
    const content = inlineContent(patternedBytes(50 * index + 1, index));
    const change = store.pastes.update(id, owner!, { content }, { ...NO_TERMS, nowSeconds: CREATED_AT });
    return index % 3 === 0 ? [change, store.pastes.remove(id, owner, CREATED_AT, null)] : [change];
  }));
  await assertSummed(tables, 'afterwards');
});

testStores('owner quota: to the byte, for creating and updating; others and who is nobody have theirs', async ({ store, tables }) => {
  const terms = { ...NO_TERMS, maxOwnerBytes: 1000 };
  const full = {
    refused: 'storageFull',
    fields: { hint: 'your pastes take as much as one owner may store: delete some, or wait until they expire' },
  };
  const create = (size: number, owner: string | null): [NewPaste, Promise<unknown>] => {
    const paste = inlinePaste(patternedBytes(size), { owner });
    return [paste, store.pastes.create(paste, terms)];
  };
  assert.deepEqual(await create(1001, OWNER)[1], full);
  assert.deepEqual(await create(1000, OTHER)[1], { refused: null });
  assert.deepEqual(await create(1001, null)[1], { refused: null });
  const [first, isStored] = create(600, OWNER);
  assert.deepEqual(await isStored, { refused: null });
  for (const [size, expected] of [[401, full], [400, { refused: null }], [1, full]] as const) {
    assert.deepEqual(await create(size, OWNER)[1], expected, `${size}`);
  }

  const update = async (size: number, maxOwnerBytes = 1000) => {
    const content = inlineContent(patternedBytes(size, size));
    return store.pastes.update(first.id, OWNER, { content }, { ...terms, maxOwnerBytes, nowSeconds: CREATED_AT });
  };
  assert.deepEqual(await update(601), full);
  assert.equal((await update(600)).refused, null);
  assert.equal((await update(599)).refused, null);
  assert.deepEqual(await update(601), full);
  assert.equal((await update(600)).refused, null);
  // The limit is newer than the pastes: content that is smaller or as large is stored, and larger content is not.
  assert.equal((await update(500, 10)).refused, null);
  assert.equal((await update(500, 10)).refused, null);
  assert.deepEqual(await update(501, 10), full);
  assert.equal(await tables.value(`SELECT bytes FROM owners WHERE owner = '${OWNER}'`), 900);
  await store.pastes.remove(first.id, OWNER, CREATED_AT, null);
  assert.deepEqual(await create(600, OWNER)[1], { refused: null });
  await assertSummed(tables, 'in the end');
});

testStores('owner quota: of many creations at once as many as fit are stored', async ({ store, tables }) => {
  const outcomes = await Promise.all(Array.from({ length: 40 }, (_, index) => (
    store.pastes.create(inlinePaste(patternedBytes(100, index), { owner: OWNER }), { ...NO_TERMS, maxOwnerBytes: 1099 })
  )));
  assert.equal(outcomes.filter(({ refused }) => refused === null).length, 10);
  assert.equal(await tables.value('SELECT bytes FROM owners'), 1000);
});

testStores('owner quota: what has expired counts no more, whether or not it was removed; others\' leaves no room', async ({ store, tables }) => {
  const create = (size: number, owner: string, createdAt = CREATED_AT) => {
    const terms = { ...NO_TERMS, maxOwnerBytes: 1000 };
    return store.pastes.create(inlinePaste(patternedBytes(size), { owner, createdAt, expiresAt: createdAt + 60 }), terms);
  };
  assert.deepEqual(await create(900, OWNER), { refused: null });
  assert.deepEqual(await create(900, OTHER, CREATED_AT + 30), { refused: null });
  const [before, from] = [CREATED_AT + 59, CREATED_AT + 60];
  assert.equal((await create(101, OWNER, before)).refused, 'storageFull');
  assert.deepEqual(await create(1000, OWNER, from), { refused: null });
  assert.equal((await create(1, OWNER, from)).refused, 'storageFull');
  assert.equal((await create(101, OTHER, from)).refused, 'storageFull');
  await assertSummed(tables, 'with what has expired');
});
