// Who is who on a TLS listener: which certificates are believed, which are not, and which headers count beside them.
// Over real sockets with real handshakes, in both versions of TLS.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { test } from 'node:test';
import { connect, type ConnectionOptions } from 'node:tls';
import { validityFrom } from '../../src/authority/certificates.ts';
import { encodePem, privateKeyPem } from '../../src/authority/keys.ts';
import { DAY_SECONDS, MIB } from '../../src/core/time.ts';
import { fingerprintSha1 } from '../../src/crypto/presented.ts';
import { forged, forServers, makeTestAuthority, makeTestClient, withOtherSignature } from '../support/authority.ts';
import { deleteCertificate, presenting } from '../support/certificates.ts';
import { certificateOf, type Issued, PKI } from '../support/pki.ts';
import {
  type Asking, oneConnection, type Pair, pairOf, pairOfIssued, type RunningTlsApp, startTlsApp,
} from '../support/tls.ts';

const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;
const SECRET = 'a proxy secret';

async function issue(app: RunningTlsApp, commonName: string): Promise<Issued> {
  const body = JSON.stringify({ common_name: commonName });
  const { status, json } = await app.ask('POST /pki/issue', { body, headers: { 'Content-Type': 'application/json' } });
  assert.equal(status, 201, JSON.stringify(json));
  return json as unknown as Issued;
}

/** An authority, its admin and somebody else. */
async function withCertificates(app: RunningTlsApp): Promise<{ admin: Issued; alice: Issued }> {
  assert.equal((await app.ask('POST /pki/ca')).status, 201);
  return { admin: await issue(app, 'admin'), alice: await issue(app, 'alice') };
}

type Standing = 'anonymous' | 'identified' | 'admin';

/** The statuses of GET /pastes and GET /audit. */
const STANDINGS: Readonly<Record<string, Standing>> = {
  '401 401': 'anonymous', '200 403': 'identified', '200 200': 'admin',
};

async function standing(app: RunningTlsApp, asking: Asking = {}): Promise<Standing> {
  const statuses = [];
  for (const path of ['/pastes', '/audit']) statuses.push((await app.ask(`GET ${path}`, asking)).status);
  return STANDINGS[statuses.join(' ')] ?? assert.fail(`answered ${statuses.join(' ')}`);
}

async function failures(app: RunningTlsApp, admin: Issued): Promise<string[]> {
  const { json } = await app.ask('GET /audit?event=auth_failure', { as: pairOfIssued(admin) });
  const entries = json['entries'] as { client_id: string; details: { reason: string } }[];
  return entries.map(({ client_id: fingerprint, details }) => `${fingerprint} ${details.reason}`);
}

test('TLS: a certificate of the authority is its holder, none is anonymous, and links say https', async (t) => {
  const app = await startTlsApp(t, PKI);
  assert.match(app.url, /^https:\/\/127\.0\.0\.1:\d+$/);
  const { admin, alice } = await withCertificates(app);
  for (const version of VERSIONS) {
    assert.equal(await standing(app, { version }), 'anonymous');
    assert.equal(await standing(app, { version, as: pairOfIssued(alice) }), 'identified');
    assert.equal(await standing(app, { version, as: pairOfIssued(admin) }), 'admin');
  }
  const large = Buffer.alloc(4 * MIB, 'x');
  assert.equal((await app.ask('POST /', { body: large })).status, 413);
  const stored = await app.ask('POST /', { body: large, as: pairOfIssued(alice) });
  assert.deepEqual([stored.status, stored.json['owner']], [201, alice.fingerprint_sha1.slice(0, 12)]);
  const index = await app.ask('GET /');
  assert.ok(index.body.includes(`curl ${app.url}/`) && !index.body.includes('http://'), index.body.toString());
  assert.ok((await app.ask('GET /client')).body.includes(app.url));
});

