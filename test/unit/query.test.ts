// Query parameters as typed values: each boundary of http/input.ts, without a server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refusal } from '../../src/core/refusals.ts';
import { integer, page, single, timeBounds, typeGlob } from '../../src/http/input.ts';

function refuses(parameter: string, act: () => unknown): void {
  assert.throws(act, (error) => {
    assert.ok(error instanceof Refusal);
    assert.deepEqual([error.refusal, error.fields['parameter']], ['queryInvalid', parameter]);
    return true;
  });
}

test('single: the value as it is, null when absent, refused when given twice', () => {
  const query = new URLSearchParams('a=1&b=&c=1&c=1&d=%20x+y');
  assert.equal(single(query, 'a'), '1');
  assert.equal(single(query, 'b'), '');
  assert.equal(single(query, 'd'), ' x y');
  assert.equal(single(query, 'A'), null);
  refuses('c', () => single(query, 'c'));
});

test('integer: decimal digits with or without a minus, clamped to what a number holds exactly', () => {
  const value = (text: string): number => integer(new URLSearchParams({ n: text }), 'n', 5);
  const most = 2 ** 53 - 1;
  for (const [text, expected] of [
    ['0', 0], ['1', 1], ['-1', -1], ['007', 7],
    ['9007199254740990', most - 1], ['9007199254740991', most], ['9007199254740992', most], ['9'.repeat(400), most],
    ['-9007199254740990', 1 - most], ['-9007199254740992', -most], [`-${'9'.repeat(400)}`, -most],
  ] as const) {
    assert.equal(value(text), expected, text.slice(0, 20));
  }
  for (const text of ['', '-', '+1', '1.0', '1e3', '0x1', ' 1', '1 ', '1_0', '--1', '1-', 'Infinity', 'NaN', '\u0661', '1\n']) {
    refuses('n', () => value(text));
  }
  assert.equal(integer(new URLSearchParams(), 'n', 5), 5);
});

test('page: limit from 1 to the maximum, offset from 0, both clamped', () => {
  const bounds = { fallback: 100, maximum: 500 };
  assert.deepEqual(page(new URLSearchParams(), bounds), { limit: 100, offset: 0 });
  for (const [given, limit] of [[-1, 1], [0, 1], [1, 1], [2, 2], [499, 499], [500, 500], [501, 500]] as const) {
    assert.deepEqual(page(new URLSearchParams({ limit: String(given) }), bounds), { limit, offset: 0 });
  }
  for (const [given, offset] of [[-1, 0], [0, 0], [1, 1], [10 ** 6, 10 ** 6]] as const) {
    assert.deepEqual(page(new URLSearchParams({ offset: String(given) }), bounds), { limit: 100, offset });
  }
});

test('timeBounds: let every moment through when absent', () => {
  assert.deepEqual(timeBounds(new URLSearchParams()), { after: Number.MIN_SAFE_INTEGER, before: Number.MAX_SAFE_INTEGER });
  assert.deepEqual(timeBounds(new URLSearchParams('after=5&before=-7')), { after: 5, before: -7 });
});

test('typeGlob: as SQLite takes it, null when absent, refused when it can be none', () => {
  assert.equal(typeGlob(new URLSearchParams()), null);
  assert.equal(typeGlob(new URLSearchParams({ type: 'Image/**' })), 'image/*');
  assert.equal(typeGlob(new URLSearchParams({ type: 'x'.repeat(64) })), 'x'.repeat(64));
  assert.throws(() => typeGlob(new URLSearchParams({ type: 'x'.repeat(65) })), (error) => {
    assert.match(String((error as Refusal).fields['hint']), /at most 64 characters/);
    return true;
  });
  for (const type of ['', 'x'.repeat(65), 'a\0', 'a\n']) refuses('type', () => typeGlob(new URLSearchParams({ type })));
});
