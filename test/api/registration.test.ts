// GET /register/challenge and POST /register over real sockets. How a bundle is encoded is tested in
// test/unit/crypto-pkcs12.test.ts; here it is opened as its owner would.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import { BundleThread } from '../../src/authority/pkcs12.ts';
import type { Config } from '../../src/config/settings.ts';
import { UUID_V4 } from '../support/answer-contract.ts';
import { type RunningApp, startApp } from '../support/app.ts';
import { newFingerprint } from '../support/certificates.ts';
import { head, openRaw } from '../support/raw-http.ts';
import {
  audited, authorityPem, createAuthority, type Issued, openssl, PKI, register, type Registered, send,
  writeFiles,
} from '../support/pki.ts';
import { assertError, assertStored, from, post, rateOf } from '../support/posting.ts';
import { isInstalled, temporaryFolder } from '../support/programs.ts';
import { makeRequestPem } from '../support/request.ts';
import { selectValue } from '../support/store.ts';
import { freshWork, getChallenge, showing, solve, workHint } from '../support/work.ts';

const BITS = 6;
const PATH = '/register/challenge';
const HINT = { hint: 'request a new challenge: GET /register/challenge' };

/** With work to do, for pastes and for registrations. */
function startWithWork(t: TestContext, overrides: Partial<Config> = {}): Promise<RunningApp> {
  return startApp(t, { ...PKI, powDifficultyBits: BITS, registerPowDifficultyBits: BITS, ...overrides });
}

function certificates(app: RunningApp): unknown {
  return selectValue(app.config.databasePath, 'SELECT count(*) FROM certificates');
}

/** A refusal of POST /register, whole. */
function assertRefused({ status, json }: Registered, expected: number, error: string, members = {}): void {
  assert.deepEqual({ status, ...json }, { status: expected, error, ...members });
}

/** The certificates in the bundle, the client's first, and what openssl says about it. */
function openBundle(folder: string, bundle: Uint8Array, password = '') {
  writeFiles(folder, { 'client.p12': bundle });
  const info = openssl(folder, 'pkcs12', '-in', 'client.p12', '-passin', `pass:${password}`, '-info', '-nokeys');
  const pems = info.match(/-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g) ?? [];
  return { certificates: pems.map((pem) => new X509Certificate(pem)), info };
}

test('POST /register: whoever goes while the bundle is made gets no certificate, nor becomes the admin', async (t) => {
  const app = await startApp(t, PKI);
  const [asked, made] = Array.from({ length: 2 }, () => Promise.withResolvers<void>());
  t.mock.method(BundleThread.prototype, 'make', async () => {
    asked!.resolve();
    await made!.promise;
    return new Uint8Array(1);
  }, { times: 1 });
  const body = JSON.stringify({ common_name: 'gone', p12_password: 'x' });
  const client = await openRaw(t, app.port);
  client.send(`${head('POST /register HTTP/1.1', `Content-Length: ${body.length}`)}${body}`);
  await asked!.promise;
  client.socket.resetAndDestroy();
  while (!app.logged.some(({ details }) => details?.['status'] === 499)) await setTimeout(1);
  made!.resolve();
  const { status, headers } = await register(app, { common_name: 'here' });
  assert.deepEqual([status, headers.get('x-is-admin'), certificates(app)], [200, '1', 1]);
  assert.deepEqual(app.logged.filter(({ level }) => level === 'error'), []);
});

test('GET /register/challenge: exactly these members, or one line of text', async (t) => {
  const app = await startWithWork(t, { registerPowDifficultyBits: 24 });
  const { json, headers } = await send(app, `GET ${PATH}`);
  const { nonce, token } = json as Record<string, string>;
  const expires = app.clock.unixMs() / 1000 + 300;
  assert.deepEqual(json, { enabled: true, difficulty: 24, nonce, expires, token });
  assert.match(String(nonce), /^[0-9a-f]{32}$/);
  assert.match(String(token), new RegExp(`^${nonce}:${expires}:24:[0-9a-f]{64}$`));
  assert.equal(headers.get('vary'), 'Accept');
  const line = await (await app.request(PATH, { headers: { Accept: 'text/plain' } })).text();
  assert.match(line, /^[0-9a-f]{32} 24 \d+ [0-9a-f:]+\n$/);
});

test('SERVICE_REGISTER_POW=0: the challenge says so, and no work is looked at', async (t) => {
  const app = await startWithWork(t, { registerPowDifficultyBits: 0 });
  assert.deepEqual((await send(app, `GET ${PATH}`)).json, { enabled: false, difficulty: 0 });
  assert.equal((await register(app, undefined, showing('no token', 'no solution'))).status, 200);
});

