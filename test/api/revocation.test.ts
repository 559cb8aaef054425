// POST /pki/revoke/{serial} and the certificate revocation list over real sockets, and certifying the key of a signing
// request. openssl is the judge of the list.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { createPrivateKey } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { certificateCommands } from '../../src/store/certificates.ts';
import { startApp, type RunningApp } from '../support/app.ts';
import { newFingerprint, presenting } from '../support/certificates.ts';
import {
  audited, authorityPem, certificateOf, createAuthority, issue, openssl, PKI, requestByOpenssl, send, withAdmin,
  withRestarted, writeFiles, type Issued,
} from '../support/pki.ts';
import { assertError, post, statusCounts } from '../support/posting.ts';
import { isInstalled, run, temporaryFolder } from '../support/programs.ts';
import { head, openRaw } from '../support/raw-http.ts';
import { makeRequestPem, p384 } from '../support/request.ts';

/** A list begins five minutes before it is made. */
const BACKDATE_MS = 300_000;
const HALF_LIFE_MS = 3.5 * 86_400_000 - BACKDATE_MS;
const SIGN_IN = { hint: 'present a client certificate' };
const STRANGER = newFingerprint();

const REASONS = {
  keyCompromise: 'Key Compromise',
  affiliationChanged: 'Affiliation Changed',
  superseded: 'Superseded',
  cessationOfOperation: 'Cessation Of Operation',
  privilegeWithdrawn: 'Privilege Withdrawn',
};

function revoke(app: RunningApp, serial: string, as?: string, body?: unknown) {
  return send(app, `POST /pki/revoke/${serial}`, { body, ...(as === undefined ? {} : { as }) });
}

/** Writes the list into a folder as `ca.crl.pem`, beside `ca.crt`. */
async function fetchCrl(app: RunningApp, folder: string): Promise<void> {
  const response = await app.request('/pki/ca.crl.pem');
  assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/x-pem-file']);
  writeFiles(folder, { 'ca.crl.pem': await response.text(), 'ca.crt': await authorityPem(app) });
}

/** What openssl says about that list. */
async function describeCrl(app: RunningApp, folder: string): Promise<string> {
  await fetchCrl(app, folder);
  return openssl(folder, 'crl', '-in', 'ca.crl.pem', '-noout', '-text', '-CAfile', 'ca.crt');
}

/** Number, start and serials of the list. */
async function readCrl(app: RunningApp, folder: string): Promise<{ number: number; from: number; serials: string[] }> {
  const text = await describeCrl(app, folder);
  assert.match(text, /verify OK/);
  const [, number] = /X509v3 CRL Number: \s+(\d+)/.exec(text) ?? [];
  const [, from = ''] = /Last Update: (.+)/.exec(text) ?? [];
  const serials = [...text.matchAll(/Serial Number: ([0-9A-F]+)/g)].map(([, serial = '']) => serial.toLowerCase());
  return { number: Number(number), from: Date.parse(from), serials };
}

/** Whether openssl accepts the certificate at this moment of the server, going by its list. */
async function isAccepted(app: RunningApp, folder: string, { certificate_pem: pem }: Issued): Promise<boolean> {
  await fetchCrl(app, folder);
  writeFiles(folder, { 'client.crt': pem });
  const at = ['-attime', String(app.clock.unixMs() / 1000 + 1)];
  const args = ['verify', ...at, '-crl_check', '-CRLfile', 'ca.crl.pem', '-CAfile', 'ca.crt', 'client.crt'];
  const { status, output } = run('openssl', args, folder);
  if (status !== 0) assert.match(output, /certificate revoked/);
  return status === 0;
}

/** As the command line does it: on a connection of its own, beside the running server. */
function revokeElsewhere(t: TestContext, app: RunningApp, serial: string): void {
  const db = new DatabaseSync(app.config.databasePath, { timeout: 5000 });
  t.after(() => db.close());
  const nowSeconds = app.clock.unixMs() / 1000;
  const revoked = {
    time: nowSeconds, event: 'cert_revoked', outcome: 'success', clientId: null, clientIp: null, details: { serial },
  } as const;
  const outcome = certificateCommands(db).revokeCertificate({ serial, nowSeconds, reason: null, revoked });
  assert.equal(outcome.refused, null);
}

