// http/metrics-listener.ts: gauges where there is nothing to read. As they are served: test/api/metrics-server.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gaugeReaders } from '../../src/http/metrics-listener.ts';
import { WorkQueue } from '../../src/limits/work-queue.ts';
import type { Store } from '../../src/store/open.ts';
import { movableClock } from '../support/clock.ts';

const DELAY = { read: () => assert.fail('not read'), stop: () => {} };

test('quotaBytesUsed: content, or what the database takes where that is more', async () => {
  const used = (bytes: number, databaseBytes: number) => gaugeReaders({
    store: { read: { usage: async () => ({ pastes: 1, bytes, databaseBytes }) } } as unknown as Store,
    queue: new WorkQueue({ concurrency: 1, maxWaiting: 0, maxWaitMs: 0, clock: movableClock() }),
    clock: movableClock(),
  }, DELAY, () => 0).quotaBytesUsed();
  assert.deepEqual([await used(5, 0), await used(5, 7)], [5, 7]);
});

test('authorityExpiry: null where there is no authority', async () => {
  const expiry = (found: { expiresAt: number } | undefined) => gaugeReaders({
    store: { read: { findAuthority: async () => found } } as unknown as Store,
    queue: new WorkQueue({ concurrency: 1, maxWaiting: 0, maxWaitMs: 0, clock: movableClock() }),
    clock: movableClock(),
  }, DELAY, () => 0).authorityExpiry();
  assert.equal(await expiry({ expiresAt: 5 }), 5);
  assert.equal(await expiry(undefined), null);
});
