// Certificates and revocation lists as other programs read and verify them.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test, type TestContext } from 'node:test';
import { makeSerial, renewAuthorityCertificate, validityFrom } from '../../src/authority/certificates.ts';
import { encodePem, generateKeyPair, lockPrivateKey, privateKeyPem } from '../../src/authority/keys.ts';
import { makeCrl, type RevokedCertificate } from '../../src/authority/revocation-list.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import { fingerprintSha1 } from '../../src/crypto/presented.ts';
import { makeTestAuthority, makeTestClient, type TestAuthority, type TestClient } from '../support/authority.ts';
import { isInstalled, run, temporaryFolder } from '../support/programs.ts';
import { createSeeded } from '../support/seeded.ts';

/** The programs go by the host's clock. */
const NOW = Math.floor(Date.now() / 1000);

let authority: TestAuthority;
let client: TestClient;

before(async () => {
  authority = await makeTestAuthority('Paste Service CA', NOW);
  client = await makeTestClient(authority, { commonName: 'alice', validity: validityFrom(NOW, 365) });
});

/** A folder with ca.crt and client.crt, as PEM and as DER. */
function writeCertificates(t: TestContext): string {
  const folder = temporaryFolder(t);
  for (const [name, der] of [['ca', authority.certificate], ['client', client.certificate]] as const) {
    writeFileSync(join(folder, `${name}.crt`), encodePem('CERTIFICATE', der));
    writeFileSync(join(folder, `${name}.der`), der);
  }
  return folder;
}

async function writeCrl(folder: string, name: string, revoked: readonly RevokedCertificate[]): Promise<void> {
  const crl = await makeCrl({ number: 4711, thisUpdate: NOW - 60, revoked }, authority);
  writeFileSync(join(folder, `${name}.crl`), crl);
  writeFileSync(join(folder, `${name}.crl.pem`), encodePem('X509 CRL', crl));
}

/** The digits as openssl prints them: in upper case, with colons. */
function colons(digits: string): string {
  return (digits.toUpperCase().match(/../g) ?? []).join(':');
}

test('openssl x509: reads every field of a client certificate', (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = writeCertificates(t);
  const args = ['x509', '-in', 'client.crt', '-noout', '-text', '-fingerprint', '-sha1', '-serial'];
  const { status, output } = run('openssl', args, folder);
  assert.equal(status, 0, output);
  for (const expected of [
    /Version: 3 \(0x2\)/,
    /Signature Algorithm: ecdsa-with-SHA384/,
    /Issuer: CN ?= ?Paste Service CA/,
    /Subject: CN ?= ?alice/,
    /NIST CURVE: P-384/,
    /Basic Constraints: critical\s+CA:FALSE\s/,
    /Key Usage: critical\s+Digital Signature\s/,
    /Extended Key Usage: \s+TLS Web Client Authentication\s/,
    /Subject Alternative Name: \s+URI:urn:uuid:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\s/,
    /Subject Key Identifier: \s+(?:[0-9A-F]{2}:){19}[0-9A-F]{2}/,
    /Authority Key Identifier: \s+(?:keyid:)?(?:[0-9A-F]{2}:){19}[0-9A-F]{2}\s/,
    new RegExp(`^serial=${client.serial.toUpperCase()}$`, 'm'),
    new RegExp(`Fingerprint=${colons(client.fingerprint)}`, 'i'),
  ]) {
    assert.match(output, expected);
  }
  assert.doesNotMatch(output, /Unique ID|DirName|Netscape/);
});

test('openssl x509: reads an authority that may sign for clients alone', (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const args = ['x509', '-inform', 'DER', '-in', 'ca.der', '-noout', '-text', '-purpose'];
  const { output } = run('openssl', args, writeCertificates(t));
  assert.match(output, /Basic Constraints: critical\s+CA:TRUE, pathlen:0/);
  assert.match(output, /Key Usage: critical\s+Certificate Sign, CRL Sign/);
  assert.match(output, /SSL client CA : Yes/);
  assert.match(output, /SSL server CA : No/);
});

test('openssl verify -x509_strict: a client certificate is good for TLS clients and for nothing else', (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = writeCertificates(t);
  const verify = (purpose: string) =>
    run('openssl', ['verify', '-x509_strict', '-purpose', purpose, '-CAfile', 'ca.crt', 'client.crt'], folder);
  assert.equal(verify('sslclient').stdout, 'client.crt: OK\n');
  for (const purpose of ['sslserver', 'smimesign']) {
    assert.notEqual(verify(purpose).status, 0);
    assert.match(verify(purpose).output, /purpose/);
  }
});

