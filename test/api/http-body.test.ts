// Request bodies over raw sockets: how they reach the handler, when 100 is sent, and how slow they may be.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { Refusal } from '../../src/core/refusals.ts';
import { MIB } from '../../src/core/time.ts';
import { emptyReply, type Handler, jsonReply } from '../../src/http/engine/reply.ts';
import { assertContract, assertRefused } from '../support/answer-contract.ts';
import { type RunningHttp, startHttp } from '../support/http-server.ts';
import { chunked, LIMIT_BYTES, limited } from '../support/limited-body.ts';
import { head, onlyAnswer, openRaw } from '../support/raw-http.ts';

test('a body of any length and either framing: taken whole, the connection is used again', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  for (const size of [0, 1, 2, 65_535, 65_536, 65_537, MIB]) {
    const content = Buffer.alloc(size, 'x');
    connection.send(head('POST / HTTP/1.1', `Content-Length: ${size}`));
    connection.send(content);
    assert.deepEqual((await connection.next()).json(), { bytes: size, declared: size });
    connection.send(head('POST / HTTP/1.1', 'Transfer-Encoding: chunked'));
    connection.send(chunked(content));
    const answer = await connection.next();
    assert.deepEqual(answer.json(), { bytes: size, declared: null });
    assert.equal(answer.header('connection'), 'keep-alive');
  }
});

const FRAGMENTED = 'request body in too many small pieces';
const CHUNKED = head('POST / HTTP/1.1', 'Transfer-Encoding: chunked');

test('a chunk for every byte: joined before the handler gets them, and the connection is used again', async (t) => {
  const lengths: number[] = [];
  const content = Buffer.from(Array.from({ length: 4000 }, (_, index) => index));
  const { port } = await startHttp(t, {
    handlers: {
      collect: async (request) => {
        const hash = createHash('sha256');
        await request.body.pipe((bytes) => {
          lengths.push(bytes.length);
          hash.update(bytes);
        });
        return jsonReply(201, { hash: hash.digest('hex') });
      },
    },
  });
  const connection = await openRaw(t, port);
  connection.send(CHUNKED);
  connection.send(chunked(content, 1));
  assert.equal((await connection.next()).json()['hash'], createHash('sha256').update(content).digest('hex'));
  assert.ok(lengths.length < 100, `4000 chunks came as ${lengths.length} pieces`);
  connection.send(head('GET / HTTP/1.1'));
  assert.equal((await connection.next()).status, 200);
});

test('too many small chunks: 400 with a hint, also for a client that goes on sending, and the connection ends', async (t) => {
  const { port } = await startHttp(t);
  for (const count of [5_000, 1_000_000]) {
    const body = `${'1\r\nx\r\n'.repeat(count)}0\r\n\r\n`;
    const answer = await onlyAnswer(t, port, CHUNKED + body + head('GET / HTTP/1.1'));
    const { hint } = assertRefused(answer, 400, FRAGMENTED);
    assert.match(String(hint), /^send pieces of 16 bytes or more/);
  }
});

test('too many small chunks behind a request that takes its time: nothing is kept, and each is answered', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { port } = await startHttp(t, {
    handlers: {
      empty: async () => {
        await gate.promise;
        return emptyReply(204);
      },
    },
  });
  const connection = await openRaw(t, port);
  connection.send(head('GET /empty HTTP/1.1') + CHUNKED + '1\r\nx\r\n'.repeat(5_000));
  await untilIdle(t, port);
  gate.resolve();
  assert.equal((await connection.next()).status, 204);
  assertRefused(await connection.next(), 400, FRAGMENTED);
  assert.equal(await connection.rest(), '');
});