test('TLS: certificates of others are anonymous, whatever names they bear', async (t) => {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const now = { validity: validityFrom(nowSeconds, 30) };
  const other = await makeTestAuthority('Public CA', nowSeconds);
  const shown = pairOf(await forServers(await makeTestClient(other, now), other));
  const pair = { ...shown, cert: shown.cert + encodePem('CERTIFICATE', other.certificate) };
  const app = await startTlsApp(t, PKI, { pair });
  const { admin } = await withCertificates(app);
  const namesake = await makeTestAuthority('Paste Service CA', nowSeconds);
  const foreign = pairOf(await makeTestClient(namesake, { ...now, commonName: 'admin' }));
  const past = { validity: validityFrom(nowSeconds - 40 * DAY_SECONDS, 30) };
  const { raw: certificate } = new X509Certificate((await app.ask('GET /pki/ca.crt')).body);
  const forge = async (dates: typeof now): Promise<Pair> => {
    const client = await makeTestClient(namesake, { ...dates, serial: admin.serial, commonName: 'admin' });
    return pairOf(await forged(client, namesake, certificate));
  };
  const strangers = {
    'of an authority of the same name': foreign,
    'the same, with its authority': { ...foreign, cert: foreign.cert + encodePem('CERTIFICATE', namesake.certificate) },
    'of the authority that the server\'s own is of': pairOf(await makeTestClient(other, now)),
    'an authority\'s own': {
      cert: encodePem('CERTIFICATE', namesake.certificate), key: privateKeyPem(namesake.privateKey),
    },
    // OpenSSL reports the last error it found: the time, and not the signature.
    'expired, of an authority of the same name': pairOf(await makeTestClient(namesake, past)),
    // Every field is as in the admin's certificate, but the signature is of another key.
    'forged': await forge(now),
    'forged, expired': await forge(past),
  };
  for (const version of VERSIONS) {
    for (const [who, as] of Object.entries(strangers)) {
      assert.equal(await standing(app, { version, as }), 'anonymous', `${version}: ${who}`);
    }
  }
  assert.deepEqual(await failures(app, admin), []);
});

test('TLS: an expired certificate of the authority is anonymous, and audited', async (t) => {
  const app = await startTlsApp(t, { ...PKI, pkiCertDays: 365 }, { daysAgo: 400 });
  const { alice } = await withCertificates(app);
  app.clock.advance(400 * DAY_SECONDS * 1000);
  const successor = await issue(app, 'successor');
  for (const version of VERSIONS) {
    assert.equal(await standing(app, { version, as: pairOfIssued(alice) }), 'anonymous');
    assert.equal(await standing(app, { version, as: pairOfIssued(successor) }), 'identified');
  }
  const entries = app.logged.filter(({ event }) => event === 'auth_failure');
  assert.equal(entries.length, 4);
  for (const { clientId, details } of entries) {
    assert.deepEqual([clientId, details?.['reason']], [alice.fingerprint_sha1, 'expired']);
  }
});

test('TLS: a revoked certificate is anonymous and audited, also on the connection that revoked it', async (t) => {
  const app = await startTlsApp(t, PKI);
  const { admin, alice } = await withCertificates(app);
  const agent = oneConnection(t, pairOfIssued(alice));
  assert.equal(await standing(app, { agent }), 'identified');
  assert.equal((await app.ask(`POST /pki/revoke/${alice.serial}`, { agent })).status, 200);
  assert.equal(await standing(app, { agent }), 'anonymous');
  assert.equal(await standing(app, { as: pairOfIssued(alice) }), 'anonymous');
  assert.deepEqual(await failures(app, admin), Array(4).fill(`${alice.fingerprint_sha1} revoked`));
});

/** The pair that a client shows after rewriting the signature under its certificate. */
function rewritten(issued: Issued): Pair {
  const certificate = withOtherSignature(certificateOf(issued).raw);
  assert.notEqual(fingerprintSha1(certificate), issued.fingerprint_sha1);
  return { cert: encodePem('CERTIFICATE', certificate), key: issued.private_key_pem };
}

