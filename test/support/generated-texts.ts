// Texts and bytes as strangers send them, for tests of everything that reads outside input: valid ones changed at
// random, and values from the edges of each grammar. The same seed gives the same ones. generated-requests.ts makes
// whole requests.

import { encodePem } from '../../src/authority/keys.ts';
import { challengeToken } from '../../src/crypto/digest.ts';
import { makeRequest } from './request.ts';
import type { Seeded } from './seeded.ts';

/** Texts that break parsers; some are bytes, written as one character each. */
const SCRAPS = [
  '', ' ', '\t', '\n', '\r\n', '\r', '\0', '\x7f', '\x80', '\xff', '\xc3\xa9', '\xed\xa0\x80', '\xf4\x90\x80\x80',
  '\u2028', ',', ';', ':', '=',
  '"', '\'', '\\', '/', '//', '..', '%', '%00', '%2e', '%2F', '%zz', '?', '#', '&', '*', '{', '}', '[', ']', '<', '>',
  '-', '+', '.', '~', '$',
  '0', '1', '-1', '-0', '00', '1e9', '0x10', '1_000', '2147483648', '4294967296', '9007199254740993',
  '18446744073709551616', '9'.repeat(400),
  'true', 'null', 'NaN', 'undefined', '__proto__', 'constructor', 'chunked', 'close', 'é', '😀', '\ud800',
  'x'.repeat(300),
];

export function scrap(random: Seeded): string {
  return random.pick(SCRAPS);
}

/** The text with up to four changes: characters changed, taken out, doubled, scraps put in, the end cut off. */
export function changedText(text: string, random: Seeded): string {
  let changed = text;
  for (let changes = random.between(1, 4); changes > 0; changes -= 1) {
    const at = random.below(changed.length + 1);
    const until = Math.min(changed.length, at + random.between(1, 6));
    switch (random.below(6)) {
      case 0:
        changed = changed.slice(0, at) + String.fromCharCode(random.below(256)) + changed.slice(at + 1);
        break;
      case 1:
        changed = changed.slice(0, at) + changed.slice(until);
        break;
      case 2:
        changed = changed.slice(0, until) + changed.slice(at);
        break;
      case 3:
        changed = changed.slice(0, at);
        break;
      default:
        changed = changed.slice(0, at) + scrap(random) + changed.slice(at);
    }
  }
  return changed;
}

/** A value of any kind that JSON has, nested up to `depth`. */
function jsonValue(random: Seeded, depth: number): string {
  const kind = random.below(depth > 0 ? 8 : 6);
  if (kind < 3) return jsonString(random);
  if (kind === 3) return random.pick(['true', 'false', 'null']);
  if (kind < 6) return random.pick([
    '0', '-0', '1', '1.5', '-1e400', '1e-400', '12345678901234567890', '01', '1.', '.5', '+1', 'Infinity',
  ]);
  const members = Array.from({ length: random.below(4) }, () => jsonValue(random, depth - 1));
  if (kind === 6) return `[${members.join(',')}]`;
  return `{${members.map((member) => `${jsonString(random)}:${member}`).join(random.pick([',', ' , ']))}}`;
}

const JSON_PIECES = [
  'a', 'é', '😀', '\\n', '\\"', '\\\\', '\\/', '\\u0041', '\\u0000', '\\ud83d\\ude00', '\\ud83d', '\\ude00', '\\u00',
  '\\x', '\n', '\t', '\u0000',
];

function jsonString(random: Seeded): string {
  if (random.oneIn(20)) return '"' + 'x'.repeat(random.below(70_000)) + '"';
  return `"${Array.from({ length: random.below(6) }, () => random.pick(JSON_PIECES)).join('')}"`;
}

