// Writer: what waits for the disk has bounds, by number, by bytes, and at a stop by time.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import test from 'node:test';
import { MIB } from '../../src/core/time.ts';
import type { Store } from '../../src/store/open.ts';
import { unavailable } from '../../src/store/store.ts';
import { MIN_AHEAD_COMMANDS } from '../../src/store/writer.ts';
import { burning, DONE, isUnavailable, openFake } from '../support/fake-writer.ts';
import {
  CREATED_AT, inlinePaste, newId, NO_TERMS, openTestStore, patternedBytes, selectValue,
} from '../support/store.ts';

const create = (store: Store) => store.pastes.create(inlinePaste(patternedBytes(10)), NO_TERMS);

test('run: more than ten thousand waiting is refused, until there is room again', async (t) => {
  const { writer, next, answer } = await openFake(t);
  const first = writer.run('optimize', null);
  await next();
  const step = { nowSeconds: 1, limit: 1, skipped: 0 };
  const outcomes = Promise.allSettled(Array.from({ length: 10_000 }, () => writer.run('removeExpired', step)));
  await assert.rejects(writer.run('removeExpired', step), isUnavailable);
  answer([DONE]);
  await first;
  await next();
  const accepted = writer.run('optimize', null);
  answer(Array(256).fill(DONE));
  await next();
  answer([DONE]);
  await accepted;
  writer.close().catch(assert.fail);
  for (let batches = 39; batches > 0; batches -= 1) {
    await next();
    answer(Array(256).fill(DONE));
  }
  assert.ok((await outcomes).every(({ status }) => status === 'fulfilled'));
});

test('run: content that waits has a bound, for small pastes one of their own, until there is room again', async (t) => {
  const { writer, requests, next, answer } = await openFake(t);
  let answered = 0;
  const answerNext = async (): Promise<void> => {
    while (requests.length === answered) await next();
    answered += 1;
    answer(Array(256).fill(DONE));
  };
  const run = (name: 'burnPaste' | 'discardChunks', bytes: number) => writer.run(name, burning as never, bytes);
  const outcomes: Promise<unknown>[] = [writer.run('optimize', null)];
  while (requests.length === 0) await next();
  // These make a second batch, and no third one goes ahead.
  for (let count = 0; count < MIN_AHEAD_COMMANDS; count += 1) outcomes.push(run('burnPaste', 0));
  while (requests.length === 1) await next();
  for (const [name, most] of [['burnPaste', 64 * MIB], ['discardChunks', 256 * MIB]] as const) {
    for (let bytes = 0; bytes < most; bytes += MIB) outcomes.push(run(name, MIB));
    await assert.rejects(run(name, 1), isUnavailable);
    outcomes.push(run(name, 0));
  }
  await answerNext();
  while (requests.length === 2) await next();
  // A batch of 2 MiB is under way now, and a command of the other lane with it.
  outcomes.push(run('burnPaste', 2 * MIB), run('discardChunks', MIB));
  for (const name of ['burnPaste', 'discardChunks'] as const) await assert.rejects(run(name, 1), isUnavailable);
  while (writer.waiting > 0) await answerNext();
  assert.ok((await Promise.allSettled(outcomes)).every(({ status }) => status === 'fulfilled'));
});

test('close: who keeps the database holds up what is under way, and what waits is refused', async (t) => {
  const { store, path, logged } = await openTestStore(t);
  const holder = new DatabaseSync(path, { timeout: 5000 });
  t.after(() => holder.isOpen && holder.close());
  holder.exec('BEGIN IMMEDIATE');
  const underWay = create(store);
  await new Promise((resolve) => setImmediate(resolve));
  const waiting = [create(store), create(store)];
  store.pastes.touch(newId(), CREATED_AT);
  const closing = store.close();
  for (const outcome of await Promise.allSettled(waiting)) {
    assert.equal(outcome.status, 'rejected');
    assert.deepEqual(outcome.reason, unavailable('closed'));
  }
  const lost = logged.filter(({ level }) => level !== 'info').map(({ event, details }) => [event, details?.['reason']]);
  assert.deepEqual(lost, [['access times lost', 'storage unavailable: closed']]);
  holder.close();
  assert.deepEqual(await underWay, { refused: null });
  await closing;
  assert.equal(selectValue(path, 'SELECT count(*) FROM pastes'), 1);
});

test('close: where all that is left is refused, nothing is waited for', async (t) => {
  const { writer, thread, clock, requests, next, answer } = await openFake(t);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const first = writer.run('burnPaste', burning);
  await next();
  const second = writer.run('burnPaste', burning);
  const closing = writer.close();
  clock.advance(20);
  answer([DONE]);
  await first;
  // Until then the writer waits for the clients who were just answered, so nothing is under way.
  t.mock.timers.tick(2000);
  await assert.rejects(second, isUnavailable);
  assert.equal(writer.waiting, 0);
  await next();
  assert.deepEqual(requests.slice(1), [{ kind: 'close' }]);
  await thread.terminate();
  await closing;
});
