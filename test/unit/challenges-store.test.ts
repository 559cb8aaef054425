// What the store keeps for the abuse controls: used challenges, submissions by content, kept secrets, and the decision
// on a new paste that depends on all of them at once.

import assert from 'node:assert/strict';
import type { Store } from '../../src/store/open.ts';
import type { CreationOutcome, CreationTerms, SpentChallenge } from '../../src/store/store.ts';
import { CREATED_AT, inlinePaste, NO_TERMS, patternedBytes } from '../support/store.ts';
import { testStores } from '../support/stores.ts';

const STORED = { refused: null } as const;

function spending(nonce: string, expiresAt = CREATED_AT + 300): CreationTerms & { spend: SpentChallenge } {
  return { ...NO_TERMS, spend: { nonce, expiresAt, spendableUntil: expiresAt + 60 } };
}

async function create(
  store: Store,
  content: Uint8Array,
  terms: CreationTerms,
  createdAt = CREATED_AT,
): Promise<CreationOutcome> {
  return store.pastes.create(inlinePaste(content, { createdAt, expiresAt: createdAt + 3600 }), terms);
}

testStores('pastes.create: a challenge buys one paste, also when many ask in one transaction', async ({ store, tables }) => {
  const creations = Array.from({ length: 20 }, (_, turn) => create(store, patternedBytes(10, turn), spending('n')));
  const outcomes = await Promise.all(creations);
  assert.equal(outcomes.filter(({ refused }) => refused === null).length, 1);
  assert.equal(outcomes.filter(({ refused }) => refused === 'powAlreadyUsed').length, 19);
  assert.equal(await store.read.isSpent('n'), true);
  assert.equal(await store.read.isSpent('m'), false);
  assert.equal(await tables.value('SELECT pastes FROM usage'), 1);
});

testStores('pastes.create: used challenge, then duplicates, then room; a refusal leaves nothing behind', async (opened) => {
  const { store, tables, rowBytes } = opened;
  const content = patternedBytes(10);
  const duplicates = { max: 1, windowSeconds: 60 };
  assert.deepEqual(await create(store, content, { ...spending('first'), duplicates, maxStoredBytes: 10 }), STORED);

  const full = { duplicates, maxStoredBytes: 19 + rowBytes };
  assert.deepEqual(await create(store, content, { ...spending('first'), ...full }), { refused: 'powAlreadyUsed' });
  const duplicate = { refused: 'duplicateContent', fields: { count: 1, windowSeconds: 60 }, retryAfterSeconds: 60 };
  assert.deepEqual(await create(store, content, { ...spending('second'), ...full }), duplicate);
  const other = patternedBytes(10, 2);
  assert.deepEqual(await create(store, other, { ...spending('second'), ...full }), { refused: 'storageFull' });
  for (const table of ['pastes', 'spent_challenges', 'submissions']) {
    assert.equal(await tables.value(`SELECT count(*) FROM ${table}`), 1, table);
  }
  assert.deepEqual(await create(store, patternedBytes(9, 2), { ...spending('second'), ...full }), STORED);
});

testStores('pastes.create: the window of duplicates slides by the second', async ({ store }) => {
  const content = patternedBytes(10);
  const terms = { ...NO_TERMS, duplicates: { max: 2, windowSeconds: 60 } };
  for (const seconds of [0, 20]) assert.deepEqual(await create(store, content, terms, CREATED_AT + seconds), STORED);
  for (const [seconds, retryAfterSeconds] of [[20, 40], [59, 1]] as const) {
    const outcome = await create(store, content, terms, CREATED_AT + seconds);
    assert.deepEqual(outcome, { refused: 'duplicateContent', fields: { count: 2, windowSeconds: 60 }, retryAfterSeconds });
  }
  assert.deepEqual(await create(store, content, terms, CREATED_AT + 60), STORED);
  const tooEarly = await create(store, content, terms, CREATED_AT + 79);
  assert.deepEqual(tooEarly, { refused: 'duplicateContent', fields: { count: 2, windowSeconds: 60 }, retryAfterSeconds: 1 });
  assert.deepEqual(await create(store, content, terms, CREATED_AT + 80), STORED);
});

