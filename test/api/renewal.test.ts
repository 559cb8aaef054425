// POST /register with a key of one's own, and POST /register/renew, over real sockets: what a holder keeps from one
// certificate to the next. The statements and their races: unit/store-governing.test.ts.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { BundleThread } from '../../src/authority/pkcs12.ts';
import { type RunningApp, startApp } from '../support/app.ts';
import { insertCertificate, newFingerprint, presenting } from '../support/certificates.ts';
import {
  audited, type Issued, issue, openssl, PKI, register, requestByOpenssl, send, withAdmin, writeFiles,
} from '../support/pki.ts';
import { assertError, assertStored, from, post, rateOf, statusCounts } from '../support/posting.ts';
import { isInstalled, temporaryFolder } from '../support/programs.ts';
import { head, onlyAnswer, openRaw } from '../support/raw-http.ts';
import { makeRequestPem, p384 } from '../support/request.ts';
import { CREATED_AT, selectValue } from '../support/store.ts';
import { askTls, pairOfIssued, startTlsApp } from '../support/tls.ts';
import { freshWork } from '../support/work.ts';

const RENEW = 'POST /register/renew';
const SIGN_IN = { hint: 'present a client certificate' };
const YEAR_SECONDS = 365 * 86_400;

/** Renews with a request for a certificate; the key in it is one's own. */
async function renew(app: RunningApp, as: string, body: object = { csr: makeRequestPem() }): Promise<Issued> {
  const { status, json } = await send(app, RENEW, { as, body });
  assert.equal(status, 201, JSON.stringify(json));
  return json as unknown as Issued;
}

/** Renews into a bundle; the fingerprint is in a header. */
async function renewBundle(app: RunningApp, as: string, body = '{}'): Promise<{ response: Response; bundle: Buffer }> {
  const headers = { ...presenting(as), 'Content-Type': 'application/json' };
  const response = await app.request('/register/renew', { method: 'POST', headers, body });
  return { response, bundle: Buffer.from(await response.arrayBuffer()) };
}

async function statusOf(app: RunningApp, request: string, as: string, body?: string): Promise<number> {
  const [method = '', path = ''] = request.split(' ');
  const response = await app.request(path, { method, headers: presenting(as), ...(body === undefined ? {} : { body }) });
  await response.arrayBuffer();
  return response.status;
}

/** Whether that fingerprint counts: a request to list its pastes is not refused. */
async function isHolder(app: RunningApp, as: string): Promise<boolean> {
  return (await statusOf(app, 'GET /pastes', as)) === 200;
}

test('POST /register with a csr: the certificate alone, for the key that its owner has', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t, { ...PKI, pkiEnabled: false });
  const folder = temporaryFolder(t);
  const csr = requestByOpenssl(folder, 'mine');
  const { status, headers, json } = await register(app, { common_name: ' alice ', csr });
  assert.equal(status, 201);
  const issued = json as unknown as Issued;
  assert.deepEqual(Object.keys(json), [
    'message', 'serial', 'common_name', 'fingerprint_sha1', 'created_at', 'expires_at', 'certificate_pem', 'is_admin',
  ]);
  assert.deepEqual([json['common_name'], json['is_admin'], json['created_at']], ['alice', true, CREATED_AT]);
  const shown = ['content-type', 'x-fingerprint-sha1', 'x-certificate-expires', 'x-is-admin'];
  assert.deepEqual(shown.map((name) => headers.get(name)), [
    'application/json', issued.fingerprint_sha1, String(CREATED_AT + YEAR_SECONDS), '1',
  ]);
  const certificate = new X509Certificate(issued.certificate_pem);
  assert.equal(certificate.subject, 'CN=alice');
  assert.ok(certificate.checkPrivateKey(createPrivateKey(openssl(folder, 'pkey', '-in', 'mine.key'))));
  assertStored(await post(app, 'x'.repeat(5_000_000), presenting(issued.fingerprint_sha1)), 'it is trusted');

  const taken = await register(app, { csr });
  assert.deepEqual([taken.status, taken.json['error']], [400, 'the public key already has a certificate']);
  const unnamed = await register(app, { csr: makeRequestPem() });
  assert.match(String(unnamed.json['common_name']), /^[0-9a-f]{8}-/);
});

