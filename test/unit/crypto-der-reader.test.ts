// The strict DER reader: each form that it takes, and each that it must refuse.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bitString, integer, NULL, octetString, oid, seq, setOf, utf8String } from '../../src/authority/der.ts';
import {
  bitStringOctets, components, DerError, integerValue, isEncoding, readDer, TAGS,
} from '../../src/crypto/presented.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const read = (text: string) => readDer(Buffer.from(text, 'hex'));

test('readDer: gives back what was written, as views', () => {
  const encoding = seq(integer(1), setOf(utf8String('a'), utf8String('b')), octetString(Uint8Array.of(0x30, 0x80)));
  const root = readDer(encoding);
  assert.equal(root.tag, TAGS.sequence);
  assert.equal(hex(root.encoding), hex(encoding));
  assert.deepEqual(root.children.map(({ tag }) => tag), [TAGS.integer, TAGS.set, TAGS.octetString]);
  assert.deepEqual(root.children[1]?.children.map(({ content }) => hex(content)), ['61', '62']);
  // DER inside an OCTET STRING is not this reader's business.
  assert.deepEqual(root.children[2]?.children, []);
});

test('readDer: takes every canonical form of the types that it knows', () => {
  const canonical = [
    '010100', '0101ff', // BOOLEAN
    '020100', '02017f', '02020080', '0201ff', '020180', '0202ff7f', '02020100', // INTEGER, negative ones too
    '030100', '030200ff', '03020780', '03020106', // BIT STRING
    '0400', '0500', '0a0100',
    '0603550403', '06052b81040022', '060100',
    '0c00', '120130', '130161', '1402ffff', '160161', '1a0161', '1c0400000061', '1e020061',
    '170d3530303130313030303030305a', // UTCTime 500101000000Z
    '180f32303530303130313030303030305a', // GeneralizedTime 20500101000000Z
    '181132303530303130313030303030302e315a', // GeneralizedTime with a fraction, 20500101000000.1Z
    '3000', '3100', 'a000', '8000', '8001ff', '4101aa',
    `048180${'00'.repeat(0x80)}`, `0481ff${'00'.repeat(0xff)}`, `04820100${'00'.repeat(0x100)}`,
    '3106020100020101',
    '3106020100020100', // equal elements of a SET OF
  ];
  for (const encoding of canonical) assert.equal(hex(read(encoding).encoding), encoding);
});

test('readDer: refuses every other form', () => {
  const refused: ReadonlyArray<readonly [string, string, RegExp]> = [
    ['nothing', '', /not exactly one value/],
    ['a second value', '05000500', /not exactly one value/],
    ['a trailing zero', '050000', /cut off/],
    ['a trailing zero after a sequence', '3005050002010000', /cut off/],
    ['a tag alone', '30', /cut off/],
    ['a tag alone inside', '300130', /cut off/],
    ['a length cut off', '0482', /cut off/],
    ['a length cut off by its parent', '300304820100', /cut off/],
    ['content cut off', '040200', /cut off/],
    ['content past the parent', '30040403000000', /cut off/],
    ['content out of its sequence into the next value', '3006300204020500', /cut off/],
    ['an indefinite length', '30800000', /indefinite or oversized length/],
    ['a length of five octets', '0485000000000100', /indefinite or oversized length/],
    ['a length octet of 255', '04ff', /indefinite or oversized length/],
    ['a long form for 127', `04817f${'00'.repeat(127)}`, /fewest octets/],
    ['a long form for 0', '048100', /fewest octets/],
    ['two octets for 255', `048200ff${'00'.repeat(255)}`, /fewest octets/],
    ['three octets for 65535', `048300ffff${'00'.repeat(65_535)}`, /fewest octets/],
    ['a length of four gigabytes', '0484ffffffff', /cut off/],
    ['a tag of several octets', '1f810100', /several octets/],
    ['a context tag of several octets', 'bf2000', /several octets/],
    ['an end of contents', '0000', /unsupported type/],
    ['EXTERNAL', '2800', /unsupported type/],
    ['REAL', '0900', /unsupported type/],
    ['a constructed OCTET STRING', '24040402abcd', /unsupported type/],
    ['a constructed UTF8String', '2c030c0161', /unsupported type/],
    ['a primitive SEQUENCE', '1000', /unsupported type/],
    ['a primitive SET', '1100', /unsupported type/],
    ['BOOLEAN empty', '0100', /canonical form/],
    ['BOOLEAN 1', '010101', /canonical form/],
    ['BOOLEAN of two octets', '0102ffff', /canonical form/],
    ['INTEGER empty', '0200', /canonical form/],
    ['INTEGER with a redundant zero', '0202007f', /canonical form/],
    ['INTEGER with a redundant ff', '0202ff80', /canonical form/],
    ['ENUMERATED with a redundant zero', '0a020001', /canonical form/],
    ['BIT STRING empty', '0300', /canonical form/],
    ['BIT STRING with 8 unused bits', '03020800', /canonical form/],
    ['BIT STRING with unused bits of nothing', '030101', /canonical form/],
    ['BIT STRING with an unused bit set', '03020181', /canonical form/],
    ['NULL with content', '050100', /canonical form/],
    ['OID empty', '0600', /canonical form/],
    ['OID that does not end', '06025583', /canonical form/],
    ['OID with a leading zero in its first arc', '0603805503', /canonical form/],
    ['OID with a leading zero in a later arc', '060455800301', /canonical form/],
    ['UTCTime without seconds', '170b353030313031303030305a', /canonical form/],
    ['UTCTime with an offset', '17113530303130313030303030302b30313030', /canonical form/],
    ['GeneralizedTime with a comma', '181132303530303130313030303030302c315a', /canonical form/],
    ['GeneralizedTime with a trailing zero', '181232303530303130313030303030302e31305a', /canonical form/],
    ['GeneralizedTime with an empty fraction', '181032303530303130313030303030302e5a', /canonical form/],
    ['a SET out of order', '3106020101020100', /canonical order/],
    ['a SET whose longer element is first', '310704020000040100', /canonical order/],
  ];
  for (const [what, encoding, message] of refused) {
    assert.throws(() => read(encoding), (error) => error instanceof DerError && message.test(error.message), what);
  }
});

