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
const WITH_PKI = { proxySecret: SECRET, pkiEnabled: true, pkiCaPassword: CA_PASSWORD };
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

const HEADERS = ['x-ssl-client-sha1', 'client-cert', 'x-ssl-client-cert'] as const;

for (const identityHeader of HEADERS) {
  test(`SERVICE_IDENTITY_HEADER=${identityHeader}: it alone is the identity, whatever the two others say`, async (t) => {
    const app = await startApp(t, { proxySecret: SECRET, identityHeader });
    const [mine, theirs] = [client, other].map((holder) => {
      const { sha1, clientCert, xClientCert } = linesOf(holder);
      return { 'x-ssl-client-sha1': sha1, 'client-cert': clientCert, 'x-ssl-client-cert': xClientCert };
    }) as [Record<typeof identityHeader, string>, Record<typeof identityHeader, string>];
    const others = HEADERS.filter((name) => name !== identityHeader);
    const own = mine[identityHeader];
    const claims = others.map((name) => theirs[name]);
    const short = client.fingerprint.slice(0, 12);
    for (const lines of [
      [own], [own, ...claims], [...claims, own], [own, ...claims, ...claims], [own, ...others.map((name) => `${name}: `)],
      [own.replace(/^[^:]*/, (name) => name.toUpperCase())],
    ]) {
      assert.equal(await ownerOf(t, app, [WITH_SECRET, ...lines]), short, lines.join('\n'));
    }
    for (const lines of [claims, ...claims.map((line) => [line]), [...claims, `${identityHeader}: `], [own, own], []]) {
      assert.equal(await ownerOf(t, app, [WITH_SECRET, ...lines]), undefined, lines.join('\n'));
    }
    assert.equal(await ownerOf(t, app, [own]), undefined, 'without the secret');
  });
}

test('SERVICE_IDENTITY_HEADER: without a proxy secret X-SSL-Client-SHA1 counts, whatever it says', async (t) => {
  for (const identityHeader of HEADERS) {
    const app = await startApp(t, { identityHeader });
    const { sha1, clientCert, xClientCert } = linesOf(client);
    assert.equal(await ownerOf(t, app, [sha1]), client.fingerprint.slice(0, 12));
    for (const line of [clientCert, xClientCert]) assert.equal(await ownerOf(t, app, [line]), undefined);
  }
});

test('Client-Cert: with a proxy secret that came while the service runs too', async (t) => {
  const app = await startApp(t, { identityHeader: 'client-cert' });
  const { clientCert } = linesOf(client);
  assert.equal(await ownerOf(t, app, [WITH_SECRET, clientCert]), undefined);
  await app.app.reload({ ...app.config, proxySecret: SECRET });
  assert.equal(await ownerOf(t, app, [WITH_SECRET, clientCert]), client.fingerprint.slice(0, 12));
});

