// Odd header fields (RFC 9112 section 5, RFC 9110 sections 5, 7 and 10): how they are written, Host, Expect, Connection
// and Upgrade, and fields that other programs obey. The fields that say how long a body is are in odd-lengths.ts and
// odd-codings.ts.

import {
  HIDDEN, INNER, OUTER, SITE_HOST, asking, posting, refused, served, servedEarly, type OddRequest,
} from './odd-request.ts';

const get = (...lines: readonly string[]): string => asking('GET /health HTTP/1.1', ...lines);

const WRITTEN: readonly (readonly [name: string, line: string])[] = [
  ['a space before the colon', 'X-A : a'], ['a tab before the colon', 'X-A\t: a'],
  ['a NUL before the colon', 'X-A\0: a'],
  ['a vertical tab before the colon', 'X-A\x0b: a'], ['a space in the name', 'X A: a'], ['no colon', 'X-A'],
  ['no name', ': a'], ['only a colon', ':'], ['a bracket in the name', 'X(A): a'], ['a slash in the name', 'X/A: a'],
  ['an at sign in the name', 'X@A: a'], ['a quote in the name', '"X-A": a'], ['a brace in the name', '{X}: a'],
  ['a comma in the name', 'X,A: a'], ['a semicolon in the name', 'X;A: a'], ['an equals sign in the name', 'X=A: a'],
  ['a byte above ASCII in the name', 'X-\xe9: a'], ['a control character in the name', 'X\x01A: a'],
  ['a space before the name', ' X-A: a'], ['a tab before the name', '\tX-A: a'], ['a folded line', 'X-A: a\r\n b'],
  ['a line folded by a tab', 'X-A: a\r\n\tb'], ['a folded line of nothing', 'X-A: a\r\n \r\nX-B: b'],
  ['a NUL in the value', 'X-A: a\0b'], ['a control character in the value', 'X-A: a\x01b'],
  ['DEL in the value', 'X-A: a\x7fb'],
  ['a carriage return in the value', 'X-A: a\rb'], ['a carriage return at the end', 'X-A: a\r'],
  ['a line feed in the value', 'X-A: a\nX-B: b'], ['a request line in place of a field', 'GET /health HTTP/1.1'],
  ['an escape character', 'X-A: \x1b[2J'], ['a form feed', 'X-A: a\x0cb'],
  ['a carriage return and a field', 'X-A: a\rX-B: b'],
];

const HOSTS: readonly (readonly [name: string, lines: readonly string[]])[] = [
  ['two hosts', [SITE_HOST, 'Host: elsewhere.example']], ['the same host twice', [SITE_HOST, SITE_HOST]],
  ['two hosts in other cases', [SITE_HOST, 'hOST: elsewhere.example']],
  ['a host and an empty one', [SITE_HOST, 'Host:']],
  ['three hosts', [SITE_HOST, 'Host: a', 'Host: b']],
];

const HOSTS_WRITTEN: readonly (readonly [name: string, line: string])[] = [
  ['a space before the colon of Host', 'Host : paste.example'],
  ['a tab before the colon of Host', 'Host\t: paste.example'],
  ['a folded host', 'Host:\r\n paste.example'], ['a control character in the host', 'Host: paste\x01example'],
  ['a NUL in the host', 'Host: paste.example\0.elsewhere'],
];

/** None can be the name or the address of a host, with or without a port. */
const NO_HOSTS = [
  'paste.example/x', 'a b', 'a,b', 'a@b', '<script>', '"paste.example"', '[::1', 'paste.example:0',
  'paste.example:99999',
  'http://paste.example', '-', '\xe9', '../..', 'paste.example#', '*',
];

const EXPECTATIONS = [
  '200-ok', '100', 'continue', '100-continue, 100-continue', '100-continue;a=b', '100-continue, x', '"100-continue"',
  '100_continue', '',
];

/** Well-formed, and without any effect. */
const WITHOUT_EFFECT = [
  'X-A:', 'X-A: \t a \t ', 'X-A:a', 'X-A: a: b', 'x-a: \xe9\xff', 'X-!#$%&\'*+-.^_`|~0: a', 'X_A: a', '0: a',
  `X-A: ${'a'.repeat(12_000)}`,
  'X-Original-URL: /audit', 'X-Rewrite-URL: /audit', 'X-HTTP-Method-Override: DELETE', 'X-Forwarded-For: 1.2.3.4, x',
  'X-Forwarded-Host: <script>', 'X-Forwarded-Proto: javascript', 'Forwarded: for="[::1]"', 'Max-Forwards: 0',
  'Range: bytes=0-0,1-1',
  'If-None-Match: *', 'If-Match: "x"', 'Keep-Alive: timeout=0', 'TE: chunked', 'Trailer: Host',
  'HTTP2-Settings: AAMAAABk', 'Accept: */*;q=x', 'Accept-Encoding: gzip;q=2', 'Cookie: $Version=1; a',
  'Authorization: Basic !',
  'Connection: Host', 'Connection: X-Request-ID', 'Connection: keep-alive', 'Connection: ,', 'Connection: \xff',
  'Content-Length: 0',
  'Date: tomorrow', 'Via: 1.1 a', 'Content-Type: ;;', 'Content-Location: ../', 'Sec-WebSocket-Key: x', 'Early-Data: 1',
];

