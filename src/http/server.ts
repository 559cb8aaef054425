// The HTTP server: puts the parts of this folder around node:http, listens and stops. What happens to one request is exchange.ts; node's
// own answers, time-outs and parser failures are all replaced here by ours.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type AddressInfo, type Socket } from 'node:net';
import type { Config } from '../config/settings.ts';
import type { Log } from '../core/log.ts';
import type { RandomBytes } from '../core/random.ts';
import type { Clock } from '../core/time.ts';
import { KIB } from '../core/time.ts';
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
}

export interface ListeningAddress {
  readonly host: string;
  readonly port: number;
  /** `http://host:port` */
  readonly url: string;
}

export interface HttpServer {
  /** Rejects with node's own error, such as EADDRINUSE. */
  listen(): Promise<ListeningAddress>;
  /**
   * Takes no new connections, lets requests in flight finish within SERVICE_SHUTDOWN_GRACE, closes what is idle. Resolves when
   * no connection is left; calling it again gives the same promise.
   */
  stop(): Promise<void>;
  /** From the moment stop() is called. */
  isStopping(): boolean;
}

const MAX_HEADER_BYTES = 16 * KIB;

/** How often a server that stops looks for connections that have become idle. */
const STOP_CHECK_MS = 250;

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { config, handlers, routes = ROUTES, checkIntervalMs = 1000, clock, random, log } = options;
  const missing = routes.find((route) => handlers[route.name] === undefined);
  if (missing !== undefined) throw new TypeError(`route ${missing.name} has no handler`);

  let stopped: Promise<void> | undefined;
  const isStopping = (): boolean => stopped !== undefined;
  const isTrustedProxy = networkMatcher(config.trustedProxies);
  const connections = new Connections(config, isTrustedProxy);
  const lingering = createLingering();
  const requestIds = createRequestIds(random);
  const router = createRouter(routes);
  const transfers: BodyTransfers = { minBytesPerSecond: config.minTransferRate, nowMs: clock.monotonicMs, active: new Set() };
  const exchanges = createExchanges({
    router,
    handlers,
    forwarding: createForwarding({ config, random, isTrustedProxy }),
    requestIds,
    transfers,
    writeReply: createReplyWriter({ lingering, isStopping }),
    clock,
    log,
  });
  const server = createNodeServer(config, checkIntervalMs);
  const answerRaw = createRawAnswer({ clock, log, lingering, requestIds });
  connect(server, { connections, exchanges, answerRaw, allow: router.allow });

  let checks: NodeJS.Timeout | undefined;
  const check = (): void => {
    for (const transfer of transfers.active) transfer.checkPace();
    connections.checkPace(clock.monotonicMs());
  };

  return {
    listen: async () => {
      const address = await listen(server, config, log);
      checks = setInterval(check, checkIntervalMs);
      return address;
    },
    stop: () => {
      stopped ??= stop(server, { connections, lingering, graceMs: 1000 * config.shutdownGraceSeconds })
        .finally(() => clearInterval(checks));
      return stopped;
    },
    isStopping,
  };
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
    if (connection === undefined) answerRaw(socket, 'connectionsExhausted');
    else socket.once('close', () => exchanges.abandon(connection));
  });

  server.on('clientError', (error: ClientError, socket) => {
    const connection = connections.of(socket as Socket);
    if (connection !== undefined) handleClientError(error, connection, answerRaw);
  });

  server.on('connect', (req, socket) => {
    const connection = connections.of(socket as Socket);
    if (connection === undefined) return;
    const presentedRequestId = new HeaderLines(req.rawHeaders).only('x-request-id');
    endWith(connection, () => answerRaw(connection.socket, 'methodNotAllowed', { method: 'CONNECT', presentedRequestId, allow }));
  });
}

function listen(server: Server, config: Config, log: Log): Promise<ListeningAddress> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: config.host, port: config.port }, () => {
      server.off('error', reject);
      // Such as EMFILE when a connection can't be accepted: the next one may be.
      server.on('error', (error) => log({ level: 'error', logger: 'http', event: 'accepting failed', details: { error: error.message } }));
      const { address, port } = server.address() as AddressInfo;
      resolve({ host: address, port, url: `http://${hostOf(address, port)}` });
    });
  });
}

/** Requests half sent are still timed out meanwhile: `Server.close` of node:http would end that, the one of node:net does not. */
async function stop(
  server: Server,
  parts: { connections: Connections; lingering: Lingering; graceMs: number },
): Promise<void> {
  const { connections, lingering, graceMs } = parts;
  const closed = new Promise((resolve) => NetServer.prototype.close.call(server, resolve));
  lingering.hurry();
  const closeIdle = (): void => {
    server.closeIdleConnections();
    connections.destroyUnused();
  };
  const idle = setInterval(closeIdle, STOP_CHECK_MS);
  const grace = setTimeout(() => connections.destroyAll(), graceMs);
  // What has already arrived is read before the next turn of the event loop ends, and is a request to answer.
  setImmediate(() => setImmediate(closeIdle));
  await closed;
  clearInterval(idle);
  clearTimeout(grace);
  server.close();
}
