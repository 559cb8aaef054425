// The /pki endpoints over real sockets: the authority, issuing, lists, and what a certificate buys. The authority's key
// is authority-key.test.ts, revoking revocation.test.ts, registration registration.test.ts.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { startApp, type RunningApp } from '../support/app.ts';
import { insertCertificates, newFingerprint, presenting } from '../support/certificates.ts';
import {
  audited, authorityPem, CA_PASSWORD, certificateOf, createAuthority, issue, PKI, send, withAdmin, withRestarted,
} from '../support/pki.ts';
import { assertError, from, post, statusCounts } from '../support/posting.ts';
import { selectValue } from '../support/store.ts';

const DAY_SECONDS = 86_400;
const NAME_ERROR = 'common_name must be 1 to 64 characters without control characters';
const BODY_ERROR = 'invalid JSON body: expected an object';
const STRANGER = newFingerprint();

/** Every endpoint that the switch offers. */
const SWITCHED = [
  'POST /pki/ca', 'GET /pki/ca.crt', 'GET /pki/ca.crl', 'GET /pki/ca.crl.pem', 'POST /pki/issue', 'GET /pki/certs',
  `POST /pki/revoke/${'4'.repeat(32)}`,
];

function nowSeconds({ clock }: RunningApp): number {
  return clock.unixMs() / 1000;
}

/** The certificate's moments, Unix seconds. */
function validityOf({ validFromDate, validToDate }: X509Certificate): [number, number] {
  return [validFromDate.getTime() / 1000, validToDate.getTime() / 1000];
}

test('GET /pki, GET /pki/ca.crt: off, then without a CA, then what the CA is', async (t) => {
  const off = await startApp(t);
  assert.deepEqual((await send(off, 'GET /pki')).json, { enabled: false });

  const app = await startApp(t, { ...PKI, pkiCaDays: 100 });
  const none = await send(app, 'GET /pki');
  assert.equal(none.status, 200);
  assert.deepEqual(none.json, { enabled: true, ca_exists: false, hint: none.json['hint'] });
  assert.equal(typeof none.json['hint'], 'string');
  assertError(await send(app, 'GET /pki/ca.crt'), 404, 'CA not initialized');

  await createAuthority(app);
  const response = await app.request('/pki/ca.crt');
  assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/x-pem-file']);
  const pem = await response.text();
  const lines = /^-----BEGIN CERTIFICATE-----\n(?:[A-Za-z0-9+/]{64}\n)+[A-Za-z0-9+/=]+\n-----END CERTIFICATE-----\n$/;
  assert.match(pem, lines);
  const onlyHead = await app.request('/pki/ca.crt', { method: 'HEAD' });
  assert.deepEqual([onlyHead.headers.get('content-length'), await onlyHead.text()], [String(pem.length), '']);
  const ca = new X509Certificate(pem);
  const createdAt = nowSeconds(app);
  assert.deepEqual(await send(app, 'GET /pki').then(({ status, json }) => ({ status, ...json })), {
    status: 200,
    enabled: true,
    ca_exists: true,
    common_name: 'Paste Service CA',
    fingerprint_sha1: ca.fingerprint.replaceAll(':', '').toLowerCase(),
    created_at: createdAt,
    expires_at: createdAt + 100 * DAY_SECONDS,
    key_algorithm: 'ec:secp384r1',
  });
  assert.equal(validityOf(ca)[1], createdAt + 100 * DAY_SECONDS);
  assert.equal(ca.publicKey.asymmetricKeyDetails?.namedCurve, 'secp384r1');
});

test('/pki/*: 404 with a hint while it is off, before anything else is looked at', async (t) => {
  const app = await startApp(t, { pkiCaPassword: CA_PASSWORD });
  const hint = 'the operator can set SERVICE_PKI_ENABLED';
  for (const request of SWITCHED) {
    for (const body of request.startsWith('GET') ? [undefined] : [undefined, 'no JSON', { common_name: 'x' }]) {
      assertError(await send(app, request, { body, as: STRANGER }), 404, 'PKI not enabled', { hint });
    }
  }
  const { json } = await send(app, 'GET /');
  const offered = Object.keys(json['endpoints'] as object).filter((endpoint) => endpoint.includes(' /pki'));
  assert.deepEqual(offered, []);
});

