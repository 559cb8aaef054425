// Fingerprints of certificates that come from outside. The tests of certificates show that real ones get the right
// fingerprint, with openssl as the oracle.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import { bitString, integer, NULL, octetString, seq } from '../../src/authority/der.ts';
import { encodePem } from '../../src/authority/keys.ts';
import { CERTIFICATE_FORMS, presentedCertificateSha1 } from '../../src/crypto/presented.ts';

const CERTIFICATE = seq(seq(), seq(), bitString(Uint8Array.of(1)));

test('presentedCertificateSha1: only bytes of the form of one certificate have one', () => {
  const sha1 = createHash('sha1').update(CERTIFICATE).digest('hex');
  assert.equal(presentedCertificateSha1(CERTIFICATE), sha1);
  const others = [
    new Uint8Array(), Uint8Array.of(0x30), CERTIFICATE.subarray(1), CERTIFICATE.subarray(0, -1),
    Buffer.concat([CERTIFICATE, CERTIFICATE]), Buffer.concat([CERTIFICATE, NULL]), seq(CERTIFICATE),
    seq(seq(), seq()), seq(seq(), seq(), bitString(Uint8Array.of(1)), NULL),
    seq(integer(1), seq(), bitString(new Uint8Array())),
    seq(seq(), seq(), octetString(Uint8Array.of(1))), seq(), Buffer.from('-----BEGIN CERTIFICATE-----'),
  ];
  for (const bytes of others) assert.equal(presentedCertificateSha1(bytes), undefined, Buffer.from(bytes).toString('hex'));
});

test('presentedCertificateSha1: what is no bytes at all is a mistake of the caller', () => {
  assert.throws(() => presentedCertificateSha1(undefined as unknown as Uint8Array), TypeError);
});

/** A certificate with this many bytes in it, whose base64 has characters that must be escaped. */
function certificateOf(bytes: number): Uint8Array {
  return seq(seq(octetString(new Uint8Array(bytes).fill(0xff))), seq(), bitString(Uint8Array.of(0xfb, 0xf0)));
}

/** nginx's $ssl_client_escaped_cert. */
function escapedByNginx(certificate: Uint8Array): string {
  return encodeURIComponent(encodePem('CERTIFICATE', certificate));
}

/** What nginx 1.22 gave for `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -subj /CN=a`. */
const OF_NGINX = [
  '-----BEGIN%20CERTIFICATE-----%0A',
  'MIIBbDCCAROgAwIBAgIUQWGB6x03aUc5bAP0juo4BJyU6AIwCgYIKoZIzj0EAwIw%0A',
  'DDEKMAgGA1UEAwwBYTAeFw0yNjExMjMxODM5MjZaFw0yNjExMjQxODM5MjZaMAwx%0A',
  'CjAIBgNVBAMMAWEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQfNoRd27fhQP7a%0A',
  'IAqKOJBwF3Zkota%2Bh0pKmI%2BwX%2BACXt3dZ4FEm3OdoHufnvG%2FsvauUeQLfgfGeb9c%0A',
  'U6S4DZBpo1MwUTAdBgNVHQ4EFgQUHJ0X%2B%2BMvhZYHV3T6g1sHEVH5oRgwHwYDVR0j%0A',
  'BBgwFoAUHJ0X%2B%2BMvhZYHV3T6g1sHEVH5oRgwDwYDVR0TAQH%2FBAUwAwEB%2FzAKBggq%0A',
  'hkjOPQQDAgNHADBEAiAU0zFMnXeNWZQxta2qIUFv48k7J%2BSvllA79XjjCdc1oAIg%0A',
  'OyQP1vu%2Bwm%2BsskRW8YGdPppOFH98QG3vQc6fngFpoPQ%3D%0A',
  '-----END%20CERTIFICATE-----%0A',
].join('');

const readHeader = CERTIFICATE_FORMS['x-ssl-client-cert'];

