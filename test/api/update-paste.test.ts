// PUT /{id} over real sockets: what can be changed and how, what is refused without any effect, and what readers see
// meanwhile. Who may is identity-matrix.test.ts.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, test, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { MIB } from '../../src/core/time.ts';
import { UPLOAD_HINT } from '../../src/http/routes.ts';
import { assertRefused } from '../support/answer-contract.ts';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { insertCertificate, newFingerprint, presenting } from '../support/certificates.ts';
import { insertPastes } from '../support/paste-rows.ts';
import { assertError, from, post, rateOf, statusCounts, type Answer } from '../support/posting.ts';
import { head, onlyAnswer } from '../support/raw-http.ts';
import { selectValue, strayChunks } from '../support/store.ts';

const OWNER = newFingerprint();
const AS_OWNER = presenting(OWNER);
const JSON_TYPE = { 'Content-Type': 'application/json' };
const INLINE_BYTES = 65_536;
/** `curl -T name host/` sends PUT /name. */
const UPLOAD = { hint: UPLOAD_HINT };

/** The app of the tests that need no settings of their own. */
const shared = await startApp({ after } as unknown as TestContext);

async function put(
  app: RunningApp,
  id: string,
  body: string | Uint8Array | ReadableStream | null,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const options = { method: 'PUT', body, duplex: 'half', headers: { ...AS_OWNER, ...headers } } as RequestInit;
  const response = await app.request(`/${id}`, options);
  return { status: response.status, headers: response.headers, json: await response.json() as Record<string, unknown> };
}

function assertUpdated({ status, json }: Answer): void {
  assert.deepEqual([status, json['message']], [200, 'paste updated'], JSON.stringify(json));
}

/** A chunked body with nothing in it, which fetch would not send. */
async function putEmptyChunked(t: TestContext, app: RunningApp, id: string): Promise<void> {
  const lines = [`X-SSL-Client-SHA1: ${OWNER}`, 'Transfer-Encoding: chunked', 'Connection: close'];
  assertRefused(await onlyAnswer(t, app.port, `${head(`PUT /${id} HTTP/1.1`, ...lines)}0\r\n\r\n`), 400, 'no content provided');
}

/** A body without a declared length. */
function chunked(content: Uint8Array): ReadableStream {
  return new ReadableStream({
    start(controller) {
      for (let start = 0; start < content.length; start += 50_000) controller.enqueue(content.slice(start, start + 50_000));
      controller.close();
    },
  });
}

async function rawOf(app: RunningApp, id: string, headers: Record<string, string> = {}): Promise<Buffer> {
  const response = await app.request(`/${id}/raw`, { headers });
  assert.equal(response.status, 200);
  return Buffer.from(await response.arrayBuffer());
}

async function metadataOf(app: RunningApp, id: string, headers: Record<string, string> = {}): Promise<Record<string, unknown>> {
  const response = await app.request(`/${id}`, { headers });
  assert.equal(response.status, 200);
  return await response.json() as Record<string, unknown>;
}

function nowSeconds(app: RunningApp): number {
  return app.clock.unixMs() / 1000;
}

/** The whole row, to be compared before and after. */
function rowOf(app: RunningApp, id: string): unknown {
  const columns = "owner, mime_type, size, hex(sha256), created_at, expires_at, password_hash, content_id, hex(content)";
  return selectValue(app.config.databasePath, `SELECT json_array(${columns}) FROM pastes WHERE id = '${id}'`);
}

test('PUT /{id}: new content with its type, nothing else changed; the answer is the metadata and a message', async () => {
  const app = shared;
  const id = await app.store('old', { ...AS_OWNER, 'X-Expiry': '1000' });
  const created = nowSeconds(app);
  app.clock.advance(10_000);
  const image = binaryContent(300);
  const answer = await put(app, id, image, { 'Content-Type': 'image/png' });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('content-type'), 'application/json');
  const metadata = { id, mime_type: 'image/png', size: 300, created_at: created, raw: `/${id}/raw`, expires_at: created + 1000 };
  assert.deepEqual(answer.json, { message: 'paste updated', ...metadata });
  assert.deepEqual(await metadataOf(app, id), metadata);
  assert.deepEqual(await rawOf(app, id), Buffer.from(image));
  const etag = (await app.request(`/${id}/raw`, { method: 'HEAD' })).headers.get('etag');
  assert.equal(etag, `"sha256-${createHash('sha256').update(image).digest('hex')}"`);
});

