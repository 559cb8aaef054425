// HTTP requests as strangers send them: by the grammar and the routes of the service, with values from the edges, some
// then changed byte by byte. The same seed gives the same ones. request-storm.ts says what must hold of the answers.

import { ROUTES } from '../../src/http/routes.ts';
import { BROWSERS } from './browser.ts';
import { certificationRequest, changedText, jsonBody, listQuery, powToken, scrap } from './generated-texts.ts';
import type { Seeded } from './seeded.ts';

/** What the requests may name, so that many of them get past the first checks. */
export interface Known {
  /** Ids of pastes that the strangers stored. */
  readonly ids: string[];
  /** Ids of others' pastes. */
  readonly othersIds: readonly string[];
  readonly fingerprints: readonly string[];
  readonly serials: readonly string[];
  readonly powKey: Uint8Array;
  readonly nowSeconds: number;
}

export interface GeneratedRequest {
  readonly method: string;
  readonly bytes: Buffer;
  /** Follows the grammar, so it gets exactly one answer, unless an earlier answer ends the connection. */
  readonly isWhole: boolean;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'get', 'PROPFIND', 'M-SEARCH'];

const MEDIA_TYPES = [
  'application/json', 'application/json; charset=utf-8', 'text/plain', 'application/octet-stream', 'image/png',
  'image/svg+xml', 'text/html',
  'multipart/form-data; boundary=x', 'application/x-www-form-urlencoded', '*/*', 'x', ';', 'a/b/c', 'IMAGE/PNG;q=1',
];

/** Values of each header that the service reads, valid ones first. */
const HEADER_VALUES: Readonly<Record<string, readonly string[]>> = {
  'X-Burn-After-Read': ['1', 'true', 'YES', 'no', ''],
  'X-Expiry': ['1', '60', '7776001', '0', '-1', '1.5', '9'.repeat(30), 'x'],
  'X-Remove-Password': ['1', 'true', 'maybe'],
  'X-PoW-Solution': ['0', '1', '99999999999999999999', '123456789012345678901', '-1', 'x'],
  'X-Proxy-Secret': ['the proxy secret', 'another', ''],
  
  'X-Forwarded-For': ['192.0.2.1', '2001:db8::1, 127.0.0.1', '::ffff:10.0.0.1', 'unknown', '1.2.3.4:5', ',,,', 'fe80::1%eth0'],
  'X-Forwarded-Proto': ['https', 'http', 'gopher', 'https, http'],
  'X-Forwarded-Host': ['paste.test', 'paste.test:8443', '[::1]', 'a b', '"><script>'],
  'X-Request-ID': ['abc', 'x'.repeat(128), 'x'.repeat(129), '', '<>'],
  
  'Accept': ['text/plain', 'application/json', '*/*', 'text/*;q=0.5, application/json;q=0.4', 'text/plain;q=2', ';;q', ',', BROWSERS.chrome],
  'Content-Type': MEDIA_TYPES,
  'Content-Encoding': ['identity', 'gzip', 'br, gzip', 'Identity'],
  
  'Range': ['bytes=0-0', 'bytes=0-', 'bytes=-1', 'bytes=5-2', 'bytes=9999999999999999999-', 'bytes=0-1,3-4', 'lines=1-2', 'bytes=-0'],
  'If-Range': ['"x"', 'W/"x"', 'Sat, 31 Jan 2026 12:00:00 GMT'],
  'If-None-Match': ['*', '"x"', 'W/"x", "y"', ','],
  'Expect': ['100-continue', '200-ok'],
  'Connection': ['close', 'keep-alive', 'Upgrade', 'close, x'],
  'Upgrade': ['h2c', 'websocket'],
  'Origin': ['https://paste.test', 'null'],
  'Cookie': ['a=b'],
  'Client-Cert': [':MIIB:', ':::', 'x'],
  'X-SSL-Client-Cert': ['-----BEGIN%20CERTIFICATE-----', '%', 'x'],
  'Date': ['x'],
  'X-Unknown': ['x'.repeat(5000), 'x'.repeat(17_000)],
};

