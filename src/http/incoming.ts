// A request as handlers see it, over what the server has of it. What few handlers ask for is worked out when they ask.

import type { Socket } from 'node:net';
import { prefersText } from './accept.ts';
import { plainAddress } from './client-address.ts';
import type { Exchange } from './exchange.ts';
import type { Forwarding } from './forwarded.ts';
import { hostOf } from './host.ts';
import type { Request, RequestBody, RequestHeaders } from './request.ts';
import type { Route } from './routes.ts';
import type { Target } from './target.ts';

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
