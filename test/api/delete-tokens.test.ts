// X-Delete-Token over real sockets: who gets a token, and what it deletes. Deleting with an identity is
// delete-paste.test.ts.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { insertCertificate, newFingerprint, presenting } from '../support/certificates.ts';
import { type Answer, assertError, from, post, statusCounts } from '../support/posting.ts';
import { head, onlyAnswer } from '../support/raw-http.ts';
import { CREATED_AT, rowsOf, selectValue, strayChunks } from '../support/store.ts';

type Headers = Record<string, string>;

const AS_OWNER = presenting(newFingerprint());
const FORM = /^[A-Za-z0-9_-]{43}$/;

interface Stored {
  readonly id: string;
  readonly token: string;
}

/** A paste that nobody owns. */
async function storeOpen(app: RunningApp, content: string | Uint8Array = 'x', headers: Headers = {}): Promise<Stored> {
  const answer = await post(app, content, headers);
  assert.equal(answer.status, 201);
  return { id: String(answer.json['id']), token: answer.headers.get('x-delete-token') ?? assert.fail('no token') };
}

async function remove(app: RunningApp, id: string, token: string | undefined, headers: Headers = {}): Promise<Answer> {
  const shown = token === undefined ? headers : { ...headers, 'X-Delete-Token': token };
  const response = await app.request(`/${id}`, { method: 'DELETE', headers: shown });
  return { status: response.status, headers: response.headers, json: await response.json() as Record<string, unknown> };
}

function assertDeleted({ status, json }: Answer, what?: string): void {
  assert.deepEqual({ status, ...json }, { status: 200, message: 'paste deleted' }, what);
}

async function isThere(app: RunningApp, id: string): Promise<boolean> {
  return (await app.request(`/${id}`, { method: 'HEAD' })).status !== 404;
}

/** The token by the design's rule, under the key in the database. */
function computed({ config }: RunningApp, id: string): string {
  const key = selectValue(config.databasePath, "SELECT value FROM secrets WHERE name = 'delete-tokens'") as Uint8Array;
  assert.equal(key.length, 32);
  return createHmac('sha256', key).update(`delete:${id}`).digest('base64url');
}

test('POST /: whoever has no identity gets a token, in JSON and text, and nobody else', async (t) => {
  const app = await startApp(t);
  const ended = presenting(insertCertificate(app.config.databasePath, { revokedAt: CREATED_AT }).fingerprint);
  for (const headers of [{}, ended, { Accept: 'text/plain' }, { 'X-Burn-After-Read': '1', 'X-Paste-Password': 'p' }]) {
    for (const method of ['POST', 'PUT']) {
      const response = await app.request('/', { method, body: 'x', headers });
      const id = /[a-z2-7]{26}/.exec(await response.text())?.[0] ?? '';
      const token = response.headers.get('x-delete-token') ?? '';
      assert.match(token, FORM);
      assert.equal(token, computed(app, id));
    }
  }
  const trusted = insertCertificate(app.config.databasePath).fingerprint;
  for (const headers of [AS_OWNER, presenting(trusted), { ...AS_OWNER, Accept: 'text/plain' }]) {
    const response = await app.request('/', { method: 'POST', body: 'x', headers });
    assert.deepEqual([response.status, response.headers.get('x-delete-token')], [201, null]);
  }
  const refused = await post(app, '');
  assert.deepEqual([refused.status, refused.headers.get('x-delete-token')], [400, null]);
  const plain = await post(app, 'x');
  assert.deepEqual(Object.keys(plain.json), ['id', 'url', 'raw', 'mime_type', 'created_at'], 'the body is as it was');
});

test('DELETE /{id}: with its token, whatever the paste is like, and once; nothing of it is left', async (t) => {
  const app = await startApp(t);
  const pastes = [
    await storeOpen(app, 'small'),
    await storeOpen(app, binaryContent(700_000)),
    await storeOpen(app, 'once', { 'X-Burn-After-Read': 'true' }),
    await storeOpen(app, binaryContent(700_000, 2), { 'X-Burn-After-Read': 'true' }),
    await storeOpen(app, 'locked', { 'X-Paste-Password': 'p' }),
  ];
  for (const { id, token } of pastes) {
    // Now it is in memory, like everything that was read lately.
    await (await app.request(`/${id}`)).text();
    assertDeleted(await remove(app, id, token), id);
    for (const path of [`/${id}`, `/${id}/raw`]) assert.equal((await app.request(path)).status, 404);
    assertError(await remove(app, id, token), 404, 'paste not found');
  }
  assert.equal(selectValue(app.config.databasePath, 'SELECT count(*) FROM audit'), 0, 'no admin did it');
  await app.app.close();
  for (const table of ['pastes', 'chunks', 'orphans']) {
    assert.equal(selectValue(app.config.databasePath, `SELECT count(*) FROM ${table}`), 0, table);
  }
});

