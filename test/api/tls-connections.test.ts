// Connections over TLS: handshakes that fail or do not end, how many there may be, and that what holds for plain HTTP
// holds here. Identity is tls-identity.test.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import type { ConnectionOptions } from 'node:tls';
import type { Config } from '../../src/config/settings.ts';
import type { LogEntry } from '../../src/core/events.ts';
import { MIB } from '../../src/core/time.ts';
import { StreamedBody } from '../../src/http/engine/reply.ts';
import { Tls } from '../../src/http/tls.ts';
import { assertRefused } from '../support/answer-contract.ts';
import { movableClock } from '../support/clock.ts';
import { type RunningHttp, startHttp } from '../support/http-server.ts';
import { openForKeyUpdates } from '../support/key-updates.ts';
import { chunked, limited } from '../support/limited-body.ts';
import { head, openRaw, type RawConnection } from '../support/raw-http.ts';
import { stalled } from '../support/stalled.ts';
import { testConfig } from '../support/test-config.ts';
import { serverPair, writePair } from '../support/tls.ts';

interface RunningTls extends RunningHttp {
  /** What TLS itself logged. */
  readonly tlsLogged: LogEntry[];
  open(options?: ConnectionOptions): Promise<RawConnection>;
}

async function startTls(t: TestContext, options: Parameters<typeof startHttp>[1] = {}): Promise<RunningTls> {
  const config: Config = testConfig(writePair(t, await serverPair()));
  const tlsLogged: LogEntry[] = [];
  const tls = new Tls({ config, clock: movableClock(), log: (entry) => tlsLogged.push(entry) });
  const running = await startHttp(t, { ...options, tls });
  const open: RunningTls['open'] = (given = {}) => {
    return openRaw(t, running.port, { tls: { rejectUnauthorized: false, ...given } });
  };
  return { ...running, tlsLogged, open };
}

/** A TCP connection on which nothing has been said yet, and its end. */
async function dial(t: TestContext, port: number): Promise<{ socket: Socket; closed: Promise<unknown> }> {
  const socket = connect({ port, host: '127.0.0.1' });
  t.after(() => socket.destroy());
  // However the connection ends: a side that still writes may learn of it by a reset.
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => {}).resume();
  await once(socket, 'connect');
  return { socket, closed };
}

async function assertServes({ open }: Pick<RunningTls, 'open'>): Promise<void> {
  const connection = await open();
  connection.send(head('GET / HTTP/1.1', 'Connection: close'));
  assert.equal((await connection.next()).status, 200);
  assert.equal(await connection.rest(), '');
}

