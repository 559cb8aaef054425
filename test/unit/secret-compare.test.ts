// Comparing a presented secret with the expected one.

import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { test } from 'node:test';
import { challengeToken, isSigned, randomBytes } from '../../src/crypto/digest.ts';
import { createDeleteTokens, decoyHash, secretMatcher, verifyPassword } from '../../src/crypto/passwords.ts';

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

test('createDeleteTokens: HMAC-SHA-256 of `delete:` and the id, in base64url; equal text and nothing else', () => {
  const key = Buffer.alloc(32, 7);
  const { tokenOf, isTokenOf } = createDeleteTokens(key);
  assert.equal(tokenOf('abcdef'), crypto.createHmac('sha256', key).update('delete:abcdef').digest('base64url'));
  assert.notEqual(tokenOf('abcdef'), createDeleteTokens(Buffer.alloc(32, 8)).tokenOf('abcdef'));
  const token = tokenOf('abcdef');
  assert.deepEqual(['abcdef', 'abcdeg', 'ABCDEF', ''].map((id) => isTokenOf(id, token)), [true, false, false, false]);
  for (const other of ['', token.slice(1), `${token}=`, ` ${token}`, `${token.slice(1)}\u00e9`, 'x'.repeat(10_000)]) {
    assert.equal(isTokenOf('abcdef', other), false, other.slice(0, 50));
  }
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
  const challenge = { nonce: '0'.repeat(32), expiresAt: 1, difficultyBits: 1 };
  const token = challengeToken(key, 'paste', challenge);
  const matches = secretMatcher(key, randomBytes);
  const stored = decoyHash(randomBytes);
  const tokens = createDeleteTokens(key);
  const comparisons = {
    secret: () => [matches(key), matches(Buffer.from('another'))],
    signature: () => [isSigned(key, 'paste', challenge, token), isSigned(key, 'register', challenge, token)],
    deleteToken: () => ['one', 'other'].map((id) => tokens.isTokenOf(id, tokens.tokenOf('one'))),
    password: async () => [await verifyPassword('secret', stored)],
  };
  for (const [what, compare] of Object.entries(comparisons)) {
    const before = compared.mock.callCount();
    const results = await compare();
    assert.deepEqual(compared.mock.calls.slice(before).map(({ result }) => result), results, what);
  }
});
