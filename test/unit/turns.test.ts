// Turns at the event loop: one slice in each, in order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Turns } from '../../src/http/engine/body.ts';

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('Turns: one goes at once, the next waits for the next turn of the event loop', async () => {
  const turns = new Turns();
  assert.equal(turns.wait(), undefined);
  const second = turns.wait();
  assert.ok(second instanceof Promise);
  await second;
});

test('Turns: those that wait go in their order, one in a turn, before those that come later', async () => {
  const turns = new Turns();
  const gone: number[] = [];
  const waits = Array.from({ length: 4 }, async (_, index) => {
    await turns.wait();
    gone.push(index);
  });
  await Promise.resolve();
  assert.deepEqual(gone, [0]);
  await nextTurn();
  assert.deepEqual(gone, [0, 1]);
  const late = turns.wait()?.then(() => gone.push(4));
  assert.ok(late instanceof Promise, 'the turn is used up');
  await nextTurn();
  assert.deepEqual(gone, [0, 1, 2]);
  await Promise.all([...waits, late]);
  assert.deepEqual(gone, [0, 1, 2, 3, 4]);
});

test('Turns: a turn that nobody used is the next one\'s', async () => {
  const turns = new Turns();
  assert.equal(turns.wait(), undefined);
  await nextTurn();
  assert.equal(turns.wait(), undefined);
});

test('Turns: awaited as long as somebody waits', async () => {
  const turns = new Turns();
  assert.equal(turns.wait(), undefined);
  assert.equal(turns.areAwaited(), false);
  const waits = [turns.wait(), turns.wait()];
  assert.equal(turns.areAwaited(), true);
  await waits[0];
  assert.equal(turns.areAwaited(), true);
  await waits[1];
  assert.equal(turns.areAwaited(), false);
});