test('SERVICE_REGISTER_POW=0: registrations count against the creation rate, before a key is made; with work they do not', async (t) => {
  const app = await startApp(t, { ...PKI, rateMax: 3 });
  const standing = (answer: Registered) => [rateOf(answer)?.limit, rateOf(answer)?.remaining];
  assertStored(await post(app, 'x'));
  const bundle = await register(app);
  assert.deepEqual([bundle.status, ...standing(bundle)], [200, 3, 1]);
  const own = await register(app, { csr: makeRequestPem() });
  assert.deepEqual([own.status, ...standing(own)], [201, 3, 0]);
  const limited = await register(app, { p12_profile: 'none' });
  assertRefused(limited, 429, 'rate limit exceeded');
  assert.deepEqual([limited.headers.get('retry-after'), ...standing(limited)], ['60', 3, 0]);
  assert.equal((await register(app, undefined, from('192.0.2.1'))).status, 200, 'another address');
  assert.equal(certificates(app), 3);

  const working = await startWithWork(t, { powDifficultyBits: 0, rateMax: 1 });
  assertStored(await post(working, 'x'));
  const worked = await register(working, undefined, await freshWork(working, PATH));
  assert.deepEqual([worked.status, rateOf(worked)], [200, null]);
});

test('POST /register: 200 with the bundle and its headers; the CA is made by the first', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t, { ...PKI, pkiEnabled: false });
  const first = await register(app, { common_name: ' alice ' });
  assert.equal(first.status, 200);
  const expiresAt = app.clock.unixMs() / 1000 + 365 * 86_400;
  const shown = ['content-type', 'content-disposition', 'x-certificate-expires', 'x-is-admin', 'x-frame-options'];
  assert.deepEqual(shown.map((name) => first.headers.get(name)), [
    'application/x-pkcs12', 'attachment; filename="client.p12"', String(expiresAt), '1', 'DENY',
  ]);

  const folder = temporaryFolder(t);
  const [client, ca, ...others] = openBundle(folder, first.bundle).certificates;
  assert.deepEqual([client?.subject, ca?.subject, others.length], ['CN=alice', 'CN=Paste Service CA', 0]);
  assert.equal(first.headers.get('x-fingerprint-sha1'), client?.fingerprint.replaceAll(':', '').toLowerCase());
  assert.equal(client?.validToDate.getTime(), 1000 * expiresAt);
  const key = openssl(folder, 'pkcs12', '-in', 'client.p12', '-passin', 'pass:', '-nocerts', '-nodes');
  assert.match(key, /-----BEGIN PRIVATE KEY-----/);

  const second = await register(app);
  assert.equal(second.headers.get('x-is-admin'), '0');
  const [unnamed, sameCa] = openBundle(folder, second.bundle).certificates;
  assert.match(unnamed?.subject.replace('CN=', '') ?? '', UUID_V4);
  assert.equal(sameCa?.fingerprint, ca?.fingerprint);
  writeFiles(folder, { 'client.crt': unnamed!.toString(), 'ca.crt': ca!.toString() });
  const purpose = ['-x509_strict', '-purpose', 'sslclient', '-attime', String(expiresAt - 1)];
  assert.equal(openssl(folder, 'verify', ...purpose, '-CAfile', 'ca.crt', 'client.crt'), 'client.crt: OK\n');
});

test('POST /register: p12_profile and p12_password, as openssl sees them', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t, PKI);
  const folder = temporaryFolder(t);
  const modern = /PBES2, PBKDF2, AES-256-CBC, Iteration 2048, PRF hmacWithSHA256/;
  const guarded = /PBES2, PBKDF2, AES-256-CBC, Iteration 300000, PRF hmacWithSHA256/;
  const profiles = [
    [{}, '', modern],
    [{ p12_profile: 'modern', p12_password: null }, '', modern],
    [{ p12_profile: 'compat' }, '', /pbeWithSHA1And3-KeyTripleDES-CBC, Iteration 2048/],
    [{ p12_password: 'Gehe\u00efm \u{1F5DD}' }, 'Gehe\u00efm \u{1F5DD}', guarded],
  ] as const;
  for (const [body, password, scheme] of profiles) {
    const { status, bundle, headers } = await register(app, body);
    assert.equal(status, 200);
    const { certificates: [client], info } = openBundle(folder, bundle, password);
    assert.equal(client?.fingerprint.replaceAll(':', '').toLowerCase(), headers.get('x-fingerprint-sha1'));
    assert.match(info, scheme);
  }
});