test('a holder who is revoked while a body is on its way revokes nothing with it, and is named nowhere', async (t) => {
  const app = await startApp(t, { ...PKI, registerPowDifficultyBits: 0 });
  const admin = await withAdmin(app);
  const holder = await issue(app, 'stolen');
  const obtained = await issue(app, 'other', { as: holder.fingerprint_sha1 });
  const body = JSON.stringify({ common_name: 'late' });
  const targets = [`POST /pki/revoke/${obtained.serial}`, `POST /pki/revoke/${holder.serial}`];
  targets.push('POST /pki/issue', 'POST /register');
  const connections = await Promise.all(targets.map(async (target) => {
    const connection = await openRaw(t, app.port);
    const shown = `X-SSL-Client-SHA1: ${holder.fingerprint_sha1}`;
    connection.send(head(`${target} HTTP/1.1`, shown, `Content-Length: ${body.length}`, 'Expect: 100-continue'));
    assert.equal((await connection.next()).status, 100);
    return connection;
  }));
  assert.equal((await revoke(app, holder.serial, holder.fingerprint_sha1)).status, 200);
  const answers = [];
  for (const connection of connections) {
    connection.send(body);
    answers.push(await connection.next());
  }
  assert.deepEqual(answers.map(({ status }) => status), [401, 409, 201, 200]);
  const rows = new DatabaseSync(app.config.databasePath, { readOnly: true, timeout: 5000 });
  t.after(() => rows.close());
  const find = rows.prepare('SELECT revoked_at FROM certificates WHERE serial = ?');
  assert.equal(find.get(obtained.serial)?.['revoked_at'], null);
  const late = rows.prepare("SELECT issued_to FROM certificates WHERE common_name = 'late'");
  assert.deepEqual(late.all().map((row) => row['issued_to']), [null, null]);
  const entries = (await audited(app, admin, '&event=cert_issued')).slice(-2);
  assert.deepEqual(entries.map(({ details, client_id: id }) => [details['common_name'], id]), [['late', null], ['late', null]]);
});

test('POST /pki/revoke/{serial}: 401, 404, 403 and 200, then 409, also to the holder of what is revoked', async (t) => {
  const app = await startApp(t, PKI);
  const admin = await withAdmin(app);
  const requester = newFingerprint();
  const client = await issue(app, 'alice', { as: requester });
  const unknown = '4'.repeat(32);
  for (const serial of [client.serial, unknown, 'x']) {
    assertError(await revoke(app, serial), 401, 'authentication required', SIGN_IN);
  }
  for (const serial of [unknown, client.serial.slice(1), `${client.serial}0`, 'x', '%20', 'g'.repeat(32)]) {
    assertError(await revoke(app, serial, requester), 404, 'certificate not found');
  }
  for (const other of [STRANGER, admin.fingerprint_sha1]) {
    assertError(await revoke(app, client.serial, other), 403, 'permission denied');
  }
  const { status, json } = await revoke(app, client.serial.toUpperCase(), client.fingerprint_sha1);
  assert.deepEqual({ status, ...json }, { status: 200, message: 'certificate revoked', serial: client.serial });
  for (const again of [client.fingerprint_sha1, requester, STRANGER]) {
    const answer = await revoke(app, client.serial, again);
    assertError(answer, 409, 'certificate already revoked');
    assert.equal(answer.json['hint'], undefined);
  }
  assertError(await revoke(app, client.serial), 401, 'authentication required', SIGN_IN);
  assertError(await revoke(app, admin.serial, client.fingerprint_sha1), 401, 'authentication required', SIGN_IN);

  const second = await issue(app, 'bob', { as: requester });
  assert.equal((await revoke(app, second.serial, requester)).status, 200, 'whoever obtained it may revoke it');
  const entries = await audited(app, admin, '&event=cert_revoked');
  assert.deepEqual(entries.map(({ outcome, client_id, details }) => ({ outcome, client_id, details })), [
    {
      outcome: 'success',
      client_id: client.fingerprint_sha1,
      details: { serial: client.serial, fingerprint: client.fingerprint_sha1 },
    },
    {
      outcome: 'success',
      client_id: requester,
      details: { serial: second.serial, fingerprint: second.fingerprint_sha1 },
    },
  ]);
});

