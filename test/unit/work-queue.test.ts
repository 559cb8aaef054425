import assert from 'node:assert/strict';
import test, { mock } from 'node:test';
import type { Clock } from '../../src/core/time.ts';
import { createWorkQueue, WorkQueueFull } from '../../src/limits/work-queue.ts';
import { movableClock } from '../support/clock.ts';

const MAX_WAIT_MS = 1000;

function queueOf(concurrency: number, maxWaiting: number, clock: Clock = movableClock()) {
  return createWorkQueue({ concurrency, maxWaiting, maxWaitMs: MAX_WAIT_MS, clock });
}

test('createWorkQueue: refuses to have no place at all', () => {
  for (const concurrency of [0, -1, NaN]) assert.throws(() => queueOf(concurrency, 1), RangeError);
});

test('enter: exactly as many run at once as there are places', async () => {
  const queue = queueOf(2, 10);
  let atOnce = 0;
  let most = 0;
  const job = async (): Promise<void> => {
    const release = await queue.enter();
    atOnce += 1;
    most = Math.max(most, atOnce);
    await new Promise(setImmediate);
    atOnce -= 1;
    release();
  };
  await Promise.all(Array.from({ length: 12 }, job));
  assert.equal(most, 2);
  assert.deepEqual([queue.running, queue.waiting], [0, 0]);
});

test('enter: first come, first served', async () => {
  const queue = queueOf(1, 5);
  const first = await queue.enter();
  const order: number[] = [];
  const jobs = [1, 2, 3, 4, 5].map(async (number) => {
    const release = await queue.enter();
    order.push(number);
    release();
  });
  first();
  await Promise.all(jobs);
  assert.deepEqual(order, [1, 2, 3, 4, 5]);
});

test('enter: rejects at once when as many wait as may', async () => {
  const queue = queueOf(1, 2);
  const release = await queue.enter();
  const waiting = [queue.enter(), queue.enter()];
  assert.deepEqual([queue.running, queue.waiting], [1, 2]);
  await assert.rejects(queue.enter(), WorkQueueFull);

  release();
  (await waiting[0]!)();
  (await waiting[1]!)();
  assert.deepEqual([queue.running, queue.waiting], [0, 0]);
});

test('enter: with no room to wait, whoever finds no place is refused', async () => {
  const queue = queueOf(1, 0);
  const release = await queue.enter();
  await assert.rejects(queue.enter(), WorkQueueFull);
  release();
  (await queue.enter())();
});

test('release: gives the place back once, however often it is called', async () => {
  const queue = queueOf(1, 5);
  const first = await queue.enter();
  const second = queue.enter();
  const third = queue.enter();
  first();
  first();
  const releaseSecond = await second;
  first();
  assert.deepEqual([queue.running, queue.waiting], [1, 1]);
  releaseSecond();
  (await third)();
  assert.deepEqual([queue.running, queue.waiting], [0, 0]);
});

test('enter: rejects when the deadline passes, and the others keep their turn', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const clock = movableClock();
    const queue = queueOf(1, 5, clock);
    const release = await queue.enter();
    const early = queue.enter();
    mock.timers.tick(1);
    clock.advance(1);
    const late = queue.enter();

    mock.timers.tick(MAX_WAIT_MS - 2);
    assert.equal(queue.waiting, 2);
    mock.timers.tick(1);
    assert.equal(queue.waiting, 1);
    await assert.rejects(early, WorkQueueFull);

    release();
    (await late)();
    mock.timers.tick(MAX_WAIT_MS);
    assert.deepEqual([queue.running, queue.waiting], [0, 0]);
  } finally {
    mock.timers.reset();
  }
});

test('enter: a place that is free only at the deadline is not given, even when the timer is late', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    for (const [freeAtMs, admitted] of [
      [MAX_WAIT_MS - 1, true], [MAX_WAIT_MS, false], [MAX_WAIT_MS + 1, false],
    ] as const) {
      const clock = movableClock();
      const queue = queueOf(1, 5, clock);
      const release = await queue.enter();
      const waiting = queue.enter();
      clock.advance(freeAtMs);
      release();
      if (admitted) (await waiting)();
      else await assert.rejects(waiting, WorkQueueFull);
      assert.deepEqual([queue.running, queue.waiting], [0, 0]);
    }
  } finally {
    mock.timers.reset();
  }
});

test('enter: its timer keeps no process alive, and is gone once there is a place', async () => {
  const started = mock.method(globalThis, 'setTimeout');
  const cleared = mock.method(globalThis, 'clearTimeout');
  try {
    const queue = queueOf(1, 5);
    const release = await queue.enter();
    const waiting = queue.enter();
    const timers = started.mock.calls.map((call) => call.result);
    assert.deepEqual(timers.map((timer) => timer?.hasRef()), [false]);
    release();
    (await waiting)();
    assert.deepEqual(cleared.mock.calls.map((call) => call.arguments[0]), timers);
  } finally {
    mock.restoreAll();
  }
});
