// service/storage-rules.ts: the terms under which content is stored, and what is counted and told of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import type { Count } from '../../src/core/events.ts';
import { createStorageRules } from '../../src/pastes/intake.ts';
import { testConfig } from '../support/test-config.ts';

function rulesOf(settings: Partial<Config>) {
  const counted: string[] = [];
  const count = ((...labels: readonly string[]) => void counted.push(labels.join(' '))) as Count;
  return { ...createStorageRules(testConfig({ duplicateWindowSeconds: 7, ...settings }), count), counted };
}

test('terms and countStored: 0 is no throttle, and no quota', () => {
  const off = rulesOf({ duplicateMax: 0, maxStorageBytes: 0 });
  assert.deepEqual(off.terms, { duplicates: null, maxStoredBytes: null });
  off.countStored();
  assert.deepEqual(off.counted, []);
  for (const amount of [1, 2]) {
    const on = rulesOf({ duplicateMax: amount, maxStorageBytes: amount });
    assert.deepEqual(on.terms, { duplicates: { max: amount, windowSeconds: 7 }, maxStoredBytes: amount });
    on.countStored();
    assert.deepEqual(on.counted, ['duplicateChecks accepted']);
  }
});

test('refusalOf: a duplicate is counted, and told with where the client stands; a full storage is neither', () => {
  const { refusalOf, counted } = rulesOf({ duplicateMax: 3 });
  const rate = { limit: 3, remaining: 2, resetAtSeconds: 60 };
  const full = refusalOf({ kind: 'storageFull' }, rate);
  assert.deepEqual([full.refusal, full.fields, full.terms, counted], ['storageFull', {}, {}, []]);
  const again = refusalOf({ kind: 'duplicate', count: 4, retryAfterSeconds: 5 }, rate);
  assert.deepEqual([again.refusal, again.fields, again.terms], [
    'duplicateContent', { count: 4, windowSeconds: 7 }, { retryAfterSeconds: 5, rate },
  ]);
  assert.deepEqual(counted, ['duplicateChecks refused']);
});