test('POST /pki/revoke/{serial}: of 20 concurrent requests one is 200', async (t) => {
  const app = await startApp(t, PKI);
  const admin = await withAdmin(app);
  const { serial, fingerprint_sha1: holder } = await issue(app);
  const answers = await Promise.all(Array.from({ length: 20 }, () => revoke(app, serial, holder)));
  assert.deepEqual(statusCounts(answers), { 200: 1, 409: 19 });
  assert.equal((await audited(app, admin, '&event=cert_revoked')).length, 1);
});

test('POST /pki/revoke/{serial}: takes every reason of the list, and no other', async (t) => {
  const app = await startApp(t, PKI);
  await createAuthority(app);
  const requester = newFingerprint();
  const issueOne = () => issue(app, 'x', { as: requester });
  const client = await issueOne();
  const hint = 'such as keyCompromise or superseded';
  for (const reason of ['', 'KeyCompromise', 'unspecified', 'removeFromCRL', 'cACompromise', 'toString', '__proto__']) {
    assertError(await revoke(app, client.serial, requester, { reason }), 400, 'unknown revocation reason', { hint });
  }
  for (const reason of [1, true, ['superseded'], {}]) {
    assertError(await revoke(app, client.serial, requester, { reason }), 400, 'unknown revocation reason');
  }
  for (const body of ['x', '[]']) {
    const error = 'invalid JSON body: expected an object';
    assertError(await revoke(app, client.serial, requester, body), 400, error);
  }
  assert.equal((await revoke(app, client.serial, requester, { reason: null })).status, 200, 'none of it had revoked');

  const serials = new Map<string, string>();
  for (const [reason, words] of Object.entries(REASONS)) {
    const { serial } = await issueOne();
    assert.equal((await revoke(app, serial, requester, { reason })).status, 200);
    serials.set(serial, words);
  }
  if (!isInstalled(t, 'openssl')) return;
  const text = await describeCrl(app, temporaryFolder(t));
  const reasons = [...text.matchAll(/Serial Number: ([0-9A-F]+)(?:(?!Serial)[^])*?Reason Code: \s+(.+)/g)];
  assert.deepEqual(new Map(reasons.map(([, serial = '', words = '']) => [serial.toLowerCase(), words])), serials);
});

test('a revoked certificate: its holder is anonymous from the answer on, and is audited', async (t) => {
  const app = await startApp(t, { ...PKI, maxAnonBytes: 10, maxAuthBytes: 20 });
  const admin = await withAdmin(app);
  const client = await issue(app);
  const fingerprint = client.fingerprint_sha1;
  const id = await app.store('x'.repeat(20), presenting(fingerprint));
  assert.equal((await revoke(app, client.serial, fingerprint)).status, 200);

  const tooLarge = { size: 20, max_size: 10, authenticated: false };
  assertError(await post(app, 'x'.repeat(20), presenting(fingerprint)), 413, 'paste too large', tooLarge);
  for (const request of [`DELETE /${id}`, 'GET /pastes', 'GET /audit']) {
    const hint = request.startsWith('DELETE') ? { hint: `send X-Delete-Token, or ${SIGN_IN.hint}` } : SIGN_IN;
    assertError(await send(app, request, { as: fingerprint }), 401, 'authentication required', hint);
  }
  assert.deepEqual((await send(app, 'GET /pki/certs', { as: fingerprint })).json, {
    certificates: [], count: 0, total: 0, limit: 1000, offset: 0,
  });
  const created = await post(app, 'x', presenting(fingerprint));
  assert.deepEqual([created.status, 'owner' in created.json], [201, false]);
  const failures = await audited(app, admin, '&event=auth_failure');
  assert.deepEqual(failures.map(({ outcome, client_id, details }) => ({ outcome, client_id, ...details })), Array.from(
    { length: 6 },
    () => ({ outcome: 'failure', client_id: fingerprint, fingerprint, reason: 'revoked' }),
  ));
});

test('an admin who is revoked is no admin any more, and the next certificate makes none', async (t) => {
  const app = await startApp(t, PKI);
  const admin = await withAdmin(app);
  assert.equal((await revoke(app, admin.serial, admin.fingerprint_sha1)).status, 200);
  assertError(await send(app, 'GET /audit', { as: admin.fingerprint_sha1 }), 401, 'authentication required', SIGN_IN);
  assert.equal((await issue(app)).is_admin, false);
});

