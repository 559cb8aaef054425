// The cross-site guard, over sockets: what another site has a visitor's browser send is refused before anything is
// done, on every path and for every method that may change something.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ROUTES } from '../../src/http/routes.ts';
import { INLINE_BYTES } from '../../src/store/store.ts';
import { assertRefused } from '../support/answer-contract.ts';
import { startApp } from '../support/app.ts';
import { insertCertificate, newFingerprint, presenting } from '../support/certificates.ts';
import { startHttp } from '../support/http-server.ts';
import { audited, PKI, withAdmin } from '../support/pki.ts';
import { head, openRaw, type RawAnswer } from '../support/raw-http.ts';
import { selectValue } from '../support/store.ts';
import { startTlsApp } from '../support/tls.ts';
import { freshWork } from '../support/work.ts';

const REFUSED = 'cross-site request refused';
const ELSEWHERE = 'Origin: https://elsewhere.example';

/** Header lines of a POST to `http://paste.test`, and whether it is refused. */
const MATRIX: readonly (readonly [lines: readonly string[], isRefused: boolean])[] = [
  // curl, scripts.
  [[], false],
  // Browsers of today.
  [['Sec-Fetch-Site: same-origin'], false],
  [['Sec-Fetch-Site: none'], false],
  [['Sec-Fetch-Site: same-site'], true],
  [['Sec-Fetch-Site: cross-site'], true],
  [['Sec-Fetch-Site: anything'], true],
  [['Sec-Fetch-Site:'], true],
  [['Sec-Fetch-Site: Same-Origin'], true],
  [['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site'], true],
  [['Sec-Fetch-Site: same-origin, cross-site'], true],
  // Where Sec-Fetch-Site says something, Origin adds nothing: a page may hide it.
  [['Sec-Fetch-Site: same-origin', 'Origin: null'], false],
  [['Sec-Fetch-Site: same-origin', ELSEWHERE], false],
  [['Sec-Fetch-Site: cross-site', 'Origin: http://paste.test'], true],
  // Browsers that do not send Sec-Fetch-Site: older ones, and all of them over plain HTTP.
  [['Origin: http://paste.test'], false],
  [['Origin: http://paste.test:80'], false],
  [['Origin: http://PASTE.test'], false],
  [['Origin: http://paste.test:8080'], true],
  [['Origin: http://paste.test.elsewhere.example'], true],
  [['Origin: http://other.paste.test'], true],
  [['Origin: http://paste.tes'], true],
  [[ELSEWHERE], true],
  [['Origin: null'], true],
  [['Origin:'], true],
  [['Origin: paste.test'], true],
  [['Origin: http://user@paste.test'], true],
  [['Origin: ftp://paste.test'], true],
  [['Origin: moz-extension://paste.test'], true],
  [['Origin: http://paste.test http://elsewhere.example'], true],
  [['Origin: http://paste.test', ELSEWHERE], true],
  // A proxy in front may end TLS without saying so.
  [['Origin: https://paste.test'], false],
  [['Origin: https://paste.test:443'], false],
  [['Origin: https://paste.test:80'], false],
  [['Origin: https://paste.test:8443'], true],
  // Host with a port.
  [['Host: paste.test:8080', 'Origin: http://paste.test:8080'], false],
  [['Host: paste.test:80', 'Origin: http://paste.test'], false],
  [['Host: paste.test:443', 'Origin: https://paste.test'], false],
  [['Host: paste.test:8080', 'Origin: http://paste.test'], true],
  [['Host: 127.0.0.1:8080', 'Origin: http://127.0.0.1:8080'], false],
  [['Host: 127.0.0.1:8080', 'Origin: http://localhost:8080'], true],
  [['Host: [::1]:8080', 'Origin: http://[::1]:8080'], false],
  [['Host: [::1]', 'Origin: http://[::1]'], false],
  [['Host: [::1]:8080', 'Origin: http://[::1]:8081'], true],
  // A trusted proxy: the request went to the host that the proxy names.
  [['X-Forwarded-Host: public.test', 'Origin: http://public.test'], false],
  [['X-Forwarded-Host: public.test', 'X-Forwarded-Proto: https', 'Origin: https://public.test'], false],
  [['X-Forwarded-Host: public.test', 'X-Forwarded-Proto: https', 'Origin: http://public.test'], true],
  [['X-Forwarded-Host: public.test', 'Origin: http://paste.test'], true],
  [['X-Forwarded-Host: public.test', ELSEWHERE], true],
];

