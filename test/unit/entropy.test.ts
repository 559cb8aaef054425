import assert from 'node:assert/strict';
import test from 'node:test';
import { entropyBitsPerByte } from '../../src/pastes/intake.ts';

function histogram(bytes: Uint8Array): number[] {
  const counts = new Array<number>(256).fill(0);
  for (const byte of bytes) counts[byte]! += 1;
  return counts;
}

test('entropyBitsPerByte: nothing, and one value only, have none', () => {
  assert.equal(entropyBitsPerByte(histogram(Buffer.alloc(0))), 0);
  assert.equal(entropyBitsPerByte(histogram(Buffer.alloc(1))), 0);
  assert.equal(entropyBitsPerByte(histogram(Buffer.alloc(1000, 'a'))), 0);
});

test('entropyBitsPerByte: 2^n values equally often have n bits', () => {
  for (let bits = 0; bits <= 8; bits += 1) {
    const bytes = Uint8Array.from({ length: 3 * 2 ** bits }, (_, index) => index % 2 ** bits);
    assert.equal(entropyBitsPerByte(histogram(bytes)), bits);
  }
});

test('entropyBitsPerByte: one in four has 2 - 3/4 log2 3 bits', () => {
  const entropy = entropyBitsPerByte(histogram(Buffer.from('aaab')));
  assert.ok(Math.abs(entropy - (2 - 0.75 * Math.log2(3))) < 1e-12, String(entropy));
});

test('entropyBitsPerByte: English text lies between 4 and 5 bits', () => {
  const text = 'It is a truth universally acknowledged, that a single man must be in want of a wife.';
  const entropy = entropyBitsPerByte(histogram(Buffer.from(text)));
  assert.ok(entropy > 4 && entropy < 5, String(entropy));
});
