// What each tier may do, in numbers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Caller, Tier } from '../../src/core/callers.ts';
import { maxPasteBytes, rateMaxFor, ttlSeconds } from '../../src/pastes/admission.ts';
import { testConfig } from '../support/test-config.ts';

const CONFIG = testConfig({
  maxAnonBytes: 10,
  maxAuthBytes: 20,
  expiryAnonSeconds: 100,
  expiryUntrustedSeconds: 200,
  expiryTrustedSeconds: 300,
  maxExpirySeconds: 150,
  rateTrustedFactor: 5,
});
const TIERS: readonly Tier[] = ['anonymous', 'untrusted', 'trusted', 'admin'];

function callers(): Caller[] {
  return TIERS.map((tier) => ({ tier, fingerprint: tier === 'anonymous' ? null : 'a'.repeat(40) }));
}

test('maxPasteBytes and rateMaxFor: more for a valid certificate of this service; no limit stays none', () => {
  assert.deepEqual(callers().map((caller) => maxPasteBytes(CONFIG, caller)), [10, 10, 20, 20]);
  assert.deepEqual(callers().map((caller) => rateMaxFor(CONFIG, caller, 3)), [3, 3, 15, 15]);
  assert.deepEqual(callers().map((caller) => rateMaxFor(CONFIG, caller, 0)), [0, 0, 0, 0]);
});

test('ttlSeconds: the tier\'s default as it is, and what is asked for up to the cap', () => {
  const asked = (seconds?: number): number[] => callers().map((caller) => ttlSeconds(CONFIG, caller, seconds));
  assert.deepEqual(asked(), [100, 200, 300, 300]);
  for (const [seconds, expected] of [[149, 149], [150, 150], [151, 150]] as const) {
    assert.deepEqual(asked(seconds), Array(4).fill(expected));
  }
});
