// What must hold when content is read, stored, changed or deleted, over real sockets: If-Match, If-None-Match, the whole
// of the content, and a certificate that is still valid. Ranges and 304: read-paste.test.ts.

import assert from 'node:assert/strict';
import { after, test, type TestContext } from 'node:test';
import { assertRefused } from '../support/answer-contract.ts';
import { binaryContent, startApp } from '../support/app.ts';
import { insertCertificate, newFingerprint, presenting, setRevoked } from '../support/certificates.ts';
import { assertError, statusCounts, type Answer } from '../support/posting.ts';
import { head, onlyAnswer, openRaw } from '../support/raw-http.ts';
import { selectValue } from '../support/store.ts';

const AS_OWNER = presenting(newFingerprint());
const FAILED = 'precondition failed';

const app = await startApp({ after } as unknown as TestContext);

async function send(method: string, path: string, headers: Record<string, string>, body: string | null = null): Promise<Answer> {
  const response = await app.request(path, { method, body, headers: { ...AS_OWNER, ...headers } });
  return { status: response.status, headers: response.headers, json: await response.json() as Record<string, unknown> };
}

async function textOf(id: string): Promise<string> {
  return (await app.request(`/${id}/raw`)).text();
}

async function etagOf(id: string): Promise<string> {
  return (await app.request(`/${id}/raw`, { method: 'HEAD' })).headers.get('etag') ?? assert.fail('no ETag');
}

test('GET /{id}/raw: If-Match is compared strongly, before If-None-Match and Range; an absent one asks nothing', async () => {
  for (const content of ['hello world', binaryContent(700_000)]) {
    const id = await app.store(content);
    const etag = await etagOf(id);
    const statuses = async (headers: Record<string, string>): Promise<(number | undefined)[]> => {
      const answers = await Promise.all(['HEAD', 'GET'].map((method) => app.request(`/${id}/raw`, { method, headers })));
      await Promise.all(answers.map((answer) => answer.arrayBuffer()));
      return answers.map(({ status }) => status);
    };
    for (const value of [etag, '*', ` ${etag} `, `"x", ${etag}`]) {
      assert.deepEqual(await statuses({ 'If-Match': value }), [200, 200], value);
    }
    for (const value of [`W/${etag}`, '"x"', 'x', '', `${etag}x`, `"x", W/${etag}`]) {
      assert.deepEqual(await statuses({ 'If-Match': value }), [412, 412], value);
    }
    assert.deepEqual(await statuses({ 'If-Match': etag, 'If-None-Match': etag }), [304, 304]);
    assert.deepEqual(await statuses({ 'If-Match': '"x"', 'If-None-Match': etag }), [412, 412]);
    assert.deepEqual(await statuses({ 'If-Match': '"x"', Range: 'bytes=0-4' }), [412, 412]);
    assert.deepEqual(await statuses({ 'If-Match': etag, Range: 'bytes=0-4' }), [200, 206]);
  }
});

test('GET /{id}/raw: conditions in several lines are one list (RFC 9110 section 5.3)', async (t) => {
  const id = await app.store('hello world');
  const etag = await etagOf(id);
  for (const [name, status] of [['If-Match', 200], ['If-None-Match', 304]] as const) {
    const lines = [`${name}: "x"`, `${name}: ${etag}`, 'Connection: close'];
    assert.equal((await onlyAnswer(t, app.port, head(`GET /${id}/raw HTTP/1.1`, ...lines))).status, status, name);
  }
});

test('a burn-after-read paste has no ETag: conditions neither keep it from being read nor burn it unread', async () => {
  const id = await app.store('once', { 'X-Burn-After-Read': '1' });
  assert.equal((await app.request(`/${id}/raw`, { method: 'HEAD', headers: { 'If-Match': '"x"' } })).status, 200);
  const response = await app.request(`/${id}/raw`, { headers: { 'If-Match': '"x"', 'If-None-Match': '*' } });
  assert.deepEqual([response.status, await response.text()], [200, 'once']);
});

test('PUT and DELETE /{id}: without effect unless If-Match names the content, and If-None-Match does not', async () => {
  const id = await app.store('first', AS_OWNER);
  const etag = await etagOf(id);
  const failing = [
    { 'If-Match': '"x"' }, { 'If-Match': `W/${etag}` }, { 'If-None-Match': '*' }, { 'If-None-Match': etag },
    { 'If-None-Match': `W/${etag}` }, { 'If-Match': etag, 'If-None-Match': '*' },
  ];
  for (const headers of failing) {
    assertError(await send('PUT', `/${id}`, headers, 'lost'), 412, FAILED);
    assertError(await send('PUT', `/${id}`, { ...headers, 'X-Expiry': '60' }), 412, FAILED);
    assertError(await send('DELETE', `/${id}`, headers), 412, FAILED);
  }
  assert.equal(await textOf(id), 'first');
  assert.equal((await send('PUT', `/${id}`, { 'If-Match': etag, 'If-None-Match': '"x"' }, 'second')).status, 200);
  assertError(await send('PUT', `/${id}`, { 'If-Match': etag }, 'third'), 412, FAILED);
  assert.equal(await textOf(id), 'second');
  assertError(await send('DELETE', `/${id}`, { 'If-Match': etag }), 412, FAILED);
  assert.equal((await send('DELETE', `/${id}`, { 'If-Match': await etagOf(id) })).status, 200);
});