test('/pki/*: another method is 405 with Allow', async (t) => {
  const app = await startApp(t, PKI);
  for (const request of SWITCHED) {
    const [method = '', path = ''] = request.split(' ');
    const answer = await send(app, `${method === 'GET' ? 'POST' : 'GET'} ${path}`);
    assertError(answer, 405, 'method not allowed');
    assert.equal(answer.headers.get('allow'), method === 'GET' ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS');
  }
});

test('POST /pki/ca: 201 with exactly these members, then 409', async (t) => {
  const longest = '\u{1F5DD}'.repeat(64);
  const app = await startApp(t, PKI);
  const { status, json } = await send(app, 'POST /pki/ca', { body: { common_name: `  ${longest} ` } });
  const ca = new X509Certificate(await authorityPem(app));
  assert.deepEqual({ status, ...json }, {
    status: 201,
    message: 'CA created',
    common_name: longest,
    fingerprint_sha1: ca.fingerprint.replaceAll(':', '').toLowerCase(),
    created_at: nowSeconds(app),
    expires_at: nowSeconds(app) + 3650 * DAY_SECONDS,
    download: '/pki/ca.crt',
  });
  assert.equal(ca.subject, `CN=${longest}`);
  for (const body of [undefined, {}, { common_name: 'Another' }]) {
    assertError(await send(app, 'POST /pki/ca', { body }), 409, 'CA already exists');
  }
  assert.equal((await send(app, 'GET /pki')).json['common_name'], longest);
});

test('POST /pki/ca: what is no name is 400, and none at all is the default', async (t) => {
  const app = await startApp(t, PKI);
  const texts = ['\u{1F5DD}'.repeat(65), '', ' ', 'a\nb', 'a\u0000', 'a\u007f', '\ud800'];
  for (const name of [...texts, 7, true, ['x'], {}]) {
    assertError(await send(app, 'POST /pki/ca', { body: { common_name: name } }), 400, NAME_ERROR);
  }
  const unseen = await send(app, 'POST /pki/ca', { body: { common_name: 'a\u202eb' } });
  assertError(unseen, 400, NAME_ERROR, { hint: 'leave out what is invisible, as in some emoji, or for private use' });
  for (const body of ['x', '[]', '"x"', 'null', '{', '\u{1F5DD}', '{"common_name":"x"} {}']) {
    assertError(await send(app, 'POST /pki/ca', { body }), 400, BODY_ERROR);
  }
  assertError(await send(app, 'GET /pki/ca.crt'), 404, 'CA not initialized');
  const { json } = await send(app, 'POST /pki/ca', { body: { common_name: null } });
  assert.equal(json['common_name'], 'Paste Service CA');
});

test('POST /pki/ca: 500 without the CA password, and nothing is made', async (t) => {
  const app = await startApp(t, { ...PKI, pkiCaPassword: '' });
  assertError(await send(app, 'POST /pki/ca'), 500, 'CA password not configured');
  const { json } = await send(app, 'GET /pki');
  assert.equal(json['ca_exists'], false);
  assert.match(String(json['hint']), /^no certificates can be issued: SERVICE_PKI_CA_PASSWORD is not set here/);
});

test('POST /pki/ca: of 8 concurrent requests one is 201, and its CA is the one that stays', async (t) => {
  const app = await startApp(t, PKI);
  const names = Array.from({ length: 8 }, (_, n) => `CA ${n}`);
  const answers = await Promise.all(names.map((name) => send(app, 'POST /pki/ca', { body: { common_name: name } })));
  assert.deepEqual(statusCounts(answers), { 201: 1, 409: 7 });
  const created = answers.find(({ status }) => status === 201)?.json;
  assert.equal((await send(app, 'GET /pki')).json['fingerprint_sha1'], created?.['fingerprint_sha1']);
  await issue(app);
});

test('POST /pki/issue: 201 with exactly these members; key and certificate fit', async (t) => {
  const app = await startApp(t, PKI);
  await createAuthority(app);
  const { status, json } = await send(app, 'POST /pki/issue', { body: { common_name: ' alice ' } });
  const issued = json as unknown as Awaited<ReturnType<typeof issue>>;
  const certificate = certificateOf(issued);
  assert.deepEqual({ status, ...json }, {
    status: 201,
    message: 'certificate issued',
    serial: certificate.serialNumber.toLowerCase(),
    common_name: 'alice',
    fingerprint_sha1: certificate.fingerprint.replaceAll(':', '').toLowerCase(),
    created_at: nowSeconds(app),
    expires_at: nowSeconds(app) + 365 * DAY_SECONDS,
    certificate_pem: issued.certificate_pem,
    private_key_pem: issued.private_key_pem,
    is_admin: true,
  });
  assert.match(issued.serial, /^[0-9a-f]{32}$/);
  assert.deepEqual(validityOf(certificate), [issued.created_at - 300, issued.expires_at]);
  assert.ok(certificate.checkPrivateKey(createPrivateKey(issued.private_key_pem)));
  assert.equal(certificate.subject, 'CN=alice');
  const ca = new X509Certificate(await authorityPem(app));
  assert.ok(certificate.checkIssued(ca) && certificate.verify(ca.publicKey));
  assert.equal((await issue(app)).is_admin, false);
});

test('POST /pki/issue: a certificate never outlives its CA', async (t) => {
  const app = await startApp(t, { ...PKI, pkiCaDays: 10 });
  await createAuthority(app);
  const caExpiresAt = nowSeconds(app) + 10 * DAY_SECONDS;
  assert.equal((await issue(app)).expires_at, caExpiresAt);
  app.clock.advance(1000 * (caExpiresAt - nowSeconds(app) - 1));
  assert.equal((await issue(app)).expires_at, caExpiresAt);
  app.clock.advance(1000);
  assertError(await send(app, 'POST /pki/issue', { body: { common_name: 'x' } }), 500, 'certificate issuance failed');
});

test('POST /pki/issue: PKI, then the name, then the CA, then its password', async (t) => {
  const named = { body: { common_name: 'alice' } };
  const app = await startApp(t, { ...PKI, pkiCaPassword: '' });
  for (const body of [undefined, {}, { common_name: null }, { common_name: '' }, { csr: 'x' }]) {
    assertError(await send(app, 'POST /pki/issue', { body }), 400, 'common_name required');
  }
  for (const name of [' ', 'x'.repeat(65), 'a\tb', 1, [], {}]) {
    assertError(await send(app, 'POST /pki/issue', { body: { common_name: name } }), 400, NAME_ERROR);
  }
  assertError(await send(app, 'POST /pki/issue', named), 404, 'CA not initialized');

  const ready = await startApp(t, PKI);
  await createAuthority(ready);
  await withRestarted(t, ready, { pkiCaPassword: '' }, async (after) => {
    assertError(await send(after, 'POST /pki/issue', named), 500, 'CA password not configured');
    assertError(await send(after, 'POST /pki/issue'), 400, 'common_name required');
  });
});

test('POST /pki/issue: a body of 32 KiB is read, one byte more is 413', async (t) => {
  const app = await startApp(t, PKI);
  await createAuthority(app);
  const frame = '{"common_name":"x"}'.length;
  for (const bytes of [32_767, 32_768]) {
    const body = `{"common_name":${' '.repeat(bytes - frame)}"x"}`;
    assert.equal((await send(app, 'POST /pki/issue', { body })).status, 201);
  }
  const body = `{"common_name":${' '.repeat(32_769 - frame)}"x"}`;
  assertError(await send(app, 'POST /pki/issue', { body }), 413, 'request body too large', { max_size: 32_768 });
});

test('POST /pki/issue: of 20 concurrent first certificates one is the admin\'s, and no serial is used twice', async (t) => {
  const app = await startApp(t, PKI);
  await createAuthority(app);
  const issued = await Promise.all(Array.from({ length: 20 }, (_, n) => issue(app, `client ${n}`)));
  assert.equal(new Set(issued.map(({ serial }) => serial)).size, 20);
  const admins = issued.filter((certificate) => certificate.is_admin);
  assert.equal(admins.length, 1);
  const entries = await audited(app, admins[0]!, '&event=admin_granted');
  assert.deepEqual(entries.map(({ details }) => details['serial']), [admins[0]?.serial]);
});

test('GET /pki/certs: none for the anonymous and strangers, else own and obtained ones, newest first', async (t) => {
  const app = await startApp(t, PKI);
  const admin = await withAdmin(app);
  const requester = newFingerprint();
  app.clock.advance(1000);
  const first = await issue(app, 'first', { as: requester });
  app.clock.advance(1000);
  const second = await issue(app, 'second', { as: requester });
  app.clock.advance(1000);
  const third = await issue(app, 'third', { as: second.fingerprint_sha1 });
  const { serial, fingerprint_sha1, created_at, expires_at } = third;
  const record = {
    serial, common_name: 'third', fingerprint_sha1, created_at, expires_at,
    status: 'valid', issued_to: second.fingerprint_sha1, is_admin: false,
  };
  const held = await send(app, 'GET /pki/certs', { as: fingerprint_sha1 });
  assert.deepEqual(held.json, { certificates: [record], count: 1, total: 1, limit: 1000, offset: 0 });

  const none = { certificates: [], count: 0, total: 0, limit: 1000, offset: 0 };
  assert.deepEqual((await send(app, 'GET /pki/certs')).json, none);
  assert.deepEqual((await send(app, 'GET /pki/certs', { as: STRANGER })).json, none);

  const serialsOf = async (as: string): Promise<unknown[]> => {
    const { status, json } = await send(app, 'GET /pki/certs', { as });
    const certificates = json['certificates'] as { serial: string }[];
    assert.deepEqual([status, json['count']], [200, certificates.length]);
    return certificates.map(({ serial }) => serial);
  };
  assert.deepEqual(await serialsOf(requester), [second.serial, first.serial]);
  assert.deepEqual(await serialsOf(first.fingerprint_sha1), [first.serial]);
  assert.deepEqual(await serialsOf(second.fingerprint_sha1), [third.serial, second.serial]);
  assert.deepEqual(await serialsOf(admin.fingerprint_sha1), [admin.serial], 'the admin sees no others either');
});

test('GET /pki/certs: counts as a lookup of its address, as lists of pastes do, whoever asks', async (t) => {
  const app = await startApp(t, { ...PKI, lookupRateMax: 2 });
  for (const [as, address] of [[undefined, '192.0.2.1'], [newFingerprint(), '192.0.2.2']] as const) {
    const headers = { ...from(address), ...(as === undefined ? {} : presenting(as)) };
    const statuses: number[] = [];
    for (const path of ['/pki/certs', '/unknown', '/pki/certs?limit=1']) {
      statuses.push((await app.request(path, { headers })).status);
    }
    assert.deepEqual(statuses, [200, 404, 429]);
  }
});

test('GET /pki/certs: limit and offset as in GET /pastes, the most without them; count is what is listed, total what there is', async (t) => {
  const app = await startApp(t, PKI);
  const requester = newFingerprint();
  const { databasePath } = app.config;
  const rows = Array.from({ length: 1005 }, (_, index) => ({ createdAt: 5000 - index, issuedTo: requester }));
  insertCertificates(databasePath, rows);
  const page = async (query: string): Promise<unknown[]> => {
    const { status, json } = await send(app, `GET /pki/certs${query}`, { as: requester });
    const listed = (json['certificates'] as { created_at: number }[]).map(({ created_at: at }) => 5000 - at);
    assert.deepEqual([status, listed.length], [200, json['count']]);
    return [listed.length, listed[0], listed.at(-1), json['total'], json['limit'], json['offset']];
  };
  const most = [1000, 0, 999, 1005, 1000, 0];
  const one = [1, 0, 0, 1005, 1, 0];
  const pages = {
    '': most, '?limit=2&offset=3': [2, 3, 4, 1005, 2, 3], '?limit=1000': most, '?limit=9999': most, '?limit=0': one,
    '?limit=-5&offset=-5': one, '?offset=1000': [5, 1000, 1004, 1005, 1000, 1000],
    '?offset=1005': [0, undefined, undefined, 1005, 1000, 1005],
  };
  for (const [query, expected] of Object.entries(pages)) assert.deepEqual(await page(query), expected, query);
  for (const query of ['?limit=x', '?offset=1.5', '?limit=1&limit=2']) {
    const { status, json } = await send(app, `GET /pki/certs${query}`, { as: requester });
    assert.deepEqual([status, json['error']], [400, 'invalid query parameter']);
  }
});

test('POST /: the larger size and the longer life are there from issuing on, and for nobody else', async (t) => {
  const app = await startApp(t, { ...PKI, maxAnonBytes: 100, maxAuthBytes: 200 });
  const { fingerprint_sha1: fingerprint } = await withAdmin(app);
  const client = await issue(app, 'client');
  const refused = { size: 101, max_size: 100 };
  assertError(await post(app, 'x'.repeat(101)), 413, 'paste too large', { ...refused, authenticated: false });
  const stranger = { 'X-SSL-Client-SHA1': STRANGER };
  assertError(await post(app, 'x'.repeat(101), stranger), 413, 'paste too large', { ...refused, authenticated: true });

  for (const holder of [fingerprint, client.fingerprint_sha1]) {
    const headers = { 'X-SSL-Client-SHA1': holder };
    const { status, json } = await post(app, 'x'.repeat(200), headers);
    assert.equal(status, 201);
    const metadata = await send(app, `GET /${json['id']}`);
    assert.equal(metadata.json['expires_at'], nowSeconds(app) + 30 * DAY_SECONDS);
    const largest = { size: 201, max_size: 200, authenticated: true };
    assertError(await post(app, 'x'.repeat(201), headers), 413, 'paste too large', largest);
  }
});

test('an expired certificate: the second of its expiry makes its holder anonymous, and is audited', async (t) => {
  const app = await startApp(t, { ...PKI, pkiCertDays: 1, maxAnonBytes: 10, maxAuthBytes: 20 });
  const requester = newFingerprint();
  await createAuthority(app);
  const client = await issue(app, 'alice', { as: requester });
  const headers = { 'X-SSL-Client-SHA1': client.fingerprint_sha1 };
  const statusShown = async (): Promise<unknown> => {
    const { json } = await send(app, 'GET /pki/certs', { as: requester });
    return (json['certificates'] as { status: string }[])[0]?.status;
  };

  app.clock.advance(1000 * DAY_SECONDS - 1);
  assert.equal((await post(app, 'x'.repeat(20), headers)).status, 201);
  assert.equal(await statusShown(), 'valid');
  app.clock.advance(1);
  const tooLarge = { size: 20, max_size: 10, authenticated: false };
  assertError(await post(app, 'x'.repeat(20), headers), 413, 'paste too large', tooLarge);
  assertError(await send(app, 'GET /pastes', { as: client.fingerprint_sha1 }), 401, 'authentication required', {
    hint: 'present a client certificate',
  });
  assert.equal(await statusShown(), 'expired');
  const { json: none } = await send(app, 'GET /pki/certs', { as: client.fingerprint_sha1 });
  assert.deepEqual(none, { certificates: [], count: 0, total: 0, limit: 1000, offset: 0 });
  const failures = "SELECT DISTINCT details FROM audit WHERE event = 'auth_failure'";
  const details = JSON.stringify({ fingerprint: client.fingerprint_sha1, reason: 'expired' });
  assert.equal(selectValue(app.config.databasePath, failures), details);

  const revoked = await send(app, `POST /pki/revoke/${client.serial}`, { as: requester });
  assert.equal(revoked.status, 200, 'what has run out can be revoked');
  assert.equal(await statusShown(), 'revoked');
});

test('audit: the CA, every certificate and the admin are recorded and logged, with who asked for them', async (t) => {
  const app = await startApp(t, PKI);
  const admin = await withAdmin(app);
  const client = await issue(app, 'alice', { as: STRANGER });
  const ca = (await send(app, 'GET /pki')).json;
  const by = { outcome: 'success', client_id: null, client_ip: '127.0.0.1' };
  const issuedOf = ({ fingerprint_sha1: fingerprint, expires_at }: typeof admin, common_name: string) => ({
    type: 'client', common_name, fingerprint, expires_at,
  });
  const entries = (await audited(app, admin)).map(({ event, outcome, client_id, client_ip, details }) => ({
    event, outcome, client_id, client_ip, details,
  }));
  assert.deepEqual(entries, [
    { ...by, event: 'cert_issued', details: {
      type: 'ca', common_name: 'Paste Service CA', fingerprint: ca['fingerprint_sha1'], expires_at: ca['expires_at'],
    } },
    { ...by, event: 'cert_issued', details: issuedOf(admin, 'admin') },
    { ...by, event: 'admin_granted', details: { serial: admin.serial, fingerprint: admin.fingerprint_sha1 } },
    { ...by, event: 'cert_issued', client_id: STRANGER, details: issuedOf(client, 'alice') },
  ]);
  const lines = app.logged.filter(({ logger }) => logger === 'audit').map(({ event, details }) => ({ event, details }));
  assert.deepEqual(lines, entries.map(({ event, details }) => ({ event, details })));
});
