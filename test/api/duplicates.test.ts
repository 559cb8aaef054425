// The duplicate throttle over real sockets: what counts as the same, for how long, and that racing requests don't go
// round it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { binaryContent, startApp } from '../support/app.ts';
import { newFingerprint, presenting } from '../support/certificates.ts';
import { assertError, assertStored, from, post, postChunked, statusCounts, type Answer } from '../support/posting.ts';
import { selectValue, strayChunks } from '../support/store.ts';
import { freshWork } from '../support/work.ts';

const WINDOW_SECONDS = 3600;

function assertDuplicate(answer: Answer, count: number, retryAfter: number): void {
  assertError(answer, 429, 'duplicate content limit exceeded', { count, window_seconds: WINDOW_SECONDS });
  assert.equal(answer.headers.get('retry-after'), String(retryAfter));
}

test('POST / with three identical pastes an hour', async (t) => {
  const app = await startApp(t, { duplicateMax: 3 });

  await t.test('POST /: the same content is stored so many times and no more, whoever sends it', async () => {
    await app.store('same', from('192.0.2.1'));
    await app.store('same', { ...from('192.0.2.2'), 'X-Burn-After-Read': 'true', 'X-Expiry': '60' });
    assertStored(await post(app, '{"content": "sa\\u006de"}', { 'Content-Type': 'application/json' }));
    const again = [
      await post(app, 'same', from('192.0.2.3')),
      await post(app, 'same', { 'Content-Type': 'image/png' }),
      await post(app, '{"content": "same"}', { 'Content-Type': 'application/json' }),
      await postChunked(app, Buffer.from('same')),
    ];
    for (const answer of again) assertDuplicate(answer, 3, WINDOW_SECONDS);
    for (const other of ['Same', 'same ', 'same\n', 'sam']) await app.store(other);
  });

  await t.test('POST /: the window slides by the clock; what was refused does not extend it', async () => {
    for (let turn = 0; turn < 3; turn += 1) {
      await app.store('sliding');
      app.clock.advance(10_000);
    }
    // Stored at 0, 10 and 20 s; it is 30 s now.
    for (let turn = 0; turn < 3; turn += 1) assertDuplicate(await post(app, 'sliding'), 3, WINDOW_SECONDS - 30);
    app.clock.advance((WINDOW_SECONDS - 30) * 1000 - 1);
    assertDuplicate(await post(app, 'sliding'), 3, 1);
    app.clock.advance(1);
    assertStored(await post(app, 'sliding'), 'the first has left the window');
    assertDuplicate(await post(app, 'sliding'), 3, 10);
    app.clock.advance(9999);
    assertDuplicate(await post(app, 'sliding'), 3, 1);
    app.clock.advance(2);
    assertStored(await post(app, 'sliding'), 'the second has left the window');
    assertDuplicate(await post(app, 'sliding'), 3, 10);
  });

  await t.test('POST /: of 20 identical pastes at once exactly as many as allowed are stored', async () => {
    for (const bytes of [100, 100_000]) {
      const content = binaryContent(bytes);
      const answers = await Promise.all(Array.from({ length: 20 }, () => post(app, content)));
      assert.deepEqual(statusCounts(answers), { 201: 3, 429: 17 });
      for (const answer of answers) if (answer.status === 429) assertDuplicate(answer, 3, WINDOW_SECONDS);
      assert.equal(selectValue(app.config.databasePath, `SELECT count(*) FROM pastes WHERE size = ${bytes}`), 3);
    }
    await app.app.close();
    assert.equal(strayChunks(app.config.databasePath), 0);
  });
});

test('POST / and PUT: a duplicate is told where its address stands with the rate, too', async (t) => {
  const app = await startApp(t, { duplicateMax: 1, rateMax: 10 });
  const owner = presenting(newFingerprint());
  await app.store('same');
  const id = await app.store('other', owner);
  const put = await app.request(`/${id}`, { method: 'PUT', headers: owner, body: 'same' });
  for (const [{ status, headers }, remaining] of [[put, 7], [await post(app, 'same'), 6]] as const) {
    assert.deepEqual([status, headers.get('retry-after')], [429, String(WINDOW_SECONDS)]);
    const told = ['limit', 'remaining', 'reset'].map((name) => Number(headers.get(`x-ratelimit-${name}`)));
    assert.deepEqual(told, [10, remaining, app.clock.unixMs() / 1000 + 60]);
  }
});

test('POST /: a limit of 0 is none, and nothing is recorded', async (t) => {
  const app = await startApp(t, { duplicateMax: 0 });
  for (let turn = 0; turn < 5; turn += 1) await app.store('same');
  assert.equal(selectValue(app.config.databasePath, 'SELECT count(*) FROM submissions'), 0);
});

test('POST /: what was stored counts on when the paste is gone, after cleanup and after a restart', async (t) => {
  const app = await startApp(t, { duplicateMax: 3 });
  const burned = await app.store('same', { 'X-Burn-After-Read': 'true' });
  assert.equal(await (await app.request(`/${burned}/raw`)).text(), 'same');
  await app.store('same', { 'X-Expiry': '1' });
  app.clock.advance(1000);
  for (const task of ['expired pastes', 'duplicate records']) await app.app.cleanup.run(task);
  await app.store('same');
  assert.equal(selectValue(app.config.databasePath, 'SELECT pastes FROM usage'), 1);
  assertDuplicate(await post(app, 'same'), 3, WINDOW_SECONDS - 1);
  await app.app.close();

  const again = await startApp(t, { duplicateMax: 3, databasePath: app.config.databasePath });
  assert.equal((await post(again, 'same')).status, 429);
  await again.app.close();
});

test('POST /: only what was stored counts, whatever it was refused for', async (t) => {
  const app = await startApp(t, { duplicateMax: 1, powDifficultyBits: 1, rateMax: 4, maxStorageBytes: 5 });
  const [first, second] = [from('192.0.2.1'), from('192.0.2.2')];
  const content = Buffer.from('same!');
  const other = await app.store('other', { ...first, ...await freshWork(app), 'X-Expiry': '1' });
  assert.equal((await post(app, 'same!', first)).status, 400);
  assert.equal((await post(app, 'same!', { ...first, ...await freshWork(app) })).status, 507);
  const longPassword = { 'X-Paste-Password': 'x'.repeat(1025) };
  const refused = await postChunked(app, content, { ...first, ...await freshWork(app), ...longPassword });
  assertError(refused, 400, 'password longer than 1024 characters');
  assert.equal((await postChunked(app, content, { ...first, ...await freshWork(app) })).status, 507);
  assert.equal((await post(app, 'same!', { ...first, ...await freshWork(app) })).status, 429);
  assert.equal(selectValue(app.config.databasePath, 'SELECT count(*) FROM submissions'), 1);

  // First waits for a run that a 507 began: it has read the clock already, and a later call would join it.
  await app.app.cleanup.run('expired pastes');
  app.clock.advance(1000);
  await app.app.cleanup.run('expired pastes');
  assert.equal((await app.request(`/${other}`)).status, 404);
  await app.store('same!', { ...second, ...await freshWork(app) });
  // Without a declared length, which would be refused for want of room first.
  assertDuplicate(await postChunked(app, content, { ...second, ...await freshWork(app) }), 1, WINDOW_SECONDS);
});
