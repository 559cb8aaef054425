// What pastec says of the server's limits: before the work where it can be known, after it where the server decides.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer as createRawServer } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { RUNNING_CLOCK, startApp, type RunningApp } from '../support/app.ts';
import { isInstalled } from '../support/programs.ts';
import { clientOf } from '../support/shells.ts';
import { takingServer } from '../support/taking-server.ts';

const OWNER = '0123456789abcdef0123456789abcdef01234567';

function requests(app: RunningApp, what: RegExp): number {
  return app.logged.filter((entry) => what.test(JSON.stringify(entry))).length;
}

test('pastec put: content that is too large is refused before the work, with both numbers', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 32, maxAnonBytes: 2000, maxAuthBytes: 51_200 });
  const { run, folder } = clientOf(t, app.url);
  writeFileSync(join(folder, 'small'), 'x');
  writeFileSync(join(folder, 'large'), 'x'.repeat(2001));
  const numbers = /^pastec: too large: large has 2 KiB \(2001 bytes\), the server takes at most 2 KiB \(2000 bytes\)\n/;
  const hint = '  with a certificate up to 50 KiB: pastec help register\n';
  const named = await run(['small', 'large']);
  assert.deepEqual([named.code, named.text], [5, '']);
  assert.match(named.stderr, numbers);
  assert.ok(named.stderr.endsWith(hint));
  const piped = await run([], { input: 'x'.repeat(51_201) });
  assert.equal(piped.code, 5);
  assert.equal(piped.stderr,
    'pastec: too large: the content has 50 KiB (51201 bytes), the server takes at most 2 KiB (2000 bytes)\n');
  if (isInstalled(t, 'openssl')) {
    const sealed = await run(['-E'], { input: 'x'.repeat(1990) });
    assert.match(sealed.stderr, /the content has 2 KiB \(2\d\d\d bytes\)/);
  }
  assert.equal(requests(app, /"\/challenge"|"POST"/), 0);
});

test('pastec put: what is too large is refused before its work also after another file was worked for', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 4, maxAnonBytes: 2000 });
  const { run, folder } = clientOf(t, app.url);
  writeFileSync(join(folder, 'small'), 'x');
  const { code, text, stderr } = await run(['small', '-'], { input: 'x'.repeat(2001) });
  assert.match(text, /^http\S+\n$/, 'the first is stored');
  assert.equal(code, 5);
  assert.match(stderr, /^pastec: too large: the content has 2 KiB \(2001 bytes\)/);
  assert.deepEqual([requests(app, /"\/challenge"/), requests(app, /"POST"/)], [1, 1]);
});

test('pastec put: a claimed fingerprint may be a trusted one, whose limit counts then', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 1000, maxAuthBytes: 2000 });
  const { run } = clientOf(t, app.url);
  const refused = await run(['--fingerprint', OWNER], { input: 'x'.repeat(1001) });
  assert.equal(refused.code, 5);
  assert.match(refused.stderr, /^pastec: paste too large: 1001 bytes, at most 1000\n/, 'in the words of the server');
  const larger = await run(['--fingerprint', OWNER], { input: 'x'.repeat(2001) });
  assert.match(larger.stderr, /\(2001 bytes\), the server takes at most 2 KiB \(2000 bytes\)\n$/);
  assert.equal(requests(app, /"POST"/), 1);
});

test('pastec put: a server that does not say who asks is no reason to call content too large', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 1000, maxAuthBytes: 2000 });
  const { run } = clientOf(t, await limitedLists(t, app.url));
  const { code, stderr } = await run([], { input: 'x'.repeat(1001) });
  assert.deepEqual([code, stderr], [6, 'pastec: too many lists (try again in 9 s)\n']);
});