test('TLS: a certificate whose signature was rewritten is the certificate of its serial, revoked or not', async (t) => {
  const app = await startTlsApp(t, PKI);
  const { admin, alice } = await withCertificates(app);
  const { json: { id } } = await app.ask('POST /', { body: 'x', as: pairOfIssued(alice) });
  for (const version of VERSIONS) {
    assert.equal(await standing(app, { version, as: rewritten(admin) }), 'admin');
    const { json } = await app.ask('GET /pastes', { version, as: rewritten(alice) });
    assert.deepEqual((json['pastes'] as { id: string }[]).map((paste) => paste.id), [id], 'her own pastes');
  }
  const agent = oneConnection(t, rewritten(alice));
  assert.equal(await standing(app, { agent }), 'identified');
  assert.equal((await app.ask(`POST /pki/revoke/${alice.serial}`, { agent })).status, 200, 'as its holder');
  assert.equal(await standing(app, { agent }), 'anonymous');
  for (const version of VERSIONS) {
    for (const as of [pairOfIssued(alice), rewritten(alice)]) {
      assert.equal(await standing(app, { version, as }), 'anonymous');
    }
  }
  assert.deepEqual(await failures(app, admin), Array(10).fill(`${alice.fingerprint_sha1} revoked`));
  const revoked = await app.ask('GET /audit?event=cert_revoked', { as: pairOfIssued(admin) });
  assert.deepEqual((revoked.json['entries'] as { client_id: string }[]).map(({ client_id: by }) => by), [alice.fingerprint_sha1]);
});

test('TLS: a certificate whose signature was rewritten renews nothing, since that on record is replaced', async (t) => {
  const app = await startTlsApp(t, PKI);
  const { alice } = await withCertificates(app);
  const renew = { body: '{}', headers: { 'Content-Type': 'application/json' } };
  const refused = await app.ask('POST /register/renew', { ...renew, as: rewritten(alice) });
  assert.deepEqual([refused.status, refused.json['error']], [404, 'certificate not found']);
  const { json } = await app.ask('GET /pki/certs', { as: pairOfIssued(alice) });
  assert.deepEqual((json['certificates'] as { serial: string }[]).map(({ serial }) => serial), [alice.serial]);
  assert.equal((await app.ask('POST /register/renew', { ...renew, as: pairOfIssued(alice) })).status, 200);
});

test('TLS: a certificate of the authority that is not on record is anonymous and audited, expired or not', async (t) => {
  const app = await startTlsApp(t, { ...PKI, pkiCertDays: 365 }, { daysAgo: 400 });
  const { alice } = await withCertificates(app);
  app.clock.advance(400 * DAY_SECONDS * 1000);
  const bob = await issue(app, 'bob');
  for (const { serial } of [alice, bob]) deleteCertificate(app.config.databasePath, serial);
  for (const version of VERSIONS) {
    for (const issued of [alice, bob]) {
      assert.equal(await standing(app, { version, as: pairOfIssued(issued) }), 'anonymous');
      assert.equal(await standing(app, { version, as: rewritten(issued) }), 'anonymous');
    }
  }
  const entries = app.logged.filter(({ event }) => event === 'auth_failure');
  assert.deepEqual(entries.map(({ details }) => details?.['reason']), Array(16).fill('unknown'));
});

interface Visit {
  readonly status: string;
  readonly isResumed: boolean;
  /** The session to offer next time. */
  readonly session: Buffer | undefined;
}

/** GET /pastes on a connection of its own. */
async function visit({ port }: RunningTlsApp, options: ConnectionOptions): Promise<Visit> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
  let session: Buffer | undefined;
  socket.on('session', (given) => {
    session = given;
  });
  await once(socket, 'secureConnect');
  const isResumed = socket.isSessionReused();
  socket.write('GET /pastes HTTP/1.1\r\nHost: paste.test\r\nConnection: close\r\n\r\n');
  let received = '';
  for await (const part of socket) received += String(part);
  return { status: received.slice(9, 12), isResumed, session };
}

