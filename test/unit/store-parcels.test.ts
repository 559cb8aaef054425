// Small bytes for the writer thread: copies in shared memory that nothing writes to again.

import assert from 'node:assert/strict';
import test from 'node:test';
import { createParcels } from '../../src/store/writer.ts';
import { patternedBytes } from '../support/store.ts';

test('wrap: copies, which lie together and stay as they are', () => {
  const wrap = createParcels();
  const bytes = patternedBytes(1000);
  const wrapped = Array.from({ length: 200 }, () => wrap(bytes));
  for (const copy of wrapped) assert.deepEqual(Buffer.from(copy), Buffer.from(bytes));
  const buffers = new Set(wrapped.map(({ buffer }) => buffer));
  assert.ok([...buffers].every((buffer) => buffer instanceof SharedArrayBuffer));
  assert.equal(buffers.size, 4);
  wrapped[0]!.fill(0);
  assert.deepEqual(Buffer.from(wrapped[1]!), Buffer.from(bytes));
});

test('wrap: bytes of any size, those of a view alone, and none', () => {
  const wrap = createParcels();
  const large = patternedBytes(100_000);
  assert.deepEqual(Buffer.from(wrap(large)), Buffer.from(large));
  const view = large.subarray(10, 20);
  assert.deepEqual(Buffer.from(wrap(view)), Buffer.from(view));
  assert.equal(wrap(new Uint8Array(0)).length, 0);
});

test('wrap: a buffer has 64 KiB, which are used to the last byte', () => {
  for (const [size, buffers] of [[32_767, 1], [32_768, 1], [32_769, 2]] as const) {
    const wrap = createParcels();
    const wrapped = [wrap(patternedBytes(size)), wrap(patternedBytes(32_768))];
    assert.equal(new Set(wrapped.map(({ buffer }) => buffer)).size, buffers, `${size} + 32768 bytes`);
  }
});