test('GET /pki/ca.crl: 404 without a CA; then DER and PEM of the same list', async (t) => {
  const app = await startApp(t, PKI);
  for (const path of ['/pki/ca.crl', '/pki/ca.crl.pem']) {
    assertError(await send(app, `GET ${path}`), 404, 'CA not initialized');
  }
  await createAuthority(app);
  const der = await app.request('/pki/ca.crl');
  assert.deepEqual([der.status, der.headers.get('content-type')], [200, 'application/pkix-crl']);
  const pem = await (await app.request('/pki/ca.crl.pem')).text();
  const [, base64 = ''] = /^-----BEGIN X509 CRL-----\n([^-]+)-----END X509 CRL-----\n$/.exec(pem) ?? [];
  assert.deepEqual(Buffer.from(base64, 'base64'), Buffer.from(await der.arrayBuffer()));
});

test('GET /pki/ca.crl: openssl -crl_check refuses what was revoked, here or elsewhere, from then on', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t, PKI);
  const folder = temporaryFolder(t);
  await createAuthority(app);
  const [kept, revoked, elsewhere] = [await issue(app), await issue(app), await issue(app)];
  const first = app.clock.unixMs() / 1000;
  const from = (): number => app.clock.unixMs() - BACKDATE_MS;
  assert.deepEqual(await readCrl(app, folder), { number: first, from: from(), serials: [] });
  for (const client of [kept, revoked, elsewhere]) assert.equal(await isAccepted(app, folder, client), true);

  await revoke(app, revoked.serial, revoked.fingerprint_sha1);
  assert.equal(await isAccepted(app, folder, revoked), false);
  assert.deepEqual(await readCrl(app, folder), { number: first + 1, from: from(), serials: [revoked.serial] });

  const ownerNow = async () => (await post(app, 'x', presenting(elsewhere.fingerprint_sha1))).json['owner'];
  assert.equal(await ownerNow(), elsewhere.fingerprint_sha1.slice(0, 12));
  app.clock.advance(1000);
  revokeElsewhere(t, app, elsewhere.serial);
  assert.equal(await ownerNow(), undefined);
  assert.equal(await isAccepted(app, folder, elsewhere), false);
  assert.equal(await isAccepted(app, folder, kept), true);
  const { number, serials } = await readCrl(app, folder);
  assert.deepEqual([number, serials], [first + 2, [revoked.serial, elsewhere.serial]]);
});

test('GET /pki/ca.crl: the same list until half its life is over, then a new one of a larger number', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t, PKI);
  const folder = temporaryFolder(t);
  await createAuthority(app);
  const first = await readCrl(app, folder);
  app.clock.advance(HALF_LIFE_MS - 1);
  assert.deepEqual(await readCrl(app, folder), first);
  app.clock.advance(1);
  const number = first.number + HALF_LIFE_MS / 1000;
  assert.deepEqual(await readCrl(app, folder), { number, from: first.from + HALF_LIFE_MS, serials: [] });
  app.clock.jump(-HALF_LIFE_MS);
  const mended = { number: number + 1, from: first.from, serials: [] };
  assert.deepEqual(await readCrl(app, folder), mended, 'none from the future, and a larger number');

  await withRestarted(t, app, {}, async (after) => {
    assert.deepEqual(await readCrl(after, folder), mended, 'kept over a restart');
  });
});

test('GET /pki/ca.crl: under concurrent revocations every list has all that were answered before', async (t) => {
  const app = await startApp(t, PKI);
  await createAuthority(app);
  const clients = await Promise.all(Array.from({ length: 20 }, () => issue(app)));
  await Promise.all(clients.map(async ({ serial, fingerprint_sha1 }) => {
    assert.equal((await revoke(app, serial, fingerprint_sha1)).status, 200);
    const list = Buffer.from(await (await app.request('/pki/ca.crl')).arrayBuffer());
    assert.ok(list.includes(Buffer.from(serial, 'hex')));
  }));
});

