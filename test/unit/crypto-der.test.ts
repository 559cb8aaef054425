// The DER writer against encodings written out by hand, at every border of its forms.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bitString, bmpString, contextTag, enumerated, explicit, ia5String, implicit, integer, LATEST_TIME_SECONDS,
  NULL, octetString, oid, seq, setOf, time, TRUE, utf16be, utf8String,
} from '../../src/authority/der.ts';
import { readDer } from '../../src/crypto/presented.ts';
import { createSeeded } from '../support/seeded.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytes = (text: string): Uint8Array => Buffer.from(text, 'hex');
const seconds = (iso: string): number => Date.parse(iso) / 1000;

test('lengths: the short form to 127, then the fewest octets', () => {
  const headers: ReadonlyArray<readonly [number, string]> = [
    [0, '0400'],
    [1, '0401'],
    [126, '047e'],
    [127, '047f'],
    [128, '048180'],
    [129, '048181'],
    [254, '0481fe'],
    [255, '0481ff'],
    [256, '04820100'],
    [257, '04820101'],
    [65_535, '0482ffff'],
    [65_536, '0483010000'],
    [65_537, '0483010001'],
  ];
  for (const [size, header] of headers) {
    const encoding = octetString(new Uint8Array(size).fill(7));
    assert.equal(hex(encoding.subarray(0, header.length / 2)), header);
    assert.equal(encoding.length, header.length / 2 + size);
  }
});

test('integer: no redundant and no missing leading zero', () => {
  const encodings: ReadonlyArray<readonly [number | bigint, string]> = [
    [0, '020100'],
    [1, '020101'],
    [127, '02017f'],
    [128, '02020080'],
    [255, '020200ff'],
    [256, '02020100'],
    [32_767, '02027fff'],
    [32_768, '0203008000'],
    [600_000, '02030927c0'],
    [Number.MAX_SAFE_INTEGER, '02071fffffffffffff'],
    [2n ** 63n, '0209008000000000000000'],
    [2n ** 64n, '0209010000000000000000'],
  ];
  for (const [value, encoding] of encodings) assert.equal(hex(integer(value)), encoding);
});

