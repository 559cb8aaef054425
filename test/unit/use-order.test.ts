// core/time.ts: the order of what was used, against an array, and what is made once for each subject.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onceForEach, type Used, UseOrder } from '../../src/core/time.ts';
import { forSeeds } from '../support/seeded.ts';

interface Entry extends Used<Entry> {
  readonly name: number;
}

test('UseOrder: after any appends and removals it holds what an array holds, from the oldest to the newest and back', () => {
  forSeeds(50, (random) => {
    const order = new UseOrder<Entry>();
    let expected: Entry[] = [];
    for (let step = 0; step < 60; step += 1) {
      const isRemoval = expected.length > 0 && random.between(0, 2) === 0;
      const entry = isRemoval ? random.pick(expected) : { name: step, older: undefined, newer: undefined };
      if (isRemoval) order.remove(entry);
      else order.append(entry);
      expected = isRemoval ? expected.filter((other) => other !== entry) : [...expected, entry];

      const held: Entry[] = [];
      for (let next = order.oldest; next !== undefined; next = next.newer) held.push(next);
      assert.deepEqual(held.map(({ name }) => name), expected.map(({ name }) => name));
      assert.deepEqual(held.map(({ older }) => older?.name), [undefined, ...expected].slice(0, -1).map((older) => older?.name));
    }
  });
});

test('onceForEach: made once for each subject, from what was given first', () => {
  let made = 0;
  const make = onceForEach((_subject: object, given: string) => ({ given, number: (made += 1) }));
  const [one, other] = [{}, {}];
  const first = make(one, 'a');
  assert.equal(make(one, 'b'), first);
  assert.deepEqual([first, make(other, 'c')], [{ given: 'a', number: 1 }, { given: 'c', number: 2 }]);
});
