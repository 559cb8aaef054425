// The rate limits of creating and of looking up over real sockets, by a clock that the test moves. Who counts as one
// client is client-address.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApp, type RunningApp } from '../support/app.ts';
import { insertCertificate, newFingerprint, presenting } from '../support/certificates.ts';
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

test('POST / with a limit of three a minute', async (t) => {
  const app = await startApp(t, { rateMax: 3 });

  await t.test('POST /: the rate headers count down on 201, and 429 says when to come back', async () => {
    const client = from('192.0.2.1');
    // The second after the one in which the last creation leaves the window: never a moment too early.
    const reset = nowSeconds(app) + WINDOW_SECONDS;
    for (const [waitMs, rate] of [[0, { limit: 3, remaining: 2, reset }], [0, { limit: 3, remaining: 1, reset }],
      [1, { limit: 3, remaining: 0, reset: reset + 1 }]] as const) {
      app.clock.advance(waitMs);
      const answer = await post(app, 'x', client);
      assertStored(answer);
      assert.deepEqual(rateOf(answer), rate);
      assert.equal(answer.headers.has('retry-after'), false);
    }
    const rate = { limit: 3, remaining: 0, reset: reset + 1 };
    for (const [waitMs, retryAfter] of [[0, '60'], [500, '60'], [499, '59']] as const) {
      app.clock.advance(waitMs);
      assertRateLimited(await post(app, 'x', client), rate, retryAfter);
    }
  });

  await t.test('POST /: each creation counts for exactly the window\'s length, refused ones not at all', async () => {
    const client = from('192.0.2.2');
    const start = nowSeconds(app);
    for (let turn = 0; turn < 3; turn += 1) {
      assertStored(await post(app, 'x', client));
      app.clock.advance(10_000);
    }
    // Created at 0, 10 and 20 s; it is 30 s now.
    const rate = { limit: 3, remaining: 0, reset: start + 20 + WINDOW_SECONDS };
    for (let turn = 0; turn < 5; turn += 1) assertRateLimited(await post(app, 'x', client), rate, '30');
    app.clock.advance(29_999);
    assertRateLimited(await post(app, 'x', client), rate, '1');
    app.clock.advance(1);
    assertStored(await post(app, 'x', client), 'the first has left the window');
    assertRateLimited(await post(app, 'x', client), { ...rate, reset: start + 120 }, '10');
    app.clock.advance(10_001);
    assertStored(await post(app, 'x', client), 'the second has left the window');
    assert.equal((await post(app, 'x', client)).status, 429);
    app.clock.advance(999);
  });

  await t.test('POST /: setting the host\'s clock neither opens nor extends the limit', async () => {
    const client = from('192.0.2.3');
    for (let turn = 0; turn < 3; turn += 1) assertStored(await post(app, 'x', client));
    for (const jumpMs of [3_600_000, -7_200_000]) {
      app.clock.jump(jumpMs);
      const reset = nowSeconds(app) + WINDOW_SECONDS;
      assertRateLimited(await post(app, 'x', client), { limit: 3, remaining: 0, reset }, '60');
    }
    app.clock.advance(60_000);
    assertStored(await post(app, 'x', client));
  });

  await t.test('POST / and PUT /: of many at once no more than the limit get through', async () => {
    const client = from('192.0.2.4');
    const put = await app.request('/', { method: 'PUT', body: 'x', headers: client });
    assert.deepEqual([put.status, put.headers.get('x-ratelimit-remaining')], [201, '2']);
    const answers = await Promise.all(Array.from({ length: 40 }, () => post(app, 'x', client)));
    assert.deepEqual(statusCounts(answers), { 201: 2, 429: 38 });
    const remaining = answers.filter(({ status }) => status === 201).map((answer) => rateOf(answer)?.remaining);
    assert.deepEqual(remaining.toSorted(), [0, 1]);
    assert.equal((await app.request('/', { method: 'PUT', body: 'x', headers: client })).status, 429);
  });
});

test('PUT /{id}: setting a password counts as a creation, taking it away or moving the expiry does not', async (t) => {
  const app = await startApp(t, { rateMax: 3 });
  const owner = presenting(newFingerprint());
  const path = `/${await app.store('x', owner)}`;
  const put = (headers: Record<string, string>): Promise<Response> =>
    app.request(path, { method: 'PUT', headers: { ...owner, ...from('192.0.2.1'), ...headers } });
  const seen = async (headers: Record<string, string>): Promise<unknown[]> => {
    const { status, headers: given } = await put(headers);
    return [status, given.get('x-ratelimit-remaining')];
  };
  const free = [{ 'X-Expiry': '60' }, { 'X-Remove-Password': '1' }] as const;
  for (const headers of [...free, ...free]) assert.deepEqual(await seen(headers), [200, null]);
  for (const remaining of ['2', '1', '0']) assert.deepEqual(await seen({ 'X-Paste-Password': 'p' }), [200, remaining]);
  assert.deepEqual(await seen({ 'X-Paste-Password': 'p' }), [429, '0']);
  assert.equal((await post(app, 'x', from('192.0.2.1'))).status, 429, 'one limit with creating');
  for (const headers of free) assert.deepEqual(await seen(headers), [200, null]);
});

