// Odd chunks (RFC 9112 section 7.1): sizes, extensions, line ends and trailers, with a request hidden where another
// reader of them would go on.

import {
  CHUNKED, HIDDEN, INNER, LAST_CHUNK, SITE_HOST, asking, posting, refused, served, servedEarly, type OddRequest,
} from './odd-request.ts';

const REST = `hello\r\n${LAST_CHUNK}${HIDDEN}`;

const SIZES = [
  '', ' ', ' 5', '\t5', '5 ', '5\t', '5 5', '+5', '-5', '--5', '0x5', '0X5', 'x5', '5h', '5H', 'g', '5g', '5.0',
  '5,', '5\'', '"5"', '5\x0b', '\x0b5', '5\0', '\x005',
  '\xb5', '5\xa0', 'fffffffffffffffff', '10000000000000000', '10000000000000005', `5${'f'.repeat(40)}`, 'hello',
  '%35', '5\r', '\r5', '5 ;a',
];

const EXTENSIONS_REFUSED = [
  ';a\nb', ';a\rb', ';\n', ';a\n', ';a=\nb', ';a="\n"', ';a="\r"', ';\0', ';a=\0', ';a\x7f', ';a=b\x01', '\n;a',
];

const EXTENSIONS_SERVED = [';a', ';a=b', ';a="b"', ';a=b;c=d', ';a="b;c"', ';a="b\\"c"', `;a=${'b'.repeat(1000)}`];

/** After the size of the chunk. */
const LINE_ENDS = ['\n', '\r', '\r\r\n', '\n\r', '\n\n', '\0\r\n', ' \n'];

/** After the content of the chunk. */
const CONTENT_ENDS = ['', '\n', '\r', '\n\r', '\r\r\n', ' \r\n', '\0\r\n', 'x\r\n', '\x85'];

/** In place of the last chunk. */
const ENDS = [
  '0\n\r\n', '0\r\n\n', '0\n\n', '0\r\r', '0\r\r\n\r\n', '-0\r\n\r\n', '0x0\r\n\r\n', '0 \r\n\r\n', '\r\n\r\n',
  '0\0\r\n\r\n', '0;a\nb\r\n\r\n', '+0\r\n\r\n',
];

const TRAILERS_REFUSED = [
  'no colon', ' X-A: a', 'X-A : a', ': a', 'X-A: a\r\n b', 'X-A: a\nX-B: b', 'X-A: a\rb', 'X-A: a\0', 'X(A): a',
  'GET /health HTTP/1.1',
  'X-A\0: a',
];

/** Without effect, because what the request is has been decided before them (RFC 9110 section 6.5.1). */
const TRAILERS_SERVED = [
  'X-A: a', 'Host: elsewhere.example', 'Authorization: x', `X-SSL-Client-SHA1: ${'a'.repeat(40)}`,
  'X-Proxy-Secret: x', 'X-Burn-After-Read: 1',
  'X-Paste-Password: x', 'Expect: 100-continue', 'X-Request-ID: another', 'Content-Encoding: gzip', 'Upgrade: h2c',
];

const one = (name: string, body: string, ...statuses: number[]): OddRequest => {
  return refused(name, posting(CHUNKED) + body, ...statuses);
};
const well = (name: string, body: string): OddRequest => served(name, posting(CHUNKED) + body, 201);
const afterGood = (name: string, bytes: string): OddRequest => {
  return { ...refused(name, `${bytes}nonsense\r\n\r\n${HIDDEN}`), answers: [[200, 201], [400]] };
};

