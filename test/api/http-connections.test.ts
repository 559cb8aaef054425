// Connections over raw sockets: how many there may be, how long one may say nothing, how many requests may wait on one.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test, type TestContext } from 'node:test';
import { emptyReply } from '../../src/http/engine/reply.ts';
import { assertRefused } from '../support/answer-contract.ts';
import { startHttp } from '../support/http-server.ts';
import { head, onlyAnswer, openRaw, type RawConnection } from '../support/raw-http.ts';

const TOO_MANY = 'too many connections';

/** A connection that has been served, and is kept. */
async function served(t: TestContext, port: number, localAddress = '127.0.0.1'): Promise<RawConnection> {
  const connection = await openRaw(t, port, { localAddress });
  connection.send(head('GET / HTTP/1.1'));
  assert.equal((await connection.next()).status, 200);
  return connection;
}

async function refused(t: TestContext, port: number, localAddress = '127.0.0.1'): Promise<void> {
  const connection = await openRaw(t, port, { localAddress });
  const answer = await connection.next();
  assertRefused(answer, 503, TOO_MANY);
  assert.equal(answer.header('connection'), 'close');
  assert.equal(await connection.rest(), '');
}

/** Waits for a place to become free, which the server learns of when it sees the other connection close. */
async function closeAndWait(connection: RawConnection): Promise<void> {
  connection.socket.end();
  assert.equal(await connection.rest(), '');
  connection.socket.destroy();
}

test('SERVICE_MAX_CONNECTIONS: n - 1 and n are served, n + 1 is 503, and again when one has closed', async (t) => {
  const { port } = await startHttp(t, { config: { maxConnections: 3 } });
  const kept: RawConnection[] = [];
  for (let count = 0; count < 3; count += 1) kept.push(await served(t, port));
  await refused(t, port);
  await refused(t, port);
  await closeAndWait(kept[0]!);
  await served(t, port);
  await refused(t, port);
});

test('SERVICE_MAX_CONNECTIONS_PER_CLIENT: one client is limited, others are served', async (t) => {
  const { port } = await startHttp(t, { config: { maxConnectionsPerClient: 2, trustedProxies: ['127.0.0.9'] } });
  const [first] = [await served(t, port), await served(t, port)];
  await refused(t, port);
  await served(t, port, '127.0.0.2');
  await served(t, port, '127.0.0.2');
  await refused(t, port, '127.0.0.2');
  for (let count = 0; count < 4; count += 1) await served(t, port, '127.0.0.9');
  await closeAndWait(first!);
  await served(t, port);
  await refused(t, port);
});

test('SERVICE_MAX_CONNECTIONS_PER_CLIENT=0: no limit of one client', async (t) => {
  const { port } = await startHttp(t, { config: { maxConnectionsPerClient: 0, trustedProxies: [] } });
  for (let count = 0; count < 60; count += 1) await served(t, port);
});

test('a connection over the cap: sees its 503 although it sends a request, which is not processed', async (t) => {
  const { port, logged } = await startHttp(t, { config: { maxConnections: 1 } });
  await served(t, port);
  const connection = await openRaw(t, port);
  connection.send(head('POST / HTTP/1.1', 'Content-Length: 1000000'));
  connection.send('x'.repeat(1_000_000));
  assertRefused(await connection.next(), 503, TOO_MANY);
  assert.equal(await connection.rest(), '');
  assert.deepEqual(logged.map(({ details }) => details?.['status']), [200, 503]);
});

test('SERVICE_HEADERS_TIMEOUT: half a head is 408, however it trickles in', async (t) => {
  const { port } = await startHttp(t, { config: { headersTimeoutSeconds: 1 } });
  const connection = await openRaw(t, port);
  connection.send('GET / HTTP/1.1\r\nHost: paste.test\r\n');
  const trickle = setInterval(() => connection.send('X-A: a\r\n'), 20);
  try {
    assertRefused(await connection.next(), 408, 'request took too long');
    assert.equal(await connection.rest(), '');
  } finally {
    clearInterval(trickle);
  }
});

