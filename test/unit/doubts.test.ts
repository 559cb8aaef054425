// pastes/upkeep.ts: when an admin that is missing, and an authority that runs out, are worth a line.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DAY_SECONDS } from '../../src/core/time.ts';
import { adminDoubt, authorityDoubt } from '../../src/pastes/upkeep.ts';
import { testConfig } from '../support/test-config.ts';

const NOW = 1_769_860_800;

test('adminDoubt: where a password is set and nothing was ever issued', () => {
  const config = testConfig({ pkiCaPassword: 'canary' });
  const doubt = adminDoubt(config, 0);
  assert.match(doubt ?? '', /SERVICE_PKI_CA_PASSWORD is set: [^]*pasted admin create$/);
  assert.ok(!doubt?.includes('canary'));
  assert.equal(adminDoubt(config, 1), undefined);
  assert.equal(adminDoubt(testConfig(), 0), undefined);
});

test('authorityDoubt: a warning with less than 90 days left, an error with less than 30', () => {
  const levelWith = (seconds: number) => authorityDoubt(NOW + seconds, NOW)?.level;
  for (const [seconds, level] of [
    [90 * DAY_SECONDS + 1, undefined], [90 * DAY_SECONDS, 'warning'], [30 * DAY_SECONDS + 1, 'warning'],
    [30 * DAY_SECONDS, 'error'], [1, 'error'], [0, 'error'], [-1, 'error'],
  ] as const) {
    assert.equal(levelWith(seconds), level, `${seconds} s left`);
  }
  assert.match(authorityDoubt(NOW + 45.5 * DAY_SECONDS, NOW)!.message, /^runs out soon, at 2026-03-18T00:00:00Z \(45 days\), .*: pasted pki ca renew$/);
  assert.match(authorityDoubt(NOW, NOW)!.message, /^ran out at .*: pasted pki ca renew$/);
});
