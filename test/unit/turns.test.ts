// Turns at the event loop: so many slices in each, in order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Turns } from '../../src/http/engine/body.ts';

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('Turns: as many as allowed go at once, one more waits for the next turn of the event loop', async () => {
  const turns = new Turns(2);
  assert.equal(turns.wait(), undefined);
  assert.equal(turns.wait(), undefined);
  const third = turns.wait();
  assert.ok(third instanceof Promise);
  await third;
});

test('Turns: those that wait go in their order, so many in a turn, before those that come later', async () => {
  const turns = new Turns(2);
  const gone: number[] = [];
  const waits = Array.from({ length: 7 }, async (_, index) => {
    await turns.wait();
    gone.push(index);
  });
  await Promise.resolve();
  assert.deepEqual(gone, [0, 1]);
  await nextTurn();
  assert.deepEqual(gone, [0, 1, 2, 3]);
  const late = turns.wait()?.then(() => gone.push(7));
  assert.ok(late instanceof Promise, 'the turn is used up');
  await Promise.all([...waits, late]);
  assert.deepEqual(gone, [0, 1, 2, 3, 4, 5, 6, 7]);
});

test('Turns: a turn that nobody used is the next one\'s', async () => {
  const turns = new Turns(1);
  assert.equal(turns.wait(), undefined);
  await nextTurn();
  assert.equal(turns.wait(), undefined);
});

test('Turns: awaited as long as somebody waits', async () => {
  const turns = new Turns(1);
  assert.equal(turns.wait(), undefined);
  assert.equal(turns.areAwaited(), false);
  const waits = [turns.wait(), turns.wait()];
  assert.equal(turns.areAwaited(), true);
  await waits[0];
  assert.equal(turns.areAwaited(), true);
  await waits[1];
  assert.equal(turns.areAwaited(), false);
});
