// Buffers for chunks: nobody else gets one that was taken, and few are kept.

import assert from 'node:assert/strict';
import test from 'node:test';
import { createChunkBuffers } from '../../src/store/writer.ts';
import { CHUNK_BYTES } from '../../src/store/store.ts';

test('take: gives whole chunks, each to one taker, and again when given back', () => {
  const buffers = createChunkBuffers();
  const [first, second] = [buffers.take(), buffers.take()];
  assert.equal(first.length, CHUNK_BYTES);
  assert.notEqual(first.buffer, second.buffer);
  assert.equal(buffers.taken, 2);
  buffers.giveBack(first.subarray(0, 10));
  assert.equal(buffers.taken, 1);
  assert.equal(buffers.take().buffer, first.buffer);
});

test('giveBack: twice counts once, and bytes from elsewhere are not taken in', () => {
  const buffers = createChunkBuffers();
  const chunk = buffers.take();
  buffers.giveBack(chunk);
  buffers.giveBack(chunk);
  buffers.giveBack(new Uint8Array(CHUNK_BYTES));
  assert.equal(buffers.taken, 0);
  assert.notEqual(buffers.take().buffer, buffers.take().buffer);
});

test('giveBack: a crowd leaves a few buffers behind, not all of its own', () => {
  const buffers = createChunkBuffers();
  const crowd = Array.from({ length: 50 }, () => buffers.take());
  for (const chunk of crowd) buffers.giveBack(chunk);
  const earlier = new Set(crowd.map(({ buffer }) => buffer));
  const again = Array.from({ length: 50 }, () => buffers.take());
  assert.equal(again.filter(({ buffer }) => earlier.has(buffer)).length, 16);
});