test('PUT /{id}: raw, JSON and chunked bodies, and the same content again', async () => {
  const app = shared;
  const id = await app.store('old', AS_OWNER);
  const large = Buffer.from(binaryContent(700_001));
  const bodies = [
    ['text', {}, Buffer.from('text'), 'text/plain'],
    ['text', { 'Content-Type': 'image/png' }, Buffer.from('text'), 'text/plain'],
    ['{"content": "h\\u00e9"}', JSON_TYPE, Buffer.from('h\u00e9'), 'text/plain'],
    ['{"content": "kept as it is"}', {}, Buffer.from('{"content": "kept as it is"}'), 'text/plain'],
    [large, { 'Content-Type': 'application/zip' }, large, 'application/zip'],
    [chunked(large), {}, large, 'application/octet-stream'],
    [chunked(Buffer.from('small')), {}, Buffer.from('small'), 'text/plain'],
    [JSON.stringify({ content: '\u0001'.repeat(100_000) }), JSON_TYPE, Buffer.alloc(100_000, 1), 'text/plain'],
  ] as const;
  for (const [body, headers, expected, type] of bodies) {
    const answer = await put(app, id, body, headers);
    assertUpdated(answer);
    assert.deepEqual([answer.json['size'], answer.json['mime_type']], [expected.length, type]);
    assert.deepEqual(await rawOf(app, id), expected);
  }
});

test('PUT /{id}: X-Expiry alone sets the time to live from now, up to the cap, and leaves all else', async (t) => {
  const app = await startApp(t, { maxExpirySeconds: 5000 });
  const id = await app.store('content', { ...AS_OWNER, 'X-Expiry': '1000' });
  app.clock.advance(100_000);
  const asked = ['2000', '4999', '5000', '5001', '9'.repeat(400), '10'];
  for (const [turn, ttl] of [2000, 4999, 5000, 5000, 5000, 10].entries()) {
    const answer = await put(app, id, null, { 'X-Expiry': asked[turn]! });
    assertUpdated(answer);
    assert.equal(answer.json['expires_at'], nowSeconds(app) + ttl);
    assert.equal(answer.json['created_at'], nowSeconds(app) - 100);
  }
  assert.equal((await rawOf(app, id)).toString(), 'content');
  app.clock.advance(9999);
  assert.equal((await app.request(`/${id}`)).status, 200);
  app.clock.advance(1);
  assert.equal((await app.request(`/${id}`)).status, 404);
  assertError(await put(app, id, 'too late', { 'X-Expiry': '1000' }), 404, 'paste not found', UPLOAD);
});

test('PUT /{id}: passwords are set, replaced, kept and removed, by the owner who need not know them', async () => {
  const app = shared;
  const id = await app.store('content', AS_OWNER);
  const first = { 'X-Paste-Password': Buffer.from('p\u00e4ss \u{1f511}').toString('latin1') };
  const second = { 'X-Paste-Password': 'second' };
  const statusWith = async (headers: Record<string, string>): Promise<number> =>
    (await app.request(`/${id}/raw`, { headers })).status;

  const set = await put(app, id, null, first);
  assertUpdated(set);
  assert.equal(set.json['password_protected'], true);
  assert.deepEqual([await statusWith({}), await statusWith(first)], [401, 200]);

  assertUpdated(await put(app, id, 'new content', { 'X-Expiry': '60' }));
  assert.deepEqual([await statusWith({}), (await rawOf(app, id, first)).toString()], [401, 'new content']);

  assertUpdated(await put(app, id, null, { ...second, 'X-Remove-Password': 'false' }));
  assert.deepEqual([await statusWith(first), await statusWith(second)], [403, 200]);

  const removed = await put(app, id, null, { 'X-Remove-Password': 'YES' });
  assertUpdated(removed);
  assert.equal('password_protected' in removed.json, false);
  assert.equal(await statusWith({}), 200);
  for (const value of ['true', '1']) assertUpdated(await put(app, id, null, { 'X-Remove-Password': value }));
});