test('SERVICE_HEADERS_TIMEOUT: the second request of a connection has it too', async (t) => {
  const { port } = await startHttp(t, { config: { headersTimeoutSeconds: 1 } });
  const connection = await served(t, port);
  connection.send('GET / HT');
  assertRefused(await connection.next(), 408, 'request took too long');
  assert.equal(await connection.rest(), '');
});

test('SERVICE_HEADERS_TIMEOUT: half a head behind a slow request is 408 after its answer', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { port, logged } = await startHttp(t, {
    config: { headersTimeoutSeconds: 1 },
    handlers: {
      paste: async () => {
        await gate.promise;
        return emptyReply(204);
      },
    },
  });
  const connection = await openRaw(t, port);
  connection.send(`${head('GET /abcdef HTTP/1.1')}GET / HT`);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.deepEqual(logged, []);
  gate.resolve();
  assert.equal((await connection.next()).status, 204);
  assertRefused(await connection.next(), 408, 'request took too long');
  assert.equal(await connection.rest(), '');
});

test('SERVICE_HEADERS_TIMEOUT: a connection never used is closed without a word', async (t) => {
  const { port, logged } = await startHttp(t, { config: { headersTimeoutSeconds: 0.1 } });
  const connection = await openRaw(t, port);
  assert.equal(await connection.rest(), '');
  assert.deepEqual(logged, []);
});

test('SERVICE_IDLE_TIMEOUT: an idle connection is closed without a word, a waiting one is not', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { port } = await startHttp(t, {
    config: { idleTimeoutSeconds: 0.1 },
    handlers: {
      paste: async () => {
        await gate.promise;
        return emptyReply(204);
      },
    },
  });
  const idle = await served(t, port);
  const waiting = await served(t, port);
  waiting.send(head('GET /abcdef HTTP/1.1'));
  assert.equal(await idle.rest(), '');
  gate.resolve();
  assert.equal((await waiting.next()).status, 204);
});

test('pipelined requests: 100 may wait, with one more the connection is cut off', async (t) => {
  const gate = Promise.withResolvers<void>();
  let begun = 0;
  const { port, answered } = await startHttp(t, {
    handlers: {
      paste: async () => {
        begun += 1;
        await gate.promise;
        return emptyReply(204);
      },
    },
  });
  const request = head('GET /abcdef HTTP/1.1');
  const kept = await openRaw(t, port);
  kept.send(request.repeat(100));
  const cut = await openRaw(t, port);
  cut.send(request.repeat(101));
  await answered((details) => details['status'] === 499);
  assert.equal(begun, 2);
  gate.resolve();
  for (let count = 0; count < 100; count += 1) assert.equal((await kept.next()).status, 204);
});

/** A request that counts for `bytes` bytes when it has to wait: its target, and names and values with 64 for each. */
function waitingHead(bytes: number, ...lines: readonly string[]): string {
  const shortest = head('POST / HTTP/1.1', ...lines, 'X-Padding: ');
  const sent = shortest.split('\r\n').slice(1, -2);
  const counted = sent.reduce((sum, line) => sum + line.replace(': ', '').length + 128, '/'.length);
  return shortest.replace('X-Padding: ', `X-Padding: ${'p'.repeat(bytes - counted)}`);
}

test('pipelined requests: 256 KiB of heads and bodies may wait, with one byte more the connection is cut off', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { port, answered } = await startHttp(t, {
    handlers: {
      paste: async () => {
        await gate.promise;
        return emptyReply(204);
      },
    },
  });
  const first = head('GET /abcdef HTTP/1.1');
  const withBody = (headBytes: number): string => {
    return waitingHead(headBytes, 'Content-Length: 61440') + 'b'.repeat(61_440);
  };
  const quarters = withBody(4096).repeat(4);
  const [kept, cut] = [await openRaw(t, port), await openRaw(t, port)];
  kept.send(first + quarters);
  cut.send(first + withBody(4096).repeat(3) + withBody(4097));
  await answered((details) => details['status'] === 499);
  gate.resolve();
  assert.equal((await kept.next()).status, 204);
  for (let count = 0; count < 4; count += 1) assert.match(String((await kept.next()).body), /"bytes":61440/);
  // Their turns have come, so others may wait.
  kept.send(first + quarters);
  for (const status of [204, 201, 201, 201, 201]) assert.equal((await kept.next()).status, status);
});

