// Units, and times as they are written.

import assert from 'node:assert/strict';
import test from 'node:test';
import { DAY_SECONDS, HOUR_SECONDS, isoSeconds, KIB, MIB, MINUTE_SECONDS, unixSeconds } from '../../src/core/time.ts';
import { movableClock } from '../support/clock.ts';

test('units: seconds and bytes', () => {
  assert.deepEqual([MINUTE_SECONDS, HOUR_SECONDS, DAY_SECONDS], [60, 3600, 86_400]);
  assert.deepEqual([KIB, MIB], [1024, 1_048_576]);
});

test('unixSeconds: the second that has begun', () => {
  const at = (unixMs: number): number => unixSeconds(movableClock(unixMs));
  assert.deepEqual([at(1999), at(2000), at(2001)], [1, 2, 2]);
});

test('isoSeconds: UTC, whole seconds, a Z', () => {
  assert.equal(isoSeconds(1_769_860_800), '2026-01-31T12:00:00Z');
  assert.equal(isoSeconds(0), '1970-01-01T00:00:00Z');
});