test('TLS: 1.2 and 1.3 with http/1.1 alone are spoken, 1.1 is not', async (t) => {
  const running = await startTls(t);
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const options = { minVersion: version, maxVersion: version, ALPNProtocols: ['h2', 'http/1.1'] };
    const { socket } = await running.open(options);
    const { alpnProtocol } = socket as Socket & { alpnProtocol: string };
    assert.equal(alpnProtocol, 'http/1.1');
  }
  const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const;
  await assert.rejects(running.open(old), { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' });
  await assertServes(running);
});

test('TLS: plain HTTP, garbage and a client that hangs up do no harm, and have one line in the log', async (t) => {
  const running = await startTls(t);
  const { port, tlsLogged, logged } = running;
  const openings = [head('GET / HTTP/1.1'), 'garbage\r\n\r\n', '\x16\x03\x01\x00\x05hello', '\x16\x03\x01\xff\xff'];
  for (const bytes of openings) {
    const { socket, closed } = await dial(t, port);
    socket.write(bytes, 'latin1');
    await closed;
  }
  const silent = await dial(t, port);
  silent.socket.destroy();
  await silent.closed;
  await assertServes(running);
  assert.deepEqual(tlsLogged.map(({ event, details }) => [event, details?.['count']]), [['TLS handshakes failed', 1]]);
  assert.match(String(tlsLogged[0]?.details?.['reason']), /^ERR_SSL_[A-Z_]+$/);
  assert.deepEqual(logged.filter(({ event }) => event !== 'request'), []);
});

test('SERVICE_HEADERS_TIMEOUT: a handshake has that time, said nothing or trickled in', async (t) => {
  const { port, tlsLogged } = await startTls(t, { config: { headersTimeoutSeconds: 0.2 } });
  const silent = await dial(t, port);
  const slow = await dial(t, port);
  slow.socket.write(Buffer.from('1603010200010001fc0303', 'hex'));
  const trickle = setInterval(() => slow.socket.write('a'), 20);
  try {
    await Promise.all([silent.closed, slow.closed]);
  } finally {
    clearInterval(trickle);
  }
  assert.equal(tlsLogged[0]?.details?.['reason'], 'ERR_TLS_HANDSHAKE_TIMEOUT');
});

test('SERVICE_MAX_CONNECTIONS: connections count from before their handshake, too many are closed', async (t) => {
  const running = await startTls(t, { config: { maxConnections: 2, headersTimeoutSeconds: 60 } });
  const { port, server, tlsLogged } = running;
  const [first] = [await dial(t, port), await dial(t, port)];
  await (await dial(t, port)).closed;
  assert.equal(server.connectionsOpen(), 2);
  assert.equal(tlsLogged[0]?.details?.['reason'], 'too many connections');
  first?.socket.end();
  await first?.closed;
  const served = await running.open();
  served.send(head('GET / HTTP/1.1'));
  assert.equal((await served.next()).status, 200);
  assert.equal(server.connectionsOpen(), 2);
  await (await dial(t, port)).closed;
});

test('SERVICE_MAX_CONNECTIONS_PER_CLIENT: handshakes of one client are limited, others are served', async (t) => {
  const config = { maxConnectionsPerClient: 2, trustedProxies: ['127.0.0.9'], headersTimeoutSeconds: 60 };
  const { port } = await startTls(t, { config });
  for (let count = 0; count < 2; count += 1) await dial(t, port);
  await (await dial(t, port)).closed;
  const other = await openRaw(t, port, { localAddress: '127.0.0.2', tls: { rejectUnauthorized: false } });
  other.send(head('GET / HTTP/1.1'));
  assert.equal((await other.next()).status, 200);
});

test('TLS: a malformed request, half a head and half a body get the answers that they get without', async (t) => {
  const { open, clock, checked } = await startTls(t, { config: { headersTimeoutSeconds: 3 } });
  const malformed = await open();
  malformed.send('nonsense\r\n\r\n');
  assertRefused(await malformed.next(), 400, 'malformed request');
  assert.equal(await malformed.rest(), '');
  const halfHead = await open();
  halfHead.send('GET / HTTP/1.1\r\nHost: paste.test\r\n');
  assertRefused(await halfHead.next(), 408, 'request took too long');
  const large = await open();
  large.send(head('GET / HTTP/1.1', `X-Large: ${'x'.repeat(20_000)}`));
  assert.equal((await large.next()).status, 431);
  const halfBody = await open();
  halfBody.send(head('POST / HTTP/1.1', 'Expect: 100-continue', 'Content-Length: 6'));
  assert.equal((await halfBody.next()).status, 100);
  await checked();
  clock.advance(10_001);
  assertRefused(await halfBody.next(), 408, 'request took too long');
});

test('TLS: a client that has closed its side gets its answer', async (t) => {
  const { open } = await startTls(t);
  const connection = await open();
  connection.socket.end(head('GET / HTTP/1.1'));
  assert.equal((await connection.next()).body.toString(), 'index\n');
  assert.equal(await connection.rest(), '');
});

test('TLS: an early 413 is seen whole by a client that sends everything first', async (t) => {
  const { open } = await startTls(t, { handlers: { collect: limited } });
  const content = Buffer.alloc(8 * MIB, 'x');
  const kinds = [
    [head('POST / HTTP/1.1', `Content-Length: ${content.length}`), content],
    [head('POST / HTTP/1.1', 'Transfer-Encoding: chunked'), chunked(content)],
  ] as const;
  for (const [requestHead, body] of kinds) {
    const connection = await open();
    connection.socket.pause();
    connection.send(requestHead);
    connection.send(body);
    if (connection.socket.writableLength > 0) await once(connection.socket, 'drain');
    connection.socket.resume();
    assertRefused(await connection.next(), 413, 'paste too large');
    assert.equal(await connection.rest(), '');
  }
});

test('TLS: a client that does not read is cut off after 10 s, not before', async (t) => {
  let given = 0;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (; given < 200; given += 1) yield Buffer.alloc(MIB);
  }
  const body = new StreamedBody(200 * MIB, chunks);
  const { open, clock, checked, server } = await startTls(t, {
    config: { minTransferRate: 100 * MIB }, handlers: { raw: () => ({ status: 200, headers: {}, body }) },
  });
  const connection = await open();
  connection.socket.pause();
  connection.send(head('GET /abcdef/raw HTTP/1.1'));
  // Until nothing fits into the buffers between the two any more.
  await stalled(() => given);
  assert.ok(given < 20, `${given} MiB were taken from the source`);
  await checked();
  clock.advance(9_900);
  await checked();
  assert.equal(server.connectionsOpen(), 1);
  clock.advance(200);
  await checked();
  connection.socket.resume();
  await assert.rejects(once(connection.socket, 'end'), { code: 'ECONNRESET' });
  assert.equal(server.connectionsOpen(), 0);
});

