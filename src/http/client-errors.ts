// What node's parser and its timer refuse: each gets one answer in our form, in its turn after the requests before it.
// What the parser lets through although it should not is form.ts.

import type { Socket } from 'node:net';
import { Refusal, type RefusalName } from '../core/refusals.ts';
import { BodyReader } from './body.ts';
import { endWith, type Connection } from './connections.ts';
import type { RawAnswer } from './raw-answer.ts';

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
  const refusal = refusalOf(error);
  if (refusal === undefined || wasNeverUsed(error, socket)) {
    socket.destroy();
    return;
  }
  const body = exchanges.at(-1)?.body;
  if (body instanceof BodyReader && body.isUnfinished) body.fail(new Refusal(refusal));
  else endWith(connection, () => answerRaw(socket, refusal));
}

/** Undefined for a failure of the socket itself, which leaves nobody to answer. */
function refusalOf({ code = '', reason = '' }: ClientError): RefusalName | undefined {
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