test('pipelined requests: a body of unknown length counts for as much as node reads of it', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { port, answered } = await startHttp(t, { handlers: { paste: () => gate.promise.then(() => emptyReply(204)) } });
  const chunked = `${waitingHead(1000, 'Transfer-Encoding: chunked')}1\r\nb\r\n0\r\n\r\n`;
  const [kept, cut] = [await openRaw(t, port), await openRaw(t, port)];
  kept.send(head('GET /abcdef HTTP/1.1') + chunked.repeat(3));
  cut.send(head('GET /abcdef HTTP/1.1') + chunked.repeat(4));
  await answered((details) => details['status'] === 499);
  gate.resolve();
  for (const status of [204, 201, 201, 201]) assert.equal((await kept.next()).status, status);
});

test('requests behind the one that ends the connection: heads count as well, and bodies are not kept', async (t) => {
  const gate = Promise.withResolvers<void>();
  let begin = (): void => {};
  const { server, port, answered } = await startHttp(t, {
    handlers: {
      paste: async () => {
        begin();
        await gate.promise;
        return emptyReply(204);
      },
    },
  });
  const unread: IncomingMessage[] = [];
  server.node.on('request', (req) => unread.push(req));
  const [kept, cut] = [await openRaw(t, port), await openRaw(t, port)];
  for (const connection of [kept, cut]) {
    connection.send(head('GET /abcdef HTTP/1.1', 'Upgrade: h2c'));
    await new Promise<void>((resolve) => {
      begin = resolve;
    });
  }
  kept.send(`${waitingHead(8192, 'Content-Length: 1000')}${'b'.repeat(1000)}`);
  kept.send(waitingHead(8192).repeat(31));
  cut.send(waitingHead(8192).repeat(31) + waitingHead(8193));
  await answered((details) => details['status'] === 499);
  while (unread.length < 66) await new Promise((resolve) => setTimeout(resolve, 10));
  gate.resolve();
  assert.equal((await kept.next()).status, 204);
  assert.equal(await kept.rest(), '');
  assert.equal(unread.length, 66);
  assert.deepEqual(unread.filter(({ readableLength }) => readableLength > 0), []);
});

const ignored = head('GET / HTTP/1.1');
const chunked = `${waitingHead(16_384, 'Transfer-Encoding: chunked')}0\r\n\r\n`;
for (const [what, mostIgnored, oneMore] of [
  ['as few as may wait', ignored.repeat(99), ignored],
  ['the trailers that may come count as well', chunked.repeat(8), ignored],
] as const) {
  test(`requests behind the one that ends the connection: ${what}, with one more it is cut off`, async (t) => {
    const gate = Promise.withResolvers<void>();
    let begin = (): void => {};
    const { port, answered } = await startHttp(t, {
      handlers: {
        paste: async () => {
          begin();
          await gate.promise;
          return emptyReply(204);
        },
      },
    });
    const last = head('GET /abcdef HTTP/1.1', 'Upgrade: h2c');
    const [kept, cut] = [await openRaw(t, port), await openRaw(t, port)];
    for (const connection of [kept, cut]) {
      connection.send(last);
      // Waits for the handler, because node drops what comes in one read with an Upgrade.
      await new Promise<void>((resolve) => {
        begin = resolve;
      });
    }
    kept.send(mostIgnored);
    cut.send(mostIgnored + oneMore);
    await answered((details) => details['status'] === 499);
    gate.resolve();
    assert.equal((await kept.next()).status, 204);
    assert.equal(await kept.rest(), '');
  });
}

test('a head, and trailers, of a thousand lines: node keeps no more of them than are looked at', async (t) => {
  const { server, port } = await startHttp(t);
  const seen: IncomingMessage[] = [];
  server.node.on('request', (req) => seen.push(req));
  const lines = Array.from({ length: 1000 }, (_, index) => `${index.toString(36)}:`);
  const connection = await openRaw(t, port);
  connection.send(`${head('POST / HTTP/1.1', 'Transfer-Encoding: chunked')}0\r\n${lines.join('\r\n')}\r\n\r\n`);
  // An older node refuses nothing, and drops the lines that are too many.
  assert.ok([201, 431].includes((await connection.next()).status));
  assert.equal((await onlyAnswer(t, port, head('GET / HTTP/1.1', ...lines))).status, 431);
  const kept = seen.flatMap(({ rawHeaders, rawTrailers }) => [rawHeaders.length / 2, rawTrailers.length / 2]);
  assert.ok(kept.length >= 2 && Math.max(...kept) <= 116, kept.join(' '));
});