test('leading zeros and extensions of chunk sizes count as pieces, and some of them are free', async (t) => {
  const { port, checked } = await startHttp(t);
  const zeros = '0'.repeat(200_000);
  const end = '0\r\n\r\n';
  const bodies = [
    `${zeros}1\r\nx\r\n${end}`, `1\r\nx\r\n${zeros}${end}`, `1;${'a'.repeat(10_000)}\r\nx\r\n`.repeat(20) + end,
  ];
  for (const body of bodies) assertRefused(await onlyAnswer(t, port, CHUNKED + body), 400, FRAGMENTED);
  const endless = await openRaw(t, port);
  endless.send(CHUNKED + zeros);
  await untilIdle(t, port);
  await checked();
  assertRefused(await endless.next(), 400, FRAGMENTED);

  const connection = await openRaw(t, port);
  connection.send(`${CHUNKED}${'0000003e8;a="b"\r\n'.concat('x'.repeat(1000), '\r\n').repeat(3000)}${end}`);
  assert.equal((await connection.next()).json()['bytes'], 3_000_000);
  connection.send(`${CHUNKED}${`1;${'a'.repeat(10_000)}\r\nx\r\n`.repeat(10)}${end}`);
  assert.equal((await connection.next()).json()['bytes'], 10);
});

