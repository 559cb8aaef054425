// POST / over real sockets: what is stored, what is refused, and what the answers say.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { assemble } from '../../src/assembly.ts';
import { newUuid, randomBytes } from '../../src/crypto/digest.ts';
import { publicPlace } from '../../src/http/engine/listening.ts';
import type { ContentStore } from '../../src/store/content.ts';
import { binaryContent, type RunningApp, startApp } from '../support/app.ts';
import { movableClock } from '../support/clock.ts';
import { head, openRaw } from '../support/raw-http.ts';
import { openTestStore, strayChunks } from '../support/store.ts';
import { testConfig } from '../support/test-config.ts';

const FINGERPRINT = '0123456789abcdef0123456789abcdef01234567';

async function create(app: RunningApp, body: string | Uint8Array, headers: Record<string, string> = {}) {
  const response = await app.request('/', { method: 'POST', body: body as string, headers });
  return { response, answer: await response.json() as Record<string, unknown> };
}

async function rawBytes(app: RunningApp, id: string, headers: Record<string, string> = {}): Promise<Uint8Array> {
  const response = await app.request(`/${id}/raw`, { headers });
  assert.equal(response.status, 200);
  return new Uint8Array(await response.arrayBuffer());
}

test('POST /: an anonymous text paste has exactly the members that apply', async (t) => {
  const app = await startApp(t);
  const { response, answer } = await create(app, 'hello\n');
  assert.equal(response.status, 201);
  assert.equal(response.headers.get('content-type'), 'application/json');
  assert.deepEqual(Object.keys(answer).sort(), ['created_at', 'id', 'mime_type', 'raw', 'url']);
  assert.match(String(answer['id']), /^[a-z2-7]{26}$/);
  assert.equal(answer['url'], `/${answer['id']}`);
  assert.equal(answer['raw'], `/${answer['id']}/raw`);
  assert.equal(response.headers.get('location'), `/${answer['id']}`);
  assert.equal(response.headers.get('vary'), 'Accept');
  assert.equal(answer['mime_type'], 'text/plain');
  assert.equal(answer['created_at'], Math.floor(app.clock.unixMs() / 1000));
});

test('POST /: Location is where a proxy publishes the paste, and the members of the answer are as without it', async (t) => {
  const app = await startApp(t, { urlPrefix: '/under/this' });
  const { response, answer } = await create(app, 'hello');
  assert.deepEqual([response.headers.get('location'), answer['url']], [`/under/this/${answer['id']}`, `/${answer['id']}`]);
});

test('POST /: every optional member appears when it says something, the owner shortened', async (t) => {
  const app = await startApp(t);
  const { answer } = await create(app, 'hello', {
    'X-SSL-Client-SHA1': FINGERPRINT,
    'X-Burn-After-Read': 'YES',
    'X-Expiry': '60',
    'X-Paste-Password': 'secret',
  });
  assert.equal(answer['owner'], FINGERPRINT.slice(0, 12));
  assert.equal(answer['burn_after_read'], true);
  assert.equal(answer['password_protected'], true);
  assert.equal(answer['expires_at'], Number(answer['created_at']) + 60);
});

test('POST /: content of every size class comes back byte for byte', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 2 ** 21 });
  const chunk = 256 * 1024;
  for (const size of [1, 65_535, 65_536, 65_537, chunk - 1, chunk, chunk + 1, 3 * chunk, 2 ** 21]) {
    const content = binaryContent(size, size);
    const id = await app.store(content);
    assert.deepEqual(await rawBytes(app, id), content, `${size} bytes`);
  }
});

test('POST /: a chunked body is stored like one with a length', async (t) => {
  const app = await startApp(t);
  const content = binaryContent(700_001);
  const body = new ReadableStream({
    start(controller) {
      for (let start = 0; start < content.length; start += 10_007) controller.enqueue(content.slice(start, start + 10_007));
      controller.close();
    },
  });
  const response = await app.request('/', { method: 'POST', body, duplex: 'half' } as RequestInit);
  assert.equal(response.status, 201);
  const { id } = await response.json() as { id: string };
  assert.deepEqual(await rawBytes(app, id), content);
});