test('POST /register with a csr: what can not be taken is 400, and costs no work or invitation', async (t) => {
  const app = await startApp(t, PKI);
  const csr = makeRequestPem();
  const beside = 'p12_profile and p12_password are for a bundle with a key: leave them out beside csr';
  for (const [body, hint] of [
    [{ csr: 7 }, /^csr must be PEM text$/],
    [{ csr: 'x' }, /PEM block/],
    [{ csr: `${csr}${' '.repeat(8 * 1024)}` }, /at most 8192/],
    [{ csr, p12_profile: 'modern' }, beside],
    [{ csr, p12_password: 'x' }, beside],
    [{ csr, p12_password: 7 }, beside],
  ] as const) {
    const { status, json } = await register(app, body);
    assert.deepEqual([status, json['error']], [400, 'certificate signing request not acceptable'], JSON.stringify(body));
    if (typeof hint === 'string') assert.equal(json['hint'], hint);
    else assert.match(String(json['hint']), hint);
  }
  assert.equal(selectValue(app.config.databasePath, 'SELECT count(*) FROM authority'), 0, 'nor is a CA made for it');
  assert.equal((await register(app, { csr, p12_profile: null, p12_password: null })).status, 201);
});

test('POST /register: with one token not for ever, as what is refused spends no work', async (t) => {
  const app = await startApp(t, { ...PKI, registerPowDifficultyBits: 1, lookupRateMax: 4 });
  const csr = makeRequestPem();
  assert.equal((await register(app, { csr }, await freshWork(app, '/register/challenge'))).status, 201);
  const headers = await freshWork(app, '/register/challenge');
  // The last one would have a key made, but is refused.
  for (const [body, status] of [[{ csr }, 400], [{ csr: 'x' }, 400], [{ common_name: 'Paste Service CA' }, 400], [{}, 429]] as const) {
    assert.equal((await register(app, body, headers)).status, status, JSON.stringify(body));
  }
  app.clock.advance(60_000);
  assert.equal((await register(app, {}, headers)).status, 200, 'it was not spent');
});

test('a name that is the authority\'s is 400: its own issuer would be the certificate itself', async (t) => {
  const app = await startApp(t, PKI);
  await withAdmin(app);
  const { status, json } = await register(app, { common_name: ' Paste Service CA' });
  const error = 'common_name must be 1 to 64 characters without control characters';
  assert.deepEqual({ status, ...json }, { status: 400, error, hint: 'this is the name of the authority' });
  const old = insertCertificate(app.config.databasePath, { commonName: 'Paste Service CA' });
  assert.equal((await renewBundle(app, old.fingerprint)).response.status, 200, 'one of an earlier release is renewed');
});

test('names that mislead are 400 with a hint, and a holder of one from an earlier release renews it', async (t) => {
  const app = await startApp(t, PKI);
  await withAdmin(app);
  const error = 'common_name must be 1 to 64 characters without control characters';
  for (const name of ['a\u0007b', 'a\u200bb', 'a\u202eb', 'a\ue000', '\ufdd0', 'a\u061c', 'a\u00ad', '\u2764\ufe0f']) {
    const { status, json } = await register(app, { common_name: name });
    const hint = name.includes('\u0007') ? {} : { hint: 'leave out what is invisible, as in some emoji, or for private use' };
    assert.deepEqual({ status, ...json }, { status: 400, error, ...hint });
  }
  for (const commonName of ['a\u200cb', 'alice\u00ad', 'alice\u2800', '\u2764\ufe0f', 'a\u{e0041}', '\u3164', 'a\ufff9']) {
    const old = insertCertificate(app.config.databasePath, { commonName });
    const { certificate_pem: pem } = await renew(app, old.fingerprint);
    assert.equal(new X509Certificate(pem).subject, `CN=${commonName}`);
  }
});

test('POST /register/renew: 401, 403 and 200, before the body; nobody works or is invited', async (t) => {
  const app = await startApp(t, { ...PKI, registerPowDifficultyBits: 20, registerBy: 'off', pkiEnabled: false });
  const { databasePath } = app.config;
  const hint = 'only a certificate of this service can be renewed: register';
  const holder = (given: object) => insertCertificate(databasePath, given).fingerprint;
  const refusals: readonly [as: string | undefined, status: number, error: string, members: object][] = [
    [undefined, 401, 'authentication required', SIGN_IN],
    [holder({ revokedAt: CREATED_AT }), 401, 'authentication required', SIGN_IN],
    [holder({ expiresAt: CREATED_AT }), 401, 'authentication required', SIGN_IN],
    [newFingerprint(), 403, 'permission denied', { hint }],
  ];
  for (const [as, status, error, members] of refusals) {
    assertError(await send(app, RENEW, as === undefined ? {} : { as }), status, error, members);
    const lines = as === undefined ? [] : [`X-SSL-Client-SHA1: ${as}`];
    const unread = await onlyAnswer(t, app.port, head('POST /register/renew HTTP/1.1', 'Content-Length: 9', ...lines));
    assert.deepEqual([unread.status, unread.json()], [status, { error, ...members }]);
  }
  const alice = holder({});
  assertError(await send(app, RENEW, { as: alice }), 404, 'CA not initialized');
  const { status } = await send(app, 'POST /register', { body: {} });
  assert.equal(status, 403, 'closed to those without a certificate');
});

