// Answers before the end of the request's body, over real sockets: every kind of client sees them whole.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { Refusal } from '../../src/core/refusals.ts';
import { MIB } from '../../src/core/time.ts';
import { emptyReply, type Handler } from '../../src/http/engine/reply.ts';
import { assertRefused } from '../support/answer-contract.ts';
import { startHttp } from '../support/http-server.ts';
import { chunked, LIMIT_BYTES, limited } from '../support/limited-body.ts';
import { head, onlyAnswer, openRaw, type RawConnection } from '../support/raw-http.ts';
import { stalled } from '../support/stalled.ts';

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
    // The sink holds up what has come, and then refuses it.
    async (request) => {
      await request.body.pipe(() => gate.promise.then(() => Promise.reject(refusal)));
      return emptyReply(204);
    },
    // The handler does not read the body at all.
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

test('Connection: close, and more behind it: the answer is not lost to whoever reads it late', async (t) => {
  const { port } = await startHttp(t, { handlers: { raw: () => emptyReply(200) } });
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  t.after(() => socket.destroy());
  await once(socket, 'connect');
  const answered = once(socket, 'readable');
  socket.write(head('GET /abcdef/raw HTTP/1.1', 'Connection: close'));
  await answered;
  // Nothing of it has been read. Were the connection closed for good, each of these would be answered by a reset.
  for (let piece = 0; piece < 5; piece += 1) {
    await new Promise((resolve) => socket.write('GET /', resolve));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  let received = '';
  for await (const bytes of socket) received += String(bytes);
  assert.match(received, /^HTTP\/1\.1 200 /);
});
