// A request as the handlers see it: parsed once at the edge, no node:http types. Made by incoming.ts.

import type { ByteSink } from '../../core/content.ts';
import { UUID_BYTES, uuidFromHex } from '../../core/ids.ts';
import { Refusal } from '../../core/refusals.ts';
import type { RandomBytes } from '../../core/time.ts';
import type { Route } from '../routes.ts';

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

// The header lines of a request, as they came: one pass over what node:http calls rawHeaders. node's own joined form is
// not used, since it hides which lines were given twice. What a value means is for its reader.

const NONE: readonly string[] = Object.freeze([]);

export class HeaderLines implements RequestHeaders {
  /** Names in lower case and values in turn. */
  readonly #lines: readonly string[];

  /** @param rawHeaders names and values in turn, one character a byte; the names are put in lower case in place. */
  constructor(rawHeaders: string[]) {
    for (let index = 0; index < rawHeaders.length; index += 2) rawHeaders[index] = rawHeaders[index]!.toLowerCase();
    this.#lines = rawHeaders;
  }

  get count(): number {
    return this.#lines.length / 2;
  }

  single(name: string): string | undefined {
    const first = this.#find(name, 0);
    if (first === -1) return undefined;
    if (this.#find(name, first + 2) !== -1) throw new Refusal('headerRepeated', { header: name });
    return this.#lines[first + 1];
  }

  /** The value when there is exactly one such line; undefined for none and for several alike. */
  only(name: string): string | undefined {
    const first = this.#find(name, 0);
    return first === -1 || this.#find(name, first + 2) !== -1 ? undefined : this.#lines[first + 1];
  }

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

// Which of the two media types that this service can answer with a client prefers (RFC 9110 section 12.5.1). Not a
// general negotiation: there is nothing else to choose from.

/** Three decimals at most, and never above one (RFC 9110 section 12.4.2). */
const QVALUE = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** Whether text/plain has a strictly greater weight than application/json. Absent, or a wildcard, means no. */
export function prefersText(accept: readonly string[]): boolean {
  if (accept.length === 0) return false;
  const ranges = accept.join(',').toLowerCase().split(',').map(parseRange);
  return weight(ranges, 'text', 'plain') > weight(ranges, 'application', 'json');
}

interface MediaRange {
  readonly name: string;
  readonly weight: number;
}

/** A weight that is not well-formed counts as 0: such a range asks for nothing that can be understood. */
function parseRange(text: string): MediaRange {
  const [name = '', ...parameters] = text.split(';').map((part) => part.trim());
  const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice('q='.length) ?? '1';
  return { name, weight: QVALUE.test(q) ? Number(q) : 0 };
}

/** The most specific range that matches decides, not the greatest weight. Of equal ones the greater counts. */
function weight(ranges: readonly MediaRange[], type: string, subtype: string): number {
  for (const name of [`${type}/${subtype}`, `${type}/*`, '*/*']) {
    const weights = ranges.filter((range) => range.name === name).map((range) => range.weight);
    if (weights.length > 0) return Math.max(...weights);
  }
  return 0;
}

// X-Request-ID: the caller's own when it can be echoed safely, otherwise a new UUID.

/** What may be echoed: no quotes, spaces or controls, so that it is safe in a header and in any log. */
const ECHOABLE = /^[A-Za-z0-9._:/+=@-]{1,128}$/;

/** Bytes are fetched for so many ids at once: one call for each would cost more than the rest of the id. */
const IDS_PER_FETCH = 128;

/** Gives the id for a request that presents this one, or none. */
export type RequestIds = (presented?: string) => string;

export function createRequestIds(random: RandomBytes): RequestIds {
  let hex = '';
  let position = 0;
  return (presented) => {
    if (presented !== undefined && ECHOABLE.test(presented)) return presented;
    if (position === hex.length) {
      hex = Buffer.from(random(IDS_PER_FETCH * UUID_BYTES)).toString('hex');
      position = 0;
    }
    const start = position;
    position += 2 * UUID_BYTES;
    return uuidFromHex(hex.slice(start, position));
  };
}
