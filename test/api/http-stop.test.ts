// Starting and stopping the HTTP server: what is in flight is finished within the grace, everything else is closed
// soon, and nothing hangs.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { KIB, MIB } from '../../src/core/time.ts';
import { newUuid, randomBytes } from '../../src/crypto/digest.ts';
import { emptyReply, type Handler } from '../../src/http/engine/reply.ts';
import { Forwarding } from '../../src/http/forwarded.ts';
import { createHttpServer } from '../../src/http/servers.ts';
import { assertContract, assertRefused } from '../support/answer-contract.ts';
import { movableClock } from '../support/clock.ts';
import { startHttp } from '../support/http-server.ts';
import { head, openRaw } from '../support/raw-http.ts';
import { stalled } from '../support/stalled.ts';
import { testConfig } from '../support/test-config.ts';

/** Fails when the promise takes longer. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function gated(): { handler: Handler; begun: Promise<void>; proceed: () => void } {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const handler: Handler = async () => {
    begun.resolve();
    await gate.promise;
    return emptyReply(204);
  };
  return { handler, begun: begun.promise, proceed: gate.resolve };
}

async function connectionRefused(t: TestContext, port: number): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' });
  t.after(() => socket.destroy());
  const [error] = await once(socket, 'error') as [NodeJS.ErrnoException];
  assert.equal(error.code, 'ECONNREFUSED');
}

test('stop: with nothing in flight it ends within a second, idle and unused connections included', async (t) => {
  const { server, port } = await startHttp(t, { config: { shutdownGraceSeconds: 10 } });
  const idle = await openRaw(t, port);
  idle.send(head('GET / HTTP/1.1'));
  await idle.next();
  const unused = await openRaw(t, port);
  await within(1000, server.stop());
  assert.equal(await idle.rest(), '');
  assert.equal(await unused.rest(), '');
  await connectionRefused(t, port);
});

test('stop: what is in flight is finished, with Connection: close, and no connection is taken meanwhile', async (t) => {
  const { handler, begun, proceed } = gated();
  const { server, port } = await startHttp(t, { config: { shutdownGraceSeconds: 10 }, handlers: { paste: handler } });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef HTTP/1.1'));
  await begun;
  assert.equal(server.isStopping(), false);
  const stopped = server.stop();
  assert.equal(server.isStopping(), true);
  assert.equal(server.stop(), stopped, 'the same promise again');
  await connectionRefused(t, port);
  proceed();
  const answer = await connection.next();
  assert.equal(answer.status, 204);
  assertContract(answer);
  assert.equal(answer.header('connection'), 'close');
  assert.equal(await connection.rest(), '');
  await within(1000, stopped);
});

test('stop: a request that had arrived is answered', async (t) => {
  const { server, port } = await startHttp(t, { config: { shutdownGraceSeconds: 10 } });
  const connection = await openRaw(t, port);
  connection.send(head('GET / HTTP/1.1'));
  await connection.next();
  connection.send(head('GET /view HTTP/1.1'));
  // The bytes are in the server's kernel when this side's write has been done.
  await new Promise<void>((resolve) => connection.socket.write('', () => resolve()));
  const stopped = server.stop();
  const answer = await connection.next();
  assert.equal(answer.status, 200);
  assert.equal(answer.header('connection'), 'close');
  await within(1000, stopped);
});

test('stop: requests behind the one in flight are not processed', async (t) => {
  const { handler, begun, proceed } = gated();
  const config = { shutdownGraceSeconds: 10 };
  const { server, port, logged } = await startHttp(t, { config, handlers: { paste: handler } });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef HTTP/1.1') + head('GET /view HTTP/1.1'));
  await begun;
  const stopped = server.stop();
  proceed();
  assert.equal((await connection.next()).status, 204);
  assert.equal(await connection.rest(), '');
  await within(1000, stopped);
  assert.deepEqual(logged.map(({ details }) => details?.['status']), [204, 499]);
});

test('stop: an upload in flight is taken to its end', async (t) => {
  const { server, port } = await startHttp(t, { config: { shutdownGraceSeconds: 10 } });
  const connection = await openRaw(t, port);
  connection.send(`${head('POST / HTTP/1.1', 'Expect: 100-continue', 'Content-Length: 6')}abc`);
  assert.equal((await connection.next()).status, 100);
  const stopped = server.stop();
  connection.send('def');
  const answer = await connection.next();
  assert.equal(answer.json()['bytes'], 6);
  assert.equal(answer.header('connection'), 'close');
  await within(1000, stopped);
});

test('stop: a download in flight is sent to its end', async (t) => {
  const body = Buffer.alloc(16 * MIB, 'x');
  const { server, port } = await startHttp(t, {
    config: { shutdownGraceSeconds: 10 },
    handlers: { raw: () => ({ status: 200, headers: {}, body }) },
  });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef/raw HTTP/1.1'));
  await once(connection.socket, 'data');
  const stopped = server.stop();
  assert.equal((await connection.next()).body.length, body.length);
  await within(1000, stopped);
});

test('stop: an answer that a slow client has not taken yet is sent to its end', async (t) => {
  const body = Buffer.alloc(120 * KIB, 'x');
  const { server, port, logged } = await startHttp(t, {
    config: { shutdownGraceSeconds: 10 },
    handlers: { raw: () => ({ status: 200, headers: {}, body }) },
  });
  const connection = await openRaw(t, port);
  // More than the kernel holds, so that a part of one of these answers waits in the server.
  const asked = 99;
  connection.socket.pause();
  connection.send(head('GET /abcdef/raw HTTP/1.1').repeat(asked));
  await stalled(() => logged.length);
  const stopped = server.stop();
  // As long as idle connections are given at most.
  await delay(1000);
  connection.socket.resume();
  for (let taken = 1; ; taken += 1) {
    assert.ok(taken < asked, 'the kernel held them all');
    const answer = await connection.next();
    assert.equal(answer.body.length, body.length);
    if (answer.header('connection') === 'close') break;
  }
  assert.equal(await connection.rest(), '');
  await within(1000, stopped);
});

test('stop: at the end of the grace what is left is cut off', async (t) => {
  const { handler, begun } = gated();
  const { server, port } = await startHttp(t, { config: { shutdownGraceSeconds: 0.2 }, handlers: { paste: handler } });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef HTTP/1.1'));
  await begun;
  await within(1000, server.stop());
  assert.equal(await connection.rest(), '');
});

test('stop: half a head is still timed out', async (t) => {
  const { server, port } = await startHttp(t, { config: { shutdownGraceSeconds: 60, headersTimeoutSeconds: 1 } });
  const connection = await openRaw(t, port);
  connection.send(head('GET / HTTP/1.1') + 'GET / HT');
  await connection.next();
  const stopped = server.stop();
  assertRefused(await connection.next(), 408, 'request took too long');
  await within(1000, stopped);
});

test('stop: half a body is still too slow', async (t) => {
  const { server, port, clock, checked } = await startHttp(t, { config: { shutdownGraceSeconds: 60 } });
  const connection = await openRaw(t, port);
  connection.send(head('POST / HTTP/1.1', 'Expect: 100-continue', 'Content-Length: 6'));
  assert.equal((await connection.next()).status, 100);
  const stopped = server.stop();
  await checked();
  clock.advance(10_001);
  assertRefused(await connection.next(), 408, 'request took too long');
  await within(1000, stopped);
});

test('stop: a connection that lingers does not hold it up', async (t) => {
  const { server, port } = await startHttp(t, { config: { shutdownGraceSeconds: 60 } });
  const connection = await openRaw(t, port);
  connection.send(head('POST /view HTTP/1.1', 'Content-Length: 1000000'));
  assert.equal((await connection.next()).status, 405);
  await within(1000, server.stop());
});

test('stop: before listen, and after listen failed, it resolves', async (t) => {
  const { port } = await startHttp(t);
  const config = testConfig({ port });
  const options = {
    config,
    handlers: {},
    routes: [],
    clock: movableClock(),
    newUuid,
    trust: new Forwarding(config, randomBytes),
    log: () => {},
  };
  await within(1000, createHttpServer(options).stop());
  const second = createHttpServer(options);
  await assert.rejects(second.listen({ host: '127.0.0.1', port }), { code: 'EADDRINUSE' });
  await within(1000, second.stop());
});

test('listen: says where it listens', async (t) => {
  const { server, port, url } = await startHttp(t);
  assert.ok(port > 0);
  assert.equal(url, `http://127.0.0.1:${port}`);
  assert.equal(server.isStopping(), false);
});
