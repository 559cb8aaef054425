// How answers reach clients: streamed and large bodies, clients that read slowly or not at all, clients that go away,
// and sources that fail. Whatever happens, a streamed body is closed exactly once.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { SETTINGS } from '../../src/config/settings.ts';
import { KIB, MIB } from '../../src/core/time.ts';
import { type Handler, StreamedBody } from '../../src/http/engine/reply.ts';
import { StoreError } from '../../src/store/store.ts';
import { assertContract, assertRefused } from '../support/answer-contract.ts';
import { startHttp } from '../support/http-server.ts';
import { head, openRaw } from '../support/raw-http.ts';
import { stalled } from '../support/stalled.ts';

const CHUNK_BYTES = 256 * KIB;

interface Source {
  readonly handler: Handler;
  /** Resolves when the body has been closed; a second time fails the test. */
  readonly closed: Promise<void>;
  /** Bytes that have been asked for. */
  given(): number;
}

/** How a source breaks its word. */
interface Breach {
  readonly failure?: Error;
  readonly breaksAt?: number;
  readonly actualBytes?: number;
}

/** A streamed body that claims to have that many bytes. */
function source(t: TestContext, bytes: number, options: Breach = {}): Source {
  const { failure, breaksAt = 0, actualBytes = bytes } = options;
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  let given = 0;
  let closings = 0;
  t.after(() => assert.equal(closings, 1, 'closed exactly once'));
  async function* chunks(): AsyncGenerator<Uint8Array> {
    while (given < actualBytes) {
      if (failure !== undefined && given >= breaksAt) throw failure;
      const size = Math.min(CHUNK_BYTES, actualBytes - given);
      const chunk = Buffer.alloc(size, given / CHUNK_BYTES);
      given += size;
      yield chunk;
    }
  }
  const close = (): void => {
    closings += 1;
    resolve();
  };
  return {
    handler: () => ({ status: 200, headers: {}, body: new StreamedBody(bytes, chunks, close) }),
    closed,
    given: () => given,
  };
}

test('a body at hand: every byte arrives, as text or as bytes, around the size that goes out with the head', async (t) => {
  const every = Buffer.from(Array.from({ length: 256 }, (_, value) => value));
  const bodies: readonly (string | Uint8Array)[] = [
    '', 'plain', 'h\u00e9llo \u2713 \u{1f600}', '\u00ff'.repeat(5000), every.subarray(7, 200), new Uint8Array(every),
    ...[8 * KIB - 1, 8 * KIB, 8 * KIB + 1].map((size) => Buffer.alloc(size, every)),
  ];
  for (const body of bodies) {
    const { port } = await startHttp(t, { handlers: { raw: () => ({ status: 200, headers: {}, body }) } });
    const connection = await openRaw(t, port);
    connection.send(head('GET /abcdef/raw HTTP/1.1'));
    const answer = await connection.next();
    assertContract(answer);
    assert.deepEqual(Buffer.from(answer.body), Buffer.from(body as string));
  }
});

test('a streamed body: every byte in order, closed at its end, the connection is used again', async (t) => {
  const sizes = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 5 * MIB];
  for (const size of sizes) {
    const { handler, closed } = source(t, size);
    const { port } = await startHttp(t, { handlers: { raw: handler } });
    const connection = await openRaw(t, port);
    connection.send(head('GET /abcdef/raw HTTP/1.1'));
    const answer = await connection.next();
    assertContract(answer);
    assert.equal(answer.body.length, size);
    for (let start = 0; start < size; start += CHUNK_BYTES) assert.equal(answer.body[start], start / CHUNK_BYTES);
    await closed;
    connection.send(head('GET / HTTP/1.1'));
    assert.equal((await connection.next()).status, 200);
  }
});

