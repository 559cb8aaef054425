// The format of pastec's encryption, which the first comment of pastec describes, written a second time with Node's own
// primitives.

import assert from 'node:assert/strict';
import { createCipheriv, createDecipheriv, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';

export const MAGIC = Buffer.from('\x89pastec-1\n', 'latin1');
export const TAG_BYTES = 32;
const SALTED = Buffer.from('Salted__');

function hmac(key: Buffer, ...parts: (Buffer | string)[]): Buffer {
  return parts.reduce((mac, part) => mac.update(part), createHmac('sha256', key)).digest();
}

function cipherParameters(key: Buffer, salt: Buffer): [string, Buffer, Buffer] {
  const encryptionKey = hmac(key, 'pastec-1 encryption').toString('base64');
  const derived = pbkdf2Sync(encryptionKey, salt, 1, 48, 'sha256');
  return ['aes-256-ctr', derived.subarray(0, 32), derived.subarray(32)];
}

export function seal(key: Buffer, plain: Buffer): Buffer {
  const salt = randomBytes(8);
  const cipher = createCipheriv(...cipherParameters(key, salt));
  const sealed = Buffer.concat([SALTED, salt, cipher.update(plain), cipher.final()]);
  return Buffer.concat([MAGIC, hmac(hmac(key, 'pastec-1 authentication'), MAGIC, sealed), sealed]);
}

/** Fails the test when the content is not sealed under that key. */
export function unseal(key: Buffer, content: Buffer): Buffer {
  const [magic, tag] = [content.subarray(0, MAGIC.length), content.subarray(MAGIC.length, MAGIC.length + TAG_BYTES)];
  const sealed = content.subarray(MAGIC.length + TAG_BYTES);
  assert.deepEqual(magic, MAGIC);
  assert.deepEqual(tag, hmac(hmac(key, 'pastec-1 authentication'), MAGIC, sealed));
  const decipher = createDecipheriv(...cipherParameters(key, sealed.subarray(8, 16)));
  return Buffer.concat([decipher.update(sealed.subarray(16)), decipher.final()]);
}
