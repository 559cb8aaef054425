// One request, from what node:http hands over to what handlers ask of it, and the state that it and its connection are
// in. Below: its form (RFC 9112), its target, its header lines. Answers are reply.ts.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Refusal, type RefusalName } from '../../core/refusals.ts';
import type { Clock } from '../../core/time.ts';
import { BodyReader, type BodyTransfers, type Form, NO_BODY, type Pace, type RequestBody } from './body.ts';
import { hostOf, isWellFormedHost, parseServiceUrl, plainAddress } from './host.ts';

/** What a request, or a TLS handshake, presents of a client certificate. */
export interface Presented {
  /** Null when it presents none. */
  readonly fingerprint: string | null;
  /** DER, where the whole of it was shown. */
  readonly certificate?: Uint8Array | undefined;
}

/** The other end of a connection; its address in the form of plainAddress. */
export interface Peer {
  readonly address: string;
  /** It is in SERVICE_TRUSTED_PROXIES. */
  readonly isTrusted: boolean;
  /** What its TLS handshake with this server has proved; undefined without TLS. */
  readonly tls: Presented | undefined;
}

/** Whom a request comes from, as far as its headers are believed. */
export interface Origin extends Presented {
  readonly clientAddress: string;
  /** The X-Forwarded-* headers of this request are believed. */
  readonly isForwarded: boolean;
}

/** Where a request was sent to: by Host or its target, and by the address and port that its connection arrived at. */
export interface Destination {
  readonly host: string | undefined;
  readonly scheme: 'http' | 'https';
  readonly listening: string;
}

/** Which headers are believed; http/forwarded.ts. */
export interface HeaderTrust {
  originOf(headers: HeaderLines, peer: Peer): Origin;
  /** `scheme://host/prefix`, without a slash at its end. Nothing in it that is not well-formed. */
  publicUrl(headers: HeaderLines, isForwarded: boolean, destination: Destination): string;
}

/** The name is that of its handler; the path is a pattern, such as `/{id}/raw`. */
export interface Route {
  readonly name: string;
  readonly path: string;
}

export const NO_ROUTE: Route = { name: '-', path: '-' };
const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

/**
 * `open`: requests are taken. `ending`: the answer that ends the connection is certain, and what arrives is ignored. It
 * is that of a request in the state `last`, or `finalAnswer`.
 */
export type ConnectionState = 'open' | 'ending';

export class Connection {
  readonly socket: Socket;
  readonly peer: Peer;
  state: ConnectionState = 'open';
  /** In the order received. The first is being answered, the others wait for it. */
  readonly requests: Request[] = [];
  /** Answers what came after these and was no request itself. */
  finalAnswer: (() => void) | undefined;
  hasAsked = false;
  /** While something written waits for the client to take it. */
  outgoing: Pace | undefined;

  constructor(socket: Socket, peer: Peer) {
    this.socket = socket;
    this.peer = peer;
  }

  /** Ends the connection with this answer, after those of the requests in progress. The first such answer stays. */
  endWith(answer: () => void): void {
    if (this.state === 'ending') return;
    this.state = 'ending';
    if (this.requests.length === 0) answer();
    else this.finalAnswer = answer;
  }
}

/** What the requests of one server share. */
export interface RequestParts {
  readonly clock: Clock;
  /** The X-Request-ID of a request that presents this one, or none. */
  readonly requestIdOf: (presented?: string) => string;
  readonly transfers: BodyTransfers;
  readonly trust: HeaderTrust;
}

/**
 * `open`: waits for its turn or is being answered, and others may follow it. `last`: the same, but its answer ends the
 * connection. `over`: its answer has been written, or the client has gone.
 */
export type RequestState = 'open' | 'last' | 'over';

export class Request {
  readonly connection: Connection;
  readonly res: ServerResponse;
  /** The X-Request-ID that the answer carries. */
  readonly id: string;
  readonly method: string;
  readonly headers: HeaderLines;
  readonly origin: Origin;
  readonly startedMs: number;
  /** Undefined without a body. */
  readonly reader: BodyReader | undefined;
  /** Its form is refused, whatever it asks for. */
  readonly malformed: Refusal | undefined;
  state: RequestState = 'open';
  /** Ends the wait for a client that takes no more. */
  wake: (() => void) | undefined;
  route: Route = NO_ROUTE;
  /** The values of `{name}` in the route's path, each well-formed. */
  params: Readonly<Record<string, string>> = NO_PARAMS;
  /** Of the answer; 0 before there is one. */
  status = 0;
  /** Why the answer says no. */
  refusal: RefusalName | undefined;
  sentBytes = 0;
  readonly #parts: RequestParts;
  #target: Target | undefined;
  #query: URLSearchParams | undefined;

