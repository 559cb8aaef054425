// Requests that are not well-formed, over raw sockets: each is answered once, in the form of every other answer, and
// the connection ends. The server is well afterwards.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { assertContract, assertRefused } from '../support/answer-contract.ts';
import { startHttp } from '../support/http-server.ts';
import { head, onlyAnswer, openRaw } from '../support/raw-http.ts';

const MALFORMED = 'malformed request';
const TARGET = 'request target not acceptable';
const HOST = 'Host header missing, given more than once or no host';
const CODING = 'transfer encoding not supported';
const TOO_LARGE = 'request headers too large';
const EXPECTATION = 'expectation not supported';
const REPEATED = 'header given more than once';

const post = (...lines: readonly string[]): string => head('POST / HTTP/1.1', ...lines);
const CHUNKED = post('Transfer-Encoding: chunked');
const LAST_CHUNK = '0\r\n\r\n';

/** RFC 9112 section 3.2: none of these can be the name or the address of a host, with or without a port. */
const NO_HOSTS = [
  'a b', 'a/b', 'u@a', 'u:p@a', 'a:x', 'a:-1', 'a:80:80', 'a:0', 'a:99999', '<script>', 'a,b', 'a?b', 'a#b', 'a\\b',
  '[::1', '::1', '[]', '[zz]', '[::1]x', '[fe80::1%25eth0]', '%zz', '"a"', 'http://a', '*', '-', '..', '\xe9',
];

/** Requests of other protocols that node's parser knows (RFC 9112 section 2.3). */
const OTHER_PROTOCOLS = [
  'GET / RTSP/1.0', 'POST / RTSP/1.0', 'OPTIONS * RTSP/1.0', 'DESCRIBE rtsp://a/b RTSP/1.0', 'GET / RTSP/1.1',
  'SOURCE / ICE/1.0', 'SOURCE / ICE/1.1', '\r\nGET / RTSP/1.0', 'GET / rtsp/1.0', 'GET / ICE/1.0', 'GET / RTSP/2.0',
];

