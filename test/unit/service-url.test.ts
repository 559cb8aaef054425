// http/service-url.ts: the address of a service as it is given on the command line.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseServiceUrl } from '../../src/http/engine/head.ts';

test('parseServiceUrl: scheme, host, port and prefix; a slash at the end means nothing', () => {
  assert.deepEqual(parseServiceUrl('https://paste.example'), {
    url: 'https://paste.example', isTls: true, host: 'paste.example', port: 443, prefix: '',
  });
  assert.deepEqual(parseServiceUrl('http://[::1]:8080/a/b~c/'), {
    url: 'http://[::1]:8080/a/b~c', isTls: false, host: '::1', port: 8080, prefix: '/a/b~c',
  });
  assert.equal(parseServiceUrl('http://127.0.0.1/')?.port, 80);
});

test('parseServiceUrl: refuses everything else', () => {
  for (const text of [
    '', 'paste.example', 'ftp://a', 'HTTP://a', 'http://', 'http:///a', 'http://a:0', 'http://a:65536', 'http://a:',
    'http://u@a', 'http://u:p@a', 'http://a?x', 'http://a/?x', 'http://a#x', 'http://a//', 'http://a//b', 'http://a/b c',
    'http://a\n', 'http://[::1', 'http://[a]', "http://x';id;'", 'http://a/$(id)', 'http://a/`id`', 'http://a/%41', ' http://a',
  ]) {
    assert.equal(parseServiceUrl(text), undefined, JSON.stringify(text));
  }
});
