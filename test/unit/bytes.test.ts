// core/bytes.ts: small bytes are kept as text of one character a byte, and a part of either form is that part.

import assert from 'node:assert/strict';
import test from 'node:test';
import { compactBytes, partOf, type CompactBytes } from '../../src/core/bytes.ts';
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
