// What every answer is, whatever was asked: common headers, framing, HEAD, OPTIONS, 405, failures of handlers, the log.
// Over raw sockets, each kind followed by another request on the same connection.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refusal } from '../../src/core/refusals.ts';
import { emptyReply, type Reply, StreamedBody } from '../../src/http/engine/reply.ts';
import { StoreError } from '../../src/store/store.ts';
import { assertContract, assertRefused, UUID_V4 } from '../support/answer-contract.ts';
import { startHttp } from '../support/http-server.ts';
import { head, openRaw } from '../support/raw-http.ts';

const FINGERPRINT = '0123456789abcdef0123456789abcdef01234567';

test('every kind of answer: common headers, and the connection is used again', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  const cases: readonly (readonly [requestLine: string, status: number])[] = [
    ['GET / HTTP/1.1', 200],
    ['HEAD / HTTP/1.1', 200],
    ['GET /view HTTP/1.1', 200],
    ['GET /abcdef/raw HTTP/1.1', 200],
    ['HEAD /abcdef/raw HTTP/1.1', 200],
    ['GET /empty HTTP/1.1', 204],
    ['HEAD /empty HTTP/1.1', 204],
    ['OPTIONS / HTTP/1.1', 204],
    ['GET /ab%20cd HTTP/1.1', 400],
    ['GET /a/b/c HTTP/1.1', 404],
    ['HEAD /a/b/c HTTP/1.1', 404],
    ['DELETE / HTTP/1.1', 405],
    ['GET /fail HTTP/1.1', 500],
    ['HEAD /fail HTTP/1.1', 500],
  ];
  for (const [line, status] of cases) {
    connection.send(head(line));
    const answer = await connection.next(line.split(' ')[0]);
    assert.equal(answer.status, status, line);
    assertContract(answer);
    assert.equal(answer.header('connection'), 'keep-alive', line);
  }
});

test('pipelined requests: answered in order, each once', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  const count = 90;
  connection.send(Array.from({ length: count }, (_, index) => head(`GET /view?${index} HTTP/1.1`)).join(''));
  for (let index = 0; index < count; index += 1) {
    assert.deepEqual((await connection.next()).json()['query'], [[String(index), '']]);
  }
});

test('pipelined requests: the next one begins when the one before has been answered', async (t) => {
  const begun: string[] = [];
  const proceed: (() => void)[] = [];
  const { port } = await startHttp(t, {
    handlers: {
      paste: (request) => {
        begun.push(request.parameter);
        return new Promise<Reply>((resolve) => proceed.push(() => resolve(emptyReply(204))));
      },
    },
  });
  const connection = await openRaw(t, port);
  connection.send(head('GET /first0 HTTP/1.1') + head('GET /second HTTP/1.1'));
  const other = await openRaw(t, port);
  other.send(head('GET / HTTP/1.1'));
  await other.next();
  assert.deepEqual(begun, ['first0']);
  proceed.shift()?.();
  await connection.next();
  other.send(head('GET / HTTP/1.1'));
  await other.next();
  assert.deepEqual(begun, ['first0', 'second']);
  proceed.shift()?.();
  await connection.next();
});

test('HEAD: the headers of GET with its Content-Length, and no content', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  for (const path of ['/', '/abcdef', '/abcdef/raw', '/a/b/c']) {
    for (const method of ['GET', 'HEAD']) connection.send(head(`${method} ${path} HTTP/1.1`, 'X-Request-ID: same'));
    const get = await connection.next();
    const headOnly = await connection.next('HEAD');
    assert.equal(headOnly.status, get.status);
    assert.deepEqual([...headOnly.headers], [...get.headers]);
    assert.equal(Number(headOnly.header('content-length')), get.body.length);
  }
});