test('many small writes: thousands of lines, and a few bytes at a time with a length, go on', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  connection.socket.setNoDelay(true);
  const line = `${'a line of a log that is sent as it is written'.padEnd(59)}\n`;
  connection.send(CHUNKED);
  for (let sent = 0; sent < 6000; sent += 1) {
    connection.send(`3c\r\n${line}\r\n`);
    if (sent % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  connection.send('0\r\n\r\n');
  assert.deepEqual((await connection.next()).json(), { bytes: 360_000, declared: null });
  connection.send(head('POST / HTTP/1.1', 'Content-Length: 1000'));
  for (let sent = 0; sent < 1000; sent += 1) {
    connection.send('x');
    if (sent % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual((await connection.next()).json(), { bytes: 1000, declared: 1000 });
});

test('small chunks of a request that is refused by its form: one answer, and the rest is read', async (t) => {
  const { port } = await startHttp(t);
  const malformed = head('POST / HTTP/1.1', 'Transfer-Encoding: chunked', 'Expect: x');
  const answer = await onlyAnswer(t, port, `${malformed}${'1\r\nx\r\n'.repeat(500_000)}`);
  assertRefused(answer, 417, 'expectation not supported');
});

test('a request without a body: 0 bytes declared, nothing piped', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  connection.send(head('POST / HTTP/1.1') + head('POST / HTTP/1.1', 'Expect: 100-continue'));
  assert.deepEqual((await connection.next()).json(), { bytes: 0, declared: 0 });
  assert.equal((await connection.next()).status, 201, 'no 100 where there is nothing to wait for');
});

test('a sink that asks to wait: every byte once and in order', async (t) => {
  const hash = createHash('sha256');
  let inside = 0;
  const { port } = await startHttp(t, {
    handlers: {
      collect: async (request) => {
        await request.body.pipe(async (chunk) => {
          inside += 1;
          assert.equal(inside, 1, 'no chunk before the one before was taken');
          await new Promise((resolve) => setImmediate(resolve));
          hash.update(chunk);
          inside -= 1;
        });
        return emptyReply(204);
      },
    },
  });
  const content = Buffer.from(Array.from({ length: 3 * MIB }, (_, index) => (index * 31) % 251));
  const connection = await openRaw(t, port);
  connection.send(head('POST / HTTP/1.1', `Content-Length: ${content.length}`));
  connection.send(content);
  assert.equal((await connection.next()).status, 204);
  assert.equal(hash.digest('hex'), createHash('sha256').update(content).digest('hex'));
});

test('a sink that throws or rejects: what it threw is what the handler gets', async (t) => {
  const failures = [
    (): void => {
      throw new Refusal('pasteTooSmall');
    },
    (): Promise<void> => Promise.reject(new Refusal('pasteTooSmall')),
  ];
  for (const failure of failures) {
    const { port } = await startHttp(t, {
      handlers: {
        collect: async (request) => {
          await request.body.pipe(failure);
          return emptyReply(204);
        },
      },
    });
    const answer = await onlyAnswer(t, port, `${head('POST / HTTP/1.1', 'Content-Length: 10')}abc`);
    assertRefused(answer, 400, 'paste smaller than minimum size');
  }
});

test('Expect: 100 when the handler begins to read, and not before', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { port } = await startHttp(t, {
    handlers: {
      collect: async (request) => {
        await gate.promise;
        let bytes = 0;
        await request.body.pipe((chunk) => {
          bytes += chunk.length;
        });
        return jsonReply(201, { bytes });
      },
    },
  });
  const connection = await openRaw(t, port);
  connection.send(head('POST / HTTP/1.1', 'Expect: 100-Continue', 'Content-Length: 3'));
  const other = await openRaw(t, port);
  other.send(head('GET / HTTP/1.1'));
  await other.next();
  assert.equal(connection.socket.bytesRead, 0);
  gate.resolve();
  const interim = await connection.next();
  assert.equal(interim.status, 100);
  connection.send(`abc${head('GET / HTTP/1.1')}`);
  assert.deepEqual((await connection.next()).json(), { bytes: 3 });
  assert.equal((await connection.next()).status, 200, 'the connection is used again');
});

test('Expect: a refusal before reading is the only answer, without 100, whether or not the body comes', async (t) => {
  const { port } = await startHttp(t, { handlers: { collect: limited } });
  const request = head('POST / HTTP/1.1', 'Expect: 100-continue', `Content-Length: ${LIMIT_BYTES + 1}`);
  const waits = await onlyAnswer(t, port, request);
  assert.deepEqual(assertRefused(waits, 413, 'paste too large'), {
    error: 'paste too large', size: LIMIT_BYTES + 1, max_size: LIMIT_BYTES,
  });
  const sends = await onlyAnswer(t, port, request + 'x'.repeat(LIMIT_BYTES + 1) + head('GET / HTTP/1.1'));
  assertRefused(sends, 413, 'paste too large');
});

/** Sends everything before it reads anything, as simple clients do. */
test('a body that nobody reads: answered, the connection ends, and what follows is no request', async (t) => {
  const { port, logged } = await startHttp(t);
  const smuggled = head('GET /view HTTP/1.1');
  const requests = [
    ['GET / HTTP/1.1', 200], ['GET /a/b/c HTTP/1.1', 404], ['POST /view HTTP/1.1', 405], ['OPTIONS / HTTP/1.1', 204],
    ['GET /fail HTTP/1.1', 500],
  ] as const;
  for (const [line, status] of requests) {
    for (const framed of [`Content-Length: ${smuggled.length}`, 'Transfer-Encoding: chunked']) {
      const answer = await onlyAnswer(t, port, head(line, framed) + smuggled);
      assert.equal(answer.status, status);
      assertContract(answer);
    }
  }
  assert.equal(logged.filter(({ details }) => details?.['route'] === '/view' && details['method'] === 'GET').length, 0);
});

test('a body that stalls: 408 after 10 s below the minimum rate, not before', async (t) => {
  const { port, clock, checked } = await startHttp(t, { config: { minTransferRate: 1000 } });
  const connection = await openRaw(t, port);
  connection.send(`${head('POST / HTTP/1.1', 'Content-Length: 50000')}abc`);
  await untilIdle(t, port);
  clock.advance(9_900);
  await checked();
  connection.send('x'.repeat(5_000));
  await untilIdle(t, port);
  clock.advance(4_900);
  await checked();
  assert.equal(connection.socket.bytesRead, 0, 'bytes earned time');
  clock.advance(400);
  const answer = await connection.next();
  assertRefused(answer, 408, 'request took too long');
  assert.equal(answer.header('connection'), 'close');
  assert.equal(await connection.rest(), '');
});

test('a body that waits for its sink: no time-out, however long', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { port, clock, checked } = await startHttp(t, {
    handlers: {
      collect: async (request) => {
        await request.body.pipe(() => gate.promise);
        return emptyReply(204);
      },
    },
  });
  const connection = await openRaw(t, port);
  connection.send(`${head('POST / HTTP/1.1', 'Content-Length: 6')}abc`);
  await untilIdle(t, port);
  clock.advance(60_000);
  await checked();
  gate.resolve();
  connection.send('def');
  assert.equal((await connection.next()).status, 204);
});

