// config/load.ts: the suggestion for a name that is not known.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { editDistance, didYouMean } from '../../src/config/load.ts';

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

test('didYouMean: the candidate with the fewest edits, the first of equals', () => {
  assert.equal(didYouMean('SERVICE_PROT', ['SERVICE_DB', 'SERVICE_PORT', 'SERVICE_HOST']), '; did you mean SERVICE_PORT?');
  assert.equal(didYouMean('ab', ['aa', 'ac']), '; did you mean aa?');
  assert.equal(didYouMean('serve', ['serve', 'server']), '; did you mean serve?');
});

test('didYouMean: neighbours that were swapped are one slip, so that what comes first is not taken for it', () => {
  assert.equal(didYouMean('--josn', ['--host', '--json']), '; did you mean --json?');
  assert.equal(didYouMean('ubnan', ['ban', 'unban']), '; did you mean unban?');
});

test('didYouMean: nothing when all are too far away', () => {
  assert.equal(didYouMean('abcd', ['wxyz']), '');
  assert.equal(didYouMean('abcd', []), '');
  // Two edits are always near enough; in a longer name, three edits in ten characters are.
  assert.equal(didYouMean('abcd', ['abxy']), '; did you mean abxy?');
  assert.equal(didYouMean('abcd', ['axyz']), '');
  assert.equal(didYouMean('abcdefghij', ['abcdefgXYZ']), '; did you mean abcdefgXYZ?');
  assert.equal(didYouMean('abcdefghij', ['abcdefWXYZ']), '');
});