/** What is sent, and the status and words of the one answer. Each ends the connection. */
const ENDS_CONNECTION: readonly (readonly [title: string, bytes: string, status: number, error: string])[] = [
  ['no request line', 'hello\r\n\r\n', 400, MALFORMED],
  ['a TLS client', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', 400, MALFORMED],
  ['HTTP/0.9 without a version', 'GET /\r\n\r\n', 400, MALFORMED],
  ['HTTP/0.9 with a version', 'GET / HTTP/0.9\r\n\r\n', 400, MALFORMED],
  ['HTTP/1.2', head('GET / HTTP/1.2'), 400, MALFORMED],
  ['HTTP/2.0', head('GET / HTTP/2.0'), 400, MALFORMED],
  ['the HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, MALFORMED],
  ['a method in lower case', head('get / HTTP/1.1'), 400, MALFORMED],
  ['an unknown method', head('BREW / HTTP/1.1'), 400, MALFORMED],
  ['bare line feeds', 'GET / HTTP/1.1\nHost: a\n\n', 400, MALFORMED],
  ['a space in the target', head('GET /a b HTTP/1.1'), 400, MALFORMED],
  ['a control character in the target', head('GET /a\x01 HTTP/1.1'), 400, MALFORMED],
  ['a byte above ASCII in the target', head('GET /\xe9 HTTP/1.1'), 400, MALFORMED],
  ['a target without a slash', head('GET view HTTP/1.1'), 400, MALFORMED],
  ['a folded header', head('GET / HTTP/1.1', 'X-A: a\r\n b'), 400, MALFORMED],
  ['a space before the colon', head('GET / HTTP/1.1', 'Host : a'), 400, MALFORMED],
  ['a header without a colon', head('GET / HTTP/1.1', 'abc'), 400, MALFORMED],
  ['a header without a name', head('GET / HTTP/1.1', ': a'), 400, MALFORMED],
  ['NUL in a header', head('GET / HTTP/1.1', 'X-A: a\0b'), 400, MALFORMED],
  ['a bare carriage return in a header', head('GET / HTTP/1.1', 'X-A: a\rb'), 400, MALFORMED],
  ['no Host', 'GET / HTTP/1.1\r\n\r\n', 400, HOST],
  ['two Host lines', head('GET / HTTP/1.1', 'Host: a', 'Host: b'), 400, HOST],
  ['two equal Host lines', head('GET / HTTP/1.1', 'Host: a', 'Host: a'), 400, HOST],
  ['two Host lines in HTTP/1.0', head('GET / HTTP/1.0', 'Host: a', 'Host: b'), 400, HOST],
  ...NO_HOSTS.map((host) => [`the host ${host}`, head('GET / HTTP/1.1', `Host: ${host}`), 400, HOST] as const),
  ['the host a b in HTTP/1.0', head('GET / HTTP/1.0', 'Host: a b'), 400, HOST],
  ['the host a b beside another authority', head('GET http://a/ HTTP/1.1', 'Host: a b'), 400, HOST],
  ['the authority <script>', head('GET http://<script>/ HTTP/1.1'), 400, MALFORMED],
  ['the authority a\\b', head('GET http://a\\b/ HTTP/1.1'), 400, MALFORMED],
  ...OTHER_PROTOCOLS.map((line) => [JSON.stringify(line), head(line), 400, MALFORMED] as const),
  ['both framings, length last', post('Transfer-Encoding: chunked', 'Content-Length: 5') + LAST_CHUNK, 400, MALFORMED],
  ['both framings, length first', post('Content-Length: 5', 'Transfer-Encoding: chunked') + LAST_CHUNK, 400, MALFORMED],
  ['two lengths', post('Content-Length: 3', 'Content-Length: 4') + 'abcd', 400, MALFORMED],
  ['two equal lengths', post('Content-Length: 3', 'Content-Length: 3') + 'abc', 400, MALFORMED],
  ['a list of lengths', post('Content-Length: 3, 3') + 'abc', 400, MALFORMED],
  ['a signed length', post('Content-Length: +3') + 'abc', 400, MALFORMED],
  ['a negative length', post('Content-Length: -3') + 'abc', 400, MALFORMED],
  ['an empty length', post('Content-Length:') + 'abc', 400, MALFORMED],
  ['a length past 64 bits', post('Content-Length: 99999999999999999999'), 400, MALFORMED],
  ['gzip', post('Transfer-Encoding: gzip') + 'abc', 501, CODING],
  ['gzip, chunked', post('Transfer-Encoding: gzip, chunked') + LAST_CHUNK, 501, CODING],
  ['chunked, gzip', post('Transfer-Encoding: chunked, gzip') + LAST_CHUNK, 501, CODING],
  ['chunked twice', post('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked') + LAST_CHUNK, 501, CODING],
  ['identity', post('Transfer-Encoding: identity') + 'abc', 501, CODING],
  ['xchunked', post('Transfer-Encoding: xchunked') + LAST_CHUNK, 501, CODING],
  ['an empty coding', post('Transfer-Encoding:') + LAST_CHUNK, 501, CODING],
  ['a vertical tab before chunked', post('Transfer-Encoding: \x0bchunked') + LAST_CHUNK, 400, MALFORMED],
  ['chunked in HTTP/1.0', head('POST / HTTP/1.0', 'Transfer-Encoding: chunked') + LAST_CHUNK, 400, MALFORMED],
  ['a chunk size that is no number', CHUNKED + 'zz\r\n', 400, MALFORMED],
  ['a chunk size with 0x', CHUNKED + '0x3\r\nabc\r\n0\r\n\r\n', 400, MALFORMED],
  ['a chunk size past 64 bits', CHUNKED + 'fffffffffffffffff\r\n', 400, MALFORMED],
  ['a chunk longer than its size', CHUNKED + '3\r\nabcd\r\n0\r\n\r\n', 400, MALFORMED],
  ['a chunk ended by a line feed', CHUNKED + '3\nabc\n0\n\n', 400, MALFORMED],
  ['endless chunk extensions', CHUNKED + `3;${'a'.repeat(17_000)}\r\nabc\r\n0\r\n\r\n`, 400, MALFORMED],
  ['endless trailers', CHUNKED + `0\r\nX-A: ${'a'.repeat(17_000)}\r\n\r\n`, 431, TOO_LARGE],
  ['an unknown expectation', post('Expect: 200-ok', 'Content-Length: 3'), 417, EXPECTATION],
  ['two expectations', post('Expect: 100-continue', 'Expect: x', 'Content-Length: 3'), 417, EXPECTATION],
  ['an expectation twice', post('Expect: 100-continue, 100-continue', 'Content-Length: 3'), 417, EXPECTATION],
  ['a header of 17 000 bytes', head('GET / HTTP/1.1', `X-A: ${'a'.repeat(17_000)}`), 431, TOO_LARGE],
  ['a target of 17 000 bytes', head(`GET /${'a'.repeat(17_000)} HTTP/1.1`), 431, TOO_LARGE],
];

test('malformed requests: one answer, in our form, and the connection ends', async (t) => {
  const { port, logged } = await startHttp(t);
  for (const [title, bytes, status, error] of ENDS_CONNECTION) {
    await t.test(title, async (u) => {
      const before = logged.length;
      assertRefused(await onlyAnswer(u, port, bytes), status, error);
      assert.equal(logged.length, before + 1, 'one line in the log');
    });
  }
  await assertWell(t, port);
});

/** Well-framed but not acceptable: the connection can be used again. */
const KEEPS_CONNECTION: readonly (readonly [title: string, bytes: string, status: number, error: string])[] = [
  ['a dot segment', head('GET /a/../view HTTP/1.1'), 400, TARGET],
  ['a dot segment at the end', head('GET /view/.. HTTP/1.1'), 400, TARGET],
  ['a single dot', head('GET /./view HTTP/1.1'), 400, TARGET],
  ['an encoded dot segment', head('GET /a/%2e%2E/view HTTP/1.1'), 400, TARGET],
  ['a half encoded dot segment', head('GET /a/.%2e/view HTTP/1.1'), 400, TARGET],
  ['a backslash', head('GET /a\\..\\view HTTP/1.1'), 400, TARGET],
  ['a fragment', head('GET /view#a HTTP/1.1'), 400, TARGET],
  ['an asterisk with GET', head('GET * HTTP/1.1'), 400, TARGET],
  ['an asterisk and more', head('OPTIONS *x HTTP/1.1'), 400, TARGET],
  ['another scheme', head('GET ftp://paste.test/view HTTP/1.1'), 400, TARGET],
  ['credentials in the authority', head('GET http://a@paste.test/view HTTP/1.1'), 400, TARGET],
  ['an empty authority', head('GET http:///view HTTP/1.1'), 400, TARGET],
  ...['a:x', 'a:99999', 'a,b', '[::1', '[zz]', '%zz'].map((authority) => {
    return [`the authority ${authority}`, head(`GET http://${authority}/view HTTP/1.1`), 400, TARGET] as const;
  }),
  ['a header of the list twice', head('GET /single HTTP/1.1', 'X-Expiry: 1', 'X-Expiry: 2'), 400, REPEATED],
  ...['PoW-Token', 'PoW-Solution', 'Expiry', 'Burn-After-Read', 'Paste-Password', 'Remove-Password'].map((name) => {
    const twice = head('GET /view HTTP/1.1', `X-${name}: 1`, `x-${name.toLowerCase()}:`);
    return [`X-${name} twice, where it means nothing`, twice, 400, REPEATED] as const;
  }),
];

test('requests that are well-framed but refused: the connection is used again', async (t) => {
  const { port } = await startHttp(t);
  for (const [title, bytes, status, error] of KEEPS_CONNECTION) {
    await t.test(title, async (u) => {
      const connection = await openRaw(u, port);
      connection.send(bytes);
      assertRefused(await connection.next(), status, error);
      connection.send(head('GET /view HTTP/1.1'));
      assert.equal((await connection.next()).status, 200);
    });
  }
});

test('an absolute-form target: routed by its path, its authority in place of Host', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  const cases = [
    ['GET http://other.test:81/view?a=b HTTP/1.1', 'http://other.test:81'],
    ['GET HTTPS://other.test/view HTTP/1.1', 'http://other.test'],
    ['GET http://[2001:db8::1]:8080/view HTTP/1.1', 'http://[2001:db8::1]:8080'],
  ] as const;
  for (const [line, url] of cases) {
    connection.send(head(line));
    const answer = await connection.next();
    assert.equal(answer.status, 200);
    assert.equal(answer.json()['url'], url);
  }
  connection.send(head('GET http://other.test HTTP/1.1'));
  assert.equal((await connection.next()).body.toString(), 'index\n');
  connection.send(head('GET http://other.test?a HTTP/1.1'));
  assert.equal((await connection.next()).body.toString(), 'index\n');
});

test('header lines: 115 are taken, 116 and more are 431, and what is among the last of them counts for nothing', async (t) => {
  const { port } = await startHttp(t);
  const lines = (count: number): string[] => Array.from({ length: count }, (_, index) => `X-A${index}: 1`);
  const connection = await openRaw(t, port);
  for (const count of [113, 114]) {
    connection.send(head('GET / HTTP/1.1', ...lines(count)));
    assert.equal((await connection.next()).status, 200);
  }
  const body = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n';
  for (const more of [115, 116, 117, 1500]) {
    for (const last of [`Content-Length: ${body.length}`, 'Connection: close', 'Transfer-Encoding: chunked', 'X: 1']) {
      const request = head('POST / HTTP/1.1', ...lines(more - 1), last) + body;
      assertRefused(await onlyAnswer(t, port, request), 431, TOO_LARGE);
    }
  }
});

test('Host: names, addresses and nothing at all are taken', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  for (const host of ['', 'a', 'a.b.', 'a:1', 'a_b:65535', '_gateway', '127.0.0.1:80', '[::1]', '[2001:db8::1]:8080']) {
    connection.send(head('GET /view HTTP/1.1', `Host: ${host}`));
    const answer = await connection.next();
    assert.equal(answer.status, 200, host);
    assert.equal(answer.json()['url'], `http://${host === '' ? `127.0.0.1:${port}` : host}`);
  }
});

