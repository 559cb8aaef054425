// GET and HEAD of pastes over real sockets: metadata, content, ranges, passwords, burning and expiry.

import { takeDerivations } from '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { WorkQueue } from '../../src/limits/work-queue.ts';
import { newFingerprint, presenting } from '../support/certificates.ts';
import { head, openRaw } from '../support/raw-http.ts';

const PASSWORD = { 'X-Paste-Password': 'open sesame' };

test('GET /{id}: metadata has exactly the specified members', async (t) => {
  const app = await startApp(t);
  const id = await app.store('hello');
  const response = await app.request(`/${id}`);
  assert.equal(response.status, 200);
  const created = Math.floor(app.clock.unixMs() / 1000);
  assert.deepEqual(await response.json(), {
    id, mime_type: 'text/plain', size: 5, created_at: created, raw: `/${id}/raw`, expires_at: created + 86_400,
  });
  const head = await app.request(`/${id}`, { method: 'HEAD' });
  assert.equal(head.status, 200);
  assert.equal(head.headers.get('content-length'), response.headers.get('content-length'));
  assert.equal(await head.text(), '');
});

test('GET /{id}: ill-formed ids are 400, unknown ones 404', async (t) => {
  const app = await startApp(t);
  for (const [path, status] of [['/abcde', 400], ['/abcdef', 404], [`/${'a'.repeat(64)}`, 404], [`/${'a'.repeat(65)}`, 400],
    ['/abc-def', 400], ['/abc%64ef', 400], ['/abcdef/raw', 404], ['/abcde/raw', 400], ['/abcdef/', 404], ['/a/b/c', 404],
    ['/favicon.ico', 400]] as const) {
    const response = await app.request(path);
    assert.equal(response.status, status, path);
    const { error } = await response.json() as { error: string };
    assert.ok(error.length > 0);
  }
});

test('GET /{id}/raw: the content with its type, disposition and validators; HEAD says the same', async (t) => {
  const app = await startApp(t);
  const text = await app.store('hello');
  const image = await app.store(binaryContent(300_000), { 'Content-Type': 'image/png' });
  const other = await app.store(binaryContent(10));
  for (const [id, type, disposition, bytes] of [[text, 'text/plain', 'inline', '5'], [image, 'image/png', 'inline', '300000'],
    [other, 'application/octet-stream', `attachment; filename="${other}"`, '10']] as const) {
    const get = await app.request(`/${id}/raw`);
    const head = await app.request(`/${id}/raw`, { method: 'HEAD' });
    assert.equal((await get.arrayBuffer()).byteLength, Number(bytes));
    for (const response of [get, head]) {
      assert.equal(response.headers.get('content-type'), type);
      assert.equal(response.headers.get('content-disposition'), disposition);
      assert.equal(response.headers.get('content-length'), bytes);
      assert.equal(response.headers.get('accept-ranges'), 'bytes');
      assert.equal(response.headers.has('x-burn-after-read'), false);
      assert.equal(response.headers.get('etag'), get.headers.get('etag'));
    }
  }
});

test('GET /{id}/raw: single ranges of small and of chunked content', async (t) => {
  const app = await startApp(t);
  for (const size of [1000, 700_000]) {
    const content = binaryContent(size);
    const id = await app.store(content);
    for (const [range, start, end] of [['bytes=0-0', 0, 1], [`bytes=${size - 1}-`, size - 1, size], ['bytes=-1', size - 1, size],
      [`bytes=-${size + 5}`, 0, size], [`bytes=10-${size * 2}`, 10, size], ['bytes=1-998', 1, 999],
      [`bytes=${size / 2}-${size / 2 + 99}`, size / 2, size / 2 + 100]] as const) {
      const response = await app.request(`/${id}/raw`, { headers: { Range: range } });
      assert.equal(response.status, 206, range);
      assert.equal(response.headers.get('content-range'), `bytes ${start}-${end - 1}/${size}`);
      assert.deepEqual(new Uint8Array(await response.arrayBuffer()), content.slice(start, end), range);
    }
    for (const range of [`bytes=${size}-`, 'bytes=-0', `bytes=${size + 1}-${size + 2}`]) {
      const response = await app.request(`/${id}/raw`, { headers: { Range: range } });
      assert.equal(response.status, 416, range);
      assert.equal(response.headers.get('content-range'), `bytes */${size}`);
      await response.text();
    }
    for (const range of ['bytes=5-4', 'bytes=0-0,5-6', 'lines=0-1', 'bytes=', 'bytes=-', 'bytes=a-b']) {
      const response = await app.request(`/${id}/raw`, { headers: { Range: range } });
      assert.equal(response.status, 200, range);
      assert.equal((await response.arrayBuffer()).byteLength, size);
    }
  }
});

