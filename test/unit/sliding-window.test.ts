import assert from 'node:assert/strict';
import test from 'node:test';
import { SlidingWindow } from '../../src/limits/windows.ts';
import { cpuMsOf } from '../support/cpu.ts';
import { heapBytes } from '../support/heap.ts';

const WINDOW_MS = 60_000;

function windowOf(maxKeys = 100, cleanupThreshold = 0.8) {
  return new SlidingWindow({ windowMs: WINDOW_MS, maxKeys, cleanupThreshold });
}

test('take: allows as many as the maximum and not one more', () => {
  const limit = windowOf();
  assert.deepEqual(limit.take('a', 3, 1000), { allowed: true, remaining: 2, retryAfterMs: 0, resetMs: WINDOW_MS });
  assert.deepEqual(limit.take('a', 3, 2000), { allowed: true, remaining: 1, retryAfterMs: 0, resetMs: WINDOW_MS });
  assert.deepEqual(limit.take('a', 3, 4000), { allowed: true, remaining: 0, retryAfterMs: 0, resetMs: WINDOW_MS });
  assert.deepEqual(limit.take('a', 3, 5000), { allowed: false, remaining: 0, retryAfterMs: 56_000, resetMs: 59_000 });
});

test('take: a request counts for the window from its moment on, the last moment not included', () => {
  for (const [nowMs, allowed] of [[WINDOW_MS - 1, false], [WINDOW_MS, true], [WINDOW_MS + 1, true]] as const) {
    const limit = windowOf();
    limit.take('a', 1, 0);
    assert.equal(limit.take('a', 1, nowMs).allowed, allowed, String(nowMs));
  }
});

test('take: the window slides, so a burst on each side of a border is one burst', () => {
  const limit = windowOf();
  for (let count = 0; count < 10; count += 1) assert.equal(limit.take('a', 10, WINDOW_MS - 1).allowed, true);
  assert.equal(limit.take('a', 10, WINDOW_MS).allowed, false);
  assert.equal(limit.take('a', 10, WINDOW_MS + 1).allowed, false);
});

test('take: what is refused does not count', () => {
  const limit = windowOf();
  limit.take('a', 1, 0);
  for (let nowMs = 1; nowMs < WINDOW_MS; nowMs += 100) assert.equal(limit.take('a', 1, nowMs).allowed, false);
  assert.equal(limit.take('a', 1, WINDOW_MS).allowed, true);
});

test('take: keys are counted apart', () => {
  const limit = windowOf();
  assert.equal(limit.take('a', 1, 0).allowed, true);
  assert.equal(limit.take('b', 1, 0).allowed, true);
  assert.equal(limit.take('a', 1, 0).allowed, false);
});

test('take: callers with different maxima under one key share what is counted', () => {
  const limit = windowOf();
  for (let nowMs = 0; nowMs < 5; nowMs += 1) assert.equal(limit.take('a', 5, nowMs).allowed, true);
  // Under a maximum of 2, four of the five have to leave first. The last of those was taken at 3 ms.
  const refused = { allowed: false, remaining: 0, retryAfterMs: WINDOW_MS - 7, resetMs: WINDOW_MS - 6 };
  assert.deepEqual(limit.take('a', 2, 10), refused);
  assert.deepEqual(limit.take('a', 6, 10), { allowed: true, remaining: 0, retryAfterMs: 0, resetMs: WINDOW_MS });
});

test('take: never remembers more keys than the maximum, and forgets the oldest first', () => {
  const limit = windowOf(3, 1);
  limit.take('a', 1, 0);
  limit.take('b', 1, 1);
  limit.take('c', 1, 2);
  assert.equal(limit.size, 3);
  limit.take('d', 1, 3);
  assert.equal(limit.size, 3);
  assert.equal(limit.take('b', 1, 4).allowed, false);
  assert.equal(limit.take('c', 1, 4).allowed, false);
  assert.equal(limit.take('a', 1, 4).allowed, true, 'a was the oldest');
});

test('take: the oldest key is the one whose last allowed request is the longest ago', () => {
  const limit = windowOf(2, 1);
  limit.take('a', 2, 0);
  limit.take('b', 1, 1);
  limit.take('a', 2, 2);
  assert.equal(limit.take('b', 1, 3).allowed, false);
  limit.take('c', 1, 4);
  assert.equal(limit.take('a', 2, 5).allowed, false, 'a is remembered');
  assert.equal(limit.take('b', 1, 5).allowed, true, 'b is not');
});

test('take: prunes what has run out once there are as many keys as the threshold says', () => {
  for (const [keys, sizeAfter] of [[7, 8], [8, 1], [9, 1]] as const) {
    const limit = windowOf(10, 0.8);
    for (let key = 0; key < keys; key += 1) limit.take(`old ${key}`, 1, 0);
    limit.take('new', 1, WINDOW_MS);
    assert.equal(limit.size, sizeAfter, `${keys} keys`);
  }
});

test('take: works with a single key remembered', () => {
  const limit = windowOf(1, 0);
  assert.equal(limit.take('a', 1, 0).allowed, true);
  assert.equal(limit.take('a', 1, 1).allowed, false);
  assert.equal(limit.take('b', 1, 2).allowed, true);
  assert.equal(limit.take('a', 1, 3).allowed, true);
  assert.equal(limit.size, 1);
});

test('sweep: forgets the keys that have run out, and only these', () => {
  const limit = windowOf();
  limit.take('a', 2, 0);
  limit.take('b', 2, 1);
  limit.take('c', 2, 2);
  limit.take('a', 2, 3);
  for (const [afterMs, left] of [[0, 3], [1, 2], [1, 2], [3, 0]] as const) {
    limit.sweep(WINDOW_MS + afterMs);
    assert.equal(limit.size, left);
  }
  assert.equal(limit.take('a', 1, WINDOW_MS + 4).allowed, true);
});

test('take: a million distinct keys stay within the bound, at a cost that does not grow', () => {
  const maxKeys = 10_000;
  const limit = windowOf(maxKeys);
  const cpuMs = cpuMsOf(() => {
    for (let key = 0; key < 1_000_000; key += 1) {
      limit.take(`2001:db8:${key}::/64`, 10, key / 100);
      if (limit.size > maxKeys) assert.fail(`${limit.size} keys`);
    }
  });
  // Measured at 1 us each; finding the oldest by a search would take a hundred times as long.
  assert.ok(cpuMs < 20_000, `${cpuMs / 1000} us each`);
});

test('take: a large maximum costs nothing before it is used, and is exact when it is', () => {
  const limit = windowOf();
  const max = 200_000;
  for (let key = 0; key < 100; key += 1) limit.take(`key ${key}`, 1e9, 0);
  const cpuMs = cpuMsOf(() => {
    for (let count = 0; count < max; count += 1) assert.equal(limit.take('a', max, count / 10).allowed, true);
  });
  assert.equal(limit.take('a', max, max / 10).allowed, false);
  assert.ok(cpuMs < 4000, `${cpuMs} ms`);
});

test('take: moments that have left the window are given back, however long a client goes on', () => {
  const limit = windowOf();
  const before = heapBytes();
  for (let count = 0; count < 1_000_000; count += 1) limit.take('a', 10, count * WINDOW_MS / 5);
  const grownBytes = heapBytes() - before;
  // All of them together would take 8 MB.
  assert.ok(grownBytes < 4e6, `${grownBytes} bytes`);
  assert.equal(limit.size, 1);
});