test('POST /register: a body that can\'t be is 400, and costs no work', async (t) => {
  const app = await startWithWork(t);
  const work = await freshWork(app, PATH);
  const name = 'common_name must be 1 to 64 characters without control characters';
  const password = 'p12_password must be 1 to 1024 characters';
  const refusals: readonly [body: unknown, error: string][] = [
    ['x', 'invalid JSON body: expected an object'],
    ['[]', 'invalid JSON body: expected an object'],
    [{ common_name: 7 }, name],
    [{ common_name: '' }, name],
    [{ common_name: ' ' }, name],
    [{ common_name: 'x'.repeat(65) }, name],
    [{ common_name: '\u0007' }, name],
    [{ p12_profile: 'rc2' }, 'p12_profile must be modern or compat'],
    [{ p12_profile: 1 }, 'p12_profile must be modern or compat'],
    [{ p12_profile: '' }, 'p12_profile must be modern or compat'],
  ];
  for (const [body, error] of refusals) assertRefused(await register(app, body, work), 400, error);
  for (const value of ['', 7, 'x'.repeat(1025), 'a\0b', '\ud800']) {
    assertRefused(await register(app, { p12_password: value }, work), 400, password);
  }
  assert.equal(certificates(app), 0);
  const longest = { common_name: 'x'.repeat(64), p12_password: '\u00e9'.repeat(1024) };
  const { status, bundle } = await register(app, longest, work);
  assert.equal(status, 200);
  createSecureContext({ pfx: bundle, passphrase: longest.p12_password });
});

test('POST /register: while a bundle with a password is made, others register and passwords are checked', async (t) => {
  const app = await startApp(t, PKI);
  await createAuthority(app);
  const id = await app.store('x', { 'X-Paste-Password': 'right' });
  const answered: string[] = [];
  const noted = async (name: string, answer: Promise<{ status: number }>): Promise<void> => {
    answered.push(`${name} ${(await answer).status}`);
  };
  const slow = noted('slow', register(app, { p12_password: 'x' }));
  // Two, one after the other: when the first is done, the keys of the slow one are being derived.
  await noted('first', register(app));
  await noted('second', register(app));
  await noted('read', app.request(`/${id}/raw`, { headers: { 'X-Paste-Password': 'wrong' } }));
  await slow;
  assert.deepEqual(answered, ['first 200', 'second 200', 'read 403', 'slow 200']);
});

