// What the head of a request may say: its form, target and header lines, and the text forms of hosts and addresses.
// Reading is strict: what passes is safe to show and to put into a script.

import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv4, isIPv6, SocketAddress } from 'node:net';
import { parseAddress } from '../../core/callers.ts';
import { Refusal } from '../../core/refusals.ts';
import type { Form } from './body.ts';

/** As many as common servers take, plus the lines that proxies add to those of their client. */
export const MAX_HEADER_LINES = 115;

/** Refuses what node's parser lets through although RFC 9112 does not: nobody can tell where such a request ends. */
export function checkForm(req: IncomingMessage, headers: HeaderLines, isFirstOfConnection: boolean): Form {
  const version = req.httpVersion;
  // Looking copies the parser's buffer; and a client of another protocol speaks it from the first request on.
  const isDoubtful = isFirstOfConnection || version === '1.0';
  if ((version !== '1.1' && version !== '1.0') || (isDoubtful && isOtherProtocol(req))) {
    throw new Refusal('requestMalformed', { hint: 'use HTTP/1.1' });
  }
  if (req.rawHeaders.length > 2 * MAX_HEADER_LINES) throw new Refusal('headersTooLarge');
  checkHost(version, headers.all('host'));
  return { declaredBytes: declaredLength(version, headers), expectsContinue: checkExpect(version, headers) };
}

/** RFC 9112 section 3.2. An empty Host is for targets without an authority, and HTTP/1.0 had no Host yet. */
function checkHost(version: string, hosts: readonly string[]): void {
  const [host] = hosts;
  if (hosts.length > 1 || (host === undefined && version === '1.1')) throw new Refusal('hostInvalid');
  if (host === undefined || host === '' || isWellFormedHost(host)) return;
  throw new Refusal('hostInvalid', { hint: 'Host is a name or an address, with or without a port' });
}

/** Bytes for the name of the protocol, and for line ends before the request. */
const BYTES_AROUND = 64;

/** Whether it is RTSP or ICE, which node's parser takes for HTTP (RFC 9112 section 2.3). Misses heads read in parts. */
function isOtherProtocol({ method, url, socket }: IncomingMessage): boolean {
  // Only the parser's buffer tells; node's types do not know of it.
  const { parser } = socket as { readonly parser?: { getCurrentBuffer?(): Buffer | undefined } };
  const line = `${method} ${url} `;
  const read = parser?.getCurrentBuffer?.()?.toString('latin1', 0, line.length + BYTES_AROUND).trimStart() ?? '';
  return read.startsWith(line) && /^(?:RTSP|ICE)\//.test(read.slice(line.length));
}

/** RFC 9112 section 6. The parser checks that only one of the two headers is there, and only once. */
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

/** The request target (RFC 9112 section 3.2) as raw text: `new URL()` would normalise dot segments and backslashes. */
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
  // A fragment is never sent (RFC 9110 section 7.1): a client that sends one means another path than we would read.
  if (path.includes('\\') || target.includes('#') || DOT_SEGMENT.test(path)) throw new Refusal('targetInvalid');
  return { path, query: mark === -1 ? '' : target.slice(mark + 1), authority };
}

const NONE: readonly string[] = Object.freeze([]);

/** The header lines of a request as they came. node's joined form would hide which were given twice. */
export class HeaderLines {
  readonly #lines: readonly string[];

  /** Names and values in turn, one character a byte; the names are put in lower case in place. */
  constructor(rawHeaders: string[]) {
    for (let index = 0; index < rawHeaders.length; index += 2) rawHeaders[index] = rawHeaders[index]!.toLowerCase();
    this.#lines = rawHeaders;
  }

  /** The value, undefined when absent. Given more than once: refused as `headerRepeated`, with `header` naming it. */
  single(name: string): string | undefined {
    const values = this.all(name);
    if (values.length > 1) throw new Refusal('headerRepeated', { header: name });
    return values[0];
  }

  /** The value; undefined when absent and when given more than once. */
  only(name: string): string | undefined {
    const values = this.all(name);
    return values.length > 1 ? undefined : values[0];
  }

  all(name: string): readonly string[] {
    const lines = this.#lines;
    let values: string[] | undefined;
    for (let index = 0; index < lines.length; index += 2) {
      if (lines[index] === name) (values ??= []).push(lines[index + 1]!);
    }
    return values ?? NONE;
  }
}

