// The bytes of the profile, written out. Tests against other programs are in test/interop.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import {
  AUTHORITY_BASIC_CONSTRAINTS, AUTHORITY_KEY_USAGE, authorityKeyIdentifier, CLIENT_AUTH_ONLY, CLIENT_KEY_USAGE,
  keyIdentifier, LEAF_BASIC_CONSTRAINTS,
} from '../../src/authority/certificates.ts';
import { generateKeyPair, subjectPublicKeyInfo } from '../../src/authority/keys.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const IDENTIFIER = '000102030405060708090a0b0c0d0e0f10111213';

test('basicConstraints: an authority without authorities below it, and a leaf by an empty sequence', () => {
  assert.equal(hex(AUTHORITY_BASIC_CONSTRAINTS), '30120603551d130101ff040830060101ff020100');
  assert.equal(hex(LEAF_BASIC_CONSTRAINTS), '300c0603551d130101ff04023000');
});

test('keyUsage: keyCertSign and cRLSign with one unused bit, digitalSignature with seven', () => {
  assert.equal(hex(AUTHORITY_KEY_USAGE), '300e0603551d0f0101ff040403020106');
  assert.equal(hex(CLIENT_KEY_USAGE), '300e0603551d0f0101ff040403020780');
});

test('extKeyUsage: clientAuth, not critical', () => {
  assert.equal(hex(CLIENT_AUTH_ONLY), '30130603551d25040c300a06082b06010505070302');
});

test('authorityKeyIdentifier: the identifier alone', () => {
  const identifier = Buffer.from(IDENTIFIER, 'hex');
  assert.equal(hex(authorityKeyIdentifier(identifier)), `301f0603551d23041830168014${IDENTIFIER}`);
});

test('keyIdentifier: the leftmost 160 bits of SHA-256 over the point', async () => {
  const spki = subjectPublicKeyInfo((await generateKeyPair()).publicKey);
  assert.equal(spki.length, 120);
  const point = spki.subarray(120 - 97);
  assert.equal(point[0], 0x04);
  assert.equal(hex(keyIdentifier(spki)), createHash('sha256').update(point).digest('hex').slice(0, 40));
});
