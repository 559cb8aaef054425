// Comparing a presented secret with the expected one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomBytes } from '../../src/crypto/digest.ts';
import { secretMatcher } from '../../src/crypto/passwords.ts';

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