/** A JSON document, mostly one with the named member; some are nested deeply, some changed, some not UTF-8. */
export function jsonBody(random: Seeded, member: string): Uint8Array {
  const members = [`"${member}":${jsonValue(random, 2)}`];
  while (random.oneIn(2)) {
    const name = random.oneIn(4) ? `"${member}"` : jsonString(random);
    members.push(`${name}:${jsonValue(random, 3)}`);
  }
  let text = `{${members.sort(() => random.below(3) - 1).join(',')}}`;
  if (random.oneIn(30)) text = '['.repeat(random.between(1, 20_000)) + text;
  if (random.oneIn(3)) text = changedText(text, random);
  const bytes = Buffer.from(text);
  if (bytes.length > 0 && random.oneIn(10)) bytes[random.below(bytes.length)] = random.below(256);
  return bytes;
}

/** A query for a list: known names and strange ones, numbers from the edges. */
export function listQuery(random: Seeded): string {
  const names = [
    'limit', 'offset', 'type', 'after', 'before', 'all', 'event', 'outcome', 'client_id', 'LIMIT', '', '__proto__',
  ];
  const values = [
    '0', '1', '-1', '500', '501', '1000', '1001', '1769860800', 'image/*', '*', '??', '[a-z]', '[', 'cert_issued',
    'success',
  ];
  const pairs = Array.from({ length: random.below(5) }, () => {
    const value = random.oneIn(2) ? random.pick(values) : scrap(random);
    const encoded = random.oneIn(2) ? encodeURIComponent(value.toWellFormed()) : value;
    return `${random.pick(names)}${random.oneIn(10) ? '' : '='}${encoded}`;
  });
  const query = pairs.join(random.oneIn(20) ? ';' : '&');
  return random.oneIn(4) ? changedText(query, random) : query;
}

/** A challenge token: signed with `key` or another, expired, of each purpose, or changed. */
export function powToken(random: Seeded, key: Uint8Array, nowSeconds: number): string {
  const challenge = {
    nonce: Buffer.from(random.bytes(16)).toString('hex'),
    expiresAt: nowSeconds + random.pick([-1, 0, 1, 300, 1e12]),
    difficultyBits: random.pick([0, 1, 2, 20, 256, 999, 1000]),
  };
  const token = challengeToken(random.oneIn(4) ? random.bytes(32) : key, random.pick(['paste', 'register']), challenge);
  return random.oneIn(2) ? changedText(token, random) : token;
}

let requests: readonly Uint8Array[] | undefined;

/** A certification request in PEM: right, or with its bytes or the text around them changed. */
export function certificationRequest(random: Seeded): string {
  requests ??= ['sha256', 'sha384', 'sha512'].map((digest) => makeRequest({ digest }));
  const der = Buffer.from(random.pick(requests));
  for (let changes = random.below(3); changes > 0; changes -= 1) {
    der[random.below(der.length)] = random.pick([0, 1, 0x30, 0x7f, 0x80, 0x84, 0xff]);
  }
  const pem = encodePem('CERTIFICATE REQUEST', random.oneIn(6) ? der.subarray(0, random.below(der.length)) : der);
  return random.oneIn(3) ? changedText(pem, random) : pem;
}

/** Environment texts of the given names, each likely to be absent. */
export function environment(random: Seeded, names: readonly string[]): Record<string, string> {
  const values = [
    '0', '1', '-1', '10', '60', '8080', '65535', '65536', '3MiB', '50 MiB', '5m', '1h', 'yes', 'no', 'on', 'off',
    '127.0.0.1', '::1', '[::1]:8080',
    '10.0.0.0/8,::1', '/nowhere/x', './x.db', 'production', 'https://paste.test', 'unix:/nowhere/x.sock', 'fd:3', '660',
    '0.8', '7.5', '1e3',
  ];
  const entries = names.filter(() => random.oneIn(6)).map((name) => {
    const value = random.pick(values);
    const text = random.oneIn(3) ? scrap(random) : random.oneIn(3) ? changedText(value, random) : value;
    return [random.oneIn(30) ? changedText(name, random) : name, text];
  });
  return Object.fromEntries(entries) as Record<string, string>;
}