test('POST /register: without work it is asked for; wrong work is refused by its reason', async (t) => {
  const app = await startWithWork(t);
  const { token, nonce } = await getChallenge(app, PATH);
  const solution = solve(nonce, BITS);
  for (const headers of [{}, { 'X-PoW-Token': token }, { 'X-PoW-Solution': solution }] as Record<string, string>[]) {
    const hint = workHint(app.url, PATH, 'sh pastec register --allow-http');
    assertRefused(await register(app, undefined, headers), 400, 'proof-of-work required', { hint });
  }
  let unsolved = 0;
  while (solve(nonce, BITS) === String(unsolved)) unsolved += 1;
  const wrong = [
    [showing('x', solution), 'malformed token'],
    [showing(token.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')), solution), 'bad signature'],
    [showing(token, 'x'), 'malformed solution'],
    [showing(token, String(unsolved)), 'insufficient work'],
    [await freshWork(app), 'bad signature'],
  ] as const;
  for (const [headers, reason] of wrong) {
    assertRefused(await register(app, undefined, headers), 400, `Proof-of-work failed: ${reason}`, HINT);
  }
  const forPaste = await post(app, 'x', await freshWork(app, PATH));
  assertError(forPaste, 400, 'Proof-of-work failed: bad signature', { hint: 'request a new challenge: GET /challenge' });
  assert.equal((await send(app, 'GET /pki')).json['ca_exists'], false, 'none of it made a CA');
  assert.equal((await register(app, undefined, showing(token, solution))).status, 200);

  const late = await freshWork(app, PATH);
  app.clock.advance(300_000);
  assertRefused(await register(app, undefined, late), 400, 'Proof-of-work failed: challenge expired', HINT);
});

test('POST /register: of 20 concurrent uses of a token exactly one buys a certificate, and none later', async (t) => {
  const app = await startWithWork(t);
  await createAuthority(app);
  const work = await freshWork(app, PATH);
  const answers = await Promise.all(Array.from({ length: 20 }, () => register(app, undefined, work)));
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  const used = 'Proof-of-work failed: challenge already used';
  for (const answer of answers) if (answer.status !== 200) assertRefused(answer, 400, used, HINT);
  assertRefused(await register(app, undefined, work), 400, used, HINT);
  assert.equal(certificates(app), 1);
});

test('POST /register: 20 concurrent first registrations make one CA, one admin and 20 serials', async (t) => {
  const app = await startApp(t, PKI);
  const names = Array.from({ length: 20 }, (_, n) => `client ${n}`);
  const answers = await Promise.all(names.map((name) => register(app, { common_name: name })));
  assert.deepEqual(answers.map(({ status }) => status), names.map(() => 200));
  assert.equal(answers.filter(({ headers }) => headers.get('x-is-admin') === '1').length, 1);
  assert.equal(selectValue(app.config.databasePath, 'SELECT count(DISTINCT serial) FROM certificates'), 20);
  assert.equal(selectValue(app.config.databasePath, 'SELECT sum(is_admin) FROM certificates'), 1);
  const created = "SELECT count(*) FROM audit WHERE event = 'cert_issued' AND details LIKE '%\"type\":\"ca\"%'";
  assert.equal(selectValue(app.config.databasePath, created), 1);
  if (!isInstalled(t, 'openssl')) return;
  const folder = temporaryFolder(t);
  const ca = new X509Certificate(await authorityPem(app));
  for (const { bundle } of [answers[0]!, answers[19]!]) {
    const [client, chained] = openBundle(folder, bundle).certificates;
    assert.ok(client?.verify(ca.publicKey));
    assert.equal(chained?.fingerprint, ca.fingerprint);
  }
});

test('POST /register: needs the CA password, whether there is a CA or not', async (t) => {
  const app = await startApp(t, { ...PKI, pkiEnabled: false, pkiCaPassword: '' });
  assertRefused(await register(app), 500, 'CA password not configured');
  assert.equal(certificates(app), 0);
});

test('POST /register: what it issues is trusted, audited, and listed for whoever asked for it', async (t) => {
  const app = await startApp(t, { ...PKI, maxAnonBytes: 10, maxAuthBytes: 20 });
  const requester = newFingerprint();
  const { headers } = await register(app, { common_name: 'alice' }, { 'X-SSL-Client-SHA1': requester });
  const fingerprint = headers.get('x-fingerprint-sha1') ?? '';
  assertStored(await post(app, 'x'.repeat(20), { 'X-SSL-Client-SHA1': fingerprint }));
  const { json } = await send(app, 'GET /pki/certs', { as: requester });
  const [record] = json['certificates'] as Record<string, unknown>[];
  assert.deepEqual([json['count'], record?.['fingerprint_sha1'], record?.['issued_to']], [1, fingerprint, requester]);
  const admin = { fingerprint_sha1: fingerprint } as Issued;
  const entries = await audited(app, admin);
  assert.deepEqual(entries.map(({ event, client_id }) => [event, client_id]), [
    ['cert_issued', requester], ['cert_issued', requester], ['admin_granted', requester],
  ]);
  assert.deepEqual(entries.map(({ details }) => details['type']), ['ca', 'client', undefined]);
});

test('POST /register: what can\'t be stored costs nothing: nobody is admin, and the token is still good', async (t) => {
  const app = await startWithWork(t);
  await createAuthority(app);
  const work = await freshWork(app, PATH);
  // A second connection makes the last statement of the transaction fail, as a fault of the storage would.
  const db = new DatabaseSync(app.config.databasePath, { timeout: 5000 });
  t.after(() => db.close());
  db.exec("CREATE TRIGGER broken BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'broken'); END");
  assertRefused(await register(app, undefined, work), 500, 'certificate issuance failed');
  assert.equal(certificates(app), 0);
  assert.equal(selectValue(app.config.databasePath, 'SELECT count(*) FROM spent_challenges'), 0);
  db.exec('DROP TRIGGER broken');
  const { status, headers } = await register(app, undefined, work);
  assert.deepEqual([status, headers.get('x-is-admin')], [200, '1']);
  const failures = app.logged.filter(({ event }) => event === 'issuance failed');
  assert.deepEqual(failures.map(({ level, logger }) => [level, logger]), [['error', 'pki']]);
});

test('POST /register: a bundle that can\'t be made costs nothing: no admin, and the token is still good', async (t) => {
  const app = await startWithWork(t);
  const broken = t.mock.method(BundleThread.prototype, 'make', () => Promise.reject(new Error('no thread')));
  const work = await freshWork(app, PATH);
  assertRefused(await register(app, undefined, work), 500, 'certificate issuance failed');
  assert.equal(broken.mock.callCount(), 1);
  assert.equal(selectValue(app.config.databasePath, 'SELECT count(*) FROM certificates'), 0);
  broken.mock.restore();
  const { status, headers } = await register(app, undefined, work);
  assert.deepEqual([status, headers.get('x-is-admin')], [200, '1']);
});