test('HEAD of a streamed body: the content is closed and never read', async (t) => {
  let closed = 0;
  const { port } = await startHttp(t, {
    handlers: {
      raw: () => ({
        status: 200,
        headers: {},
        body: new StreamedBody(1234, () => assert.fail('not to be read'), () => {
          closed += 1;
        }),
      }),
    },
  });
  const connection = await openRaw(t, port);
  connection.send(head('HEAD /abcdef/raw HTTP/1.1'));
  const answer = await connection.next('HEAD');
  assert.equal(answer.header('content-length'), '1234');
  assert.equal(closed, 1);
});

test('OPTIONS: 204 with the methods of that path, and of the server for *', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  const cases = [
    ['/', 'GET, HEAD, POST, OPTIONS'],
    ['/view', 'GET, HEAD, OPTIONS'],
    ['/abcdef/raw', 'GET, HEAD, OPTIONS'],
    ['*', 'GET, HEAD, POST, OPTIONS'],
    ['http://paste.test', 'GET, HEAD, POST, OPTIONS'],
  ] as const;
  for (const [target, allow] of cases) {
    connection.send(head(`OPTIONS ${target} HTTP/1.1`));
    const answer = await connection.next();
    assert.equal(answer.status, 204);
    assert.equal(answer.header('allow'), allow);
    assertContract(answer);
  }
});

test('a known path with another method: 405 with Allow', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND', 'QUERY']) {
    connection.send(head(`${method} /abcdef HTTP/1.1`));
    const answer = await connection.next();
    assertRefused(answer, 405, 'method not allowed');
    assert.equal(answer.header('allow'), 'GET, HEAD, OPTIONS');
  }
});

test('PUT /name that can be no id: 400 with a hint how to upload', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  connection.send(head('PUT /notes.txt HTTP/1.1'));
  const answer = assertRefused(await connection.next(), 400, 'invalid paste id');
  assert.match(String(answer['hint']), /curl -T - URL/);
});

test('X-Request-ID: echoed when it is harmless, otherwise a new UUID', async (t) => {
  const { port } = await startHttp(t);
  const connection = await openRaw(t, port);
  const id = async (...lines: readonly string[]): Promise<string> => {
    connection.send(head('GET /view HTTP/1.1', ...lines));
    const answer = await connection.next();
    assert.equal(answer.json()['id'], answer.header('x-request-id'));
    return answer.header('x-request-id');
  };
  for (const value of ['a', 'A-Za.z0:9/+=@_-', 'x'.repeat(127), 'x'.repeat(128)]) {
    assert.equal(await id(`X-Request-ID: ${value}`), value);
  }
  for (const value of ['x'.repeat(129), '', 'a b', 'a"b', 'a,b', '<a>', 'caf\xe9', 'a;b']) {
    assert.match(await id(`X-Request-ID: ${value}`), UUID_V4);
  }
  assert.match(await id('X-Request-ID: a', 'X-Request-ID: a'), UUID_V4);
  assert.notEqual(await id(), await id());
});

test('an unexpected error: 500 without detail, and the log has it with the request id', async (t) => {
  const { port, logged } = await startHttp(t);
  const connection = await openRaw(t, port);
  connection.send(head('GET /fail HTTP/1.1', 'X-Request-ID: find-me'));
  const answer = await connection.next();
  assert.deepEqual(assertRefused(answer, 500, 'internal server error'), { error: 'internal server error' });
  const failure = logged.find(({ event }) => event === 'request failed');
  assert.equal(failure?.level, 'error');
  assert.equal(failure?.details?.['request_id'], 'find-me');
  assert.match(String(failure?.details?.['error']), /words for the operator/);
});

test('an unexpected error without a stack: the log has its words', async (t) => {
  const error = Object.assign(new Error('words alone'), { stack: undefined });
  const { port, logged } = await startHttp(t, { handlers: { raw: () => Promise.reject(error) } });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef/raw HTTP/1.1'));
  assertRefused(await connection.next(), 500, 'internal server error');
  assert.equal(logged.find(({ event }) => event === 'request failed')?.details?.['error'], 'words alone');
});

