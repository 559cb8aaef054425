// The certificate of a server that vouches for itself, byte for byte where bytes matter. As other programs see it:
// test/interop/server-certificate.test.ts.

import assert from 'node:assert/strict';
import { createHash, verify, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import {
  makeServerCertificate, SERVER_AUTH_ONLY, shownFingerprint, subjectAltName, validityFrom,
} from '../../src/authority/certificates.ts';
import { parseServerName, seq, type ServerName } from '../../src/authority/der.ts';
import { generateKeyPair, signed } from '../../src/authority/keys.ts';
import { bitStringOctets, components, firstCertificate, readDer, TAGS } from '../../src/crypto/presented.ts';
import { ISSUED_AT } from '../support/authority.ts';
import { serverCertificate } from '../support/server-certificate.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const namesOf = (...texts: string[]): ServerName[] => texts.map((text) => parseServerName(text)!);

test('subjectAltName: dNSName [2], iPAddress [7] of four or sixteen bytes, not critical', () => {
  assert.equal(hex(subjectAltName(namesOf('a.b'))), '300e0603551d1104073005' + '8203612e62');
  assert.equal(hex(subjectAltName(namesOf('192.0.2.1'))), '300f0603551d1104083006' + '8704c0000201');
  assert.equal(hex(subjectAltName(namesOf('::1', '*.a.b'))),
    '30220603551d11041b3019' + `8710${'0'.repeat(31)}1` + '82052a2e612e62');
});

test('extKeyUsage: serverAuth, not critical', () => {
  assert.equal(hex(SERVER_AUTH_ONLY), '30130603551d25040c300a06082b06010505070301');
});

test('generateKeyPair, signed: P-256 and the digest that goes with it', async () => {
  const { publicKey, privateKey } = await generateKeyPair('prime256v1');
  assert.equal(publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1');
  const [tbs, , signature] = readDer(await signed(seq(), privateKey, 'sha256')).children;
  assert.ok(verify('sha256', tbs!.encoding, publicKey, bitStringOctets(signature!)));
});

test('makeServerCertificate: its own issuer, no authority, and exactly four extensions', async () => {
  const keyPair = await generateKeyPair('prime256v1');
  const serial = '4123456789abcdef0123456789abcdef';
  const validity = validityFrom(ISSUED_AT, 365);
  const names = namesOf('paste.example', '192.0.2.1');
  const der = await makeServerCertificate({ names, serial, validity, ...keyPair });
  const made = new X509Certificate(der);
  assert.deepEqual([made.subject, made.issuer, made.ca], ['CN=paste.example', 'CN=paste.example', false]);
  assert.equal(made.serialNumber, serial.toUpperCase());
  assert.equal(made.validFromDate.getTime() / 1000, ISSUED_AT - 300);
  assert.equal(made.validToDate.getTime() / 1000, ISSUED_AT + 365 * 86_400);
  assert.ok(made.verify(keyPair.publicKey) && made.checkIssued(made) && made.checkPrivateKey(keyPair.privateKey));
  assert.equal(made.checkHost('paste.example'), 'paste.example');
  assert.equal(made.checkIP('192.0.2.1'), '192.0.2.1');
  assert.equal(made.checkHost('other.example'), undefined);

  const [tbs] = components(readDer(der), TAGS.sequence, TAGS.sequence, TAGS.bitString);
  const extensions = tbs.children.at(-1)!.children[0]!.children;
  const oids = extensions.map(({ children }) => hex(children[0]!.encoding));
  // basicConstraints, extKeyUsage, subjectAltName, subjectKeyIdentifier; no keyUsage.
  assert.deepEqual(oids, ['0603551d13', '0603551d25', '0603551d11', '0603551d0e']);
  assert.equal(shownFingerprint(der).replaceAll(':', '').toLowerCase(), createHash('sha256').update(der).digest('hex'));
});

test('makeServerCertificate: a first name that is too long for a common name is an alternative name alone', async () => {
  const [fits, tooLong] = [`${'a'.repeat(60)}.org`, `${'a'.repeat(61)}.org`];
  for (const [name, subject] of [[fits, `CN=${fits}`], [tooLong, 'CN=pasted']] as const) {
    const made = new X509Certificate((await serverCertificate(name)).certificate);
    assert.deepEqual([made.subject, made.checkHost(name)], [subject, name]);
  }
});

test('makeServerCertificate: refuses to be for nobody', async () => {
  const keyPair = await generateKeyPair('prime256v1');
  const request = { names: [], serial: '4'.repeat(32), validity: validityFrom(ISSUED_AT, 1), ...keyPair };
  await assert.rejects(makeServerCertificate(request), RangeError);
});

test('firstCertificate: the first of a file, undefined for anything else', async () => {
  const [one, two] = [await serverCertificate('one.example'), await serverCertificate('two.example')];
  assert.deepEqual(Buffer.from(firstCertificate(two.cert + one.cert)!), Buffer.from(two.certificate));
  for (const text of ['', 'x', one.key]) assert.equal(firstCertificate(text), undefined);
});
