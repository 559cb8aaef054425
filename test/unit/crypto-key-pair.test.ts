// Key pairs and signatures of the one curve that is used.

import assert from 'node:assert/strict';
import { generateKeyPairSync, verify } from 'node:crypto';
import { test } from 'node:test';
import { generateKeyPair, sign, subjectPublicKeyInfo } from '../../src/authority/keys.ts';

test('generateKeyPair: a new key on secp384r1 each time', async () => {
  const pairs = await Promise.all([generateKeyPair(), generateKeyPair()]);
  for (const { publicKey, privateKey } of pairs) {
    assert.equal(publicKey.asymmetricKeyDetails?.namedCurve, 'secp384r1');
    assert.equal(privateKey.type, 'private');
  }
  assert.ok(!pairs[0].publicKey.equals(pairs[1].publicKey));
});

test('subjectPublicKeyInfo: the curve by its name, the point uncompressed', async () => {
  const { publicKey } = await generateKeyPair();
  const spki = Buffer.from(subjectPublicKeyInfo(publicKey)).toString('hex');
  assert.match(spki, /^3076301006072a8648ce3d020106052b8104002203620004[0-9a-f]{192}$/);
});

test('signSha384: a DER signature over SHA-384, and not over OpenSSL\u2019s default', async () => {
  const { publicKey, privateKey } = await generateKeyPair();
  const bytes = Buffer.from('to be signed');
  const signature = await sign('sha384', privateKey, bytes);
  assert.equal(signature[0], 0x30);
  assert.ok(verify('sha384', bytes, publicKey, signature));
  assert.ok(!verify('sha256', bytes, publicKey, signature));
});

test('signSha384: rejects for a key that can\u2019t', async () => {
  const { publicKey } = await generateKeyPair();
  await assert.rejects(sign('sha384', publicKey, new Uint8Array(1)));
  await assert.rejects(sign('sha384', generateKeyPairSync('ed25519').privateKey, new Uint8Array(1)));
});
