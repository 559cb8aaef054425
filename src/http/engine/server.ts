// The HTTP server: puts the parts of this folder around node:http, listens and stops. What happens to one request is
// exchange.ts; node's own answers, time-outs and parser failures are all replaced here by ours. TLS is tls.ts.

import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Config } from '../../config/settings.ts';
import type { Log } from '../../core/events.ts';
import { type Clock, KIB, type RandomBytes } from '../../core/time.ts';
import { createForwarding, type Forwarding, networkMatcher, type Peer } from '../forwarded.ts';
import { type Bound, listenAt, type ListeningPlace, publicPlace } from '../listening.ts';
import { createRouter, type Route, ROUTES } from '../routes.ts';
import type { Tls } from '../tls.ts';
import { BODIES_AT_ONCE, type BodyTransfers } from './body.ts';
import { Connections, endWith } from './connections.ts';
import { type ClientError, createExchanges, type Exchanges, handleClientError } from './exchange.ts';
import { hostOf } from './host.ts';
import { createServer } from './node-http.ts';
import { createLingering, createTurns, type Lingering } from './pace.ts';
import {
  createNoteAnswered, createRawAnswer, createReplyWriter, type RawAnswer, type RequestMetrics,
} from './reply-writer.ts';
import type { Handler } from './reply.ts';
import { createRequestIds, HeaderLines } from './request.ts';

export interface HttpServerOptions {
  readonly config: Config;
  /** One for every name in the table of routes. */
  readonly handlers: Readonly<Record<string, Handler>>;
  readonly routes?: readonly Route[];
  /** How often time-outs and rates are looked at, and so how exact they are; a second unless given. */
  readonly checkIntervalMs?: number;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly log: Log;
  readonly metrics?: RequestMetrics | undefined;
  /** Called when a request was refused for want of room. */
  readonly onStorageFull?: () => void;
  /** Makes it HTTPS, with the certificate and the trust that this has at each moment. */
  readonly tls?: Tls | undefined;
}

export interface ListeningAddress {
  /** Of a unix socket its path, `(inherited)` where that is unknown; its port is 0. */
  readonly host: string;
  readonly port: number;
  /** `http://host:port` or `https://host:port`, or `unix:` and the path. */
  readonly url: string;
}

export interface HttpServer {
  /** Where the settings say, unless a place is given. Rejects with ListeningError. */
  listen(place?: ListeningPlace): Promise<ListeningAddress>;
  /**
   * Takes no new connections, lets requests in flight finish within SERVICE_SHUTDOWN_GRACE, closes what is idle.
   * Resolves when no connection is left; calling it again gives the same promise.
   */
  stop(): Promise<void>;
  /** From the moment stop() is called. */
  isStopping(): boolean;
  /** Connections that are open now. */
  connectionsOpen(): number;
  /** SERVICE_PROXY_SECRET for requests from now on. */
  replaceProxySecret(proxySecret: string): void;
}

const MAX_HEADER_BYTES = 16 * KIB;

/** How often a server that stops looks for connections that have become idle. */
const STOP_CHECK_MS = 250;

/** Within the second in which a server without requests in flight must have stopped. */
const STOP_LINGER_MS = 500;

/** Nothing listens yet. Throws when a route of the table has no handler. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { config, log, checkIntervalMs = 1000 } = options;
  let stopped: Promise<void> | undefined;
  const isStopping = (): boolean => stopped !== undefined;
  const { server, connections, lingering, forwarding, checkPace } = assemble(options, checkIntervalMs, isStopping);
  let checks: NodeJS.Timeout | undefined;
  return {
    listen: async (place = publicPlace(config, 0)) => {
      const bound = await listenAt(server, place);
      if ('path' in bound) connections.expectLocalPeers();
      // Such as EMFILE when a connection can't be accepted: the next one may be.
      server.on('error', ({ message }) => {
        log({ level: 'error', logger: 'http', event: 'accepting failed', details: { error: message } });
      });
      checks = setInterval(checkPace, checkIntervalMs);
      return listeningAddress(bound, options.tls === undefined ? 'http' : 'https');
    },
    stop: () => {
      stopped ??= stop(server, { connections, lingering, graceMs: 1000 * config.shutdownGraceSeconds })
        .finally(() => clearInterval(checks));
      return stopped;
    },
    isStopping,
    connectionsOpen: () => connections.size,
    replaceProxySecret: forwarding.replaceProxySecret,
  };
}

interface Assembly {
  readonly server: Server;
  readonly connections: Connections;
  readonly lingering: Lingering;
  readonly forwarding: Forwarding;
  /** Ends transfers that are too slow. */
  readonly checkPace: () => void;
}

function assemble(options: HttpServerOptions, checkIntervalMs: number, isStopping: () => boolean): Assembly {
  const { config, handlers, routes = ROUTES, clock, random, log, tls } = options;
  const missing = routes.find((route) => handlers[route.name] === undefined);
  if (missing !== undefined) throw new TypeError(`route ${missing.name} has no handler`);

  const isTrustedProxy = networkMatcher(config.trustedProxies);
  const connections = new Connections(config, isTrustedProxy);
  const lingering = createLingering();
  const requestIds = createRequestIds(random);
  const router = createRouter(routes);
  const noteAnswered = createNoteAnswered(log, options.metrics, options.onStorageFull);
  const active: BodyTransfers['active'] = new Set();
  const forwarding = createForwarding({ config, random, isTrustedProxy });
  const exchanges = createExchanges({
    router,
    handlers,
    forwarding,
    requestIds,
    transfers: {
      minBytesPerSecond: config.minTransferRate,
      nowMs: clock.monotonicMs,
      active,
      turns: createTurns(BODIES_AT_ONCE),
    },
    writeReply: createReplyWriter({ lingering, isStopping }),
    clock,
    log,
    noteAnswered,
  });
  const server = createNodeServer(config, checkIntervalMs, tls);
  const answerRaw = createRawAnswer({ clock, noteAnswered, lingering, requestIds });
  connect(server, { connections, exchanges, answerRaw, allow: router.allow, tls });
  const checkPace = (): void => {
    for (const transfer of active) transfer.checkPace();
    connections.checkPace(clock.monotonicMs());
  };
  return { server, connections, lingering, forwarding, checkPace };
}

