// The HTTP server: puts the parts of this folder around node:http, listens and stops. What happens to one request is
// exchange.ts; node's own answers, time-outs and parser failures are all replaced here by ours.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type AddressInfo, type ListenOptions, type Socket } from 'node:net';
import type { Config } from '../config/settings.ts';
import type { Log } from '../core/log.ts';
import type { RandomBytes } from '../core/random.ts';
import { KIB, type Clock } from '../core/time.ts';
import { createNoteAnswered, type RequestMetrics } from './answered.ts';
import type { BodyTransfers } from './body.ts';
import { handleClientError, type ClientError } from './client-errors.ts';
import { Connections, endWith } from './connections.ts';
import { createExchanges, type Exchanges } from './exchange.ts';
import { createForwarding } from './forwarded.ts';
import type { Handler } from './handler.ts';
import { HeaderLines } from './header-lines.ts';
import { hostOf } from './host.ts';
import { createLingering, type Lingering } from './linger.ts';
import { networkMatcher } from './networks.ts';
import { createRawAnswer, type RawAnswer } from './raw-answer.ts';
import { createReplyWriter } from './reply-writer.ts';
import { createRequestIds } from './request-id.ts';
import { createRouter } from './router.ts';
import { ROUTES, type Route } from './routes.ts';

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
  readonly metrics?: RequestMetrics;
}

export interface ListeningAddress {
  /** The path of a unix socket, whose port is 0. */
  readonly host: string;
  readonly port: number;
  /** `http://host:port`, or `unix:/path` */
  readonly url: string;
}

export interface HttpServer {
  /**
   * On SERVICE_HOST and SERVICE_PORT, or on a unix socket that is made at `socketPath` and removed by stop(). Rejects
   * with node's own error, such as EADDRINUSE.
   */
  listen(socketPath?: string): Promise<ListeningAddress>;
  /**
   * Takes no new connections, lets requests in flight finish within SERVICE_SHUTDOWN_GRACE, closes what is idle.
   * Resolves when no connection is left; calling it again gives the same promise.
   */
  stop(): Promise<void>;
  /** From the moment stop() is called. */
  isStopping(): boolean;
  /** Connections that are open now. */
  connectionsOpen(): number;
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
  const { server, connections, lingering, checkPace } = assemble(options, checkIntervalMs, isStopping);
  let checks: NodeJS.Timeout | undefined;
  return {
    listen: async (socketPath) => {
      const place = socketPath === undefined ? { host: config.host, port: config.port } : { path: socketPath };
      const address = await listen(server, place, log);
      checks = setInterval(checkPace, checkIntervalMs);
      return address;
    },
    stop: () => {
      stopped ??= stop(server, { connections, lingering, graceMs: 1000 * config.shutdownGraceSeconds })
        .finally(() => clearInterval(checks));
      return stopped;
    },
    isStopping,
    connectionsOpen: () => connections.size,
  };
}

interface Assembly {
  readonly server: Server;
  readonly connections: Connections;
  readonly lingering: Lingering;
  /** Ends transfers that are too slow. */
  readonly checkPace: () => void;
}

function assemble(options: HttpServerOptions, checkIntervalMs: number, isStopping: () => boolean): Assembly {
  const { config, handlers, routes = ROUTES, clock, random, log } = options;
  const missing = routes.find((route) => handlers[route.name] === undefined);
  if (missing !== undefined) throw new TypeError(`route ${missing.name} has no handler`);

  const isTrustedProxy = networkMatcher(config.trustedProxies);
  const connections = new Connections(config, isTrustedProxy);
  const lingering = createLingering();
  const requestIds = createRequestIds(random);
  const router = createRouter(routes);
  const noteAnswered = createNoteAnswered(log, options.metrics);
  const active: BodyTransfers['active'] = new Set();
  const exchanges = createExchanges({
    router,
    handlers,
    forwarding: createForwarding({ config, random, isTrustedProxy }),
    requestIds,
    transfers: { minBytesPerSecond: config.minTransferRate, nowMs: clock.monotonicMs, active },
    writeReply: createReplyWriter({ lingering, isStopping }),
    clock,
    log,
    noteAnswered,
  });
  const server = createNodeServer(config, checkIntervalMs);
  const answerRaw = createRawAnswer({ clock, noteAnswered, lingering, requestIds });
  connect(server, { connections, exchanges, answerRaw, allow: router.allow });
  const checkPace = (): void => {
    for (const transfer of active) transfer.checkPace();
    connections.checkPace(clock.monotonicMs());
  };
  return { server, connections, lingering, checkPace };
}