test('HEAD /{id}/raw: If-None-Match is evaluated as for GET, and never of a burn-after-read paste', async (t) => {
  const app = await startApp(t);
  const id = await app.store('content');
  const etag = (await app.request(`/${id}/raw`, { method: 'HEAD' })).headers.get('etag') ?? '';
  for (const [value, status] of [[etag, 304], [`W/${etag}`, 304], ['*', 304], [`"x", ${etag}`, 304], ['"x"', 200]] as const) {
    const [head, get] = await Promise.all(['HEAD', 'GET'].map((method) => (
      app.request(`/${id}/raw`, { method, headers: { 'If-None-Match': value } })
    )));
    assert.deepEqual([head?.status, get?.status], [status, status], value);
    assert.equal(head?.headers.get('etag'), etag);
    assert.equal(head?.headers.get('content-length'), status === 304 ? null : '7');
  }
  const once = await app.store('burnt', { 'X-Burn-After-Read': '1' });
  const preview = await app.request(`/${once}/raw`, { method: 'HEAD', headers: { 'If-None-Match': '*' } });
  assert.equal(preview.status, 200);
  const locked = await app.store('locked', { 'X-Paste-Password': 'p' });
  const refused = await app.request(`/${locked}/raw`, { method: 'HEAD', headers: { 'If-None-Match': '*' } });
  assert.equal(refused.status, 401);
});

test('GET /{id}/raw: If-None-Match answers 304, If-Range guards the range', async (t) => {
  const app = await startApp(t);
  const id = await app.store('hello world');
  const etag = (await app.request(`/${id}/raw`, { method: 'HEAD' })).headers.get('etag') ?? '';
  for (const value of [etag, `W/${etag}`, '*', `"x", ${etag}`]) {
    const response = await app.request(`/${id}/raw`, { headers: { 'If-None-Match': value } });
    assert.equal(response.status, 304, value);
    assert.equal(response.headers.get('etag'), etag);
    assert.equal(await response.text(), '');
  }
  assert.equal((await app.request(`/${id}/raw`, { headers: { 'If-None-Match': '"x"' } })).status, 200);
  const matching = await app.request(`/${id}/raw`, { headers: { Range: 'bytes=0-4', 'If-Range': etag } });
  assert.equal(matching.status, 206);
  assert.equal(await matching.text(), 'hello');
  for (const value of ['"x"', `W/${etag}`, 'Fri, 20 Nov 2026 10:00:00 GMT']) {
    const response = await app.request(`/${id}/raw`, { headers: { Range: 'bytes=0-4', 'If-Range': value } });
    assert.equal(response.status, 200, value);
  }
});

test('GET /{id}/raw: burns once; HEAD, metadata and a wrong password do not', async (t) => {
  const app = await startApp(t);
  for (const content of [binaryContent(100), binaryContent(700_000)]) {
    const id = await app.store(content, { 'X-Burn-After-Read': 'true', ...PASSWORD });
    for (const method of ['HEAD', 'HEAD']) {
      const head = await app.request(`/${id}/raw`, { method, headers: PASSWORD });
      assert.equal(head.status, 200);
      assert.equal(head.headers.get('x-burn-after-read'), 'true');
      assert.equal(head.headers.get('accept-ranges'), 'none');
      assert.equal(head.headers.has('etag'), false);
    }
    assert.equal((await app.request(`/${id}`, { headers: PASSWORD })).status, 200);
    assert.equal((await app.request(`/${id}/raw`, { headers: { 'X-Paste-Password': 'wrong' } })).status, 403);
    assert.equal((await app.request(`/${id}/raw`)).status, 401);
    const burned = await app.request(`/${id}/raw`, { headers: { ...PASSWORD, Range: 'bytes=0-1' } });
    assert.equal(burned.status, 200);
    assert.equal(burned.headers.get('x-burn-after-read'), 'true');
    assert.deepEqual(new Uint8Array(await burned.arrayBuffer()), content);
    assert.equal((await app.request(`/${id}/raw`, { headers: PASSWORD })).status, 404);
    assert.equal((await app.request(`/${id}`, { headers: PASSWORD })).status, 404);
  }
});