test('a streamed body whose pieces take each other\'s place: each is sent before the next is asked for', async (t) => {
  // A piece is too short for the socket to say "enough": only the end of its sending tells that it may be overwritten.
  const [pieces, pieceBytes] = [400, 60 * KIB];
  let given = 0;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    const piece = Buffer.alloc(pieceBytes);
    for (; given < pieces; given += 1) yield piece.fill(given % 251);
  }
  const body = new StreamedBody(pieces * pieceBytes, chunks);
  const { port } = await startHttp(t, { handlers: { raw: () => ({ status: 200, headers: {}, body }) } });
  const connection = await openRaw(t, port);
  connection.socket.pause();
  connection.send(head('GET /abcdef/raw HTTP/1.1'));
  await stalled(() => given);
  assert.ok(given < pieces);
  connection.socket.resume();
  const answer = await connection.next();
  for (let piece = 0; piece < pieces; piece += 1) {
    const received = answer.body.subarray(piece * pieceBytes, (piece + 1) * pieceBytes);
    assert.ok(received.every((value) => value === piece % 251), `piece ${piece}`);
  }
});

test('a large body that is no stream: whole, as bytes and as text', async (t) => {
  for (const size of [64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 3 * MIB]) {
    for (const body of ['é'.repeat(size / 2), Buffer.alloc(size, 7)]) {
      const { port } = await startHttp(t, { handlers: { raw: () => ({ status: 200, headers: {}, body }) } });
      const connection = await openRaw(t, port);
      connection.send(head('GET /abcdef/raw HTTP/1.1') + head('GET / HTTP/1.1'));
      assert.ok((await connection.next()).body.equals(Buffer.from(body)));
      assert.equal((await connection.next()).body.toString(), 'index\n');
    }
  }
});

test('large answers at once: a quarter of a MiB of them in one turn of the event loop', async (t) => {
  let given = 0;
  let most = 0;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let left = 32; left > 0; left -= 1) {
      given += 64 * KIB;
      yield Buffer.alloc(64 * KIB);
    }
  }
  const handlers = { raw: () => ({ status: 200, headers: {}, body: new StreamedBody(2 * MIB, chunks) }) };
  const { port } = await startHttp(t, { handlers });
  const readers = await Promise.all(Array.from({ length: 24 }, () => openRaw(t, port)));
  let isOver = false;
  function watch(before: number): void {
    most = Math.max(most, given - before);
    if (!isOver) setImmediate(watch, given);
  }
  watch(0);
  for (const { send } of readers) send(head('GET /abcdef/raw HTTP/1.1'));
  for (const { next } of readers) assert.equal((await next()).body.length, 2 * MIB);
  isOver = true;
  assert.ok(most <= 256 * KIB, `${most} bytes were asked for in one turn`);
});

test('a streamed body with more behind it: both are answered, whatever it is', async (t) => {
  const followers = [
    [head('GET / HTTP/1.1'), 200],
    [head('CONNECT paste.test:443 HTTP/1.1'), 405],
    ['nonsense\r\n\r\n', 400],
  ] as const;
  for (const [follower, status] of followers) {
    const { handler } = source(t, 5 * MIB);
    const { port } = await startHttp(t, { handlers: { raw: handler } });
    const connection = await openRaw(t, port);
    connection.send(head('GET /abcdef/raw HTTP/1.1') + follower);
    assert.equal((await connection.next()).body.length, 5 * MIB);
    assert.equal((await connection.next()).status, status);
  }
});

test('a client that does not read: the source is not read ahead of it', async (t) => {
  const { handler, closed, given } = source(t, 200 * MIB);
  const { port, answered } = await startHttp(t, { handlers: { raw: handler } });
  const connection = await openRaw(t, port);
  connection.socket.pause();
  connection.send(head('GET /abcdef/raw HTTP/1.1'));
  await stalled(given);
  assert.ok(given() < 20 * MIB, `${given()} bytes were taken from the source`);
  connection.socket.resetAndDestroy();
  await closed;
  const entry = await answered((details) => details['route'] === '/{id}/raw');
  assert.equal(entry.details?.['status'], 200);
  assert.ok(Number(entry.details?.['bytes']) < 20 * MIB);
});

