// BodyReader over a stream that is no socket: how much of a body is taken at a time. Over real sockets, and everything
// else about bodies: test/api/http-body.test.ts.

import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { freeBytes } from '../../src/core/content.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { KIB } from '../../src/core/time.ts';
import { BodyReader, NO_BODY, type RequestBody } from '../../src/http/engine/body.ts';
import { jsonBodyOf } from '../../src/http/input.ts';

const PIECE_BYTES = 64 * KIB;

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A chunked body that the test pushes as node's parser would. */
function chunkedBody(wait: () => Promise<void> | undefined = () => undefined) {
  const body = Object.assign(new PassThrough({ highWaterMark: 100 * PIECE_BYTES }), { socket: { bytesRead: 0 } });
  const form = { declaredBytes: undefined, expectsContinue: false };
  const transfers = { minBytesPerSecond: 0, nowMs: () => 0, turns: { wait } };
  const reader = new BodyReader(body as unknown as IncomingMessage, {} as ServerResponse, form, transfers);
  return { body, reader };
}

/** All that the reader gives, and how many bytes each time. */
async function readAll(reader: BodyReader): Promise<{ bytes: Buffer; lengths: readonly number[] }> {
  const taken: Buffer[] = [];
  await reader.pipe((bytes) => void taken.push(Buffer.from(bytes)));
  return { bytes: Buffer.concat(taken), lengths: taken.map(({ length }) => length) };
}

/** Pushes `count` pieces of `bytes` bytes each, and the end. */
function pushPieces(body: PassThrough, count: number, bytes: number): void {
  for (let piece = 0; piece < count; piece += 1) body.push(Buffer.alloc(bytes, piece));
  body.push(null);
}

const isFragmented = (error: unknown): boolean => error instanceof Refusal && error.refusal === 'bodyFragmented';

test('pipe: after each 256 KiB it asks for a turn, and takes no more before it has one', async () => {
  const asked: (() => void)[] = [];
  const { body, reader } = chunkedBody(() => new Promise((resolve) => asked.push(resolve)));
  for (let piece = 0; piece < 10; piece += 1) body.write(Buffer.alloc(PIECE_BYTES));
  body.end();
  let taken = 0;
  let isThrough = false;
  const piped = reader.pipe((bytes) => {
    taken += bytes.length / PIECE_BYTES;
    // As an upload does. Bytes that are freed have no length any more.
    freeBytes(bytes);
  }).then(() => (isThrough = true));
  for (const expected of [4, 8, 10]) {
    await nextTurn();
    await nextTurn();
    assert.equal(taken, expected);
    assert.equal(isThrough, expected === 10);
    asked.shift()?.();
  }
  await piped;
  assert.equal(asked.length, 0);
});

test('pipe: at most once, whether the first has ended or not', async () => {
  const { body, reader } = chunkedBody();
  const first = reader.pipe(() => {});
  await assert.rejects(reader.pipe(() => {}), { message: 'a request body is piped at most once' });
  body.end();
  await first;
  await assert.rejects(reader.pipe(() => {}), { message: 'a request body is piped at most once' });
});

test('pipe: small pieces come joined, in order, whether they arrive before it or after', async () => {
  for (const isEarly of [true, false]) {
    const { body, reader } = chunkedBody();
    const pieces = Array.from({ length: 4000 }, (_, index) => Buffer.alloc(1 + index % 5, index));
    if (isEarly) for (const piece of pieces) body.push(piece);
    const reading = readAll(reader);
    if (!isEarly) for (const piece of pieces) body.push(piece);
    await nextTurn();
    const large = Buffer.alloc(2000, 'x');
    for (const piece of [Buffer.from('a'), Buffer.from('b'), large, Buffer.from('c'), null]) body.push(piece);
    const { bytes, lengths } = await reading;
    assert.ok(bytes.equals(Buffer.concat([...pieces, Buffer.from('ab'), large, Buffer.from('c')])));
    assert.deepEqual(lengths, [1, 11_999, 2, 2000, 1]);
  }
});

test('pipe: of small pieces no more than 64 KiB are joined', async () => {
  const { body, reader } = chunkedBody();
  pushPieces(body, 300, 1000);
  const { bytes, lengths } = await readAll(reader);
  assert.equal(bytes.length, 300_000);
  assert.deepEqual(lengths, [1000, 65_000, 65_000, 65_000, 65_000, 39_000]);
});

test('pipe: a small piece uses up as much of the turn as a KiB', async () => {
  let turns = 0;
  const { body, reader } = chunkedBody(() => {
    turns += 1;
    return nextTurn();
  });
  const reading = readAll(reader);
  pushPieces(body, 2000, 1);
  await reading;
  assert.equal(turns, Math.floor(2000 / 256));
});

test('a body that is not read yet: node is asked to stop when pieces are worth a turn', () => {
  const { body } = chunkedBody();
  const goesOn = Array.from({ length: 300 }, () => body.push(Buffer.from('x')));
  assert.deepEqual(goesOn, goesOn.map((_, index) => index < 257));
});

test('pipe: 4096 pieces, and one for each 16 bytes, are taken, and no more', async () => {
  for (const [bytes, most] of [[1, 4369], [8, 8192], [15, 65_536]] as const) {
    const fitting = chunkedBody();
    pushPieces(fitting.body, most, bytes);
    assert.equal((await readAll(fitting.reader)).bytes.length, most * bytes);
    const { body, reader } = chunkedBody();
    const reading = readAll(reader);
    pushPieces(body, most + 1, bytes);
    await assert.rejects(reading, isFragmented);
    assert.equal(reader.isUnfinished, true, 'although all of it has come');
    assert.equal(body.push(Buffer.from('x')), false, 'what comes after is not kept');
  }
  const lines = chunkedBody();
  pushPieces(lines.body, 200_000, 16);
  assert.equal((await readAll(lines.reader)).bytes.length, 3_200_000, 'lines of 16 bytes go on for ever');
});

test('check: 16 bytes of framing a piece are free, and 64 KiB for what is still to be parsed', async () => {
  const { body, reader } = chunkedBody();
  const reading = readAll(reader);
  for (let piece = 0; piece < 100; piece += 1) body.push(Buffer.alloc(2000));
  // 4096 + 12500 pieces are allowed, and 100 have come.
  const most = 200_000 + 65_536 + 100 * 16 + (4096 + 12_500 - 100) * 16;
  body.socket.bytesRead = most;
  reader.check(0);
  assert.equal(await Promise.race([reading, nextTurn()]), undefined, 'it goes on');
  body.push(Buffer.alloc(2000));
  body.socket.bytesRead = most + 2000 + 16 + (125 - 1) * 16 + 1;
  reader.check(0);
  await assert.rejects(reading, isFragmented);
});

test('jsonBodyOf: of many pieces none is kept', async () => {
  const text = JSON.stringify({ common_name: 'caf\u00e9', csr: 'x'.repeat(30_000) });
  const pipe: RequestBody['pipe'] = async (sink) => {
    for (const [index, byte] of Buffer.from(text).entries()) {
      const piece = Uint8Array.of(byte);
      await sink(piece);
      if (index > 0) piece.fill(0);
    }
  };
  assert.deepEqual(await jsonBodyOf({ body: { ...NO_BODY, declaredBytes: undefined, pipe } }), JSON.parse(text));
});
