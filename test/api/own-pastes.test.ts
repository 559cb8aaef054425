// The tiers over real sockets: what each may store and how often, that all that a certificate gave ends at once when
// it ends, and what is audited of that. Which status each endpoint gives to whom is identity-matrix.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApp, type RunningApp } from '../support/app.ts';
import {
  deleteCertificate, insertCertificate, newFingerprint, presenting, setAdmin, setRevoked,
} from '../support/certificates.ts';
import { assertError, from, post, rateOf } from '../support/posting.ts';
import { CREATED_AT, selectValue } from '../support/store.ts';

type Headers = Record<string, string>;

interface Callers {
  readonly anonymous: Headers;
  readonly untrusted: Headers;
  readonly trusted: Headers;
  readonly admin: Headers;
  readonly revoked: Headers;
  readonly expired: Headers;
}

/** One of each kind, each from an address of its own. */
function callersOf({ config }: RunningApp): Callers {
  const holder = (given: object, address: string): Headers =>
    ({ ...presenting(insertCertificate(config.databasePath, given).fingerprint), ...from(address) });
  return {
    anonymous: from('192.0.2.1'),
    untrusted: { ...presenting(newFingerprint()), ...from('192.0.2.2') },
    trusted: holder({}, '192.0.2.3'),
    admin: holder({ isAdmin: true }, '192.0.2.4'),
    revoked: holder({ revokedAt: CREATED_AT }, '192.0.2.5'),
    expired: holder({ expiresAt: CREATED_AT }, '192.0.2.6'),
  };
}

/** The names of both kinds of limits; a caller whose certificate has ended is as strictly limited as one without. */
const TIERS = [
  ['anonymous', 'strict'], ['untrusted', 'strict'], ['trusted', 'relaxed'], ['admin', 'relaxed'], ['revoked', 'strict'], ['expired', 'strict'],
] as const;

function failuresOf(app: RunningApp): number {
  return Number(selectValue(app.config.databasePath, "SELECT count(*) FROM audit WHERE event = 'auth_failure'"));
}

test('POST /: size, rate and default expiry are those of the caller\'s tier', async (t) => {
  const app = await startApp(t, {
    maxAnonBytes: 1000, maxAuthBytes: 2000, rateMax: 4, rateTrustedFactor: 3, expiryAnonSeconds: 100, expiryUntrustedSeconds: 200,
    expiryTrustedSeconds: 300,
  });
  const callers = callersOf(app);
  const ttls = { anonymous: 100, untrusted: 200, trusted: 300, admin: 300, revoked: 100, expired: 100 };
  for (const [name, limits] of TIERS) {
    const [most, rate] = limits === 'strict' ? [1000, 4] : [2000, 12];
    const headers = callers[name];
    assert.equal((await post(app, 'x'.repeat(most - 1), headers)).status, 201, name);
    const stored = await post(app, 'x'.repeat(most), headers);
    assert.deepEqual(rateOf(stored), { limit: rate, remaining: rate - 2, reset: CREATED_AT + 60 }, name);
    const refused = await post(app, 'x'.repeat(most + 1), headers);
    const authenticated = ['untrusted', 'trusted', 'admin'].includes(name);
    assertError(refused, 413, 'paste too large', { size: most + 1, max_size: most, authenticated });
    assert.equal('owner' in stored.json, authenticated, name);
    const { expires_at: expiresAt } = await (await app.request(`/${stored.json['id']}`)).json() as { expires_at: number };
    assert.equal(expiresAt - CREATED_AT, ttls[name], name);

    // A declared length that is too large is refused before the rate is counted.
    for (let turn = 2; turn < rate; turn += 1) assert.equal((await post(app, 'x', headers)).status, 201, name);
    assertError(await post(app, 'x', headers), 429, 'rate limit exceeded');
  }
});

test('GET /{id}: a trusted caller may look up so many times more', async (t) => {
  const app = await startApp(t, { lookupRateMax: 2, rateTrustedFactor: 3 });
  const id = await app.store('x');
  const callers = callersOf(app);
  for (const [name, limits] of TIERS) {
    const statuses = [];
    for (let turn = 0; turn < 7; turn += 1) statuses.push((await app.request(`/${id}`, { headers: callers[name] })).status);
    const allowed = limits === 'strict' ? 2 : 6;
    assert.deepEqual(statuses, statuses.map((_, turn) => (turn < allowed ? 200 : 429)), name);
  }
});

test('identity: what another connection does to a certificate counts from the next request on', async (t) => {
  const app = await startApp(t, { maxAnonBytes: 1000, maxAuthBytes: 2000 });
  const { databasePath } = app.config;
  const { serial, fingerprint } = insertCertificate(databasePath);
  const as = presenting(fingerprint);
  const tier = async (): Promise<string> => {
    const { status, json } = await post(app, 'x'.repeat(1001), as);
    if (status === 413) return json['authenticated'] === true ? 'untrusted' : 'anonymous';
    return (await app.request('/audit', { headers: as })).status === 200 ? 'admin' : 'trusted';
  };
  assert.equal(await tier(), 'trusted');
  for (let round = 0; round < 3; round += 1) {
    setRevoked(databasePath, serial, CREATED_AT);
    assert.equal(await tier(), 'anonymous');
    assert.equal((await app.request('/pastes', { headers: as })).status, 401);
    setRevoked(databasePath, serial, null);
    assert.equal(await tier(), 'trusted');
    setAdmin(databasePath, serial, true);
    assert.equal(await tier(), 'admin');
    setAdmin(databasePath, serial, false);
    assert.equal(await tier(), 'trusted');
  }
  deleteCertificate(databasePath, serial);
  assert.equal(await tier(), 'untrusted');
  insertCertificate(databasePath, { fingerprint, isAdmin: true });
  assert.equal(await tier(), 'admin');
});

