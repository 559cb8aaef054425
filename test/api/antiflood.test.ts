// The load-dependent difficulty over real sockets: what raises it, how far, and how it falls. The arithmetic alone is
// test/unit/antiflood.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { binaryContent, RUNNING_CLOCK, startApp, type RunningApp } from '../support/app.ts';
import { openStore } from '../support/imitated-store.ts';
import { assertError, assertStored, assertWorkRefused, post, postChunked } from '../support/posting.ts';
import { CREATED_AT, inlinePaste, newId, NO_TERMS, patternedBytes } from '../support/store.ts';
import { freshWork, getChallenge, showing, solve } from '../support/work.ts';

const WINDOW_MS = 60_000;
const DECAY_MS = 30_000;

/** 1 bit in quiet times, 3 above 3 creations a minute, 5 above 6, and no more than 6. */
const FLOOD = { powDifficultyBits: 1, antifloodThreshold: 3, antifloodStepBits: 2, antifloodMaxBits: 6 } as const;

async function assertDifficulty(app: RunningApp, difficulty: number, what: string): Promise<void> {
  const challenge = await getChallenge(app);
  const base = app.config.powDifficultyBits;
  assert.deepEqual(
    [challenge.difficulty, challenge.base_difficulty, challenge.elevated],
    [difficulty, base, difficulty > base],
    what,
  );
  assert.equal(challenge.token.split(':')[2], String(difficulty));
}

async function create(app: RunningApp, count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) assertStored(await post(app, 'x', await freshWork(app)));
}

test('GET /challenge: the difficulty rises by steps with the creations in the window, and falls again', async (t) => {
  const app = await startApp(t, FLOOD);
  const first = await getChallenge(app);
  const difficulties = [1, 1, 1, 1, 3, 3, 3, 5, 5, 5, 6, 6, 6, 6];
  for (const [created, difficulty] of difficulties.entries()) {
    await assertDifficulty(app, difficulty, `after ${created} creations`);
    await create(app, 1);
  }
  const answer = await post(app, 'x', showing(first.token, solve(first.nonce, first.difficulty)));
  assertStored(answer, 'a challenge from before the rise is good for what it was signed with');

  // The difficulty falls by a step once the window has held, for the decay interval, too little to raise it that high.
  const fallsAt = WINDOW_MS + DECAY_MS;
  let nowMs = 0;
  const moments = [
    [fallsAt - 1, 6], [fallsAt, 5], [fallsAt + DECAY_MS - 1, 5], [fallsAt + DECAY_MS, 3],
    [fallsAt + 2 * DECAY_MS - 1, 3], [fallsAt + 2 * DECAY_MS, 1], [fallsAt + 3 * DECAY_MS, 1],
  ] as const;
  for (const [atMs, difficulty] of moments) {
    app.clock.advance(atMs - nowMs);
    nowMs = atMs;
    await assertDifficulty(app, difficulty, `after ${atMs} ms`);
  }
  app.clock.jump(-10 * WINDOW_MS);
  await assertDifficulty(app, 1, 'after the host\'s clock was set back');
  await create(app, 4);
  app.clock.jump(60 * WINDOW_MS);
  await assertDifficulty(app, 3, 'after the host\'s clock was set forward');
});

test('POST /: what is refused before its work and its rate are accepted does not raise the difficulty', async (t) => {
  const app = await startApp(t, { ...FLOOD, antifloodThreshold: 1, rateMax: 1, maxAnonBytes: 100 });
  await create(app, 1);
  const work = await freshWork(app);
  for (let turn = 0; turn < 3; turn += 1) {
    assert.equal((await post(app, 'x'.repeat(101), work)).status, 413);
    assert.equal((await post(app, 'x', { ...work, 'Content-Encoding': 'gzip' })).status, 415);
    assertWorkRefused(await post(app, 'x'), 'proof-of-work required');
    assert.equal((await post(app, 'x', { ...work, 'X-PoW-Solution': 'x' })).status, 400);
    assertError(await post(app, 'x', work), 429, 'rate limit exceeded');
  }
  await assertDifficulty(app, 1, 'after refusals only');
});

test('POST /: what is refused for its content has been counted', async (t) => {
  const app = await startApp(t, { ...FLOOD, duplicateMax: 1, maxAnonBytes: 100 });
  await create(app, 1);
  assertError(await post(app, '', await freshWork(app)), 400, 'no content provided');
  assert.equal((await post(app, 'x', await freshWork(app))).status, 429);
  await assertDifficulty(app, 1, 'after 3');
  assert.equal((await postChunked(app, binaryContent(2000), await freshWork(app))).status, 413);
  await assertDifficulty(app, 3, 'after 4');
});

test('POST /: a solved token raises the difficulty once, whatever becomes of its requests', async (t) => {
  const app = await startApp(t, FLOOD);
  const work = await freshWork(app);
  for (let turn = 0; turn < 12; turn += 1) assertError(await post(app, '', work), 400, 'no content provided');
  await assertDifficulty(app, 1, 'after one token');
  app.clock.advance(WINDOW_MS);
  for (let turn = 0; turn < 12; turn += 1) assertError(await post(app, '', work), 400, 'no content provided');
  assertStored(await post(app, 'x', work));
  await create(app, 3);
  await assertDifficulty(app, 1, 'a token that counted in an earlier window does not count again');
  await create(app, 1);
  await assertDifficulty(app, 3, 'after four others');
});

test('GET /challenge: a threshold of 0 switches the rise off', async (t) => {
  const app = await startApp(t, { ...FLOOD, antifloodThreshold: 0 });
  await create(app, 12);
  await assertDifficulty(app, 1, 'switched off');
});

test('GET /challenge: creations that another host of a cluster took raise the difficulty here too', async (t) => {
  const { store: other, config } = await openStore(t);
  const app = await startApp(t, { ...FLOOD, databasePath: config.databasePath }, RUNNING_CLOCK);
  assert.equal((await getChallenge(app)).elevated, false);
  // A host hears nothing of what was taken before its first look, and it looks every second.
  for (let count = 0; !(await getChallenge(app)).elevated; count += 1) {
    assert.ok(count < 100, `not raised by ${count} creations elsewhere`);
    const spend = { nonce: newId(), expiresAt: CREATED_AT + 600, spendableUntil: CREATED_AT + 600 };
    const created = await other.pastes.create(inlinePaste(patternedBytes(50)), { ...NO_TERMS, spend });
    assert.deepEqual(created, { refused: null });
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});
