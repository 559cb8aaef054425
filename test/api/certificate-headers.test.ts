// Client-Cert (RFC 9440) and X-SSL-Client-Cert over real sockets: when a certificate in a header is an identity, and
// when the request is anonymous instead.

import assert from 'node:assert/strict';
import { before, test, type TestContext } from 'node:test';
import { encodePem } from '../../src/authority/keys.ts';
import { fingerprintSha1 } from '../../src/crypto/presented.ts';
import { type RunningApp, startApp } from '../support/app.ts';
import {
  makeTestAuthority, makeTestClient, type TestClient, withOtherSignature,
} from '../support/authority.ts';
import { deleteCertificate, newFingerprint, presenting } from '../support/certificates.ts';
import { audited, CA_PASSWORD, certificateOf, issue, send, withAdmin } from '../support/pki.ts';
import { head, onlyAnswer } from '../support/raw-http.ts';

const SECRET = 'the secret of the proxy';
const WITH_SECRET = `X-Proxy-Secret: ${SECRET}`;

let client: TestClient;
let other: TestClient;

before(async () => {
  const authority = await makeTestAuthority();
  client = await makeTestClient(authority);
  other = await makeTestClient(authority);
});

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

/** The lines in which a proxy can present the certificate. */
function linesOf({ certificate, fingerprint }: TestClient): Record<'sha1' | 'clientCert' | 'xClientCert', string> {
  return {
    sha1: `X-SSL-Client-SHA1: ${fingerprint}`,
    clientCert: `Client-Cert: :${base64(certificate)}:`,
    xClientCert: `X-SSL-Client-Cert: ${base64(certificate)}`,
  };
}

/** The owner of a paste that is stored with these header lines: 12 digits of a fingerprint, or nobody. */
async function ownerOf(t: TestContext, app: RunningApp, lines: readonly string[]): Promise<unknown> {
  const request = head('POST / HTTP/1.1', 'Content-Length: 1', 'Connection: close', ...lines);
  const answer = await onlyAnswer(t, app.port, `${request}x`);
  assert.equal(answer.status, 201, answer.body.toString());
  return answer.json()['owner'];
}

test('Client-Cert, X-SSL-Client-Cert: with the proxy secret, its fingerprint is the identity', async (t) => {
  const app = await startApp(t, { proxySecret: SECRET });
  const { sha1, clientCert, xClientCert } = linesOf(client);
  const combinations = [
    [clientCert], [xClientCert], [clientCert, xClientCert],
    [sha1, clientCert], [sha1, xClientCert], [sha1, clientCert, xClientCert],
    [clientCert.replace('Client-Cert', 'CLIENT-CERT')],
  ];
  for (const lines of combinations) {
    assert.equal(await ownerOf(t, app, [WITH_SECRET, ...lines]), client.fingerprint.slice(0, 12), lines.join('\n'));
  }
});

test('Client-Cert: with a proxy secret that came while the service runs too', async (t) => {
  const app = await startApp(t);
  const { clientCert } = linesOf(client);
  assert.equal(await ownerOf(t, app, [WITH_SECRET, clientCert]), undefined);
  await app.app.reload({ ...app.config, proxySecret: SECRET });
  assert.equal(await ownerOf(t, app, [WITH_SECRET, clientCert]), client.fingerprint.slice(0, 12));
});

test('Client-Cert, X-SSL-Client-Cert: what disagrees with anything else that is presented is nobody', async (t) => {
  const app = await startApp(t, { proxySecret: SECRET });
  const [mine, theirs] = [linesOf(client), linesOf(other)];
  const combinations = [
    [mine.sha1, theirs.clientCert], [mine.sha1, theirs.xClientCert], [mine.clientCert, theirs.xClientCert],
    [mine.sha1, mine.clientCert, theirs.xClientCert], [mine.sha1, theirs.clientCert, mine.xClientCert],
    ['X-SSL-Client-SHA1: ', mine.clientCert], [`X-SSL-Client-SHA1: ${'0'.repeat(40)}`, mine.clientCert],
    [mine.sha1.toUpperCase().replace('X-SSL-CLIENT-SHA1', 'X-SSL-Client-SHA1'), mine.clientCert],
    [mine.sha1, mine.sha1, mine.clientCert], [mine.sha1, 'Client-Cert: '], [mine.sha1, 'X-SSL-Client-Cert: '],
  ];
  for (const lines of combinations) {
    assert.equal(await ownerOf(t, app, [WITH_SECRET, ...lines]), undefined, lines.join('\n'));
  }
});

test('Client-Cert, X-SSL-Client-Cert: what is malformed or repeated is nobody', async (t) => {
  const app = await startApp(t, { proxySecret: SECRET });
  const { certificate } = client;
  const { clientCert, xClientCert } = linesOf(client);
  const good = base64(certificate);
  const pem = encodePem('CERTIFICATE', certificate);
  const chain = Buffer.concat([certificate, other.certificate]);
  const values = [
    // Not base64, or not one.
    '', 'x', good.slice(0, -1), `${good}=`, `${good} x`, `${good}, ${good}`, `"${good}"`, `*${good.slice(1)}`,
    Buffer.from(certificate).toString('hex'), encodeURIComponent(pem), pem.replaceAll('\n', ' ').trim(),
    // Not a certificate in DER.
    base64(Buffer.from(pem)), base64(certificate.subarray(0, -1)), base64(Buffer.concat([certificate, Buffer.of(0)])),
    base64(chain), base64(certificate.subarray(4)), base64(Buffer.of(0x30, 0)),
  ];
  for (const value of values) {
    for (const line of [`Client-Cert: :${value}:`, `X-SSL-Client-Cert: ${value}`]) {
      assert.equal(await ownerOf(t, app, [WITH_SECRET, line]), undefined, line);
    }
  }
  const forms = [
    `Client-Cert: ${good}`, `Client-Cert: :${good}`, `Client-Cert: ${good}:`, `Client-Cert: :${good}:;a=1`,
    'Client-Cert: :',
    `X-SSL-Client-Cert: :${good}:`,
  ];
  for (const line of forms) assert.equal(await ownerOf(t, app, [WITH_SECRET, line]), undefined, line);
  for (const line of [clientCert, xClientCert]) {
    assert.equal(await ownerOf(t, app, [WITH_SECRET, line, line]), undefined, 'repeated');
  }
});

