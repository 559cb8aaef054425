// Odd Content-Length (RFC 9112 section 6.2 and 6.3): how it is written, given twice, or of a request that needs none.

import { HIDDEN, SITE_HOST, asking, posting, refused, served, servedEarly, type OddRequest } from './odd-request.ts';

/** A reader that understands the length in another way would read a request in the rest. */
const BODY = `hello${HIDDEN}`;

const REFUSED = [
  '+5', '-5', '0x5', '0o5', '5h', '5, 5', '5,5', '5, 6', '0, 5', '5, 0', '5,', ',5', '5 5', '5\t5', '5.0', '5e0',
  '5;', '5;a=b', '"5"', '\'5\'',
  'five', '', ' ', '\xb5', '5\xa0', '\x0b5', '5\x0b', '5\0', '\x005', '5\x7f', '5_0', '0b1', 'NaN', 'Infinity', '٥',
  '1 000', '5\r\n 5',
  '5\r', '5\n5', '18446744073709551616', '18446744073709551621', '99999999999999999999', `5${'0'.repeat(100)}`,
];

const TWICE: readonly (readonly [string, string])[] = [
  ['5', '5'], ['5', '0'], ['0', '5'], ['5', '6'], ['5', ''], ['', '5'], ['5', '+5'], ['0', '0'],
];

const WRITTEN = [
  'Content-Length : 5', 'Content-Length\t: 5', 'Content-Length\0: 5', 'Content-Length\x0b: 5', ' Content-Length: 5',
  '\tContent-Length: 5',
  'Content Length: 5', 'Content-Length 5', 'Content-Length:\r\n 5', 'X-A: a\nContent-Length: 5',
  'X-A: a\rContent-Length: 5', 'Content-Length: 5\r\n\t',
  '\xa0Content-Length: 5', 'Content-Length:: 5',
];

/** Other names: without the length, what follows the head is a request of its own. */
const OTHER_NAMES = ['Content_Length', 'ContentLength', 'Content-Length-', 'X-Content-Length', 'Content-Lengt\x68h'];

const METHODS_WITHOUT_BODY: readonly (readonly [line: string, status: number])[] = [
  ['GET /health', 200], ['HEAD /health', 200], ['OPTIONS *', 204], ['OPTIONS /health', 204],
  ['DELETE /abcdefgh', 401], ['TRACE /health', 405],
  ['GET /a/b/c', 404], ['HEAD /', 200], ['GET /../a', 400], ['PATCH /', 405], ['POST /health', 405], ['GET /pki', 200],
];

export const ODD_LENGTHS: readonly OddRequest[] = [
  ...REFUSED.map((value) => {
    return refused(`Content-Length: ${value.slice(0, 30)}`, posting(`Content-Length: ${latin1(value)}`) + BODY);
  }),
  ...TWICE.map(([one, other]) => {
    const bytes = posting(`Content-Length: ${one}`, `Content-Length: ${other}`) + BODY;
    return refused(`Content-Length: ${one} and ${other}`, bytes);
  }),
  refused('a length in other cases too', posting('Content-Length: 5', 'cONTENT-lENGTH: 5') + BODY),
  ...WRITTEN.map((lines) => refused(lines, posting(lines) + BODY)),
  refused(
    'a length before the host, folded',
    `POST / HTTP/1.1\r\nContent-Length:\r\n\t5\r\n${SITE_HOST}\r\n\r\n${BODY}`,
  ),
  served('Content-Length: 05', posting('Content-Length: 05') + 'hello', 201),
  served('Content-Length with spaces about it', posting('Content-Length: \t 5 \t') + 'hello', 201),
  served('Content-Length: 000...05', posting(`Content-Length: ${'0'.repeat(50)}5`) + 'hello', 201),
  served('a body of a hidden request', posting(`Content-Length: ${HIDDEN.length}`) + HIDDEN, 201),
  servedEarly(
    'a JSON body that is none',
    posting('Content-Type: application/json', `Content-Length: ${HIDDEN.length}`) + HIDDEN,
    400,
  ),
  served('no length and no body', posting(), 400),
  {
    ...served('a length of 0 and a request after it', posting('Content-Length: 0') + HIDDEN, 400),
    answers: [[400], [200]],
  },
  ...OTHER_NAMES.map((name): OddRequest => {
    return { ...served(`${name}: 5`, posting(`${name}: ${HIDDEN.length}`) + HIDDEN, 400), answers: [[400], [200]] };
  }),
  ...METHODS_WITHOUT_BODY.map(([line, status]) => {
    const bytes = asking(`${line} HTTP/1.1`, `Content-Length: ${HIDDEN.length}`) + HIDDEN;
    return servedEarly(`${line} with a body`, bytes, status);
  }),
  ...['9223372036854775807', '9223372036854775808', '18446744073709551615', '4294967296', '104857600'].map((value) => {
    return refused(`Content-Length: ${value}`, posting(`Content-Length: ${value}`) + HIDDEN, 413, 400);
  }),
  refused('HTTP/1.0 with a body and a request after it', asking('POST / HTTP/1.0', 'Content-Length: 5') + BODY, 201),
  refused(
    'a length named by Connection',
    posting('Connection: close, Content-Length', `Content-Length: ${HIDDEN.length}`) + HIDDEN,
    201,
  ),
];

/** As UTF-8, one character a byte. */
function latin1(text: string): string {
  return /^[\0-\xff]*$/.test(text) ? text : Buffer.from(text).toString('latin1');
}