test('an error on the way out of a scope: the answer is that of the one before it, and the log has both', async (t) => {
  let cause: Error = new Refusal('pasteTooLarge');
  const raw = async (): Promise<never> => {
    await using _ = { [Symbol.asyncDispose]: () => Promise.reject(new Error('the later one')) };
    throw cause;
  };
  const { port, logged } = await startHttp(t, { handlers: { raw } });
  const connection = await openRaw(t, port);
  const ask = async () => {
    connection.send(head('GET /abcdef/raw HTTP/1.1'));
    return connection.next();
  };
  const errors = () => logged.splice(0).filter(({ event }) => event === 'request failed').map(({ level, details }) => (
    `${level} ${String(details?.['error']).replace(/\n {4}at [^]*/, ' at')}`
  ));
  assertRefused(await ask(), 413, 'paste too large');
  assert.deepEqual(errors(), ['error Error: the later one at']);
  cause = new StoreError('unavailable', 'no lock');
  assertRefused(await ask(), 503, 'storage unavailable');
  assert.deepEqual(errors(), ['error Error: the later one at', 'warning StoreError: no lock']);
  cause = new SuppressedError(new Error('second'), new Error('first'));
  assertRefused(await ask(), 500, 'internal server error');
  assert.deepEqual(errors(), ['error Error: the later one at', 'error Error: second at', 'error Error: first at']);
});

test('an unexpected error on the path of a paste: the log has the route, and never the id', async (t) => {
  const handlers = { raw: () => Promise.reject(new Error('odd')) };
  const { port, logged, answered } = await startHttp(t, { handlers });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdefgh/raw?x=abcdefgh HTTP/1.1'));
  assertRefused(await connection.next(), 500, 'internal server error');
  await answered(() => true);
  assert.equal(logged.find(({ event }) => event === 'request failed')?.details?.['route'], '/{id}/raw');
  assert.equal(JSON.stringify(logged).includes('abcdefgh'), false);
});

test('what a handler throws or rejects with: by the table of refusals', async (t) => {
  const errors: unknown[] = [
    new Refusal('pasteTooLarge', { size: 5, maxSize: 4, authenticated: false, hint: 'less' }),
    new Refusal('passwordQueueFull', {}, { retryAfterSeconds: 0.2 }),
    new StoreError('full', 'disk is full'),
    new StoreError('unavailable', 'disk I/O error'),
    'not even an error',
  ];
  const { port } = await startHttp(t, {
    handlers: {
      fail: () => {
        throw errors[0];
      },
      empty: () => Promise.reject(errors.shift()),
    },
  });
  const connection = await openRaw(t, port);
  connection.send(head('GET /fail HTTP/1.1') + head('GET /empty HTTP/1.1').repeat(5));
  const tooLarge = '{"error":"paste too large","hint":"less","size":5,"max_size":4,"authenticated":false}\n';
  assert.equal((await connection.next()).body.toString(), tooLarge);
  assert.equal((await connection.next()).body.toString(), tooLarge);
  const [queue, full] = [await connection.next(), await connection.next()];
  const [unavailable, other] = [await connection.next(), await connection.next()];
  assertRefused(queue, 503, 'too many password checks in progress');
  assert.equal(queue.header('retry-after'), '1');
  assert.deepEqual(assertRefused(full, 507, 'storage full'), { error: 'storage full' });
  assertRefused(unavailable, 503, 'storage unavailable');
  assert.match(unavailable.header('retry-after'), /^[1-9]\d*$/);
  assertRefused(other, 500, 'internal server error');
});

test('a reply that cannot be written: 500', async (t) => {
  const { port } = await startHttp(t, {
    handlers: { raw: () => ({ status: 200, headers: { 'X-A': 'a\r\nb' }, body: 'text' }) },
  });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef/raw HTTP/1.1'));
  assertRefused(await connection.next(), 500, 'internal server error');
});

