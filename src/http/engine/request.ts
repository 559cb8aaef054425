// One request, from what node:http hands over to what handlers ask of it, and the state of it and of its connection.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Config } from '../../config/settings.ts';
import { expected } from '../../core/events.ts';
import { Refusal, type RefusalName } from '../../core/refusals.ts';
import type { Clock } from '../../core/time.ts';
import { BodyReader, type BodyTransfers, ClientGoneError, NO_BODY, type Pace, type RequestBody } from './body.ts';
import {
  checkForm, HeaderLines, hostOf, isWellFormedHost, parseServiceUrl, parseTarget, plainAddress, prefersHtml,
  prefersText, requestIdOf, type Target,
} from './head.ts';

/** What a request, or a TLS handshake, presents of a client certificate. */
export interface Presented {
  /** Well-formed and allowed to count; null when there is none. */
  readonly fingerprint: string | null;
  /** The certificate of that fingerprint, in DER, where the whole certificate was shown. */
  readonly certificate?: Uint8Array | undefined;
}

export const NO_CERTIFICATE: Presented = { fingerprint: null };

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

/** The route of a request before one is found, and where there is none. */
export const NO_ROUTE = '-';

export class Connection {
  readonly socket: Socket;
  readonly peer: Peer;
  /** `ending`: what arrives is ignored, as the answer of a `last` request, or `finalAnswer`, ends the connection. */
  state: 'open' | 'ending' = 'open';
  /** In the order received. The first is being answered, the others wait for it. */
  readonly requests: Request[] = [];
  /** How many requests arrived while it was `ending`. */
  ignoredRequests = 0;
  /** How much memory waiting and ignored requests may take. */
  waitingBytes = 0;
  /** Answers what came after these requests and was not a request itself. */
  finalAnswer: (() => void) | undefined;
  hasAsked = false;
  /** How fast the client takes what was written, while some of that waits for it. */
  outgoing: Pace | undefined;
  /** Bytes of TLS framing received, less as many as the content that TLS handed on. */
  framingBytes = 0;

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
  readonly config: Config;
  readonly clock: Clock;
  /** For requests that present no X-Request-ID, or an unsafe one. */
  readonly newUuid: () => string;
  readonly transfers: BodyTransfers;
  /** Which headers are believed; http/forwarded.ts. */
  readonly trust: { originOf(headers: HeaderLines, peer: Peer): Origin };
}

export class Request {
  readonly connection: Connection;
  readonly res: ServerResponse;
  /** The X-Request-ID that the answer carries. */
  readonly id: string;
  readonly method: string;
  readonly headers: HeaderLines;
  readonly origin: Origin;
  readonly startedMs: number;
  readonly body: RequestBody = NO_BODY;
  /** Set when its form is refused, whatever it asks for. */
  readonly malformed: Refusal | undefined;
  /** `last`: its answer ends the connection. `over`: its answer has been written, or the client has gone. */
  state: 'open' | 'last' | 'over' = 'open';
  /** Ends the wait for a client that takes no more. */
  wake: (() => void) | undefined;
  /** The pattern of its path, such as `/{id}/raw`. */
  route: string = NO_ROUTE;
  /** The value of the `{name}` in the route, well-formed; empty where there is none. */
  parameter = '';
  /** The status of the answer; 0 before there is one. */
  status = 0;
  refusal: RefusalName | undefined;
  sentBytes = 0;
  readonly #parts: RequestParts;
  #target: Target | undefined;

  constructor(parts: RequestParts, connection: Connection, req: IncomingMessage, res: ServerResponse) {
    this.#parts = parts;
    this.connection = connection;
    this.res = res;
    this.method = req.method ?? '';
    this.headers = new HeaderLines(req.rawHeaders);
    this.id = requestIdOf(this.headers, parts.newUuid);
    this.origin = parts.trust.originOf(this.headers, connection.peer);
    this.startedMs = parts.clock.monotonicMs();
    try {
      const form = checkForm(req, this.headers, !connection.hasAsked);
      if (form.declaredBytes !== 0) this.body = new BodyReader(req, res, form, parts.transfers);
    } catch (error) {
      this.malformed = expected(Refusal, error);
      ignoreBody(req);
    }
    connection.hasAsked = true;
    // After an Upgrade that nobody takes node drops the rest of the read: what follows may be the middle of a request.
    if (this.malformed !== undefined || this.headers.all('upgrade').length > 0) this.beLast();
  }

