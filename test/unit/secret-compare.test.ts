// Comparing a presented secret with the expected one.

import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { test } from 'node:test';
import { challengeToken, isSigned, parseToken, randomBytes } from '../../src/crypto/digest.ts';
import { decoyHash, secretMatcher, verifyPassword } from '../../src/crypto/passwords.ts';

test('secretMatcher: equal bytes and nothing else, of any length', () => {
  const secret = Buffer.from('correct horse battery staple');
  const matches = secretMatcher(secret, randomBytes);
  assert.equal(matches(Buffer.from(secret)), true);
  const others = [
    '', 'c', 'correct horse battery stapl', 'correct horse battery staplf', 'correct horse battery staple ',
    'x'.repeat(10_000),
  ];
  for (const other of others) assert.equal(matches(Buffer.from(other)), false, other.slice(0, 40));
});

test('secretMatcher: an empty secret matches only nothing', () => {
  const matches = secretMatcher(new Uint8Array(), randomBytes);
  assert.equal(matches(new Uint8Array()), true);
  assert.equal(matches(new Uint8Array(1)), false);
});

test('secretMatcher: takes its key from the randomness handed in', () => {
  const asked: number[] = [];
  secretMatcher(new Uint8Array(1), (size) => {
    asked.push(size);
    return new Uint8Array(size);
  });
  assert.deepEqual(asked, [32]);
});

test('secrets, signatures and passwords: compared by timingSafeEqual, whether they are right or not', async (t) => {
  const { timingSafeEqual } = crypto;
  const compared = t.mock.method(crypto, 'timingSafeEqual', timingSafeEqual);
  syncBuiltinESMExports();
  t.after(() => {
    compared.mock.restore();
    syncBuiltinESMExports();
  });
  const key = Buffer.alloc(32, 1);
  const token = parseToken(challengeToken(key, 'paste', { nonce: '0'.repeat(32), expiresAt: 1, difficultyBits: 1 }))!;
  const matches = secretMatcher(key, randomBytes);
  const stored = decoyHash(randomBytes);
  const comparisons = {
    secret: () => [matches(key), matches(Buffer.from('another'))],
    signature: () => [isSigned(key, 'paste', token), isSigned(key, 'register', token)],
    password: async () => [await verifyPassword('secret', stored)],
  };
  for (const [what, compare] of Object.entries(comparisons)) {
    const before = compared.mock.callCount();
    const results = await compare();
    assert.deepEqual(compared.mock.calls.slice(before).map(({ result }) => result), results, what);
  }
});
