// Which errors are told, and which are thrown on.

import assert from 'node:assert/strict';
import test from 'node:test';
import { expected } from '../../src/core/events.ts';

class Foreseen extends Error {}
class MoreSo extends Foreseen {}

test('expected: an error of the kind is given back, whatever else was thrown is thrown on as it is', () => {
  for (const error of [new Foreseen('one'), new MoreSo('two')]) assert.equal(expected(Foreseen, error), error);
  for (const thrown of [new Error('a bug'), new TypeError('another'), 'a text', undefined, null]) {
    assert.throws(() => expected(MoreSo, thrown), (again) => again === thrown);
  }
  assert.throws(() => expected(MoreSo, new Foreseen('less')), Foreseen);
});
