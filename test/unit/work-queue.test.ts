import assert from 'node:assert/strict';
import test, { mock } from 'node:test';
import { passwordQueue } from '../../src/assembly.ts';
import type { Clock } from '../../src/core/time.ts';
import { WorkQueue, WorkQueueFull } from '../../src/limits/work-queue.ts';
import { movableClock } from '../support/clock.ts';

const MAX_WAIT_MS = 1000;

function queueOf(concurrency: number, maxWaiting: number, clock: Clock = movableClock()) {
  return new WorkQueue({ concurrency, maxWaiting, maxWaitMs: MAX_WAIT_MS, clock });
}

/** Resolves once everyone who can be admitted or refused has been. */
async function settled(): Promise<void> {
  await new Promise(setImmediate);
}

test('enter: exactly as many run at once as there are places', async () => {
  const queue = queueOf(2, 10);
  let atOnce = 0;
  let most = 0;
  const job = async (): Promise<void> => {
    const release = await queue.enter('a');
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

test('enter: of one client, first come, first served', async () => {
  const queue = queueOf(1, 5);
  const first = await queue.enter('a');
  const order: number[] = [];
  const jobs = [1, 2, 3, 4, 5].map(async (number) => {
    const release = await queue.enter('a');
    order.push(number);
    release();
  });
  first();
  await Promise.all(jobs);
  assert.deepEqual(order, [1, 2, 3, 4, 5]);
});

test('enter: rejects at once when as many wait as may', async () => {
  const queue = queueOf(1, 2);
  const release = await queue.enter('a');
  const waiting = [queue.enter('a'), queue.enter('a')];
  assert.deepEqual([queue.running, queue.waiting], [1, 2]);
  await assert.rejects(queue.enter('a'), WorkQueueFull);

  release();
  (await waiting[0]!)();
  (await waiting[1]!)();
  assert.deepEqual([queue.running, queue.waiting], [0, 0]);
});

test('enter: with no room to wait, whoever finds no place is refused', async () => {
  const queue = queueOf(1, 0);
  const release = await queue.enter('a');
  await assert.rejects(queue.enter('a'), WorkQueueFull);
  release();
  (await queue.enter('a'))();
});

/** Makes `count` of the client wait. `answers` gets who was admitted (and has left again) or refused, in order. */
function waitAs(queue: WorkQueue, client: string, count: number, answers: string[] = []): string[] {
  for (let number = 1; number <= count; number += 1) {
    queue.enter(client).then(
      (release) => {
        answers.push(`${client}${number}`);
        release();
      },
      (error) => {
        assert.ok(error instanceof WorkQueueFull);
        answers.push(`no ${client}${number}`);
      },
    );
  }
  return answers;
}

test('enter: clients take turns, each with its first to come', async () => {
  const queue = queueOf(1, 32);
  const release = await queue.enter('x');
  const order = waitAs(queue, 'a', 3);
  waitAs(queue, 'b', 1, order);
  waitAs(queue, 'c', 2, order);
  release();
  await settled();
  assert.deepEqual(order, ['a1', 'b1', 'c1', 'a2', 'c2', 'a3']);
  assert.deepEqual([queue.running, queue.waiting], [0, 0]);
});

test('enter: a client alone may have all places, and keeps a quarter, its oldest, once others wait', async () => {
  const queue = queueOf(1, 32);
  const release = await queue.enter('x');
  const order = waitAs(queue, 'a', 33);
  await settled();
  assert.deepEqual([queue.waiting, order.splice(0)], [32, ['no a33']]);
  waitAs(queue, 'b', 1, order);
  await settled();
  assert.equal(queue.waiting, 9);
  assert.deepEqual(order.splice(0), Array.from({ length: 24 }, (_, turn) => `no a${32 - turn}`));
  waitAs(queue, 'a', 1, order);
  waitAs(queue, 'b', 8, order);
  await settled();
  assert.deepEqual([queue.waiting, order.splice(0)], [16, ['no a1', 'no b8']], 'neither gets more than a quarter');
  release();
  await settled();
  assert.deepEqual([order.length, order.slice(0, 4), queue.waiting], [16, ['a1', 'b1', 'a2', 'b1'], 0]);
});

test('enter: in a full queue, the client with the most places gives its newest up to one with fewer', async () => {
  const queue = queueOf(1, 8);
  const release = await queue.enter('x');
  const order: string[] = [];
  for (const client of ['a', 'b', 'c', 'd']) waitAs(queue, client, 2, order);
  waitAs(queue, 'e', 1, order);
  await settled();
  assert.deepEqual([queue.waiting, order.splice(0)], [8, ['no a2']]);
  waitAs(queue, 'e', 1, order);
  waitAs(queue, 'a', 1, order);
  await settled();
  assert.deepEqual([queue.waiting, order.splice(0)], [8, ['no e1', 'no a1']], 'nobody has two more than these');
  for (const client of ['f', 'g', 'h', 'i']) waitAs(queue, client, 1, order);
  await settled();
  const refused = order.splice(0).toSorted();
  assert.deepEqual([queue.waiting, refused], [8, ['no b2', 'no c2', 'no d2', 'no i1']], 'all have one each in the end');
  release();
  await settled();
  assert.deepEqual(order, ['a1', 'b1', 'c1', 'd1', 'e1', 'f1', 'g1', 'h1']);
});

test('enter: a quarter is at least one place, and a place in work is none of the waiting ones', async () => {
  for (const maxWaiting of [2, 3, 4, 7]) {
    const queue = queueOf(1, maxWaiting);
    const release = await queue.enter('a');
    const order = waitAs(queue, 'a', 1);
    waitAs(queue, 'b', 2, order);
    await settled();
    assert.deepEqual([queue.waiting, order.splice(0)], [2, ['no b2']]);
    release();
    await settled();
    assert.deepEqual(order, ['a1', 'b1']);
  }
});

test('enter: a client whose waiters have all given up begins anew', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const clock = movableClock();
    const queue = queueOf(1, 8, clock);
    const release = await queue.enter('x');
    const order = waitAs(queue, 'a', 2);
    waitAs(queue, 'b', 1, order);
    clock.advance(MAX_WAIT_MS);
    mock.timers.tick(MAX_WAIT_MS);
    await settled();
    assert.deepEqual([queue.waiting, order.splice(0)], [0, ['no a1', 'no a2', 'no b1']]);
    waitAs(queue, 'b', 1, order);
    waitAs(queue, 'a', 1, order);
    release();
    await settled();
    assert.deepEqual(order, ['b1', 'a1']);
  } finally {
    mock.timers.reset();
  }
});

test('release: gives the place back once, however often it is called', async () => {
  const queue = queueOf(1, 5);
  const first = await queue.enter('a');
  const second = queue.enter('a');
  const third = queue.enter('a');
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
    const release = await queue.enter('a');
    const early = queue.enter('a');
    mock.timers.tick(1);
    clock.advance(1);
    const late = queue.enter('a');

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
      const release = await queue.enter('a');
      const waiting = queue.enter('a');
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
    const release = await queue.enter('a');
    const waiting = queue.enter('a');
    const timers = started.mock.calls.map((call) => call.result);
    assert.deepEqual(timers.map((timer) => timer?.hasRef()), [false]);
    release();
    (await waiting)();
    assert.deepEqual(cleared.mock.calls.map((call) => call.arguments[0]), timers);
  } finally {
    mock.restoreAll();
  }
});

test('passwordQueue: one place less than there are processors, at least one, and fewer than the pool has threads', async () => {
  for (const [cores, places] of [[1, 1], [2, 1], [3, 2], [4, 3], [64, 3]] as const) {
    const queue = passwordQueue({ cores, clock: movableClock() });
    for (let place = 0; place < 4; place += 1) void queue.enter('a').catch(() => {});
    assert.equal(queue.running, places, `${cores} cores`);
  }
});