async function ask(t: TestContext, port: number, requestLine: string, lines: readonly string[]): Promise<RawAnswer> {
  const connection = await openRaw(t, port);
  connection.send(head(requestLine, ...lines, 'Content-Length: 1'));
  connection.send('x');
  return connection.next(requestLine.split(' ')[0]);
}

test('cross-site guard: what is refused by Sec-Fetch-Site and Origin', async (t) => {
  const { port } = await startHttp(t, { config: { urlPrefix: '/under/this' } });
  for (const [lines, isRefused] of MATRIX) {
    const title = lines.join(', ') || 'neither';
    const answer = await ask(t, port, 'POST / HTTP/1.1', lines);
    assert.equal(answer.status, isRefused ? 403 : 201, title);
    if (isRefused) assertRefused(answer, 403, REFUSED);
  }
});

test('cross-site guard: X-Forwarded-Host of someone who is not believed is not the own host', async (t) => {
  const { port } = await startHttp(t, { config: { proxySecret: 'a secret' } });
  const forwarded = ['X-Forwarded-Host: elsewhere.example', ELSEWHERE];
  assertRefused(await ask(t, port, 'POST / HTTP/1.1', forwarded), 403, REFUSED);
  assert.equal((await ask(t, port, 'POST / HTTP/1.1', [...forwarded, 'X-Proxy-Secret: a secret'])).status, 201);
});

test('cross-site guard: the authority of an absolute-form target stands in for Host', async (t) => {
  const { port } = await startHttp(t);
  const line = 'POST http://own.test/ HTTP/1.1';
  assert.equal((await ask(t, port, line, ['Origin: http://own.test'])).status, 201);
  assertRefused(await ask(t, port, line, ['Origin: http://paste.test']), 403, REFUSED);
});

test('cross-site guard: under TLS of its own, a page that came over plain HTTP is another site', async (t) => {
  const { ask: askTls } = await startTlsApp(t);
  const ofHost = (origin: string) => askTls('POST /', { body: 'x', headers: { Host: 'paste.test', Origin: origin } });
  assert.equal((await ofHost('https://paste.test')).status, 201);
  assert.equal((await ofHost('http://paste.test')).status, 403);
});

test('cross-site guard: GET, HEAD and OPTIONS of what does not burn are never refused; whatever else, on every path, is', async (t) => {
  const { port } = await startHttp(t);
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'DELETE', 'PATCH', 'TRACE']) {
    for (const path of ['/', '/view', '/unknown/path', '/abcdefgh', '/a']) {
      const connection = await openRaw(t, port);
      connection.send(head(`${method} ${path} HTTP/1.1`, 'Sec-Fetch-Site: cross-site'));
      const { status } = await connection.next(method);
      assert.equal(status === 403, !['GET', 'HEAD', 'OPTIONS'].includes(method), `${method} ${path}: ${status}`);
    }
  }
});

test('cross-site guard: every route of the service, and no body is asked for', async (t) => {
  const { port } = await startApp(t, PKI);
  for (const { method, path } of ROUTES.filter((route) => route.method !== 'GET')) {
    const target = path.replace(/\{\w+\}/, 'a'.repeat(32));
    const connection = await openRaw(t, port);
    connection.send(head(`${method} ${target} HTTP/1.1`, ELSEWHERE, 'Expect: 100-continue', 'Content-Length: 100'));
    assertRefused(await connection.next(), 403, REFUSED);
    assert.equal(await connection.rest(), '');
  }
});

test('cross-site guard: the first certificate is for no page, not even of a name that leads to this host by now', async (t) => {
  const app = await startApp(t, PKI);
  const rebound = ['Host: elsewhere.example:8080', 'Origin: http://elsewhere.example:8080'];
  const asking = async (path: string, lines: readonly string[]): Promise<RawAnswer> => {
    const body = `{"common_name":"of ${path}"}`;
    const connection = await openRaw(t, app.port);
    connection.send(head(`POST ${path} HTTP/1.1`, ...lines, 'Content-Type: application/json', `Content-Length: ${body.length}`));
    connection.send(body);
    return connection.next();
  };
  const count = (table: string): unknown => selectValue(app.config.databasePath, `SELECT count(*) FROM ${table}`);
  assert.equal((await asking('/pki/ca', [])).status, 201);
  for (const path of ['/register', '/pki/issue']) {
    for (const lines of [rebound, ['Sec-Fetch-Site: same-origin'], [...rebound, 'Sec-Fetch-Site: same-origin']]) {
      const hint = 'the first certificate is the admin\'s: pasted admin create';
      assert.equal(assertRefused(await asking(path, lines), 403, REFUSED)['hint'], hint);
    }
  }
  assert.equal(count('certificates'), 0);
  assert.equal((await asking('/register', [])).header('x-is-admin'), '1');
  const later = await asking('/register', rebound);
  assert.deepEqual([later.status, later.header('x-is-admin')], [200, '0']);
  assert.equal(count('certificates'), 2);
});

