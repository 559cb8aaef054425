// Writer: how long it waits for clients on a slow disk, in which order it ends, and when it keeps the process alive.
// The thread is a fake, and timers run only when a test says so.

import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { Command, Request } from '../../src/store/batch.ts';
import { firstWord, MIN_AHEAD_COMMANDS, startThread, type Writer } from '../../src/store/writer.ts';
import { burning, DONE, isUnavailable, openFake } from '../support/fake-writer.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));
const burn = (writer: Writer, count: number) => Array.from({ length: count }, () => writer.run('burnPaste', burning));
const dones = (count: number) => Array(count).fill(DONE);

/** What was sent: how many commands in each batch, or another kind of message. */
const sent = (requests: readonly Request[]) => (
  requests.map((request) => (request.kind === 'batch' ? (request.commands as readonly Command[]).length : request.kind))
);

/** The fake, and what it was sent, known in the turn in which it is: an echo of the thread comes later. */
async function openNoted(t: TestContext) {
  const opened = await openFake(t);
  const requests: Request[] = [];
  t.mock.method(opened.thread, 'postMessage', (request: Request) => void requests.push(request));
  /** Resolves when the thread was sent this many requests. */
  const until = async (count: number) => {
    while (requests.length < count) await turn();
  };
  /** Nothing but this was sent, and nothing more is in the next turns. */
  const staysAt = async (expected: readonly (number | string)[]) => {
    for (let turns = 0; turns < 5; turns += 1) await turn();
    assert.deepEqual(sent(requests), expected);
  };
  return { ...opened, requests, until, staysAt };
}

/** The same, with timers that the test moves. `waits` are the times of those that were set. */
async function openTimed(t: TestContext) {
  const opened = await openNoted(t);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const waits: number[] = [];
  const set = globalThis.setTimeout;
  t.mock.method(globalThis, 'setTimeout', (act: () => void, ms: number) => (waits.push(ms), set(act, ms)));
  return { ...opened, waits };
}

test('gathering: a quarter of the time of a slow batch, and 10 ms at most; after 10 ms a batch is slow', async (t) => {
  const { writer, clock, until, answer, waits } = await openTimed(t);
  const expected = [[10, []], [11, [2.75]], [20, [5]], [40, [10]], [44, [10]], [1000, [10]]] as const;
  for (const [index, [busyMs, gathering]] of expected.entries()) {
    waits.length = 0;
    const [only] = burn(writer, 1);
    await until(index + 1);
    clock.advance(busyMs);
    answer(dones(1));
    await only;
    assert.deepEqual(waits, gathering, `${busyMs} ms`);
    t.mock.timers.tick(10);
    await turn();
  }
});

test('gathering: ends when as many wait as were just answered, plus those that waited already; until then nothing is sent', async (t) => {
  const { writer, clock, until, staysAt, answer } = await openTimed(t);
  const first = burn(writer, 2);
  await until(1);
  const all = burn(writer, 1);
  clock.advance(20);
  answer(dones(2));
  await Promise.all(first);
  all.push(...burn(writer, 1));
  await staysAt([2]);
  assert.equal(writer.waiting, 2);
  all.push(...burn(writer, 1));
  await staysAt([2, 3]);
  answer(dones(3));
  await Promise.all(all);
});

test('gathering: not after content alone, whose clients may have left, nor while another batch is under way', async (t) => {
  const { writer, clock, until, answer, waits } = await openTimed(t);
  const bulk = writer.run('removeExpired', { nowSeconds: 1, limit: 1, skipped: 0 });
  await until(1);
  clock.advance(20);
  answer(dones(1));
  await bulk;
  assert.deepEqual(waits, []);
  const quick = burn(writer, 1);
  await until(2);
  answer(dones(1));
  await Promise.all(quick);
  const both = burn(writer, 2 * MIN_AHEAD_COMMANDS);
  await until(4);
  clock.advance(20);
  answer(dones(MIN_AHEAD_COMMANDS));
  await Promise.all(both.slice(0, MIN_AHEAD_COMMANDS));
  assert.deepEqual(waits, []);
  answer(dones(MIN_AHEAD_COMMANDS));
  await Promise.all(both);
});

