// Writer: commands that come together share a commit, a second batch follows the first when there is enough for it, and
// a thread that ends takes no promise with it. The thread of some tests is a fake that does what the test says.

import assert from 'node:assert/strict';
import diagnostics from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { LogEntry } from '../../src/core/events.ts';
import type { Answer, Request } from '../../src/store/batch.ts';
import { createHealthCheck, type Store } from '../../src/store/open.ts';
import { CHUNK_BYTES, StoreError } from '../../src/store/store.ts';
import { firstWord, MIN_AHEAD_COMMANDS, startThread, startWriter, Writer } from '../../src/store/writer.ts';
import { movableClock } from '../support/clock.ts';
import { burning, DONE, FAILED, isUnavailable, openFake } from '../support/fake-writer.ts';
import {
  CREATED_AT, inlinePaste, newId, NO_TERMS, openTestStore, patternedBytes, storePaste,
  temporaryFolder,
} from '../support/store.ts';

/** How many transactions the write-ahead log holds: frames whose header gives the database's size after a commit. */
function commitsInLog(path: string): number {
  const log = readFileSync(`${path}-wal`);
  const frameBytes = 24 + log.readUInt32BE(8);
  let commits = 0;
  for (let start = 32; start + frameBytes <= log.length; start += frameBytes) {
    if (log.readUInt32BE(start + 4) > 0) commits += 1;
  }
  return commits;
}

/** Opens a store, and also gives the thread that it started. */
async function openWithThread(t: TestContext) {
  const started: Worker[] = [];
  const note = (message: unknown) => started.push((message as { worker: Worker }).worker);
  diagnostics.subscribe('worker_threads', note);
  const opened = await openTestStore(t);
  diagnostics.unsubscribe('worker_threads', note);
  const [thread] = started;
  assert.ok(thread);
  return { ...opened, store: opened.store, thread };
}

const create = (store: Store, size = 10) => store.pastes.create(inlinePaste(patternedBytes(size)), NO_TERMS);

const sizesOf = (requests: readonly Request[]) => (
  requests.map((request) => (request.kind === 'batch' ? request.commands.length : request.kind))
);

test('run: the few that come in one turn of the event loop are one commit', async (t) => {
  const { path, store } = await openTestStore(t);
  await store.upkeep.truncateWal();
  await Promise.all(Array.from({ length: MIN_AHEAD_COMMANDS - 1 }, () => create(store)));
  assert.equal(commitsInLog(path), 1);
  await create(store);
  await create(store);
  assert.equal(commitsInLog(path), 3);
});

test('run: what comes while a batch is under way goes with the next', async (t) => {
  const { writer, requests, next, answer } = await openFake(t);
  const step = { nowSeconds: 1, limit: 1, skipped: 0 };
  const first = writer.run('removeExpired', step);
  await next();
  const later = [writer.run('removeExpired', step), writer.run('removeExpired', step)];
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(requests.length, 1);
  answer([DONE]);
  await first;
  await next();
  assert.deepEqual(sizesOf(requests), [1, 2]);
  answer([FAILED, DONE]);
  await assert.rejects(later[0] ?? Promise.resolve(), isUnavailable);
  await later[1];
});

test('run: enough commands go at once, and as many behind them, but not a third batch', async (t) => {
  const { writer, requests, next, answer } = await openFake(t);
  const done = Array(MIN_AHEAD_COMMANDS).fill(DONE);
  const results = Array.from({ length: 3 * MIN_AHEAD_COMMANDS }, () => writer.run('burnPaste', burning));
  assert.equal(writer.waiting, 3 * MIN_AHEAD_COMMANDS);
  while (requests.length < 2) await next();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(sizesOf(requests), [MIN_AHEAD_COMMANDS, MIN_AHEAD_COMMANDS]);
  answer([FAILED, ...done.slice(1)]);
  await assert.rejects(results[0]!, isUnavailable);
  await next();
  assert.deepEqual(sizesOf(requests).slice(2), [MIN_AHEAD_COMMANDS]);
  assert.equal(writer.waiting, 2 * MIN_AHEAD_COMMANDS);
  answer(done);
  answer(done);
  await Promise.all(results.slice(1));
  assert.equal(writer.waiting, 0);
});