test('GET /pki/ca.crl: without the CA password, or with a wrong one, the kept list is served while it is good', async (t) => {
  const app = await startApp(t, PKI);
  const client = await withAdmin(app);
  const list = await (await app.request('/pki/ca.crl.pem')).text();
  const errors = { '': 'CA password not configured', wrong: 'certificate issuance failed' };
  for (const [pkiCaPassword, error] of Object.entries(errors)) {
    await withRestarted(t, app, { pkiCaPassword }, async (after) => {
      for (const ms of [0, HALF_LIFE_MS, HALF_LIFE_MS + BACKDATE_MS - 1000]) {
        after.clock.advance(ms);
        assert.equal(await (await after.request('/pki/ca.crl.pem')).text(), list, `${error}, ${ms} ms later`);
      }
      after.clock.advance(1000);
      assertError(await send(after, 'GET /pki/ca.crl.pem'), 500, error);
    });
  }
  await withRestarted(t, app, { pkiCaPassword: '' }, async (after) => {
    assert.equal((await revoke(after, client.serial, client.fingerprint_sha1)).status, 200);
    assertError(await send(after, 'GET /pki/ca.crl.pem'), 500, 'CA password not configured');
  });
});

test('POST /pki/issue with a csr: a request by openssl gets a certificate for its key, and no key', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t, PKI);
  await createAuthority(app);
  const folder = temporaryFolder(t);
  const csr = requestByOpenssl(folder, 'device');
  const issued = await issue(app, 'alice', { body: { csr } });
  assert.equal('private_key_pem' in issued, false);
  assert.equal(issued.is_admin, true);
  const certificate = certificateOf(issued);
  assert.equal(certificate.subject, 'CN=alice', 'the subject of the request is not taken');
  const key = openssl(folder, 'pkey', '-in', 'device.key');
  assert.ok(certificate.checkPrivateKey(createPrivateKey(key)));
  writeFiles(folder, { 'client.crt': issued.certificate_pem, 'ca.crt': await authorityPem(app) });
  const purpose = ['-x509_strict', '-purpose', 'sslclient', '-attime', String(issued.created_at)];
  const verified = openssl(folder, 'verify', ...purpose, '-CAfile', 'ca.crt', 'client.crt');
  assert.equal(verified, 'client.crt: OK\n');

  const again = openssl(folder, 'req', '-new', '-key', 'device.key', '-subj', '/CN=again');
  for (const request of [csr, again]) {
    const answer = await send(app, 'POST /pki/issue', { body: { common_name: 'bob', csr: request } });
    assertError(answer, 400, 'the public key already has a certificate');
  }
  const otherCurve = requestByOpenssl(folder, 'other', 'prime256v1');
  const refused = await send(app, 'POST /pki/issue', { body: { common_name: 'bob', csr: otherCurve } });
  assert.equal(refused.status, 400);
});

test('POST /pki/issue with a csr: of 8 concurrent requests with one key one gets a certificate', async (t) => {
  const app = await startApp(t, PKI);
  await createAuthority(app);
  const csr = makeRequestPem();
  const body = { common_name: 'alice', csr };
  const answers = await Promise.all(Array.from({ length: 8 }, () => send(app, 'POST /pki/issue', { body })));
  assert.deepEqual(statusCounts(answers), { 201: 1, 400: 7 });
});

test('POST /pki/issue with a csr: what can\'t be taken is 400 with a hint that says what to change', async (t) => {
  const app = await startApp(t, PKI);
  await createAuthority(app);
  const good = makeRequestPem();
  const refusals: readonly [csr: unknown, hint: RegExp][] = [
    ['', /one PEM block/],
    ['x', /one PEM block/],
    [7, /^csr must be PEM text$/],
    [`${good}${good}`, /one PEM block/],
    [good.replace(/\n/, '\nx'), /./],
    [`${good}${' '.repeat(8 * 1024)}`, /at most 8192/],
    [makeRequestPem({ digest: 'sha1' }), /SHA-256, SHA-384 or SHA-512/],
    [makeRequestPem({ spki: p384().publicKey.export({ type: 'spki', format: 'der' }) }), /signature does not match/],
  ];
  for (const [csr, hint] of refusals) {
    const { status, json } = await send(app, 'POST /pki/issue', { body: { common_name: 'x', csr } });
    assert.deepEqual([status, json['error']], [400, 'certificate signing request not acceptable'], String(csr));
    assert.match(String(json['hint']), hint);
  }
  for (const csr of [good, null]) {
    assert.equal((await send(app, 'POST /pki/issue', { body: { common_name: 'x', csr } })).status, 201);
  }
});
