// One request and its answer, from what node:http hands over to the end of the answer: form, route, handler, reply,
// log. The requests of a connection are carried out one after another (RFC 9112 section 9.3.2 allows no more when one
// of them is unsafe).

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Log, LogLevel } from '../../core/events.ts';
import { Refusal, type RefusalName } from '../../core/refusals.ts';
import type { Clock } from '../../core/time.ts';
import type { Forwarding } from '../forwarded.ts';
import type { Match, Router } from '../routes.ts';
import { BodyReader, type BodyTransfers, ClientGoneError, NO_BODY } from './body.ts';
import { type Connection, endWith, type Exchange } from './connections.ts';
import { checkForm, checkSite } from './form.ts';
import { IncomingRequest, parseTarget, publicUrlOf } from './incoming.ts';
import type { NoteAnswered, RawAnswer, ReplyWriter } from './reply-writer.ts';
import { emptyReply, type Handler, refusalOf, refusalReply, type Reply } from './reply.ts';
import { HeaderLines, type RequestIds } from './request.ts';

export interface ExchangeParts {
  readonly router: Router;
  readonly handlers: Readonly<Record<string, Handler>>;
  readonly forwarding: Forwarding;
  readonly requestIds: RequestIds;
  readonly transfers: BodyTransfers;
  readonly writeReply: ReplyWriter;
  readonly clock: Clock;
  readonly log: Log;
  readonly noteAnswered: NoteAnswered;
}

export interface Exchanges {
  /** A request whose headers have arrived, as `request`, `checkContinue` and `checkExpectation` report it. */
  receive(connection: Connection, req: IncomingMessage, res: ServerResponse): void;
  /** The connection is gone, with whatever was in progress on it. */
  abandon(connection: Connection): void;
}

/** No client sends so many requests ahead of their answers; each costs memory until its turn comes. */
const MAX_PIPELINED = 100;

/** For the log, as others write it: the client went away before it had an answer. It is never sent. */
const CLIENT_GONE_STATUS = 499;

const UPLOAD_HINT = 'to store a paste, send it to / itself: curl -T - URL < FILE';

export function createExchanges(parts: ExchangeParts): Exchanges {
  const { router, handlers, forwarding, writeReply, clock, log, noteAnswered } = parts;

  function receive(connection: Connection, req: IncomingMessage, res: ServerResponse): void {
    if (connection.ignoresInput) return;
    if (connection.exchanges.length >= MAX_PIPELINED) {
      connection.socket.destroy();
      return;
    }
    const exchange = openExchange(parts, connection, req, res);
    if (exchange.isLast) connection.ignoresInput = true;
    res.on('finish', () => finish(exchange));
    connection.exchanges.push(exchange);
    if (connection.exchanges.length === 1) answer(exchange);
  }

  function answer(exchange: Exchange): void {
    try {
      const reply = replyTo(exchange);
      if (!(reply instanceof Promise)) send(exchange, reply);
      else reply.then((value) => send(exchange, value), (error: unknown) => refuse(exchange, error));
    } catch (error) {
      refuse(exchange, error);
    }
  }

  function replyTo(exchange: Exchange): Reply | Promise<Reply> {
    if (exchange.malformed !== undefined) throw exchange.malformed;
    const target = parseTarget(exchange.method, exchange.req.url ?? '');
    checkSite(exchange.method, exchange.headers, () => publicUrlOf(exchange, target, forwarding));
    if (target.path === '*') return emptyReply(204, { Allow: router.allow });
    const match = router.match(exchange.method, target.path);
    if (match.kind !== 'route') return replyWithoutRoute(exchange, match);
    exchange.route = match.route.path;
    const handler = handlers[match.route.name];
    if (handler === undefined) throw new Error(`route ${match.route.name} has no handler`);
    return handler(new IncomingRequest(exchange, match, target, forwarding));
  }

  function send(exchange: Exchange, reply: Reply): void {
    exchange.refusal = reply.refusal;
    try {
      const isWritten = writeReply(exchange, reply);
      isWritten?.catch((error: unknown) => refuse(exchange, error));
    } catch (error) {
      refuse(exchange, error);
    }
  }

  /** Answers with the refusal that the error stands for. Half an answer can only be broken off. */
  function refuse(exchange: Exchange, error: unknown): void {
    const refusal = refusalOf(error);
    const isExpected = error === refusal || error instanceof ClientGoneError;
    if (!isExpected) logFailure(exchange, error, refusal === undefined ? 'error' : 'warning');
    if (exchange.isOver) return;
    if (exchange.res.headersSent) exchange.connection.socket.destroy();
    else send(exchange, refusalReply(refusal ?? new Refusal('internal')));
  }

  /** With the error's own words: they are for the operator, and callers never see them. */
  function logFailure({ requestId, route }: Exchange, error: unknown, level: LogLevel): void {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    log({ level, logger: 'http', event: 'request failed', details: { route, request_id: requestId, error: text } });
  }

  function finish(exchange: Exchange): void {
    const { connection } = exchange;
    if (exchange.isOver) return;
    end(exchange);
    connection.exchanges.shift();
    // What was sent after a request whose answer ends the connection is not processed (RFC 9112 section 9.6).
    if (exchange.isLast) return;
    const [next] = connection.exchanges;
    if (next !== undefined) answer(next);
    else connection.lastAnswer?.();
  }

  function abandon(connection: Connection): void {
    for (const exchange of connection.exchanges.splice(0)) {
      if (exchange.body instanceof BodyReader) exchange.body.fail(new ClientGoneError('the client broke off'));
      end(exchange);
    }
  }

  function end(exchange: Exchange): void {
    exchange.isOver = true;
    exchange.wake?.();
    const { method, route, status, sentBytes, startedMs, requestId, origin, refusal } = exchange;
    noteAnswered({
      method,
      route,
      status: status === 0 ? CLIENT_GONE_STATUS : status,
      bytes: sentBytes,
      ms: clock.monotonicMs() - startedMs,
      requestId,
      clientIp: origin.clientAddress,
      fingerprint: origin.fingerprint,
      refusal,
    });
  }

  return { receive, abandon };
}

