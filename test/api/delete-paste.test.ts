// DELETE /{id} over real sockets: who may, what is left, what of it is audited. The statuses for each tier are
// identity-matrix.test.ts.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { MIB } from '../../src/core/time.ts';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { insertCertificate, newFingerprint, presenting } from '../support/certificates.ts';
import { assertError, from, statusCounts, type Answer } from '../support/posting.ts';
import { head, openRaw } from '../support/raw-http.ts';
import { selectValue, strayChunks } from '../support/store.ts';

const OWNER = newFingerprint();
const AS_OWNER = presenting(OWNER);

async function remove(app: RunningApp, id: string, headers: Record<string, string> = AS_OWNER): Promise<Answer> {
  const response = await app.request(`/${id}`, { method: 'DELETE', headers });
  return { status: response.status, headers: response.headers, json: await response.json() as Record<string, unknown> };
}

function assertDeleted({ status, json }: Answer): void {
  assert.deepEqual({ status, ...json }, { status: 200, message: 'paste deleted' });
}

function adminOf({ config }: RunningApp): string {
  return insertCertificate(config.databasePath, { isAdmin: true }).fingerprint;
}

function audited({ config }: RunningApp): unknown {
  return selectValue(config.databasePath, 'SELECT count(*) FROM audit');
}

test('DELETE /{id}: the owner\'s paste is gone at once, whatever it is like, and only once', async (t) => {
  const app = await startApp(t);
  const pastes = [
    await app.store('small', AS_OWNER),
    await app.store(binaryContent(700_000), AS_OWNER),
    await app.store('once', { ...AS_OWNER, 'X-Burn-After-Read': 'true' }),
    await app.store('locked', { ...AS_OWNER, 'X-Paste-Password': 'p' }),
  ];
  for (const id of pastes) {
    assertDeleted(await remove(app, id));
    assertError(await remove(app, id), 404, 'paste not found');
    for (const path of [`/${id}`, `/${id}/raw`]) assert.equal((await app.request(path)).status, 404);
  }
  assert.equal(audited(app), 0, 'one\'s own is nobody else\'s business');
  await app.app.close();
  for (const table of ['pastes', 'chunks', 'orphans']) {
    assert.equal(selectValue(app.config.databasePath, `SELECT count(*) FROM ${table}`), 0, table);
  }
  assert.equal(selectValue(app.config.databasePath, 'SELECT pastes + bytes FROM usage'), 0);
});

test('DELETE /{id}: nobody else\'s, not an unknown or expired one, and nothing without identity', async (t) => {
  const app = await startApp(t);
  const [own, anonymous] = [await app.store('own', AS_OWNER), await app.store('anonymous')];
  assertError(await remove(app, own, presenting(newFingerprint())), 403, 'permission denied');
  assertError(await remove(app, anonymous), 403, 'permission denied');
  for (const id of [own, 'unknown']) {
    assertError(await remove(app, id, {}), 401, 'authentication required', { hint: 'send X-Delete-Token, or present a client certificate' });
  }
  assertError(await remove(app, 'unknown'), 404, 'paste not found');
  assert.equal((await remove(app, 'bad-id')).status, 400);
  assert.equal((await app.request(`/${own}/raw`, { method: 'DELETE', headers: AS_OWNER })).status, 405);
  for (const id of [own, anonymous]) assert.equal((await app.request(`/${id}`)).status, 200);

  const brief = await app.store('brief', { ...AS_OWNER, 'X-Expiry': '10' });
  app.clock.advance(10_000);
  assertError(await remove(app, brief), 404, 'paste not found');
});

test('DELETE /{id}: the admin deletes anyone\'s, and that is audited with the owner; an own one is not', async (t) => {
  const app = await startApp(t);
  const admin = adminOf(app);
  const as = { ...presenting(admin), ...from('192.0.2.7') };
  const [owned, anonymous, own] = [await app.store('x', AS_OWNER), await app.store('y'), await app.store('z', as)];
  for (const id of [owned, anonymous, own]) assertDeleted(await remove(app, id, as));
  assertError(await remove(app, owned, as), 404, 'paste not found');

  const answer = await app.request('/audit', { headers: as });
  const { entries } = await answer.json() as { entries: Record<string, unknown>[] };
  const entry = (id: number, paste: string, owner: string | null): object => ({
    id, time: '2026-01-31T12:00:00Z', event: 'paste_deleted', outcome: 'success', client_id: admin, client_ip: '192.0.2.7',
    details: { paste: paste.slice(0, 8), owner },
  });
  assert.deepEqual(entries, [entry(2, anonymous, null), entry(1, owned, OWNER)]);
  const lines = app.logged.filter(({ logger }) => logger === 'audit');
  assert.deepEqual(lines.map(({ level, event, clientId, details }) => ({ level, event, clientId, details })), [
    { level: 'info', event: 'paste_deleted', clientId: admin, details: { paste: owned.slice(0, 8), owner: OWNER } },
    { level: 'info', event: 'paste_deleted', clientId: admin, details: { paste: anonymous.slice(0, 8), owner: null } },
  ]);
  assert.equal(JSON.stringify(app.logged).includes(owned), false, 'an id is a capability');
});

