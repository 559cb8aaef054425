// Which callers have the relaxed limits.

import assert from 'node:assert/strict';
import test from 'node:test';
import { hasTrustedLimits, type Tier } from '../../src/core/callers.ts';

test('hasTrustedLimits: trusted callers and the admin', () => {
  const tiers: readonly Tier[] = ['anonymous', 'untrusted', 'trusted', 'admin'];
  const found = tiers.map((tier) => hasTrustedLimits({ tier, fingerprint: tier === 'anonymous' ? null : 'a'.repeat(40) }));
  assert.deepEqual(found, [false, false, true, true]);
});
