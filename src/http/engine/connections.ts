// The open connections: how many there may be, in all and of one client, what each has in progress, and whether its
// client takes what is written to it. Those that are still in their TLS handshake count too. Does not speak HTTP; how
// a connection ends is pace.ts.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Config } from '../../config/settings.ts';
import { clientKey } from '../../core/callers.ts';
import { Refusal, type RefusalName } from '../../core/refusals.ts';
import { type NetworkMatcher, type Origin, type Peer, plainAddress } from '../forwarded.ts';
import { BodyReader } from './body.ts';
import { Pace } from './pace.ts';
import { HeaderLines, type RequestBody } from './request.ts';

export interface Connection {
  readonly socket: Socket;
  readonly peer: Peer;
  /** In the order received. The first is being answered, the others wait for it. */
  readonly exchanges: Exchange[];
  /** A request has arrived on it. */
  hasAsked: boolean;
  /** What arrives from now on does not count: the answer that ends this connection is certain. */
  ignoresInput: boolean;
  /** Answers what came after the requests in progress and was none itself; called when these have been answered. */
  lastAnswer: (() => void) | undefined;
  /** While something written waits for the client to take it. */
  outgoing: Pace | undefined;
}

/**
 * The kernel reports that a client took something only when about a third of its send buffer (up to 4 MiB) is free
 * again. Time saved up by such a burst must last until the next one, or a client well above the minimum rate would
 * count as stalled.
 */
const MOST_ALLOWANCES = 3;

/** Ends the connection with this answer, in its turn. The first such answer stays. */
export function endWith(connection: Connection, answer: () => void): void {
  if (connection.ignoresInput) return;
  connection.ignoresInput = true;
  if (connection.exchanges.length === 0) answer();
  else connection.lastAnswer = answer;
}

/**
 * Of a unix socket. Only processes that its mode lets in connect, and a proxy is what it is for. Not every socket
 * without an address is one: a client of TCP that has gone already has none either.
 */
const LOCAL_PEER: Peer = { address: 'unix', isTrusted: true, tls: undefined };

export class Connections {
  /** As accepted: under TLS these carry what is encrypted. */
  readonly #admitted = new Set<Socket>();
  /** Those that HTTP is spoken on; without TLS the same sockets. */
  readonly #bySocket = new Map<Socket, Connection>();
  readonly #countByClient = new Map<string, number>();
  /** To be cut off. */
  readonly #tooSlow = new Set<Socket>();
  #isCuttingOff = false;
  readonly #config: Config;
  readonly #isTrustedProxy: NetworkMatcher;
  #peersAreLocal = false;

  constructor(config: Config, isTrustedProxy: NetworkMatcher) {
    this.#config = config;
    this.#isTrustedProxy = isTrustedProxy;
  }

  /** The server listens on a unix socket: to be called before the first connection. */
  expectLocalPeers(): void {
    this.#peersAreLocal = true;
  }

  get size(): number {
    return this.#admitted.size;
  }

  peerOf(socket: Socket): Peer {
    if (this.#peersAreLocal) return LOCAL_PEER;
    const address = plainAddress(socket.remoteAddress ?? '') ?? '';
    return { address, isTrusted: address !== '' && this.#isTrustedProxy(address), tls: undefined };
  }

  /** Counts a new connection until it closes; false when there are too many, in all or of this client. */
  admit(socket: Socket, { address, isTrusted }: Peer): boolean {
    const key = clientKey(address);
    if (this.#admitted.size >= this.#config.maxConnections) return false;
    if (!isTrusted && !this.#countClient(key)) return false;
    this.#admitted.add(socket);
    socket.once('close', () => {
      this.#admitted.delete(socket);
      if (!isTrusted) this.#discountClient(key);
    });
    return true;
  }

  /** HTTP begins on it, until it closes. */
  open(socket: Socket, peer: Peer): Connection {
    const connection: Connection = {
      socket,
      peer,
      exchanges: [],
      hasAsked: false,
      ignoresInput: false,
      lastAnswer: undefined,
      outgoing: undefined,
    };
    this.#bySocket.set(socket, connection);
    socket.once('close', () => this.#bySocket.delete(socket));
    return connection;
  }

  of(socket: Socket): Connection | undefined {
    return this.#bySocket.get(socket);
  }

  /**
   * Ends connections whose client takes less than the minimum rate, or sends mere framing; called about once a second.
   */
  checkPace(nowMs: number): void {
    const minBytesPerSecond = this.#config.minTransferRate;
    for (const connection of this.#bySocket.values()) {
      const { socket, outgoing } = connection;
      const arriving = connection.exchanges.at(-1)?.body;
      if (arriving instanceof BodyReader && arriving.isUnfinished) arriving.checkPieces();
      const waiting = socket.writableLength;
      const movedBytes = socket.bytesWritten - waiting;
      if (waiting === 0) connection.outgoing = undefined;
      else if (outgoing === undefined) {
        connection.outgoing = new Pace({ minBytesPerSecond, nowMs, movedBytes, mostAllowances: MOST_ALLOWANCES });
      } else if (outgoing.isTooSlow(nowMs, movedBytes)) this.#tooSlow.add(socket);
    }
    this.#cutOffNext();
  }

  /** Those that have been opened and never used; node does not count them as idle. */
  destroyUnused(): void {
    for (const socket of this.#admitted) if (socket.bytesRead === 0) socket.destroy();
    for (const socket of this.#bySocket.keys()) if (socket.bytesRead === 0) socket.destroy();
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

  /** One in a turn of the event loop: the kernel may take a millisecond to free what it held for it. */
  #cutOffNext(): void {
    const [socket] = this.#tooSlow;
    if (socket === undefined || this.#isCuttingOff) return;
    this.#isCuttingOff = true;
    this.#tooSlow.delete(socket);
    this.#cutOff(socket);
    setImmediate(() => {
      this.#isCuttingOff = false;
      this.#cutOffNext();
    });
  }

  /**
   * By a reset. Closed in any other way, the kernel would go on offering what the client does not take: megabytes that
   * are everyone's, for minutes, although the connection is no longer counted.
   */
  #cutOff(socket: Socket): void {
    if (this.#peersAreLocal) {
      socket.destroy();
      return;
    }
    // Under TLS the connection to reset is the one below, which node keeps under a name that its types do not know.
    const { _parent: below } = socket as Socket & { readonly _parent?: Socket | null };
    (below ?? socket).resetAndDestroy();
  }

  #countClient(key: string): boolean {
    const most = this.#config.maxConnectionsPerClient;
    const count = this.#countByClient.get(key) ?? 0;
    if (most !== 0 && count >= most) return false;
    this.#countByClient.set(key, count + 1);
    return true;
  }

  #discountClient(key: string): void {
    const count = this.#countByClient.get(key) ?? 0;
    if (count > 1) this.#countByClient.set(key, count - 1);
    else this.#countByClient.delete(key);
  }
}

export interface Exchange {
  readonly connection: Connection;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  readonly requestId: string;
  readonly headers: HeaderLines;
  readonly origin: Origin;
  readonly startedMs: number;
  readonly body: RequestBody;
  /** Why it is refused whatever it asks for: its form. Then one can't tell where it ends. */
  readonly malformed: Refusal | undefined;
  /** The pattern of the path, once it is known. */
  route: string;
  /** Of the answer; 0 before there is one. */
  status: number;
  refusal: RefusalName | undefined;
  sentBytes: number;
  /** Its answer ends the connection. */
  isLast: boolean;
  /** The answer has been written, or the client has gone. */
  isOver: boolean;
  /** Ends the writer's wait for a client that has gone. */
  wake: (() => void) | undefined;
}