test('run: on a slow disk nothing goes ahead, and all that wait share a commit', async (t) => {
  const { writer, clock, requests, next, answer } = await openFake(t);
  const slow = writer.run('burnPaste', burning);
  await next();
  clock.advance(20);
  answer([DONE]);
  await slow;
  const count = 3 * MIN_AHEAD_COMMANDS;
  const together = Array.from({ length: count }, () => writer.run('burnPaste', burning));
  await next();
  assert.deepEqual(sizesOf(requests), [1, count]);
  answer(Array(count).fill(DONE));
  await Promise.all(together);
  const quick = Array.from({ length: MIN_AHEAD_COMMANDS + 1 }, () => writer.run('burnPaste', burning));
  await next();
  assert.deepEqual(sizesOf(requests).slice(2), [MIN_AHEAD_COMMANDS]);
  answer(Array(MIN_AHEAD_COMMANDS).fill(DONE));
  await next();
  answer([DONE]);
  await Promise.all(quick);
});

test('run: on a slow disk those just answered are waited for, but not for long', async (t) => {
  const { writer, clock, requests, next, answer } = await openFake(t);
  const burn = (count: number) => Array.from({ length: count }, () => writer.run('burnPaste', burning));
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const first = burn(2);
  await next();
  const second = burn(1);
  clock.advance(20);
  answer([DONE, DONE]);
  await Promise.all(first);
  const third = burn(1);
  await turn();
  assert.equal(writer.waiting, 2, 'nothing is under way');
  assert.equal(requests.length, 1);
  const fourth = burn(1);
  await next();
  assert.deepEqual(sizesOf(requests), [2, 3]);
  const fifth = burn(1);
  clock.advance(20);
  answer([DONE, DONE, DONE]);
  await Promise.all([...second, ...third, ...fourth]);
  await next();
  assert.deepEqual(sizesOf(requests).slice(2), [1], 'the time is over');
  answer([DONE]);
  await Promise.all(fifth);
});

test('state: a second batch has its ten seconds from when its turn comes', async (t) => {
  const { writer, clock, requests, next, answer } = await openFake(t);
  const results = Array.from({ length: 2 * MIN_AHEAD_COMMANDS }, () => writer.run('burnPaste', burning));
  while (requests.length < 2) await next();
  clock.advance(9000);
  answer(Array(MIN_AHEAD_COMMANDS).fill(DONE));
  clock.advance(9000);
  assert.equal(writer.state(), 'working');
  clock.advance(1001);
  assert.equal(writer.state(), 'stalled');
  answer(Array(MIN_AHEAD_COMMANDS).fill(DONE));
  await Promise.all(results);
});

test('run: small writes do not wait behind an upload', async (t) => {
  const { store } = await openTestStore(t);
  const upload = store.contents.upload(newId());
  let chunksDone = 0;
  const writes = Array.from({ length: 64 }, async () => {
    await upload.write(patternedBytes(CHUNK_BYTES));
    chunksDone += 1;
  });
  await create(store);
  assert.ok(chunksDone < 32, `${chunksDone} chunks of 64 were written before`);
  await Promise.all(writes);
});

test('run: something that cannot cross fails with its batch, and the next batch goes', async (t) => {
  const { store } = await openTestStore(t);
  const uncloneable = inlinePaste(patternedBytes(1), { owner: (() => {}) as never });
  await assert.rejects(store.pastes.create(uncloneable, NO_TERMS), { name: 'DataCloneError' });
  assert.deepEqual(await create(store), { refused: null });
});

test('run: a command that is left unanswered fails as an error of the program, and the next one goes', async (t) => {
  const { writer, requests, next, answer } = await openFake(t);
  const [answered, left] = [writer.run('burnPaste', burning), writer.run('burnPaste', burning)];
  await next();
  assert.deepEqual(sizesOf(requests), [2]);
  answer([DONE]);
  await answered;
  await assert.rejects(left, (error: unknown) => {
    return !(error instanceof StoreError) && /left a command unanswered/.test(String(error));
  });
  assert.deepEqual([writer.waiting, writer.state()], [0, 'working']);
  const later = writer.run('optimize', null);
  await next();
  answer([DONE]);
  await later;
});