/** Every time-out that node has for a whole body is off: the minimum rate takes its place. */
function createNodeServer(config: Config, checkIntervalMs: number, tls: Tls | undefined): Server {
  const headersTimeout = 1000 * config.headersTimeoutSeconds;
  const options: ServerOptions = {
    connectionsCheckingInterval: checkIntervalMs,
    headersTimeout,
    keepAliveTimeout: 1000 * config.idleTimeoutSeconds,
    requestTimeout: 0,
    maxHeaderSize: MAX_HEADER_BYTES,
    requireHostHeader: false,
    // Requests without a body need no stream for it.
    optimizeEmptyRequests: true,
  };
  // A handshake has the time that a head has.
  const server = tls === undefined ? createServer(options) : tls.createServer(options, headersTimeout);
  // 0 is no limit: node would drop the lines past one without a word, and form.ts refuses them.
  server.maxHeadersCount = 0;
  // A client that has sent its request and closed its side still gets the answer; node's types do not know this switch.
  return Object.assign(server, { httpAllowHalfOpen: true });
}

interface ConnectParts {
  readonly connections: Connections;
  readonly exchanges: Exchanges;
  readonly answerRaw: RawAnswer;
  readonly allow: string;
  readonly tls: Tls | undefined;
}

/** Listens for everything that node would otherwise answer by itself. */
function connect(server: Server, parts: ConnectParts): void {
  const { connections, exchanges, answerRaw, allow } = parts;
  const receive = (req: IncomingMessage, res: ServerResponse): void => {
    const connection = connections.of(req.socket);
    if (connection !== undefined) exchanges.receive(connection, req, res);
  };
  server.on('request', receive).on('checkContinue', receive).on('checkExpectation', receive);

  accept(server, parts);

  server.on('clientError', (error: ClientError, socket) => {
    const connection = connections.of(socket as Socket);
    if (connection !== undefined) handleClientError(error, connection, answerRaw);
  });

  server.on('connect', (req, socket) => {
    const connection = connections.of(socket as Socket);
    if (connection === undefined) return;
    // node has let go of the socket, and stopped reading it, even when it was lingering already.
    socket.resume();
    const presentedRequestId = new HeaderLines(req.rawHeaders).only('x-request-id');
    const context = { method: 'CONNECT', presentedRequestId, allow };
    endWith(connection, () => answerRaw(connection.socket, 'methodNotAllowed', context));
  });
}

/** Takes connections in. Under TLS they are counted when they are accepted, and opened when their handshake is done. */
function accept(server: Server, { connections, exchanges, answerRaw, tls }: ConnectParts): void {
  const open = (socket: Socket, peer: Peer): void => {
    const connection = connections.open(socket, peer);
    socket.once('close', () => exchanges.abandon(connection));
  };

  server.on('connection', (socket: Socket) => {
    // Whatever befalls a socket ends in its `close`.
    socket.on('error', () => {});
    const peer = connections.peerOf(socket);
    const isAdmitted = connections.admit(socket, peer);
    if (tls === undefined) {
      if (isAdmitted) open(socket, peer);
      else answerRaw(socket, 'connectionsExhausted');
    } else if (!isAdmitted) {
      // An answer would cost a handshake first.
      socket.destroy();
      tls.noteFailure('too many connections');
    }
  });
  if (tls === undefined) return;

  server.on('secureConnection', (socket: TLSSocket) => {
    socket.on('error', () => {});
    // As for plain HTTP; who closes its side in the middle of a handshake has gone.
    socket.allowHalfOpen = true;
    open(socket, { ...connections.peerOf(socket), tls: tls.presentedBy(socket) });
  });
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    socket.destroy();
    // A peer that leaves without a word is no failure: those who look whether the port is open do.
    if (error.code !== 'ECONNRESET') tls.noteFailure(error.code ?? 'unknown error');
  });
}

function listeningAddress(bound: Bound, scheme: 'http' | 'https'): ListeningAddress {
  if ('path' in bound) return { host: bound.path, port: 0, url: `unix:${bound.path}` };
  return { host: bound.address, port: bound.port, url: `${scheme}://${hostOf(bound.address, bound.port)}` };
}

/** Half-sent requests are still timed out meanwhile: `close` of node:http would end that, that of node:net does not. */
async function stop(
  server: Server,
  parts: { connections: Connections; lingering: Lingering; graceMs: number },
): Promise<void> {
  const { connections, lingering, graceMs } = parts;
  const closed = new Promise((resolve) => NetServer.prototype.close.call(server, resolve));
  lingering.hurry(STOP_LINGER_MS);
  // Not sooner: whoever is about to send on an idle connection could not know better, and each answer now ends its own.
  const idle = setInterval(() => {
    server.closeIdleConnections();
    connections.destroyUnused();
  }, STOP_CHECK_MS);
  const grace = setTimeout(() => {
    connections.destroyAll();
    lingering.hurry(0);
  }, graceMs);
  await closed;
  await connections.gone();
  clearInterval(idle);
  clearTimeout(grace);
  server.close();
}
