// What the campaign makes of the samples of row 16, and how a row goes on from unit to unit.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
// @ts-expect-error: a script without types
import { writeSoak } from '../../scripts/campaign/soak.mjs';
import { runUnit, type Row, type UnitResult } from '../campaign/row.ts';
import { temporaryFolder } from '../support/programs.ts';

/** Every ten minutes, at 100 requests a second. */
function sitting(began: number, hours: number): Record<string, number>[] {
  return Array.from({ length: hours * 6 }, (_, index) => ({
    sitting: began, seconds: (index + 1) * 600, requests: (index + 1) * 60_000, p50Ms: 1, p99Ms: index === 1 ? 40 : 4,
    eventLoopP99Ms: 2, memoryMib: 100 + index, descriptors: 30, fileMib: 500, walMib: 8, backups: index % 6 === 3 ? 1 : 0,
  }));
}

test('writeSoak: a row for each hour of two sittings, and a plot of which every line is within its frame', (t) => {
  const folder = temporaryFolder(t);
  const [table, plot] = writeSoak(folder, [...sitting(1_000_000, 2), ...sitting(2_000_000, 1)]) as [string, string];
  const rows = readFileSync(table, 'utf8').trimEnd().split('\n').slice(2).map((line) => line.split(' | '));
  assert.deepEqual(rows.map(([until]) => until), ['| 1:00', '| 2:00', '| 3:00']);
  assert.deepEqual(rows.map((cells) => cells.slice(1, 5)), [
    ['100', '1.0', '4.0', '40.0'], ['100', '1.0', '4.0', '4.0'], ['100', '1.0', '4.0', '40.0'],
  ]);
  assert.deepEqual(rows.map((cells) => cells[7]), ['105', '111', '105'], 'the most memory');
  assert.deepEqual(rows.map((cells) => cells.at(-1)), ['1 |', '1 |', '1 |']);

  const svg = readFileSync(plot, 'utf8');
  const lines = [...svg.matchAll(/<polyline points="([^"]+)"/g)].map(([, points]) => points!.split(' '));
  assert.equal(lines.length, 6);
  for (const points of lines) {
    assert.equal(points.length, 18);
    for (const point of points) {
      const [x = NaN, y = NaN] = point.split(',').map(Number);
      assert.ok(x > 60 && x <= 830 && y >= 0 && y <= 110, point);
    }
  }
  assert.equal(svg.match(/class="begin"/g)?.length, 4, 'where the second sitting begins, in each panel');
  assert.throws(() => writeSoak(folder, []), /measured nothing yet/);
});

test('runUnit: each unit that a row goes on to has its own results, and nothing goes on without being asked', async () => {
  const row: Row = {
    name: '0', title: '', target: '', units: 3,
    async run(unit) {
      let turn = 0;
      do {
        unit.count('turns');
        unit.sample({ turn });
        if (turn === 1) unit.lose('something');
        turn += 1;
      } while (unit.goesOn());
    },
  };
  const kept: UnitResult[] = [];
  const goesOn = (result: UnitResult): boolean => kept.push(result) < 3;
  const last = await runUnit(row, { seed: 1, effort: 'full', main: '', goesOn });
  assert.equal(last, kept[2]);
  assert.deepEqual(kept.map(({ samples }) => samples), [[{ turn: 0 }], [{ turn: 1 }], [{ turn: 2 }]]);
  assert.deepEqual(kept.map(({ lost }) => lost.length), [0, 1, 0]);
  assert.deepEqual((await runUnit(row, { seed: 1, effort: 'full', main: '' })).tried, { turns: 1 });
});