/** Reads what every request has, whatever it asks for. */
function openExchange(
  parts: ExchangeParts,
  connection: Connection,
  req: IncomingMessage,
  res: ServerResponse,
): Exchange {
  const headers = new HeaderLines(req.rawHeaders);
  const { body, malformed } = openBody(parts.transfers, headers, req, res, !connection.hasAsked);
  connection.hasAsked = true;
  return {
    connection,
    req,
    res,
    method: req.method ?? '',
    requestId: parts.requestIds(headers.only('x-request-id')),
    headers,
    origin: parts.forwarding.originOf(headers, connection.peer),
    startedMs: parts.clock.monotonicMs(),
    body,
    malformed,
    route: '-',
    status: 0,
    refusal: undefined,
    sentBytes: 0,
    // node drops what came in one read after an Upgrade that nobody takes: what follows may be the middle of a request.
    isLast: malformed !== undefined || headers.all('upgrade').length > 0,
    isOver: false,
    wake: undefined,
  };
}

function openBody(
  transfers: BodyTransfers,
  headers: HeaderLines,
  req: IncomingMessage,
  res: ServerResponse,
  isFirst: boolean,
): Pick<Exchange, 'body' | 'malformed'> {
  try {
    const form = checkForm(req, headers, isFirst);
    const body = form.declaredBytes === 0 ? NO_BODY : new BodyReader({ req, res, ...form, transfers });
    return { body, malformed: undefined };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    // node would keep each piece of a body that nobody reads.
    req.push = () => false;
    return { body: NO_BODY, malformed: error };
  }
}

/** The answers that need no handler. */
function replyWithoutRoute(exchange: Exchange, match: Exclude<Match, { kind: 'route' }>): Reply {
  switch (match.kind) {
    case 'options':
      exchange.route = match.path;
      return emptyReply(204, { Allow: match.allow });
    case 'methodNotAllowed':
      exchange.route = match.path;
      return refusalReply(new Refusal('methodNotAllowed'), { Allow: match.allow });
    case 'notFound':
      throw new Refusal('notFound');
    case 'idInvalid':
      // `curl -T name host/` sends PUT /name.
      throw new Refusal('idInvalid', exchange.method === 'PUT' ? { hint: UPLOAD_HINT } : {});
  }
}

// What node's parser and its timer refuse: each gets one answer in our form, in its turn after the requests before it.
// What the parser lets through although it should not is form.ts.

/** As node:http hands it over; `reason` is the parser's own words. */
export interface ClientError extends Error {
  readonly code?: string;
  readonly reason?: string;
}

/**
 * Deals with a `clientError`. node may report several for one socket: only the first that concerns a request counts,
 * and none after the request that ends the connection.
 */
export function handleClientError(error: ClientError, connection: Connection, answerRaw: RawAnswer): void {
  const { socket, exchanges } = connection;
  // The client said that its last request was the last one: the answer ends the connection. It does so by itself unless
  // that was said in a trailer, which node's parser obeys, and node's response, written for the head, knows nothing of.
  if (error.code === 'HPE_CLOSED_CONNECTION') return endWith(connection, () => socket.destroySoon());
  const refusal = refusalOfClientError(error);
  if (refusal === undefined || wasNeverUsed(error, socket)) {
    socket.destroy();
    return;
  }
  const body = exchanges.at(-1)?.body;
  if (body instanceof BodyReader && body.isUnfinished) body.fail(new Refusal(refusal));
  else endWith(connection, () => answerRaw(socket, refusal));
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

/** A connection opened in advance: a 408 nobody asked for could be taken for the answer to a request on its way. */
function wasNeverUsed(error: ClientError, socket: Socket): boolean {
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0;
}