export const ODD_CHUNKS: readonly OddRequest[] = [
  ...SIZES.map((size) => one(`a chunk of size ${JSON.stringify(size)}`, `${size}\r\n${REST}`)),
  ...EXTENSIONS_REFUSED.map((extension) => {
    return one(`the extension ${JSON.stringify(extension)}`, `5${extension}\r\n${REST}`);
  }),
  ...EXTENSIONS_SERVED.map((extension) => {
    return well(`the extension ${extension.slice(0, 30)}`, `5${extension}\r\nhello\r\n${LAST_CHUNK}`);
  }),
  ...LINE_ENDS.map((end) => one(`a size ended by ${JSON.stringify(end)}`, `5${end}${REST}`)),
  ...CONTENT_ENDS.map((end) => {
    return one(`a chunk ended by ${JSON.stringify(end)}`, `5\r\nhello${end}${LAST_CHUNK}${HIDDEN}`);
  }),
  ...ENDS.map((end) => one(`the last chunk ${JSON.stringify(end)}`, `5\r\nhello\r\n${end}${HIDDEN}`)),
  ...TRAILERS_REFUSED.map((lines) => {
    return one(`the trailer ${JSON.stringify(lines)}`, `5\r\nhello\r\n0\r\n${lines}\r\n\r\n`);
  }),
  ...TRAILERS_SERVED.map((line) => well(`the trailer ${line}`, `5\r\nhello\r\n0\r\n${line}\r\n\r\n`)),
  one('the trailer Content-Length', `5\r\nhello\r\n0\r\nContent-Length: ${HIDDEN.length}\r\n\r\n`, 201, 400),
  one('the trailer Transfer-Encoding', `5\r\nhello\r\n0\r\n${CHUNKED}\r\n\r\n`, 201, 400, 501),
  one('a trailer of a coding and a line feed', `5\r\nhello\r\n0\r\n${CHUNKED}x\n\r\n\r\n`, 400, 501),
  // node's parser obeys it.
  { ...well('the trailer Connection: close', '5\r\nhello\r\n0\r\nConnection: close\r\n\r\n'), then: 'either' },
  // A line feed that ends an extension for one reader, and is part of it for another.
  one('a request where an extension goes on', `5;\nhello\r\n${HIDDEN.length.toString(16)}\r\n0\r\n\r\n${HIDDEN}`),
  one('a request where a chunk goes on', `5\r\nhelloxx\r\n${LAST_CHUNK}${HIDDEN}`),
  one('a request in an extension', `5;${HIDDEN}\r\n${REST}`),
  one(
    'a request in a trailer',
    `5\r\nhello\r\n0\r\nGET /health HTTP/1.1\r\n${SITE_HOST}\r\nX-Request-ID: ${INNER}\r\n\r\n`,
  ),
  one('extensions of 17 000 bytes', `5;${'a'.repeat(17_000)}\r\n${REST}`, 400, 413),
  one('trailers of 17 000 bytes', `5\r\nhello\r\n0\r\nX-A: ${'a'.repeat(17_000)}\r\n\r\n`, 431),
  well('a size with leading zeros', `00005\r\nhello\r\n${LAST_CHUNK}`),
  well('a last chunk of many zeros', '5\r\nhello\r\n00000\r\n\r\n'),
  well('a size in capitals', `A\r\nhellohello\r\n${LAST_CHUNK}`),
  well('a last chunk with an extension', '5\r\nhello\r\n0;a=b\r\n\r\n'),
  well('a chunk for every byte', `${[...'hello'].map((letter) => `1\r\n${letter}\r\n`).join('')}${LAST_CHUNK}`),
  well('a hidden request as a chunk', `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n${LAST_CHUNK}`),
  {
    ...well('a request after the last chunk', `5\r\nhello\r\n${LAST_CHUNK}${HIDDEN}`),
    answers: [[201], [200]],
  },
  servedEarly(
    'chunks of a GET',
    asking('GET /health HTTP/1.1', CHUNKED) + `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n${LAST_CHUNK}`,
    200,
  ),
  servedEarly(
    'chunks of a HEAD',
    asking('HEAD /health HTTP/1.1', CHUNKED) + `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n${LAST_CHUNK}`,
    200,
  ),
  servedEarly(
    'chunks of OPTIONS',
    asking('OPTIONS * HTTP/1.1', CHUNKED) + `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n${LAST_CHUNK}`,
    204,
  ),
  afterGood('malformed bytes after a good request', asking('GET /health HTTP/1.1')),
  afterGood('malformed bytes after chunks', `${posting(CHUNKED)}5\r\nhello\r\n${LAST_CHUNK}`),
];