test('state: failed after a failed write until a probe succeeds, since others may have nothing to write', async (t) => {
  const { writer, next, answer } = await openFake(t);
  const attempt = async (reply: Answer, name: 'optimize' | 'probe' | 'restoreBallast' = 'optimize') => {
    const running = writer.run(name, null).catch(() => {});
    await next();
    answer([reply]);
    await running;
    return writer.state();
  };
  assert.equal(writer.state(), 'working');
  assert.equal(await attempt(FAILED), 'failed');
  assert.equal(await attempt({ done: false, failure: null, error: new Error('a bug') }), 'failed');
  assert.equal(await attempt(DONE), 'failed');
  assert.equal(await attempt(DONE, 'restoreBallast'), 'failed');
  assert.equal(await attempt(FAILED, 'probe'), 'failed');
  assert.equal(await attempt(DONE, 'probe'), 'working');
  assert.equal(await attempt(DONE), 'working');
});

test('state: stalled when a batch is under way for more than ten seconds', async (t) => {
  const { writer, clock, next, answer } = await openFake(t);
  const running = writer.run('optimize', null);
  await next();
  clock.advance(10_000);
  assert.equal(writer.state(), 'working');
  clock.advance(1);
  assert.equal(writer.state(), 'stalled');
  answer([DONE]);
  await running;
  clock.advance(60_000);
  assert.equal(writer.state(), 'working');
});

test('healthy: after a failed write it tries one, shared by all who ask', async (t) => {
  const { writer, requests, next, answer } = await openFake(t);
  const healthy = createHealthCheck({ isAdopted: () => false }, writer);
  assert.equal(await healthy(), true);
  const running = writer.run('optimize', null).catch(() => {});
  await next();
  answer([FAILED]);
  await running;
  for (const [reply, expected] of [[FAILED, false], [DONE, true]] as const) {
    const sent = requests.length;
    const asked = Promise.all([healthy(), healthy(), healthy()]);
    await next();
    answer([reply]);
    assert.deepEqual(await asked, [expected, expected, expected]);
    const names = requests.slice(sent).map((request) => request.kind === 'alone' && request.command.name);
    assert.deepEqual(names, ['probe']);
  }
  assert.equal(await healthy(), true);
});

test('healthy: false when reading fails', async (t) => {
  const { writer } = await openFake(t);
  const isAdopted = () => {
    throw new StoreError('unavailable', 'reading fails');
  };
  assert.equal(await createHealthCheck({ isAdopted }, writer)(), false);
});

test('a thread that ends fails every write, now and later, is logged, and leaves reading up', async (t) => {
  const { store, thread, logged } = await openWithThread(t);
  const paste = await storePaste(store, patternedBytes(100));
  const large = await storePaste(store, patternedBytes(CHUNK_BYTES));
  const reader = await store.contents.open(large.contentId ?? '');
  const pending = Promise.allSettled(Array.from({ length: 500 }, () => create(store)));
  await thread.terminate();
  const rejected = (await pending).filter((outcome) => outcome.status === 'rejected');
  assert.ok(rejected.length > 0, 'some were still waiting');
  for (const { reason } of rejected) assert.ok(isUnavailable(reason), String(reason));
  await assert.rejects(create(store), isUnavailable);
  await assert.rejects(store.contents.upload(newId()).write(patternedBytes(1)), isUnavailable);
  assert.equal((await store.pastes.find(paste.id, CREATED_AT))?.size, 100);
  let bytes = 0;
  for await (const chunk of reader?.read(0, CHUNK_BYTES) ?? assert.fail('it can be opened')) bytes += chunk.length;
  assert.equal(bytes, CHUNK_BYTES);
  reader?.close();
  assert.equal(await store.healthy(), false);
  const errors = logged.filter(({ level }) => level === 'error');
  assert.deepEqual(errors.map(({ logger, event }) => [logger, event]), [['store', 'writer thread ended']]);
});

