// operator/arguments.ts, database.ts and terminal.ts: what options are given as, and how amounts are shown.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wholeNumber } from '../../src/operator/arguments.ts';
import { readMoment } from '../../src/operator/audit.ts';
import { UsageError } from '../../src/operator/failures.ts';
import { showBytes } from '../../src/operator/terminal.ts';

/** 2026-01-31T12:00:00Z. */
const NOW = 1_769_860_800;

const given = (value?: string) => ({
  options: new Map(value === undefined ? [] : [['--at', value]]),
  operands: [],
});

test('wholeNumber: digits within the bounds; the fallback without an option', () => {
  const read = (value?: string) => wholeNumber(given(value), '--at', { minimum: 2, maximum: 10, fallback: 5 });
  assert.deepEqual([read(), read('2'), read('10'), read('007')], [5, 2, 10, 7]);
  for (const value of ['1', '11', '-3', '3.0', '3s', '0x3', ' 3', 'NaN', '1e1']) {
    assert.throws(() => read(value), new UsageError('--at takes a whole number from 2 to 10'), value);
  }
});

test('readMoment: Unix seconds, a date and time in UTC, or how long ago', () => {
  const read = (value?: string) => readMoment('--at', value, NOW);
  assert.equal(read(), undefined);
  const cases: readonly [string, number][] = [
    ['0', 0],
    ['1769860800', NOW],
    ['2026-01-31', NOW - 12 * 3600],
    ['2026-01-31T12:00', NOW],
    ['2026-01-31T12:00Z', NOW],
    ['2026-01-31T12:00:01Z', NOW + 1],
    ['2024-02-29', 1_709_164_800],
    ['90s', NOW - 90],
    ['30m', NOW - 1800],
    ['12h', NOW - 43_200],
    ['7d', NOW - 604_800],
  ];
  for (const [text, seconds] of cases) assert.equal(read(text), seconds, text);
});

test('readMoment: refuses what is none', () => {
  for (const text of [
    'now', '-1', '1.5', '7w', 'd', '2026-02-29', '2026-13-01', '2026-01-31T24:01', '2026-01-31 12:00',
    '2026-01-31T12:00+01:00', '2026-1-31', '9'.repeat(20), '7D',
  ]) {
    assert.throws(() => readMoment('--at', text, NOW), UsageError, text);
  }
});

test('showBytes: the largest unit that fits, one digit after the point, never rounded up', () => {
  const cases: readonly [number, string][] = [
    [0, '0 bytes'],
    [1, '1 bytes'],
    [1023, '1023 bytes'],
    [1024, '1.0 KiB'],
    [1535, '1.4 KiB'],
    [1536, '1.5 KiB'],
    [1_048_575, '1023.9 KiB'],
    [1_048_576, '1.0 MiB'],
    [52_428_800, '50.0 MiB'],
    [2 ** 40, '1.0 TiB'],
    [2 ** 60, '1024.0 PiB'],
  ];
  for (const [bytes, shown] of cases) assert.equal(showBytes(bytes), shown);
});