testStores('pastes.create: what a clock stored that was ahead is a duplicate for a window after it was set back, and no longer', async ({ store }) => {
  const content = patternedBytes(10);
  const terms = { ...NO_TERMS, duplicates: { max: 1, windowSeconds: 60 } };
  assert.deepEqual(await create(store, content, terms, CREATED_AT + 3600), STORED);
  const refused = { refused: 'duplicateContent', fields: { count: 1, windowSeconds: 60 }, retryAfterSeconds: 120 };
  assert.deepEqual(await create(store, content, terms, CREATED_AT + 3540), refused);
  assert.deepEqual(await create(store, content, terms, CREATED_AT), STORED);
  assert.equal((await create(store, content, terms, CREATED_AT + 59)).refused, 'duplicateContent');
  assert.deepEqual(await create(store, content, terms, CREATED_AT + 60), STORED);
});

testStores('pastes.create: a challenge buys nothing once its record may be gone, used before or not', async ({ store, tables }) => {
  const terms = spending('n', CREATED_AT);
  assert.deepEqual(await create(store, patternedBytes(10, 1), terms, CREATED_AT + 59), STORED);
  assert.equal(await store.run('removeExpiredChallenges', { untilSeconds: CREATED_AT, limit: 10 }), 1);
  for (const nonce of ['n', 'never used']) {
    const late = { ...terms, spend: { ...terms.spend, nonce } };
    const outcome = await create(store, patternedBytes(10, 2), late, CREATED_AT + 60);
    assert.deepEqual(outcome, { refused: 'powExpired' });
  }
  assert.equal(await tables.value('SELECT count(*) FROM spent_challenges'), 0);
});

testStores('removeExpiredChallenges: what has run out, so many at a time, and nothing else', async ({ store }) => {
  for (let turn = 0; turn < 5; turn += 1) {
    const terms = spending(`nonce ${turn}`, CREATED_AT + turn);
    assert.deepEqual(await create(store, patternedBytes(10, turn), terms), STORED);
  }
  assert.equal(await store.run('removeExpiredChallenges', { untilSeconds: CREATED_AT + 2, limit: 2 }), 2);
  assert.equal(await store.run('removeExpiredChallenges', { untilSeconds: CREATED_AT + 2, limit: 2 }), 1);
  assert.equal(await store.run('removeExpiredChallenges', { untilSeconds: CREATED_AT + 2, limit: 2 }), 0);
  const spent = await Promise.all([0, 1, 2, 3, 4].map((turn) => store.read.isSpent(`nonce ${turn}`)));
  assert.deepEqual(spent, [false, false, false, true, true]);
});

testStores('removeOldSubmissions: what was stored by then, so many at a time, and nothing else', async ({ store, tables }) => {
  const terms = { ...NO_TERMS, duplicates: { max: 3, windowSeconds: 60 } };
  for (let turn = 0; turn < 5; turn += 1) {
    assert.deepEqual(await create(store, patternedBytes(10, turn), terms, CREATED_AT + turn), STORED);
  }
  assert.equal(await store.run('removeOldSubmissions', { untilSeconds: CREATED_AT + 2, limit: 2 }), 2);
  assert.equal(await store.run('removeOldSubmissions', { untilSeconds: CREATED_AT + 2, limit: 2 }), 1);
  assert.equal(await store.run('removeOldSubmissions', { untilSeconds: CREATED_AT + 2, limit: 2 }), 0);
  assert.equal(await tables.value('SELECT min(stored_at) FROM submissions'), CREATED_AT + 3);
  assert.equal(await tables.value('SELECT count(*) FROM submissions'), 2);
});

testStores('keepSecret: the first value offered is kept, across restarts and under each name by itself', async (opened) => {
  const [first, second] = [patternedBytes(32, 1), patternedBytes(32, 2)];
  const kept = await Promise.all([first, second].map((offered) => opened.store.keepSecret('a', offered)));
  assert.deepEqual(kept, [first, first]);
  const store = await opened.reopen();
  const again = store.keepSecret('a', second);
  assert.equal(store.upkeep.writesWaiting(), 0, 'what is kept needs no write');
  assert.deepEqual(await again, first);
  assert.deepEqual(await store.keepSecret('b', second), second);
});