test('what burns is not told before it has burned: no answer has a digest that guesses could be compared with', async (t) => {
  const app = await startApp(t);
  for (const content of ['4711', binaryContent(700_000)]) {
    const id = await app.store(content, { 'X-Burn-After-Read': '1' });
    const digest = createHash('sha256').update(content).digest();
    const page = { Accept: 'text/html' };
    const form = { ...page, 'Content-Type': 'application/x-www-form-urlencoded' };
    const looks = [
      { path: `/${id}/raw`, method: 'HEAD', headers: {} }, { path: `/${id}/raw`, method: 'HEAD', headers: page },
      { path: `/${id}`, method: 'GET', headers: {} }, { path: `/${id}`, method: 'GET', headers: page },
      { path: `/${id}`, method: 'POST', headers: form },
    ];
    for (const { path, ...look } of looks) {
      const answer = await app.request(path, look);
      assert.equal(answer.status, 200);
      const said = [...answer.headers].join() + await answer.text();
      for (const encoding of ['hex', 'base64', 'base64url'] as const) {
        assert.equal(said.includes(digest.toString(encoding)), false, `${look.method} ${path}: ${said}`);
      }
    }
    const burned = await app.request(`/${id}/raw`);
    assert.deepEqual(Buffer.from(await burned.arrayBuffer()), Buffer.from(content));
  }
});

async function readers(app: RunningApp, id: string, count: number): Promise<Response[]> {
  return Promise.all(Array.from({ length: count }, () => app.request(`/${id}/raw`)));
}

test('GET /{id}/raw: 64 concurrent readers of a burn-after-read paste see it exactly once', async (t) => {
  const app = await startApp(t);
  for (const size of [100, 65_536, 65_537, 600_000]) {
    for (let round = 0; round < 5; round += 1) {
      const content = binaryContent(size, round + 1);
      const id = await app.store(content, { 'X-Burn-After-Read': '1' });
      const responses = await readers(app, id, 64);
      const winners = responses.filter((response) => response.status === 200);
      assert.equal(winners.length, 1, `${size} bytes`);
      assert.equal(responses.filter((response) => response.status === 404).length, 63);
      assert.deepEqual(new Uint8Array(await winners[0]!.arrayBuffer()), content);
      await Promise.all(responses.map((response) => response.bodyUsed ? undefined : response.text()));
    }
  }
});

test('GET /{id}: a password is asked for, checked, and taken as UTF-8', async (t) => {
  const app = await startApp(t);
  const password = { 'X-Paste-Password': Buffer.from('p\u00e4ss w\u00f6rd \u{1f511}').toString('latin1') };
  const id = await app.store('secret text', password);
  const none = await app.request(`/${id}`);
  assert.equal(none.status, 401);
  assert.deepEqual(await none.json(), { error: 'password required', password_protected: true });
  const wrong = await app.request(`/${id}/raw`, { headers: { 'X-Paste-Password': 'wrong' } });
  assert.equal(wrong.status, 403);
  assert.deepEqual(await wrong.json(), { error: 'invalid password' });
  const metadata = await app.request(`/${id}`, { headers: password });
  assert.equal((await metadata.json() as { password_protected: boolean }).password_protected, true);
  assert.equal(await (await app.request(`/${id}/raw`, { headers: password })).text(), 'secret text');
  const open = await app.store('open');
  assert.equal((await app.request(`/${open}/raw`, { headers: password })).status, 200);
});

