// From method and path to a route: what is known, what is an id, what is neither.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refusal } from '../../src/core/refusals.ts';
import type { Match } from '../../src/http/engine/server.ts';
import type { Route } from '../../src/http/routes.ts';
import { createRouter } from '../../src/http/servers.ts';

const route = (name: string, method: Route['method'], path: string): Route => ({ name, method, path, summary: name });

const { match, allow } = createRouter([
  route('index', 'GET', '/'),
  route('create', 'POST', '/'),
  route('alias', 'PUT', '/'),
  route('getRaw', 'GET', '/{id}/raw'),
  route('getPaste', 'GET', '/{id}'),
  route('remove', 'DELETE', '/{id}'),
  route('health', 'GET', '/health'),
  route('issue', 'POST', '/pki/issue'),
  route('revoke', 'POST', '/pki/revoke/{serial}'),
]);

/** What becomes of the request: `route`, or the name of a refusal. */
function kindOf(method: string, path: string): string {
  try {
    return 'route' in match(method, path) ? 'route' : 'methodNotAllowed';
  } catch (error) {
    if (error instanceof Refusal) return error.refusal;
    throw error;
  }
}

function routed(method: string, path: string): [name: string, params: object] {
  const found = match(method, path);
  if (!('route' in found)) assert.fail(`${method} ${path}: ${found.allow} alone`);
  return [found.route.name, { ...found.params }];
}

test('createRouter: fixed paths and parameters', () => {
  assert.deepEqual(routed('GET', '/'), ['index', {}]);
  assert.deepEqual(routed('POST', '/'), ['create', {}]);
  assert.deepEqual(routed('PUT', '/'), ['alias', {}]);
  assert.deepEqual(routed('GET', '/health'), ['health', {}], 'before /{id}, although it comes later in the table');
  assert.deepEqual(routed('GET', '/abcdef'), ['getPaste', { id: 'abcdef' }]);
  assert.deepEqual(routed('DELETE', '/abcdef'), ['remove', { id: 'abcdef' }]);
  assert.deepEqual(routed('GET', '/abcdef/raw'), ['getRaw', { id: 'abcdef' }]);
  assert.deepEqual(routed('POST', '/pki/revoke/00ff'), ['revoke', { serial: '00ff' }]);
});

test('createRouter: HEAD goes where GET does, and nowhere else', () => {
  assert.deepEqual(routed('HEAD', '/'), ['index', {}]);
  assert.deepEqual(routed('HEAD', '/abcdef/raw'), ['getRaw', { id: 'abcdef' }]);
  assert.equal(kindOf('HEAD', '/pki/issue'), 'methodNotAllowed');
});

test('createRouter: another method of a known path, and OPTIONS, name the methods in the order of the table', () => {
  const cases: readonly (readonly [method: string, path: string, expected: Match])[] = [
    ['DELETE', '/', { path: '/', allow: 'GET, HEAD, POST, PUT, OPTIONS' }],
    ['PATCH', '/abcdef', { path: '/{id}', allow: 'GET, HEAD, DELETE, OPTIONS' }],
    ['GET', '/pki/issue', { path: '/pki/issue', allow: 'POST, OPTIONS' }],
    ['OPTIONS', '/health', { path: '/health', allow: 'GET, HEAD, OPTIONS' }],
    ['OPTIONS', '/abcdef/raw', { path: '/{id}/raw', allow: 'GET, HEAD, OPTIONS' }],
  ];
  for (const [method, path, expected] of cases) assert.deepEqual(match(method, path), expected);
  assert.equal(allow, 'GET, HEAD, POST, PUT, DELETE, OPTIONS');
});

test('createRouter: an id has 6 to 64 letters and digits', () => {
  for (const length of [6, 7, 63, 64]) assert.equal(kindOf('GET', `/${'a'.repeat(length)}`), 'route', `${length}`);
  for (const length of [1, 5, 65]) assert.equal(kindOf('GET', `/${'a'.repeat(length)}`), 'idInvalid', `${length}`);
  for (const path of [
    '/abc-def', '/abc%64ef', '/%61bcdef', '/abcdef.txt', '/abc_def', '/abc%2fdef', '/short/raw', '//raw',
  ]) {
    assert.equal(kindOf('GET', path), 'idInvalid', path);
  }
});

test('createRouter: fixed names are never ids', () => {
  for (const path of ['/health/raw', '/pki/raw']) assert.equal(kindOf('GET', path), 'notFound', path);
  assert.equal(kindOf('DELETE', '/health'), 'methodNotAllowed');
  assert.equal(kindOf('GET', '/pki'), 'notFound');
});

test('createRouter: no path is known but as it is written', () => {
  const unknown = [
    '/a/b/c', '/abcdef/', '/abcdef/raw/', '/abcdef/RAW', '/health/', '//', '//health', '/pki/revoke', '/pki/issue/',
    '/abcdef/%72aw',
  ];
  for (const path of unknown) assert.equal(kindOf('GET', path), 'notFound', path);
});

test('createRouter: a path with several parameters is refused', () => {
  for (const path of ['/{id}/{part}', '/{id}{part}', '/{}']) {
    assert.throws(() => createRouter([route('odd', 'GET', path)]), TypeError, path);
  }
});