const UPLOAD_AFTER = `${posting('Content-Length: 5').replace(OUTER, INNER)}hello`;

const manyLines = (count: number): string[] => Array.from({ length: count }, (_, index) => `X-A${index}: 1`);

export const ODD_FIELDS: readonly OddRequest[] = [
  ...WRITTEN.map(([name, line]) => refused(name, get(line))),
  ...WRITTEN.slice(0, 4).map(([name, line]) => {
    return refused(`${name}, first`, `GET /health HTTP/1.1\r\n${line}\r\n${SITE_HOST}\r\n\r\n`);
  }),
  ...HOSTS.map(([name, lines]) => refused(name, get(...lines))),
  ...HOSTS_WRITTEN.map(([name, line]) => refused(name, get(line))),
  refused('no host', `GET /health HTTP/1.1\r\nX-Request-ID: ${OUTER}\r\n\r\n`),
  refused('nothing but the request line', 'GET /health HTTP/1.1\r\n\r\n'),
  refused('two hosts in HTTP/1.0', asking('GET /health HTTP/1.0', SITE_HOST, 'Host: b')),
  ...NO_HOSTS.map((host) => refused(`the host ${host}`, get(`Host: ${host}`))),
  served('an empty host', get('Host:'), 200),
  ...EXPECTATIONS.map((value) => {
    return refused(`Expect: ${value}`, posting(`Expect: ${value}`, 'Content-Length: 5') + 'hello', 417);
  }),
  refused('two expectations', posting('Expect: 100-continue', 'Expect: x', 'Content-Length: 5') + 'hello', 417),
  served('Expect with the body at once', posting('Expect: 100-continue', 'Content-Length: 5') + 'hello', 201),
  served('Expect in capitals', posting('EXPECT: 100-CONTINUE', 'Content-Length: 5') + 'hello', 201),
  // node ends a connection on which it was asked for 100 and did not send it.
  servedEarly('Expect without a body', get('Expect: 100-continue'), 200),
  {
    ...servedEarly('Expect without a body, and an upload', get('Expect: 100-continue') + UPLOAD_AFTER, 200),
    answers: [[200], [201]],
  },
  servedEarly(
    'Expect of a GET with a body',
    get('Expect: 100-continue', `Content-Length: ${HIDDEN.length}`) + HIDDEN,
    200,
  ),
  servedEarly(
    'Expect of what is refused',
    asking('POST /health HTTP/1.1', 'Expect: 100-continue', 'Content-Length: 5') + 'hello',
    405,
  ),
  refused(
    'an upgrade to h2c',
    get('Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk') + HIDDEN,
    200,
  ),
  refused(
    'an upgrade to a WebSocket',
    get('Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13') + HIDDEN,
    200,
  ),
  refused('an upgrade to HTTP/1.1', get('Connection: upgrade', 'Upgrade: HTTP/1.1') + HIDDEN, 200),
  refused(
    'an upgrade of an upload',
    posting('Connection: Upgrade', 'Upgrade: h2c', 'Content-Length: 5') + `hello${HIDDEN}`,
    201,
  ),
  refused('two upgrades', get('Connection: Upgrade', 'Upgrade: h2c', 'Upgrade: TLS/1.0') + HIDDEN, 200),
  refused('Connection: close and a hidden request', get('Connection: close') + HIDDEN, 200),
  refused('Connection: close among others', get('Connection: keep-alive, Close') + HIDDEN, 200),
  refused('HTTP/1.0 and a hidden request', asking('GET /health HTTP/1.0') + HIDDEN, 200),
  ...WITHOUT_EFFECT.map((line) => served(line.slice(0, 60), get(line), 200)),
  servedEarly('Proxy-Connection: close', get('Proxy-Connection: close'), 200),
  refused('a value of 17 000 bytes', get(`X-A: ${'a'.repeat(17_000)}`), 431),
  refused('a name of 17 000 bytes', get(`${'a'.repeat(17_000)}: a`), 431),
  refused('a value of 200 000 bytes', get(`X-A: ${'a'.repeat(200_000)}`), 431),
  // Host, the id of the request and what proxies add come on top of these.
  served('99 fields more', get(...manyLines(99)), 200),
  refused('114 fields more', get(...manyLines(114)), 431),
  refused('1 500 fields', get(...manyLines(1500)), 431),
  served('a field of the list twice', posting('X-Expiry: 1', 'X-Expiry: 2', 'Content-Length: 0'), 400),
  served(
    'an identity given twice is nobody\'s',
    get(...Array<string>(2).fill(`X-SSL-Client-SHA1: ${'a'.repeat(40)}`)),
    200,
  ),
  servedEarly('an encoding', posting('Content-Encoding: gzip', 'Content-Length: 5') + 'hello', 415),
];