test('GET /{id}: with a password an unknown id costs the derivation that a wrong one costs', async (t) => {
  const app = await startApp(t);
  const id = await app.store('x', PASSWORD);
  const costOf = async (path: string, headers: Record<string, string>): Promise<readonly object[]> => {
    takeDerivations();
    await (await app.request(path, { headers })).text();
    return takeDerivations();
  };
  const wrong = await costOf(`/${id}`, { 'X-Paste-Password': 'wrong' });
  assert.equal(wrong.length, 1);
  assert.deepEqual(await costOf('/abcdef', { 'X-Paste-Password': 'wrong' }), wrong);
});

test('GET /{id}: without a password an unknown id is answered after the time that checks take', async (t) => {
  let readings = 0;
  const clock = { unixMs: () => Date.now(), monotonicMs: () => (readings += 1) * 60 };
  const app = await startApp(t, {}, clock);
  const id = await app.store('x', PASSWORD);
  // By this clock each check takes 60 ms or more, and so does the median of the last ones, which is the wait.
  for (let check = 0; check < 3; check += 1) await app.request(`/${id}`, { headers: { 'X-Paste-Password': 'wrong' } });
  const started = performance.now();
  assert.equal((await app.request('/abcdef')).status, 404);
  const tookMs = performance.now() - started;
  assert.ok(tookMs > 58, `${tookMs} ms`);
});

test('GET /{id}: password checks beyond the queue are shed with 503, known or unknown alike', async (t) => {
  const app = await startApp(t);
  const id = await app.store('x', PASSWORD);
  const responses = await Promise.all(Array.from({ length: 60 }, async (_, turn) => {
    const response = await app.request(turn % 2 === 0 ? `/${id}` : '/abcdef', { headers: { 'X-Paste-Password': 'wrong' } });
    return { isKnown: turn % 2 === 0, status: response.status, retryAfter: response.headers.get('retry-after') };
  }));
  for (const isKnown of [true, false]) {
    const some = responses.filter((response) => response.isKnown === isKnown);
    const shed = some.filter((response) => response.status === 503);
    assert.ok(shed.length > 0 && shed.every((response) => response.retryAfter === '1'));
    assert.ok(some.filter((response) => response.status === (isKnown ? 403 : 404)).length > 0);
    assert.equal(shed.length + some.filter((response) => response.status === (isKnown ? 403 : 404)).length, some.length);
  }
});

test('GET /{id}/raw: a reader who went while waiting for the check of its password has burned nothing', async (t) => {
  const app = await startApp(t);
  const id = await app.store('the only copy', { ...PASSWORD, 'X-Burn-After-Read': '1' });
  const [asked, turn, given] = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
  t.mock.method(WorkQueue.prototype, 'enter', async () => {
    asked!.resolve();
    await turn!.promise;
    return () => given!.resolve();
  }, { times: 1 });
  const client = await openRaw(t, app.port);
  client.send(head(`GET /${id}/raw HTTP/1.1`, 'X-Paste-Password: open sesame'));
  await asked!.promise;
  client.socket.resetAndDestroy();
  while (!app.logged.some(({ details }) => details?.['status'] === 499)) await setTimeout(1);
  turn!.resolve();
  await given!.promise;
  const response = await app.request(`/${id}/raw`, { headers: PASSWORD });
  assert.deepEqual([response.status, await response.text()], [200, 'the only copy']);
});

/**
 * Keeps 200 requests going, each asked again as soon as it is answered. Resolves once so many were shed that the
 * password queue is full; `end` makes them all hang up.
 */
async function flood(
  ask: (signal: AbortSignal) => Promise<Response>,
): Promise<{ statuses: Record<number, number>; end: () => Promise<void> }> {
  const statuses: Record<number, number> = {};
  const over = new AbortController();
  const connections = Promise.all(Array.from({ length: 200 }, async () => {
    while (!over.signal.aborted) {
      const response = await ask(over.signal);
      await response.text();
      statuses[response.status] = (statuses[response.status] ?? 0) + 1;
      // Soon enough to keep the queue full, which takes some ten a second: answering 503 is then little of the work.
      if (response.status === 503) await setTimeout(250);
    }
  }));
  while ((statuses[503] ?? 0) < 50) await setTimeout(20);
  return {
    statuses,
    end: async () => {
      over.abort();
      await connections.catch((error: Error) => assert.equal(error.name, 'AbortError'));
    },
  };
}