test('POST /: the size limit refuses one byte more, by declared length and by what arrives', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 100_000 });
  await app.store('x'.repeat(99_999));
  await app.store('x'.repeat(100_000));
  const declared = await create(app, 'x'.repeat(100_001));
  assert.equal(declared.response.status, 413);
  assert.deepEqual(declared.answer, { error: 'paste too large', size: 100_001, max_size: 100_000, authenticated: false });

  const stream = new ReadableStream({
    pull: (controller) => controller.enqueue(new Uint8Array(1000)),
  });
  const chunked = await app.request('/', {
    method: 'POST', body: stream, duplex: 'half', headers: { 'X-SSL-Client-SHA1': FINGERPRINT },
  } as RequestInit);
  assert.equal(chunked.status, 413);
  const answer = await chunked.json() as Record<string, unknown>;
  assert.equal(answer['authenticated'], true);
  assert.ok(Number(answer['size']) > 100_000);
});

test('POST /: the minimum size is a boundary', async (t) => {
  const app = await startApp(t, { minBytes: 10 });
  const small = await create(app, 'x'.repeat(9));
  assert.equal(small.response.status, 400);
  assert.equal(small.answer['error'], 'paste smaller than minimum size');
  await app.store('x'.repeat(10));
  await app.store('x'.repeat(11));
});

test('POST /: an empty body is refused, raw and JSON', async (t) => {
  const app = await startApp(t);
  const raw = await create(app, '');
  assert.equal(raw.response.status, 400);
  assert.equal(raw.answer['error'], 'no content provided');
  const none = await app.request('/', { method: 'POST' });
  assert.equal(none.status, 400);
});

test('POST / and PUT /: multipart/form-data is stored as it is, with a hint how to send the file alone', async (t) => {
  const app = await startApp(t);
  const body = '--x\r\nContent-Disposition: form-data; name="file"\r\n\r\ncontent\r\n--x--\r\n';
  const hint = 'this is multipart/form-data: use --data-binary @FILE or -T FILE';
  for (const method of ['POST', 'PUT']) {
    for (const [type, accept, shown] of [
      ['multipart/form-data; boundary=x', '*/*', hint],
      ['Multipart/Form-Data', 'text/plain', hint],
      ['multipart/mixed; boundary=x', '*/*', null],
      ['text/plain', '*/*', null],
    ] as const) {
      const headers = { 'Content-Type': type, Accept: accept };
      const response = await app.request('/', { method, body, headers });
      assert.equal(response.status, 201);
      assert.equal(response.headers.get('x-hint'), shown, type);
      assert.equal(Buffer.from(await rawBytes(app, /[a-z2-7]{26}/.exec(await response.text())![0])).toString(), body);
    }
  }
});

test('POST /: JSON bodies hold the content as a string, other types are stored as they are', async (t) => {
  const app = await startApp(t);
  const { response, answer } = await create(app, JSON.stringify({ other: [1, { content: 2 }], content: 'h\u00e9llo \ud83d\ude00\n' }),
    { 'Content-Type': 'application/json; charset=utf-8' });
  assert.equal(response.status, 201);
  assert.equal(Buffer.from(await rawBytes(app, String(answer['id']))).toString(), 'h\u00e9llo \ud83d\ude00\n');

  const document = '{"not": "content"}';
  const id = await app.store(document, { 'Content-Type': 'application/ld+json' });
  assert.equal(Buffer.from(await rawBytes(app, id)).toString(), document);

  for (const body of ['', '{', '[]', '"x"', 'null', '{"content": 1}', '{"content": ""}', '{}', '{"content": "x"} x', '\ufeff{"content":"x"}']) {
    const bad = await create(app, body, { 'Content-Type': 'application/json' });
    assert.equal(bad.response.status, 400, body);
    assert.equal(typeof bad.answer['error'], 'string');
  }
});

