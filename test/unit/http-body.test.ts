// BodyReader over a stream that is no socket: how much of a body is taken at a time. Over real sockets, and everything
// else about bodies: test/api/http-body.test.ts.

import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { freeBytes } from '../../src/core/bytes.ts';
import { KIB } from '../../src/core/time.ts';
import { BodyReader } from '../../src/http/body.ts';

const PIECE_BYTES = 64 * KIB;

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('pipe: after each 256 KiB it asks for a turn, and takes no more before it has one', async () => {
  const asked: (() => void)[] = [];
  const wait = (): Promise<void> => new Promise((resolve) => asked.push(resolve));
  const turns = { wait, areAwaited: () => false };
  const body = new PassThrough({ highWaterMark: 100 * PIECE_BYTES });
  const reader = new BodyReader({
    req: body as unknown as IncomingMessage,
    res: {} as ServerResponse,
    declaredBytes: undefined,
    expectsContinue: false,
    transfers: { minBytesPerSecond: 0, nowMs: () => 0, active: new Set(), turns },
  });
  for (let piece = 0; piece < 10; piece += 1) body.write(Buffer.alloc(PIECE_BYTES));
  body.end();
  let taken = 0;
  let isThrough = false;
  const piped = reader.pipe((bytes) => {
    taken += bytes.length / PIECE_BYTES;
    // As an upload does; their length is gone then, too.
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