test('PUT and DELETE /{id}: who may not change a paste learns nothing from conditions', async () => {
  const id = await app.store('first', presenting(newFingerprint()));
  for (const method of ['PUT', 'DELETE']) {
    for (const value of ['"x"', '*']) {
      assertError(await send(method, `/${id}`, { 'If-Match': value, 'X-Expiry': '60' }), 403, 'permission denied');
      assertError(await send(method, '/abcdefgh', { 'If-Match': value, 'X-Expiry': '60' }), 404, 'paste not found', {
        ...(method === 'PUT' ? { hint: 'to store a paste, send it to / itself: curl -T - URL < FILE' } : {}),
      });
    }
  }
});

test('PUT /{id} and DELETE: of many at once that mean the same content, one succeeds', async () => {
  for (let turn = 0; turn < 5; turn += 1) {
    const id = await app.store(`first ${turn}`, AS_OWNER);
    const headers = { 'If-Match': await etagOf(id) };
    const contents = Array.from({ length: 12 }, (_, index) => `content ${turn} ${index}`);
    const answers = await Promise.all([
      ...contents.map((content) => send('PUT', `/${id}`, headers, content)),
      send('DELETE', `/${id}`, headers),
    ]);
    const counts = statusCounts(answers);
    assert.equal(counts[200], 1, JSON.stringify(counts));
    const winner = answers.findIndex(({ status }) => status === 200);
    if (winner < contents.length) assert.equal(await textOf(id), contents[winner]);
    // A PUT that lost against the DELETE finds no paste any more.
    assert.equal((counts[412] ?? 0) + (counts[404] ?? 0), contents.length, JSON.stringify(counts));
  }
});

test('PUT and DELETE /{id}: If-Match: * holds whatever others have stored meanwhile', async (t) => {
  const id = await app.store('first', AS_OWNER);
  const connection = await openRaw(t, app.port);
  const lines = Object.entries(AS_OWNER).map(([name, value]) => `${name}: ${value}`);
  connection.send(head(`PUT /${id} HTTP/1.1`, ...lines, 'If-Match: *', 'Content-Length: 5', 'Expect: 100-continue'));
  assert.equal((await connection.next()).status, 100);
  assert.equal((await send('PUT', `/${id}`, {}, 'second')).status, 200);
  connection.send('third');
  assert.equal((await connection.next()).status, 200);
  assert.equal(await textOf(id), 'third');
  assert.equal((await send('DELETE', `/${id}`, { 'If-Match': '*' })).status, 200);
});

test('POST / and PUT: a part of content is refused, since it would be stored as the whole', async () => {
  const id = await app.store('abcdef', AS_OWNER);
  const part = { 'Content-Range': 'bytes 3-5/6' };
  const hint = { hint: 'send the whole content, without Content-Range' };
  assertError(await send('PUT', `/${id}`, part, 'def'), 400, 'malformed request', hint);
  assertError(await send('POST', '/', part, 'def'), 400, 'malformed request', hint);
  assertError(await send('PUT', '/', part, 'def'), 400, 'malformed request', hint);
  assert.equal(await textOf(id), 'abcdef');
});

test('POST / and PUT: a certificate that is revoked while its holder sends stores nothing more', async (t) => {
  for (const size of [100, 300_000]) {
    const { fingerprint, serial } = insertCertificate(app.config.databasePath);
    const headers = presenting(fingerprint);
    const id = await app.store('before', headers);
    const lines = [`X-SSL-Client-SHA1: ${fingerprint}`, `Content-Length: ${size}`, 'Expect: 100-continue'];
    const connections = await Promise.all(['POST /', `PUT /${id}`].map(async (target) => {
      const connection = await openRaw(t, app.port);
      connection.send(head(`${target} HTTP/1.1`, ...lines));
      // The caller is known before a body is wanted.
      assert.equal((await connection.next()).status, 100);
      return connection;
    }));
    setRevoked(app.config.databasePath, serial, 1);
    for (const connection of connections) {
      connection.send(binaryContent(size));
      const answer = assertRefused(await connection.next(), 403, 'permission denied');
      assert.equal(answer['hint'], 'the client certificate is not valid any more');
    }
    assert.equal(await textOf(id), 'before');
    assert.equal(selectValue(app.config.databasePath, `SELECT count(*) FROM pastes WHERE owner = '${fingerprint}'`), 1);
  }
});
