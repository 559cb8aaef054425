// The lingering close over real sockets, with bounds small enough to reach.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { KIB } from '../../src/core/time.ts';
import { Lingering } from '../../src/http/engine/connections.ts';

const BOUNDS = { maxBytes: 256 * KIB, maxMs: 60_000, maxSockets: 2 };

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  /** What the far side has received when the near side has closed. */
  readonly answer: Promise<string>;
  readonly nearClosed: Promise<unknown>;
}

/** Two ends of a connection; the near end is the server's. */
async function pair(t: TestContext): Promise<Pair> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const far = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true });
  const [near] = await once(server, 'connection') as [Socket];
  t.after(() => {
    far.destroy();
    near.destroy();
    server.close();
  });
  near.on('error', () => {});
  let received = '';
  const answer = new Promise<string>((resolve) => {
    far.on('data', (bytes) => {
      received += bytes.toString();
    });
    far.on('end', () => resolve(received));
    far.on('error', () => resolve(received));
  });
  return { near, far, answer, nearClosed: once(near, 'close') };
}

function answerAndClose(lingering: Lingering, { near }: Pair): void {
  near.write('answer');
  lingering.close(near);
}

test('Lingering: the answer arrives, and the connection closes when the client closes', async (t) => {
  const lingering = new Lingering(BOUNDS);
  const ends = await pair(t);
  ends.far.write('x'.repeat(100 * KIB));
  answerAndClose(lingering, ends);
  assert.equal(await ends.answer, 'answer');
  assert.equal(ends.near.destroyed, false);
  ends.far.end('x'.repeat(100 * KIB));
  await ends.nearClosed;
});

test('Lingering: past the bytes the connection is cut off', async (t) => {
  const lingering = new Lingering(BOUNDS);
  const ends = await pair(t);
  answerAndClose(lingering, ends);
  assert.equal(await ends.answer, 'answer');
  const timer = setInterval(() => ends.far.write('x'.repeat(64 * KIB)), 1);
  await ends.nearClosed;
  clearInterval(timer);
  assert.ok(ends.near.bytesRead > BOUNDS.maxBytes);
});

test('Lingering: past the time the connection is cut off', async (t) => {
  const lingering = new Lingering({ ...BOUNDS, maxMs: 50 });
  const ends = await pair(t);
  answerAndClose(lingering, ends);
  await ends.nearClosed;
  assert.equal(await ends.answer, 'answer');
});

test('Lingering: past the number of sockets they are closed at once, until one of them has closed', async (t) => {
  const lingering = new Lingering(BOUNDS);
  const [first, second, third, fourth] = [await pair(t), await pair(t), await pair(t), await pair(t)];
  for (const ends of [first, second, third]) answerAndClose(lingering, ends);
  await third.nearClosed;
  assert.equal(await third.answer, 'answer', 'closed after its answer all the same');
  assert.deepEqual([first.near.destroyed, second.near.destroyed], [false, false]);
  first.far.end();
  await first.nearClosed;
  answerAndClose(lingering, fourth);
  assert.equal(await fourth.answer, 'answer');
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(fourth.near.destroyed, false);
});

test('Lingering: hurry shortens what lingers already and what comes', async (t) => {
  const lingering = new Lingering({ ...BOUNDS, maxMs: 2 ** 31 - 1 });
  const [before, after] = [await pair(t), await pair(t)];
  answerAndClose(lingering, before);
  lingering.hurry(20);
  await before.nearClosed;
  answerAndClose(lingering, after);
  await after.nearClosed;
});

test('Lingering: closing twice is closing once, and an armed socket lingers', async (t) => {
  const lingering = new Lingering({ ...BOUNDS, maxSockets: 1 });
  const ends = await pair(t);
  lingering.arm(ends.near);
  ends.near.write('answer');
  ends.near.destroySoon();
  lingering.close(ends.near);
  assert.equal(await ends.answer, 'answer');
  assert.equal(ends.near.destroyed, false);
  ends.far.end();
  await ends.nearClosed;
});