  constructor(parts: RequestParts, connection: Connection, req: IncomingMessage, res: ServerResponse) {
    this.#parts = parts;
    this.connection = connection;
    this.res = res;
    this.method = req.method ?? '';
    this.headers = new HeaderLines(req.rawHeaders);
    this.id = parts.requestIdOf(this.headers.only('x-request-id'));
    this.origin = parts.trust.originOf(this.headers, connection.peer);
    this.startedMs = parts.clock.monotonicMs();
    try {
      const form = checkForm(req, this.headers, !connection.hasAsked);
      if (form.declaredBytes !== 0) this.reader = new BodyReader(req, res, form, parts.transfers);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.malformed = error;
      // node would keep each piece of a body that nobody reads.
      req.push = () => false;
    }
    connection.hasAsked = true;
    // node drops what came in one read after an Upgrade that nobody takes: what follows may be the middle of a request.
    if (this.malformed !== undefined || this.headers.all('upgrade').length > 0) this.beLast();
  }

  /** From now on what arrives on the connection is ignored. */
  beLast(): void {
    this.state = 'last';
    this.connection.state = 'ending';
  }

  get body(): RequestBody {
    return this.reader ?? NO_BODY;
  }

  get clientAddress(): string {
    return this.origin.clientAddress;
  }

  /** The fingerprint that the request presents, well-formed and allowed to count; null when there is none. */
  get fingerprint(): string | null {
    return this.origin.fingerprint;
  }

  /** The certificate of that fingerprint in DER, where the whole of it was shown. */
  get certificate(): Uint8Array | undefined {
    return this.origin.certificate;
  }

  get target(): Target {
    this.#target ??= parseTarget(this.method, this.res.req.url ?? '');
    return this.#target;
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(this.target.query);
    return this.#query;
  }

  /** `https://host/prefix`, without a slash at its end, as the client's own URL has it: for text meant for reading. */
  get publicUrl(): string {
    const { socket, peer } = this.connection;
    return this.#parts.trust.publicUrl(this.headers, this.origin.isForwarded, {
      host: this.target.authority ?? this.headers.only('host'),
      scheme: peer.tls === undefined ? 'http' : 'https',
      listening: listeningHost(socket),
    });
  }

  /** Whether the client prefers text/plain to application/json. */
  get prefersText(): boolean {
    return prefersText(this.headers.all('accept'));
  }
}

/** A unix socket has no address that a client could use. */
function listeningHost({ localAddress, localPort }: Socket): string {
  if (localAddress === undefined || localPort === undefined) return 'localhost';
  return hostOf(plainAddress(localAddress) ?? '', localPort);
}

// The form of a request: what node's parser lets through although this server must not take it (RFC 9112).

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
const BYTES_AROUND = 64;

/** Of a request that is refused here, one can't tell where it ends. `isFirst`: of its connection. */
function checkForm(req: IncomingMessage, headers: HeaderLines, isFirst: boolean): Form {
  const version = req.httpVersion;
  if ((version !== '1.1' && version !== '1.0') || ((isFirst || version === '1.0') && isOtherProtocol(req))) {
    throw new Refusal('requestMalformed', { hint: 'use HTTP/1.1' });
  }
  if (headers.count > MAX_HEADER_LINES) {
    const fromProxies = PROXY_HEADERS.filter((name) => headers.all(name).length > 0).length;
    if (headers.count - fromProxies > MAX_HEADER_LINES) throw new Refusal('headersTooLarge');
  }
  checkHost(version, headers.all('host'));
  return { declaredBytes: declaredLength(version, headers), expectsContinue: checkExpect(version, headers) };
}

/** RFC 9112 section 3.2. An empty one is for targets without an authority, and HTTP/1.0 had none yet. */
function checkHost(version: string, hosts: readonly string[]): void {
  const [host] = hosts;
  if (hosts.length > 1 || (host === undefined && version === '1.1')) throw new Refusal('hostInvalid');
  if (host === undefined || host === '' || isWellFormedHost(host)) return;
  throw new Refusal('hostInvalid', { hint: 'Host is a name or an address, with or without a port' });
}

/**
 * Whether it is a request of RTSP or ICE, which node's parser takes for HTTP of that version (RFC 9112 section 2.3).
 * Only the parser's buffer tells, and reading it is a copy, so it is not asked of every request: who speaks another
 * protocol does so from the first one on, or in version 1.0. A head that comes in several reads passes.
 */
function isOtherProtocol({ method, url, socket }: IncomingMessage): boolean {
  // node's types do not know of it.
  const { parser } = socket as { readonly parser?: { getCurrentBuffer?(): Buffer | undefined } };
  const line = `${method} ${url} `;
  const read = parser?.getCurrentBuffer?.()?.toString('latin1', 0, line.length + BYTES_AROUND).trimStart() ?? '';
  return read.startsWith(line) && OTHER_PROTOCOL.test(read.slice(line.length));
}

/** RFC 9112 section 6. That only one of the two headers is there, once, the parser checks. */
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
 */
export function checkSite(request: Request): void {
  const { method, headers } = request;
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return;
  const sites = headers.all('sec-fetch-site');
  const isOwn = sites.length > 0
    ? sites.every((site) => site === 'same-origin' || site === 'none')
    : headers.all('origin').every((origin) => isOriginOf(origin, request.publicUrl));
  if (!isOwn) throw new Refusal('crossSite');
}