test('the words of another protocol in a body, and in a target: HTTP all the same', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  const body = 'POST / RTSP/1.0\r\n\r\n';
  for (let round = 0; round < 2; round += 1) {
    connection.send(head('POST / HTTP/1.1', `Content-Length: ${body.length}`) + body);
    assert.equal((await connection.next()).status, 201);
    connection.send(head('GET /view?RTSP/1.0 HTTP/1.0', 'Connection: keep-alive'));
    assert.equal((await connection.next()).status, 200);
  }
});

test('HTTP/1.0: answered with and without Host, the connection ends', async (t) => {
  const { port } = await startHttp(t);
  for (const bytes of ['GET /view HTTP/1.0\r\n\r\n', 'GET /view HTTP/1.0\r\nHost: paste.test\r\n\r\n']) {
    const answer = await onlyAnswer(t, port, bytes);
    assert.equal(answer.status, 200);
    assertContract(answer);
  }
});

test('HTTP/1.0 with Expect: the expectation is ignored', async (t) => {
  const { port } = await startHttp(t);
  const requestHead = head('POST / HTTP/1.0', 'Expect: 100-continue', 'Content-Length: 3');
  const answer = await onlyAnswer(t, port, `${requestHead}abc`);
  assert.equal(answer.status, 201);
});

