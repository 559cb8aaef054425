// PEM as it is written, and everything near it that is refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodePem, encodePem } from '../../src/authority/keys.ts';

const BYTES = Uint8Array.from({ length: 100 }, (_, i) => i);
const PEM = encodePem('CERTIFICATE', BYTES);

test('encodePem: lines of 64 characters, a newline at the end', () => {
  const lines = PEM.split('\n');
  assert.equal(lines[0], '-----BEGIN CERTIFICATE-----');
  assert.deepEqual(lines.slice(-2), ['-----END CERTIFICATE-----', '']);
  assert.deepEqual(lines.slice(1, -2).map((line) => line.length), [64, 64, 8]);
});

test('decodePem: gives back what was encoded, for every length around a full line', () => {
  for (let size = 1; size <= 150; size += 1) {
    const bytes = new Uint8Array(size).fill(size);
    assert.deepEqual(Buffer.from(decodePem(encodePem('X509 CRL', bytes), 'X509 CRL') ?? []), Buffer.from(bytes));
  }
});

test('decodePem: takes either ending of lines, and space after the block', () => {
  for (const text of [PEM, PEM.trimEnd(), `${PEM}\n \t\r\n`, PEM.replaceAll('\n', '\r\n')]) {
    assert.deepEqual(Buffer.from(decodePem(text, 'CERTIFICATE') ?? []), Buffer.from(BYTES));
  }
});

test('decodePem: takes any of the labels given, and no other', () => {
  const request = encodePem('NEW CERTIFICATE REQUEST', BYTES);
  assert.ok(decodePem(request, 'CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST'));
  assert.equal(decodePem(request, 'CERTIFICATE REQUEST'), undefined);
  assert.equal(decodePem(PEM, 'PRIVATE KEY'), undefined);
  assert.equal(decodePem(PEM), undefined);
});

test('decodePem: refuses what is not exactly one strict block', () => {
  const [begin = '', first = '', second = '', third = '', end = ''] = PEM.split('\n');
  const block = (...lines: string[]): string => `${lines.join('\n')}\n`;
  const refused: Readonly<Record<string, string>> = {
    nothing: '',
    'no block': 'hello',
    'text before': `Subject: x\n${PEM}`,
    'space before': ` ${PEM}`,
    'text after': `${PEM}x`,
    'two blocks': PEM + PEM,
    'an empty block': block(begin, end),
    'a blank line inside': block(begin, first, '', second, third, end),
    'a header inside': block(begin, 'Proc-Type: 4,ENCRYPTED', '', first, second, third, end),
    'another label at the end': PEM.replace('END CERTIFICATE', 'END PRIVATE KEY'),
    'a lower-case label': PEM.replaceAll('CERTIFICATE', 'certificate'),
    'no end': block(begin, first, second, third),
    'space in a line': block(begin, `${first.slice(0, 32)} ${first.slice(32)}`, second, third, end),
    'space at the end of a line': block(begin, `${first} `, second, third, end),
    'a line too long': block(begin, first + second, third, end),
    'a line too short': block(begin, first.slice(0, 60), first.slice(60) + second, third, end),
    'missing padding': PEM.replace('==\n', '\n'),
    'padding inside': block(begin, `${first.slice(0, 62)}==`, second, third, end),
    'bits after the last byte': PEM.replace(/.==\n/, (last) => `${last[0] === 'w' ? 'x' : 'B'}==\n`),
    'base64url': block(begin, first.replace('A', '-'), second, third, end),
    'a carriage return inside a line': block(begin, `${first.slice(0, 9)}\r${first.slice(9)}`, second, third, end),
  };
  for (const [what, text] of Object.entries(refused)) assert.equal(decodePem(text, 'CERTIFICATE'), undefined, what);
});