test('X-SSL-Client-Cert: takes DER in base64, and PEM as nginx escapes it, of any length', () => {
  const seen = new Set<string>();
  for (let bytes = 0; bytes < 200; bytes += 1) {
    const certificate = Buffer.from(certificateOf(bytes));
    const escaped = escapedByNginx(certificate);
    for (const [escape] of escaped.matchAll(/%../g)) seen.add(escape);
    const expected = { fingerprint: createHash('sha1').update(certificate).digest('hex'), certificate };
    assert.deepEqual(readHeader(escaped), expected, escaped);
    assert.deepEqual(readHeader(certificate.toString('base64')), expected);
  }
  assert.deepEqual([...seen].sort(), ['%0A', '%20', '%2B', '%2F', '%3D']);
});

test('X-SSL-Client-Cert: reads what OpenSSL wrote and nginx escaped', () => {
  assert.equal(readHeader(OF_NGINX)?.fingerprint, '155ae02be10c0921ea38ef1ada29f76a18beec7f');
});

test('X-SSL-Client-Cert: one block as nginx writes it, and nothing else, is a certificate', () => {
  // This certificate has every escape that occurs, and a last line that is shorter.
  const certificate = certificateOf(100);
  const good = escapedByNginx(certificate);
  const pem = encodePem('CERTIFICATE', certificate);
  for (const escape of ['%2B', '%2F', '%3D']) assert.ok(good.includes(escape), escape);
  const [begin, ...lines] = good.split('%0A');
  const junk = ['x', ' ', '%20', '%0A', '%00', '-', '=', '%3D', '%', '%2', '%ZZ', '%FF', '%C3%BC', '\u00fc', '\n'];
  const others = [
    // No block, more than one, or a broken one.
    '', '-', '-----', '%0A', begin!, '-----BEGIN%20CERTIFICATE-----%0A-----END%20CERTIFICATE-----%0A', good.repeat(2),
    good + escapedByNginx(CERTIFICATE), good.replace('-----END', `${good}-----END`), lines.join('%0A'),
    `${begin}%0A${good}`, good.replace(/-----END.*/, ''), good.slice(0, -3), good.slice(3),
    // A block of something else.
    ...['X509%20CRL', 'TRUSTED%20CERTIFICATE', 'certificate', ''].map((label) => good.replaceAll('CERTIFICATE', label)),
    good.replace('BEGIN', 'END'), good.replace('END', 'BEGIN'),
    encodeURIComponent(encodePem('CERTIFICATE', Buffer.concat([certificate, NULL]))),
    encodeURIComponent(encodePem('CERTIFICATE', Buffer.from('a text'))),
    // Escapes that are broken, in lower case, missing, doubled, or of characters that need none.
    ...['%2B', '%2F', '%3D', '%0A'].flatMap((escape) => [
      escape.toLowerCase(), escape.slice(0, -1), escape.slice(1), decodeURIComponent(escape), `%25${escape.slice(1)}`,
    ].map((instead) => good.replace(escape, instead))),
    good.toLowerCase(), good.replaceAll('-', '%2D'), good.replace('M', '%4D'), good.replaceAll('%20', '+'), pem,
    good.replaceAll('%20', ' '), encodeURI(pem), encodeURIComponent(good), good.replaceAll('%2B', '-'),
    // Lines of other lengths or ends.
    good.replaceAll('%0A', '%0D%0A'), good.replaceAll('%0A', ''), good.replaceAll('%0A', '%0A%09'),
    good.replace(/(?<=-----%0A.{60})/, '%0A'), good.replace(/(?<=%0A.*)%0A/, ''), `${good}%0A`, `%0A${good}`,
    good.replace('%0A', '%0A%0A'), `"${good}"`, `:${good}:`, `${good},${good}`, `Cert="${good}"`,
  ];
  const places = [0, 5, 12, 40, 41, 120, good.length - 40, good.length - 3, good.length];
  const withJunk = junk.flatMap((one) => places.map((at) => good.slice(0, at) + one + good.slice(at)));
  for (const [index, value] of [...others, ...withJunk].entries()) {
    assert.notEqual(value, good, `${index} is another`);
    assert.equal(readHeader(value), undefined, `${index}: ${value}`);
  }
  assert.equal(CERTIFICATE_FORMS['client-cert'](good), undefined);
  assert.equal(CERTIFICATE_FORMS['client-cert'](`:${good}:`), undefined);
  assert.notEqual(readHeader(good), undefined);
});
