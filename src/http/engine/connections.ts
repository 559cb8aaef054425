// The open connections: how many there may be, in all and of one client, whether each client takes what is written to
// it, and how a connection is closed under an answer. Those in their TLS handshake count too. Does not speak HTTP.

import { Socket } from 'node:net';
import type { Config } from '../../config/settings.ts';
import { clientKey } from '../../core/callers.ts';
import { MIB } from '../../core/time.ts';
import { Pace, Turns } from './body.ts';
import { networkMatcher, plainAddress } from './head.ts';
import { Connection, type Peer } from './request.ts';

/**
 * The kernel reports what a client took only when about a third of its send buffer (up to 4 MiB) is free again. Time
 * saved up by such a burst must last until the next, or a client well above the minimum rate would count as stalled.
 */
const MAX_ALLOWANCES = 3;

/** Peers on a unix socket count as trusted proxies: file permissions decide who can connect. */
const LOCAL_PEER: Peer = { address: 'unix', isTrusted: true, tls: undefined };

export class Connections {
  /** As accepted: under TLS these carry what is encrypted. */
  readonly #admitted = new Set<Socket>();
  /** Those that HTTP is spoken on; without TLS the same sockets. */
  readonly #bySocket = new Map<Socket, Connection>();
  readonly #countByClient = new Map<string, number>();
  /** Of connections to cut off: the kernel may take a millisecond to free what it held for one. */
  readonly #turns = new Turns();
  readonly #config: Config;
  readonly #isTrustedProxy: ReturnType<typeof networkMatcher>;
  /** The server listens on a unix socket: to be said before the first connection. */
  peersAreLocal = false;

  constructor(config: Config) {
    this.#config = config;
    this.#isTrustedProxy = networkMatcher(config.trustedProxies);
  }

  get size(): number {
    return this.#admitted.size;
  }

  /** Not every socket without an address is a local one: a client of TCP that has gone already has none either. */
  peerOf(socket: Socket): Peer {
    if (this.peersAreLocal) return LOCAL_PEER;
    const address = plainAddress(socket.remoteAddress ?? '') ?? '';
    return { address, isTrusted: address !== '' && this.#isTrustedProxy(address), tls: undefined };
  }

  /** Counts a new connection until it closes; false when there are too many, in all or of this client. */
  admit(socket: Socket, { address, isTrusted }: Peer): boolean {
    const key = clientKey(address);
    const { maxConnections, maxConnectionsPerClient } = this.#config;
    if (this.#admitted.size >= maxConnections) return false;
    const ofClient = this.#countByClient.get(key) ?? 0;
    if (!isTrusted && maxConnectionsPerClient !== 0 && ofClient >= maxConnectionsPerClient) return false;
    if (!isTrusted) this.#countByClient.set(key, ofClient + 1);
    this.#admitted.add(socket);
    socket.once('close', () => {
      this.#admitted.delete(socket);
      if (isTrusted) return;
      const others = this.#countByClient.get(key)! - 1;
      if (others > 0) this.#countByClient.set(key, others);
      else this.#countByClient.delete(key);
    });
    return true;
  }

  /** HTTP begins on it. */
  open(socket: Socket, peer: Peer): Connection {
    const connection = new Connection(socket, peer);
    this.#bySocket.set(socket, connection);
    socket.once('close', () => this.#bySocket.delete(socket));
    return connection;
  }

  of(socket: Socket): Connection | undefined {
    return this.#bySocket.get(socket);
  }

  /** Ends connections whose client takes less than the minimum rate, or sends mere framing; once a second or so. */
  check(nowMs: number): void {
    const minBytesPerSecond = this.#config.minTransferRate;
    for (const connection of this.#bySocket.values()) {
      const { socket, outgoing } = connection;
      for (const { body } of connection.requests) body.check(nowMs);
      const waiting = socket.writableLength;
      const movedBytes = socket.bytesWritten - waiting;
      if (waiting === 0) connection.outgoing = undefined;
      else if (outgoing === undefined) {
        connection.outgoing = new Pace({ minBytesPerSecond, nowMs, movedBytes, maxAllowances: MAX_ALLOWANCES });
      } else if (outgoing.isTooSlow(nowMs, movedBytes)) void this.#cutOff(socket);
    }
  }

  /** By a reset: else the kernel would offer for minutes, uncounted, the megabytes that the client does not take. */
  async #cutOff(socket: Socket): Promise<void> {
    await this.#turns.wait();
    // Under TLS the connection to reset is the one below, which node keeps under a name that its types do not know. One
    // that has ended meanwhile may be refused (UV_EINVAL), and would then never be said to have closed.
    const { _parent: below } = socket as Socket & { readonly _parent?: Socket | null };
    if (this.peersAreLocal || socket.writableEnded) socket.destroy();
    else (below ?? socket).resetAndDestroy();
  }

  /** Those never used, and those that node's `closeIdle` closes, unless their client is still to take an answer. */
  destroyIdle(closeIdle: () => void): void {
    for (const socket of [...this.#admitted, ...this.#bySocket.keys()]) if (socket.bytesRead === 0) socket.destroy();
    const busy = [...this.#bySocket.values()].filter(({ requests }) => requests.length > 0);
    // To node an answer is over once its end is written, however much of it waits here for the client.
    for (const { socket } of busy) socket.destroy = () => socket;
    closeIdle();
    for (const { socket } of busy) Reflect.deleteProperty(socket, 'destroy');
  }

  destroyAll(): void {
    for (const socket of this.#admitted) socket.destroy();
  }

  /** Resolves when the sockets there are have closed, which is a little after node's server has let go of them. */
  async gone(): Promise<void> {
    for (const sockets of [this.#admitted, this.#bySocket]) {
      for (const socket of sockets.keys()) await new Promise((resolve) => socket.once('close', resolve));
    }
  }
}

/** Past bytes or time a connection is cut off; more sockets than these at a time are closed without lingering. */
const LINGER_BOUNDS = { maxBytes: 64 * MIB, maxMs: 5000, maxSockets: 64 };

/** The lingering close (RFC 9112 section 9.6): to close at once would reset the connection under an unread answer. */
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
    // After a pause it was the parser that made the handle read again; resume() alone takes the handle to be reading.
    socket._read(0);
  }

  /** Makes node:http close the connection in this way, when it does so after the answer in progress. */
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