test('openssl asn1parse: certificates and lists are whole', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = writeCertificates(t);
  await writeCrl(folder, 'empty', []);
  for (const file of ['ca.der', 'client.der', 'empty.crl']) {
    const { status, output } = run('openssl', ['asn1parse', '-inform', 'DER', '-in', file], folder);
    assert.equal(status, 0, output);
    assert.doesNotMatch(output, /<unknown>|l= *inf/);
  }
});

test('openssl verify -crl_check: an empty list lets the certificate pass, one that names it does not', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = writeCertificates(t);
  const other = { serial: '40000000000000000000000000000000', revokedAt: NOW - 120 };
  await writeCrl(folder, 'empty', []);
  await writeCrl(folder, 'other', [other]);
  await writeCrl(folder, 'named', [other, { serial: client.serial, revokedAt: NOW - 60, revocationReason: 'keyCompromise' }]);
  const verify = (crl: string) => {
    const files = ['-CRLfile', `${crl}.crl.pem`, '-CAfile', 'ca.crt', 'client.crt'];
    return run('openssl', ['verify', '-x509_strict', '-crl_check', ...files], folder);
  };
  assert.equal(verify('empty').stdout, 'client.crt: OK\n');
  assert.equal(verify('other').stdout, 'client.crt: OK\n');
  assert.notEqual(verify('named').status, 0);
  assert.match(verify('named').output, /certificate revoked/);
});

test('openssl crl: reads every field of a list, in DER and in PEM', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = writeCertificates(t);
  const revoked = [
    { serial: '40000000000000000000000000000000', revokedAt: NOW - 120 },
    { serial: client.serial, revokedAt: NOW - 60, revocationReason: 'cessationOfOperation' },
  ] as const;
  await writeCrl(folder, 'empty', []);
  await writeCrl(folder, 'full', revoked);
  const read = (form: string, file: string) =>
    run('openssl', ['crl', '-inform', form, '-in', file, '-noout', '-text', '-CAfile', 'ca.crt'], folder).output;
  for (const output of [read('DER', 'full.crl'), read('PEM', 'full.crl.pem')]) {
    assert.match(output, /verify OK/);
    assert.match(output, /Version 2 \(0x1\)/);
    assert.match(output, /X509v3 CRL Number: \s+4711\s/);
    assert.match(output, /Authority Key Identifier: \s+(?:keyid:)?(?:[0-9A-F]{2}:){19}[0-9A-F]{2}\s/);
    assert.match(output, new RegExp(`Serial Number: ${client.serial.toUpperCase()}`));
    assert.equal(output.match(/CRL Reason Code: \s+Cessation Of Operation/g)?.length, 1);
    assert.equal(output.match(/Revocation Date/g)?.length, 2);
  }
  assert.match(read('DER', 'empty.crl'), /No Revoked Certificates/);
});

test('openssl verify: 2 000 certificates with names, serials and times of all kinds', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = temporaryFolder(t);
  const random = createSeeded(3);
  const keyPairs = await Promise.all(Array.from({ length: 4 }, generateKeyPair));
  const authorityThen = await makeTestAuthority('\u00dcber CA', NOW);
  const characters = [...'azAZ09 .,+="<>#;\\/\u00e9\u4e2d\u{1f600}'];
  const border = Date.parse('2050-01-01T00:00:00Z') / 1000;

  const issue = (): Promise<TestClient> => {
    const commonName = Array.from({ length: random.between(1, 62) }, () => random.pick(characters)).join('');
    const notBefore = random.pick([NOW, border - 1, border, border + 1]) + random.between(-3, 3);
    const validity = { notBefore, notAfter: notBefore + random.between(1, 10) };
    return makeTestClient(authorityThen, { commonName: `x${commonName}x`, validity, keyPair: random.pick(keyPairs) });
  };
  const clients: TestClient[] = [];
  while (clients.length < 2000) clients.push(...(await Promise.all(Array.from({ length: 20 }, issue))));

  writeFileSync(join(folder, 'ca.crt'), encodePem('CERTIFICATE', authorityThen.certificate));
  const files = clients.map(({ certificate }, i) => {
    writeFileSync(join(folder, `${i}`), encodePem('CERTIFICATE', certificate));
    return `${i}`;
  });
  const args = ['verify', '-x509_strict', '-no_check_time', '-purpose', 'sslclient', '-CAfile', 'ca.crt', ...files];
  const { stdout, output } = run('openssl', args, folder);
  assert.equal(stdout, files.map((file) => `${file}: OK\n`).join(''), output.slice(-2000));

  writeFileSync(join(folder, 'all'), clients.map(({ certificate }) => encodePem('CERTIFICATE', certificate)).join(''));
  const text = run('openssl', ['storeutl', '-noout', '-text', '-certs', 'all'], folder).stdout;
  const found = text.matchAll(/Serial Number:\s+([0-9a-f:]+)/g);
  const serials = Array.from(found, ([, serial = '']) => serial.replaceAll(':', ''));
  assert.deepEqual(serials, clients.map(({ serial }) => serial));
  assert.equal(new Set(clients.map(({ certificate }) => fingerprintSha1(certificate))).size, 2000);
});

