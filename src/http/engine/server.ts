// The HTTP server: what node:http hands over, from a connection that is accepted to the end of an answer, and how the
// server stops. node's own answers, time-outs and parser failures are all replaced by ours. Knows nothing of pastes.

import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { codeOf, type Log } from '../../core/events.ts';
import { Refusal, type RefusalName } from '../../core/refusals.ts';
import { andThen, type Awaitable, KIB } from '../../core/time.ts';
import { ClientGoneError, Turns } from './body.ts';
import { Connections, Lingering } from './connections.ts';
import { HeaderLines, hostOf, MAX_HEADER_LINES } from './head.ts';
import { listenAt, type ListeningPlace } from './listening.ts';
import { createServer } from './node-http.ts';
import {
  answerRaw, emptyReply, type Handler, type NoteAnswered, refusalReply, type Reply, ReplyWriter,
} from './reply.ts';
import {
  checkSite, type Connection, ignoreBody, type Peer, type Presented, Request, type RequestParts,
} from './request.ts';

/** What a known path takes: its methods in `allow`, and the handler of the method asked for, if it is one of them. */
export interface Match extends Readonly<Pick<Request, 'route' | 'parameter'>> {
  readonly allow: string;
  readonly handler: Handler | undefined;
}

/** Makes the server speak HTTPS; see http/tls.ts. */
export interface TlsTermination {
  createServer(options: ServerOptions): Server;
  presentedBy(socket: TLSSocket): Presented;
  noteFailure(reason: string): void;
}

export interface HttpServerOptions extends Pick<RequestParts, 'config' | 'clock' | 'trust' | 'newUuid'> {
  /** Looks up a raw path, or `*` (OPTIONS), which takes every method that some path takes. Refuses an unknown path. */
  readonly match: (method: string, path: string) => Match;
  /** The refusal that an error of a handler stands for; undefined for an unexpected error. */
  readonly refusalOf: (error: unknown) => Refusal | undefined;
  readonly refusalPage: (request: Request, reply: Reply) => Promise<Reply>;
  readonly noteAnswered: NoteAnswered;
  readonly checkIntervalMs?: number | undefined;
  readonly log: Log;
  readonly tls?: TlsTermination | undefined;
}

/** How often time-outs and rates are looked at, and so how exact they are. */
const CHECK_MS = 1000;

const MAX_HEADER_BYTES = 16 * KIB;

/** No client pipelines this many requests, or this many bytes; they all stay in memory until their turn comes. */
const MAX_PIPELINED = 100;
const MAX_PIPELINED_BYTES = 256 * KIB;

/** A repeat of any of these is refused, even where the header would not count: nobody can say which one was meant. */
const ONCE = 'x-pow-token x-pow-solution x-expiry x-burn-after-read x-paste-password x-remove-password'.split(' ');

/** For the log, as other servers write it: the client went away before it had an answer. It is never sent. */
const CLIENT_GONE_STATUS = 499;

/** How often a stopping server looks for idle connections: without requests in flight it must stop within a second. */
const STOP_CHECK_MS = 250;
const STOP_LINGER_MS = 500;

