// Request bodies over raw sockets: how they reach the handler, when 100 is sent, and that an answer given before the
// body has ended is seen whole by clients that send first and read later.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { test, type TestContext } from 'node:test';
import { Refusal } from '../../src/core/refusals.ts';
import { KIB, MIB } from '../../src/core/time.ts';
import type { Handler } from '../../src/http/handler.ts';
import { emptyReply, jsonReply } from '../../src/http/reply.ts';
import { assertContract, assertRefused } from '../support/answer-contract.ts';
import { startHttp, type RunningHttp } from '../support/http-server.ts';
import { head, onlyAnswer, openRaw, type RawConnection } from '../support/raw-http.ts';

const LIMIT_BYTES = 64 * KIB;

/** As the service does it: the declared length before the body is read, the counted one while it is. */
const limited: Handler = async (request) => {
  const tooLarge = (size: number): Refusal => new Refusal('pasteTooLarge', { size, maxSize: LIMIT_BYTES });
  const { declaredBytes } = request.body;
  if (declaredBytes !== undefined && declaredBytes > LIMIT_BYTES) throw tooLarge(declaredBytes);
  let bytes = 0;
  await request.body.pipe((chunk) => {
    bytes += chunk.length;
    if (bytes > LIMIT_BYTES) throw tooLarge(bytes);
  });
  return jsonReply(201, { bytes });
};

function chunked(content: Uint8Array, chunkBytes = 10_000): Buffer {
  const parts: Uint8Array[] = [];
  for (let start = 0; start < content.length; start += chunkBytes) {
    const chunk = content.subarray(start, start + chunkBytes);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}

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
async function sendWhole(connection: RawConnection, ...parts: readonly (string | Uint8Array)[]): Promise<void> {
  connection.socket.pause();
  for (const part of parts) connection.send(part);
  if (connection.socket.writableLength > 0) await once(connection.socket, 'drain');
  connection.socket.resume();
}

test('an early 413: seen whole by a client that sends everything first', async (t) => {
  const { port } = await startHttp(t, { handlers: { collect: limited } });
  const content = Buffer.alloc(8 * MIB, 'x');
  const kinds = [
    [head('POST / HTTP/1.1', `Content-Length: ${content.length}`), content, content.length],
    [head('POST / HTTP/1.1', 'Transfer-Encoding: chunked'), chunked(content), undefined],
  ] as const;
  for (const [requestHead, body, size] of kinds) {
    for (let round = 0; round < 3; round += 1) {
      const connection = await openRaw(t, port);
      await sendWhole(connection, requestHead, body);
      const answer = await connection.next();
      const json = assertRefused(answer, 413, 'paste too large');
      if (size !== undefined) assert.equal(json['size'], size);
      assert.equal(answer.header('connection'), 'close');
      assert.equal(await connection.rest(), '');
    }
  }
});

test('an early answer after the server had stopped reading: seen whole by a client that sends everything first', async (t) => {
  const gate = Promise.withResolvers<void>();
  const refusal = new Refusal('pasteTooSmall');
  const handlers: readonly Handler[] = [
    // The sink does not take what has come, and then refuses it.
    async (request) => {
      await request.body.pipe(() => gate.promise.then(() => Promise.reject(refusal)));
      return emptyReply(204);
    },
    // Nobody reads it at all.
    async () => {
      await gate.promise;
      throw refusal;
    },
  ];
  const sending: RawConnection[] = [];
  for (const handler of handlers) {
    const { port } = await startHttp(t, { handlers: { collect: handler } });
    const connection = await openRaw(t, port);
    sending.push(connection);
    connection.socket.pause();
    connection.send(head('POST / HTTP/1.1', `Content-Length: ${32 * MIB}`));
    connection.send(Buffer.alloc(32 * MIB));
    await stalled(() => connection.socket.bytesWritten - connection.socket.writableLength);
    assert.ok(connection.socket.writableLength > 0, 'the server does not read ahead');
  }
  gate.resolve();
  for (const connection of sending) {
    if (connection.socket.writableLength > 0) await once(connection.socket, 'drain');
    connection.socket.resume();
    assertRefused(await connection.next(), 400, 'paste smaller than minimum size');
    assert.equal(await connection.rest(), '');
  }
});

test('an early 413: a limit is exact, n - 1 and n are taken, n + 1 is not', async (t) => {
  const { port } = await startHttp(t, { handlers: { collect: limited } });
  for (const size of [LIMIT_BYTES - 1, LIMIT_BYTES]) {
    const connection = await openRaw(t, port);
    connection.send(head('POST / HTTP/1.1', 'Transfer-Encoding: chunked'));
    connection.send(chunked(Buffer.alloc(size)));
    assert.deepEqual((await connection.next()).json(), { bytes: size });
  }
  const requestHead = Buffer.from(head('POST / HTTP/1.1', 'Transfer-Encoding: chunked'));
  const bytes = Buffer.concat([requestHead, chunked(Buffer.alloc(LIMIT_BYTES + 1))]);
  assertRefused(await onlyAnswer(t, port, bytes), 413, 'paste too large');
});

test('an early 413: seen by node:http and by fetch', async (t) => {
  const { port, url } = await startHttp(t, { handlers: { collect: limited } });
  const content = Buffer.alloc(4 * MIB, 'x');
  const response = await fetch(url, { method: 'POST', body: content });
  assert.equal(response.status, 413);
  assert.equal((await response.json() as { error: string }).error, 'paste too large');
  const headers = { 'Content-Length': content.length };
  const request = httpRequest({ host: '127.0.0.1', port, method: 'POST', headers });
  request.on('error', () => {});
  request.end(content);
  const [incoming] = await once(request, 'response') as [import('node:http').IncomingMessage];
  assert.equal(incoming.statusCode, 413);
  incoming.resume();
  await once(incoming, 'end');
});

test('an early 413: seen by curl with a length, chunked and with Expect', async (t) => {
  const { url } = await startHttp(t, { handlers: { collect: limited } });
  if (await curl('', ['--version']) === undefined) return t.skip('there is no curl');
  const content = 'x'.repeat(4 * MIB);
  const common = ['-sS', '--max-time', '10', '-w', '%{http_code}', `${url}/`];
  const kinds = [
    ['--data-binary', '@-', '-H', 'Expect:'],
    ['--data-binary', '@-', '-H', 'Expect: 100-continue'],
    ['--data-binary', '@-', '-H', 'Expect:', '-H', 'Transfer-Encoding: chunked'],
    ['-X', 'POST', '-T', '-'],
  ];
  for (const options of kinds) {
    const answer = await curl(content, [...common, ...options]);
    assert.match(answer ?? '', /^\{"error":"paste too large",.*\}\n413$/, options.join(' '));
  }
  return undefined;
});

/** What curl printed; undefined when there is no curl. */
function curl(input: string, options: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const child = execFile('curl', ['-q', '--noproxy', '*', ...options], (error, output) => {
      if (error === null) resolve(output);
      else if (error.code === 'ENOENT') resolve(undefined);
      else reject(error);
    });
    // curl may stop reading when it has its answer.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

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

/** Resolves when the number has not changed for a while. */
async function stalled(read: () => number): Promise<void> {
  for (let before = -1; before !== read();) {
    before = read();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** What was sent before on any connection has been read by the server when this returns. */
async function untilIdle(t: TestContext, port: RunningHttp['port']): Promise<void> {
  for (let round = 0; round < 2; round += 1) {
    const connection = await openRaw(t, port);
    connection.send(head('GET / HTTP/1.1'));
    await connection.next();
  }
}
