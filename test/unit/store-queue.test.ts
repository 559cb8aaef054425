// Queue: which commands go together and in which order, and that none waits for ever.

import assert from 'node:assert/strict';
import test from 'node:test';
import { type Lane, MAX_BATCH_BYTES, MAX_BATCH_COMMANDS, Queue } from '../../src/store/writer.ts';

interface Entry {
  readonly lane: Lane;
  readonly bytes: number;
  readonly label: number;
}

function queueOf(...groups: { lane: Lane; count: number; bytes?: number }[]) {
  const queue = new Queue<Entry>();
  for (const { lane, count, bytes = 0 } of groups) {
    for (let label = 0; label < count; label += 1) queue.add({ lane, bytes, label });
  }
  return queue;
}

const shapeOf = (batch: readonly Entry[]) => batch.map(({ lane, label }) => `${lane} ${label}`);

test('take: prompt commands go before bulk ones, each lane in its order', () => {
  const queue = queueOf({ lane: 'bulk', count: 2 }, { lane: 'prompt', count: 2 });
  assert.equal(queue.length, 4);
  assert.equal(queue.prompt, 2);
  assert.deepEqual(shapeOf(queue.take()), ['prompt 0', 'prompt 1', 'bulk 0', 'bulk 1']);
  assert.equal(queue.length, 0);
  assert.deepEqual(queue.take(), []);
});

test('take: a batch has at most so many commands', () => {
  for (const [waiting, expected] of [
    [MAX_BATCH_COMMANDS - 1, [MAX_BATCH_COMMANDS - 1]],
    [MAX_BATCH_COMMANDS, [MAX_BATCH_COMMANDS]],
    [MAX_BATCH_COMMANDS + 1, [MAX_BATCH_COMMANDS, 1]],
  ] as const) {
    const queue = queueOf({ lane: 'prompt', count: waiting });
    const taken = [];
    while (queue.length > 0) taken.push(queue.take().length);
    assert.deepEqual(taken, expected);
  }
});

test('take: a batch has at most so many bytes, but a single command may have more', () => {
  const quarter = MAX_BATCH_BYTES / 4;
  assert.equal(queueOf({ lane: 'bulk', count: 9, bytes: quarter }).take().length, 4);
  assert.equal(queueOf({ lane: 'bulk', count: 9, bytes: quarter + 1 }).take().length, 3);
  assert.equal(queueOf({ lane: 'bulk', count: 9, bytes: quarter - 1 }).take().length, 4);
  assert.equal(queueOf({ lane: 'bulk', count: 2, bytes: 2 * MAX_BATCH_BYTES }).take().length, 1);
});

test('take: neither lane starves the other', () => {
  const busy = queueOf({ lane: 'prompt', count: 3 * MAX_BATCH_COMMANDS }, { lane: 'bulk', count: 2 });
  assert.equal(shapeOf(busy.take()).at(-1), 'bulk 0');
  assert.equal(shapeOf(busy.take()).at(-1), 'bulk 1');
  const large = queueOf({ lane: 'bulk', count: 100, bytes: MAX_BATCH_BYTES }, { lane: 'prompt', count: 1 });
  assert.deepEqual(shapeOf(large.take()), ['prompt 0', 'bulk 0']);
});

test('take: what goes alone goes alone, and has every second turn', () => {
  const queue = queueOf({ lane: 'alone', count: 3 }, { lane: 'prompt', count: MAX_BATCH_COMMANDS + 1 });
  const taken = [];
  while (queue.length > 0) taken.push(queue.take());
  assert.deepEqual(taken.map((batch) => `${batch.length} ${batch[0]?.lane}`), [
    '1 alone', `${MAX_BATCH_COMMANDS} prompt`, '1 alone', '1 prompt', '1 alone',
  ]);
  const besideContent = queueOf({ lane: 'alone', count: 2 }, { lane: 'bulk', count: 1 });
  assert.deepEqual([1, 2, 3].map(() => shapeOf(besideContent.take())), [['alone 0'], ['bulk 0'], ['alone 1']]);
  const only = queueOf({ lane: 'alone', count: 2 });
  assert.deepEqual([shapeOf(only.take()), shapeOf(only.take())], [['alone 0'], ['alone 1']]);
});

test('takeAll: empties every lane', () => {
  const queue = queueOf({ lane: 'alone', count: 1 }, { lane: 'prompt', count: 2 }, { lane: 'bulk', count: 3 });
  assert.equal(queue.takeAll().length, 6);
  assert.equal(queue.length, 0);
});