test('POST /: a JSON body of more than a chunk streams, and the limit is on the content in it', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 600_000 });
  const content = '\u0000\u00e9"\\'.repeat(120_000);
  const { response, answer } = await create(app, JSON.stringify({ content }), { 'Content-Type': 'application/json' });
  assert.equal(response.status, 201);
  assert.equal(Buffer.from(await rawBytes(app, String(answer['id']))).toString(), content);
  const over = await create(app, JSON.stringify({ content: `${content}x` }), { 'Content-Type': 'application/json' });
  assert.equal(over.response.status, 413);
  assert.equal(over.answer['size'], 600_001);
});

test('POST /: an endless JSON document without content is cut off', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 1000 });
  const spaces = new TextEncoder().encode(' '.repeat(10_000));
  const body = new ReadableStream({ pull: (controller) => controller.enqueue(spaces) });
  const response = await app.request('/', {
    method: 'POST', body, duplex: 'half', headers: { 'Content-Type': 'application/json' },
  } as RequestInit);
  assert.equal(response.status, 400);
});

test('POST /: the media type follows the bytes, then an inert type that the caller names', async (t) => {
  const app = await startApp(t);
  const typed = async (content: string | Uint8Array, type: string): Promise<unknown> =>
    (await create(app, content, { 'Content-Type': type })).answer['mime_type'];
  assert.equal(await typed('<html>', 'text/html'), 'text/plain');
  assert.equal(await typed('<svg/>', 'image/svg+xml'), 'text/plain');
  assert.equal(await typed(binaryContent(9), 'image/PNG; x=y'), 'image/png');
  assert.equal(await typed(binaryContent(9), 'image/svg+xml'), 'application/octet-stream');
  assert.equal(await typed(binaryContent(9), 'text/html'), 'application/octet-stream');
  assert.equal(await typed(binaryContent(9), 'application/zip'), 'application/zip');
});

test('POST /: X-Expiry is a positive integer up to the cap, anything else the default of the tier', async (t) => {
  const app = await startApp(t, { expiryAnonSeconds: 100, expiryUntrustedSeconds: 200, maxExpirySeconds: 1000 });
  const ttl = async (headers: Record<string, string>): Promise<number> => {
    const id = await app.store('x', headers);
    const metadata = await (await app.request(`/${id}`)).json() as { created_at: number; expires_at: number };
    return metadata.expires_at - metadata.created_at;
  };
  assert.equal(await ttl({}), 100);
  assert.equal(await ttl({ 'X-SSL-Client-SHA1': FINGERPRINT }), 200);
  for (const [value, expected] of [['1', 1], ['999', 999], ['1000', 1000], ['1001', 1000], ['9'.repeat(400), 1000], ['0', 100],
    ['-5', 100], ['1.5', 100], ['1e3', 100], ['soon', 100], ['0x10', 100]] as const) {
    assert.equal(await ttl({ 'X-Expiry': value }), expected, value.slice(0, 10));
  }
});

test('POST /: the password limit counts code points', async (t) => {
  const app = await startApp(t);
  const header = (text: string): Record<string, string> => ({ 'X-Paste-Password': Buffer.from(text).toString('latin1') });
  assert.equal((await create(app, 'x', header('\u{1f600}'.repeat(1024)))).response.status, 201);
  const over = await create(app, 'x', header('\u{1f600}'.repeat(1025)));
  assert.equal(over.response.status, 400);
  assert.equal(over.answer['error'], 'password longer than 1024 characters');
  assert.equal((await create(app, 'x', { 'X-Paste-Password': '\xff\xfe' })).response.status, 400);
});

test('POST /: Content-Encoding is refused', async (t) => {
  const app = await startApp(t);
  assert.equal((await create(app, 'x', { 'Content-Encoding': 'gzip' })).response.status, 415);
  for (const none of ['identity', ' Identity ', '']) {
    assert.equal((await create(app, `x${none}`, { 'Content-Encoding': none })).response.status, 201);
  }
});

test('POST /: answers the URL alone to who prefers text', async (t) => {
  const app = await startApp(t);
  const response = await app.request('/', { method: 'POST', body: 'hello', headers: { Accept: 'text/plain' } });
  assert.equal(response.status, 201);
  const line = await response.text();
  assert.match(line, new RegExp(`^${app.url}/[a-z2-7]{26}\n$`));
  assert.equal(await (await fetch(`${line.trim()}/raw`)).text(), 'hello');
});