test('Connection: close in a trailer: the answer is seen, what follows is not processed, and the connection ends', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { port, logged } = await startHttp(t, {
    handlers: {
      collect: async (request) => {
        await request.body.pipe(() => {});
        await gate.promise;
        return emptyReply(204);
      },
    },
  });
  const last = `${head('POST / HTTP/1.1', 'Transfer-Encoding: chunked')}1\r\nb\r\n0\r\nConnection: close\r\n\r\n`;
  const next = head('GET / HTTP/1.1');
  const [atOnce, late] = [await openRaw(t, port), await openRaw(t, port)];
  atOnce.send(last + next);
  late.send(last);
  gate.resolve();
  for (const connection of [atOnce, late]) assert.equal((await connection.next()).status, 204);
  late.send(next);
  for (const connection of [atOnce, late]) assert.equal(await connection.rest(), '');
  assert.deepEqual(logged.map(({ details }) => details?.['method']), ['POST', 'POST']);
});

test('a connection that cannot be accepted: the operator is told why, and the next one is served', async (t) => {
  const { server, port, logged } = await startHttp(t);
  // Node reports this, in these words, when the process has no descriptor left for the connection.
  server.node.emit('error', new Error('accept EMFILE'));
  assert.deepEqual(logged, [
    { level: 'error', logger: 'http', event: 'accepting failed', details: { error: 'accept EMFILE' } },
  ]);
  await served(t, port);
});

test('an answer that node calls finished when its client has gone already: the request is logged once', async (t) => {
  const { server, port, logged, answered } = await startHttp(t);
  const asked = once(server.node, 'request') as Promise<[IncomingMessage, ServerResponse]>;
  const client = await openRaw(t, port);
  client.send(head('POST / HTTP/1.1', 'Content-Length: 3'));
  const [, given] = await asked;
  client.socket.resetAndDestroy();
  await answered((details) => details['status'] === 499);
  // Node emits this for what was still to be written when a socket is destroyed without an error.
  given.emit('finish');
  assert.equal(logged.filter(({ event }) => event === 'request').length, 1);
});

test('a trusted proxy: its forwarded headers are believed over the socket', async (t) => {
  const { port } = await startHttp(t, { config: { trustedProxies: ['127.0.0.1'], urlPrefix: '/p' } });
  const lines = [
    'X-Forwarded-For: 192.0.2.1, 2001:DB8:0::1',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Host: pastes.example',
  ];
  const proxied = await openRaw(t, port);
  proxied.send(head('GET /view HTTP/1.1', ...lines));
  const { address, url } = (await proxied.next()).json();
  assert.deepEqual([address, url], ['2001:db8::1', 'https://pastes.example/p']);
  const direct = await openRaw(t, port, { localAddress: '127.0.0.2' });
  direct.send(head('GET /view HTTP/1.1', ...lines));
  const seen = (await direct.next()).json();
  assert.deepEqual([seen['address'], seen['url']], ['127.0.0.2', 'http://paste.test/p']);
});

test('a Host that is not well-formed: 400 without it; the listening address stands in for none', async (t) => {
  const { port } = await startHttp(t);
  for (const host of ["x';id;'", '<script>', 'a b', 'a:b', 'paste.test:99999', '[::1', 'caf\xe9.test', '../x']) {
    const answer = await onlyAnswer(t, port, head('GET /view HTTP/1.1', `Host: ${host}`));
    assert.equal(answer.status, 400, host);
    assert.equal(answer.body.includes(host), false);
  }
  const connection = await openRaw(t, port);
  connection.send(head('GET /view HTTP/1.1', 'Host: '));
  assert.equal((await connection.next()).json()['url'], `http://127.0.0.1:${port}`);
  const answer = await onlyAnswer(t, port, 'GET /view HTTP/1.0\r\n\r\n');
  assert.equal(answer.json()['url'], `http://127.0.0.1:${port}`);
});