test('a thread that ends fails what is under way and what waits', async (t) => {
  const { writer, thread, next, logged } = await openFake(t);
  const underWay = writer.run('optimize', null);
  await next();
  const waiting = writer.run('optimize', null);
  const both = Promise.all([assert.rejects(underWay, isUnavailable), assert.rejects(waiting, isUnavailable)]);
  await thread.terminate();
  await both;
  assert.equal(writer.state(), 'ended');
  assert.equal(logged.length, 1);
  await writer.close();
});

test('close: a thread that ends meanwhile leaves neither it nor what it waited for hanging', async (t) => {
  const { writer, thread, next, logged } = await openFake(t);
  const underWay = assert.rejects(writer.run('optimize', null), isUnavailable);
  await next();
  const closing = writer.close();
  await thread.terminate();
  await Promise.all([underWay, closing]);
  const told = logged.map(({ event, details }) => [event, details]);
  assert.deepEqual(told, [['writer thread ended', { reason: 'exited' }]]);
});

/** A writer on a thread that runs this script on every message. */
function openWith(t: TestContext, script: string) {
  const thread = scripted(t, `require('node:worker_threads').parentPort.on('message', (message) => { ${script} })`);
  const logged: LogEntry[] = [];
  return { writer: new Writer(thread, movableClock(), (entry) => logged.push(entry)), logged };
}

function scripted(t: TestContext, script: string): Worker {
  const thread = new Worker(script, { eval: true, execArgv: [] });
  t.after(() => thread.terminate());
  return thread;
}

test('close: a thread that fails meanwhile is logged with what it said, one that ends as asked is not', async (t) => {
  const failing = openWith(t, "if (message.kind === 'close') throw new RangeError('a bug')");
  await failing.writer.close();
  const reasons = failing.logged.map(({ level, event, details }) => [level, event, details]);
  assert.deepEqual(reasons, [['error', 'writer thread ended', { reason: 'a bug' }]]);
  assert.equal(failing.writer.state(), 'ended');
  await failing.writer.close();
  const ending = openWith(t, "if (message.kind === 'close') process.exit()");
  await ending.writer.close();
  assert.deepEqual([ending.logged, ending.writer.state()], [[], 'ended']);
});

test('startWriter: a thread that ends before it is ready, by itself or by an error, is no writer', async (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  const start = (script: string) => startWriter(path, movableClock(), () => {}, scripted(t, script));
  await assert.rejects(start(''), (error: unknown) => {
    return isUnavailable(error) && /the writer thread did not start/.test(String(error));
  });
  await assert.rejects(start("throw new RangeError('a bug')"), { name: 'RangeError', message: 'a bug' });
  // The real thread, with a path that is none.
  const pathless = startWriter(7 as never, movableClock(), () => {});
  await assert.rejects(pathless, { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' });
});

test('startWriter: why the database cannot be opened is told with its path, and the thread is gone', async (t) => {
  const path = temporaryFolder(t);
  const thread = startThread('store writer');
  t.after(() => thread.terminate());
  let hasEnded = false;
  thread.once('exit', () => (hasEnded = true));
  const starting = startWriter(path, movableClock(), () => {}, thread);
  await assert.rejects(starting, (error: unknown) => {
    return isUnavailable(error) && String(error).includes(`the database ${path} cannot be opened: `);
  });
  assert.equal(hasEnded, true);
});

test('the module of the store\'s threads refuses to run in no thread', async () => {
  await assert.rejects(import('../../src/store/thread.ts'), /this module is for a worker thread/);
});

test('firstWord: the last word of a thread counts, however late one hears of it', async () => {
  const say = "require('node:worker_threads').parentPort.postMessage({ kind: 'done', given: 7 })";
  const worker = new Worker(say, { eval: true, execArgv: [] });
  const given = firstWord(worker, 'nothing');
  // Holds up this thread, so that the worker's message and its end are both there when this thread looks again.
  setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500));
  assert.equal(await given, 7);
  const silent = new Worker('', { eval: true, execArgv: [] });
  await assert.rejects(firstWord(silent, 'nothing'), { name: 'StoreError', message: 'nothing' });
});
