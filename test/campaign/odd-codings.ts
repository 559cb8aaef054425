// Odd Transfer-Encoding (RFC 9112 sections 6.1 and 6.3): written so that one reader takes it and another does not,
// alone and beside a Content-Length that says otherwise.

import {
  CHUNKED, HIDDEN, LAST_CHUNK, asking, chunk, posting, refused, served, type OddRequest,
} from './odd-request.ts';

/** For a reader that does not see chunks, the rest of the body is a request. */
const BODY = LAST_CHUNK + HIDDEN;

const VALUES = [
  'xchunked', 'chunkedx', 'chunke', 'chun ked', 'chunked chunked', 'chunked, chunked', 'chunked,chunked', 'chunked,',
  ',chunked', ', chunked',
  'chunked, identity', 'identity, chunked', 'identity', 'gzip', 'gzip, chunked', 'chunked, gzip', 'deflate',
  'compress', 'br, chunked',
  'chunked;a=b', 'chunked; q=1', 'chunked;', '"chunked"', '\'chunked\'', 'chunked\\', '\\chunked', 'chunked/1.0',
  'CHUNKED, cow', 'cow', 'cow, chunked',
  'trailers', 'null', 'false', '0', '%63hunked', 'chunked\xa0', '\xa0chunked', '\xe9chunked', '\xffchunked',
  '[chunked]', '', ' ', ',',
];

const UNPRINTABLE = [
  '\x0bchunked', 'chunked\x0b', '\x0cchunked', 'chunked\x0c', '\x00chunked', 'chunked\0', 'chun\0ked', '\x01chunked',
  'chunked\x1f', 'chunked\x7f',
  '\x1fchunked', 'chunked\r', '\rchunked', 'chunked\n', '\nchunked',
];

const WRITTEN = [
  'Transfer-Encoding : chunked', 'Transfer-Encoding\t: chunked', 'Transfer-Encoding\0: chunked',
  'Transfer-Encoding\x0b: chunked',
  ' Transfer-Encoding: chunked', '\tTransfer-Encoding: chunked', 'Transfer Encoding: chunked',
  'Transfer-Encoding chunked',
  'Transfer-Encoding:\r\n chunked', 'Transfer-Encoding:\r\n\tchunked', 'Transfer-Encoding: chunked\r\n , identity',
  'X-A: a\nTransfer-Encoding: chunked',
  'X-A: a\rTransfer-Encoding: chunked', 'X-A: a\r\r\nTransfer-Encoding: chunked',
  'X-A: a\0\r\nTransfer-Encoding: chunked',
  '\xa0Transfer-Encoding: chunked', 'Transfer-Encoding\xa0: chunked', ': a\r\nTransfer-Encoding: chunked',
];

/** Names that some programs take for the same field; this service ignores them, and the length counts. */
const OTHER_NAMES = [
  'Transfer_Encoding', 'TransferEncoding', 'Transfer-Encodin\x67g', 'X-Transfer-Encoding', 'TE', 'Transfer.Encoding',
];

const SEVERAL: readonly (readonly string[])[] = [
  [CHUNKED, CHUNKED], [CHUNKED, 'Transfer-Encoding: identity'], ['Transfer-Encoding: identity', CHUNKED],
  [CHUNKED, 'Transfer-Encoding: x'],
  ['Transfer-Encoding: x', CHUNKED], [CHUNKED, 'transfer-encoding: CHUNKED'], [CHUNKED, 'Transfer-Encoding:'],
  ['Transfer-Encoding:', CHUNKED],
  ['Transfer-Encoding: gzip', CHUNKED],
];

const lengthOf = (text: string): string => `Content-Length: ${text.length}`;

export const ODD_CODINGS: readonly OddRequest[] = [
  ...VALUES.map((value) => {
    return refused(`Transfer-Encoding: ${value}`, posting(`Transfer-Encoding: ${value}`) + BODY, 501, 400);
  }),
  ...VALUES.map((value) => {
    const bytes = posting(`Transfer-Encoding: ${value}`, lengthOf(BODY)) + BODY;
    return refused(`Transfer-Encoding: ${value}, and a length`, bytes, 400, 501);
  }),
  ...UNPRINTABLE.map((value) => {
    const bytes = posting(`Transfer-Encoding: ${value}`, lengthOf(BODY)) + BODY;
    return refused(`Transfer-Encoding: ${JSON.stringify(value)}`, bytes);
  }),
  ...WRITTEN.map((lines) => refused(JSON.stringify(lines), posting(lengthOf(BODY), lines) + BODY)),
  ...WRITTEN.map((lines) => refused(`${JSON.stringify(lines)}, without a length`, posting(lines) + BODY)),
  ...OTHER_NAMES.map((name) => served(`${name}: chunked`, posting(`${name}: chunked`, lengthOf(BODY)) + BODY, 201)),
  ...SEVERAL.map((lines) => refused(lines.join(' and '), posting(...lines) + BODY, 501, 400)),
  ...SEVERAL.map((lines) => {
    return refused(`${lines.join(' and ')}, and a length`, posting(...lines, lengthOf(BODY)) + BODY, 501, 400);
  }),
  refused('a length, then chunked, the length longer', posting(lengthOf(BODY), CHUNKED) + BODY),
  refused('chunked, then a length, the length longer', posting(CHUNKED, lengthOf(BODY)) + BODY),
  refused('a length, then chunked, the length shorter', posting('Content-Length: 4', CHUNKED) + chunk(HIDDEN)),
  refused('chunked, then a length, the length shorter', posting(CHUNKED, 'Content-Length: 4') + chunk(HIDDEN)),
  refused('a length of 0 and chunked', posting('Content-Length: 0', CHUNKED) + chunk(HIDDEN)),
  refused('chunked and a length of 0', posting(CHUNKED, 'Content-Length: 0') + chunk(HIDDEN)),
  refused('both, of a GET', asking('GET /health HTTP/1.1', lengthOf(BODY), CHUNKED) + BODY),
  refused('both, named by Connection', posting('Connection: Content-Length', lengthOf(BODY), CHUNKED) + BODY),
  refused('both, one named by Connection', posting('Connection: Transfer-Encoding', lengthOf(BODY), CHUNKED) + BODY),
  refused('chunked in HTTP/1.0', asking('POST / HTTP/1.0', CHUNKED) + chunk(HIDDEN)),
  refused(
    'chunked in HTTP/1.0 that is kept alive',
    asking('POST / HTTP/1.0', 'Connection: keep-alive', CHUNKED) + BODY,
  ),
  refused('chunked and a length in HTTP/1.0', asking('POST / HTTP/1.0', lengthOf(BODY), CHUNKED) + BODY),
  served('CHUNKED', posting('TRANSFER-ENCODING: CHUNKED') + chunk(HIDDEN), 201),
  refused('two colons', posting('Transfer-Encoding:: chunked') + BODY, 501),
  // The parser skips only spaces around a value, although tabs may be there too (RFC 9110 section 5.6.3).
  {
    ...served('chunked with tabs about it', posting('Transfer-Encoding: \tchunked\t') + chunk(HIDDEN), 201, 501),
    then: 'either',
  },
  served('chunked with spaces about it', posting('Transfer-Encoding:   chunked  ') + chunk(HIDDEN), 201),
  served('chunked of nothing', posting(CHUNKED) + LAST_CHUNK, 400),
];