  /** From now on what arrives on the connection is ignored. */
  beLast(): void {
    this.state = 'last';
    this.connection.state = 'ending';
  }

  get target(): Target {
    return (this.#target ??= parseTarget(this.method, this.res.req.url ?? ''));
  }

  get query(): URLSearchParams {
    return new URLSearchParams(this.target.query);
  }

  /** `https://host/prefix`, no slash at its end: the host as the client named it, if well-formed; else the address. */
  get publicUrl(): string {
    const { socket: { localAddress, localPort }, peer } = this.connection;
    const proto = this.#forwarded('x-forwarded-proto')?.toLowerCase();
    const scheme = peer.tls === undefined ? 'http' : 'https';
    const hosts = [this.#forwarded('x-forwarded-host'), this.target.authority ?? this.headers.only('host')];
    // A unix socket has no address that a client could use.
    const listening = localPort === undefined ? 'localhost' : hostOf(plainAddress(localAddress ?? '') ?? '', localPort);
    const host = hosts.find((named) => named !== undefined && isWellFormedHost(named)) ?? listening;
    return `${proto === 'http' || proto === 'https' ? proto : scheme}://${host}${this.#parts.config.urlPrefix}`;
  }

  /** The last value, since proxies that append put their own finding last; undefined when absent or not believed. */
  #forwarded(name: string): string | undefined {
    return this.origin.isForwarded ? this.headers.all(name).at(-1)?.split(',').at(-1)?.trim() : undefined;
  }

  get prefersText(): boolean {
    return prefersText(this.headers.all('accept'));
  }

  /** Whether the client is a browser: it prefers text/html to application/json, and may have it. */
  get prefersHtml(): boolean {
    return this.#parts.config.servesHtml && prefersHtml(this.headers.all('accept'));
  }
}

/** node would keep each piece of a body that nobody reads. */
export function ignoreBody(req: IncomingMessage): void {
  req.push = () => false;
}

const isForeign = (site: string): boolean => site !== 'same-origin' && site !== 'none';

/** Refuses what a page of another site has a browser send. Browsers say whose page it is; curl and scripts do not. */
export function checkSite(request: Request): void {
  const { method, headers } = request;
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return;
  const sites = headers.all('sec-fetch-site');
  const isOwn = sites.length > 0
    ? !sites.some(isForeign)
    : headers.all('origin').every((origin) => isOriginOf(origin, request.publicUrl));
  if (!isOwn) throw new Refusal('crossSite');
}

/** Headers of a request that a browser makes in advance: the standard one, and those that were used before it. */
const IN_ADVANCE = ['sec-purpose', 'purpose', 'x-moz', 'x-purpose'];

/** Refuses what a browser fetches in advance or embeds in a page of another site; throws if the client has gone. */
export function checkAsked({ headers, state }: Request): void {
  if (state === 'over') throw new ClientGoneError('the client broke off');
  const isPart = headers.all('sec-fetch-site').some(isForeign) && headers.all('sec-fetch-dest').join() !== 'document';
  if (isPart || IN_ADVANCE.some((name) => headers.all(name).length > 0)) throw new Refusal('crossSite');
}

/** Compares host and port. What arrives as plain HTTP may have been HTTPS up to a proxy that does not say so. */
function isOriginOf(origin: string, ownUrl: string): boolean {
  const page = parseServiceUrl(origin);
  return [ownUrl, ownUrl.replace(/^http:/, 'https:')].map(parseServiceUrl).some((own) => (
    own !== undefined && own.host.toLowerCase() === page?.host.toLowerCase() && own.port === page.port
  ));
}
