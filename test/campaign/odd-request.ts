// An odd request is malformed, or two programs could read it differently (RFC 9112 section 11.2). This file has what
// the tables of odd requests are written with. The tables are odd-lines.ts, odd-targets.ts, odd-fields.ts,
// odd-lengths.ts, odd-codings.ts and odd-chunks.ts; odd-requests.ts sends them.

import { head } from '../support/raw-http.ts';

export interface OddRequest {
  readonly name: string;
  /** One character for each byte, with OUTER and INNER where the ids of requests stand. */
  readonly bytes: string;
  /** What each answer may be: one answer for each request that RFC 9112 sees in the bytes. */
  readonly answers: readonly Statuses[];
  /** Of the connection. `ends` where one cannot tell where the request ends; `either`: it may end after any answer. */
  readonly then: 'ends' | 'goesOn' | 'either';
  /** Of the first request, where that matters to its answer. */
  readonly method: string;
}

export type Statuses = readonly number[];

/** Ids of the request, of the one hidden in it, and of one sent after it. Another id of that length replaces each. */
export const OUTER = 'outer-@@@@';
export const INNER = 'inner-@@@@';
export const AFTER = 'after-@@@@';

/** As in scripts/deploy. */
export const SITE_HOST = 'Host: paste.example';

/** A whole request that nobody made: an answer to it means that a request was smuggled. */
export const HIDDEN = head('GET /health HTTP/1.1', SITE_HOST, `X-Request-ID: ${INNER}`);

export const CHUNKED = 'Transfer-Encoding: chunked';
export const LAST_CHUNK = '0\r\n\r\n';

/** A head with a host and the outer id; a `Host` among the lines takes the place of the host. */
export function asking(requestLine: string, ...lines: readonly string[]): string {
  const host = lines.some((line) => /^host[ \t]*:/i.test(line)) ? [] : [SITE_HOST];
  return `${[requestLine, ...host, `X-Request-ID: ${OUTER}`, ...lines].join('\r\n')}\r\n\r\n`;
}

export function posting(...lines: readonly string[]): string {
  return asking('POST / HTTP/1.1', ...lines);
}

/** One chunk and the last one. */
export function chunk(content: string): string {
  return `${content.length.toString(16)}\r\n${content}\r\n${LAST_CHUNK}`;
}

/** Refused, and the connection ends: the framing is in doubt. */
export function refused(name: string, bytes: string, ...statuses: number[]): OddRequest {
  return { name, bytes, answers: [statuses.length === 0 ? [400] : statuses], then: 'ends', method: 'GET' };
}

/** One answer, and the connection serves what comes after. */
export function served(name: string, bytes: string, ...statuses: number[]): OddRequest {
  return { name, bytes, answers: [statuses], then: 'goesOn', method: bytes.slice(0, bytes.indexOf(' ')) };
}

/** Like `served`, but the answer may come before the end of the body, and then ends the connection. */
export function servedEarly(name: string, bytes: string, ...statuses: number[]): OddRequest {
  return { ...served(name, bytes, ...statuses), then: 'either' };
}