test('identity: a certificate ends with the second of its expiry', async (t) => {
  const app = await startApp(t);
  const { fingerprint } = insertCertificate(app.config.databasePath, { expiresAt: CREATED_AT + 10, isAdmin: true });
  const statusNow = async (): Promise<number> => (await app.request('/audit', { headers: presenting(fingerprint) })).status;
  app.clock.advance(9999);
  assert.equal(await statusNow(), 200);
  app.clock.advance(1);
  assert.equal(await statusNow(), 401);
  // The clock of the host decides, also when it is set back.
  app.clock.jump(-1);
  assert.equal(await statusNow(), 200);
});

test('identity: own pastes are out of reach once the certificate is revoked, and nobody\'s afterwards', async (t) => {
  const app = await startApp(t);
  const { serial, fingerprint } = insertCertificate(app.config.databasePath);
  const as = presenting(fingerprint);
  const id = await app.store('content', as);
  setRevoked(app.config.databasePath, serial, CREATED_AT);
  for (const method of ['PUT', 'DELETE']) {
    const options = { method, headers: as, ...(method === 'PUT' ? { body: 'new' } : {}) };
    assert.equal((await app.request(`/${id}`, options)).status, 401, method);
  }
  assert.equal(await (await app.request(`/${id}/raw`, { headers: as })).text(), 'content');
  const created = await post(app, 'another', as);
  assert.deepEqual([created.status, 'owner' in created.json], [201, false]);
  assert.equal(selectValue(app.config.databasePath, `SELECT owner FROM pastes WHERE id = '${created.json['id']}'`), null);
});

test('auth_failure: the entry and the log line say who, from where and why', async (t) => {
  const app = await startApp(t);
  const revoked = insertCertificate(app.config.databasePath, { revokedAt: CREATED_AT - 5 }).fingerprint;
  const expired = insertCertificate(app.config.databasePath, { expiresAt: CREATED_AT }).fingerprint;
  const both = insertCertificate(app.config.databasePath, { expiresAt: CREATED_AT, revokedAt: CREATED_AT }).fingerprint;
  const admin = insertCertificate(app.config.databasePath, { isAdmin: true }).fingerprint;
  for (const fingerprint of [revoked, expired, both]) {
    await app.request('/pastes', { headers: { ...presenting(fingerprint), ...from('192.0.2.9') } });
  }
  const { entries } = await (await app.request('/audit', { headers: presenting(admin) })).json() as { entries: object[] };
  const entry = (id: number, fingerprint: string, reason: string): object => ({
    id, time: '2026-01-31T12:00:00Z', event: 'auth_failure', outcome: 'failure', client_id: fingerprint, client_ip: '192.0.2.9',
    details: { fingerprint, reason },
  });
  assert.deepEqual(entries, [entry(3, both, 'revoked'), entry(2, expired, 'expired'), entry(1, revoked, 'revoked')]);
  const [line] = app.logged.filter(({ logger }) => logger === 'audit');
  assert.deepEqual(line, {
    level: 'warning', logger: 'audit', event: 'auth_failure', outcome: 'failure', clientId: revoked, clientIp: '192.0.2.9',
    details: { fingerprint: revoked, reason: 'revoked' },
  });
});

test('auth_failure: no more than 60 a minute and client address are written, whatever the certificate', async (t) => {
  const app = await startApp(t, { maxConnectionsPerClient: 0 });
  const fingerprints = [0, 1].map(() => insertCertificate(app.config.databasePath, { revokedAt: CREATED_AT }).fingerprint);
  const fail = async (times: number, address: string): Promise<void> => {
    const requests = Array.from({ length: times }, (_, turn) =>
      app.request('/pastes', { headers: { ...presenting(fingerprints[turn % 2]!), ...from(address) } }));
    for (const { status } of await Promise.all(requests)) assert.equal(status, 401);
  };
  await fail(59, '2001:db8::1');
  assert.equal(failuresOf(app), 59);
  await fail(3, '2001:db8::2');
  assert.equal(failuresOf(app), 60, 'a /64 is one client');
  await fail(2, '192.0.2.1');
  assert.equal(failuresOf(app), 62);
  app.clock.advance(59_999);
  await fail(1, '2001:db8::1');
  assert.equal(failuresOf(app), 62);
  app.clock.advance(1);
  await fail(61, '2001:db8::1');
  assert.equal(failuresOf(app), 122);
  assert.equal(app.logged.filter(({ event }) => event === 'auth_failure').length, 122);
});

test('auth_failure: no more than 60 a minute are written of one certificate, from however many addresses', async (t) => {
  const app = await startApp(t);
  const [one, other] = [0, 1].map(() => insertCertificate(app.config.databasePath, { revokedAt: CREATED_AT }).fingerprint);
  const fail = (fingerprint: string, address: string) => (
    app.request('/pastes', { headers: { ...presenting(fingerprint), ...from(address) } })
  );
  // More addresses than there are windows for: making room for them must not forget the certificate.
  for (let turn = 0; turn < 1100; turn += 1) await fail(one!, `192.0.${turn >> 8}.${turn & 255}`);
  assert.equal(failuresOf(app), 60);
  await fail(other!, '192.0.3.255');
  assert.equal(failuresOf(app), 61);
  app.clock.advance(60_000);
  await fail(one!, '192.0.0.1');
  assert.equal(failuresOf(app), 62);
});