/** A longer head is refused before anything in it is known; after other answers this can only end the connection. */
const MAX_HEAD_BYTES = 16_000;

/** A password check costs so much that few requests may ask for one. */
const PASSWORD_ONE_IN = 150;

/**
 * A request that is `changed` byte by byte is never a HEAD: when requests can't be told apart, answers with and without
 * content can't be either.
 */
export function generatedRequest(random: Seeded, known: Known, options: { changed: boolean }): GeneratedRequest {
  const route = random.pick(ROUTES);
  const heads = route.method === 'GET' && random.oneIn(5);
  const wanted = random.oneIn(8) ? random.pick(METHODS) : heads ? 'HEAD' : route.method;
  const method = options.changed && wanted === 'HEAD' ? 'GET' : wanted;
  // After Upgrade a changed body is noticed only as too slow, after ten seconds: test/api/http-kept-requests.test.ts.
  const lines = headerLines(random, known).filter((line) => !(options.changed && line.startsWith('Upgrade:')));
  const isForm = 'isForm' in route && !random.oneIn(4);
  if (isForm) lines.push(`Accept: ${BROWSERS.firefox}`, 'Content-Type: application/x-www-form-urlencoded');
  const body = method === 'GET' || method === 'HEAD' ? undefined : isForm ? formBody(random) : bodyFor(route.path, random);
  const isBare = body === undefined || (body.length === 0 && random.oneIn(2));
  const framed = isBare ? Buffer.alloc(0) : framing(body, lines, random);
  if (route.path.startsWith('/pki/') || random.oneIn(4)) lines.push(`Content-Type: application/json`);
  const version = random.oneIn(30) ? 'HTTP/1.0' : 'HTTP/1.1';
  const start = `${method} ${targetOf(route.path, random, known)} ${version}`;
  const head = Buffer.from([start, ...lines, '', ''].join('\r\n'), 'latin1');
  const bytes = Buffer.concat([head, framed]);
  if (!options.changed) return { method, bytes, isWhole: isRequestLine(start) && head.length < MAX_HEAD_BYTES };
  return { method, bytes: changedBytes(bytes, random), isWhole: false };
}

/** Whether its target has origin-form. The parser refuses any other, as the last answer or, after others, with none. */
function isRequestLine(start: string): boolean {
  return /^[A-Z-]+ \/[\x21-\x7e]* HTTP\/1\.[01]$/.test(start);
}

function targetOf(path: string, random: Seeded, known: Known): string {
  const id = random.oneIn(12) ? scrap(random) : random.pick(random.oneIn(3) ? known.othersIds : known.ids);
  const serial = random.oneIn(3) ? scrap(random) : random.pick(known.serials);
  let target = path.replace('{id}', () => id ?? 'abcdefgh').replace('{serial}', () => serial);
  if (/^\/(?:pastes|audit)$/.test(path) || random.oneIn(15)) target += `?${listQuery(random)}`;
  if (random.oneIn(15)) target = changedText(target, random);
  if (random.oneIn(40)) target = random.pick(['http://paste.test', 'HTTPS://a', 'ftp://x', '//x', 'http://']) + target;
  return Buffer.from(target).toString('latin1');
}

function headerLines(random: Seeded, known: Known): string[] {
  const lines = random.oneIn(40) ? [] : [`Host: ${random.oneIn(20) ? plain(scrap(random)) : 'paste.test'}`];
  for (const [name, values] of Object.entries(HEADER_VALUES)) {
    if (!random.oneIn(14)) continue;
    lines.push(`${name}: ${random.oneIn(8) ? plain(scrap(random)) : random.pick(values)}`);
    if (random.oneIn(12)) lines.push(`${name}: ${random.pick(values)}`);
  }
  if (random.oneIn(3)) lines.push(`X-SSL-Client-SHA1: ${random.pick(known.fingerprints)}`);
  if (random.oneIn(5)) lines.push(`X-PoW-Token: ${plain(powToken(random, known.powKey, known.nowSeconds))}`);
  if (random.oneIn(PASSWORD_ONE_IN)) lines.push(`X-Paste-Password: ${plain(scrap(random))}`);
  return lines;
}

