// Header lines as they came, and what is made of single ones: request ids, Accept, hosts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newUuid } from '../../src/crypto/digest.ts';
import { HeaderLines, hostOf, isWellFormedHost, prefersText, requestIdOf } from '../../src/http/engine/head.ts';
import { UUID_V4 } from '../support/answer-contract.ts';

test('HeaderLines: one value, several lines, none', () => {
  const lines = new HeaderLines(['Host', 'a', 'X-EXPIRY', '60', 'x-a', '1', 'X-A', '2', 'X-Empty', '']);
  assert.equal(lines.single('host'), 'a');
  assert.equal(lines.single('x-expiry'), '60');
  assert.equal(lines.single('x-empty'), '');
  assert.equal(lines.single('x-none'), undefined);
  assert.deepEqual(lines.all('x-a'), ['1', '2']);
  assert.deepEqual(lines.all('x-none'), []);
  assert.equal(lines.only('x-a'), undefined);
  assert.equal(lines.only('x-none'), undefined);
  assert.equal(lines.only('host'), 'a');
  assert.throws(() => lines.single('x-a'), { refusal: 'headerRepeated', fields: { header: 'x-a' } });
});

test('HeaderLines: a value that is the name of a header is not one', () => {
  const lines = new HeaderLines(['X-A', 'host', 'X-B', '1']);
  assert.equal(lines.single('host'), undefined);
});

test('requestIdOf: UUIDs of version 4, all different, where none is presented that is safe', () => {
  const presented = [[], ['X-Request-ID', 'with "quotes"'], ['X-Request-ID', 'a', 'X-Request-ID', 'a']];
  const ids = Array.from({ length: 999 }, (_, index) => requestIdOf(new HeaderLines([...presented[index % 3]!]), newUuid));
  for (const id of ids) assert.match(id, UUID_V4);
  assert.equal(new Set(ids).size, ids.length);
});

test('requestIdOf: what is safe is repeated, and nothing made for it', () => {
  assert.equal(requestIdOf(new HeaderLines(['X-Request-ID', 'a/b=1']), () => assert.fail('not asked for')), 'a/b=1');
});

test('prefersText: only when text/plain has the greater weight', () => {
  const yes = [
    'text/plain', 'TEXT/PLAIN', 'text/*', 'text/plain;q=0.5', 'text/plain; charset=utf-8',
    'text/plain, application/json;q=0.9',
    'application/json;q=0.1, text/plain;q=0.2', '*/*;q=0.1, text/plain', 'text/*;q=0.5, */*;q=0.4',
    'text/plain, application/json;q=nonsense',
    'text/plain, */*;q=0.999', 'application/*;q=0, */*', ' text/plain ; q=1 ',
  ];
  for (const accept of yes) assert.equal(prefersText([accept]), true, accept);
  const no = [
    '', '*/*', 'application/json', 'text/plain, application/json', 'text/plain, */*', 'text/plain;q=0', 'text/html',
    'nonsense', ',,,', ';q=1',
    'text/plain;q=0.5, application/json', 'text/*;q=0.5, text/plain;q=0.1, application/json;q=0.2', 'text/plain;q=2',
    'text/plain;q=-1',
    'text/plain;q=1.001', 'text/plain;q=0.1234', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    'text', 'text/',
  ];
  for (const accept of no) assert.equal(prefersText([accept]), false, accept);
  assert.equal(prefersText([]), false);
  assert.equal(prefersText(['application/json;q=0.5', 'text/plain']), true, 'several lines are one list');
});

test('isWellFormedHost: names, addresses and ports', () => {
  const yes = [
    'a', 'paste.test', 'paste.test.', 'my-host', 'my_host', '127.0.0.1', 'paste.test:1', 'paste.test:8080',
    'paste.test:65535', '[::1]',
    '[2001:db8::1]:8080', '[::ffff:127.0.0.1]', 'A.Test', 'xn--caf-dma.test', '0', '_a', '_gateway', 'a'.repeat(253),
  ];
  for (const host of yes) assert.equal(isWellFormedHost(host), true, host);
  const no = [
    '', ' ', 'a b', 'a:', 'a:0', 'a:65536', 'a:-1', 'a:80:80', 'a:http', '::1', '[::1', '[::1]x', '[]', '[:::]',
    '[1.2.3.4]', '[fe80::1%eth0]',
    'a/b', 'a?b', 'a#b', 'a@b', 'a\\b', "x';id;'", '"a"', '<a>', '`a`', '$a', '-a', '.a', 'a-', 'caf\xe9', 'a\n',
    'a\0', 'a,b', 'a%41', 'a'.repeat(254),
  ];
  for (const host of no) assert.equal(isWellFormedHost(host), false, JSON.stringify(host));
});

test('hostOf: as a URL writes it', () => {
  assert.equal(hostOf('127.0.0.1', 80), '127.0.0.1:80');
  assert.equal(hostOf('::1', 8080), '[::1]:8080');
});
