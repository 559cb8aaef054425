// Fingerprints of certificates that come from outside. That real ones get the right fingerprint: the certificates'
// own tests, with openssl as the oracle.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import { bitString, integer, NULL, octetString, seq } from '../../src/authority/der.ts';
import { presentedCertificateSha1 } from '../../src/crypto/presented.ts';

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