/** What may stand in a field value (RFC 9110 section 5.5). */
function plain(text: string): string {
  return Buffer.from(text).toString('latin1').replace(/[\0-\x08\x0a-\x1f\x7f]/g, '');
}

function formBody(random: Seeded): Uint8Array {
  const fields = ['reveal=1', 'password=p', 'password=%F0%9F%8E%89+', 'reveal=0', 'other=1', '%', '', 'password='];
  const text = Array.from({ length: random.between(1, 3) }, () => random.pick(fields)).join('&');
  return Buffer.from(random.oneIn(4) ? changedText(text, random) : text.padEnd(random.oneIn(20) ? 8193 : 0, 'x'));
}

function bodyFor(path: string, random: Seeded): Uint8Array {
  if (path === '/pki/issue' || path === '/register') {
    const csr = certificationRequest(random);
    if (random.oneIn(3)) return Buffer.from(JSON.stringify({ common_name: 'alice', csr }));
    return jsonBody(random, random.pick(['common_name', 'csr', 'profile', 'password']));
  }
  if (path.startsWith('/pki/')) return jsonBody(random, random.pick(['common_name', 'reason']));
  if (random.oneIn(3)) return jsonBody(random, 'content');
  if (random.oneIn(50)) return random.bytes(random.pick([65_535, 65_536, 65_537, 262_144, 262_145]));
  return random.oneIn(3) ? random.bytes(random.below(3000)) : Buffer.from(scrap(random));
}

/** The body as it is sent, with the header line that says how. */
function framing(body: Uint8Array, lines: string[], random: Seeded): Uint8Array {
  if (!random.oneIn(4)) {
    lines.push(`Content-Length: ${body.length}`);
    return body;
  }
  lines.push('Transfer-Encoding: chunked');
  const pieces: Uint8Array[] = [];
  for (let start = 0; start < body.length; ) {
    const piece = body.subarray(start, start + random.between(1, 40_000));
    const extension = random.oneIn(10) ? ';a=b' : '';
    pieces.push(Buffer.from(`${piece.length.toString(16)}${extension}\r\n`), piece, Buffer.from('\r\n'));
    start += piece.length;
  }
  return Buffer.concat([...pieces, Buffer.from(random.oneIn(10) ? '0\r\nX-Trailer: x\r\n\r\n' : '0\r\n\r\n')]);
}

const INSERTED = [
  '\r\n', '\n', '\r', ' ', '\t', ':', '\0', '0\r\n\r\n', 'Content-Length: 3\r\n', 'Transfer-Encoding: chunked\r\n',
  'Host: x\r\n', 'GET / HTTP/1.1\r\n',
];

/** Up to four changes, most of them in the head; some cut the rest off. */
function changedBytes(whole: Buffer, random: Seeded): Buffer {
  let bytes = Buffer.from(whole);
  for (let changes = random.between(1, 4); changes > 0 && bytes.length > 0; changes -= 1) {
    const at = random.below(random.oneIn(4) ? bytes.length : Math.min(bytes.length, 400));
    const kept = bytes.subarray(0, at);
    if (random.oneIn(3)) bytes[at] = random.below(256);
    else if (random.oneIn(2)) bytes = Buffer.concat([kept, bytes.subarray(at + random.between(1, 5))]);
    else if (random.oneIn(8)) bytes = Buffer.from(kept);
    else bytes = Buffer.concat([kept, Buffer.from(random.pick(INSERTED)), bytes.subarray(at)]);
  }
  return bytes;
}
