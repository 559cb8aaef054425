// Uploads by themselves: in which order an upload writes its chunks, what ends it, and what room it is promised.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import test, { type TestContext } from 'node:test';
import { type Command, Executor } from '../../src/store/batch.ts';
import { createUpload } from '../../src/store/content.ts';
import { migrate } from '../../src/store/schema.ts';
import { CHUNK_BYTES, type NewPaste, StoreError, type UploadQuota } from '../../src/store/store.ts';
import { inlinePaste, newId, NO_TERMS, openTestStore, patternedBytes, uploadContent, uploaded } from '../support/store.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** An upload whose writes the test answers; `ended` has what each end of it says of its chunks. */
function openUpload(quota: UploadQuota | null) {
  const written: { readonly position: number; readonly answer: PromiseWithResolvers<boolean> }[] = [];
  const ended: boolean[] = [];
  const run = (_: 'writeChunk', { position }: { readonly position: number }) => {
    const answer = Promise.withResolvers<boolean>();
    written.push({ position, answer });
    return answer.promise;
  };
  const end = async (hasChunks: boolean) => void ended.push(hasChunks);
  return { upload: createUpload(newId(), quota, { run }, () => {}, end), written, ended };
}

const whole = () => patternedBytes(CHUNK_BYTES);

test('write: chunks do not wait for each other, but under a quota all others wait for the first', async () => {
  for (const quota of [null, { maxStoredBytes: 10, declaredBytes: 10 }]) {
    const { upload, written } = openUpload(quota);
    const writes = [upload.write(whole()), upload.write(whole()), upload.write(whole())];
    await turn();
    assert.deepEqual(written.map(({ position }) => position), quota === null ? [0, 1, 2] : [0]);
    written[0]!.answer.resolve(true);
    await turn();
    assert.deepEqual(written.map(({ position }) => position), [0, 1, 2]);
    for (const { answer } of written) answer.resolve(true);
    await Promise.all(writes);
  }
});

test('discard: without chunks there is nothing to remove, and an upload that has ended takes no more', async () => {
  const { upload, written, ended } = openUpload(null);
  await upload.discard();
  assert.deepEqual(ended, [false]);
  await assert.rejects(upload.write(whole()), { message: 'the upload has ended' });
  assert.deepEqual(written, []);
});

test('discard: after a write that failed, later ones are told of that failure', async () => {
  const { upload, written, ended } = openUpload(null);
  const failure = new StoreError('unavailable', 'the disk fails');
  const write = upload.write(whole());
  await turn();
  written[0]!.answer.reject(failure);
  await assert.rejects(write, failure);
  await upload.discard();
  assert.deepEqual(ended, [true]);
  await assert.rejects(upload.write(whole()), failure);
});

test('discard: waits for a write under way, whose chunk would otherwise be written after the rest is removed', async () => {
  const { upload, written, ended } = openUpload(null);
  const write = upload.write(whole());
  const discarded = upload.discard();
  await turn();
  assert.deepEqual([written.length, ended], [1, []]);
  written[0]!.answer.resolve(true);
  await Promise.all([write, discarded]);
  assert.deepEqual(ended, [true]);
});

/** Says of each chunk, in order, whether there is room for it. The database is below OWN_BYTES, so it counts as 0. */
function admissions(t: TestContext, ...pastes: readonly NewPaste[]) {
  const db = new DatabaseSync(':memory:');
  t.after(() => db.close());
  migrate(db);
  const executor = new Executor(db);
  executor.carryOut(pastes.map((paste) => ({ name: 'createPaste', params: { paste, terms: NO_TERMS } })));
  return (contentId: string, position: number, bytes: number, declaredBytes: number, maxStoredBytes = 1e9) => {
    const params = { contentId, position, bytes: patternedBytes(bytes), quota: { declaredBytes, maxStoredBytes } };
    const [answer] = executor.carryOut([{ name: 'writeChunk', params } satisfies Command]);
    assert.ok(answer?.done, JSON.stringify(answer));
    return answer.value;
  };
}

test('quota: an upload is promised what it declared and has not written, to the byte', (t) => {
  const declared: readonly (readonly [position: number, bytes: number, declaredBytes: number, promised: number])[] = [
    [0, 10, 30, 20], [0, 10, 11, 1], [0, 10, 10, 0], [0, 10, 9, 0], [0, 10, 0, 0],
    [1, 10, CHUNK_BYTES + 30, 20], [1, 10, CHUNK_BYTES + 10, 0], [2, 10, 2 * CHUNK_BYTES + 11, 1],
  ];
  for (const [position, bytes, declaredBytes, promised] of declared) {
    const write = admissions(t);
    const first = newId();
    for (let before = 0; before < position; before += 1) assert.equal(write(first, before, 10, declaredBytes), true);
    assert.equal(write(first, position, bytes, declaredBytes), true);
    const text = `${position} ${bytes} ${declaredBytes}`;
    assert.equal(write(newId(), 0, 5, 7, promised + 6), false, text);
    assert.equal(write(newId(), 0, 7, 5, promised + 6), false, text);
    assert.equal(write(newId(), 0, 5, 7, promised + 7), true, text);
  }
});

test('quota: a chunk takes its own bytes alone, and those of all pastes must not be past the limit already', (t) => {
  for (const [maxStoredBytes, isAdmitted] of [[9, false], [10, true], [11, true]] as const) {
    const write = admissions(t, inlinePaste(patternedBytes(10)));
    assert.equal(write(newId(), 0, 5, 5, maxStoredBytes), isAdmitted, `${maxStoredBytes}`);
  }
});

test('quota: what a row adds to the file is counted, and of content in chunks nothing, since those are there', async (t) => {
  const { store } = await openTestStore(t);
  const content = patternedBytes(CHUNK_BYTES);
  const upload = await uploaded(store, content);
  await uploadContent(store, patternedBytes(4 * CHUNK_BYTES));
  const { databaseBytes } = await store.read.usage();
  assert.ok(databaseBytes > 2 * CHUNK_BYTES, `${databaseBytes} bytes`);
  const inRow = inlinePaste(patternedBytes(10));
  const inChunks = inlinePaste(content, { content: null, contentId: upload.contentId });
  for (const [paste, leastBytes] of [[inRow, databaseBytes + 10], [inChunks, 10 + CHUNK_BYTES]] as const) {
    const refusal = (maxStoredBytes: number) => store.pastes.create(paste, { ...NO_TERMS, maxStoredBytes });
    assert.deepEqual(await refusal(leastBytes - 1), { refused: 'storageFull' });
    assert.deepEqual(await refusal(leastBytes), { refused: null });
  }
  upload.keep();
});