test('a refusal of which no page can be made: a browser gets the refusal itself', async (t) => {
  // A page can only be made of a JSON body.
  const reply = { status: 404, headers: { 'Content-Type': 'text/plain' }, body: 'no JSON', refusal: 'notFound' } as const;
  const { port } = await startHttp(t, { handlers: { raw: () => reply } });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef/raw HTTP/1.1', 'Accept: text/html') + head('GET / HTTP/1.1'));
  const answer = await connection.next();
  assert.deepEqual([answer.status, answer.header('content-type'), String(answer.body)], [404, 'text/plain', 'no JSON']);
  assert.equal((await connection.next()).status, 200);
});

test('a 304: no Content-Length, and the connection is used again', async (t) => {
  const { port } = await startHttp(t, { handlers: { raw: () => emptyReply(304, { ETag: '"a"' }) } });
  const connection = await openRaw(t, port);
  connection.send(head('GET /abcdef/raw HTTP/1.1').repeat(2));
  for (const answer of [await connection.next(), await connection.next()]) {
    assert.equal(answer.status, 304);
    assertContract(answer);
  }
});

test('HTTP/1.0, kept alive: an answer without a length ends the connection, and what follows is not processed', async (t) => {
  let received = 0;
  const { port } = await startHttp(t, {
    handlers: {
      raw: () => emptyReply(304, { ETag: '"a"' }),
      collect: async () => emptyReply(204, { 'X-Count': String((received += 1)) }),
    },
  });
  const kept = (line: string): string => head(`${line} HTTP/1.0`, 'Connection: keep-alive', 'Content-Length: 0');
  for (const [line, status] of [['OPTIONS /', 204], ['GET /empty', 204], ['GET /abcdef/raw', 304]] as const) {
    const connection = await openRaw(t, port);
    connection.send(kept('GET /view') + kept(line) + kept('POST /'));
    assert.equal((await connection.next()).status, 200);
    const answer = await connection.next();
    assert.deepEqual([answer.status, answer.header('connection')], [status, 'close']);
    assert.equal(await connection.rest(), '');
  }
  assert.equal(received, 0);
});

test('the log: one line a request, with the route and never the path', async (t) => {
  const { port, logged, clock, answered } = await startHttp(t, {
    handlers: {
      paste: () => {
        clock.advance(12.34);
        return { status: 200, headers: {}, body: 'é' };
      },
    },
  });
  const connection = await openRaw(t, port);
  connection.send(head('GET /secretid HTTP/1.1', 'X-Request-ID: a', `X-SSL-Client-SHA1: ${FINGERPRINT}`));
  connection.send(head('GET /nowhere/at/all HTTP/1.1', 'X-Request-ID: b'));
  connection.send(head('PUT /secretid HTTP/1.1', 'X-Request-ID: c'));
  await answered((details) => details['request_id'] === 'c');
  const common = { level: 'info', logger: 'http', event: 'request', clientIp: '127.0.0.1' };
  const refused = Buffer.byteLength('{"error":"not found"}\n');
  const notAllowed = Buffer.byteLength('{"error":"method not allowed"}\n');
  assert.deepEqual(logged, [
    {
      ...common,
      clientId: FINGERPRINT,
      details: { method: 'GET', route: '/{id}', status: 200, bytes: 2, ms: 12.3, request_id: 'a' },
    },
    { ...common, details: { method: 'GET', route: '-', status: 404, bytes: refused, ms: 0, request_id: 'b' } },
    { ...common, details: { method: 'PUT', route: '/{id}', status: 405, bytes: notAllowed, ms: 0, request_id: 'c' } },
  ]);
});

test('createHttpServer: a route without a handler is an error at once', async (t) => {
  await assert.rejects(startHttp(t, { handlers: { raw: undefined as never } }), TypeError);
});
