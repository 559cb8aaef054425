// What the calls of a store ask of its writer, and what they do with the answer. The commands are answered by the test.

import assert from 'node:assert/strict';
import test from 'node:test';
import { createContentStore } from '../../src/store/content.ts';
import { createCalls } from '../../src/store/open.ts';
import { CHUNK_BYTES } from '../../src/store/store.ts';
import { inlineContent, inlinePaste, NO_TERMS, patternedBytes } from '../support/store.ts';

/** The calls of a store whose commands the test answers; `asked` has what each was. */
function openCalls(answers: Readonly<Record<string, unknown>>) {
  const asked: unknown[] = [];
  const run = async (name: string, _: unknown, bytes?: number) => (asked.push([name, bytes]), answers[name]);
  const hot = {
    around: async (_: string, change: () => Promise<unknown>) => change(), noteRemoved: () => asked.push('removed'),
  };
  const release = async (ids: readonly string[]) => void asked.push(ids);
  const { pastes } = createCalls({ run, hot, release, share: (bytes: Uint8Array) => bytes } as never);
  return { pastes, asked };
}

test('create, update: content that waits counts with its length, and content in chunks, or none, with nothing', async () => {
  const answers = { createPaste: { refused: null }, updatePaste: { outcome: { refused: null }, orphanedContentIds: [] } };
  const { pastes, asked } = openCalls(answers);
  await pastes.create(inlinePaste(patternedBytes(10)), NO_TERMS);
  await pastes.create(inlinePaste(patternedBytes(10), { content: null, contentId: 'a' }), NO_TERMS);
  const terms = { nowSeconds: 1, duplicates: null, maxStoredBytes: null, maxOwnerBytes: null };
  const chunks = { ...inlineContent(patternedBytes(20)), content: null, contentId: 'a' };
  for (const changes of [{ content: inlineContent(patternedBytes(20)) }, { content: chunks }, { passwordHash: null }]) {
    await pastes.update('a', 'b', changes, terms);
  }
  assert.deepEqual(asked.filter((call) => String(call).includes('Paste')), [
    ['createPaste', 10], ['createPaste', 0], ['updatePaste', 20], ['updatePaste', 0], ['updatePaste', 0],
  ]);
});

test('removeExpired: a step that finds nothing touches neither memory nor content', async () => {
  for (const [outcome, orphanedContentIds, more] of [[0, [], []], [1, [], ['removed']], [1, ['c'], ['removed', ['c']]]] as const) {
    const { pastes, asked } = openCalls({ removeExpired: { outcome, orphanedContentIds } });
    assert.equal(await pastes.removeExpired(1, 2), outcome);
    assert.deepEqual(asked, [['removeExpired', undefined], ...more]);
  }
});

test('discard: clears chunks by bounded steps that count with their bytes, also where asking for their paste fails', async () => {
  const asked: unknown[] = [];
  const run = async (name: string, params: { limit?: number }, bytes: number) => {
    asked.push([name, bytes]);
    if (name === 'discardChunks') assert.equal(bytes, params.limit! * CHUNK_BYTES);
    return true;
  };
  let isAdopted = (): boolean => false;
  const { contents } = createContentStore({ isAdopted: () => isAdopted() } as never, { run } as never, () => {});
  const discarded = async () => {
    asked.length = 0;
    const upload = contents.upload('a');
    await upload.write(patternedBytes(10));
    await upload.discard();
    return asked.map((call) => String(call));
  };
  const both = ['writeChunk,10', `discardChunks,${8 * CHUNK_BYTES}`];
  assert.deepEqual(await discarded(), both);
  isAdopted = () => {
    throw new Error('the disk fails');
  };
  assert.deepEqual(await discarded(), both);
  isAdopted = () => true;
  assert.deepEqual(await discarded(), ['writeChunk,10']);
});
