// Rows of the reliability campaign that need no process of their own, in small.

import assert from 'node:assert/strict';
import test from 'node:test';
import { boundsRow } from '../campaign/row-15-bounds.ts';
import { statisticsOf, welchT } from '../campaign/row-12-timing.ts';
import { runUnit } from '../campaign/row.ts';

test('row 15: tables of clients stay within their bounds, and limits hold while the clock is set', async () => {
  const { tried, most, lost } = await runUnit(boundsRow, { seed: 1, effort: 'quick', main: '' });
  assert.deepEqual(lost, []);
  assert.equal(most['clients remembered'], 10_000);
  assert.equal(tried['clients'], 30_000);
});

test('welchT: agrees with a worked example', () => {
  // Means 3 and 4, variances 2.5 and 9, five and three values.
  const one = statisticsOf([1, 2, 3, 4, 5]);
  const other = statisticsOf([1, 4, 7]);
  assert.deepEqual([one.mean, one.variance, other.mean, other.variance], [3, 2.5, 4, 9]);
  assert.equal(welchT(one, other), -1 / Math.sqrt(2.5 / 5 + 9 / 3));
});
