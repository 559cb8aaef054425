// A request as the handlers see it: parsed once at the edge, no node:http types. Made by incoming.ts.

import type { ByteSink } from '../core/bytes.ts';
import type { Route } from './routes.ts';

/** Header values as text, one HTTP rule a function. Names are lower case. */
export interface RequestHeaders {
  /** The value, undefined when absent. Given more than once: refused as `headerRepeated`, with `header` naming it. */
  single(name: string): string | undefined;
  /** Every line of that header, in order. */
  all(name: string): readonly string[];
}

export interface RequestBody {
  /** `Content-Length`; undefined for a chunked body. 0 when there is no body at all. */
  readonly declaredBytes: number | undefined;
  /** Pushes the body into the sink; at most once. Refuses one that is too slow; rejects when the client breaks off. */
  readonly pipe: (sink: ByteSink) => Promise<void>;
}

export interface Request {
  /** The X-Request-ID that the answer carries. */
  readonly id: string;
  readonly method: string;
  readonly route: Route;
  /** The values of `{name}` in the route's path, each well-formed. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: RequestHeaders;
  readonly body: RequestBody;
  /** Text form of the client's IP address, as believed (forwarded headers of trusted proxies included). */
  readonly clientAddress: string;
  /** The fingerprint that the request presents, well-formed and allowed to count; null when there is none. */
  readonly fingerprint: string | null;
  /** The certificate of that fingerprint in DER, where the whole of it was shown. */
  readonly certificate?: Uint8Array | undefined;
  /** `https://host/prefix`, without a slash at its end: for text meant for reading only. */
  readonly publicUrl: string;
  /** Whether the client prefers text/plain to application/json. */
  readonly prefersText: boolean;
}