test('SERVICE_MIN_TRANSFER_RATE=0: no body is too slow', async (t) => {
  const { port, clock, checked } = await startHttp(t, { config: { minTransferRate: 0 } });
  const connection = await openRaw(t, port);
  connection.send(`${head('POST / HTTP/1.1', 'Content-Length: 6')}abc`);
  await untilIdle(t, port);
  clock.advance(3_600_000);
  await checked();
  connection.send('def');
  assert.equal((await connection.next()).status, 201);
});

test('a client that breaks off: the handler learns it, and it is no failure of the server', async (t) => {
  const { handler, failure } = watched();
  const { port, logged, answered } = await startHttp(t, { handlers: { collect: handler } });
  const connection = await openRaw(t, port);
  connection.send(`${head('POST / HTTP/1.1', 'Content-Length: 10')}abc`);
  await untilIdle(t, port);
  connection.socket.resetAndDestroy();
  const entry = await answered((details) => details['method'] === 'POST');
  assert.equal(entry.details?.['status'], 499);
  assert.equal((await failure).name, 'ClientGoneError');
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(logged.filter(({ event }) => event !== 'request'), []);
});

test('a client that ends its side in mid-body: 400', async (t) => {
  const { handler, failure } = watched();
  const { port } = await startHttp(t, { handlers: { collect: handler } });
  const connection = await openRaw(t, port);
  connection.socket.end(`${head('POST / HTTP/1.1', 'Content-Length: 10')}abc`);
  assertRefused(await connection.next(), 400, 'malformed request');
  assert.equal(await connection.rest(), '');
  assert.ok(await failure instanceof Refusal);
});

test('a client that ends its side after the request: it still gets its answer', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { port } = await startHttp(t, {
    handlers: {
      paste: async () => {
        await gate.promise;
        return emptyReply(204);
      },
    },
  });
  const connection = await openRaw(t, port);
  connection.socket.end(head('GET /abcdef HTTP/1.1'));
  await untilIdle(t, port);
  gate.resolve();
  assert.equal((await connection.next()).status, 204);
  assert.equal(await connection.rest(), '');
});

test('RequestBody.pipe: a second time it rejects', async (t) => {
  const { port } = await startHttp(t, {
    handlers: {
      collect: async (request) => {
        await request.body.pipe(() => {});
        await assert.rejects(request.body.pipe(() => {}), /at most once/);
        return emptyReply(204);
      },
    },
  });
  const connection = await openRaw(t, port);
  connection.send(`${head('POST / HTTP/1.1', 'Content-Length: 3')}abc`);
  assert.equal((await connection.next()).status, 204);
});

test('RequestBody.pipe: after the client has gone it rejects', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { handler, failure } = watched(gate.promise);
  const { port, answered } = await startHttp(t, { handlers: { collect: handler } });
  const connection = await openRaw(t, port);
  connection.send(`${head('POST / HTTP/1.1', 'Content-Length: 10')}abc`);
  await untilIdle(t, port);
  connection.socket.resetAndDestroy();
  await answered((details) => details['status'] === 499);
  gate.resolve();
  assert.equal((await failure).name, 'ClientGoneError');
});

/** A handler that reads the body, once it may, and what that ended with. */
function watched(gate?: Promise<void>): { handler: Handler; failure: Promise<Error> } {
  const { promise: failure, resolve } = Promise.withResolvers<Error>();
  const handler: Handler = async (request) => {
    try {
      await gate;
      await request.body.pipe(() => {});
    } catch (error) {
      resolve(error as Error);
      throw error;
    }
    return emptyReply(204);
  };
  return { handler, failure };
}

/** When this returns, the server has read what was sent before on any connection. */
async function untilIdle(t: TestContext, port: RunningHttp['port']): Promise<void> {
  for (let round = 0; round < 2; round += 1) {
    const connection = await openRaw(t, port);
    connection.send(head('GET / HTTP/1.1'));
    await connection.next();
  }
}
