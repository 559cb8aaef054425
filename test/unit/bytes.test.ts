// core/content.ts: small bytes are kept as text of one character a byte, and a part of either form is that part; pieces
// are copied as they come.

import assert from 'node:assert/strict';
import test from 'node:test';
import { compactBytes, type CompactBytes, JoinedBytes, NOTHING, partOf } from '../../src/core/content.ts';
import { patternedBytes } from '../support/store.ts';

const TEXT_BYTES = 8 * 1024;
const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => byte);

function bytesOf(compact: CompactBytes): Buffer {
  return 'latin1' in compact ? Buffer.from(compact.latin1, 'latin1') : Buffer.from(compact);
}

test('compactBytes: small ones as text of one character a byte, larger ones themselves', () => {
  const compact = compactBytes(EVERY_BYTE);
  assert.ok('latin1' in compact);
  assert.deepEqual([...compact.latin1].map((character) => character.charCodeAt(0)), [...EVERY_BYTE]);
  for (const size of [0, TEXT_BYTES - 1, TEXT_BYTES, TEXT_BYTES + 1]) {
    const bytes = patternedBytes(size);
    assert.equal(compactBytes(bytes) === bytes, size > TEXT_BYTES, `${size} bytes`);
    assert.deepEqual(bytesOf(compactBytes(bytes)), Buffer.from(bytes), `${size} bytes`);
  }
});

test('compactBytes: of a view only what it shows', () => {
  assert.deepEqual(compactBytes(Buffer.from('before, within, after').subarray(8, 14)), { latin1: 'within' });
});

test('partOf: the same part of either form', () => {
  for (const [start, end] of [[0, 256], [0, 1], [255, 256], [128, 200], [7, 7]] as const) {
    const expected = Buffer.from(EVERY_BYTE.subarray(start, end));
    assert.deepEqual(bytesOf(partOf(EVERY_BYTE, start, end)), expected);
    assert.deepEqual(bytesOf(partOf(compactBytes(EVERY_BYTE), start, end)), expected);
  }
});

test('JoinedBytes: the pieces in order, up to the most', () => {
  for (const sizes of [[], [0], [0, 5], [5, 0], [1, 1, 1], [1, 1023, 1, 4000], [5000, 1], [9999, 1]]) {
    const joined = new JoinedBytes(10_000);
    const pieces = sizes.map((size) => patternedBytes(size));
    for (const piece of pieces) joined.add(piece);
    const whole = Buffer.concat(pieces);
    assert.equal(joined.length, whole.length);
    const taken = joined.take();
    assert.ok(whole.equals(taken), sizes.join(' + '));
    assert.equal(taken.buffer.byteLength, taken.length, 'nothing else is in its memory');
    assert.equal(joined.length, 0);
  }
});

test('JoinedBytes: the first piece is kept as it is, and of the others none', () => {
  const joined = new JoinedBytes(100_000);
  for (const first of [patternedBytes(1), patternedBytes(10)]) {
    joined.add(first);
    assert.equal(joined.take(), first);
  }
  const pieces = Array.from({ length: 10_000 }, (_, index) => Uint8Array.of(index));
  for (const piece of pieces) {
    joined.add(piece);
    if (piece !== pieces[0]) piece.fill(0);
  }
  assert.deepEqual(joined.take(), Uint8Array.from(pieces, (_, index) => index));
  const nothing = joined.take();
  assert.deepEqual(nothing, new Uint8Array(0));
  assert.notEqual(nothing, NOTHING, 'who takes bytes may free them');
});