test('cross-site guard: pages register once a certificate was issued, whatever has become of it', async (t) => {
  // A certificate of the admin, which cleanup keeps.
  const valid = { isAdmin: true };
  const revoked = { ...valid, revokedAt: 1 };
  const expired = { ...valid, expiresAt: 1 };
  for (const records of [[valid], [revoked], [expired], [valid, revoked], [valid, expired], [revoked, expired]]) {
    const app = await startApp(t, PKI);
    for (const record of records) insertCertificate(app.config.databasePath, record);
    const headers = { 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/json' };
    const answer = await app.request('/register', { method: 'POST', headers, body: '{"common_name":"x"}' });
    assert.deepEqual([answer.status, answer.headers.get('x-is-admin')], [200, '0'], JSON.stringify(records));
  }
});

test('cross-site guard: nothing is done before, neither counted, spent, revoked nor written down', async (t) => {
  const app = await startApp(t, { ...PKI, rateMax: 1, powDifficultyBits: 4 });
  const { databasePath } = app.config;
  const work = await freshWork(app);
  const creating = { method: 'POST', body: 'x' };
  assert.equal((await app.request('/', { ...creating, headers: { ...work, Origin: 'null' } })).status, 403);
  assert.equal((await app.request('/', { ...creating, headers: work })).status, 201);

  app.clock.advance(1000 * app.config.rateWindowSeconds);
  const admin = await withAdmin(app);
  const holder = newFingerprint();
  const { serial } = insertCertificate(databasePath, { issuedTo: holder });
  const { fingerprint: revoked } = insertCertificate(databasePath, { revokedAt: 1 });
  const path = `/pki/revoke/${serial}`;
  for (const fingerprint of [holder, revoked]) {
    const headers = { ...presenting(fingerprint), 'Sec-Fetch-Site': 'cross-site' };
    assert.equal((await app.request(path, { method: 'POST', headers })).status, 403);
  }
  assert.deepEqual(await audited(app, admin, '&event=auth_failure'), []);
  assert.equal((await app.request(path, { method: 'POST', headers: presenting(holder) })).status, 200);
});

const CROSS = { 'Sec-Fetch-Site': 'cross-site' };

/** Sent for an image, frame or script in a page of another site, or by a browser that fetches in advance. */
const UNASKED: readonly Record<string, string>[] = [
  { ...CROSS, 'Sec-Fetch-Dest': 'image' },
  { ...CROSS, 'Sec-Fetch-Dest': 'iframe' },
  { ...CROSS, 'Sec-Fetch-Dest': 'empty' },
  { ...CROSS },
  { 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Dest': 'image' },
  { 'Sec-Purpose': 'prefetch', 'Sec-Fetch-Site': 'none', 'Sec-Fetch-Dest': 'document' },
  { 'Sec-Purpose': 'prefetch;prerender', 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Dest': 'document' },
];

test('cross-site guard: what another site embeds, or a browser fetches in advance, burns nothing', async (t) => {
  const app = await startApp(t);
  const asked = [
    {}, { ...CROSS, 'Sec-Fetch-Dest': 'document' }, { 'Sec-Fetch-Site': 'none', 'Sec-Fetch-Dest': 'document' },
    { 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Dest': 'image' },
  ];
  // Content in the row of its paste, and in chunks.
  for (const bytes of [1, INLINE_BYTES + 1]) {
    const content = 'x'.repeat(bytes);
    for (const headers of asked) {
      const id = await app.store(content, { 'X-Burn-After-Read': 'true' });
      for (const unasked of UNASKED) {
        const refused = await app.request(`/${id}/raw`, { headers: unasked });
        assert.deepEqual([refused.status, await refused.json()], [403, { error: REFUSED }], JSON.stringify(unasked));
      }
      const answer = await app.request(`/${id}/raw`, { headers });
      assert.deepEqual([answer.status, await answer.text()], [200, content], JSON.stringify(headers));
      assert.equal((await app.request(`/${id}/raw`)).status, 404);
    }
  }
  const shown = await app.store('x');
  for (const headers of UNASKED) assert.equal((await app.request(`/${shown}/raw`, { headers })).status, 200);
  await app.app.close();
  assert.equal(selectValue(app.config.databasePath, 'SELECT count(*) FROM chunks'), 0, 'no reader is left');
});