test('DELETE /{id}: the admin guesses no content of what has a password, beyond the rate of lookups', async (t) => {
  const app = await startApp(t, { lookupRateMax: 1 });
  const as = presenting(adminOf(app));
  const id = await app.store('PIN 4711', { 'X-Paste-Password': 'p' });
  const statuses: number[] = [];
  for (let guess = 0; guess <= app.config.rateTrustedFactor; guess += 1) {
    statuses.push((await remove(app, id, { ...as, 'If-Match': `"sha256-${guess}"` })).status);
  }
  assert.deepEqual([statuses.indexOf(429), new Set(statuses)], [app.config.rateTrustedFactor, new Set([412, 429])]);
  assertDeleted(await remove(app, id, as));
});

test('DELETE /{id}: by the admin, the paste and the audit entry are one transaction', async (t) => {
  const app = await startApp(t);
  const as = presenting(adminOf(app));
  const id = await app.store(binaryContent(100_000), AS_OWNER);
  const db = new DatabaseSync(app.config.databasePath, { timeout: 5000 });
  t.after(() => db.close());
  db.exec("CREATE TRIGGER no_audit BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no entry'); END");
  assert.equal((await remove(app, id, as)).status, 500);
  const raw = await app.request(`/${id}/raw`);
  assert.deepEqual(new Uint8Array(await raw.arrayBuffer()), binaryContent(100_000));
  assert.equal(app.logged.some(({ logger }) => logger === 'audit'), false);
  db.exec('DROP TRIGGER no_audit');
  db.exec("CREATE TRIGGER no_delete BEFORE DELETE ON pastes BEGIN SELECT RAISE(ABORT, 'no removal'); END");
  assert.equal((await remove(app, id, as)).status, 500);
  assert.equal(audited(app), 0);
  db.exec('DROP TRIGGER no_delete');
  assertDeleted(await remove(app, id, as));
  assert.equal(audited(app), 1);
});

test('DELETE /{id}: a download in progress finishes, then its content is removed', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 32 * MIB });
  const content = binaryContent(24 * MIB);
  const id = await app.store(content, AS_OWNER);
  const response = await app.request(`/${id}/raw`);
  assertDeleted(await remove(app, id));
  assert.equal((await app.request(`/${id}/raw`)).status, 404);
  assert.equal(app.logged.some(({ details }) => details?.['bytes'] === content.length), false, 'the download is still in progress');
  assert.notEqual(strayChunks(app.config.databasePath), 0);
  assert.equal(Buffer.from(await response.arrayBuffer()).equals(content), true);
  while (selectValue(app.config.databasePath, 'SELECT count(*) FROM chunks') !== 0) await setTimeout(10);
});

test('DELETE /{id}: what was answered without the content does not keep it', async (t) => {
  const app = await startApp(t);
  const id = await app.store(binaryContent(100_000), AS_OWNER);
  const refused = [
    [304, 'If-None-Match: *'], [416, 'Range: bytes=100000-'], [400, 'If-Range: "a"', 'If-Range: "b"'],
  ] as const;
  for (const [status, ...lines] of refused) {
    const connection = await openRaw(t, app.port);
    connection.send(head(`GET /${id}/raw HTTP/1.1`, ...lines));
    assert.equal((await connection.next()).status, status);
  }
  assertDeleted(await remove(app, id));
  const chunks = (): unknown => selectValue(app.config.databasePath, 'SELECT count(*) FROM chunks');
  for (let turn = 0; turn < 500 && chunks() !== 0; turn += 1) await setTimeout(10);
  assert.equal(chunks(), 0);
});

test('DELETE /{id}: of many at once exactly one succeeds, also against the admin', async (t) => {
  const app = await startApp(t);
  const as = presenting(adminOf(app));
  for (let round = 0; round < 5; round += 1) {
    const id = await app.store(binaryContent(70_000), AS_OWNER);
    const answers = await Promise.all(Array.from({ length: 16 }, (_, turn) => remove(app, id, turn % 2 === 0 ? AS_OWNER : as)));
    assert.deepEqual(statusCounts(answers), { 200: 1, 404: 15 });
  }
  assert.ok(Number(audited(app)) <= 5);
  await app.app.close();
  assert.equal(strayChunks(app.config.databasePath), 0);
});

test('DELETE /{id}: however it was asked for before, nothing keeps its content', async (t) => {
  const app = await startApp(t);
  const browser = 'Accept: text/html';
  const askings = [
    ['raw', 200], ['raw', 206, 'Range: bytes=0-9'], ['raw', 416, 'Range: bytes=300000-'], ['raw', 304, 'If-None-Match: *'],
    ['raw', 400, 'Range: bytes=0-9', 'Range: bytes=0-9'], ['', 200], ['', 200, browser], ['raw', 200, browser],
  ] as const;
  for (const content of ['line\n'.repeat(60_000), binaryContent(300_000)]) {
    for (const method of ['GET', 'HEAD']) {
      for (const [path, status, ...lines] of askings) {
        const id = await app.store(content, AS_OWNER);
        const connection = await openRaw(t, app.port);
        connection.send(head(`${method} /${id}${path && `/${path}`} HTTP/1.1`, ...lines));
        const answer = await connection.next(method);
        // HEAD has no ranges (RFC 9110 section 14.2).
        const expected = method === 'HEAD' && status !== 304 ? 200 : status;
        assert.equal(answer.status, expected, `${method} ${path} ${lines}`);
        // The next answer comes when the one before is over.
        connection.send(head('GET /health HTTP/1.1'));
        assert.equal((await connection.next()).status, 200);
        assertDeleted(await remove(app, id));
        await app.app.cleanup.run('expired pastes');
        assert.equal(strayChunks(app.config.databasePath), 0, `${method} ${path} ${lines}`);
      }
    }
  }
});
