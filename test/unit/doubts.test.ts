// pastes/upkeep.ts: when an admin that is missing, and an authority that runs out, are worth a line.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DAY_SECONDS } from '../../src/core/time.ts';
import { adminDoubt, authorityDoubt } from '../../src/pastes/upkeep.ts';
import { testConfig } from '../support/test-config.ts';

const NOW = 1_769_860_800;

test('adminDoubt: where a password is set and nothing was ever issued', () => {
  const config = testConfig({ pkiCaPassword: 'canary' });
  const doubt = adminDoubt(config, false);
  assert.match(doubt ?? '', /SERVICE_PKI_CA_PASSWORD is set: [^]*pasted admin create$/);
  assert.ok(!doubt?.includes('canary'));
  assert.equal(adminDoubt(config, true), undefined);
  assert.equal(adminDoubt(testConfig(), false), undefined);
});

test('authorityDoubt: a warning with less than 90 days left, an error with less than 30', () => {
  const ending = (expiresAt: number) => authorityDoubt({ createdAt: NOW, expiresAt }, NOW);
  const levelWith = (seconds: number) => ending(NOW + seconds)?.level;
  for (const [seconds, level] of [
    [90 * DAY_SECONDS + 1, undefined], [90 * DAY_SECONDS, 'warning'], [30 * DAY_SECONDS + 1, 'warning'],
    [30 * DAY_SECONDS, 'error'], [1, 'error'], [0, 'error'], [-1, 'error'],
  ] as const) {
    assert.equal(levelWith(seconds), level, `${seconds} s left`);
  }
  assert.match(ending(NOW + 45.5 * DAY_SECONDS)!.message, /^runs out soon, at 2026-03-18T00:00:00Z \(45 days\), .*: pasted pki ca renew$/);
  assert.match(ending(NOW + 1)!.message, /^runs out soon, at 2026-01-31T12:00:01Z \(0 days\), /);
  assert.match(ending(NOW)!.message, /^ran out at .*: pasted pki ca renew$/);
});

test('authorityDoubt: one that a clock made which was ahead begins five minutes before, and is an error until then', () => {
  const made = (createdAt: number) => authorityDoubt({ createdAt, expiresAt: NOW + 3650 * DAY_SECONDS }, NOW);
  assert.equal(made(NOW + 300), undefined);
  const { level, event, message } = made(NOW + 301)!;
  assert.deepEqual([level, event], ['error', 'CA is not valid yet']);
  assert.match(message, /^is not valid before 2026-01-31T12:00:01Z, nor is what it has issued: pasted pki ca renew$/);
});