test('PUT /: stores like POST /', async (t) => {
  const app = await startApp(t);
  const response = await app.request('/', { method: 'PUT', body: 'by PUT' });
  assert.equal(response.status, 201);
});

test('POST /: an upload that breaks off at any stage leaves nothing behind', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 2 ** 22 });
  const { connect } = await import('node:net');
  for (const sentBytes of [0, 1, 65_536, 65_537, 262_144, 262_145, 1_000_000, 2_000_000 - 1]) {
    const socket = connect(app.port, '127.0.0.1');
    socket.on('error', () => undefined);
    const finished = app.logged.length;
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n`);
    await new Promise((resolve) => socket.write(new Uint8Array(sentBytes), resolve));
    socket.destroy();
    while (app.logged.slice(finished).every((entry) => entry.event !== 'request')) await new Promise((resolve) => setImmediate(resolve));
  }
  await app.app.close();
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(app.config.databasePath, { readOnly: true, timeout: 5000 });
  for (const table of ['pastes', 'chunks', 'orphans']) {
    assert.equal(database.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.['rows'], 0, table);
  }
  database.close();
});

test('POST /: uploads that break off at any moment while the disk is slow give every buffer back', async (t) => {
  const { store, folder } = await openTestStore(t);
  const { contents } = store;
  const held: (() => void)[] = [];
  let isSlow = true;
  const slow: ContentStore = {
    ...contents,
    upload(contentId) {
      const upload = contents.upload(contentId);
      const write = async (chunk: Uint8Array): Promise<void> => {
        if (isSlow) await new Promise<void>((resolve) => held.push(resolve));
        return upload.write(chunk);
      };
      return { ...upload, write };
    },
  };
  const limits = { powDifficultyBits: 0, rateMax: 0, maxAnonBytes: 2 ** 24 };
  const config = testConfig({ databasePath: join(folder, 'pasted.db'), ...limits });
  const parts = { clock: movableClock(), random: randomBytes, newUuid, log: () => {}, cores: 2, passwordCheckMs: 20 };
  const app = await assemble(config, parts, { store: { ...store, contents: slow }, tls: undefined });
  t.after(() => app.close());
  const { port } = await app.listen(publicPlace(config, 0));
  const sentBytes = Array.from({ length: 30 }, (_, index) => 70_000 + index * 65_003);
  const connections = await Promise.all(sentBytes.map(async (bytes) => {
    const connection = await openRaw(t, port);
    connection.send(head('POST / HTTP/1.1', 'Content-Length: 8000000'));
    connection.send(new Uint8Array(bytes));
    return connection;
  }));
  const until = async (isSo: () => boolean, what: string): Promise<void> => {
    for (let tries = 0; !isSo(); tries += 1) {
      assert.ok(tries < 1000, what);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  await until(() => contents.chunks.taken >= connections.length && held.length >= 16, 'every upload has begun');
  for (const { socket } of connections) socket.destroy();
  // Time for the server to notice, while every write still waits.
  await new Promise((resolve) => setTimeout(resolve, 200));
  isSlow = false;
  for (const goOn of held) goOn();
  await until(() => contents.chunks.taken === 0, `buffers of uploads that are over: ${contents.chunks.taken}`);
  await until(() => strayChunks(config.databasePath) === 0, 'chunks of uploads that are over');
});

test('GET /{id}/raw: the digest and entity tag are those of the content', async (t) => {
  const app = await startApp(t);
  const content = binaryContent(1000);
  const id = await app.store(content);
  const response = await app.request(`/${id}/raw`);
  const sha256 = createHash('sha256').update(content).digest();
  assert.equal(response.headers.get('etag'), `"sha256-${sha256.toString('hex')}"`);
  assert.equal(response.headers.get('repr-digest'), `sha256=:${sha256.toString('base64')}:`.replace('sha256', 'sha-256'));
});
