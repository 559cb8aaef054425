// The open connections: how many there may be, in all and of one client; whether each client takes what is written to
// it; how a connection is closed after an answer. A connection in its TLS handshake counts too. Does not speak HTTP.

import { Socket } from 'node:net';
import type { Config } from '../../config/settings.ts';
import { clientKey } from '../../core/callers.ts';
import { addTo, MIB } from '../../core/time.ts';
import { Pace, Turns } from './body.ts';
import { networkMatcher, plainAddress } from './head.ts';
import { Connection, type Origin, type Peer } from './request.ts';

/** What a client took is reported by thirds of a send buffer (of up to 4 MiB): saved time must last until the next. */
const MAX_ALLOWANCES = 3;

/**
 * How much TLS framing a client may send in a second, beyond as many bytes as its content has. A record of one byte has
 * 22 bytes around it; a KeyUpdate (RFC 8446 section 4.6.3) is all framing, and as much work as kilobytes of content.
 */
const MAX_FRAMING_BYTES = MIB;

/** A client that sent more is not admitted again for this long: each new connection could begin with megabytes. */
const BARRED_MS = 60_000;

export class Connections {
  /** The sockets as accepted (under TLS they carry the encrypted bytes), each with the client it counts for, if any. */
  readonly #admitted = new Map<Socket, string | undefined>();
  /** The sockets that carry HTTP; without TLS they are the same ones. */
  readonly #bySocket = new Map<Socket, Connection>();
  readonly #countByClient = new Map<string, number>();
  /** Connections are cut off in turns: the kernel may take a millisecond to free what it held for one. */
  readonly #turns = new Turns();
  readonly #config: Config;
  readonly #isTrustedProxy: ReturnType<typeof networkMatcher>;
  /** Whether the server listens on a unix socket; to be set before the first connection. */
  peersAreLocal = false;

  constructor(config: Config) {
    this.#config = config;
    this.#isTrustedProxy = networkMatcher(config.trustedProxies);
  }

  get size(): number {
    return this.#admitted.size;
  }

