// Odd request lines: what is no HTTP, methods, spaces, line ends and versions (RFC 9112 sections 2.2, 2.3 and 3).

import { HIDDEN, OUTER, SITE_HOST, asking, refused, served, type OddRequest } from './odd-request.ts';

const HEAD_REST = `${SITE_HOST}\r\nX-Request-ID: ${OUTER}\r\n\r\n`;

const NO_HTTP: readonly (readonly [string, string])[] = [
  ['a word', 'hello\r\n\r\n'],
  ['a TLS client', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
  ['an SSH client', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
  ['a mail client', 'EHLO paste.example\r\n\r\n'],
  ['an RTSP client', 'DESCRIBE rtsp://paste.example/ RTSP/1.0\r\n\r\n'],
  ['a SIP client', 'REGISTER sip:paste.example SIP/2.0\r\n\r\n'],
  ['a SOCKS client', '\x05\x01\x00\r\n\r\n'],
  ['the PROXY protocol', `PROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\nGET /health HTTP/1.1\r\n${HEAD_REST}`],
  [
    'the PROXY protocol in binary',
    `\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01\0\x50\0\x50${asking('GET / HTTP/1.1')}`,
  ],
  ['NUL', '\0\0\0\0\r\n\r\n'],
  ['bytes above ASCII', '\xff\xfe\xfd\r\n\r\n'],
  ['a byte order mark', `\xef\xbb\xbf${asking('GET /health HTTP/1.1')}`],
  ['an answer', `HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n`],
  ['the HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['the HTTP/2 preface and a frame', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
];

const LINES: readonly (readonly [string, string])[] = [
  ['only a method', 'GET'],
  ['a method and a space', 'GET '],
  ['no target', 'GET HTTP/1.1'],
  ['a space before the method', ' GET /health HTTP/1.1'],
  ['a tab before the method', '\tGET /health HTTP/1.1'],
  ['a space in the method', 'G ET /health HTTP/1.1'],
  ['a tab after the method', 'GET\t/health HTTP/1.1'],
  ['a tab before the version', 'GET /health\tHTTP/1.1'],
  ['a space in the target', 'GET /he alth HTTP/1.1'],
  ['a space in the version', 'GET /health HTTP /1.1'],
  ['a space before the number', 'GET /health HTTP/ 1.1'],
  ['more after the version', 'GET /health HTTP/1.1 x'],
  ['two versions', 'GET /health HTTP/1.1 HTTP/1.1'],
  ['a second request line in the first', 'GET /health HTTP/1.1, GET / HTTP/1.1'],
  ['a NUL in the method', 'GE\0T /health HTTP/1.1'],
  ['a NUL after the version', 'GET /health HTTP/1.1\0'],
  ['a vertical tab after the method', 'GET\x0b/health HTTP/1.1'],
  ['two carriage returns', 'GET /health HTTP/1.1\r'],
  ['a carriage return in the line', 'GET /health\rHTTP/1.1'],
  ['a line feed in the line', 'GET /health\nHTTP/1.1'],
  ['a method in lower case', 'get /health HTTP/1.1'],
  ['a method in mixed case', 'Get /health HTTP/1.1'],
  ['a method in quotes', '"GET" /health HTTP/1.1'],
  ['a method nobody knows', 'BREW /health HTTP/1.1'],
  ['a method that begins like one', 'GETX /health HTTP/1.1'],
  ['a method of 10 000 letters', `${'G'.repeat(10_000)} /health HTTP/1.1`],
];

const VERSIONS = [
  'HTTP/0.0', 'HTTP/0.9', 'HTTP/1.2', 'HTTP/1.9', 'HTTP/2.0', 'HTTP/2', 'HTTP/3.0', 'HTTP/9.9', 'HTTP/11', 'HTTP/1.10',
  'HTTP/01.1', 'HTTP/1.01', 'HTTP/1.', 'HTTP/.1', 'HTTP/1,1', 'HTTP/1', 'HTTP/-1.1', 'HTTP/+1.1', 'HTTP/1.1.1',
  'HTTP/a.b',
  'HTTP/', 'HTTP', 'http/1.1', 'Http/1.1', 'HTTPS/1.1', 'XHTTP/1.1', 'HTTP\\1.1', '1.1', 'HTTP/\xb9.1',
];

const OTHER_METHODS = ['PATCH', 'TRACE', 'PROPFIND', 'MKCOL', 'LINK', 'PURGE', 'M-SEARCH', 'REPORT', 'SEARCH'];

export const ODD_LINES: readonly OddRequest[] = [
  ...NO_HTTP.map(([name, bytes]) => refused(name, bytes)),
  ...LINES.map(([name, line]) => refused(name, asking(line))),
  ...VERSIONS.map((version) => refused(`version ${version}`, asking(`GET /health ${version}`))),
  // node's parser takes ICE for HTTP/1.0. The service refuses ICE, but misses it in a line that comes in pieces.
  refused('an Icecast client', 'SOURCE / ICE/1.0\r\n\r\n', 405, 400),
  refused('HTTP/0.9 without a version', 'GET /health\r\n\r\n'),
  refused('HTTP/0.9 and a hidden request', `GET /health\r\n${HIDDEN}`),
  refused('line feeds for line ends', asking('GET /health HTTP/1.1').replaceAll('\r\n', '\n')),
  refused('carriage returns for line ends', asking('GET /health HTTP/1.1').replaceAll('\r\n', '\r')),
  refused('a line feed after the request line', `GET /health HTTP/1.1\n${HEAD_REST}`),
  refused('two line feeds at the end', asking('GET /health HTTP/1.1').replace('\r\n\r\n', '\n\n')),
  refused('a line feed for the empty line', asking('GET /health HTTP/1.1').replace('\r\n\r\n', '\r\n\n')),
  refused('a line feed before the empty line', asking('GET /health HTTP/1.1').replace('\r\n\r\n', '\n\r\n')),
  refused('a space in the empty line', asking('GET /health HTTP/1.1').replace('\r\n\r\n', '\r\n \r\n')),
  served('empty lines before it', `\r\n\r\n${asking('GET /health HTTP/1.1')}`, 200),
  ...OTHER_METHODS.map((method) => served(`${method} of a known path`, asking(`${method} /health HTTP/1.1`), 405)),
  refused('a tunnel', asking('CONNECT paste.example:80 HTTP/1.1') + HIDDEN, 405),
  refused('a tunnel to a path', asking('CONNECT /health HTTP/1.1') + HIDDEN, 405, 400),
  refused(
    'a tunnel with a body',
    asking('CONNECT paste.example:80 HTTP/1.1', `Content-Length: ${HIDDEN.length}`) + HIDDEN,
    405,
  ),
  refused('a tunnel in HTTP/1.0', asking('CONNECT paste.example:80 HTTP/1.0') + HIDDEN, 405),
];
