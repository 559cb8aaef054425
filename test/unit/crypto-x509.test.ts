// Certificates: the bytes that are signed, the times, and what is never given out. Other programs are in test/interop.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { before, test } from 'node:test';
import {
  keyIdentifier, makeAuthorityCertificate, makeClientCertificate, readIssuer, type Validity, validityFrom,
} from '../../src/authority/certificates.ts';
import { distinguishedName, LATEST_TIME_SECONDS, seq } from '../../src/authority/der.ts';
import { ECDSA_WITH, generateKeyPair, subjectPublicKeyInfo } from '../../src/authority/keys.ts';
import { bitStringOctets, components, fingerprintSha1, readDer } from '../../src/crypto/presented.ts';
import { ISSUED_AT, type KeyPair, makeTestAuthority, makeTestClient, type TestAuthority } from '../support/authority.ts';

const DAY_SECONDS = 86_400;
const AUTHORITY_SERIAL = '40000000000000000000000000000001';
const CLIENT_SERIAL = '7fffffffffffffffffffffffffffffff';

/** CN=Paste Service CA and CN=alice, as names. */
const AUTHORITY_NAME = '301b311930170603550403' + '0c10' + '50617374652053657276696365204341';
const CLIENT_NAME = '3010310e300c0603550403' + '0c05' + '616c696365';
const ECDSA_SHA384 = '300a06082a8648ce3d040303';
const CLIENT_AUTH = '30130603551d25040c300a06082b06010505070302';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const ascii = (text: string): string => Buffer.from(text, 'latin1').toString('hex');
const seconds = (iso: string): number => Date.parse(iso) / 1000;
const tbsOf = (certificate: Uint8Array): Uint8Array => readDer(certificate).children[0]?.encoding ?? new Uint8Array();

let authority: TestAuthority;
let clientKeys: KeyPair;

before(async () => {
  authority = await makeTestAuthority();
  clientKeys = await generateKeyPair();
});

const clientRequest = (validity: Validity, commonName = 'alice', serial = CLIENT_SERIAL) => ({
  commonName,
  serial,
  validity,
  spki: subjectPublicKeyInfo(clientKeys.publicKey),
  privateKey: clientKeys.privateKey,
});

test('makeAuthorityCertificate: exactly these bytes are signed', async () => {
  const keyPair = await generateKeyPair();
  const validity = { notBefore: seconds('2026-01-31T12:00:00Z'), notAfter: seconds('2050-01-01T00:00:00Z') };
  const request = { serial: AUTHORITY_SERIAL, validity, ...keyPair };
  const certificate = await makeAuthorityCertificate(request, distinguishedName('Paste Service CA'));
  const spki = subjectPublicKeyInfo(keyPair.publicKey);
  const expected = [
    '30820153' + 'a003020102',
    `0210${AUTHORITY_SERIAL}`,
    ECDSA_SHA384,
    AUTHORITY_NAME,
    '3020' + `170d${ascii('260131120000Z')}` + `180f${ascii('20500101000000Z')}`,
    AUTHORITY_NAME,
    hex(spki),
    'a35a' + '3058',
    '30120603551d130101ff040830060101ff020100',
    '300e0603551d0f0101ff040403020106',
    CLIENT_AUTH,
    `301d0603551d0e04160414${hex(keyIdentifier(spki))}`,
  ];
  assert.equal(hex(tbsOf(certificate)), expected.join(''));
});

test('makeClientCertificate: exactly these bytes are signed', async () => {
  const validity = { notBefore: seconds('2026-01-31T11:55:00Z'), notAfter: seconds('2027-01-31T12:00:00Z') };
  const certificate = await makeClientCertificate(clientRequest(validity), authority);
  const spki = subjectPublicKeyInfo(clientKeys.publicKey);
  const expected = [
    '3082019d' + 'a003020102',
    `0210${CLIENT_SERIAL}`,
    ECDSA_SHA384,
    AUTHORITY_NAME,
    '301e' + `170d${ascii('260131115500Z')}` + `170d${ascii('270131120000Z')}`,
    CLIENT_NAME,
    hex(spki),
    'a381b0' + '3081ad',
    '300c0603551d130101ff04023000',
    '300e0603551d0f0101ff040403020780',
    CLIENT_AUTH,
    // Not critical: one uniformResourceIdentifier [6].
    '30380603551d11' + '0431' + '302f' + `862d${ascii('urn:uuid:7fffffff-ffff-4fff-bfff-ffffffffffff')}`,
    `301d0603551d0e04160414${hex(keyIdentifier(spki))}`,
    `301f0603551d23041830168014${hex(readIssuer(authority.certificate).keyIdentifier)}`,
  ];
  assert.equal(hex(tbsOf(certificate)), expected.join(''));
});

