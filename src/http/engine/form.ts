// The form of a request that node's parser lets through although this server must not take it (RFC 9112): version,
// Host, framing and Expect, and the cross-site guard. What the parser itself refuses is exchange.ts.

import type { IncomingMessage } from 'node:http';
import { Refusal } from '../../core/refusals.ts';
import { isWellFormedHost, parseServiceUrl } from './host.ts';
import type { HeaderLines } from './request.ts';

/** As many as common servers take. node would drop the rest without a word. */
const MAX_HEADER_LINES = 100;

/** What proxies add, each of which may be there once beside the lines of their client. */
const PROXY_HEADERS = [
  'x-proxy-secret', 'x-ssl-client-sha1', 'x-ssl-client-cert', 'client-cert', 'x-forwarded-for', 'x-forwarded-proto',
  'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-server', 'forwarded', 'x-real-ip', 'x-request-id', 'via',
  'connection', 'accept-encoding',
] as const;

const OTHER_PROTOCOL = /^(?:RTSP|ICE)\//;

/** Bytes for the name of the protocol, and for line ends before the request. */
const MOST_AROUND = 64;

export interface Form {
  /** `Content-Length`, 0 without a body, undefined when chunked. */
  readonly declaredBytes: number | undefined;
  /** A body will come only after 100 (RFC 9110 section 10.1.1). */
  readonly expectsContinue: boolean;
}

/**
 * Refuses what is not well-formed. After that the connection is of no more use: its framing is in doubt.
 * @param isFirst of its connection.
 */
export function checkForm(req: IncomingMessage, headers: HeaderLines, isFirst: boolean): Form {
  const version = req.httpVersion;
  if ((version !== '1.1' && version !== '1.0') || ((isFirst || version === '1.0') && isOtherProtocol(req))) {
    throw new Refusal('requestMalformed', { hint: 'use HTTP/1.1' });
  }
  if (headers.count > MAX_HEADER_LINES && headers.count - proxyLines(headers) > MAX_HEADER_LINES) {
    throw new Refusal('headersTooLarge');
  }
  checkHost(version, headers.all('host'));
  const declaredBytes = declaredLength(version, headers);
  return { declaredBytes, expectsContinue: checkExpect(version, headers) && declaredBytes !== 0 };
}

/**
 * Whether it is a request of RTSP or ICE, which node's parser takes for HTTP of that version (RFC 9112 section 2.3).
 * Only what it is reading tells. Of that this is a copy, and so not for every request: who speaks another protocol does
 * so from the first one on, or in version 1.0. A head that comes in several reads passes.
 */
function isOtherProtocol({ method, url, socket }: IncomingMessage): boolean {
  // node's types do not know of it.
  const { parser } = socket as { readonly parser?: { getCurrentBuffer?(): Buffer | undefined } };
  const line = `${method} ${url} `;
  const read = parser?.getCurrentBuffer?.()?.toString('latin1', 0, line.length + MOST_AROUND).trimStart() ?? '';
  return read.startsWith(line) && OTHER_PROTOCOL.test(read.slice(line.length));
}

function proxyLines(headers: HeaderLines): number {
  return PROXY_HEADERS.filter((name) => headers.all(name).length > 0).length;
}

/** RFC 9112 section 3.2. An empty one is for targets without an authority, and HTTP/1.0 had none yet. */
function checkHost(version: string, hosts: readonly string[]): void {
  const [host] = hosts;
  if (hosts.length > 1 || (host === undefined && version === '1.1')) throw new Refusal('hostInvalid');
  if (host === undefined || host === '' || isWellFormedHost(host)) return;
  throw new Refusal('hostInvalid', { hint: 'Host is a name or an address, with or without a port' });
}

/** RFC 9112 section 6. That only one of the two headers is there, once, the parser has seen to. */
function declaredLength(version: string, headers: HeaderLines): number | undefined {
  const encodings = headers.all('transfer-encoding');
  if (encodings.length === 0) return Number(headers.single('content-length') ?? 0);
  if (version === '1.0') throw new Refusal('requestMalformed', { hint: 'HTTP/1.0 has no Transfer-Encoding' });
  if (encodings.join(',').toLowerCase() !== 'chunked') throw new Refusal('transferEncodingUnsupported');
  return undefined;
}

/** An expectation in HTTP/1.0 is ignored (RFC 9110 section 10.1.1). */
function checkExpect(version: string, headers: HeaderLines): boolean {
  const expectations = headers.all('expect');
  if (expectations.length === 0 || version === '1.0') return false;
  if (expectations.join(',').toLowerCase() !== '100-continue') throw new Refusal('expectationFailed');
  return true;
}

/**
 * Refuses what a page of another site has a browser send, with the visitor's certificate and address. Browsers say
 * whose page it is in one of these headers; curl and scripts send neither.
 *
 * @param ownUrl where the request was sent to, with scheme, host and port
 */
export function checkSite(method: string, headers: HeaderLines, ownUrl: () => string): void {
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return;
  const sites = headers.all('sec-fetch-site');
  const isOwn = sites.length > 0
    ? sites.every((site) => site === 'same-origin' || site === 'none')
    : headers.all('origin').every((origin) => isOriginOf(origin, ownUrl()));
  if (!isOwn) throw new Refusal('crossSite');
}

/** By host and port. What arrives as plain HTTP may have been HTTPS up to a proxy that does not say so. */
function isOriginOf(origin: string, ownUrl: string): boolean {
  const page = parseServiceUrl(origin);
  return [ownUrl, ownUrl.replace(/^http:/, 'https:')].map(parseServiceUrl).some((own) => (
    own !== undefined && own.host.toLowerCase() === page?.host.toLowerCase() && own.port === page.port
  ));
}
