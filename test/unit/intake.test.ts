// pastes/intake.ts over a storage whose writes the test completes: how much is in flight, what is let go of, and that
// the bytes are the same however they arrive. Over real sockets and a real store: test/api/create-paste.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ANONYMOUS } from '../../src/core/callers.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { Intake, type Offer } from '../../src/pastes/intake.ts';
import type { ContentStore } from '../../src/store/content.ts';
import type { Store } from '../../src/store/open.ts';
import { type ChangedContent, CHUNK_BYTES, INLINE_BYTES } from '../../src/store/store.ts';
import { createChunkBuffers } from '../../src/store/writer.ts';
import { createSeeded, cutAtRandom } from '../support/seeded.ts';
import { testConfig } from '../support/test-config.ts';

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
    upload: (contentId: string) => ({
      contentId,
      write: (chunk: Uint8Array) => new Promise<void>((resolve) => {
        written.push(Buffer.from(chunk));
        waiting.push(() => {
          held.taken -= 1;
          resolve();
        });
        held.mostWaiting = Math.max(held.mostWaiting, waiting.length);
      }),
      keep: () => {},
      discard: async () => void (held.discarded += 1),
    }),
  } as unknown as ContentStore;
  return { contents, waiting, written, held };
}

interface ReceiveOptions {
  readonly isJson?: boolean;
  readonly maxBytes?: number;
  readonly isKept?: boolean;
  /** Called for each piece with whether the source has to wait before the next. */
  readonly onTaken?: (pauses: boolean) => void;
}

/** The parts of an intake that accepts any content that is not too large. */
function partsOver(contents: ContentStore, maxBytes: number) {
  const config = testConfig({ maxAnonBytes: maxBytes, maxStorageBytes: 0, minBytes: 0, minEntropyBits: 0 });
  return { config, store: { contents, hasRoomFor: () => true } as unknown as Store, random: createSeeded(1).bytes };
}

function offerOf(source: Offer['source'], isJson: boolean): Offer {
  const raw = { contentType: undefined, declaredBytes: undefined, password: undefined, requestedTtlSeconds: undefined };
  return { caller: ANONYMOUS, callerNow: () => ANONYMOUS, clientAddress: '192.0.2.1', source, isJson, ...raw };
}