test('POST / and GET /{id}: limits of 0 are none, and then there are no rate headers', async (t) => {
  const app = await startApp(t, { rateMax: 0, lookupRateMax: 0, duplicateMax: 1 });
  const stored = await post(app, 'x');
  const duplicate = await post(app, 'x');
  assert.deepEqual([stored.status, rateOf(stored)], [201, null]);
  assert.deepEqual([duplicate.status, rateOf(duplicate)], [429, null]);
  const lookups = Array.from({ length: 70 }, async () => (await app.request(`/${String(stored.json['id'])}`)).status);
  assert.deepEqual([...new Set(await Promise.all(lookups))], [200]);
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

test('POST / and GET /{id}: the tables of clients are bounded: the one longest idle is forgotten', async (t) => {
  const app = await startApp(t, { rateMax: 1, rateMaxEntries: 2, lookupRateMax: 1, lookupRateMaxEntries: 2 });
  const id = await app.store('x', from('192.0.2.9'));
  const create = async (address: string): Promise<number> => (await post(app, 'x', from(address))).status;
  const lookUp = async (address: string): Promise<number> => (await look(app, 'GET', `/${id}`, address)).status;
  for (const [ask, allowed] of [[create, 201], [lookUp, 200]] as const) {
    const statuses: number[] = [];
    for (const host of [1, 2, 1, 2, 3, 2, 1]) {
      app.clock.advance(1);
      statuses.push(await ask(`192.0.2.${host}`));
    }
    assert.deepEqual(statuses, [allowed, allowed, 429, 429, allowed, 429, allowed]);
  }
});

test('POST / and GET /{id}: a trusted caller has a multiple of both limits for its address', async (t) => {
  const app = await startApp(t, { rateMax: 2, lookupRateMax: 1, rateTrustedFactor: 3 });
  const trusted = presenting(insertCertificate(app.config.databasePath).fingerprint);
  const untrusted = presenting(newFingerprint());
  const id = await app.store('x', untrusted);
  const created = [];
  for (let turn = 0; turn < 6; turn += 1) created.push(await post(app, 'x', trusted));
  assert.deepEqual(created.map(({ status }) => status), [201, 201, 201, 201, 201, 429]);
  assert.deepEqual(created.map((answer) => rateOf(answer)?.remaining), [4, 3, 2, 1, 0, 0]);
  assert.equal(rateOf(created[0]!)?.limit, 6);
  const refused = await post(app, 'x', untrusted);
  assert.deepEqual([refused.status, rateOf(refused)?.limit], [429, 2]);

  const looked = [];
  for (let turn = 0; turn < 4; turn += 1) looked.push((await app.request(`/${id}`, { headers: trusted })).status);
  assert.deepEqual(looked, [200, 200, 200, 429]);
  assert.equal((await app.request(`/${id}`, { headers: untrusted })).status, 429);
});

test('POST /: a multiple past what a number holds exactly is that number, and no 1e+24', async (t) => {
  const app = await startApp(t, { rateMax: 2 ** 40, rateTrustedFactor: 2 ** 40 });
  const stored = await post(app, 'x', presenting(insertCertificate(app.config.databasePath).fingerprint));
  assert.equal(stored.headers.get('x-ratelimit-limit'), '9007199254740991');
  assert.equal(stored.headers.get('x-ratelimit-remaining'), '9007199254740990');
});

async function look(app: RunningApp, method: string, path: string, address: string): Promise<Response> {
  const response = await app.request(path, { method, headers: from(address) });
  if (method === 'HEAD') assert.equal(await response.text(), '');
  return response;
}

test('lookups with a limit of four a minute', async (t) => {
  const app = await startApp(t, { lookupRateMax: 4 });

  await t.test('GET and HEAD of /{id} and /{id}/raw: one limit for all four, and for nothing else', async () => {
    const client = '192.0.2.1';
    const id = await app.store('x', { ...from(client), 'X-Paste-Password': 'p' });
    const others = [
      ['GET', '/'], ['GET', '/health'], ['GET', '/challenge'], ['OPTIONS', `/${id}`], ['DELETE', '/'],
      ['GET', '/bad-id'], ['GET', `/${id}/other`],
    ] as const;
    for (const [method, path] of others) await look(app, method, path, client);
    // Whether a lookup finds anything does not matter.
    const lookups = [['GET', `/${id}`], ['HEAD', `/${id}`], ['GET', `/${id}/raw`], ['HEAD', '/unknown/raw']] as const;
    const statuses = [];
    for (const [method, path] of lookups) statuses.push((await look(app, method, path, client)).status);
    assert.deepEqual(statuses, [401, 401, 401, 404]);

    for (const [method, path] of lookups) {
      const refused = await look(app, method, path, client);
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '60']);
      assert.equal(refused.headers.has('x-ratelimit-limit'), false);
      if (method === 'GET') assert.deepEqual(await refused.json(), { error: 'lookup rate limit exceeded' });
    }
    assert.equal((await look(app, 'GET', `/${id}`, '192.0.2.2')).status, 401);
    assert.equal((await look(app, 'GET', '/health', client)).status, 200);
    assert.equal((await post(app, 'x', from(client))).status, 201);
  });

  await t.test('PUT and DELETE of /{id}: what is unknown or another\'s counts as a lookup; the owner is not refused', async () => {
    const headers = { ...presenting(newFingerprint()), ...from('192.0.2.4') };
    const anothers = await app.store('x', presenting(newFingerprint()));
    const change = async (method: string, path: string): Promise<number> =>
      (await app.request(path, { method, headers: { ...headers, ...(method === 'PUT' ? { 'X-Expiry': '60' } : {}) } })).status;
    const changes = [['PUT', '/unknown'], ['DELETE', '/unknown'], ['PUT', `/${anothers}`], ['DELETE', `/${anothers}`]] as const;
    const statuses = async (): Promise<number[]> => {
      const found = [];
      for (const [method, path] of changes) found.push(await change(method, path));
      return found;
    };
    assert.deepEqual(await statuses(), [404, 404, 403, 403]);
    assert.deepEqual(await statuses(), [429, 429, 429, 429]);
    assert.equal((await look(app, 'GET', '/unknown', '192.0.2.4')).status, 429, 'one limit with reading');
    for (let turn = 0; turn < 10; turn += 1) {
      const own = await app.store('x', headers);
      assert.deepEqual([await change('PUT', `/${own}`), await change('DELETE', `/${own}`)], [200, 200]);
    }
    assert.equal((await app.request('/unknown', { method: 'DELETE', headers: from('192.0.2.4') })).status, 401);
  });

  await t.test('DELETE /{id}: of many guesses at once no more than the limit are answered', async () => {
    const headers = { ...presenting(newFingerprint()), ...from('192.0.2.5') };
    const guesses = Array.from({ length: 40 }, async () => (await app.request('/unknown', { method: 'DELETE', headers })).status);
    const refused = (await Promise.all(guesses)).filter((status) => status === 429);
    assert.equal(refused.length, 36);
  });

  await t.test('GET /pastes: counts as a lookup', async () => {
    const headers = { ...presenting(newFingerprint()), ...from('192.0.2.6') };
    assert.equal((await app.request('/pastes', { headers: from('192.0.2.6') })).status, 401);
    for (let turn = 0; turn < 4; turn += 1) assert.equal((await app.request('/pastes?type=x', { headers })).status, 200);
    const refused = await app.request('/pastes', { headers });
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '60']);
    assert.deepEqual(await refused.json(), { error: 'lookup rate limit exceeded' });
    assert.equal((await look(app, 'GET', '/unknown', '192.0.2.6')).status, 429);
  });

  await t.test('GET /{id}: the lookup window slides by the clock, and a refused read burns nothing', async () => {
    const client = '192.0.2.3';
    const id = await app.store('once', { 'X-Burn-After-Read': 'true' });
    const statusOf = async (path: string): Promise<number> => (await look(app, 'GET', path, client)).status;
    assert.equal(await statusOf(`/${id}`), 200);
    app.clock.advance(10_000);
    for (let turn = 0; turn < 3; turn += 1) assert.equal(await statusOf(`/${id}`), 200);
    const refused = await look(app, 'GET', `/${id}/raw`, client);
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '50']);
    app.clock.advance(49_999);
    assert.equal(await statusOf(`/${id}/raw`), 429);
    app.clock.advance(1);
    assert.equal(await (await look(app, 'GET', `/${id}/raw`, client)).text(), 'once');
    assert.equal(await statusOf(`/${id}`), 429);
  });
});