test('a certificate: the algorithm again, and a signature in whole octets', async () => {
  const { certificate } = await makeTestClient(authority);
  const [, algorithm, signature] = components(readDer(certificate), 0x30, 0x30, 0x03);
  assert.equal(hex(algorithm.encoding), ECDSA_SHA384);
  assert.equal(hex(ECDSA_WITH.sha384), ECDSA_SHA384);
  components(readDer(bitStringOctets(signature)), 0x02, 0x02);
});

test('makeClientCertificate: what node reads is what was asked for', async () => {
  const client = await makeTestClient(authority, { commonName: '\u00c4 \u{1f600}' });
  const { certificate, keyPair, serial, fingerprint } = client;
  const read = new X509Certificate(certificate);
  assert.equal(read.subject, 'CN=\u00c4 \u{1f600}');
  assert.equal(read.issuer, 'CN=Paste Service CA');
  assert.equal(read.serialNumber, serial.toUpperCase());
  assert.equal(read.fingerprint.replaceAll(':', '').toLowerCase(), fingerprint);
  assert.equal(fingerprintSha1(certificate), fingerprint);
  assert.match(fingerprint, /^[0-9a-f]{40}$/);
  assert.deepEqual(read.keyUsage, ['1.3.6.1.5.5.7.3.2']);
  const uuid = /^([0-9a-f]{8})-([0-9a-f]{4})-4([0-9a-f]{3})-[89ab]([0-9a-f]{3})-([0-9a-f]{12})$/;
  assert.match(String(read.subjectAltName), /^URI:urn:uuid:/);
  const digits = uuid.exec(read.subjectAltName!.slice('URI:urn:uuid:'.length))?.slice(1);
  assert.deepEqual(digits, [
    serial.slice(0, 8), serial.slice(8, 12), serial.slice(13, 16), serial.slice(17, 20), serial.slice(20),
  ]);
  assert.equal(read.ca, false);
  assert.equal(read.validFromDate.getTime() / 1000, ISSUED_AT - 300);
  assert.equal(read.validToDate.getTime() / 1000, ISSUED_AT + 365 * DAY_SECONDS);
  assert.ok(read.checkPrivateKey(keyPair.privateKey));
  assert.ok(read.verify(authority.keyPair.publicKey));
  assert.ok(!read.verify(keyPair.publicKey));
  assert.equal(new X509Certificate(authority.certificate).ca, true);
});

test('makeClientCertificate: the issuer is the authority\u2019s subject, byte for byte', async () => {
  const other = await makeTestAuthority('\u00dcber \u{1f511}');
  const { certificate } = await makeTestClient(other, { commonName: 'bob' });
  const issuer = readDer(tbsOf(certificate)).children[3];
  const subject = readDer(tbsOf(other.certificate)).children[5];
  assert.equal(hex(issuer?.encoding ?? new Uint8Array()), hex(subject?.encoding ?? Uint8Array.of(1)));
});

test('makeClientCertificate: without a private key, as for a request, the certificate is the same kind', async () => {
  const { privateKey: _, ...request } = clientRequest(validityFrom(ISSUED_AT, 1));
  const read = new X509Certificate(await makeClientCertificate(request, authority));
  assert.ok(read.checkPrivateKey(clientKeys.privateKey));
});

test('makeClientCertificate: times change their form at 2050, notBefore and notAfter each by itself', async () => {
  const border = seconds('2050-01-01T00:00:00Z');
  for (const [notBefore, notAfter, tags] of [
    [border - 2, border - 1, [0x17, 0x17]],
    [border - 1, border, [0x17, 0x18]],
    [border, border + 1, [0x18, 0x18]],
  ] as const) {
    const certificate = await makeClientCertificate(clientRequest({ notBefore, notAfter }), authority);
    assert.deepEqual(readDer(tbsOf(certificate)).children[4]?.children.map(({ tag }) => tag), tags);
    const read = new X509Certificate(certificate);
    assert.equal(read.validFromDate.getTime() / 1000, notBefore);
    assert.equal(read.validToDate.getTime() / 1000, notAfter);
  }
});

test('makeClientCertificate: ends with its authority at the latest', async () => {
  const end = new X509Certificate(authority.certificate).validToDate.getTime() / 1000;
  for (const notAfter of [end - 1, end]) {
    await makeClientCertificate(clientRequest({ notBefore: ISSUED_AT, notAfter }), authority);
  }
  const tooLong = clientRequest({ notBefore: ISSUED_AT, notAfter: end + 1 });
  await assert.rejects(makeClientCertificate(tooLong, authority), RangeError);
});

