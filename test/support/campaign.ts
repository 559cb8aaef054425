// A row of the reliability campaign as a test: one small unit of it, on the built service.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runUnit, type Row } from '../campaign/row.ts';
import { builtMain } from './built.ts';

/** Registers the test. It is skipped, visibly, where the row cannot be tried. */
export function testRow(row: Row, title: string): void {
  test(`campaign, row ${row.name}: ${title}`, async (t) => {
    const obstacle = row.obstacle?.('quick');
    if (obstacle !== undefined) return t.skip(obstacle);
    const { tried, most, lost } = await runUnit(row, { seed: 1, effort: 'quick', main: builtMain() });
    t.diagnostic(JSON.stringify({ ...tried, ...most }));
    assert.deepEqual(lost, []);
  });
}
