// The schedule of background tasks by itself: turns, pauses, failures and the end. What the tasks do is
// test/api/cleanup.test.ts.

import assert from 'node:assert/strict';
import test from 'node:test';
import type { LogEntry } from '../../src/core/events.ts';
import { Cleanup, type CleanupTask } from '../../src/ops/cleanup.ts';

const HOUR_SECONDS = 3600;

interface Steps {
  readonly tasks: readonly CleanupTask[];
  /** Names of the steps in the order in which they began. */
  readonly begun: string[];
  /** The most steps that were in progress at once. */
  mostAtOnce: number;
}

/** Tasks with this many steps each; a step lasts a turn of the event loop. */
function tasksOf(counts: Readonly<Record<string, number>>): Steps {
  const begun: string[] = [];
  let inProgress = 0;
  const left = { ...counts };
  const steps: Steps = { tasks: [], begun, mostAtOnce: 0 };
  const tasks = Object.keys(counts).map((name) => ({
    name,
    intervalSeconds: HOUR_SECONDS,
    step: async () => {
      begun.push(name);
      inProgress += 1;
      steps.mostAtOnce = Math.max(steps.mostAtOnce, inProgress);
      await new Promise((resolve) => setImmediate(resolve));
      inProgress -= 1;
      left[name] = (left[name] ?? 0) - 1;
      return left[name] > 0;
    },
  }));
  return Object.assign(steps, { tasks });
}

const noLog = (): void => assert.fail('nothing is to be logged');

test('run: a task to its end, and a second call joins the first', async () => {
  const steps = tasksOf({ one: 3, other: 1 });
  const cleanup = new Cleanup(steps.tasks, noLog);
  await Promise.all([cleanup.run('one'), cleanup.run('one')]);
  assert.deepEqual(steps.begun, ['one', 'one', 'one']);
  await cleanup.run('other');
  assert.deepEqual(steps.begun, ['one', 'one', 'one', 'other']);
  await assert.rejects(cleanup.run('none'), RangeError);
  await cleanup.stop();
});

test('start: every task once, their steps one at a time and in turn', async () => {
  const steps = tasksOf({ a: 3, b: 1, c: 2 });
  const cleanup = new Cleanup(steps.tasks, noLog);
  cleanup.start();
  await Promise.all(['a', 'b', 'c'].map((name) => cleanup.run(name)));
  assert.deepEqual(steps.begun, ['a', 'b', 'c', 'a', 'c', 'a']);
  assert.equal(steps.mostAtOnce, 1);
  await cleanup.stop();
});

test('start: after a step that leaves more to do nothing begins for a while, whichever task is next', async () => {
  const steps = tasksOf({ a: 2, b: 2 });
  const cleanup = new Cleanup(steps.tasks, noLog);
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  const startedMs = performance.now();
  cleanup.start();
  count();
  await Promise.all([cleanup.run('a'), cleanup.run('b')]);
  isOver = true;
  assert.ok(performance.now() - startedMs >= 2 * 15, 'a pause after each step that leaves more to do');
  assert.ok(turns > 2 * 4, `${turns} turns of the event loop`);
  await cleanup.stop();
});

test('run: a step that fails is logged, ends its task, and holds up nothing else', async () => {
  const logged: LogEntry[] = [];
  const steps = tasksOf({ good: 2 });
  let failures = 0;
  const bad: CleanupTask = {
    name: 'bad',
    intervalSeconds: HOUR_SECONDS,
    step: async () => {
      failures += 1;
      if (failures === 1) throw new Error('the reason');
      // A thrown value that is no Error is itself the reason.
      throw 'the reason';
    },
  };
  const cleanup = new Cleanup([bad, ...steps.tasks], (entry) => logged.push(entry));
  cleanup.start();
  await Promise.all([cleanup.run('bad'), cleanup.run('good')]);
  await cleanup.run('bad');
  assert.equal(failures, 2);
  assert.deepEqual(steps.begun, ['good', 'good']);
  const failure = { level: 'error', event: 'task failed', details: { task: 'bad', reason: 'the reason' } };
  assert.deepEqual(logged.map(({ level, event, details }) => ({ level, event, details })), [failure, failure]);
  await cleanup.stop();
});

test('stop: waits for the step that runs and lets no further one begin', async () => {
  const steps = tasksOf({ endless: Infinity, other: Infinity });
  const cleanup = new Cleanup(steps.tasks, noLog);
  cleanup.start();
  while (steps.begun.length < 3) await new Promise((resolve) => setImmediate(resolve));
  await cleanup.stop();
  const { length } = steps.begun;
  await cleanup.run('endless');
  assert.equal(steps.begun.length, length);
});