test('POST /register/renew: the new certificate has the same name and holder; the old one goes with its first use', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t, PKI);
  const admin = await withAdmin(app);
  const requester = newFingerprint();
  const old = await issue(app, 'alice', { as: requester });
  const id = await app.store('first', presenting(old.fingerprint_sha1));
  app.clock.advance(1000);
  const renewed = await renew(app, old.fingerprint_sha1);
  assert.deepEqual([renewed.expires_at - renewed.created_at, renewed.created_at], [YEAR_SECONDS, CREATED_AT + 1]);
  assert.equal(new X509Certificate(renewed.certificate_pem).subject, 'CN=alice');
  assert.equal(renewed.is_admin, false);

  // Both are good until the new one is used, since the answer may be lost.
  assert.ok(await isHolder(app, old.fingerprint_sha1));
  const update = (as: string) => statusOf(app, `PUT /${id}`, as, 'changed');
  assert.equal(await update(old.fingerprint_sha1), 200);
  assert.equal(await update(renewed.fingerprint_sha1), 200, 'the first use');
  assert.deepEqual([await update(old.fingerprint_sha1), await isHolder(app, old.fingerprint_sha1)], [401, false]);

  const { json: pastes } = await send(app, 'GET /pastes', { as: renewed.fingerprint_sha1 });
  assert.deepEqual((pastes['pastes'] as { id: string }[]).map((paste) => paste.id), [id]);
  const second = await app.store('second', presenting(renewed.fingerprint_sha1));
  const { json: certs } = await send(app, 'GET /pki/certs', { as: renewed.fingerprint_sha1 });
  const listed = certs['certificates'] as Record<string, unknown>[];
  assert.deepEqual(listed.map((one) => [one['fingerprint_sha1'], one['status'], one['issued_to']]), [
    [renewed.fingerprint_sha1, 'valid', requester], [old.fingerprint_sha1, 'revoked', requester],
  ]);
  const { json: obtained } = await send(app, 'GET /pki/certs', { as: requester });
  assert.equal(obtained['total'], 2, 'whoever obtained the first sees both');

  const list = await app.request('/pki/ca.crl.pem');
  const folder = temporaryFolder(t);
  writeFiles(folder, { 'ca.crl.pem': await list.text() });
  const text = openssl(folder, 'crl', '-in', 'ca.crl.pem', '-noout', '-text');
  const [, entry = ''] = text.split(`Serial Number: ${old.serial.toUpperCase()}`);
  assert.match(entry.split('Serial Number')[0]!, /Superseded/);
  assert.ok(!text.includes(renewed.serial.toUpperCase()));

  assert.equal(await statusOf(app, `DELETE /${second}`, renewed.fingerprint_sha1), 200);
  const late = await send(app, `POST /pki/revoke/${old.serial}`, { as: requester, body: { reason: 'keyCompromise' } });
  const hint = 'one that took its place by renewal is revoked by itself: ask its holder, or the operator';
  assertError(late, 409, 'certificate already revoked', { hint });
  const holder = old.fingerprint_sha1;
  const entries = await audited(app, admin, `&client_id=${holder}`);
  assert.deepEqual(entries.map(({ event, client_id, details }) => ({ event, client_id, details })), [
    {
      event: 'cert_issued',
      client_id: holder,
      details: {
        type: 'client', common_name: 'alice', fingerprint: renewed.fingerprint_sha1, expires_at: renewed.expires_at,
        renews: old.serial,
      },
    },
    {
      event: 'cert_revoked',
      client_id: holder,
      details: { serial: old.serial, fingerprint: holder, reason: 'superseded' },
    },
    { event: 'auth_failure', client_id: holder, details: { fingerprint: holder, reason: 'revoked' } },
    { event: 'auth_failure', client_id: holder, details: { fingerprint: holder, reason: 'revoked' } },
  ]);
});

