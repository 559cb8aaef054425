// The rate limits of creating and of looking up over real sockets, by a clock that the test moves. Who counts as one client is
// client-address.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApp, type RunningApp } from '../support/app.ts';
import { assertError, assertStored, from, post, rateOf, statusCounts, type Answer } from '../support/posting.ts';

const WINDOW_SECONDS = 60;

/** Seconds by the clock of the test. */
function nowSeconds({ clock }: RunningApp): number {
  return clock.unixMs() / 1000;
}

function assertRateLimited(answer: Answer, rate: object, retryAfter: string): void {
  assertError(answer, 429, 'rate limit exceeded');
  assert.deepEqual(rateOf(answer), rate);
  assert.equal(answer.headers.get('retry-after'), retryAfter);
}

test('POST /: the rate headers count down on 201, and 429 says when to come back', async (t) => {
  const app = await startApp(t, { rateMax: 3 });
  const start = nowSeconds(app);
  for (const remaining of [2, 1, 0]) {
    const answer = await post(app, 'x');
    assertStored(answer);
    assert.deepEqual(rateOf(answer), { limit: 3, remaining, reset: start + WINDOW_SECONDS });
    assert.equal(answer.headers.has('retry-after'), false);
  }
  const rate = { limit: 3, remaining: 0, reset: start + WINDOW_SECONDS };
  assertRateLimited(await post(app, 'x'), rate, '60');
  app.clock.advance(500);
  assertRateLimited(await post(app, 'x'), rate, '60');
  app.clock.advance(500);
  assertRateLimited(await post(app, 'x'), rate, '59');
});

test('POST /: the window slides: each creation counts for exactly its length, refused ones not at all', async (t) => {
  const app = await startApp(t, { rateMax: 3 });
  const start = nowSeconds(app);
  for (let turn = 0; turn < 3; turn += 1) {
    assertStored(await post(app, 'x'));
    app.clock.advance(10_000);
  }
  // Created at 0, 10 and 20 s; it is 30 s now.
  const reset = start + 20 + WINDOW_SECONDS;
  for (let turn = 0; turn < 5; turn += 1) assertRateLimited(await post(app, 'x'), { limit: 3, remaining: 0, reset }, '30');
  app.clock.advance(29_999);
  assertRateLimited(await post(app, 'x'), { limit: 3, remaining: 0, reset }, '1');
  app.clock.advance(1);
  assertStored(await post(app, 'x'), 'the first has left the window');
  assertRateLimited(await post(app, 'x'), { limit: 3, remaining: 0, reset: start + 120 }, '10');
  app.clock.advance(10_001);
  assertStored(await post(app, 'x'), 'the second has left the window');
  assert.equal((await post(app, 'x')).status, 429);
});

test('POST /: setting the host\'s clock neither opens nor extends the limit', async (t) => {
  const app = await startApp(t, { rateMax: 1 });
  assertStored(await post(app, 'x'));
  app.clock.jump(3_600_000);
  assertRateLimited(await post(app, 'x'), { limit: 1, remaining: 0, reset: nowSeconds(app) + WINDOW_SECONDS }, '60');
  app.clock.jump(-7_200_000);
  assertRateLimited(await post(app, 'x'), { limit: 1, remaining: 0, reset: nowSeconds(app) + WINDOW_SECONDS }, '60');
  app.clock.advance(60_000);
  assertStored(await post(app, 'x'));
});