test('a streamed body: no piece is more than a client at the slowest rate takes in the 10 s that it has', async (t) => {
  const { handler, closed } = source(t, 5 * MIB);
  const written: number[] = [];
  const raw: Handler = (request) => {
    const { socket } = request.connection;
    const write = socket.write.bind(socket) as (bytes: Uint8Array | string, ...others: unknown[]) => boolean;
    socket.write = (bytes: Uint8Array | string, ...others: unknown[]) => {
      written.push(bytes.length);
      return write(bytes, ...others);
    };
    return handler(request);
  };
  const { port } = await startHttp(t, { handlers: { raw } });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef/raw HTTP/1.1'));
  assert.equal((await connection.next()).body.length, 5 * MIB);
  await closed;
  assert.ok(written.length >= 20, 'the pieces are seen');
  assert.ok(Math.max(...written) < 10 * SETTINGS.minTransferRate.fallback);
});

test('a client that does not read: cut off after 10 s, not before', async (t) => {
  const { handler, closed, given } = source(t, 200 * MIB);
  const config = { minTransferRate: 100 * MIB };
  const { port, clock, checked } = await startHttp(t, { config, handlers: { raw: handler } });
  const connection = await openRaw(t, port);
  connection.socket.pause();
  connection.send(head('GET /abcdef/raw HTTP/1.1'));
  await stalled(given);
  await checked();
  clock.advance(9_900);
  await checked();
  assert.equal(await isOpen(closed), true);
  clock.advance(200);
  await closed;
  connection.socket.resume();
  // Without the reset the kernel would keep for the client what it has not taken.
  await assert.rejects(once(connection.socket, 'end'), { code: 'ECONNRESET' });
});

test('a client that reads slowly but well enough: served to the end', async (t) => {
  const bytes = 24 * MIB;
  const { handler, closed } = source(t, bytes);
  const { port, clock, checked } = await startHttp(t, { config: { minTransferRate: MIB }, handlers: { raw: handler } });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef/raw HTTP/1.1'));
  // 18 s in all: longer than a client that takes nothing is given.
  for (let round = 0; round < 3; round += 1) {
    const until = connection.socket.bytesRead + 7 * MIB;
    while (connection.socket.bytesRead < until) await once(connection.socket, 'data');
    connection.socket.pause();
    clock.advance(6_000);
    await checked();
    connection.socket.resume();
  }
  assert.equal((await connection.next()).body.length, bytes);
  await closed;
});

test('a client that was waited for: time without an answer on its way is none of what it has for the next', async (t) => {
  const bytes = 24 * MIB;
  let given = 0;
  function* chunks(): Generator<Uint8Array> {
    for (let left = bytes; left > 0; left -= CHUNK_BYTES) {
      given += CHUNK_BYTES;
      yield Buffer.alloc(CHUNK_BYTES);
    }
  }
  const handlers = { raw: () => ({ status: 200, headers: {}, body: new StreamedBody(bytes, chunks) }) };
  const { port, clock, checked } = await startHttp(t, { config: { minTransferRate: 100 * MIB }, handlers });
  const connection = await openRaw(t, port);
  for (let round = 0; round < 2; round += 1) {
    connection.socket.pause();
    connection.send(head('GET /abcdef/raw HTTP/1.1'));
    await stalled(() => given);
    await checked();
    connection.socket.resume();
    assert.equal((await connection.next()).body.length, bytes);
    await checked();
    clock.advance(20_000);
    await checked();
  }
});

test('a client that goes away in mid-answer: the source is closed, and it is no failure of the server', async (t) => {
  const { handler, closed } = source(t, 200 * MIB);
  const { port, logged, answered } = await startHttp(t, { handlers: { raw: handler } });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef/raw HTTP/1.1'));
  await once(connection.socket, 'data');
  connection.socket.resetAndDestroy();
  await closed;
  await answered((details) => details['route'] === '/{id}/raw');
  assert.deepEqual(logged.filter(({ event }) => event !== 'request'), []);
});