test('POST /register/renew: through a chain of renewals an admin stays the admin, and pastes stay its own', async (t) => {
  const app = await startApp(t, PKI);
  const first = await withAdmin(app);
  const id = await app.store('x', presenting(first.fingerprint_sha1));
  let current = first.fingerprint_sha1;
  for (let time = 1; time <= 3; time += 1) {
    const { response } = await renewBundle(app, current);
    assert.deepEqual([response.status, response.headers.get('x-is-admin')], [200, '1']);
    current = String(response.headers.get('x-fingerprint-sha1'));
    assert.equal(await statusOf(app, 'GET /audit', current), 200);
    assert.equal(await statusOf(app, `PUT /${id}`, current, `change ${time}`), 200);
  }
  assert.equal(await statusOf(app, 'GET /audit', first.fingerprint_sha1), 401);
  const stranger = await issue(app, 'stranger');
  assert.equal(stranger.is_admin, false);
  assert.equal(await statusOf(app, 'GET /audit', stranger.fingerprint_sha1), 403);
});

test('auth_failure: the log names the holder, and which certificate of a chain of renewals was presented', async (t) => {
  const app = await startApp(t, PKI);
  const admin = await withAdmin(app);
  const first = await issue(app, 'alice');
  const second = await renew(app, first.fingerprint_sha1);
  const third = await renew(app, second.fingerprint_sha1);
  for (const { fingerprint_sha1: as } of [third, second, first]) await isHolder(app, as);
  const entries = await audited(app, admin, '&event=auth_failure');
  assert.deepEqual(entries.map(({ client_id, details }) => [client_id, details['fingerprint']]), [
    [first.fingerprint_sha1, second.fingerprint_sha1], [first.fingerprint_sha1, first.fingerprint_sha1],
  ]);
});

test('POST /register/renew: a lost answer costs nothing; of those that were lost none is good', async (t) => {
  const app = await startApp(t, PKI);
  await withAdmin(app);
  const old = await issue(app);
  const lost = await renew(app, old.fingerprint_sha1);
  const kept = await renew(app, old.fingerprint_sha1);
  assert.ok(await isHolder(app, old.fingerprint_sha1));
  assert.deepEqual([await isHolder(app, lost.fingerprint_sha1), await isHolder(app, kept.fingerprint_sha1)], [false, true]);
  assert.equal(await isHolder(app, old.fingerprint_sha1), false);
});

test('POST /register/renew: of 20 at once one stays unused, and its first use ends the old one for all', async (t) => {
  const app = await startApp(t, PKI);
  await withAdmin(app);
  const old = await issue(app);
  const body = () => ({ csr: makeRequestPem() });
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(app, RENEW, { as: old.fingerprint_sha1, body: body() })));
  assert.deepEqual(statusCounts(answers), { 201: 20 });
  const valid = () => selectValue(app.config.databasePath, "SELECT count(*) FROM certificates WHERE common_name = 'alice' AND revoked_at IS NULL");
  assert.equal(valid(), 2);
  const uses = await Promise.all(answers.map(({ json }) => isHolder(app, String(json['fingerprint_sha1']))));
  assert.equal(uses.filter((isGood) => isGood).length, 1);
  assert.deepEqual([valid(), await isHolder(app, old.fingerprint_sha1)], [1, false]);
});

test('POST /register/renew: after the first use an old certificate renews nothing, and a revoked one neither', async (t) => {
  const app = await startApp(t, PKI);
  await withAdmin(app);
  const old = await issue(app);
  const { serial, fingerprint_sha1: next } = await renew(app, old.fingerprint_sha1);
  assert.ok(await isHolder(app, next));
  assertError(await send(app, RENEW, { as: old.fingerprint_sha1 }), 401, 'authentication required', SIGN_IN);
  const unused = await renew(app, next);
  const revoked = await send(app, `POST /pki/revoke/${serial}`, { as: next, body: { reason: 'keyCompromise' } });
  assert.equal(revoked.status, 200);
  assert.equal(await isHolder(app, unused.fingerprint_sha1), false, 'whoever stole the key may have renewed with it');
});