test('readDer: looks into what is nested, sixteen deep and no deeper', () => {
  const nested = (depth: number): Uint8Array => (depth === 0 ? NULL : seq(nested(depth - 1)));
  assert.ok(readDer(nested(15)));
  assert.ok(readDer(nested(16)));
  assert.throws(() => readDer(nested(17)), { name: 'DerError', message: /nested too deeply/ });
  assert.throws(() => read('a00402020001'), { message: /canonical form at byte 2/ });
});

test('components: only a SEQUENCE of exactly these', () => {
  const { integer: int, oid: id } = TAGS;
  const root = readDer(seq(integer(7), oid('2.5.4.3')));
  const [first, second] = components(root, int, id);
  assert.equal(integerValue(first), 7);
  assert.ok(isEncoding(second, oid('2.5.4.3')));
  assert.ok(!isEncoding(second, oid('2.5.4.4')));
  assert.throws(() => components(root, int), DerError);
  assert.throws(() => components(root, id, int), DerError);
  assert.throws(() => components(root, int, id, int), DerError);
  assert.throws(() => components(readDer(setOf(integer(7), oid('2.5.4.3'))), int, id), DerError);
});

test('integerValue: exact numbers from 0', () => {
  for (const value of [0, 1, 127, 128, 600_000, Number.MAX_SAFE_INTEGER]) {
    assert.equal(integerValue(readDer(integer(value))), value);
  }
  for (const element of [integer(2n ** 53n), NULL]) assert.throws(() => integerValue(readDer(element)), DerError);
  for (const negative of ['0201ff', '020180', '020281ff']) {
    assert.throws(() => integerValue(read(negative)), DerError, negative);
  }
  assert.throws(() => integerValue(read('0a0101')), DerError);
});

test('bitStringOctets: whole octets only', () => {
  assert.equal(hex(bitStringOctets(readDer(bitString(Uint8Array.of(1, 2))))), '0102');
  assert.throws(() => bitStringOctets(read('03020780')), DerError);
  assert.throws(() => bitStringOctets(read('040100')), DerError);
});

test('readDer: unused bits are those of the last octet, and zero', () => {
  for (const accepted of ['03030101 00', '030301ff 80', '030207 80', '0301 00']) read(accepted.replace(' ', ''));
  for (const refused of ['03030100 01', '030301fe 81', '030208 00', '0301 01', '0301 07', '0300']) {
    assert.throws(() => read(refused.replace(' ', '')), DerError, refused);
  }
});

test('readDer: each part of an OBJECT IDENTIFIER begins without padding, and has an end', () => {
  for (const accepted of ['0603 2a8101', '0604 2a818001', '0605 2a81808001']) read(accepted.replace(' ', ''));
  for (const refused of ['0602 8001', '0603 2a8001', '0604 2a808101', '0604 81018001', '0602 2a80', '0603 2a8180', '0600']) {
    assert.throws(() => read(refused.replace(' ', '')), DerError, refused);
  }
});
