// Connections, mostly over fake sockets: how fast a client takes what is written to it, and who the client is.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import test from 'node:test';
import { MIB } from '../../src/core/time.ts';
import { Connections } from '../../src/http/engine/connections.ts';
import type { Origin, Request } from '../../src/http/engine/request.ts';
import { testConfig } from '../support/test-config.ts';

const RATE = 1000;

class FakeSocket extends EventEmitter {
  remoteAddress: string | undefined = '192.0.2.1';
  bytesRead = 0;
  bytesWritten = 0;
  writableLength = 0;
  isCutOff = false;

  resetAndDestroy(): void {
    this.isCutOff = true;
  }
}

/** `at` sets how many bytes were written and how many of them wait, then checks the connection at that time. */
function watched() {
  const socket = new FakeSocket();
  const connections = new Connections(testConfig({ minTransferRate: RATE, trustedProxies: [] }));
  connections.open(socket as unknown as Socket, connections.peerOf(socket as unknown as Socket));
  const at = async (seconds: number, bytesWritten: number, writableLength: number): Promise<boolean> => {
    Object.assign(socket, { bytesWritten, writableLength });
    connections.check(seconds * 1000);
    await new Promise((resolve) => setImmediate(resolve));
    return socket.isCutOff;
  };
  return at;
}

test('Connections: time in which nothing waits to be taken is not counted', async () => {
  const at = watched();
  assert.equal(await at(0, 500, 500), false);
  assert.equal(await at(5, 500, 0), false);
  assert.equal(await at(100, 500, 0), false, 'an idle connection');
  assert.equal(await at(101, 900, 400), false);
  assert.equal(await at(111, 900, 400), false);
  assert.equal(await at(112, 900, 400), true);
});

test('Connections: what is taken in a burst lasts for 30 s, and no longer', async () => {
  const at = watched();
  assert.equal(await at(0, 1_000_000, 900_000), false);
  assert.equal(await at(1, 1_000_000, 500_000), false);
  assert.equal(await at(31, 1_000_000, 500_000), false);
  assert.equal(await at(32, 1_000_000, 500_000), true);
});

test('Connections: who sends a megabyte of mere TLS in a second is cut off, and barred for a minute', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const connections = new Connections(testConfig({ maxConnectionsPerClient: 50, trustedProxies: ['192.0.2.9'] }));
  const admits = (remoteAddress: string): boolean => {
    const another = Object.assign(new FakeSocket(), { remoteAddress }) as unknown as Socket;
    const isAdmitted = connections.admit(another, connections.peerOf(another));
    another.emit('close');
    return isAdmitted;
  };
  const dial = (remoteAddress: string) => {
    const below = Object.assign(new FakeSocket(), { remoteAddress });
    const socket = Object.assign(new FakeSocket(), { _parent: below });
    const peer = connections.peerOf(below as unknown as Socket);
    assert.ok(connections.admit(below as unknown as Socket, peer));
    connections.open(socket as unknown as Socket, peer);
    return async (received: number, handedOn: number): Promise<boolean> => {
      below.bytesRead += received;
      socket.bytesRead += handedOn;
      connections.check(0);
      await new Promise((resolve) => setImmediate(resolve));
      return below.isCutOff;
    };
  };

  const receive = dial('192.0.2.1');
  for (let second = 0; second < 5; second += 1) assert.equal(await receive(MIB, 0), false);
  assert.equal(await receive(3 * MIB, MIB), false, 'as much again as it hands on');
  assert.equal(await receive(100 * MIB, 99 * MIB), false);
  assert.equal(await receive(MIB, 0), false, 'what was handed on before is of no use now');
  assert.ok(admits('192.0.2.1'));
  assert.equal(await receive(MIB + 1, 0), true);
  assert.deepEqual([admits('192.0.2.1'), admits('192.0.2.2')], [false, true]);
  t.mock.timers.tick(59_999);
  assert.equal(admits('192.0.2.1'), false);
  t.mock.timers.tick(1);
  assert.equal(admits('192.0.2.1'), true);

  assert.equal(await dial('192.0.2.9')(2 * MIB, 0), true);
  assert.equal(admits('192.0.2.9'), true, 'a trusted proxy');
});

test('Connections: of too many of a client behind a proxy the first is cut off that has nothing left to send', async () => {
  const connections = new Connections(testConfig({ maxConnectionsPerClient: 2, trustedProxies: ['192.0.2.1'] }));
  const origin = { isForwarded: true, clientAddress: '203.0.113.1' } as Origin;
  const ask = (socket: FakeSocket): boolean => {
    const peer = connections.peerOf(socket as unknown as Socket);
    assert.ok(connections.admit(socket as unknown as Socket, peer));
    const connection = connections.open(socket as unknown as Socket, peer);
    // The connection has this request until it is answered.
    connection.requests.push({} as Request);
    const isAdmitted = connections.admitForwarded(connection, origin);
    connection.requests.pop();
    return isAdmitted;
  };
  const [first, second, third, fourth, fifth] = Array.from({ length: 5 }, () => new FakeSocket()) as FakeSocket[] & { length: 5 };
  first!.writableLength = 1;
  second!.writableLength = 1;
  assert.deepEqual([first, second, third].map((socket) => ask(socket!)), [true, true, false]);
  second!.writableLength = 0;
  assert.equal(ask(fourth!), true);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([first, second, third, fourth].map((socket) => socket!.isCutOff), [false, true, false, false]);
  first!.emit('close');
  assert.equal(ask(fifth!), true);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(fourth!.isCutOff, false, 'there was room');
});

test('Connections: a client of TCP that has gone already has no address, and is nobody to trust', () => {
  const socket = Object.assign(new FakeSocket(), { remoteAddress: undefined }) as unknown as Socket;
  const connections = new Connections(testConfig({ trustedProxies: ['0.0.0.0/0', '::/0'] }));
  assert.deepEqual(connections.peerOf(socket), { address: '', isTrusted: false, tls: undefined });
  assert.equal(connections.admit(socket, connections.peerOf(socket)), true);
});

test('Connections: one that ends before its turn to be cut off is closed, and let go of', async (t) => {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const connections = new Connections(testConfig({ minTransferRate: RATE, trustedProxies: [] }));
  const accepted: Socket[] = [];
  for (const _ of ['the first', 'the second']) {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
    t.after(() => client.destroy());
    const [socket] = await once(server, 'connection') as [Socket];
    socket.on('error', () => {});
    accepted.push(Object.defineProperty(socket, 'writableLength', { value: 1 }));
    connections.admit(socket, connections.peerOf(socket));
    connections.open(socket, connections.peerOf(socket));
  }
  connections.check(0);
  // The second socket's turn to be cut off comes right after this end(), before libuv has carried that out.
  setImmediate(() => accepted[1]!.end());
  connections.check(60_000);
  const closed = accepted.map((socket) => once(socket, 'close', { signal: AbortSignal.timeout(2000) }));
  await Promise.all(closed);
  assert.equal(connections.size, 0);
});