test('TLS: no session is resumed: who comes back proves again who it is', async (t) => {
  const app = await startTlsApp(t, PKI);
  const before = await Promise.all(VERSIONS.map((version) => visit(app, { minVersion: version, maxVersion: version })));
  await withCertificates(app);
  for (const [index, version] of VERSIONS.entries()) {
    const bob = await issue(app, `bob ${version}`);
    const versions = { minVersion: version, maxVersion: version };
    const own = { ...versions, ...pairOfIssued(bob) };
    const first = await visit(app, { ...own, session: before[index]?.session });
    const again = await visit(app, { ...own, session: first.session });
    const without = await visit(app, { ...versions, session: first.session });
    assert.equal((await app.ask(`POST /pki/revoke/${bob.serial}`, { as: pairOfIssued(bob) })).status, 200);
    const revoked = await visit(app, { ...own, session: first.session });
    assert.deepEqual([first, again, without, revoked].map(({ status }) => status), ['200', '200', '401', '401']);
    assert.ok([first, again, without, revoked].every(({ isResumed }) => !isResumed), version);
  }
});

test('TLS: a client does not renegotiate to become somebody else', async (t) => {
  const app = await startTlsApp(t, PKI);
  const socket = connect({ host: '127.0.0.1', port: app.port, rejectUnauthorized: false, maxVersion: 'TLSv1.2' });
  t.after(() => socket.destroy());
  await once(socket, 'secureConnect');
  const outcome = await new Promise((resolve) => {
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
    socket.renegotiate({ rejectUnauthorized: false }, () => resolve('renegotiated'));
  });
  assert.equal(outcome, 'ERR_SSL_NO_RENEGOTIATION');
});

test('TLS without a proxy secret: headers make nobody somebody', async (t) => {
  const app = await startTlsApp(t, PKI);
  const { admin, alice } = await withCertificates(app);
  const der = Buffer.from(admin.certificate_pem.replace(/-----[^-]+-----|\n/g, ''), 'base64');
  assert.equal(fingerprintSha1(der), admin.fingerprint_sha1);
  const forged = [
    presenting(admin.fingerprint_sha1),
    { 'Client-Cert': `:${der.toString('base64')}:` },
    { 'X-SSL-Client-Cert': der.toString('base64') },
    { ...presenting(admin.fingerprint_sha1), 'X-Proxy-Secret': '' },
  ];
  for (const headers of forged) {
    assert.equal(await standing(app, { headers }), 'anonymous');
    assert.equal(await standing(app, { headers, as: pairOfIssued(alice) }), 'identified');
  }
});

test('TLS with a proxy secret: a proxy that shows it speaks for its clients and not for itself', async (t) => {
  const app = await startTlsApp(t, { ...PKI, proxySecret: SECRET });
  const { admin, alice } = await withCertificates(app);
  const proxy = { 'X-Proxy-Secret': SECRET };
  const forAdmin = { ...presenting(admin.fingerprint_sha1), ...proxy };
  const as = pairOfIssued(alice);
  assert.equal(await standing(app, { headers: forAdmin }), 'admin');
  assert.equal(await standing(app, { headers: forAdmin, as }), 'admin');
  assert.equal(await standing(app, { headers: proxy, as: pairOfIssued(admin) }), 'anonymous');
  const wrong = { ...forAdmin, 'X-Proxy-Secret': `${SECRET}x` };
  assert.equal(await standing(app, { headers: wrong }), 'anonymous');
  assert.equal(await standing(app, { headers: wrong, as }), 'identified');
  assert.equal(await standing(app, { headers: presenting(admin.fingerprint_sha1), as }), 'identified');
});

test('TLS: X-Forwarded-Proto of a believed proxy is what links say', async (t) => {
  const app = await startTlsApp(t, { trustedProxies: ['127.0.0.1'] });
  for (const [proto, scheme] of [['http', 'http'], ['https', 'https'], ['javascript', 'https']] as const) {
    const headers = { 'X-Forwarded-Proto': proto, 'X-Forwarded-Host': 'pastes.example' };
    const { body } = await app.ask('GET /', { headers });
    assert.ok(body.includes(`curl ${scheme}://pastes.example/`), `${proto}: ${body.toString()}`);
  }
});
