import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import test from 'node:test';
import { randomBytes } from '../../src/crypto/digest.ts';

test('randomBytes: gives the size asked for', () => {
  for (const size of [0, 1, 16, 32, 65_537]) assert.equal(randomBytes(size).length, size);
});

test('randomBytes: 10 000 nonces of 16 bytes are all different', () => {
  const nonces = Array.from({ length: 10_000 }, () => Buffer.from(randomBytes(16)).toString('hex'));
  assert.equal(new Set(nonces).size, nonces.length);
});

test('randomBytes: what was handed out is the taker\'s own, and stays as it was', () => {
  const taken = Array.from({ length: 1000 }, () => randomBytes(16));
  const before = taken.map((bytes) => Buffer.from(bytes).toString('hex'));
  for (let more = 0; more < 1000; more += 1) randomBytes(16).fill(0);
  assert.deepEqual(taken.map((bytes) => Buffer.from(bytes).toString('hex')), before);
  for (const bytes of taken) assert.equal(bytes.buffer.byteLength, 16);
});

test('randomBytes: the sizes around what comes from the pool are random too', () => {
  for (const size of [15, 16, 17]) {
    const sums = Array.from({ length: 300 }, () => Buffer.from(randomBytes(size)).toString('hex'));
    assert.equal(new Set(sums).size, sums.length);
  }
});

test('randomBytes: up to 16 bytes come from 2048 that were fetched, and are zero there once handed out', (t) => {
  const sizes: number[] = [];
  let fetched = new Uint8Array();
  // The bytes are in an ArrayBuffer, so that this test sees them as well.
  t.mock.method(crypto, 'randomBytes', (size: number) => {
    sizes.push(size);
    fetched = new Uint8Array(size).fill(7);
    return fetched.buffer;
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  // Uses up what is left of the bytes that were fetched before.
  while (sizes.length === 0) randomBytes(1);
  randomBytes(15);
  const pool = fetched;
  for (let taken = 16; taken < 2048; taken += 16) {
    assert.deepEqual([pool.indexOf(7), pool.lastIndexOf(0)], [taken, taken - 1]);
    assert.deepEqual(randomBytes(16), new Uint8Array(16).fill(7));
  }
  assert.deepEqual([sizes, pool.indexOf(7)], [[2048], -1]);
  randomBytes(17);
  randomBytes(16);
  assert.deepEqual(sizes, [2048, 17, 2048]);
});