test('POST /register/renew: begun with an old certificate and ended after the new one was used, it gives nothing', async (t) => {
  const app = await startApp(t, PKI);
  await withAdmin(app);
  const old = await issue(app);
  const body = JSON.stringify({ csr: makeRequestPem() });
  const thief = await openRaw(t, app.port);
  const lines = [
    `X-SSL-Client-SHA1: ${old.fingerprint_sha1}`, 'Content-Type: application/json', `Content-Length: ${body.length}`,
    'Expect: 100-continue',
  ];
  thief.send(head('POST /register/renew HTTP/1.1', ...lines));
  assert.equal((await thief.next()).status, 100, 'it was let in');
  const renewed = await renew(app, old.fingerprint_sha1);
  assert.ok(await isHolder(app, renewed.fingerprint_sha1));
  thief.send(body);
  const { status, json } = await thief.next();
  assert.deepEqual([status, json()['error']], [409, 'certificate already revoked']);
  assert.ok(await isHolder(app, renewed.fingerprint_sha1));
});

test('POST /register/renew: a request for the same key again, or a bundle as of POST /register', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t, PKI);
  await withAdmin(app);
  const csr = makeRequestPem({ keys: p384() });
  const old = await issue(app, 'alice', { body: { csr } });
  const again = await renew(app, old.fingerprint_sha1, { csr });
  assert.notEqual(again.serial, old.serial);
  const folder = temporaryFolder(t);
  for (const [body, password, scheme] of [
    ['', '', /PBES2, PBKDF2, AES-256-CBC, Iteration 2048/],
    ['{"p12_password":"secret","p12_profile":"compat"}', 'secret', /3-KeyTripleDES-CBC, Iteration 300000/],
  ] as const) {
    const { response, bundle } = await renewBundle(app, old.fingerprint_sha1, body);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'application/x-pkcs12');
    assert.equal(response.headers.get('x-certificate-expires'), String(CREATED_AT + YEAR_SECONDS));
    writeFiles(folder, { 'client.p12': bundle });
    const info = openssl(folder, 'pkcs12', '-in', 'client.p12', '-passin', `pass:${password}`, '-info', '-nokeys', '-legacy');
    assert.match(info, scheme);
    assert.match(info, /subject=CN = alice/);
  }
});

test('POST /register/renew: another name, and parameters of a bundle beside a csr, are 400 and change nothing', async (t) => {
  const app = await startApp(t, PKI);
  await withAdmin(app);
  const { fingerprint_sha1: as } = await issue(app);
  const unused = await renew(app, as);
  const other = await send(app, RENEW, { as, body: { common_name: 'bob' } });
  assert.deepEqual([other.status, other.json['hint']], [400, 'a renewed certificate keeps its name: leave common_name out']);
  for (const body of [{ csr: makeRequestPem(), p12_password: 'x' }, { csr: 'x' }, { p12_profile: 'x' }, 'x']) {
    assert.equal((await send(app, RENEW, { as, body })).status, 400, JSON.stringify(body));
  }
  assert.ok(await isHolder(app, unused.fingerprint_sha1), 'it was not taken back by what was refused');
  assert.equal((await renew(app, unused.fingerprint_sha1, { common_name: ' alice', csr: makeRequestPem() })).is_admin, false);
});

test('POST /register/renew: counts against the creation rate of its address, and tells where that stands', async (t) => {
  const app = await startApp(t, { ...PKI, rateMax: 1, rateTrustedFactor: 3 });
  await send(app, 'POST /pki/ca');
  const { fingerprint_sha1: as } = await issue(app, 'alice', { headers: from('192.0.2.9') });
  const ask = () => send(app, RENEW, { as, body: { csr: makeRequestPem() }, headers: from('192.0.2.1') });
  for (const remaining of [2, 1, 0]) {
    const answer = await ask();
    assert.deepEqual([answer.status, rateOf(answer)?.limit, rateOf(answer)?.remaining], [201, 3, remaining]);
  }
  const limited = await ask();
  assert.deepEqual([limited.status, limited.json['error']], [429, 'rate limit exceeded']);
  const bundle = await app.request('/register/renew', { method: 'POST', headers: { ...presenting(as), ...from('192.0.2.2') } });
  await bundle.arrayBuffer();
  assert.deepEqual([bundle.status, bundle.headers.get('x-ratelimit-remaining')], [200, '2']);
});

