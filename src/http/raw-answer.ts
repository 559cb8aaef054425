// An answer as text for a socket that node:http gives no response object for: what could not be parsed, CONNECT,
// connections over the cap. The same headers and body as any other refusal.

import type { Socket } from 'node:net';
import { Refusal, type RefusalName } from '../core/refusals.ts';
import type { Clock } from '../core/time.ts';
import { plainAddress } from './client-address.ts';
import { commonHead } from './common-headers.ts';
import type { Lingering } from './linger.ts';
import { STATUS_CODES } from './node-http.ts';
import { refusalReply } from './refused.ts';
import type { RequestIds } from './request-id.ts';
import type { NoteAnswered } from './answered.ts';

/** What is known of the request, where something is. */
export interface RawAnswerContext {
  readonly method?: string;
  readonly presentedRequestId?: string | undefined;
  readonly allow?: string;
}

/** Writes the refusal and closes the connection, lingering. */
export type RawAnswer = (socket: Socket, refusal: RefusalName, context?: RawAnswerContext) => void;

export interface RawAnswerParts {
  readonly clock: Clock;
  readonly noteAnswered: NoteAnswered;
  readonly lingering: Lingering;
  readonly requestIds: RequestIds;
}

export function createRawAnswer({ clock, noteAnswered, lingering, requestIds }: RawAnswerParts): RawAnswer {
  return (socket, refusalName, context = {}) => {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    const requestId = requestIds(context.presentedRequestId);
    const refusal = new Refusal(refusalName);
    const reply = refusalReply(refusal, context.allow === undefined ? {} : { Allow: context.allow });
    const body = String(reply.body);
    const head = commonHead(requestId);
    for (const [name, value] of Object.entries(reply.headers)) head.push(name, value);
    head.push('Content-Length', String(Buffer.byteLength(body)));
    head.push('Date', new Date(clock.unixMs()).toUTCString(), 'Connection', 'close');
    socket.write(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${headerLines(head)}\r\n${body}`);
    lingering.close(socket);
    noteAnswered({
      method: context.method ?? '-',
      route: '-',
      status: refusal.status,
      bytes: Buffer.byteLength(body),
      ms: 0,
      requestId,
      clientIp: plainAddress(socket.remoteAddress ?? '') ?? '-',
      fingerprint: null,
      refusal: refusalName,
    });
  };
}

/** Names and values in turn, all of them this server's own: nothing here needs checking or escaping. */
function headerLines(head: readonly string[]): string {
  let lines = '';
  for (let index = 0; index < head.length; index += 2) lines += `${head[index]}: ${head[index + 1]}\r\n`;
  return lines;
}
