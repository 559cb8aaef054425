// service/intake.ts over a storage whose writes the test completes: how much is in flight, what is let go of, and that
// the bytes are the same however they arrive. Over real sockets and a real store: test/api/create-paste.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createContentScan } from '../../src/core/content.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { SHA256 } from '../../src/crypto/digest.ts';
import { receiveContent, type Intake, type ReceivedContent } from '../../src/service/intake.ts';
import { CHUNK_BYTES, INLINE_BYTES, type ContentStore } from '../../src/store/store.ts';
import { createSeeded, cutAtRandom } from '../support/seeded.ts';

/** A content store whose writes wait until the test lets them through; `others` are chunks that other uploads hold. */
function slowStore(others = 0) {
  const waiting: (() => void)[] = [];
  const written: Buffer[] = [];
  const held = { taken: others, discarded: 0, mostWaiting: 0 };
  const contents = {
    chunks: {
      take: () => {
        held.taken += 1;
        return new Uint8Array(CHUNK_BYTES);
      },
      giveBack: () => void (held.taken -= 1),
      get taken() {
        return held.taken;
      },
    },
    upload: () => ({
      write: (chunk: Uint8Array) => new Promise<void>((resolve) => {
        written.push(Buffer.from(chunk));
        waiting.push(() => {
          held.taken -= 1;
          resolve();
        });
        held.mostWaiting = Math.max(held.mostWaiting, waiting.length);
      }),
      discard: async () => void (held.discarded += 1),
    }),
  } as unknown as ContentStore;
  return { contents, waiting, written, held };
}

/** Receives the pieces; writes are let through whenever nothing else goes on. */
async function receive(
  store: ReturnType<typeof slowStore>,
  pieces: readonly Uint8Array[],
  options: { isJson?: boolean; maxBytes?: number; keep?: () => Promise<void> } = {},
): Promise<ReceivedContent> {
  const { isJson = false, maxBytes = 10 * CHUNK_BYTES, keep = async () => {} } = options;
  const intake: Intake = {
    source: async (sink) => {
      for (const piece of pieces) await sink(piece);
    },
    isJson,
    maxBytes,
    refuseSize: (size) => {
      throw new Refusal('pasteTooLarge', { size, maxSize: maxBytes, authenticated: false });
    },
    scan: createContentScan({ sha256: SHA256, entropy: false }),
    contents: store.contents,
    newContentId: () => 'content',
  };
  let isThrough = false;
  const received = receiveContent(intake, async (content) => {
    await keep();
    return content;
  }).finally(() => {
    isThrough = true;
  });
  received.catch(() => {});
  while (!isThrough) {
    await new Promise((resolve) => setImmediate(resolve));
    store.waiting.shift()?.();
  }
  return received;
}

const bytesOf = (size: number, seed = size): Uint8Array => createSeeded(seed).bytes(size);

test('receiveContent: the bytes are the same in memory and in chunks, however they are cut', async () => {
  const sizes = [
    0, 1, INLINE_BYTES - 1, INLINE_BYTES, INLINE_BYTES + 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1,
    3 * CHUNK_BYTES,
  ];
  for (const size of sizes) {
    for (const longest of [size, 100_000]) {
      const store = slowStore();
      const whole = bytesOf(size);
      const copy = Buffer.from(whole);
      // What has been copied is given up, so each piece has a buffer of its own.
      const pieces = cutAtRandom(whole, createSeeded(1), Math.max(1, longest)).map((piece) => Uint8Array.from(piece));
      const { content, contentId, bytes } = await receive(store, pieces);
      assert.equal(bytes, size);
      assert.equal(content === null, size > INLINE_BYTES, `${size} bytes`);
      assert.equal(contentId, content === null ? 'content' : null);
      assert.ok(copy.equals(content ?? Buffer.concat(store.written)), `${size} bytes`);
      const full = store.written.slice(0, -1);
      assert.ok(full.every((chunk) => chunk.length === CHUNK_BYTES));
      assert.deepEqual([store.held.taken, store.held.discarded], [0, 0]);
    }
  }
});

test('receiveContent: two chunks are in flight, and none but the one when uploads hold 32', async () => {
  const most = async (others: number): Promise<number> => {
    const store = slowStore(others);
    await receive(store, [bytesOf(8 * CHUNK_BYTES)]);
    assert.equal(store.held.taken, others);
    return store.held.mostWaiting;
  };
  assert.equal(await most(0), 3);
  assert.equal(await most(28), 3);
  assert.equal(await most(31), 1);
  assert.equal(await most(32), 1);
});

test('receiveContent: too much is refused when it is seen, and no chunk stays behind', async () => {
  const isRefused = (size: number) => (error: unknown): boolean =>
    error instanceof Refusal && error.fields['size'] === size;
  for (const maxBytes of [100, INLINE_BYTES, CHUNK_BYTES + 10]) {
    const fitting = await receive(slowStore(), [bytesOf(maxBytes)], { maxBytes });
    assert.equal(fitting.bytes, maxBytes);
    const store = slowStore();
    const pieces = [bytesOf(maxBytes - 1), bytesOf(1), bytesOf(1), bytesOf(1)];
    await assert.rejects(receive(store, pieces, { maxBytes }), isRefused(maxBytes + 1));
    assert.deepEqual([store.held.taken, store.held.discarded], [0, maxBytes > INLINE_BYTES ? 1 : 0]);
  }
});

test('receiveContent: a JSON document may be six times its content and 64 KiB', async () => {
  const maxBytes = 10;
  const most = maxBytes * 6 + 65_536;
  const document = (size: number): Uint8Array => Buffer.from('{"content":"x"}'.padEnd(size));
  assert.equal((await receive(slowStore(), [document(most)], { isJson: true, maxBytes })).bytes, 1);
  const isRefused = (error: unknown): boolean => error instanceof Refusal && error.fields['size'] === most + 1;
  await assert.rejects(receive(slowStore(), [document(most + 1)], { isJson: true, maxBytes }), isRefused);
});

test('receiveContent: when keeping fails, what was written is discarded', async () => {
  const store = slowStore();
  const keep = (): Promise<void> => Promise.reject(new Error('not kept'));
  await assert.rejects(receive(store, [bytesOf(CHUNK_BYTES + 5)], { keep }), /not kept/);
  assert.deepEqual([store.held.taken, store.held.discarded], [0, 1]);
});