test('makeClientCertificate: refuses what the profile has no encoding for', async () => {
  const validity = validityFrom(ISSUED_AT, 1);
  for (const name of ['', ' alice', 'a\u0301', 'a\u0000b', 'a'.repeat(65), '\ud800']) {
    await assert.rejects(makeClientCertificate(clientRequest(validity, name), authority), RangeError, name);
  }
  for (const serial of ['', '00', `8${'0'.repeat(31)}`]) {
    await assert.rejects(makeClientCertificate(clientRequest(validity, 'alice', serial), authority), RangeError);
  }
  const fractional = clientRequest({ notBefore: ISSUED_AT + 0.5, notAfter: ISSUED_AT + 10 });
  await assert.rejects(makeClientCertificate(fractional, authority), RangeError);
});

test('makeClientCertificate: nothing leaves that does not verify', async () => {
  const stranger = await generateKeyPair();
  const request = clientRequest(validityFrom(ISSUED_AT, 1));
  const wrongSigner = { certificate: authority.certificate, privateKey: stranger.privateKey };
  await assert.rejects(makeClientCertificate(request, wrongSigner), /does not verify/);
  const wrongKey = { ...request, privateKey: stranger.privateKey };
  await assert.rejects(makeClientCertificate(wrongKey, authority), /does not verify/);
  const client = await makeTestClient(authority);
  const noAuthority = { certificate: client.certificate, privateKey: client.keyPair.privateKey };
  await assert.rejects(makeClientCertificate(request, noAuthority), /does not verify/);
  const mixed = { ...request, spki: stranger.spki };
  await assert.rejects(makeAuthorityCertificate(mixed, distinguishedName('CA')), /does not verify/);
});

test('validityFrom: five minutes of grace before, whole days after', () => {
  const { notBefore, notAfter } = validityFrom(ISSUED_AT, 365);
  assert.equal(notBefore, ISSUED_AT - 300);
  assert.equal(notAfter, ISSUED_AT + 365 * DAY_SECONDS);
});

test('validityFrom: never past the latest moment given, nor past 9999', () => {
  const natural = ISSUED_AT + DAY_SECONDS;
  const ending = (expiresAt: number) => validityFrom(ISSUED_AT, 1, { createdAt: ISSUED_AT, expiresAt }).notAfter;
  assert.deepEqual([ending(natural + 1), ending(natural), ending(natural - 1)], [natural, natural, natural - 1]);
  assert.equal(validityFrom(ISSUED_AT, 2 ** 40).notAfter, LATEST_TIME_SECONDS);
});

test('validityFrom: refuses when no second is left', () => {
  const under = (createdAt: number, expiresAt: number) => validityFrom(ISSUED_AT, 1, { createdAt, expiresAt });
  assert.equal(under(ISSUED_AT, ISSUED_AT + 1).notAfter, ISSUED_AT + 1);
  assert.throws(() => under(ISSUED_AT, ISSUED_AT), RangeError);
  assert.throws(() => under(ISSUED_AT, ISSUED_AT - 1), RangeError);
  // If a clock that was ahead made the authority, it begins five minutes before `createdAt`.
  const natural = ISSUED_AT + DAY_SECONDS;
  assert.equal(under(ISSUED_AT + 300, natural).notAfter, natural);
  assert.throws(() => under(ISSUED_AT + 301, natural), /^RangeError: the authority is not valid yet: pasted pki ca renew$/);
  assert.throws(() => validityFrom(ISSUED_AT, 0), RangeError);
});

test('readIssuer: the subject and the key identifier, as they stand', () => {
  const { name, keyIdentifier: identifier } = readIssuer(authority.certificate);
  assert.equal(hex(name), AUTHORITY_NAME);
  assert.equal(hex(identifier), hex(keyIdentifier(subjectPublicKeyInfo(authority.keyPair.publicKey))));
});

test('readIssuer: refuses bytes that are no certificate, and one without a key identifier', () => {
  assert.throws(() => readIssuer(Uint8Array.of(0x30, 0x00)), { name: 'DerError' });
  const [tbs, ...rest] = readDer(authority.certificate).children.map(({ encoding }) => encoding);
  const fields = readDer(tbs ?? new Uint8Array()).children.map(({ encoding }) => encoding);
  const noExtensions = seq(...fields.slice(0, 7), Uint8Array.of(0xa3, 0x02, 0x30, 0x00));
  assert.throws(() => readIssuer(seq(noExtensions, ...rest)), { message: /without subjectKeyIdentifier/ });
  const emptyWrapper = seq(...fields.slice(0, 7), Uint8Array.of(0xa3, 0x00));
  assert.throws(() => readIssuer(seq(emptyWrapper, ...rest)), { name: 'DerError' });
});
