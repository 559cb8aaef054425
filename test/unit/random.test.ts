import assert from 'node:assert/strict';
import test from 'node:test';
import { randomBytes } from '../../src/crypto/random.ts';

test('randomBytes: gives the size asked for', () => {
  for (const size of [0, 1, 16, 32, 65_537]) assert.equal(randomBytes(size).length, size);
});

test('randomBytes: 10 000 nonces of 16 bytes are all different', () => {
  const nonces = Array.from({ length: 10_000 }, () => Buffer.from(randomBytes(16)).toString('hex'));
  assert.equal(new Set(nonces).size, nonces.length);
});