test('POST /register/renew: a holder has 24 certificates a day at most, whatever the rate, and other holders have theirs', async (t) => {
  const app = await startApp(t, PKI);
  await withAdmin(app);
  const { fingerprint_sha1: as } = await issue(app);
  app.clock.advance(1000);
  const ask = () => send(app, RENEW, { as, body: { csr: makeRequestPem() } });
  const answers = await Promise.all(Array.from({ length: 30 }, ask));
  assert.deepEqual(statusCounts(answers), { 201: 23, 429: 7 });
  const limited = answers.find(({ status }) => status === 429)!;
  assert.deepEqual([limited.json, limited.headers.get('retry-after')], [{ error: 'rate limit exceeded' }, '86399']);
  assert.ok(await isHolder(app, as), 'it is as good as before');
  const bundles = t.mock.method(BundleThread.prototype, 'make');
  const { response, bundle } = await renewBundle(app, as, '{"p12_password":"x","p12_profile":"compat"}');
  assert.deepEqual([response.status, response.headers.get('retry-after'), bundles.mock.callCount()], [429, '86399', 0], bundle.toString());
  await renew(app, (await issue(app)).fingerprint_sha1);
  app.clock.advance(86_398_000);
  assert.equal((await ask()).status, 429);
  app.clock.advance(1000);
  assert.deepEqual(statusCounts([await ask(), await ask()]), { 201: 1, 429: 1 });
});

test('POST /register/renew over TLS: by the certificate itself; the old one is nobody once the new one was used', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startTlsApp(t, PKI);
  const folder = temporaryFolder(t);
  const json = { 'Content-Type': 'application/json' };
  const keyOf = (name: string) => openssl(folder, 'pkey', '-in', `${name}.key`);
  const paired = (answer: { json: Record<string, unknown> }, name: string) => (
    pairOfIssued({ ...answer.json, private_key_pem: keyOf(name) } as unknown as Issued)
  );
  const first = await app.ask('POST /register', { headers: json, body: JSON.stringify({ csr: requestByOpenssl(folder, 'a') }) });
  assert.equal(first.status, 201);
  const old = paired(first, 'a');
  const stored = await app.ask('POST /', { as: old, body: 'mine' });
  assert.equal(stored.status, 201);
  const csr = requestByOpenssl(folder, 'b');
  const answer = await app.ask(RENEW, { as: old, headers: json, body: JSON.stringify({ csr }) });
  assert.equal(answer.status, 201, JSON.stringify(answer.json));
  const renewed = paired(answer, 'b');
  writeFiles(folder, { 'ca.crt': await caOf(app.port), 'new.crt': renewed.cert });
  assert.equal(openssl(folder, 'verify', '-x509_strict', '-purpose', 'sslclient', '-CAfile', 'ca.crt', 'new.crt'), 'new.crt: OK\n');
  const shown = openssl(folder, 'x509', '-in', 'new.crt', '-noout', '-ext', 'subjectAltName');
  assert.match(shown, /URI:urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n/);
  const path = String(stored.json['url']);
  assert.equal((await app.ask(`PUT ${path}`, { as: renewed, body: 'still mine' })).status, 200);
  assert.equal((await app.ask(`PUT ${path}`, { as: old, body: 'no more' })).status, 401);
  assert.equal((await app.ask(`DELETE ${path}`, { as: renewed })).status, 200);
});

async function caOf(port: number): Promise<string> {
  return (await askTls(port, 'GET /pki/ca.crt')).body.toString();
}

test('a certificate that ends with its CA says so in its answer and in the log, others do not', async (t) => {
  const app = await startApp(t, { ...PKI, pkiCaDays: 400, pkiCertDays: 365 });
  const endOfCa = CREATED_AT + 400 * 86_400;
  const shortened = () => app.logged.filter(({ event }) => event === 'certificate ends with its CA');
  const first = await register(app);
  app.clock.advance(35 * 86_400_000);
  const last = await register(app);
  assert.deepEqual([first, last].map(({ headers }) => headers.get('x-certificate-expires')), [
    String(CREATED_AT + YEAR_SECONDS), String(endOfCa),
  ]);
  assert.deepEqual(shortened(), [], 'to the second as long as the settings say');
  app.clock.advance(1000);
  const { headers } = await renewBundle(app, String(last.headers.get('x-fingerprint-sha1'))).then(({ response }) => response);
  assert.equal(headers.get('x-certificate-expires'), String(endOfCa));
  const [warning, ...others] = shortened();
  const serial = selectValue(app.config.databasePath, 'SELECT serial FROM certificates WHERE is_unused = 1');
  assert.deepEqual([warning?.level, warning?.logger, warning?.details, others.length], ['warning', 'pki', { serial, expires_at: endOfCa }, 0]);
});