  /** A socket without an address need not be a local one: a TCP client that has gone already has none either. */
  peerOf(socket: Socket): Peer {
    // Peers on a unix socket count as trusted proxies: file permissions decide who can connect.
    if (this.peersAreLocal) return { address: 'unix', isTrusted: true, tls: undefined };
    const address = plainAddress(socket.remoteAddress ?? '') ?? '';
    return { address, isTrusted: address !== '' && this.#isTrustedProxy(address), tls: undefined };
  }

  /** Counts a new connection until it closes; false when there are too many, in all or of this client. */
  admit(socket: Socket, peer: Peer): boolean {
    const { maxConnections, maxConnectionsPerClient } = this.#config;
    if (this.#admitted.size >= maxConnections) return false;
    const ofClient = this.#countByClient.get(clientKey(peer.address)) ?? 0;
    if (!peer.isTrusted && maxConnectionsPerClient !== 0 && ofClient >= maxConnectionsPerClient) return false;
    this.#countFor(socket, peer.isTrusted ? undefined : clientKey(peer.address));
    socket.once('close', () => {
      this.#countFor(socket, undefined);
      this.#admitted.delete(socket);
    });
    return true;
  }

  /** A proxy's connection counts for the client whose request it brought last; false when that client has too many. */
  admitForwarded({ socket, peer }: Connection, { isForwarded, clientAddress }: Origin): boolean {
    const [own, most] = [belowOf(socket), this.#config.maxConnectionsPerClient];
    if (!isForwarded || most === 0 || !this.#admitted.has(own)) return true;
    const client = clientAddress === peer.address ? undefined : clientKey(clientAddress);
    this.#countFor(own, client);
    if (client === undefined || this.#countByClient.get(client)! <= most) return true;
    // Cuts off an idle one: on it the proxy may wait for ever for the client to take an answer that the kernel holds.
    const idle = [...this.#bySocket.values()].find(({ socket, requests }) => (
      requests.length === 0 && socket.writableLength === 0 && this.#admitted.get(belowOf(socket)) === client
    ));
    this.#countFor(idle === undefined ? own : belowOf(idle.socket), undefined);
    if (idle !== undefined) void this.#cutOff(idle.socket);
    return idle !== undefined;
  }

  #countFor(socket: Socket, client: string | undefined): void {
    const before = this.#admitted.get(socket);
    if (before !== undefined) addTo(this.#countByClient, before, -1);
    if (client !== undefined) addTo(this.#countByClient, client, 1);
    this.#admitted.set(socket, client);
  }

  /** To be called when HTTP begins on the socket. */
  open(socket: Socket, peer: Peer): Connection {
    const connection = new Connection(socket, peer);
    this.#bySocket.set(socket, connection);
    socket.once('close', () => this.#bySocket.delete(socket));
    return connection;
  }

  of(socket: Socket): Connection | undefined {
    return this.#bySocket.get(socket);
  }

  /** Ends connections whose client is slower than the minimum rate or sends mere framing; called about every second. */
  check(nowMs: number): void {
    const { minTransferRate: minBytesPerSecond, maxConnectionsPerClient } = this.#config;
    for (const connection of this.#bySocket.values()) {
      const { socket, peer, outgoing } = connection;
      for (const { body } of connection.requests) body.check(nowMs);
      const framingBytes = belowOf(socket).bytesRead - 2 * socket.bytesRead;
      if (framingBytes > connection.framingBytes + MAX_FRAMING_BYTES) {
        const bar = (more: number) => peer.isTrusted || addTo(this.#countByClient, clientKey(peer.address), more);
        bar(maxConnectionsPerClient);
        setTimeout(bar, BARRED_MS, -maxConnectionsPerClient).unref();
        void this.#cutOff(socket);
      }
      connection.framingBytes = framingBytes;
      const waiting = socket.writableLength;
      const movedBytes = socket.bytesWritten - waiting;
      if (waiting === 0) connection.outgoing = undefined;
      else if (outgoing === undefined) {
        connection.outgoing = new Pace({ minBytesPerSecond, nowMs, movedBytes, maxAllowances: MAX_ALLOWANCES });
      } else if (outgoing.isTooSlow(nowMs, movedBytes)) void this.#cutOff(socket);
    }
  }

  /** By a reset: else the kernel would hold for minutes, uncounted, the megabytes that the client does not take. */
  async #cutOff(socket: Socket): Promise<void> {
    await this.#turns.wait();
    // The reset of a socket that has ended meanwhile may fail (UV_EINVAL), and then `close` would never be emitted.
    if (this.peersAreLocal || socket.writableEnded) socket.destroy();
    else belowOf(socket).resetAndDestroy();
  }

  /** Destroys unused connections, and those that `closeIdle` closes unless the client has yet to take an answer. */
  destroyIdle(closeIdle: () => void): void {
    const used = new Set([...this.#bySocket.keys()].filter(({ bytesRead }) => bytesRead > 0).map(belowOf));
    for (const socket of this.#admitted.keys()) if (!used.has(socket)) socket.destroy();
    const busy = [...this.#bySocket.values()].filter(({ requests }) => requests.length > 0);
    // For node an answer is over once its end is written, however much of it still waits here for the client.
    for (const { socket } of busy) socket.destroy = () => socket;
    closeIdle();
    for (const { socket } of busy) Reflect.deleteProperty(socket, 'destroy');
  }

  destroyAll(): void {
    for (const socket of this.#admitted.keys()) socket.destroy();
  }

  /** Resolves when all present sockets have closed, which is a little after node's server has let go of them. */
  async gone(): Promise<void> {
    const sockets = [...this.#admitted.keys(), ...this.#bySocket.keys()];
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve))));
  }
}

/** Under TLS the socket with the encrypted bytes, which node keeps under a name that its types do not know. */
function belowOf(socket: Socket & { readonly _parent?: Socket | null }): Socket {
  return socket._parent ?? socket;
}

/** Past these bytes or this time a connection is cut off; sockets beyond `maxSockets` at a time do not linger. */
const LINGER_BOUNDS = { maxBytes: 64 * MIB, maxMs: 5000, maxSockets: 64 };

/** The lingering close (RFC 9112 section 9.6): closing at once would reset the connection before the answer is read. */
export class Lingering {
  readonly #bounds: typeof LINGER_BOUNDS;
  readonly #timers = new Map<Socket, NodeJS.Timeout>();

  constructor(bounds = LINGER_BOUNDS) {
    this.#bounds = { ...bounds };
  }

  /** Requests that still arrive are not parsed any more. */
  close(socket: Socket): void {
    if (socket.destroyed || this.#timers.has(socket)) return;
    if (this.#timers.size >= this.#bounds.maxSockets) return Socket.prototype.destroySoon.call(socket);
    let leftBytes = this.#bounds.maxBytes;
    // node's parser is one of these listeners; adding another takes the socket's handle back from it.
    socket.removeAllListeners('data').on('data', (bytes: Uint8Array) => {
      leftBytes -= bytes.length;
      if (leftBytes < 0) socket.destroy();
    });
    socket.once('close', () => {
      clearTimeout(this.#timers.get(socket));
      this.#timers.delete(socket);
    });
    this.#limit(socket);
    socket.end();
    socket.resume();
    // After a pause the parser was what made the handle read again; resume() alone assumes that the handle is reading.
    socket._read(0);
  }

  /** Makes node:http close the connection in this way, if it closes it after the answer in progress. */
  arm(socket: Socket): void {
    socket.destroySoon = () => this.close(socket);
  }

  /** From now on no connection lingers longer than this: the process is about to end. */
  hurry(ms: number): void {
    this.#bounds.maxMs = Math.min(this.#bounds.maxMs, ms);
    for (const socket of this.#timers.keys()) this.#limit(socket);
  }

  #limit(socket: Socket): void {
    clearTimeout(this.#timers.get(socket));
    this.#timers.set(socket, setTimeout(() => socket.destroy(), this.#bounds.maxMs));
  }
}