test('Client-Cert, X-SSL-Client-Cert: nobody\'s without the secret, with another, or where none is set', async (t) => {
  const { sha1, clientCert, xClientCert } = linesOf(client);
  const guarded = await startApp(t, { proxySecret: SECRET });
  for (const lines of [[clientCert], [xClientCert], [sha1, clientCert]]) {
    assert.equal(await ownerOf(t, guarded, lines), undefined);
    assert.equal(await ownerOf(t, guarded, [...lines, `${WITH_SECRET}x`]), undefined);
    assert.equal(await ownerOf(t, guarded, [...lines, WITH_SECRET, WITH_SECRET]), undefined);
  }
  const open = await startApp(t);
  for (const line of [clientCert, xClientCert]) {
    assert.equal(await ownerOf(t, open, [line]), undefined);
    assert.equal(await ownerOf(t, open, [WITH_SECRET, line]), undefined);
    const claimed = newFingerprint();
    const owner = await ownerOf(t, open, [`X-SSL-Client-SHA1: ${claimed}`, line]);
    assert.equal(owner, claimed.slice(0, 12), 'what is ignored does not disagree either');
  }
});

test('Client-Cert: a certificate of this service has its tier, and none once it is revoked', async (t) => {
  const app = await startApp(t, { proxySecret: SECRET, pkiEnabled: true, pkiCaPassword: CA_PASSWORD });
  const admin = await withAdmin(app);
  const headers = { 'X-Proxy-Secret': SECRET, 'Client-Cert': `:${certificateOf(admin).raw.toString('base64')}:` };
  assert.equal((await send(app, 'GET /audit', { headers })).status, 200);
  assert.equal((await send(app, `POST /pki/revoke/${admin.serial}`, { headers })).status, 200);
  assert.equal((await send(app, 'GET /audit', { headers })).status, 401);
});

test('Client-Cert, X-SSL-Client-Cert: with a rewritten signature it is the certificate of its serial', async (t) => {
  const app = await startApp(t, { proxySecret: SECRET, pkiEnabled: true, pkiCaPassword: CA_PASSWORD });
  const admin = await withAdmin(app);
  const alice = await issue(app, 'alice');
  const forms = (certificate: Uint8Array): readonly Record<string, string>[] => {
    const { clientCert, xClientCert } = { clientCert: `:${base64(certificate)}:`, xClientCert: base64(certificate) };
    const sha1 = presenting(fingerprintSha1(certificate));
    return [
      { 'Client-Cert': clientCert }, { 'X-SSL-Client-Cert': xClientCert }, { ...sha1, 'Client-Cert': clientCert },
      { ...sha1, 'Client-Cert': clientCert, 'X-SSL-Client-Cert': xClientCert },
    ].map((lines) => ({ ...lines, 'X-Proxy-Secret': SECRET }));
  };
  const ownersOf = async (certificate: Uint8Array): Promise<unknown[]> => Promise.all(forms(certificate).map(async (lines) => (
    ownerOf(t, app, Object.entries(lines).map(([name, value]) => `${name}: ${value}`))
  )));
  const short = alice.fingerprint_sha1.slice(0, 12);
  const { raw } = certificateOf(alice);
  const twin = withOtherSignature(raw);
  assert.notEqual(fingerprintSha1(twin), alice.fingerprint_sha1);
  for (const certificate of [raw, twin]) assert.deepEqual(await ownersOf(certificate), Array(4).fill(short));

  const [headers = {}] = forms(twin);
  assert.equal((await send(app, `POST /pki/revoke/${alice.serial}`, { headers })).status, 200);
  for (const certificate of [raw, twin]) assert.deepEqual(await ownersOf(certificate), Array(4).fill(undefined));
  const asAdmin = { headers: { 'X-Proxy-Secret': SECRET } };
  const failures = await audited(app, admin, '&event=auth_failure', asAdmin);
  assert.deepEqual(failures.map(({ client_id: by, details }) => `${by} ${details['reason']}`),
    Array(8).fill(`${alice.fingerprint_sha1} revoked`));

  deleteCertificate(app.config.databasePath, alice.serial);
  for (const certificate of [raw, twin]) assert.deepEqual(await ownersOf(certificate), Array(4).fill(undefined), 'not on record');
});

test('Client-Cert: a signature that the authority did not make is not its certificate\'s', async (t) => {
  const app = await startApp(t, { proxySecret: SECRET, pkiEnabled: true, pkiCaPassword: CA_PASSWORD });
  const { raw } = certificateOf(await withAdmin(app));
  const forged = Uint8Array.from(raw);
  forged[forged.length - 1]! ^= 1;
  const twin = withOtherSignature(raw);
  twin[twin.length - 1]! ^= 1;
  for (const certificate of [forged, twin]) {
    const headers = { 'X-Proxy-Secret': SECRET, 'Client-Cert': `:${base64(certificate)}:` };
    assert.equal((await send(app, 'GET /audit', { headers })).status, 403, 'an identity like any other');
  }
});
