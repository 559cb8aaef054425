// createDiscards and Touches: work in the background that never throws. Discards must not be lost; touches may be.

import assert from 'node:assert/strict';
import test from 'node:test';
import type { Log, LogEntry } from '../../src/core/events.ts';
import { BATCH_TOUCHES, createContentStore, createDiscards, MAX_TOUCHES, Touches } from '../../src/store/content.ts';
import type { Access } from '../../src/store/pastes.ts';
import { StoreError } from '../../src/store/store.ts';
import type { Writer } from '../../src/store/writer.ts';
import { patternedBytes } from '../support/store.ts';

/** Fails the test when anything is logged. */
const noLog: Log = ({ event }) => assert.fail(event);

test('discards: each content goes in its steps, of each in its turn, also what is added meanwhile', async () => {
  const steps: string[] = [];
  const step = async (contentId: string): Promise<boolean> => (
    steps.push(contentId) > 0 && steps.filter((each) => each === contentId).length === 3
  );
  const discards = createDiscards(step, noLog);
  await discards.add([]);
  const early = discards.add(['a', 'b']);
  const late = discards.add(['c', 'a']);
  await Promise.all([early, late]);
  assert.equal(steps.join(''), 'abacbacbc');
  await discards.add([]);
  assert.equal(steps.length, 9);
});

test('discards: after a failure the rest waits for the next call, the failed one last', async () => {
  const logged: LogEntry[] = [];
  const steps: string[] = [];
  let broken = true;
  const step = async (contentId: string) => {
    steps.push(contentId);
    if (broken && contentId === 'a') throw new Error('no luck');
    return true;
  };
  const discards = createDiscards(step, (entry) => logged.push(entry));
  await discards.add(['a', 'b']);
  assert.deepEqual(logged.map(({ event, details }) => [event, details]), [
    ['content not removed', { reason: 'no luck', waiting: 2 }],
  ]);
  broken = false;
  await discards.add(['c']);
  assert.equal(steps.join(''), 'abac');
  await discards.add([]);
  assert.equal(steps.length, 4);
});

test('discards: what is added while the last step ends is not left, at whichever microtask that is', async () => {
  for (let microtasks = 1; microtasks < 12; microtasks += 1) {
    const gone: string[] = [];
    let later: Promise<void> | undefined;
    const discards = createDiscards(async (contentId) => {
      if (contentId === 'a') later = addLater();
      gone.push(contentId);
      return true;
    }, noLog);
    const addLater = async (): Promise<void> => {
      for (let turn = 0; turn < microtasks; turn += 1) await null;
      await discards.add(['b']);
    };
    await discards.add(['a']);
    await later;
    assert.deepEqual(gone, ['a', 'b'], `added after ${microtasks} microtasks`);
  }
});

test('discards: whoever waits for one content waits for no other, but for a step of each', async () => {
  const steps: string[] = [];
  const discards = createDiscards(async (contentId) => {
    steps.push(contentId);
    await null;
    // More content is added without a pause.
    if (steps.length < 1000) void discards.add([`large ${steps.length}`]);
    return contentId === 'small' || steps.length > 1000;
  }, noLog);
  void discards.add(['large']);
  await discards.add(['small']);
  assert.deepEqual(steps.slice(0, 3), ['large', 'large', 'small']);
  assert.ok(steps.length < 10, `${steps.length} steps`);
  await discards.add([]);
  assert.ok(steps.length > 1000, 'none: all');
});

test('discard: an upload that ends waits neither for content that was deleted nor for what is slow to go', async () => {
  const steps: string[] = [];
  const run = async (name: string, { contentId }: { readonly contentId: string }) => {
    if (name !== 'discardChunks') return true;
    steps.push(contentId);
    return contentId === 'deleted' ? new Promise(() => {}) : true;
  };
  const lookups = { isAdopted: () => false } as unknown as Parameters<typeof createContentStore>[0];
  const { contents, release } = createContentStore(lookups, { run } as unknown as Writer, noLog);
  void release(['deleted']);
  const upload = contents.upload('upload');
  await upload.write(patternedBytes(10));
  await upload.discard();
  assert.deepEqual(steps, ['deleted', 'upload']);
});

test('keep: an upload whose paste has lost it to another process already is removed', async () => {
  const steps: string[] = [];
  const run = async (name: string) => {
    steps.push(name);
    return true;
  };
  for (const isAdopted of [true, false]) {
    const lookups = { isAdopted: () => isAdopted } as unknown as Parameters<typeof createContentStore>[0];
    const { contents } = createContentStore(lookups, { run } as unknown as Writer, noLog);
    const upload = contents.upload('content');
    await upload.write(patternedBytes(10));
    upload.keep();
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(steps.splice(0), isAdopted ? ['writeChunk'] : ['writeChunk', 'discardChunks']);
  }
});