test('PUT /{id}: content, password and expiry together are one change', async () => {
  const app = shared;
  const id = await app.store('old', AS_OWNER);
  const password = { 'X-Paste-Password': 'p' };
  app.clock.advance(5000);
  const answer = await put(app, id, '{"content": "new"}', { ...JSON_TYPE, ...password, 'X-Expiry': '77' });
  assertUpdated(answer);
  const { expires_at: expiresAt, password_protected: isProtected, size } = answer.json;
  assert.deepEqual([expiresAt, isProtected, size], [nowSeconds(app) + 77, true, 3]);
  assert.equal((await rawOf(app, id, password)).toString(), 'new');
});

test('PUT /{id}: nothing to change, and headers that make no sense, are 400 without any effect', async () => {
  const app = shared;
  const id = await app.store('old', AS_OWNER);
  const before = rowOf(app, id);
  const nothing = [{}, { 'X-Paste-Password': '' }, { 'X-Remove-Password': 'no' }, JSON_TYPE];
  for (const headers of nothing) {
    const answer = await put(app, id, null, headers as Record<string, string>);
    assertError(answer, 400, 'nothing to update', { hint: answer.json['hint'] });
  }
  for (const value of ['', '0', '-5', '1.5', '1e3', 'soon', '0x10', '5 5']) {
    for (const body of [null, 'new']) {
      const answer = await put(app, id, body, { 'X-Expiry': value, 'X-Remove-Password': '1' });
      assertError(answer, 400, 'X-Expiry must be a positive integer');
    }
  }
  assert.equal((await put(app, id, 'new', { 'X-Paste-Password': 'p', 'X-Remove-Password': 'true' })).status, 400);
  assert.equal((await put(app, id, 'new', { 'X-Paste-Password': '\xff\xfe' })).status, 400);
  assertError(await put(app, id, null, { 'X-Paste-Password': 'x'.repeat(1025) }), 400, 'password longer than 1024 characters');
  assert.equal(rowOf(app, id), before);
});

test('PUT /{id}: content that is to burn is refused, not stored to be read again and again', async () => {
  const id = await shared.store('old', AS_OWNER);
  const hint = { hint: 'only a new paste can burn: POST / makes one' };
  assertError(await put(shared, id, 'once', { 'X-Burn-After-Read': 'Yes' }), 400, 'malformed request', hint);
  for (const more of [{ 'X-Expiry': '60' }, { 'X-Paste-Password': 'p' }]) {
    assertError(await put(shared, id, '', { 'X-Burn-After-Read': '1', ...more }), 400, 'malformed request', hint);
  }
  assert.equal((await rawOf(shared, id)).toString(), 'old');
  assert.equal((await put(shared, id, 'new', { 'X-Burn-After-Read': 'no' })).status, 200);
});

test('PUT /{id}: content is checked as by POST /, but asks for no work; what is refused has no effect', async (t) => {
  const app = await startApp(t, {
    powDifficultyBits: 20, minBytes: 10, maxAnonBytes: 100_000, minEntropyBits: 2, minEntropyBytes: 256, requireBinary: true,
  });
  insertPastes(app.config.databasePath, { count: 1, owner: OWNER });
  const target = String(selectValue(app.config.databasePath, 'SELECT id FROM pastes'));
  const before = rowOf(app, target);

  await putEmptyChunked(t, app, target);
  assertError(await put(app, target, binaryContent(9)), 400, 'paste smaller than minimum size', { size: 9, min_size: 10 });
  const tooLarge = { size: 100_001, max_size: 100_000, authenticated: true };
  assertError(await put(app, target, binaryContent(100_001)), 413, 'paste too large', tooLarge);
  assert.equal((await put(app, target, chunked(binaryContent(150_000)))).status, 413);
  assert.equal((await put(app, target, 'x'.repeat(300))).json['detected'], 'text/plain');
  assert.equal((await put(app, target, new Uint8Array(300).fill(0xff))).json['error'], 'entropy below minimum');
  assert.equal((await put(app, target, '{"content": 1}', JSON_TYPE)).status, 400);
  assert.equal((await put(app, target, binaryContent(300), { 'Content-Encoding': 'gzip' })).status, 415);
  const longPassword = { 'X-Paste-Password': 'x'.repeat(1025) };
  assertError(await put(app, target, binaryContent(300), longPassword), 400, 'password longer than 1024 characters');
  assert.equal(rowOf(app, target), before);
  for (const bytes of [10, 100_000]) assertUpdated(await put(app, target, binaryContent(bytes)));
  await app.app.close();
  assert.equal(strayChunks(app.config.databasePath), 0);
});

