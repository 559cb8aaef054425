// A request as handlers see it, over what the server has of it. What few handlers ask for is worked out when they ask.

import type { Socket } from 'node:net';
import { Refusal } from '../../core/refusals.ts';
import { type Forwarding, plainAddress } from '../forwarded.ts';
import type { Route } from '../routes.ts';
import type { Exchange } from './connections.ts';
import { hostOf, isWellFormedHost } from './host.ts';
import { prefersText, type Request, type RequestBody, type RequestHeaders } from './request.ts';

export class IncomingRequest implements Request {
  readonly id: string;
  readonly method: string;
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
  readonly headers: RequestHeaders;
  readonly body: RequestBody;
  readonly clientAddress: string;
  readonly fingerprint: string | null;
  readonly certificate: Uint8Array | undefined;
  readonly #exchange: Exchange;
  readonly #target: Target;
  readonly #forwarding: Forwarding;
  #query: URLSearchParams | undefined;

  constructor(
    exchange: Exchange,
    matched: { readonly route: Route; readonly params: Readonly<Record<string, string>> },
    target: Target,
    forwarding: Forwarding,
  ) {
    this.id = exchange.requestId;
    this.method = exchange.method;
    this.route = matched.route;
    this.params = matched.params;
    this.headers = exchange.headers;
    this.body = exchange.body;
    this.clientAddress = exchange.origin.clientAddress;
    this.fingerprint = exchange.origin.fingerprint;
    this.certificate = exchange.origin.certificate;
    this.#exchange = exchange;
    this.#target = target;
    this.#forwarding = forwarding;
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(this.#target.query);
    return this.#query;
  }

  get publicUrl(): string {
    return publicUrlOf(this.#exchange, this.#target, this.#forwarding);
  }

  get prefersText(): boolean {
    return prefersText(this.headers.all('accept'));
  }
}

/** Where the request was sent to, as the client's own URL has it. */
export function publicUrlOf(exchange: Exchange, target: Target, forwarding: Forwarding): string {
  const { headers, origin, connection: { socket, peer } } = exchange;
  return forwarding.publicUrl(headers, origin.isForwarded, {
    host: target.authority ?? headers.only('host'),
    scheme: peer.tls === undefined ? 'http' : 'https',
    listening: listeningHost(socket),
  });
}

/** A unix socket has no address that a client could use. */
function listeningHost({ localAddress, localPort }: Socket): string {
  if (localAddress === undefined || localPort === undefined) return 'localhost';
  return hostOf(plainAddress(localAddress) ?? '', localPort);
}

// The request target (RFC 9112 section 3.2), taken apart as raw text and never through `new URL()`, which would
// normalise dot segments and backslashes away. Decodes nothing: no path of this API has a character that needs it.

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