test('DELETE /{id}: a wrong token is 403, none 401, one for no paste 404, and two 400; nothing is deleted', async (t) => {
  const app = await startApp(t);
  const [{ id, token }, other] = [await storeOpen(app, 'open'), await storeOpen(app, 'another')];
  const owned = await app.store('owned', AS_OWNER);
  const last = token.at(-1) === 'A' ? 'B' : 'A';
  const wrong = [
    '', 'x', other.token, token.slice(0, -1), `${token.slice(0, -1)}${last}`, `${token}=`, `${token}A`, token.toUpperCase(),
    Buffer.from(token, 'base64url').toString('hex'), 'A'.repeat(43), 'A'.repeat(4000), `${token.slice(0, -1)}\u00e9`,
    // The last of 43 characters carries four bits: others would decode to the same bytes.
    ...[...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
      .map((character) => token.slice(0, -1) + character).filter((near) => near !== token),
  ];
  for (const bad of wrong) assertError(await remove(app, id, bad), 403, 'permission denied');
  assertError(await remove(app, owned, computed(app, owned)), 403, 'permission denied');
  assertError(await remove(app, owned, computed(app, owned), presenting(newFingerprint())), 403, 'permission denied');
  assertError(await remove(app, 'unknown', computed(app, 'unknown')), 404, 'paste not found');
  for (const paste of [id, owned, 'unknown']) {
    assertError(await remove(app, paste, undefined), 401, 'authentication required', { hint: 'send X-Delete-Token, or present a client certificate' });
  }
  const twice = head(`DELETE /${id} HTTP/1.1`, `X-Delete-Token: ${token}`, `X-Delete-Token: ${token}`, 'Connection: close');
  const answer = await onlyAnswer(t, app.port, twice);
  assert.deepEqual([answer.status, answer.json()], [400, { error: 'header given more than once', header: 'x-delete-token' }]);
  const elsewhere = { 'Sec-Fetch-Site': 'cross-site' };
  assertError(await remove(app, id, token, elsewhere), 403, 'cross-site request refused');
  // A token is for deleting alone.
  for (const headers of [{}, presenting(newFingerprint())]) {
    const update = await app.request(`/${id}`, { method: 'PUT', body: 'y', headers: { ...headers, 'X-Delete-Token': token } });
    assert.ok([401, 403].includes(update.status));
  }
  for (const paste of [id, other.id, owned]) assert.equal(await isThere(app, paste), true);
  assertDeleted(await remove(app, id, token));
});

test('DELETE /{id}: an identity comes before the token, and a token works for whoever has it', async (t) => {
  const app = await startApp(t, { lookupRateMax: 2 });
  const { databasePath } = app.config;
  const admin = presenting(insertCertificate(databasePath, { isAdmin: true }).fingerprint);
  const trusted = presenting(insertCertificate(databasePath).fingerprint);
  const ended = presenting(insertCertificate(databasePath, { revokedAt: CREATED_AT }).fingerprint);
  // Owners who delete their own pastes, and the admin, make no lookup, whatever token they send along.
  for (let turn = 0; turn < 4; turn += 1) assertDeleted(await remove(app, await app.store('own', AS_OWNER), 'wrong', AS_OWNER));
  for (let turn = 0; turn < 12; turn += 1) assertDeleted(await remove(app, (await storeOpen(app)).id, 'wrong', admin));
  assert.equal(selectValue(databasePath, "SELECT count(*) FROM audit WHERE event = 'paste_deleted'"), 12);

  for (const [turn, headers] of [AS_OWNER, trusted, ended, admin].entries()) {
    const { id, token } = await storeOpen(app);
    const address = from(`192.0.2.${turn}`);
    if (headers !== admin) assertError(await remove(app, id, `${token}A`, { ...headers, ...address }), 403, 'permission denied');
    assertDeleted(await remove(app, id, token, { ...headers, ...address }));
  }
  assert.equal(selectValue(databasePath, "SELECT count(*) FROM audit WHERE event = 'paste_deleted'"), 13, 'the admin\'s alone');
});

test('DELETE /{id}: attempts with a token count as lookups, right and wrong, of known ids and unknown', async (t) => {
  const app = await startApp(t, { lookupRateMax: 3 });
  const { id, token } = await storeOpen(app);
  const [one, other, reader] = [from('192.0.2.1'), from('192.0.2.2'), from('192.0.2.3')];
  assertError(await remove(app, id, 'wrong', one), 403, 'permission denied');
  assertError(await remove(app, 'unknown', token, one), 404, 'paste not found');
  assertDeleted(await remove(app, id, token, one));
  const again = await storeOpen(app);
  for (const shown of ['wrong', again.token]) {
    const late = await remove(app, again.id, shown, one);
    assertError(late, 429, 'lookup rate limit exceeded');
    assert.equal(late.headers.get('retry-after'), '60');
  }
  assert.equal((await app.request(`/${again.id}`, { headers: one })).status, 429);
  // Without a token nothing is looked up.
  assert.equal((await remove(app, again.id, undefined, one)).status, 401);
  for (let turn = 0; turn < 3; turn += 1) assert.equal((await app.request(`/${again.id}`, { headers: reader })).status, 200);
  assert.equal((await remove(app, again.id, again.token, reader)).status, 429, 'other lookups count too');
  assertDeleted(await remove(app, again.id, again.token, other));
});

test('X-Delete-Token: good after a restart, for this database alone, and nowhere in logs or tables', async (t) => {
  const before = await startApp(t);
  const { databasePath } = before.config;
  const [kept, gone] = [await storeOpen(before), await storeOpen(before)];
  assertDeleted(await remove(before, gone.id, gone.token));
  assert.equal((await remove(before, kept.id, gone.token)).status, 403);
  await before.app.close();
  const elsewhere = await startApp(t);
  const theirs = await storeOpen(elsewhere);
  const after = await startApp(t, { databasePath, powSecret: 'another secret' });
  assert.equal((await remove(after, kept.id, theirs.token)).status, 403);
  const said = JSON.stringify([before.logged, after.logged]);
  const rows = rowsOf(databasePath, 'SELECT name FROM secrets ORDER BY name');
  assert.deepEqual(rows, ['delete-tokens', 'proof-of-work']);
  assertDeleted(await remove(after, kept.id, kept.token));
  await after.app.close();
  const stored = readFileSync(databasePath);
  for (const { token } of [kept, gone]) {
    assert.equal(said.includes(token), false, 'no token is logged');
    for (const form of [token, Buffer.from(token, 'base64url')]) assert.equal(stored.includes(form), false);
  }
});

test('DELETE /{id}: by token against reading what burns, 40 at once: exactly one has it', async (t) => {
  const app = await startApp(t);
  const winners = new Set<string>();
  for (let round = 0; round < 12; round += 1) {
    const content = binaryContent(round % 2 === 0 ? 100 : 700_000, round);
    const { id, token } = await storeOpen(app, content, { 'X-Burn-After-Read': '1' });
    const read = async (): Promise<[string, number]> => {
      const response = await app.request(`/${id}/raw`);
      const bytes = Buffer.from(await response.arrayBuffer());
      if (response.status === 200) assert.equal(bytes.equals(content), true, 'all of it');
      return ['read', response.status];
    };
    const take = async (): Promise<[string, number]> => ['deleted', (await remove(app, id, token)).status];
    const answers = await Promise.all(Array.from({ length: 40 }, (_, turn) => ((turn + (round >> 1)) % 2 === 0 ? read() : take())));
    const won = answers.filter(([, status]) => status === 200);
    assert.equal(won.length, 1);
    assert.ok(answers.every(([, status]) => status === 200 || status === 404));
    winners.add(won[0]![0]);
  }
  assert.deepEqual([...winners].sort(), ['deleted', 'read'], 'each has been first');
  await app.app.close();
  assert.equal(strayChunks(app.config.databasePath), 0);
});

test('DELETE /{id}: by token against expiry and its cleanup, 40 at once: deleted once or expired', async (t) => {
  const app = await startApp(t);
  const { databasePath } = app.config;
  const outcomes = new Set<number>();
  for (let round = 0; round < 12; round += 1) {
    const content = binaryContent(round % 2 === 0 ? 100 : 100_000, round);
    const { id, token } = await storeOpen(app, content, { 'X-Expiry': '10' });
    app.clock.advance(9999);
    const early = Array.from({ length: round < 6 ? 20 : 0 }, () => remove(app, id, token));
    if (round < 4) await early[0];
    app.clock.advance(1);
    const cleaned = app.app.cleanup.run('expired pastes');
    const late = Array.from({ length: 40 - early.length }, () => remove(app, id, token));
    const answers = await Promise.all([...early, ...late]);
    const { 200: deleted = 0, 404: missing = 0 } = statusCounts(answers);
    assert.deepEqual([deleted <= 1, deleted + missing], [true, 40]);
    assert.equal(statusCounts(await Promise.all(late))[200] ?? 0, 0, 'nothing that has expired is there');
    outcomes.add(deleted);
    await cleaned;
    await app.app.cleanup.run('expired pastes');
    assert.equal(selectValue(databasePath, 'SELECT count(*) FROM pastes'), 0);
  }
  assert.deepEqual([...outcomes].sort(), [0, 1], 'each has been first');
  await app.app.close();
  assert.equal(strayChunks(databasePath), 0);
});