test('Transfer-Encoding in capitals: chunked all the same', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  connection.send(`${post('TRANSFER-ENCODING: Chunked')}3\r\nabc\r\n0\r\n\r\n`);
  assert.deepEqual((await connection.next()).json(), { bytes: 3, declared: null });
});

test('CONNECT: 405 with Allow, and nothing is tunnelled', async (t) => {
  const { port } = await startHttp(t);
  const bytes = head('CONNECT paste.test:443 HTTP/1.1', 'X-Request-ID: abc') + head('GET / HTTP/1.1');
  const answer = await onlyAnswer(t, port, bytes);
  assertRefused(answer, 405, 'method not allowed');
  assert.equal(answer.header('allow'), 'GET, HEAD, POST, OPTIONS');
  assert.equal(answer.header('x-request-id'), 'abc');
});

test('CONNECT behind a request whose answer ends the connection: no second answer, and the rest is read', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  const body = 'abc';
  connection.socket.pause();
  connection.send(head('PATCH / HTTP/1.1', `Content-Length: ${body.length}`) + body + head('CONNECT a.test:443 HTTP/1.1'));
  connection.send('x'.repeat(8_000_000));
  await new Promise<void>((resolve) => connection.socket.once('drain', resolve));
  connection.socket.resume();
  assertRefused(await connection.next(), 405, 'method not allowed');
  assert.equal(await connection.rest(), '');
});