/** A server that passes on the index of that one, and refuses everything else. */
async function limitedLists(t: TestContext, url: string): Promise<string> {
  const server = createServer(async (request, response) => {
    if (request.url === '/') return response.end(await (await fetch(url)).text());
    return response.writeHead(429, { 'Retry-After': '9' }).end('{"error":"too many lists"}\n');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('pastec put: what is too small is refused with both numbers', async (t) => {
  const body = '{"error":"paste smaller than minimum size","size":3,"min_size":10}\n';
  const server = createServer(({ method }, response) => {
    response.writeHead(method === 'POST' ? 400 : 404).end(method === 'POST' ? body : '{"error":"not found"}\n');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { run } = clientOf(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const { code, stderr } = await run([], { input: 'abc' });
  assert.deepEqual([code, stderr], [1, 'pastec: paste smaller than minimum size: 3 bytes, at least 10\n']);
});

test('pastec put -b and --password-file: says when the server does not confirm them, and which', async (t) => {
  const app = await startApp(t);
  const unaware = await takingServer(t);
  for (const [url, expected] of [[app.url, []], [unaware.url, ['that this burns', 'of no password']]] as const) {
    const { run, folder } = clientOf(t, url);
    writeFileSync(join(folder, 'password'), 'secret');
    const { code, text, stderr } = await run(['-b', '--password-file', 'password', '-'], { input: 'x' });
    assert.deepEqual([code, text.startsWith(url)], [0, true]);
    assert.deepEqual(stderr.match(/(that this burns|of no password)$/gm) ?? [], expected, stderr);
    assert.equal((await run([], { input: 'y' })).stderr, '');
  }
});

test('pastec put, update: say when what they sent may be stored although the answer was lost', async (t) => {
  let isSilent = false;
  const server = createServer((request, response) => {
    const found = { 'X-Request-ID': 'one', 'Content-Type': 'text/plain', 'Content-Length': '1' };
    if (request.method === 'HEAD') return response.writeHead(200, found).end();
    if (request.method === 'GET') return response.writeHead(404).end('{"error":"not found"}\n');
    return request.resume().on('end', () => void (isSilent || request.socket.destroy()));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { run } = clientOf(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  for (const args of [[], ['update', 'abcdef', '-'], ['--timeout', '1'], ['update', '--timeout', '1', 'abcdef', '-']]) {
    isSilent = args.includes('--timeout');
    const { code, text, stderr } = await run(args, { input: 'abc' });
    assert.deepEqual([code, text], [8, '']);
    assert.match(stderr, isSilent ? /^pastec: curl: \(28\) / : /^pastec: curl: \(5[26]\) /);
    assert.match(stderr, /^[^\n]+\n {2}no answer came: the server may have stored it all the same\n$/);
  }
});

test('pastec put, update: an answer without a length that broke off gives no link, and is told', async (t) => {
  const whole = '{"id":"abcdefgh","created_at":1,"expires_at":2,"mime_type":"text/plain","delete_token":"secret"}';
  let sent = '';
  const server = createRawServer((socket) => {
    socket.on('error', () => {}).on('data', (bytes) => {
      const [method = '', path] = bytes.toString('latin1').split(' ');
      const challenge = [404, '{"error":"not found"}'];
      const found = path === '/challenge' ? challenge : [200, sent];
      const answers = { HEAD: [200, ''], GET: found, PUT: [200, sent], POST: [201, sent] };
      const [status, body] = answers[method as keyof typeof answers] ?? [];
      const identity = 'X-Request-ID: one\r\nContent-Type: application/json';
      if (status !== undefined) socket.end(`HTTP/1.0 ${status} OK\r\n${identity}\r\n\r\n${body}`);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { run } = clientOf(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const cut = ['{', '{"id":"abc', '"expires_at":2', '"secret"'].map((end) => whole.slice(0, whole.indexOf(end) + end.length));
  for (const body of [...cut, ...['', '\n', '\r\n', ' '].map((end) => whole + end)]) {
    const isWhole = !cut.includes(body);
    sent = body;
    for (const args of [['--json'], ['update', 'abcdefgh', '-']]) {
      const { code, text, stderr } = await run(args, { input: 'abc' });
      assert.deepEqual([code, text !== ''], isWhole ? [0, true] : [8, false], `${args} ${sent} ${stderr}`);
      const told = 'pastec: the answer broke off\n  what was asked for may be done all the same\n';
      if (!isWhole) assert.equal(stderr, told);
    }
  }
  sent = cut[1]!;
  const { code, stderr } = await run(['info', 'abcdefgh']);
  assert.deepEqual([code, stderr], [8, 'pastec: the answer broke off\n']);
  sent = '{\n  "id": "abcdefgh"\n}\n';
  const other = await run([], { input: 'abc' });
  assert.deepEqual([other.code, other.text], [9, '']);
  assert.match(other.stderr, /^pastec: the answer \(201\) is not one of a paste service\n/);
});

test('pastec put -e: says both times when the server keeps it for less', async (t) => {
  const app = await startApp(t, { maxExpirySeconds: 7200 });
  const { run } = clientOf(t, app.url);
  for (const args of [['-e', '9999d'], ['-e', '9999d', '--json']]) {
    const { code, stderr } = await run(args, { input: 'x' });
    assert.equal(code, 0);
    assert.equal(stderr, 'pastec: the server keeps this for 2 hours (7200 s), not for 9999 days (863913600 s)\n');
  }
  assert.equal((await run(['-e', '2h'], { input: 'x' })).stderr, '');
});

test('pastec update -e: says both times when the server keeps it for less, whatever the age of the paste', async (t) => {
  const app = await startApp(t, { maxExpirySeconds: 86_400 }, RUNNING_CLOCK);
  const { run } = clientOf(t, app.url);
  const id = await app.store('x', { 'X-SSL-Client-SHA1': OWNER });
  const update = (expire: string) => run(['update', '-e', expire, '--fingerprint', OWNER, id]);
  const { code, text, stderr } = await update('400d');
  assert.deepEqual([code, text], [0, `${app.url}/${id}\n`]);
  assert.match(stderr,
    /^pastec: the server keeps this for (1 day|24 hours) \(86(400|39\d) s\), not for 400 days \(34560000 s\)\n$/);
  for (const expire of ['1d', '1h', '1']) assert.equal((await update(expire)).stderr, '');
});

test('pastec --wait: waits as long as the server says and tries again', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 4, rateMax: 1, rateWindowSeconds: 3 });
  const { run, start } = clientOf(t, app.url);
  const environment = { PASTEC_SOLVER: 'node' };
  assert.equal((await run([], { input: 'first', environment })).code, 0);
  const { ended, says } = start(['--wait'], { input: 'second', environment });
  await says(/waiting for \d+ s\n/);
  app.clock.advance(3000);
  const waiting = await ended;
  assert.equal(waiting.code, 0, waiting.stderr);
  assert.match(waiting.stderr, /^(pastec: the server limits the rate: waiting for [1-3] s\n)+$/);
  assert.equal(await (await fetch(`${waiting.text.trim()}/raw`)).text(), 'second');
  assert.equal((await run([], { input: 'third', environment })).code, 6);
});

test('pastec --wait: waits ten minutes at most, and not at all when the server does not say how long', async (t) => {
  let [asked, headers] = [0, {} as Record<string, string>];
  const server = createServer((_, response) => {
    asked += 1;
    response.writeHead(429, headers).end('{"error":"rate limit exceeded"}\n');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { run } = clientOf(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  for (const given of [{ 'Retry-After': '601' }, {}, { 'Retry-After': 'Fri, 31 Dec 1999 23:59:59 GMT' }]) {
    [asked, headers] = [0, given as Record<string, string>];
    const { code, stderr } = await run(['info', 'abcdef', '--wait']);
    assert.equal(code, 6);
    assert.match(stderr, /^pastec: rate limit exceeded/);
    assert.equal(asked, 1);
  }
});