test('openssl pkey: reads the authority\u2019s key at rest, with its password alone', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'ca.key'), await lockPrivateKey(authority.privateKey, 'correct horse', randomBytes));
  const read = (password: string) =>
    run('openssl', ['pkey', '-inform', 'DER', '-in', 'ca.key', '-passin', `pass:${password}`], folder);
  assert.equal(read('correct horse').stdout, privateKeyPem(authority.privateKey));
  assert.notEqual(read('wrong horse').status, 0);
});

test('certtool -i: GnuTLS reads the alternative name', (t) => {
  if (!isInstalled(t, 'certtool')) return;
  const { status, output } = run('certtool', ['-i', '--infile', 'client.crt'], writeCertificates(t));
  assert.equal(status, 0, output);
  assert.match(output, /Subject Alternative Name \(not critical\):\s+URI: urn:uuid:[0-9a-f-]{36}\s/);
});

test('certtool --verify: GnuTLS verifies a client certificate, and refuses a revoked one', async (t) => {
  if (!isInstalled(t, 'certtool')) return;
  const folder = writeCertificates(t);
  const args = ['--verify', '--verify-profile', 'high', '--load-ca-certificate', 'ca.crt', '--infile', 'client.crt'];
  await writeCrl(folder, 'empty', []);
  await writeCrl(folder, 'named', [{ serial: client.serial, revokedAt: NOW - 60 }]);
  const verify = (crl: string) => run('certtool', [...args, '--load-crl', `${crl}.crl.pem`], folder);
  assert.match(verify('empty').output, /Chain verification output: Verified\. The certificate is trusted/);
  assert.equal(verify('empty').status, 0);
  assert.notEqual(verify('named').status, 0);
  assert.match(verify('named').output, /revoked/);
});

/** The authority renewed, with the same name and key, and a client that it issued since: renewed.crt and later.crt. */
async function writeRenewed(folder: string): Promise<void> {
  const validity = validityFrom(NOW, 36_500);
  const certificate = await renewAuthorityCertificate({ serial: makeSerial(randomBytes), validity }, authority);
  const later = await makeTestClient({ ...authority, certificate }, { commonName: 'later', validity: validityFrom(NOW, 365) });
  writeFileSync(join(folder, 'renewed.crt'), encodePem('CERTIFICATE', certificate));
  writeFileSync(join(folder, 'later.crt'), encodePem('CERTIFICATE', later.certificate));
  writeFileSync(join(folder, 'both.crt'), ['renewed', 'ca'].map((name) => readFileSync(join(folder, `${name}.crt`), 'utf8')).join(''));
}

test('certtool --verify: a renewed authority vouches for clients of before and since, as does the old one, and both at once', async (t) => {
  if (!isInstalled(t, 'certtool')) return;
  const folder = writeCertificates(t);
  await writeRenewed(folder);
  await writeCrl(folder, 'empty', []);
  for (const trusted of ['ca.crt', 'renewed.crt', 'both.crt']) {
    for (const shown of ['client.crt', 'later.crt']) {
      const args = ['--verify', '--infile', shown, '--load-ca-certificate', trusted, '--load-crl', 'empty.crl.pem'];
      const { status, output } = run('certtool', args, folder);
      assert.equal(status, 0, `${trusted} ${shown}: ${output}`);
      assert.match(output, /Chain verification output: Verified\. The certificate is trusted/);
    }
  }
});

test('certutil -V: NSS, which knows both certificates of a renewed authority, verifies clients of before and since', async (t) => {
  if (!isInstalled(t, 'certutil')) return;
  const folder = writeCertificates(t);
  await writeRenewed(folder);
  const certutil = (...args: readonly string[]) => run('certutil', [...args, '-d', 'sql:.'], folder);
  assert.equal(certutil('-N', '--empty-password').status, 0);
  for (const name of ['renewed', 'ca']) {
    const { status, output } = certutil('-A', '-n', name, '-t', 'T,,', '-i', `${name}.crt`);
    assert.equal(status, 0, output);
    for (const shown of ['client', 'later']) {
      certutil('-A', '-n', shown, '-t', ',,', '-i', `${shown}.crt`);
      const verified = certutil('-V', '-n', shown, '-u', 'C');
      assert.match(verified.output, /certificate is valid/, `${name} ${shown}`);
    }
  }
});