test('PUT /{id}: the size limit is the tier\'s', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 1000, maxAuthBytes: 2000 });
  const { fingerprint } = insertCertificate(app.config.databasePath);
  const id = await app.store('x', presenting(fingerprint));
  assertUpdated(await put(app, id, binaryContent(2000), presenting(fingerprint)));
  assert.equal((await put(app, id, binaryContent(2001), presenting(fingerprint))).status, 413);
});

test('PUT /{id}: a burn-after-read paste is not changed in any way', async () => {
  const app = shared;
  const id = await app.store('once', { ...AS_OWNER, 'X-Burn-After-Read': '1' });
  for (const [body, headers] of [['new', {}], [null, { 'X-Expiry': '60' }], [null, { 'X-Remove-Password': '1' }]] as const) {
    assertError(await put(app, id, body, headers), 400, 'burn-after-read pastes cannot be updated');
  }
  assert.equal((await rawOf(app, id)).toString(), 'once');
  assertError(await put(app, id, 'new'), 404, 'paste not found', UPLOAD);
});

test('PUT /{id}: what a burn-after-read paste is not given counts as no creation', async (t) => {
  const app = await startApp(t, { rateMax: 2 });
  const id = await app.store('once', { ...AS_OWNER, 'X-Burn-After-Read': '1' });
  for (const headers of [{}, { 'X-Paste-Password': 'secret' }]) {
    assertError(await put(app, id, 'new', headers), 400, 'burn-after-read pastes cannot be updated');
  }
  assert.deepEqual([(await post(app, 'second')).status, (await post(app, 'third')).status], [201, 429]);
});

test('PUT /{id}: not the owner\'s, unknown, without identity, ill-formed', async () => {
  const app = shared;
  const admin = presenting(insertCertificate(app.config.databasePath, { isAdmin: true }).fingerprint);
  const [own, anonymous] = [await app.store('own', AS_OWNER), await app.store('anonymous')];
  const before = [rowOf(app, own), rowOf(app, anonymous)];
  for (const caller of [admin, presenting(newFingerprint())]) {
    for (const body of ['new', null]) {
      for (const id of [own, anonymous]) {
        assertError(await put(app, id, body, { ...caller, 'X-Expiry': '60' }), 403, 'permission denied');
      }
    }
  }
  assertError(await put(app, anonymous, 'new'), 403, 'permission denied');
  assertError(await put(app, 'unknown', 'new'), 404, 'paste not found', UPLOAD);
  const nobody = await put(app, own, 'new', { 'X-SSL-Client-SHA1': 'none' });
  assertError(nobody, 401, 'authentication required', { hint: `present a client certificate; ${UPLOAD_HINT}` });
  assert.equal((await put(app, 'bad-id', 'new')).status, 400);
  assert.equal((await put(app, 'health', 'new')).status, 405);
  assert.deepEqual([rowOf(app, own), rowOf(app, anonymous)], before);
});