test('Client-Cert, X-SSL-Client-Cert: what is malformed or repeated is nobody', async (t) => {
  const byHeader = {
    'Client-Cert': await startApp(t, { proxySecret: SECRET, identityHeader: 'client-cert' }),
    'X-SSL-Client-Cert': await startApp(t, { proxySecret: SECRET, identityHeader: 'x-ssl-client-cert' }),
  };
  const ownerBy = (...lines: readonly string[]): Promise<unknown> => (
    ownerOf(t, byHeader[lines[0]!.split(':')[0] as keyof typeof byHeader], [WITH_SECRET, ...lines])
  );
  const { certificate } = client;
  const { clientCert, xClientCert } = linesOf(client);
  const good = base64(certificate);
  const pem = encodePem('CERTIFICATE', certificate);
  const chain = Buffer.concat([certificate, other.certificate]);
  const values = [
    // Not base64, or not a single value.
    '', 'x', good.slice(0, -1), `${good}=`, `${good} x`, `${good}, ${good}`, `"${good}"`, `*${good.slice(1)}`,
    Buffer.from(certificate).toString('hex'), encodeURIComponent(pem.trim()), pem.replaceAll('\n', ' ').trim(),
    // Not a certificate in DER.
    base64(Buffer.from(pem)), base64(certificate.subarray(0, -1)), base64(Buffer.concat([certificate, Buffer.of(0)])),
    base64(chain), base64(certificate.subarray(4)), base64(Buffer.of(0x30, 0)),
  ];
  for (const value of values) {
    for (const line of [`Client-Cert: :${value}:`, `X-SSL-Client-Cert: ${value}`]) {
      assert.equal(await ownerBy(line), undefined, line);
    }
  }
  const forms = [
    `Client-Cert: ${good}`, `Client-Cert: :${good}`, `Client-Cert: ${good}:`, `Client-Cert: :${good}:;a=1`,
    'Client-Cert: :', `Client-Cert: ${encodeURIComponent(pem)}`, `Client-Cert: :${encodeURIComponent(pem)}:`,
    `X-SSL-Client-Cert: :${good}:`, `X-SSL-Client-Cert: :${encodeURIComponent(pem)}:`,
  ];
  for (const line of forms) assert.equal(await ownerBy(line), undefined, line);
  const ofNginx = `X-SSL-Client-Cert: ${encodeURIComponent(pem)}`;
  assert.equal(await ownerBy(ofNginx, xClientCert), undefined, 'in both forms');
  for (const line of [clientCert, xClientCert, ofNginx]) {
    assert.equal(await ownerBy(line), client.fingerprint.slice(0, 12));
    assert.equal(await ownerBy(line, line), undefined, 'repeated');
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
  const app = await startApp(t, { ...WITH_PKI, identityHeader: 'client-cert' });
  const admin = await withAdmin(app);
  const headers = { 'X-Proxy-Secret': SECRET, 'Client-Cert': `:${certificateOf(admin).raw.toString('base64')}:` };
  assert.equal((await send(app, 'GET /audit', { headers })).status, 200);
  assert.equal((await send(app, `POST /pki/revoke/${admin.serial}`, { headers })).status, 200);
  assert.equal((await send(app, 'GET /audit', { headers })).status, 401);
});

test('Client-Cert, X-SSL-Client-Cert: with a rewritten signature it is the certificate of its serial', async (t) => {
  const app = await startApp(t, { ...WITH_PKI, identityHeader: 'client-cert' });
  const admin = await withAdmin(app);
  const alice = await issue(app, 'alice');
  const forms = (certificate: Uint8Array): readonly Record<string, string>[] => {
    const form = { 'Client-Cert': `:${base64(certificate)}:`, 'X-Proxy-Secret': SECRET };
    return [form, { ...form, ...presenting(fingerprintSha1(certificate)) }];
  };
  const ownersOf = async (certificate: Uint8Array): Promise<unknown[]> => Promise.all(forms(certificate).map(async (lines) => (
    ownerOf(t, app, Object.entries(lines).map(([name, value]) => `${name}: ${value}`))
  )));
  const short = alice.fingerprint_sha1.slice(0, 12);
  const { raw } = certificateOf(alice);
  const twin = withOtherSignature(raw);
  assert.notEqual(fingerprintSha1(twin), alice.fingerprint_sha1);
  for (const certificate of [raw, twin]) assert.deepEqual(await ownersOf(certificate), Array(2).fill(short));

  const [headers = {}] = forms(twin);
  assert.equal((await send(app, `POST /pki/revoke/${alice.serial}`, { headers })).status, 200);
  for (const certificate of [raw, twin]) assert.deepEqual(await ownersOf(certificate), Array(2).fill(undefined));
  const asAdmin = { headers: { 'X-Proxy-Secret': SECRET, 'Client-Cert': `:${base64(certificateOf(admin).raw)}:` } };
  const failures = await audited(app, admin, '&event=auth_failure', asAdmin);
  assert.deepEqual(failures.map(({ client_id: by, details }) => `${by} ${details['reason']}`),
    Array(4).fill(`${alice.fingerprint_sha1} revoked`));

  deleteCertificate(app.config.databasePath, alice.serial);
  for (const certificate of [raw, twin]) assert.deepEqual(await ownersOf(certificate), Array(2).fill(undefined), 'not on record');
});

test('X-SSL-Client-Cert: escaped, with a rewritten signature it is the certificate of its serial', async (t) => {
  const app = await startApp(t, { ...WITH_PKI, identityHeader: 'x-ssl-client-cert' });
  await withAdmin(app);
  const alice = await issue(app, 'alice');
  const { raw } = certificateOf(alice);
  const lines = [raw, withOtherSignature(raw)].map((certificate) => {
    return `X-SSL-Client-Cert: ${encodeURIComponent(encodePem('CERTIFICATE', certificate))}`;
  });
  for (const line of lines) {
    assert.equal(await ownerOf(t, app, [WITH_SECRET, line]), alice.fingerprint_sha1.slice(0, 12));
  }
  const headers = { 'X-Proxy-Secret': SECRET, 'X-SSL-Client-Cert': lines[1]!.split(': ')[1]! };
  assert.equal((await send(app, `POST /pki/revoke/${alice.serial}`, { headers })).status, 200);
  for (const line of lines) assert.equal(await ownerOf(t, app, [WITH_SECRET, line]), undefined);
});

test('Client-Cert: a signature that the authority did not make is not its certificate\'s', async (t) => {
  const app = await startApp(t, { ...WITH_PKI, identityHeader: 'client-cert' });
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
