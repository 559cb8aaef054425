import assert from 'node:assert/strict';
import test from 'node:test';
import { beginSha256, sha256 } from '../../src/crypto/digest.ts';

/** The examples of FIPS 180-4's companion document, and the digest of nothing. */
const VECTORS: readonly (readonly [string, string])[] = [
  ['', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
  ['abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
  [
    'abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq',
    '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
  ],
];

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

test('sha256: the published examples', () => {
  for (const [text, digest] of VECTORS) assert.equal(hex(sha256(Buffer.from(text))), digest);
});

test('beginSha256: the published examples, at every cut', () => {
  for (const [text, digest] of VECTORS) {
    const bytes = Buffer.from(text);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const whole = beginSha256();
      whole.update(bytes.subarray(0, cut));
      whole.update(bytes.subarray(cut));
      assert.equal(hex(whole.digest()), digest);
    }
  }
});

test('beginSha256: throws when used after its end', () => {
  const ended = beginSha256();
  ended.digest();
  assert.throws(() => ended.update(Buffer.from('a')));
  assert.throws(() => ended.digest());
});

test('sha256: reads a view and not the buffer behind it', () => {
  assert.equal(hex(sha256(Buffer.from('xabcx').subarray(1, 4))), VECTORS[1]![1]);
});
