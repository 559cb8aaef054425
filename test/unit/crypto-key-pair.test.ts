// Key pairs and signatures of the one curve that is used.

import assert from 'node:assert/strict';
import { generateKeyPairSync, verify } from 'node:crypto';
import { test } from 'node:test';
import { NULL, octetString } from '../../src/authority/der.ts';
import { generateKeyPair, signed, subjectPublicKeyInfo } from '../../src/authority/keys.ts';
import { bitStringOctets, readDer } from '../../src/crypto/presented.ts';

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

test('signed: a DER signature over SHA-384, and not over OpenSSL\u2019s default', async () => {
  const { publicKey, privateKey } = await generateKeyPair();
  const bytes = octetString(Buffer.from('to be signed'));
  const [tbs, , signatureValue] = readDer(await signed(bytes, privateKey, 'sha384')).children;
  assert.deepEqual(tbs!.encoding, bytes);
  const signature = bitStringOctets(signatureValue!);
  assert.equal(signature[0], 0x30);
  assert.ok(verify('sha384', bytes, publicKey, signature));
  assert.ok(!verify('sha256', bytes, publicKey, signature));
});

test('signed: rejects for a key that can\u2019t', async () => {
  const { publicKey } = await generateKeyPair();
  await assert.rejects(signed(NULL, publicKey, 'sha384'));
  await assert.rejects(signed(NULL, generateKeyPairSync('ed25519').privateKey, 'sha384'));
});
