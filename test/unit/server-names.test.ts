// authority/der.ts: what a server's certificate can be for.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseServerName } from '../../src/authority/der.ts';

test('parseServerName: host names, in lower case', () => {
  const label = 'a'.repeat(63);
  const longest = `${label}.${label}.${label}.${'a'.repeat(61)}`;
  assert.equal(longest.length, 253);
  for (const name of ['localhost', 'Paste.Example', 'xn--bcher-kva.example', 'a-b.c1.example', '1.example', longest]) {
    assert.deepEqual(parseServerName(name), { name: name.toLowerCase(), address: undefined }, name);
  }
});

test('parseServerName: a wildcard in front of two labels or more', () => {
  assert.deepEqual(parseServerName('*.example.org'), { name: '*.example.org', address: undefined });
  for (const name of ['*', '*.', '*.org', 'a.*.org', '*a.example.org', '*.*.example.org', '**.example.org']) {
    assert.equal(parseServerName(name), undefined, name);
  }
});

test('parseServerName: addresses as bytes', () => {
  assert.deepEqual(parseServerName('192.0.2.1'), { name: '192.0.2.1', address: Uint8Array.of(192, 0, 2, 1) });
  assert.equal(parseServerName('2001:DB8::1')?.name, '2001:db8::1');
  assert.equal(parseServerName('::1')?.address?.length, 16);
});

test('parseServerName: refuses everything else', () => {
  const label = 'a'.repeat(63);
  for (const text of [
    '', ' ', '.', 'a.', '.a', 'a..b', '-a.example', 'a-.example', 'a_b.example', 'a b', 'b\u00fccher.example',
    `a${label}`, `${label}.${label}.${label}.${'a'.repeat(62)}`, 'a:80', '[::1]', '::1%lo', '0.0.0.0', '::',
    '1.2.3', '1.2.3.256', '010.0.0.1', 'a.1', 'a.b.1', 'a.0x1', 'https://a', 'a/b', 'a,b', 'a\0', 'a\n', "x';id;'",
  ]) {
    assert.equal(parseServerName(text), undefined, JSON.stringify(text));
  }
});