/** Every time-out that node has for a whole body is off: the minimum rate takes its place. */
function createNodeServer(config: Config, checkIntervalMs: number): Server {
  const server = createServer({
    connectionsCheckingInterval: checkIntervalMs,
    headersTimeout: 1000 * config.headersTimeoutSeconds,
    keepAliveTimeout: 1000 * config.idleTimeoutSeconds,
    requestTimeout: 0,
    maxHeaderSize: MAX_HEADER_BYTES,
    requireHostHeader: false,
    // Requests without a body need no stream for it.
    optimizeEmptyRequests: true,
  });
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
}

/** Listens for everything that node would otherwise answer by itself. */
function connect(server: Server, { connections, exchanges, answerRaw, allow }: ConnectParts): void {
  const receive = (req: IncomingMessage, res: ServerResponse): void => {
    const connection = connections.of(req.socket);
    if (connection !== undefined) exchanges.receive(connection, req, res);
  };
  server.on('request', receive).on('checkContinue', receive).on('checkExpectation', receive);

  server.on('connection', (socket: Socket) => {
    const connection = connections.admit(socket);
    // Whatever befalls a socket ends in its `close`.
    socket.on('error', () => {});
    if (connection === undefined) {
      answerRaw(socket, 'connectionsExhausted');
      return;
    }
    // The socket's own event: that of the response is lost when a CONNECT follows, since node then lets go of the socket.
    socket.on('drain', () => connection.exchanges[0]?.wake?.());
    socket.once('close', () => exchanges.abandon(connection));
  });

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

function listen(server: Server, place: ListenOptions, log: Log): Promise<ListeningAddress> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(place, () => {
      server.off('error', reject);
      // Such as EMFILE when a connection can't be accepted: the next one may be.
      server.on('error', ({ message }) => {
        log({ level: 'error', logger: 'http', event: 'accepting failed', details: { error: message } });
      });
      resolve(listeningAddress(server.address() as AddressInfo | string));
    });
  });
}

function listeningAddress(bound: AddressInfo | string): ListeningAddress {
  if (typeof bound === 'string') return { host: bound, port: 0, url: `unix:${bound}` };
  const { address, port } = bound;
  return { host: address, port, url: `http://${hostOf(address, port)}` };
}

/** Half-sent requests are still timed out meanwhile: `close` of node:http would end that, that of node:net does not. */
async function stop(
  server: Server,
  parts: { connections: Connections; lingering: Lingering; graceMs: number },
): Promise<void> {
  const { connections, lingering, graceMs } = parts;
  const closed = new Promise((resolve) => NetServer.prototype.close.call(server, resolve));
  lingering.hurry(STOP_LINGER_MS);
  const closeIdle = (): void => {
    server.closeIdleConnections();
    connections.destroyUnused();
  };
  const idle = setInterval(closeIdle, STOP_CHECK_MS);
  const grace = setTimeout(() => {
    connections.destroyAll();
    lingering.hurry(0);
  }, graceMs);
  // What has already arrived is read before the next turn of the event loop ends, and is a request to answer.
  setImmediate(() => setImmediate(closeIdle));
  await closed;
  clearInterval(idle);
  clearTimeout(grace);
  server.close();
}
