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

/** Of a known path: the methods that it takes, and the handler of this one, if it is among them. */
export interface Match extends Readonly<Pick<Request, 'route' | 'parameter'>> {
  readonly allow: string;
  readonly handler: Handler | undefined;
}

/** What makes it HTTPS; http/tls.ts. */
export interface TlsTermination {
  createServer(options: ServerOptions): Server;
  presentedBy(socket: TLSSocket): Presented;
  noteFailure(reason: string): void;
}

export interface HttpServerOptions extends Pick<RequestParts, 'config' | 'clock' | 'trust' | 'newUuid'> {
  /** Of the raw path, or of `*`, which takes all that some path does (OPTIONS). Refuses a path that is not known. */
  readonly match: (method: string, path: string) => Match;
  /** The refusal that an error of a handler stands for; undefined for what is unexpected. */
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

/** No client sends so many requests ahead of their answers, or so much; all of it is memory until their turns come. */
const MAX_PIPELINED = 100;
const MAX_PIPELINED_BYTES = 256 * KIB;

/** Given twice, nobody can say which one was meant, so that is refused also where none would count. */
const ONCE = 'x-pow-token x-pow-solution x-expiry x-burn-after-read x-paste-password x-remove-password'.split(' ');

/** For the log, as others write it: the client went away before it had an answer. It is never sent. */
const CLIENT_GONE_STATUS = 499;

/** A server without requests in flight must have stopped within a second: how often it looks for idle connections. */
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

  /** Rejects with ListeningError. A unix socket has its path for a host, 0 for a port, and the URL `unix:PATH`. */
  async listen(place: ListeningPlace) {
    const { connections, clock, log, tls, checkIntervalMs = CHECK_MS } = this.#parts;
    await listenAt(this.node, place);
    // Such as EMFILE when a connection can't be accepted: the next one may be.
    this.node.on('error', ({ message }) => {
      log({ level: 'error', logger: 'http', event: 'accepting failed', details: { error: message } });
    });
    this.#checks = setInterval(() => connections.check(clock.monotonicMs()), checkIntervalMs);
    // Of a unix socket that it has not made itself, node does not know the path.
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
  // An older node drops the lines past it without a word, those of trailers too: one too many must still be seen.
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
    // Whatever befalls a socket ends in its `close`.
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
    // As for plain HTTP; who closes its side in the middle of a handshake has gone.
    socket.allowHalfOpen = true;
    open(socket, { ...connections.peerOf(socket), tls: tls.presentedBy(socket) });
  });
  server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
    socket.destroy();
    const code = codeOf(error);
    // A peer that leaves without a word is no failure: those who look whether the port is open do.
    if (code !== 'ECONNRESET') tls.noteFailure(code);
  });
}

/** Carries out those of a connection one after another: RFC 9112 section 9.3.2 has it so when one of them is unsafe. */
function receive(parts: ServerParts, connection: Connection, req: IncomingMessage, res: ServerResponse): void {
  const { state, requests, socket } = connection;
  // node keeps those too that are ignored, and their trailers, for as long as the connection is open.
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

/** From the reply to its end on the socket; whatever fails on that way is refused. */
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
  // If there is no page, the refusal itself is an answer too.
  return refusalPage(request, reply).catch(() => reply).then((page) => writer.write(request, page));
}

/** Answers with the refusal that the error stands for. Half an answer can only be broken off. */
function refuse(parts: ServerParts, request: Request, error: unknown): void {
  // What failed on the way out of a scope hides why it was left, which is what the client is told.
  let cause = error;
  for (; cause instanceof SuppressedError; cause = cause.suppressed) logFailure(parts, request, cause.error);
  const refusal = logFailure(parts, request, cause);
  if (request.state === 'over') return;
  if (request.res.headersSent) request.connection.socket.destroy();
  else answer(parts, request, () => refusalReply(refusal ?? new Refusal('internal')));
}

/** Gives the refusal that the error stands for, and logs what is more than that. */
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

/** Of node's parser, whose own words `reason` is, or of its timer. */
type ClientError = Error & { readonly code?: string; readonly reason?: string };

/** Answers in our form, after the requests before it. Of several that node reports for one socket the first counts. */
function handleClientError(parts: ServerParts, connection: Connection, error: ClientError): void {
  const { socket, requests } = connection;
  // The client said that its last request was the last one: the answer ends the connection. It does so by itself unless
  // that was said in a trailer, which node's parser obeys, and node's response, written for the head, knows nothing of.
  if (error.code === 'HPE_CLOSED_CONNECTION') return connection.endWith(() => socket.destroySoon());
  const refusal = refusalOfClientError(error);
  // A connection opened in advance: a 408 nobody asked for could be taken for the answer to a request on its way.
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

/** Half-sent requests are still timed out meanwhile: `close` of node:http would end that, that of node:net does not. */
async function stop(server: Server, { connections, lingering, config }: ServerParts): Promise<void> {
  const closed = new Promise((resolve) => NetServer.prototype.close.call(server, resolve));
  lingering.hurry(STOP_LINGER_MS);
  // Not sooner: whoever is about to send on an idle connection could not know better, and each answer now ends its own.
  using _idle = setInterval(() => connections.destroyIdle(() => server.closeIdleConnections()), STOP_CHECK_MS);
  using _grace = setTimeout(() => {
    connections.destroyAll();
    lingering.hurry(0);
  }, 1000 * config.shutdownGraceSeconds);
  await closed;
  await connections.gone();
  server.close();
}