test('PUT /{id}: counts against the creation rate with content, and says where the caller stands', async (t) => {
  const app = await startApp(t, { rateMax: 3 });
  const id = await app.store('x', AS_OWNER);
  for (let turn = 0; turn < 5; turn += 1) {
    const answer = await put(app, id, null, { 'X-Expiry': '60' });
    assertUpdated(answer);
    assert.equal(rateOf(answer), null);
  }
  assert.equal(rateOf(await put(app, id, 'y'))?.remaining, 1);
  await putEmptyChunked(t, app, id);
  const refused = await put(app, id, 'z');
  assertError(refused, 429, 'rate limit exceeded');
  assert.deepEqual([rateOf(refused)?.remaining, refused.headers.get('retry-after')], [0, '60']);
  assert.equal((await post(app, 'new')).status, 429);
  assertUpdated(await put(app, id, null, { 'X-Expiry': '60' }));
  assertUpdated(await put(app, id, 'z', from('192.0.2.1')));
  // A PUT that is refused before its content counts does not use the rate up.
  const other = await app.store('x', from('192.0.2.2'));
  assert.equal((await put(app, other, 'z', from('192.0.2.2'))).status, 403);
  assert.equal(rateOf(await put(app, id, 'z', from('192.0.2.2')))?.remaining, 1);
});

test('PUT /{id}: its content counts as a duplicate, and is refused as one', async (t) => {
  const app = await startApp(t, { duplicateMax: 2 });
  await app.store('same');
  const other = await app.store('another', AS_OWNER);
  assertUpdated(await put(app, other, 'same'));
  const third = await app.store('a third', AS_OWNER);
  const refused = await put(app, third, 'same', { 'X-Expiry': '5' });
  assertError(refused, 429, 'duplicate content limit exceeded', { count: 2, window_seconds: 3600 });
  assert.equal(refused.headers.get('retry-after'), '3600');
  assert.equal((await post(app, 'same')).status, 429);
  assert.equal((await metadataOf(app, third))['expires_at'], nowSeconds(app) + 604_800);
  assertUpdated(await put(app, third, null, { 'X-Expiry': '60' }));
  assertUpdated(await put(app, third, 'other'));
});

test('PUT /{id}: the content that the paste has already is no duplicate, and keeps nobody else from storing it', async (t) => {
  const app = await startApp(t, { duplicateMax: 3 });
  for (const content of ['same', binaryContent(100_000)]) {
    const id = await app.store(content, AS_OWNER);
    for (let turn = 0; turn < 5; turn += 1) assertUpdated(await put(app, id, content, { 'X-Expiry': '60' }));
    assert.deepEqual([(await post(app, content)).status, (await post(app, content)).status], [201, 201]);
    assert.equal((await post(app, content)).status, 429);
    assertUpdated(await put(app, id, content));
  }
});

test('PUT /{id}: where nothing is to be updated, the hint says how to upload as well', async (t) => {
  const app = await startApp(t);
  assertError(await put(app, 'Makefile', 'x'), 404, 'paste not found', UPLOAD);
  const anonymous = await app.request('/Makefile', { method: 'PUT', body: 'x' });
  assert.equal(anonymous.status, 401);
  assert.equal((await anonymous.json() as { hint: string }).hint, `present a client certificate; ${UPLOAD_HINT}`);
  const id = await app.store('x');
  const refused = await put(app, id, 'y');
  assert.deepEqual([refused.status, refused.json['hint']], [403, undefined]);
});

test('PUT /{id}: the quota is on what is stored after the change', async (t) => {
  const app = await startApp(t, { maxStorageBytes: 200_000 });
  const id = await app.store(binaryContent(100_000), AS_OWNER);
  await app.store(binaryContent(90_000, 2));
  const used = (): unknown => selectValue(app.config.databasePath, 'SELECT bytes FROM usage');
  for (const send of [(content: Uint8Array) => content, chunked]) {
    for (const [bytes, status] of [[110_000, 200], [110_001, 507], [109_999, 200], [110_000, 200]] as const) {
      assert.equal((await put(app, id, send(binaryContent(bytes)))).status, status, `${bytes} bytes`);
    }
    assert.equal(used(), 200_000);
  }
  assertUpdated(await put(app, id, 'x'));
  assert.equal(used(), 90_001);
});

