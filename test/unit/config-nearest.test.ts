// config/load.ts: the suggestion for a name that is not known.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { editDistance, nearest } from '../../src/config/load.ts';

test('editDistance: inserting, removing, replacing and swapping neighbours cost one each', () => {
  const cases: readonly [string, string, number][] = [
    ['', '', 0], ['abc', 'abc', 0], ['', 'abc', 3], ['abc', '', 3], ['abc', 'abxc', 1], ['abc', 'ac', 1],
    ['abc', 'axc', 1], ['abc', 'acb', 1], ['ab', 'ba', 1], ['kitten', 'sitting', 3],
    ['ca', 'abc', 3], ['abcd', 'badc', 2],
  ];
  for (const [a, b, distance] of cases) {
    assert.equal(editDistance(a, b), distance, `${a} ${b}`);
    assert.equal(editDistance(b, a), distance, `${b} ${a}`);
  }
});

test('nearest: the candidate with the fewest edits, the first of equals', () => {
  assert.equal(nearest('SERVICE_PROT', ['SERVICE_DB', 'SERVICE_PORT', 'SERVICE_HOST']), 'SERVICE_PORT');
  assert.equal(nearest('ab', ['aa', 'ac']), 'aa');
  assert.equal(nearest('serve', ['serve', 'server']), 'serve');
});

test('nearest: nothing when all are too far away', () => {
  assert.equal(nearest('abcd', ['wxyz']), undefined);
  assert.equal(nearest('abcd', []), undefined);
  // Two edits are always near enough; of a longer name three in ten characters.
  assert.equal(nearest('abcd', ['abxy']), 'abxy');
  assert.equal(nearest('abcd', ['axyz']), undefined);
  assert.equal(nearest('abcdefghij', ['abcdefgXYZ']), 'abcdefgXYZ');
  assert.equal(nearest('abcdefghij', ['abcdefWXYZ']), undefined);
});