/** By host and port. What arrives as plain HTTP may have been HTTPS up to a proxy that does not say so. */
function isOriginOf(origin: string, ownUrl: string): boolean {
  const page = parseServiceUrl(origin);
  return [ownUrl, ownUrl.replace(/^http:/, 'https:')].map(parseServiceUrl).some((own) => (
    own !== undefined && own.host.toLowerCase() === page?.host.toLowerCase() && own.port === page.port
  ));
}

// The request target (RFC 9112 section 3.2), taken apart as raw text and never through `new URL()`, which would
// normalise dot segments and backslashes away. Nothing is decoded: no path of this API has a character that needs it.

export interface Target {
  /** The raw path, beginning with a slash; `*` for the server as a whole (OPTIONS only). */
  readonly path: string;
  /** What follows the first question mark; empty when there is none. */
  readonly query: string;
  /** The host that an absolute-form target names, well-formed: it stands in for Host (RFC 9112 section 3.2.2). */
  readonly authority: string | undefined;
}

const ABSOLUTE = /^https?:\/\/([^/?]*)(.*)$/i;

/** `.` and `..` as whole segments, also when written with `%2e` (RFC 3986 section 6.2.2.2 makes that the same). */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/** Refuses as `targetInvalid` what is no origin-form, http(s) absolute-form or `*`, and paths that are not plain. */
export function parseTarget(method: string, target: string): Target {
  if (target.charCodeAt(0) === 0x2f) return splitTarget(target, undefined);
  if (target === '*' && method === 'OPTIONS') return { path: '*', query: '', authority: undefined };
  const [, authority, rest] = ABSOLUTE.exec(target) ?? [];
  if (authority === undefined || rest === undefined || !isWellFormedHost(authority)) throw new Refusal('targetInvalid');
  // RFC 9112 section 3.2.4: without any path, OPTIONS means the server as a whole.
  if (rest === '' && method === 'OPTIONS') return { path: '*', query: '', authority };
  return splitTarget(rest.startsWith('/') ? rest : `/${rest}`, authority);
}

function splitTarget(target: string, authority: string | undefined): Target {
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  // A fragment is never sent (RFC 9110 section 7.1); whoever sends one means another path than we would read.
  if (path.includes('\\') || target.includes('#') || DOT_SEGMENT.test(path)) throw new Refusal('targetInvalid');
  return { path, query: mark === -1 ? '' : target.slice(mark + 1), authority };
}

const NONE: readonly string[] = Object.freeze([]);

/**
 * The header lines of a request as they came, by names in lower case. node's joined form would hide which lines were
 * given twice.
 */
export class HeaderLines {
  /** Names and values in turn. */
  readonly #lines: readonly string[];

  /** @param rawHeaders names and values in turn, one character a byte; the names are put in lower case in place. */
  constructor(rawHeaders: string[]) {
    for (let index = 0; index < rawHeaders.length; index += 2) rawHeaders[index] = rawHeaders[index]!.toLowerCase();
    this.#lines = rawHeaders;
  }

  get count(): number {
    return this.#lines.length / 2;
  }

  /** The value, undefined when absent. Given more than once: refused as `headerRepeated`, with `header` naming it. */
  single(name: string): string | undefined {
    const first = this.#find(name, 0);
    if (first === -1) return undefined;
    if (this.#find(name, first + 2) !== -1) throw new Refusal('headerRepeated', { header: name });
    return this.#lines[first + 1];
  }

  /** The value of the one such line; undefined for none and for several alike. */
  only(name: string): string | undefined {
    const first = this.#find(name, 0);
    return first === -1 || this.#find(name, first + 2) !== -1 ? undefined : this.#lines[first + 1];
  }

  /** Every line of that header, in order. */
  all(name: string): readonly string[] {
    let index = this.#find(name, 0);
    if (index === -1) return NONE;
    const values: string[] = [];
    for (; index !== -1; index = this.#find(name, index + 2)) values.push(this.#lines[index + 1]!);
    return values;
  }

  #find(name: string, from: number): number {
    const lines = this.#lines;
    for (let index = from; index < lines.length; index += 2) if (lines[index] === name) return index;
    return -1;
  }
}

export type RequestHeaders = Pick<HeaderLines, 'single' | 'all'>;

/** Three decimals at most, and never above one (RFC 9110 section 12.4.2). */
const QVALUE = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * Whether text/plain has a strictly greater weight than application/json in these lines of Accept (RFC 9110 section
 * 12.5.1). Absent, or a wildcard, means no.
 */
export function prefersText(accept: readonly string[]): boolean {
  if (accept.length === 0) return false;
  const weights = new Map<string, number>();
  for (const range of accept.join(',').toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice('q='.length) ?? '1';
    // A weight that is not well-formed counts as 0: such a range asks for nothing that can be understood.
    weights.set(name, Math.max(weights.get(name) ?? 0, QVALUE.test(q) ? Number(q) : 0));
  }
  // The most specific range that matches decides, not the greatest weight.
  const any = weights.get('*/*') ?? 0;
  const text = weights.get('text/plain') ?? weights.get('text/*') ?? any;
  return text > (weights.get('application/json') ?? weights.get('application/*') ?? any);
}
