// The request target, taken apart and refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTarget } from '../../src/http/engine/head.ts';

const REFUSED = { name: 'Refusal', refusal: 'targetInvalid' };

test('parseTarget: origin form', () => {
  assert.deepEqual(parseTarget('GET', '/'), { path: '/', query: '', authority: undefined });
  assert.deepEqual(parseTarget('GET', '/a/b?c=d?e'), { path: '/a/b', query: 'c=d?e', authority: undefined });
  assert.deepEqual(parseTarget('GET', '/?'), { path: '/', query: '', authority: undefined });
  assert.deepEqual(parseTarget('GET', '//a.test/b'), { path: '//a.test/b', query: '', authority: undefined });
  assert.equal(parseTarget('GET', '/%2F%41').path, '/%2F%41', 'nothing is decoded');
});

test('parseTarget: absolute form', () => {
  assert.deepEqual(parseTarget('GET', 'http://a.test/b?c'), { path: '/b', query: 'c', authority: 'a.test' });
  assert.deepEqual(parseTarget('GET', 'HTTPS://a.test:8443'), { path: '/', query: '', authority: 'a.test:8443' });
  assert.deepEqual(parseTarget('GET', 'http://[::1]:80?c'), { path: '/', query: 'c', authority: '[::1]:80' });
  assert.deepEqual(parseTarget('OPTIONS', 'http://a.test/'), { path: '/', query: '', authority: 'a.test' });
});

test('parseTarget: the server as a whole, for OPTIONS only', () => {
  assert.deepEqual(parseTarget('OPTIONS', '*'), { path: '*', query: '', authority: undefined });
  assert.deepEqual(parseTarget('OPTIONS', 'http://a.test'), { path: '*', query: '', authority: 'a.test' });
  for (const method of ['GET', 'POST', 'HEAD']) assert.throws(() => parseTarget(method, '*'), REFUSED);
});

test('parseTarget: dots that are no dot segment', () => {
  for (const target of ['/...', '/a..', '/..a', '/.well-known', '/a.b', '/%2e%2e%2e', '/a?../..', '/a?\\']) {
    assert.equal(parseTarget('GET', target).authority, undefined, target);
  }
});

test('parseTarget: what is refused', () => {
  const targets = [
    '', 'a', '?a', '*/', '/.', '/..', '/a/.', '/a/..', '/./a', '/a/../b', '/%2e', '/%2E%2e/a', '/.%2e', '/a/%2e./b',
    '/..?a', '/\\', '/a\\b',
    '/a#b', '/a?b#c', '#', 'http://', 'http:///a', 'http://a b/', 'http://u:p@a.test/', 'http://a.test\\@b.test/',
    'http://a.test:0/',
    'http://a.test:65536/', 'http://a.test/../b', 'http://a.test/b#c', 'ftp://a.test/', 'httpx://a.test/', 'mailto:a@b',
    'a.test:443',
  ];
  for (const target of targets) assert.throws(() => parseTarget('GET', target), REFUSED, target);
});