/** RFC 9110 section 12.4.2. */
const QVALUE = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** Whether text/plain weighs more than application/json in these lines of Accept (RFC 9110 section 12.5.1). */
export function prefersText(accept: readonly string[]): boolean {
  return accept.length > 0 && outweighJson(accept, ['text/plain', 'text/*', '*/*']);
}

/** The same for text/html, which must be named, as every browser does: clients with `text/*` mean text/plain. */
export function prefersHtml(accept: readonly string[]): boolean {
  return accept.some((line) => /text\/html/i.test(line)) && outweighJson(accept, ['text/html']);
}

/** The most specific range that matches decides, not the greatest weight. */
function outweighJson(accept: readonly string[], ranges: readonly string[]): boolean {
  const weights = new Map<string | undefined, number>();
  for (const range of accept.join(',').toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice('q='.length) ?? '1';
    // A weight that is not well-formed counts as 0: such a range asks for nothing that can be understood.
    weights.set(name, Math.max(weights.get(name) ?? 0, QVALUE.test(q) ? Number(q) : 0));
  }
  const weightOf = (names: readonly string[]): number => weights.get(names.find((name) => weights.has(name))) ?? 0;
  return weightOf(ranges) > weightOf(['application/json', 'application/*', '*/*']);
}

/** What may be echoed: no quotes, spaces or controls, so that it is safe in a header and in any log. */
const ECHOABLE = /^[A-Za-z0-9._:/+=@-]{1,128}$/;

/** The X-Request-ID that a request presents, when that is safe, or a new one. */
export function requestIdOf(headers: HeaderLines, newUuid: () => string): string {
  const presented = headers.only('x-request-id');
  return presented !== undefined && ECHOABLE.test(presented) ? presented : newUuid();
}

/** A name or IPv4. The longest name of the DNS has 253 characters; systemd-resolved has names such as `_gateway`. */
const NAMED = /^([A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9._])?)(?::(\d{1,5}))?$/;
const BRACKETED = /^\[([0-9A-Fa-f:.]{2,45})\](?::(\d{1,5}))?$/;

/** Whether the text is `name[:port]`, `v4[:port]` or `[v6][:port]`. */
export function isWellFormedHost(text: string): boolean {
  return readHost(text) !== null;
}

/** The whole text, then the name or the address without brackets, then the port; null if it is not well-formed. */
function readHost(text: string): readonly string[] | null {
  const named = NAMED.exec(text);
  const read = named ?? BRACKETED.exec(text);
  const [, host = '', port] = read ?? [];
  if (named === null && !isIPv6(host)) return null;
  return port === undefined || (Number(port) >= 1 && Number(port) <= 65535) ? read : null;
}

/** The address and port as a URL writes them. */
export function hostOf(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

const SERVICE_URL = /^(https?):\/\/([^/]+)((?:\/[A-Za-z0-9._~-]+)*)\/?$/;

/** `url` without a slash at its end, and its parts; `host` without brackets. Undefined for any other form of URL. */
export function parseServiceUrl(text: string) {
  const [, scheme, authority = '', prefix = ''] = SERVICE_URL.exec(text) ?? [];
  const [, host, port] = readHost(authority) ?? [];
  if (scheme === undefined || host === undefined) return undefined;
  const isTls = scheme === 'https';
  return { url: `${scheme}://${authority}${prefix}`, isTls, host, port: Number(port ?? (isTls ? 443 : 80)), prefix };
}

/** An address in one form: IPv4 in decimal, also if mapped; IPv6 compressed, in lower case, without zone (RFC 4007). */
export function plainAddress(text: string): string | undefined {
  if (isIPv4(text)) return text;
  const address = text.replace(/%[^%,\/\s]+$/, '');
  // isIPv6 of node:net is not used: its regular expression takes 8 ms to compile, at every start.
  if (!address.includes(':') || parseAddress(address) === undefined) return undefined;
  const canonical = new SocketAddress({ family: 'ipv6', address }).address;
  // RFC 4291 section 2.5.5.2, as inet_ntop writes it.
  const mapped = canonical.replace(/^::ffff:/, '');
  return isIPv4(mapped) ? mapped : canonical;
}

/** Whether an address in plain form (a mapped one as IPv4) is in one of these blocks, which config/load.ts checked. */
export function networkMatcher(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    list.addSubnet(address, Number(prefix ?? (family(address) === 'ipv6' ? 128 : 32)), family(address));
  }
  return (address) => list.check(address, family(address));
}

function family(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4';
}