test('GET /{id}: wrong passwords on 200 connections of one address leave another\'s right one answered', async (t) => {
  const app = await startApp(t, { maxConnectionsPerClient: 0 });
  const id = await app.store('x', PASSWORD);
  const ask = (address: string, password: string, path = `/${id}`, options: RequestInit = {}): Promise<Response> =>
    app.request(path, { headers: { 'X-Forwarded-For': address, 'X-Paste-Password': password }, ...options });
  const wrong = await flood((signal) => ask('2001:db8::1', 'wrong', `/${id}`, { signal }));
  for (let turn = 0; turn < 3; turn += 1) {
    assert.equal((await ask('2001:db8:0:1::1', PASSWORD['X-Paste-Password'])).status, 200);
    assert.equal((await ask('192.0.2.1', 'wrong', '/abcdef')).status, 404);
  }
  await wrong.end();
  assert.deepEqual(Object.keys(wrong.statuses), ['403', '503']);
});

test('PUT /{id}: passwords set on 200 connections of one address leave another\'s reading answered', async (t) => {
  const app = await startApp(t, { maxConnectionsPerClient: 0 });
  const owner = presenting(newFingerprint());
  const own = await app.store('own', owner);
  const id = await app.store('x', PASSWORD);
  const setting = await flood((signal) => app.request(`/${own}`, {
    signal, method: 'PUT', headers: { ...owner, 'X-Forwarded-For': '192.0.2.1', 'X-Paste-Password': 'new' },
  }));
  for (let turn = 0; turn < 3; turn += 1) {
    const headers = { ...PASSWORD, 'X-Forwarded-For': '192.0.2.2' };
    assert.equal((await app.request(`/${id}/raw`, { headers })).status, 200);
  }
  await setting.end();
  assert.deepEqual(Object.keys(setting.statuses), ['200', '503']);
});

test('GET /{id}: gone from the second of its expiry on, and cleaned up', async (t) => {
  const app = await startApp(t);
  const id = await app.store(binaryContent(300_000), { 'X-Expiry': '10' });
  const { expires_at: expiresAt } = await (await app.request(`/${id}`)).json() as { expires_at: number };
  app.clock.advance(expiresAt * 1000 - 1 - app.clock.unixMs());
  assert.equal((await app.request(`/${id}`)).status, 200);
  app.clock.advance(1);
  for (const path of [`/${id}`, `/${id}/raw`]) assert.equal((await app.request(path)).status, 404);
  await app.app.cleanup.run('expired pastes');
  await app.app.close();
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(app.config.databasePath, { readOnly: true, timeout: 5000 });
  for (const table of ['pastes', 'chunks', 'orphans']) {
    assert.equal(database.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.['rows'], 0, table);
  }
  database.close();
});

test('GET /health and GET /: what they say', async (t) => {
  const app = await startApp(t, { urlPrefix: '/paste' });
  const health = await app.request('/health');
  assert.equal(health.status, 200);
  assert.deepEqual(await health.json(), { status: 'healthy', database: 'ok' });
  const index = await (await app.request('/')).json() as Record<string, Record<string, string>>;
  assert.match(String(index['version']), /^1\.5\.\d+$/);
  assert.equal(typeof index['endpoints']!['POST /'], 'string');
  assert.equal(typeof index['endpoints']!['GET /{id}/raw'], 'string');
  assert.ok(index['usage']!['create']!.includes(`${app.url}/paste/`));
  assert.equal(typeof index['note'], 'string');
  assert.equal('name' in index || 'prefix' in index, false);
});

test('request log: the route pattern and never the id of a paste', async (t) => {
  const app = await startApp(t);
  const id = await app.store('hello', PASSWORD);
  await (await app.request(`/${id}/raw`, { headers: PASSWORD })).text();
  await (await app.request(`/${id}/nothing`)).text();
  const lines = app.logged.filter((entry) => entry.event === 'request');
  assert.ok(lines.some((entry) => entry.details?.['route'] === '/{id}/raw' && entry.details['bytes'] === 5));
  const everything = JSON.stringify(app.logged);
  for (const secret of [id, PASSWORD['X-Paste-Password'], 'hello']) assert.equal(everything.includes(secret), false);
});