test('TLS: who floods with requests for new keys is cut off, and others are served', async (t) => {
  // The test calls for each look at the connections, when all of a flood has been read, however long that takes.
  t.mock.timers.enable({ apis: ['setInterval'] });
  const config = { maxConnectionsPerClient: 50, trustedProxies: ['127.0.0.9'], headersTimeoutSeconds: 60 };
  const running = await startTls(t, { config });
  const flood = async (count: number): Promise<Socket> => {
    const { socket, records } = await openForKeyUpdates(t, running.port, count);
    socket.write(records);
    await stalled(() => socket.bytesRead);
    assert.ok(socket.bytesRead > records.length, 'each was answered');
    return socket;
  };
  const polite = await flood(1000);
  t.mock.timers.tick(1000);
  const rude = await flood(MIB / 27 + 1);
  assert.equal(rude.destroyed, false);
  t.mock.timers.tick(1000);
  await once(rude, 'close');
  assert.equal(polite.destroyed, false);
  await assert.rejects(assertServes(running), { code: 'ECONNRESET' });
  const other = await openRaw(t, running.port, { localAddress: '127.0.0.2', tls: { rejectUnauthorized: false } });
  other.send(head('GET / HTTP/1.1'));
  assert.equal((await other.next()).status, 200);
});

test('stop over TLS: what is in flight is finished, idle, unused and unfinished connections are closed', async (t) => {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const running = await startTls(t, {
    config: { shutdownGraceSeconds: 60, headersTimeoutSeconds: 1 },
    handlers: {
      paste: async () => {
        begun.resolve();
        await gate.promise;
        return { status: 200, headers: {}, body: 'done' };
      },
    },
  });
  const { open, port, server, logged } = running;
  const idle = await open();
  idle.send(head('GET / HTTP/1.1'));
  await idle.next();
  const unused = await open();
  const silent = await dial(t, port);
  const halfway = await dial(t, port);
  halfway.socket.write('\x16\x03\x01', 'latin1');
  const busy = await open();
  busy.send(head('GET /abcdef HTTP/1.1') + head('GET / HTTP/1.1'));
  await begun.promise;
  const stopped = server.stop();
  assert.equal(await idle.rest(), '');
  assert.equal(await unused.rest(), '');
  await Promise.all([silent.closed, halfway.closed]);
  gate.resolve();
  const answer = await busy.next();
  assert.deepEqual([answer.body.toString(), answer.header('connection')], ['done', 'close']);
  assert.equal(await busy.rest(), '');
  await stopped;
  // When stop() resolves, nothing is left: the last request is logged too.
  assert.deepEqual(logged.map(({ details }) => details?.['status']), [200, 200, 499]);
});

test('stop over TLS: what was never used and half a handshake do not hold it up', { timeout: 30_000 }, async (t) => {
  const config = { shutdownGraceSeconds: 60, headersTimeoutSeconds: 60 };
  const { open, port, server } = await startTls(t, { config });
  const unused = await open();
  const halfway = await dial(t, port);
  halfway.socket.write('\x16\x03\x01', 'latin1');
  await assertServes({ open });
  await server.stop();
  assert.equal(await unused.rest(), '');
  await halfway.closed;
});

test('stop over TLS: at the end of the grace what is left is cut off', async (t) => {
  const { open, port, server } = await startTls(t, {
    config: { shutdownGraceSeconds: 0.2, headersTimeoutSeconds: 60 },
    handlers: { paste: () => new Promise(() => {}) },
  });
  const halfway = await dial(t, port);
  halfway.socket.write('\x16\x03\x01', 'latin1');
  const busy = await open();
  busy.send(head('GET /abcdef HTTP/1.1'));
  await server.stop();
  await halfway.closed;
  assert.equal(server.connectionsOpen(), 0);
});