test('state: what comes behind a batch under way does not make it younger', async (t) => {
  const { writer, clock, until, answer } = await openTimed(t);
  const all = burn(writer, MIN_AHEAD_COMMANDS);
  await until(1);
  clock.advance(9000);
  all.push(...burn(writer, MIN_AHEAD_COMMANDS));
  await until(2);
  clock.advance(1001);
  assert.equal(writer.state(), 'stalled');
  for (let batch = 0; batch < 2; batch += 1) answer(dones(MIN_AHEAD_COMMANDS));
  await Promise.all(all);
});

test('close: is asked of the thread once what is under way and what waits is answered', async (t) => {
  const { writer, until, staysAt, answer, thread } = await openTimed(t);
  const [first] = burn(writer, 1);
  await until(1);
  const [second] = burn(writer, 1);
  const closing = writer.close();
  await assert.rejects(burn(writer, 1)[0]!, isUnavailable);
  await staysAt([1]);
  answer(dones(1));
  await first;
  await staysAt([1, 1]);
  answer(dones(1));
  await second;
  await staysAt([1, 1, 'close']);
  await thread.terminate();
  await closing;
});

test('close: is asked of the thread at once if nothing is under way', async (t) => {
  const { writer, staysAt, thread } = await openNoted(t);
  const closing = writer.close();
  await staysAt(['close']);
  await thread.terminate();
  await closing;
});

test('hurry: after 2 s, once, refuses what waits and what comes; the thread is not told before the rest is answered', async (t) => {
  const { writer, until, staysAt, answer, waits, thread } = await openTimed(t);
  const [underWay] = burn(writer, 1);
  await until(1);
  const [waiting] = burn(writer, 1);
  writer.hurry();
  const closing = writer.close();
  assert.deepEqual(waits, [2000]);
  t.mock.timers.tick(2000);
  await assert.rejects(waiting!, isUnavailable);
  await assert.rejects(burn(writer, 1)[0]!, isUnavailable);
  await staysAt([1]);
  answer(dones(1));
  await underWay;
  await staysAt([1, 'close']);
  await thread.terminate();
  await closing;
});

test('hurry: without a close, what comes after 2 s is refused too', async (t) => {
  const { writer } = await openTimed(t);
  writer.hurry();
  t.mock.timers.tick(2000);
  await assert.rejects(burn(writer, 1)[0]!, isUnavailable);
});

test('the thread keeps the process alive while it has commands, and until it has ended when it is to close', async (t) => {
  const { writer, until, staysAt, answer, thread } = await openTimed(t);
  const calls: string[] = [];
  for (const name of ['ref', 'unref'] as const) t.mock.method(thread, name, () => void calls.push(name));
  const both = burn(writer, 2 * MIN_AHEAD_COMMANDS);
  await until(2);
  assert.deepEqual(calls, ['ref', 'ref']);
  answer(dones(MIN_AHEAD_COMMANDS));
  await Promise.all(both.slice(0, MIN_AHEAD_COMMANDS));
  assert.deepEqual(calls, ['ref', 'ref']);
  answer(dones(MIN_AHEAD_COMMANDS));
  await Promise.all(both);
  assert.deepEqual(calls, ['ref', 'ref', 'unref']);
  const [one] = burn(writer, 1);
  await until(3);
  const [last] = burn(writer, 1);
  answer(dones(1));
  await one;
  await until(4);
  assert.deepEqual(calls.slice(3), ['ref', 'ref']);
  const closing = writer.close();
  await staysAt([MIN_AHEAD_COMMANDS, MIN_AHEAD_COMMANDS, 1, 1]);
  answer(dones(1));
  await last;
  assert.deepEqual(calls.slice(3), ['ref', 'ref', 'ref']);
  await thread.terminate();
  await closing;
});

test('firstWord: what a thread refuses is refused, and what the storage fails it in is that failure', async (t) => {
  const thread = startThread('some task');
  t.after(() => thread.terminate());
  for (const [failure, name] of [['refused', 'DatabaseRefusedError'], ['full', 'StoreError']] as const) {
    const word = firstWord(thread, 'nothing', 'not done: ');
    thread.emit('message', { kind: 'refused', failure, message: 'why' });
    thread.emit('exit', 0);
    await assert.rejects(word, { name, message: failure === 'refused' ? 'why' : 'not done: why' });
  }
});