test('PUT /{id}: what is replaced is gone from the database, from row to chunks and back', async (t) => {
  const app = await startApp(t);
  const id = await app.store(binaryContent(100, 1), AS_OWNER);
  for (const [turn, size] of [INLINE_BYTES + 1, 700_000, 300_000, INLINE_BYTES, 50, 262_144, 5].entries()) {
    const content = binaryContent(size, turn + 2);
    assertUpdated(await put(app, id, content));
    assert.deepEqual(await rawOf(app, id), Buffer.from(content));
  }
  await app.app.close();
  for (const table of ['chunks', 'orphans']) {
    assert.equal(selectValue(app.config.databasePath, `SELECT count(*) FROM ${table}`), 0, table);
  }
  assert.equal(selectValue(app.config.databasePath, "SELECT count(*) FROM pastes WHERE content_id IS NULL AND size = 5"), 1);
});

test('PUT /{id}: a download in progress gets the whole old content, which is removed when it is through', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 32 * MIB });
  const old = binaryContent(24 * MIB);
  const id = await app.store(old, AS_OWNER);
  const response = await app.request(`/${id}/raw`);
  assertUpdated(await put(app, id, 'new'));
  assert.equal((await rawOf(app, id)).toString(), 'new');
  const isOver = app.logged.some(({ details }) => details?.['bytes'] === old.length);
  assert.equal(isOver, false, 'the download is in progress, or the test shows nothing');
  assert.notEqual(strayChunks(app.config.databasePath), 0);
  const received = Buffer.from(await response.arrayBuffer());
  assert.equal(received.equals(old), true);
  // Looked at before the stop, which waits for half a second at most and leaves the rest to the next start.
  while (strayChunks(app.config.databasePath) !== 0) await setTimeout(10);
  await app.app.close();
  assert.equal(selectValue(app.config.databasePath, 'SELECT count(*) FROM chunks'), 0);
});

test('PUT /{id}: of many at once one is left whole, and each is answered with what it wrote', async (t) => {
  const app = await startApp(t);
  const id = await app.store('old', AS_OWNER);
  const now = nowSeconds(app);
  const sizes = [10, INLINE_BYTES, INLINE_BYTES + 1, 300_000];
  const contents = Array.from({ length: 24 }, (_, turn) => binaryContent(sizes[turn % sizes.length]! + turn, turn + 1));
  const reading = { isOver: false };
  const digests = new Set([Buffer.from('old'), ...contents].map(digestOf));
  const reads = readUntil(app, id, reading, (content) => assert.ok(digests.has(digestOf(content)), 'one of the contents, whole'));

  const answers = await Promise.all(contents.map((content, turn) => put(app, id, content, { 'X-Expiry': String(1000 + turn) })));
  reading.isOver = true;
  await reads;
  assert.deepEqual(statusCounts(answers), { 200: contents.length });
  for (const [turn, { json }] of answers.entries()) {
    assert.deepEqual([json['size'], json['expires_at']], [contents[turn]!.length, now + 1000 + turn]);
  }
  const { size, expires_at: expiresAt } = await metadataOf(app, id);
  const last = contents[Number(expiresAt) - now - 1000]!;
  assert.equal(size, last.length);
  assert.deepEqual(await rawOf(app, id), Buffer.from(last));
  await app.app.close();
  assert.equal(strayChunks(app.config.databasePath), 0);
  assert.equal(selectValue(app.config.databasePath, 'SELECT count(*) FROM orphans'), 0);
});

function digestOf(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

async function readUntil(
  app: RunningApp,
  id: string,
  reading: { isOver: boolean },
  check: (content: Buffer) => void,
): Promise<void> {
  while (!reading.isOver) check(await rawOf(app, id));
}

test('PUT /{id}: racing with DELETE, nothing comes back and nothing is left', async (t) => {
  const app = await startApp(t);
  for (let round = 0; round < 10; round += 1) {
    const id = await app.store(binaryContent(100_000), AS_OWNER);
    const [updated, deleted] = await Promise.all([
      put(app, id, binaryContent(100_000, round)),
      app.request(`/${id}`, { method: 'DELETE', headers: AS_OWNER }),
    ]);
    assert.equal(deleted.status, 200);
    assert.ok([200, 404].includes(updated.status), String(updated.status));
    assert.equal((await app.request(`/${id}`)).status, 404);
  }
  await app.app.close();
  for (const table of ['pastes', 'chunks', 'orphans']) {
    assert.equal(selectValue(app.config.databasePath, `SELECT count(*) FROM ${table}`), 0, table);
  }
});