test('POST /: of many at once no more than the limit get through', async (t) => {
  const app = await startApp(t, { rateMax: 10 });
  const answers = await Promise.all(Array.from({ length: 40 }, () => post(app, 'x')));
  assert.deepEqual(statusCounts(answers), { 201: 10, 429: 30 });
  const remaining = answers.filter(({ status }) => status === 201).map((answer) => rateOf(answer)?.remaining);
  assert.deepEqual(remaining.toSorted(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test('POST / and PUT /: without a limit there are no rate headers; both names of creating share one limit', async (t) => {
  const off = await startApp(t, { rateMax: 0, duplicateMax: 1 });
  const stored = await post(off, 'x');
  const duplicate = await post(off, 'x');
  assert.deepEqual([stored.status, rateOf(stored)], [201, null]);
  assert.deepEqual([duplicate.status, rateOf(duplicate)], [429, null]);

  const on = await startApp(t, { rateMax: 2 });
  const put = await on.request('/', { method: 'PUT', body: 'x' });
  assert.deepEqual([put.status, put.headers.get('x-ratelimit-remaining')], [201, '1']);
  const posted = await post(on, 'x');
  assert.equal(rateOf(posted)?.remaining, 0);
  assert.equal((await on.request('/', { method: 'PUT', body: 'x' })).status, 429);
});

test('POST /: text answers and duplicates carry the rate headers too, other refusals do not', async (t) => {
  const app = await startApp(t, { rateMax: 9, duplicateMax: 1 });
  const text = await app.request('/', { method: 'POST', body: 'x', headers: { Accept: 'text/plain' } });
  assert.equal(text.headers.get('x-ratelimit-remaining'), '8');
  const duplicate = await post(app, 'x');
  assert.deepEqual([duplicate.status, rateOf(duplicate)?.remaining], [429, 7]);
  const empty = await post(app, '');
  assert.deepEqual([empty.status, rateOf(empty)], [400, null]);
  const challenge = await app.request('/challenge');
  assert.equal(challenge.headers.has('x-ratelimit-limit'), false);
});

test('POST /: the table of clients is bounded: for a new one the one longest idle is forgotten', async (t) => {
  const app = await startApp(t, { rateMax: 1, rateMaxEntries: 2 });
  const create = async (address: string): Promise<number> => {
    app.clock.advance(1);
    return (await post(app, 'x', from(address))).status;
  };
  assert.deepEqual([await create('192.0.2.1'), await create('192.0.2.2')], [201, 201]);
  assert.deepEqual([await create('192.0.2.1'), await create('192.0.2.2')], [429, 429]);
  assert.equal(await create('192.0.2.3'), 201);
  assert.equal(await create('192.0.2.2'), 429);
  assert.equal(await create('192.0.2.1'), 201);
});

async function look(app: RunningApp, method: string, path: string, address: string): Promise<Response> {
  const response = await app.request(path, { method, headers: from(address) });
  if (method === 'HEAD') assert.equal(await response.text(), '');
  return response;
}

test('GET and HEAD of /{id} and /{id}/raw: one limit for all four, and for nothing else', async (t) => {
  const app = await startApp(t, { lookupRateMax: 4 });
  const id = await app.store('x', { ...from('192.0.2.1'), 'X-Paste-Password': 'p' });
  for (const [method, path] of [['GET', '/'], ['GET', '/health'], ['GET', '/challenge'], ['OPTIONS', `/${id}`], ['DELETE', '/'],
    ['GET', '/bad-id'], ['GET', `/${id}/other`]] as const) {
    await look(app, method, path, '192.0.2.1');
  }
  // Whether a lookup finds anything does not matter.
  const lookups = [['GET', `/${id}`], ['HEAD', `/${id}`], ['GET', `/${id}/raw`], ['HEAD', '/unknown/raw']] as const;
  const statuses = [];
  for (const [method, path] of lookups) statuses.push((await look(app, method, path, '192.0.2.1')).status);
  assert.deepEqual(statuses, [401, 401, 401, 404]);

  for (const [method, path] of lookups) {
    const refused = await look(app, method, path, '192.0.2.1');
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '60']);
    assert.equal(refused.headers.has('x-ratelimit-limit'), false);
    if (method === 'GET') assert.deepEqual(await refused.json(), { error: 'lookup rate limit exceeded' });
  }
  assert.equal((await look(app, 'GET', `/${id}`, '192.0.2.2')).status, 401);
  assert.equal((await look(app, 'GET', '/health', '192.0.2.1')).status, 200);
  assert.equal((await post(app, 'x', from('192.0.2.1'))).status, 201);
});

test('GET /{id}: the lookup window slides by the clock, and a refused read burns nothing', async (t) => {
  const app = await startApp(t, { lookupRateMax: 2 });
  const id = await app.store('once', { 'X-Burn-After-Read': 'true' });
  const statusOf = async (path: string): Promise<number> => (await app.request(path)).status;
  assert.equal(await statusOf(`/${id}`), 200);
  app.clock.advance(10_000);
  assert.equal(await statusOf(`/${id}`), 200);
  const refused = await app.request(`/${id}/raw`);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '50']);
  app.clock.advance(49_999);
  assert.equal(await statusOf(`/${id}/raw`), 429);
  app.clock.advance(1);
  assert.equal(await (await app.request(`/${id}/raw`)).text(), 'once');
  assert.equal(await statusOf(`/${id}`), 429);
});

test('GET /{id}: a lookup limit of 0 is none', async (t) => {
  const app = await startApp(t, { lookupRateMax: 0 });
  const id = await app.store('x');
  const statuses = await Promise.all(Array.from({ length: 70 }, async () => (await app.request(`/${id}`)).status));
  assert.deepEqual([...new Set(statuses)], [200]);
});