export class HttpServer {
  readonly node: Server;
  readonly #parts: ServerParts;
  #checks: NodeJS.Timeout | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: HttpServerOptions) {
    const { config, clock } = options;
    const lingering = new Lingering();
    this.#parts = {
      ...options,
      connections: new Connections(config),
      lingering,
      transfers: { minBytesPerSecond: config.minTransferRate, nowMs: clock.monotonicMs, turns: new Turns() },
      writer: new ReplyWriter({ servesHtml: config.servesHtml, lingering, isStopping: () => this.isStopping() }),
    };
    this.node = createNodeServer(options);
    takeRequests(this.#parts, this.node);
    takeConnections(this.#parts, this.node);
  }

  /** Rejects with ListeningError. For a unix socket `host` is its path, `port` is 0 and `url` is `unix:PATH`. */
  async listen(place: ListeningPlace) {
    const { connections, clock, log, tls, checkIntervalMs = CHECK_MS } = this.#parts;
    await listenAt(this.node, place);
    // Such as EMFILE: this connection can't be accepted, but the next one may be.
    this.node.on('error', ({ message }) => {
      log({ level: 'error', logger: 'http', event: 'accepting failed', details: { error: message } });
    });
    this.#checks = setInterval(() => connections.check(clock.monotonicMs()), checkIntervalMs);
    // node does not know the path of a unix socket that it has not made itself.
    const bound = this.node.address() ?? '(inherited)';
    connections.peersAreLocal = typeof bound === 'string';
    if (typeof bound === 'string') return { host: bound, port: 0, url: `unix:${bound}` };
    const { address: host, port } = bound;
    return { host, port, url: `${tls === undefined ? 'http' : 'https'}://${hostOf(host, port)}` };
  }

  /** Lets requests in flight finish within SERVICE_SHUTDOWN_GRACE; resolves when no connection is left. */
  stop(): Promise<void> {
    return (this.#stopped ??= stop(this.node, this.#parts).finally(() => clearInterval(this.#checks)));
  }

  isStopping(): boolean {
    return this.#stopped !== undefined;
  }

  connectionsOpen(): number {
    return this.#parts.connections.size;
  }
}

interface ServerParts extends HttpServerOptions, RequestParts {
  readonly connections: Connections;
  readonly lingering: Lingering;
  readonly writer: ReplyWriter;
}

/** Every time-out that node has for a whole body is off: the minimum rate takes its place. */
function createNodeServer({ config, checkIntervalMs = CHECK_MS, tls }: HttpServerOptions): Server {
  const options: ServerOptions = {
    connectionsCheckingInterval: checkIntervalMs,
    headersTimeout: 1000 * config.headersTimeoutSeconds,
    keepAliveTimeout: 1000 * config.idleTimeoutSeconds,
    requestTimeout: 0,
    maxHeaderSize: MAX_HEADER_BYTES,
    requireHostHeader: false,
    // Requests without a body need no stream for it.
    optimizeEmptyRequests: true,
  };
  const server = tls === undefined ? createServer(options) : tls.createServer(options);
  // An older node silently drops lines past this count, in trailers too: one line too many must still be seen.
  server.maxHeadersCount = MAX_HEADER_LINES + 1;
  // A client that has sent its request and closed its side still gets the answer; node's types do not know this switch.
  return Object.assign(server, { httpAllowHalfOpen: true });
}

/** Listens for everything that node would otherwise answer by itself. */
function takeRequests(parts: ServerParts, server: Server): void {
  const { connections } = parts;
  const take = (req: IncomingMessage, res: ServerResponse): void => {
    const connection = connections.of(req.socket);
    if (connection !== undefined) receive(parts, connection, req, res);
  };
  server.on('request', take).on('checkContinue', take).on('checkExpectation', take);

  server.on('clientError', (error: ClientError, socket) => {
    const connection = connections.of(socket as Socket);
    if (connection !== undefined) handleClientError(parts, connection, error);
  });

  server.on('connect', (req, socket) => {
    const connection = connections.of(socket as Socket);
    // node has let go of the socket, and stopped reading it, even when it was lingering already.
    socket.resume();
    const { allow } = parts.match('CONNECT', '*');
    const known = { method: 'CONNECT', headers: new HeaderLines(req.rawHeaders), allow };
    connection?.endWith(() => answerRaw(parts, connection.socket, 'methodNotAllowed', known));
  });
}

/** Takes connections in. Under TLS they are counted when they are accepted, and opened when their handshake is done. */
function takeConnections(parts: ServerParts, server: Server): void {
  const { connections, tls } = parts;
  const open = (socket: Socket, peer: Peer): void => {
    const connection = connections.open(socket, peer);
    socket.once('close', () => abandon(parts, connection));
  };

  server.on('connection', (socket: Socket) => {
    // Nothing to do: `close` follows every error of a socket.
    socket.on('error', () => {});
    const peer = connections.peerOf(socket);
    const isAdmitted = connections.admit(socket, peer);
    if (tls === undefined) {
      if (isAdmitted) open(socket, peer);
      else answerRaw(parts, socket, 'connectionsExhausted');
    } else if (!isAdmitted) {
      // An answer would cost a handshake first.
      socket.destroy();
      tls.noteFailure('too many connections');
    }
  });
  if (tls === undefined) return;

  server.on('secureConnection', (socket: TLSSocket) => {
    socket.on('error', () => {});
    // As for plain HTTP. (A client that closes its side in the middle of the handshake counts as gone.)
    socket.allowHalfOpen = true;
    open(socket, { ...connections.peerOf(socket), tls: tls.presentedBy(socket) });
  });
  server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
    socket.destroy();
    const code = codeOf(error);
    // A peer that just disconnects is no failure: whatever checks whether the port is open does that.
    if (code !== 'ECONNRESET') tls.noteFailure(code);
  });
}