test('upload: after a write that failed, further ones fail in the same way', async () => {
  const full = new StoreError('full', 'storage full');
  let writes = 0;
  const run = async () => {
    writes += 1;
    throw full;
  };
  const lookups = {} as Parameters<typeof createContentStore>[0];
  const { contents } = createContentStore(lookups, { run } as unknown as Writer, noLog);
  const upload = contents.upload('content');
  await assert.rejects(upload.write(patternedBytes(10)), full);
  await assert.rejects(upload.write(patternedBytes(10)), full);
  assert.equal(writes, 1);
});

test('touches: written some seconds after the first, only the newest time of each paste', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const batches: (readonly Access[])[] = [];
  const touches = new Touches(async (accesses) => void batches.push(accesses), noLog);
  touches.note('a', 1);
  touches.note('b', 2);
  t.mock.timers.tick(4999);
  touches.note('a', 3);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(batches.length, 0);
  t.mock.timers.tick(1);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(batches, [[{ id: 'a', atSeconds: 3 }, { id: 'b', atSeconds: 2 }]]);
  touches.note('c', 4);
  t.mock.timers.tick(5000);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(batches.slice(1), [[{ id: 'c', atSeconds: 4 }]], 'one alone too');
  await touches.close();
  touches.note('d', 5);
  await touches.close();
  assert.equal(batches.length, 2, 'closed, it takes no more');
});

test('touches: never more than their bound, written in small commands', async () => {
  const sizes: number[] = [];
  const blocked = Promise.withResolvers<void>();
  const touches = new Touches(async (accesses) => {
    sizes.push(accesses.length);
    await blocked.promise;
  }, noLog);
  for (let count = 0; count < 3 * MAX_TOUCHES; count += 1) touches.note(`n${count % (MAX_TOUCHES + 1)}`, count);
  blocked.resolve();
  await touches.close();
  assert.equal(sizes.reduce((sum, size) => sum + size), MAX_TOUCHES);
  assert.ok(Math.max(...sizes) <= 256);
});

test('touches: when they are full a batch is written at once, and each further one only some seconds later', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const written: string[] = [];
  const touches = new Touches(async (accesses) => void written.push(...accesses.map(({ id }) => id)), noLog);
  const writtenAfter = async (milliseconds: number): Promise<number> => {
    t.mock.timers.tick(milliseconds);
    await new Promise((resolve) => setImmediate(resolve));
    return written.length;
  };
  for (let number = 0; number < MAX_TOUCHES; number += 1) touches.note(`n${number}`, 1);
  assert.equal(await writtenAfter(0), BATCH_TOUCHES);
  for (let number = 0; number < MAX_TOUCHES; number += 1) touches.note(`m${number}`, 1);
  assert.equal(await writtenAfter(4999), BATCH_TOUCHES, 'full again, but not yet');
  assert.equal(await writtenAfter(1), 2 * BATCH_TOUCHES);
  assert.equal(await writtenAfter(5000), 3 * BATCH_TOUCHES);
  // This goes on until all are written, and then come some seconds without any.
  for (let rest = MAX_TOUCHES; rest > 0; rest -= BATCH_TOUCHES) await writtenAfter(5000);
  const all = await writtenAfter(5000);
  assert.equal(all, MAX_TOUCHES + BATCH_TOUCHES, 'what was noted, and what took the first places');
  for (let number = 0; number < MAX_TOUCHES; number += 1) touches.note(`o${number}`, 1);
  assert.equal(await writtenAfter(0), all + BATCH_TOUCHES, 'full after a rest, at once');
  await touches.close();
  assert.equal(written.length, all + MAX_TOUCHES);
  assert.deepEqual(written.slice(0, MAX_TOUCHES), Array.from({ length: MAX_TOUCHES }, (_, number) => `n${number}`));
});

test('touches: a failure is logged and forgotten', async () => {
  const logged: LogEntry[] = [];
  const touches = new Touches(async () => Promise.reject(new Error('no luck')), (entry) => logged.push(entry));
  touches.note('a', 1);
  await touches.close();
  assert.deepEqual(logged.map(({ level, event, details }) => [level, event, details]), [
    ['warning', 'access times lost', { reason: 'no luck', accesses: 1 }],
  ]);
});