/** Receives the pieces, and lets a waiting write through in each turn of the event loop. */
async function receive(
  store: ReturnType<typeof slowStore>,
  pieces: readonly Uint8Array[],
  options: ReceiveOptions = {},
): Promise<ChangedContent> {
  const { isJson = false, maxBytes = 10 * CHUNK_BYTES, isKept = true } = options;
  const source: Offer['source'] = async (sink) => {
    for (const piece of pieces) {
      const pause = sink(piece);
      options.onTaken?.(pause !== undefined);
      await pause;
    }
  };
  let isThrough = false;
  const storing = async (): Promise<ChangedContent> => {
    await using intake = new Intake(partsOver(store.contents, maxBytes), offerOf(source, isJson));
    const content = await intake.receive();
    if (isKept) intake.keep();
    return content;
  };
  const received = storing().finally(() => {
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

test('receive: the bytes are the same in memory and in chunks, however they are cut', async () => {
  const sizes = [1, 65_535, 65_536, 65_537, 262_143, 262_144, 262_145, 3 * 262_144];
  for (const size of sizes) {
    for (const longest of [size, 100_000]) {
      const store = slowStore();
      const whole = bytesOf(size);
      const copy = Buffer.from(whole);
      // The intake frees a piece that it has copied, so each piece has a buffer of its own.
      const pieces = cutAtRandom(whole, createSeeded(1), Math.max(1, longest)).map((piece) => Uint8Array.from(piece));
      const { content, contentId, ...facts } = await receive(store, pieces);
      assert.equal(facts.size, size);
      assert.equal(content === null, size > 65_536, `${size} bytes`);
      assert.equal(contentId === null, content !== null);
      assert.ok(copy.equals(content ?? Buffer.concat(store.written)), `${size} bytes`);
      const full = store.written.slice(0, -1);
      assert.ok(full.every((chunk) => chunk.length === 262_144));
      assert.deepEqual([store.held.taken, store.held.discarded], [0, 0]);
    }
  }
});

test('receive: what arrived before the first chunk is in it, one piece as well as several', async () => {
  for (const sizes of [[10, INLINE_BYTES], [10, 20, INLINE_BYTES], [10, 20, INLINE_BYTES, 30], [INLINE_BYTES, 1, 1]]) {
    const pieces = sizes.map((size) => bytesOf(size));
    const whole = Buffer.concat(pieces);
    const store = slowStore();
    await receive(store, pieces);
    assert.ok(whole.equals(Buffer.concat(store.written)), sizes.join(' + '));
  }
});

test('receive: small content of one piece is that piece, and of several a copy of them all', async () => {
  const piece = bytesOf(10);
  assert.equal((await receive(slowStore(), [piece])).content, piece);
  const { content } = await receive(slowStore(), [piece, bytesOf(20), bytesOf(30)]);
  assert.deepEqual(content, Uint8Array.from(Buffer.concat([piece, bytesOf(20), bytesOf(30)])));
  assert.deepEqual((await receive(slowStore(), [piece, bytesOf(5)])).content?.length, 15);
});

test('receive: the memory of a piece that was copied is given up, unless something else is in it', async () => {
  const whole = Uint8Array.from(bytesOf(3 * CHUNK_BYTES));
  const own = [INLINE_BYTES + 1, 1000, CHUNK_BYTES, 7].map((size) => Uint8Array.from(bytesOf(size)));
  const shared = [whole.subarray(0, CHUNK_BYTES + 5), whole.subarray(CHUNK_BYTES + 5, CHUNK_BYTES + 9)];
  const sent = Buffer.concat([...own, ...shared]);
  const store = slowStore();
  await receive(store, [...own, ...shared]);
  assert.deepEqual(own.map(({ byteLength }) => byteLength), [0, 0, 0, 0]);
  assert.equal(whole.byteLength, 3 * CHUNK_BYTES);
  assert.ok(sent.equals(Buffer.concat(store.written)));
  const foreign = new Uint8Array(new SharedArrayBuffer(INLINE_BYTES + 1));
  assert.equal((await receive(slowStore(), [foreign])).size, foreign.length);
});

test('receive: a piece makes its source wait when it fills a chunk, and no sooner', async () => {
  const pauses: boolean[] = [];
  const begun = INLINE_BYTES + 1;
  const sizes = [begun, 10, CHUNK_BYTES - begun - 11, 1, CHUNK_BYTES - 1, 1, CHUNK_BYTES];
  await receive(slowStore(), sizes.map((size) => bytesOf(size)), { onTaken: (isPausing) => pauses.push(isPausing) });
  assert.deepEqual(pauses, [false, false, false, true, false, true, true]);
});

test('receive: four chunks are in flight, and none but the one when uploads hold 16', async () => {
  const most = async (others: number, pieces: readonly Uint8Array[]): Promise<number> => {
    const store = slowStore(others);
    await receive(store, pieces);
    assert.equal(store.held.taken, others);
    return store.held.mostWaiting;
  };
  for (const [others, expected] of [[0, 5], [11, 5], [12, 4], [15, 1], [16, 1]] as const) {
    assert.equal(await most(others, [new Uint8Array(8 * CHUNK_BYTES)]), expected);
    assert.equal(await most(others, Array.from({ length: 8 }, () => new Uint8Array(CHUNK_BYTES))), expected);
  }
});

test('receive: too much is refused when it is seen, and no chunk stays behind', async () => {
  const isRefused = (size: number) => (error: unknown): boolean =>
    error instanceof Refusal && error.fields['size'] === size;
  for (const maxBytes of [100, INLINE_BYTES, CHUNK_BYTES + 10]) {
    const fitting = await receive(slowStore(), [bytesOf(maxBytes)], { maxBytes });
    assert.equal(fitting.size, maxBytes);
    const store = slowStore();
    const pieces = [bytesOf(maxBytes - 1), bytesOf(1), bytesOf(1), bytesOf(1)];
    await assert.rejects(receive(store, pieces, { maxBytes }), isRefused(maxBytes + 1));
    assert.deepEqual([store.held.taken, store.held.discarded], [0, maxBytes > INLINE_BYTES ? 1 : 0]);
  }
});

test('receive: a JSON document may have 64 KiB around its content, however that is escaped', async () => {
  const receiveJson = (contentBytes: number, frameBytes: number): ReturnType<typeof receive> => {
    const frame = `{"content":"${'\\u0078'.repeat(contentBytes)}"}`;
    const document = frame.padEnd(frameBytes + '\\u0078'.length * contentBytes);
    return receive(slowStore(), [Buffer.from(document)], { isJson: true, maxBytes: 10 });
  };
  assert.equal((await receiveJson(10, 65_536)).size, 10);
  const isRefused = (name: string) => (error: unknown): boolean => error instanceof Refusal && error.refusal === name;
  await assert.rejects(receiveJson(10, 65_537), isRefused('jsonInvalid'));
  await assert.rejects(receiveJson(11, 100), isRefused('pasteTooLarge'));
});

test('receive: what was written is discarded unless it is kept', async () => {
  const store = slowStore();
  await receive(store, [bytesOf(CHUNK_BYTES + 5)], { isKept: false });
  assert.deepEqual([store.held.taken, store.held.discarded], [0, 1]);
});

test('receive: of many pieces none is kept, raw or as JSON, whatever cuts an escape', async () => {
  const content = 'a\u00e9\n"\ud83d\ude00'.repeat(500);
  const document = `{"x":[1,{"content":0}],"content":"${[...content].map(escaped).join('')}"}`;
  for (const [text, isJson] of [[content, false], [document, true]] as const) {
    const pieces = Array.from(Buffer.from(text), (byte) => Uint8Array.of(byte));
    // The first piece of the content may be kept as it is, so it is not cleared. Those that were decoded are freed.
    const first = isJson ? text.indexOf('"a') + 1 : 0;
    let taken = 0;
    const onTaken = (): void => {
      if (taken !== first && pieces[taken]!.length > 0) pieces[taken]!.fill(0);
      taken += 1;
    };
    const received = await receive(slowStore(), pieces, { isJson, onTaken });
    assert.equal(Buffer.from(received.content!).toString(), content);
  }
});

/** Each code unit as \u with four digits; the letters a to z stay. */
function escaped(character: string): string {
  if (/[a-z]/.test(character)) return character;
  return character.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
}

test('receive: an upload that breaks off gives every buffer back, at whatever moment, and slows down no other', async () => {
  const chunks = createChunkBuffers();
  /** Writes that wait. An upload that was discarded refuses further writes, as one of the store does. */
  const waiting: (() => void)[] = [];
  let mostInFlight = 0;
  const upload = (contentId: string): unknown => {
    let isOver = false;
    return {
      contentId,
      async write(chunk: Uint8Array) {
        if (!isOver) {
          await new Promise<void>((resolve) => waiting.push(resolve));
          mostInFlight = Math.max(mostInFlight, waiting.length + 1);
        }
        chunks.giveBack(chunk);
        if (isOver) throw new Error('the upload has ended');
      },
      keep: () => {},
      discard: async () => {
        isOver = true;
      },
    };
  };
  const contents = { chunks, upload } as unknown as ContentStore;

  /** Like a request's body: when it breaks off it rejects at once, and nobody hears what becomes of its sink's work. */
  const begin = async (pieces: readonly Uint8Array[], breaks: Promise<never>, isJson: boolean): Promise<void> => {
    const pour: Offer['source'] = async (sink) => {
      for (const piece of pieces) await sink(piece);
    };
    const source: Offer['source'] = (sink) => {
      const poured = pour(sink);
      poured.catch(() => {});
      return Promise.race([poured, breaks]);
    };
    await using intake = new Intake(partsOver(contents, 100 * CHUNK_BYTES), offerOf(source, isJson));
    await intake.receive();
  };
  const passTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const text = (size: number): Uint8Array => Buffer.alloc(size, 'x');
  const documents = (sizes: readonly number[]): Uint8Array[] => [Buffer.from('{"content":"'), ...sizes.map(text)];

  const most = 8;
  const length = (most + 5) * CHUNK_BYTES;
  for (const sizes of [[length + 10], [INLINE_BYTES + 1, length], Array<number>(most + 6).fill(CHUNK_BYTES - 10)]) {
    for (const [isJson, pieces] of [[false, () => sizes.map(text)], [true, () => documents(sizes)]] as const) {
      for (let letThrough = 0; letThrough <= most; letThrough += 1) {
        const broken = Promise.withResolvers<never>();
        const received = begin(pieces(), broken.promise, isJson);
        for (let count = 0; count < letThrough; count += 1) {
          await passTurn();
          waiting.shift()?.();
        }
        await passTurn();
        broken.reject(new Error('broken off'));
        const ending = assert.rejects(received, /broken off/);
        for (let turn = 0; turn < 40; turn += 1) {
          await passTurn();
          waiting.shift()?.();
        }
        await ending;
        assert.equal(chunks.taken, 0, `${sizes.length} pieces, JSON ${isJson}, ${letThrough} writes let through`);
      }
    }
  }
  mostInFlight = 0;
  const whole = begin([text(8 * CHUNK_BYTES)], Promise.withResolvers<never>().promise, false);
  let isThrough = false;
  void whole.then(() => (isThrough = true));
  while (!isThrough) {
    await passTurn();
    waiting.shift()?.();
  }
  assert.equal(mostInFlight, 5);
});

test('receive: what a source adds after it has broken off begins nothing, however little came before', async () => {
  for (const isJson of [false, true]) {
    for (const before of [0, 1, INLINE_BYTES, INLINE_BYTES + 1, CHUNK_BYTES]) {
      const store = slowStore();
      const late = Promise.withResolvers<Parameters<Offer['source']>[0]>();
      const source: Offer['source'] = async (sink) => {
        late.resolve(sink);
        if (isJson) await sink(Buffer.from('{"content":"'));
        await sink(Buffer.alloc(before, 'x'));
        throw new Error('broken off');
      };
      const storing = async (): Promise<void> => {
        await using intake = new Intake(partsOver(store.contents, 10 * CHUNK_BYTES), offerOf(source, isJson));
        await intake.receive();
      };
      const ending = assert.rejects(storing(), /broken off/);
      const sink = await late.promise;
      const passTurns = async (): Promise<void> => {
        for (let turn = 0; turn < 10; turn += 1) {
          await new Promise((resolve) => setImmediate(resolve));
          store.waiting.shift()?.();
        }
      };
      await passTurns();
      await ending;
      const { taken, discarded } = store.held;
      await Promise.all([sink(Buffer.alloc(INLINE_BYTES, 'y')), sink(Buffer.alloc(2 * CHUNK_BYTES, 'z')), passTurns()]);
      assert.deepEqual([store.held.taken, store.held.discarded], [taken, discarded], `${before} bytes, JSON ${isJson}`);
      assert.equal(taken, 0);
    }
  }
});