test('a client that goes away while the source is at its end: it is no failure, however much there was', async (t) => {
  const [waiting, gate, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield Buffer.alloc(10);
    waiting.resolve();
    await gate.promise;
  }
  const handler: Handler = () => ({ status: 200, headers: {}, body: new StreamedBody(20, chunks, closed.resolve) });
  const { port, logged, answered } = await startHttp(t, { handlers: { raw: handler } });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef/raw HTTP/1.1'));
  await waiting.promise;
  connection.socket.destroy();
  await answered(() => true);
  // The source ends before its 20 bytes, as content does whose paste is gone.
  gate.resolve();
  await closed.promise;
  // Whatever follows from that follows in the same turn of the event loop.
  await new Promise(setImmediate);
  assert.deepEqual(logged.map(({ event }) => event), ['request']);
});

test('a client that goes away before the reply: the body is closed unread', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { handler, closed, given } = source(t, MIB);
  const { port, answered } = await startHttp(t, {
    handlers: {
      raw: async (request) => {
        await gate.promise;
        return handler(request);
      },
    },
  });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef/raw HTTP/1.1'));
  const other = await openRaw(t, port);
  other.send(head('GET / HTTP/1.1'));
  await other.next();
  connection.socket.resetAndDestroy();
  await answered((details) => details['status'] === 499);
  gate.resolve();
  await closed;
  assert.equal(given(), 0);
});

test('a pipelined request whose connection goes away: it is never begun', async (t) => {
  const { handler, closed } = source(t, 200 * MIB);
  let views = 0;
  const { port, answered } = await startHttp(t, {
    handlers: {
      raw: handler,
      view: () => {
        views += 1;
        return { status: 200, headers: {}, body: '' };
      },
    },
  });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef/raw HTTP/1.1') + head('GET /view HTTP/1.1'));
  await once(connection.socket, 'data');
  connection.socket.resetAndDestroy();
  await closed;
  await answered((details) => details['status'] === 499);
  assert.equal(views, 0);
});

test('a source that fails before its first bytes: an error like any other', async (t) => {
  const { handler, closed } = source(t, MIB, { failure: new StoreError('unavailable', 'disk I/O error') });
  const { port } = await startHttp(t, { handlers: { raw: handler } });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef/raw HTTP/1.1') + head('GET / HTTP/1.1'));
  assertRefused(await connection.next(), 503, 'storage unavailable');
  assert.equal((await connection.next()).body.toString(), 'index\n');
  await closed;
});

test('a source that fails later, or breaks its word: the answer is broken off, and logged', async (t) => {
  const cases = [
    { failure: new Error('disk I/O error'), breaksAt: CHUNK_BYTES, says: /disk I\/O error/ },
    { actualBytes: MIB - 1, says: /ended after 1048575 of 1048576 bytes/ },
    { actualBytes: MIB + 1, says: /more than the 1048576 bytes/ },
  ];
  for (const { says, ...options } of cases) {
    const { handler, closed } = source(t, MIB, options);
    const { port, logged } = await startHttp(t, { handlers: { raw: handler } });
    const connection = await openRaw(t, port);
    connection.send(head('GET /abcdef/raw HTTP/1.1') + head('GET / HTTP/1.1'));
    const received = await connection.rest();
    assert.ok(received.length < MIB + 2 * KIB, 'never more than one answer');
    await closed;
    const failure = logged.find(({ event }) => event === 'request failed');
    assert.match(String(failure?.details?.['error']), says);
  }
});

async function isOpen(closed: Promise<void>): Promise<boolean> {
  return Promise.race([closed.then(() => false), new Promise<boolean>((resolve) => setImmediate(() => resolve(true)))]);
}