test('Upgrade: answered in HTTP/1.1 as if it were not there, and the connection ends', async (t) => {
  const { port } = await startHttp(t);
  for (const protocol of ['websocket', 'h2c']) {
    const request = head('GET /view HTTP/1.1', 'Connection: Upgrade', `Upgrade: ${protocol}`);
    const answer = await onlyAnswer(t, port, request + head('GET / HTTP/1.1'));
    assert.equal(answer.status, 200);
    assertContract(answer);
  }
  const upload = `${post('Connection: Upgrade', 'Upgrade: h2c', 'Content-Length: 3')}abc`;
  const answer = await onlyAnswer(t, port, upload + head('GET / HTTP/1.1'));
  assert.equal(answer.json()['bytes'], 3);
});

test('malformed bytes after a good request: both are answered, in order', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { port } = await startHttp(t, {
    handlers: {
      empty: async () => {
        await gate.promise;
        return { status: 200, headers: {}, body: 'slow' };
      },
    },
  });
  const connection = await openRaw(t, port);
  connection.send(`${head('GET /empty HTTP/1.1')}nonsense\r\n\r\n`);
  connection.send('more nonsense\r\n\r\n');
  gate.resolve();
  assert.equal((await connection.next()).body.toString(), 'slow');
  assertRefused(await connection.next(), 400, MALFORMED);
  assert.equal(await connection.rest(), '');
});

test('a request after one with Connection: close: not processed', async (t) => {
  const { port, logged } = await startHttp(t);
  const answer = await onlyAnswer(t, port, head('GET / HTTP/1.1', 'Connection: close') + head('GET /view HTTP/1.1'));
  assert.equal(answer.body.toString(), 'index\n');
  assert.equal(logged.length, 1);
});

test('a request in a refused one: not processed', async (t) => {
  const { port, logged } = await startHttp(t);
  const smuggled = head('GET /view HTTP/1.1');
  const bytes = `${post('Transfer-Encoding: gzip, chunked')}0\r\n\r\n${smuggled}`;
  assertRefused(await onlyAnswer(t, port, bytes), 501, CODING);
  assert.equal(logged.filter(({ details }) => details?.['route'] === '/view').length, 0);
});

async function assertWell(t: TestContext, port: number): Promise<void> {
  const connection = await openRaw(t, port);
  connection.send(head('GET / HTTP/1.1'));
  const answer = await connection.next();
  assert.equal(answer.status, 200);
  assertContract(answer);
}