/** Requests of a connection run one after another: RFC 9112 section 9.3.2 requires it when one of them is unsafe. */
function receive(parts: ServerParts, connection: Connection, req: IncomingMessage, res: ServerResponse): void {
  const { state, requests, socket } = connection;
  // node keeps ignored requests too, and their trailers, for as long as the connection is open.
  if (requests.length + connection.ignoredRequests >= MAX_PIPELINED) return void socket.destroy();
  if (state === 'ending') {
    connection.ignoredRequests += 1;
    ignoreBody(req);
    return keepWaiting(connection, headBytes(req) + (req.headers['transfer-encoding'] ? MAX_HEADER_BYTES : 0));
  }
  const request = new Request(parts, connection, req, res);
  res.on('finish', () => finish(parts, request));
  requests.push(request);
  if (requests.length === 1) return answer(parts, request);
  keepWaiting(connection, waitingBytesOf(request));
}

function keepWaiting(connection: Connection, bytes: number): void {
  connection.waitingBytes += bytes;
  if (connection.waitingBytes > MAX_PIPELINED_BYTES) connection.socket.destroy();
}

function waitingBytesOf({ res: { req }, body }: Request): number {
  return headBytes(req) + body.mostUnreadBytes;
}

/** Each name and each value takes some 64 bytes beside its characters, as an object and in lists. */
function headBytes({ url = '', rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((sum, { length }) => sum + length + 64, url.length);
}

/** Makes the reply and sends it to its end; a failure at any point goes to `refuse`. */
function answer(parts: ServerParts, request: Request, make = (): Awaitable<Reply> => replyTo(parts, request)): void {
  try {
    const sent = andThen(make(), (reply) => send(parts, request, reply));
    if (sent instanceof Promise) sent.catch((error: unknown) => refuse(parts, request, error));
  } catch (error) {
    refuse(parts, request, error);
  }
}

function replyTo({ match, connections }: ServerParts, request: Request): Awaitable<Reply> {
  if (!connections.admitForwarded(request.connection, request.origin)) {
    request.beLast();
    throw new Refusal('connectionsExhausted');
  }
  if (request.malformed !== undefined) throw request.malformed;
  const { method, target } = request;
  for (const name of ONCE) request.headers.single(name);
  checkSite(request);
  const { route, parameter, allow, handler } = match(method, target.path);
  request.route = route;
  request.parameter = parameter;
  if (handler !== undefined) return handler(request);
  const headers = { Allow: allow };
  return method === 'OPTIONS' ? emptyReply(204, headers) : refusalReply(new Refusal('methodNotAllowed'), headers);
}

function send({ refusalPage, writer }: ServerParts, request: Request, reply: Reply): Awaitable<void> {
  request.refusal = reply.refusal;
  if (reply.refusal === undefined || !request.prefersHtml) return writer.write(request, reply);
  // If the page can't be made, the refusal itself is the answer.
  return refusalPage(request, reply).catch(() => reply).then((page) => writer.write(request, page));
}

/** Answers with the refusal that the error stands for. An answer that has begun can only be broken off. */
function refuse(parts: ServerParts, request: Request, error: unknown): void {
  // An error on the way out of a scope hides the error that ended the scope, and the client is told the latter.
  let cause = error;
  for (; cause instanceof SuppressedError; cause = cause.suppressed) logFailure(parts, request, cause.error);
  const refusal = logFailure(parts, request, cause);
  if (request.state === 'over') return;
  if (request.res.headersSent) request.connection.socket.destroy();
  else answer(parts, request, () => refusalReply(refusal ?? new Refusal('internal')));
}

/** Gives the refusal that the error stands for. Logs an error that is neither that refusal nor a client that left. */
function logFailure(parts: ServerParts, request: Request, error: unknown): Refusal | undefined {
  const refusal = parts.refusalOf(error);
  if (error !== refusal && !(error instanceof ClientGoneError)) {
    // The error's own words, for the operator alone. Only a bug has its stack logged: a bad disk fails every request.
    const text = refusal === undefined && error instanceof Error ? (error.stack ?? error.message) : String(error);
    const details = { route: request.route, request_id: request.id, error: text };
    parts.log({ level: refusal === undefined ? 'error' : 'warning', logger: 'http', event: 'request failed', details });
  }
  return refusal;
}

/** The answer has been written. */
function finish(parts: ServerParts, request: Request): void {
  const { connection, state } = request;
  if (state === 'over') return;
  end(parts, request);
  connection.requests.shift();
  // What was sent after a request whose answer ends the connection is not processed (RFC 9112 section 9.6).
  if (state === 'last') return;
  const [next] = connection.requests;
  if (next === undefined) return connection.finalAnswer?.();
  connection.waitingBytes -= waitingBytesOf(next);
  answer(parts, next);
}

/** The connection is gone, with whatever was in progress on it. */
function abandon(parts: ServerParts, connection: Connection): void {
  for (const request of connection.requests.splice(0)) {
    request.body.fail(new ClientGoneError('the client broke off'));
    end(parts, request);
  }
}

function end({ clock, noteAnswered }: ServerParts, request: Request): void {
  request.state = 'over';
  request.wake?.();
  if (request.status === 0) request.status = CLIENT_GONE_STATUS;
  noteAnswered(request, clock.monotonicMs() - request.startedMs);
}

/** An error of node's parser, with the parser's own words in `reason`, or of node's timer. */
type ClientError = Error & { readonly code?: string; readonly reason?: string };

/** Answers in our form, after the requests before it. If node reports several for one socket, the first counts. */
function handleClientError(parts: ServerParts, connection: Connection, error: ClientError): void {
  const { socket, requests } = connection;
  // The client said that its previous request was its last, so that answer ends the connection. It does so by itself,
  // unless the client said it in a trailer: node's parser obeys trailers, but node's response knows only the head.
  if (error.code === 'HPE_CLOSED_CONNECTION') return connection.endWith(() => socket.destroySoon());
  const refusal = refusalOfClientError(error);
  // A connection opened in advance gets no 408: the client could take it for the answer to a request on its way.
  const wasNeverUsed = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0;
  const body = requests.at(-1)?.body;
  if (refusal === undefined || wasNeverUsed) socket.destroy();
  else if (body?.isUnfinished === true) body.fail(new Refusal(refusal));
  else connection.endWith(() => answerRaw(parts, socket, refusal));
}

/** Undefined for a failure of the socket itself, which leaves nobody to answer. */
function refusalOfClientError({ code = '', reason = '' }: ClientError): RefusalName | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'requestTimeout';
  if (code === 'HPE_HEADER_OVERFLOW') return 'headersTooLarge';
  // RFC 9112 section 6.1: an unknown coding is 501; both framings at once, which has the same code, is 400.
  const isCoding = code === 'HPE_INVALID_TRANSFER_ENCODING' && !reason.includes('Content-Length');
  if (isCoding) return 'transferEncodingUnsupported';
  return code.startsWith('HPE_') ? 'requestMalformed' : undefined;
}

/** Calls `close` of node:net, since that of node:http would stop the timer that still ends half-sent requests. */
async function stop(server: Server, { connections, lingering, config }: ServerParts): Promise<void> {
  const closed = new Promise((resolve) => NetServer.prototype.close.call(server, resolve));
  lingering.hurry(STOP_LINGER_MS);
  // Not at once: a client may be about to send on an idle connection. Each answer now ends its connection anyway.
  using _idle = setInterval(() => connections.destroyIdle(() => server.closeIdleConnections()), STOP_CHECK_MS);
  using _grace = setTimeout(() => {
    connections.destroyAll();
    lingering.hurry(0);
  }, 1000 * config.shutdownGraceSeconds);
  await closed;
  await connections.gone();
  server.close();
}