test('integer: refuses negative, fractional and inexact numbers', () => {
  for (const value of [-1, -1n, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    assert.throws(() => integer(value), RangeError, String(value));
  }
});

test('integer: 20 000 random magnitudes keep their value, in the one canonical form', () => {
  const random = createSeeded(1);
  for (let round = 0; round < 20_000; round += 1) {
    const magnitude = random.bytes(random.between(1, 20));
    // Make the rare first octets as frequent as the others.
    if (random.oneIn(2)) magnitude[0] = random.pick([0x00, 0x01, 0x7f, 0x80, 0xff]);
    const encoding = integer(BigInt(`0x${hex(magnitude)}`));
    const { content } = readDer(encoding);
    assert.equal(BigInt(`0x${hex(content)}`), BigInt(`0x${hex(magnitude)}`));
    assert.ok((content[0] ?? 0xff) < 0x80, 'not negative');
  }
});

test('TRUE, NULL, enumerated: fixed forms', () => {
  assert.equal(hex(TRUE), '0101ff');
  assert.equal(hex(NULL), '0500');
  assert.equal(hex(enumerated(0)), '0a0100');
  assert.equal(hex(enumerated(127)), '0a017f');
});

test('bitString: as many unused bits as are said, none by default', () => {
  assert.equal(hex(bitString(bytes('8001'))), '0303008001');
  assert.equal(hex(bitString(new Uint8Array())), '030100');
  assert.equal(hex(bitString(bytes('80'), 7)), '03020780');
});

test('oid: the first two arcs share an octet, the others are base 128', () => {
  assert.equal(hex(oid('2.5.4.3')), '0603550403');
  assert.equal(hex(oid('1.2.840.10045.4.3.3')), '06082a8648ce3d040303');
  assert.equal(hex(oid('1.3.132.0.34')), '06052b81040022');
  assert.equal(hex(oid('0.39.127.128.16383.16384')), '0609277f8100ff7f818000');
  assert.equal(hex(oid('2.999.3')), '0603883703');
});

test('strings: each in its own alphabet', () => {
  assert.equal(hex(utf8String('\u00e9\u{1f600}')), '0c06c3a9f09f9880');
  assert.equal(hex(ia5String('a@b\u0000\u007f')), '1605614062007f');
  assert.equal(hex(bmpString('a\u00e9\u4e2d')), '1e06006100e94e2d');
  assert.equal(hex(bmpString('\u{1f600}')), '1e04d83dde00');
  assert.equal(hex(utf16be('')), '');
});

test('strings: refuse what their alphabet lacks', () => {
  assert.throws(() => ia5String('\u0080'), RangeError);
  for (const encode of [utf8String, bmpString, utf16be]) {
    for (const text of ['\ud800', 'a\udc00', '\udc00\ud800']) assert.throws(() => encode(text), RangeError);
  }
});

test('time: UTCTime to the last second of 2049, GeneralizedTime from the next', () => {
  const ascii = (encoding: Uint8Array): string => Buffer.from(encoding.subarray(2)).toString('latin1');
  const times: ReadonlyArray<readonly [string, number, string]> = [
    ['1950-01-01T00:00:00Z', 0x17, '500101000000Z'],
    ['1999-12-31T23:59:59Z', 0x17, '991231235959Z'],
    ['2000-01-01T00:00:00Z', 0x17, '000101000000Z'],
    ['2028-02-29T01:02:03Z', 0x17, '280229010203Z'],
    ['2049-12-31T23:59:58Z', 0x17, '491231235958Z'],
    ['2049-12-31T23:59:59Z', 0x17, '491231235959Z'],
    ['2050-01-01T00:00:00Z', 0x18, '20500101000000Z'],
    ['2050-01-01T00:00:01Z', 0x18, '20500101000001Z'],
    ['9999-12-31T23:59:58Z', 0x18, '99991231235958Z'],
    ['9999-12-31T23:59:59Z', 0x18, '99991231235959Z'],
  ];
  for (const [iso, tag, text] of times) {
    const encoding = time(seconds(iso));
    assert.equal(encoding[0], tag, iso);
    assert.equal(encoding[1], text.length);
    assert.equal(ascii(encoding), text);
  }
});

test('time: refuses moments that have no encoding', () => {
  assert.equal(LATEST_TIME_SECONDS, seconds('9999-12-31T23:59:59Z'));
  const before = seconds('1949-12-31T23:59:59Z');
  for (const moment of [before, LATEST_TIME_SECONDS + 1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => time(moment), RangeError, String(moment));
  }
});

test('seq: keeps the order; as many elements as a revocation list of ten million has pieces', () => {
  assert.equal(hex(seq()), '3000');
  assert.equal(hex(seq(integer(2), integer(1))), '3006020102020101');
  assert.equal(seq(...Array.from({ length: 50_000 }, () => NULL)).length, 100_000 + 5);
});

test('setOf: ascending by encoding, whatever order they came in', () => {
  const elements = [octetString(bytes('00')), integer(1), octetString(bytes('0000')), integer(0), utf8String('')];
  const sorted = '310f' + '020100' + '020101' + '040100' + '04020000' + '0c00';
  assert.equal(hex(setOf(...elements)), sorted);
  assert.equal(hex(setOf(...elements.toReversed())), sorted);
});

test('explicit, implicit: around the value, or in place of its tag with the constructed bit kept', () => {
  assert.equal(hex(explicit(0, integer(2))), 'a003020102');
  assert.equal(hex(explicit(3, integer(1), NULL)), 'a3050201010500');
  assert.equal(hex(implicit(0, octetString(bytes('abcd')))), '8002abcd');
  assert.equal(hex(implicit(1, seq(NULL))), 'a1020500');
  assert.equal(contextTag(30), 0xbe);
});
