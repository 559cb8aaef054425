// SERVICE_MAX_STORAGE over real sockets: the bound on the content of all pastes together. A disk that is really full is
// another matter.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { assertError, assertStored, post, postChunked, statusCounts } from '../support/posting.ts';
import { head, openRaw } from '../support/raw-http.ts';
import { selectValue, strayChunks } from '../support/store.ts';

function storedBytes({ config }: RunningApp): unknown {
  return selectValue(config.databasePath, 'SELECT coalesce(sum(size), 0) FROM pastes');
}

test('POST /: content up to exactly the quota is stored, one byte more is 507, and reading goes on', async (t) => {
  const app = await startApp(t, { maxStorageBytes: 1000 });
  for (const send of [post, postChunked]) assertError(await send(app, binaryContent(1001)), 507, 'storage full');
  const id = await app.store('x'.repeat(900));
  for (const send of [post, postChunked]) assertError(await send(app, binaryContent(101)), 507, 'storage full');
  const json = { 'Content-Type': 'application/json' };
  assertError(await post(app, JSON.stringify({ content: 'x'.repeat(101) }), json), 507, 'storage full');
  assert.equal(storedBytes(app), 900);
  const fitting = JSON.stringify({ content: 'x'.repeat(99) });
  assertStored(await post(app, fitting, json), 'the content counts, not the document');
  assertError(await post(app, 'xx'), 507, 'storage full');
  assertStored(await post(app, 'x'));
  assert.equal(storedBytes(app), 1000);

  assertError(await post(app, 'x'), 507, 'storage full');
  assertError(await post(app, ''), 400, 'no content provided');
  assert.equal(await (await app.request(`/${id}/raw`)).text(), 'x'.repeat(900));
  assert.equal((await app.request('/health')).status, 200);
});

test('POST /: there is room again when content is gone: burned at once, expired after cleanup', async (t) => {
  const app = await startApp(t, { maxStorageBytes: 200_000 });
  const burning = await app.store(binaryContent(100_000), { 'X-Burn-After-Read': 'true' });
  const expiring = await app.store(binaryContent(100_000, 2), { 'X-Expiry': '10' });
  assert.equal((await post(app, 'x')).status, 507);
  const burned = await app.request(`/${burning}/raw`);
  assert.equal((await burned.arrayBuffer()).byteLength, 100_000);
  assertStored(await post(app, binaryContent(100_000, 3)));
  assert.equal((await post(app, 'x')).status, 507);

  app.clock.advance(10_000);
  assert.equal((await app.request(`/${expiring}`)).status, 404);
  await app.app.cleanup.run('expired pastes');
  assert.equal(storedBytes(app), 100_000);

  // A declared length that does not fit is refused before the body is asked for.
  const tooLarge = await openRaw(t, app.port);
  tooLarge.send(head('POST / HTTP/1.1', 'Content-Length: 100001', 'Expect: 100-continue'));
  const answer = await tooLarge.next();
  assert.deepEqual([answer.status, answer.json()], [507, { error: 'storage full' }]);
  assert.equal(answer.header('connection'), 'close');
  tooLarge.socket.destroy();
  const fitting = await openRaw(t, app.port);
  fitting.send(head('POST / HTTP/1.1', 'Content-Length: 100000', 'Expect: 100-continue'));
  assert.equal((await fitting.next()).status, 100);
  fitting.send(binaryContent(100_000, 4));
  assert.equal((await fitting.next()).status, 201);
  assert.equal((await post(app, 'x')).status, 507);
  assert.equal(storedBytes(app), 200_000);
});

test('POST /: concurrent creations never exceed the quota, and what is refused leaves nothing', async (t) => {
  const app = await startApp(t, { maxStorageBytes: 1_000_999 });
  for (const [bytes, send] of [[1000, post], [100_000, post], [100_000, postChunked]] as const) {
    const rest = 1_000_000 - 10 * bytes;
    if (rest > 0) await app.store(binaryContent(rest), { 'X-Expiry': '10' });
    const contents = Array.from({ length: 30 }, (_, turn) => binaryContent(bytes, turn));
    const answers = await Promise.all(contents.map((content) => send(app, content, { 'X-Expiry': '10' })));
    assert.deepEqual(statusCounts(answers), { 201: 10, 507: 20 });
    assert.equal(storedBytes(app), 1_000_000);
    assert.equal(selectValue(app.config.databasePath, 'SELECT bytes FROM usage'), 1_000_000);
    app.clock.advance(10_000);
    await app.app.cleanup.run('expired pastes');
    assert.equal(storedBytes(app), 0);
  }
  await app.app.close();
  assert.equal(strayChunks(app.config.databasePath), 0);
});

test('POST /: the quota counts what an earlier run stored, and a smaller one than that only refuses', async (t) => {
  const before = await startApp(t);
  const id = await before.store('x'.repeat(500));
  await before.app.close();
  const after = await startApp(t, { maxStorageBytes: 400, databasePath: before.config.databasePath });
  assertError(await post(after, 'x'), 507, 'storage full');
  assert.equal((await after.request(`/${id}/raw`)).status, 200);
  await after.app.close();
});
