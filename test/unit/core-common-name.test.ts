// The rule for common names: what is taken, what is changed, what is refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { distinguishedName, normaliseCommonName } from '../../src/authority/der.ts';
import { cpuMsOf } from '../support/cpu.ts';

test('normaliseCommonName: trims, composes, and leaves the rest as it is', () => {
  assert.equal(normaliseCommonName('alice'), 'alice');
  assert.equal(normaliseCommonName(' \t\nAlice B. \r\n'), 'Alice B.');
  assert.equal(normaliseCommonName('e\u0301'), '\u00e9');
  assert.equal(normaliseCommonName('\u4e2d\u6587 \u{1f600}'), '\u4e2d\u6587 \u{1f600}');
  assert.equal(normaliseCommonName('<b>"; DROP TABLE'), '<b>"; DROP TABLE');
});

test('normaliseCommonName: what it returns it returns again', () => {
  // U+2000 becomes U+2002, and U+212A becomes K, under NFC; Hangul composes.
  for (const name of ['a\u2000b', '\u212a', '\u1112\u1161\u11ab', 'x\u0323\u0307']) {
    const once = normaliseCommonName(name);
    assert.ok(once !== undefined);
    assert.equal(normaliseCommonName(once), once);
  }
});

test('normaliseCommonName: counts code points, after trimming and composing', () => {
  for (const character of ['a', '\u00e9', '\u{1f600}']) {
    assert.equal(normaliseCommonName(character.repeat(0)), undefined);
    assert.equal(normaliseCommonName(character.repeat(1)), character);
    assert.equal(normaliseCommonName(character.repeat(63)), character.repeat(63));
    assert.equal(normaliseCommonName(character.repeat(64)), character.repeat(64));
    assert.equal(normaliseCommonName(character.repeat(65)), undefined);
  }
  assert.equal(normaliseCommonName('e\u0301'.repeat(64)), '\u00e9'.repeat(64));
  assert.equal(normaliseCommonName(` ${'a'.repeat(64)} `), 'a'.repeat(64));
  assert.equal(normaliseCommonName(' \u3000 '), undefined);
});

test('normaliseCommonName: a name is taken however far apart it was taken, and one of accents alone refused in no time', () => {
  // This character is four code points in form D, and no character is more.
  const whole = '\u1f82'.repeat(64);
  assert.equal([...whole.normalize('NFD')].length, 256);
  assert.equal(normaliseCommonName(whole.normalize('NFD')), whole);
  const accents = `a${'\u0345'.repeat(5000)}${'\u0301'.repeat(5000)}${'\u0316'.repeat(5000)}`;
  const spentMs = cpuMsOf(() => assert.equal(normaliseCommonName(accents), undefined));
  // Putting the accents in order took 160 ms.
  assert.ok(spentMs < 40, `${spentMs} ms`);
});

test('normaliseCommonName: refuses controls, separators and directional formatting inside a name', () => {
  const ranges = [[0x00, 0x1f], [0x7f, 0x9f], [0x2028, 0x202e], [0x2066, 0x2069]] as const;
  for (const [first, last] of ranges) {
    for (let code = first; code <= last; code += 1) {
      const name = `a${String.fromCodePoint(code)}b`;
      assert.equal(normaliseCommonName(name), undefined, `U+${code.toString(16)}`);
    }
  }
});

test('normaliseCommonName: refuses what is not seen, marks of direction, noncharacters and private use', () => {
  const ranges = [
    [0x00ad, 0x00ad], [0x034f, 0x034f], [0x061c, 0x061c], [0x115f, 0x1160], [0x17b4, 0x17b5], [0x180b, 0x180f],
    [0x200b, 0x200f], [0x2060, 0x2065], [0x206a, 0x206f], [0x2800, 0x2800], [0x3164, 0x3164], [0xfe00, 0xfe0f],
    [0xffa0, 0xffa0], [0xfff0, 0xfffb], [0x13441, 0x13441], [0x16fe4, 0x16fe4], [0x1bca0, 0x1bca3], [0x1d159, 0x1d159], [0x1d173, 0x1d17a], [0xe0000, 0xe0fff], [0xe000, 0xe000], [0xf8ff, 0xf8ff], [0xfdd0, 0xfdef],
    [0xfeff, 0xfeff], [0xf0000, 0xf0000], [0xffffd, 0xffffd], [0x100000, 0x100000], [0x10fffd, 0x10fffd],
    ...Array.from({ length: 17 }, (_, plane) => [plane * 0x10000 + 0xfffe, plane * 0x10000 + 0xffff] as const),
  ] as const;
  for (const [first, last] of ranges) {
    for (let code = first; code <= last; code += 1) {
      const name = `a${String.fromCodePoint(code)}b`;
      assert.equal(normaliseCommonName(name), undefined, `U+${code.toString(16)}`);
      // A certificate with this name from an earlier release can still be renewed.
      if (code < 0xd800) assert.ok(distinguishedName(name).length > 0, `U+${code.toString(16)}`);
    }
  }
});

test('normaliseCommonName: takes the neighbours of what it refuses', () => {
  const neighbours = [
    0x20, 0x7e, 0xa0, 0xac, 0xae, 0x034e, 0x0350, 0x061b, 0x061d, 0x115e, 0x1161, 0x200a, 0x2010, 0x2027, 0x202f, 0x205f,
    0x2070, 0x27ff, 0x2801, 0x3163, 0x3165, 0xd7ff, 0xfdcf, 0xfdf0, 0xfe10, 0xfefe, 0xff00, 0xff9f, 0xffa1, 0xfffc,
    0xfffd, 0x10000, 0x13440, 0x13442, 0x16fe3, 0x1d158, 0x1d15a, 0x1fffd, 0xe1000, 0xefffd,
  ];
  for (const code of neighbours) {
    const name = `a${String.fromCodePoint(code)}b`;
    assert.equal(normaliseCommonName(name), name, `U+${code.toString(16)}`);
  }
});

test('normaliseCommonName: takes emoji, and what is a format to Unicode and can be seen', () => {
  const formats = [
    ...[0x0600, 0x0601, 0x0602, 0x0603, 0x0604, 0x0605, 0x06dd, 0x070f, 0x0890, 0x0891, 0x08e2, 0x110bd, 0x110cd],
    ...Array.from({ length: 16 }, (_, index) => 0x13430 + index),
  ];
  for (const code of formats) {
    const name = `a${String.fromCodePoint(code)}b`;
    assert.match(name, /\p{Cf}/u);
    assert.equal(normaliseCommonName(name), name, `U+${code.toString(16)}`);
  }
  for (const name of ['\u{1f600}', '\u2764', '\u{1f44d}\u{1f3fd}', '\u{1f1e9}\u{1f1ea}']) {
    assert.equal(normaliseCommonName(name), name);
  }
  // As phones write them: the heart in colour, the family, the flag of England. What they add is not seen in a list.
  for (const name of ['\u2764\ufe0f', '\u{1f468}\u200d\u{1f469}', '\u{1f3f4}\u{e0067}\u{e007f}', 'alice\ufe0f']) {
    assert.equal(normaliseCommonName(name), undefined);
  }
});

test('normaliseCommonName: refuses lone surrogates', () => {
  for (const name of ['a\ud800', '\udc00a', '\ud83d\ud83d\ude00']) assert.equal(normaliseCommonName(name), undefined);
});
