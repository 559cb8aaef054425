// The chunks read last: a piece at a time out of few readings, and never more memory than those few.

import assert from 'node:assert/strict';
import test from 'node:test';
import { createRecentChunks } from '../../src/store/content.ts';

const BYTES = 100;

/** Chunks 0 to 19 of any content, each filled with its position; and what was read in which order. */
function source() {
  const given: Uint8Array[] = [];
  const asked: string[] = [];
  const chunks = createRecentChunks((contentId, position) => {
    asked.push(`${contentId}${position}`);
    if (position >= 20) return undefined;
    given.push(new Uint8Array(BYTES).fill(position));
    return given.at(-1);
  });
  const copy = (contentId: string, position: number, offset = 0, bytes = BYTES): number[] => {
    const target = new Uint8Array(bytes);
    return [...target.subarray(0, chunks.copy(contentId, position, offset, target))];
  };
  const heldBytes = (): number => given.reduce((sum, { length }) => sum + length, 0);
  return { chunks, copy, asked, heldBytes };
}

test('copy: pieces of a chunk come from one reading, the last one shorter, and none past its end', () => {
  const { copy, asked } = source();
  assert.deepEqual(copy('a', 7, 0, 60), Array(60).fill(7));
  assert.deepEqual(copy('a', 7, 60, 60), Array(40).fill(7));
  assert.deepEqual(copy('a', 7, BYTES, 60), []);
  assert.deepEqual(asked, ['a7']);
  assert.deepEqual(copy('b', 7), Array(BYTES).fill(7));
  assert.deepEqual(copy('b', 8), Array(BYTES).fill(8));
  assert.deepEqual(asked, ['a7', 'b7', 'b8']);
});

test('copy: a chunk that is not there gives nothing, and is asked for again', () => {
  const { copy, asked } = source();
  assert.deepEqual([copy('a', 20), copy('a', 20)], [[], []]);
  assert.deepEqual(asked, ['a20', 'a20']);
});

test('copy: eight are kept, those used last; the memory of the others is given up at once', () => {
  const { copy, asked, heldBytes } = source();
  for (let position = 0; position < 8; position += 1) copy('a', position);
  copy('a', 0);
  copy('a', 8);
  assert.equal(heldBytes(), 8 * BYTES);
  assert.equal(asked.length, 9);
  assert.deepEqual(copy('a', 0), Array(BYTES).fill(0));
  assert.equal(asked.length, 9, 'it was used after 1, which went');
  assert.deepEqual(copy('a', 1), Array(BYTES).fill(1));
  assert.equal(asked.length, 10);
  assert.equal(heldBytes(), 8 * BYTES);
});

test('borrow: eight are out at most, and one that is given back makes room for one more', () => {
  const { chunks, heldBytes } = source();
  const borrowed = Array.from({ length: 8 }, (_, position) => chunks.borrow('a', position));
  assert.deepEqual(borrowed.map((chunk) => chunk?.[0]), [0, 1, 2, 3, 4, 5, 6, 7]);
  assert.equal(chunks.borrow('a', 8), undefined);
  chunks.giveBack(undefined);
  assert.equal(chunks.borrow('a', 20), undefined);
  for (let position = 8; position < 20; position += 1) {
    chunks.giveBack(borrowed.shift());
    assert.equal(heldBytes(), 7 * BYTES, 'its memory is given up at once');
    borrowed.push(chunks.borrow('a', position));
    assert.equal(borrowed.at(-1)?.[0], position);
    assert.equal(chunks.borrow('b', position), undefined);
  }
});

test('forget: gives up the chunks of that content and no other', () => {
  const { chunks, copy, asked, heldBytes } = source();
  for (const contentId of ['a', 'b', 'a']) for (const position of [1, 2]) copy(contentId, position);
  chunks.forget('a');
  assert.equal(heldBytes(), 2 * BYTES);
  copy('b', 2);
  assert.equal(asked.length, 4);
  assert.deepEqual(copy('a', 1), Array(BYTES).fill(1));
  assert.equal(asked.length, 5);
});

test('borrow: eight chunks at most are out, each with memory of its own that goes when it is given back', () => {
  const { chunks, asked, heldBytes } = source();
  const borrow = (): Uint8Array | undefined => chunks.borrow('a', 7);
  const out = Array.from({ length: 8 }, borrow);
  assert.deepEqual(out.map((chunk) => [...chunk ?? []]), Array(8).fill(Array(BYTES).fill(7)));
  assert.equal(borrow(), undefined);
  assert.equal(heldBytes(), 8 * BYTES);
  chunks.giveBack(out.pop());
  assert.equal(heldBytes(), 7 * BYTES);
  assert.equal(borrow()?.length, BYTES);
  assert.equal(asked.length, 9);
});

test('borrow: one that is not there counts as none, and one that others read pieces of stays theirs', () => {
  const { chunks, copy, asked } = source();
  for (let time = 0; time < 9; time += 1) chunks.giveBack(chunks.borrow('a', 20));
  assert.equal(chunks.borrow('a', 1)?.length, BYTES);
  copy('a', 2);
  const before = asked.length;
  assert.equal(chunks.borrow('a', 2), undefined);
  assert.deepEqual(copy('a', 2), Array(BYTES).fill(2));
  assert.equal(asked.length, before);
});
