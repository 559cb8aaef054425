// From method and path to a route: what is known, what is an id, what is neither.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refusal } from '../../src/core/refusals.ts';
import { emptyReply } from '../../src/http/engine/reply.ts';
import type { Match } from '../../src/http/engine/server.ts';
import type { Route } from '../../src/http/routes.ts';
import { createRouter } from '../../src/http/servers.ts';

const route = (name: string, method: Route['method'], path: string): Route => ({ name, method, path, summary: name });

const ROUTES = [
  route('index', 'GET', '/'),
  route('create', 'POST', '/'),
  route('alias', 'PUT', '/'),
  route('getRaw', 'GET', '/{id}/raw'),
  route('getPaste', 'GET', '/{id}'),
  route('remove', 'DELETE', '/{id}'),
  route('health', 'GET', '/health'),
  route('issue', 'POST', '/pki/issue'),
  route('revoke', 'POST', '/pki/revoke/{serial}'),
];

/** One handler for each name, so that the handler tells which route was found. */
const handlersOf = (routes: readonly Route[]) => Object.fromEntries(routes.map(({ name }) => [name, () => emptyReply(204)]));
const HANDLERS = handlersOf(ROUTES);

const match = createRouter(ROUTES, HANDLERS);

/** What becomes of the request: `route`, or the name of a refusal. */
function kindOf(method: string, path: string): string {
  try {
    return match(method, path).handler === undefined ? 'methodNotAllowed' : 'route';
  } catch (error) {
    if (error instanceof Refusal) return error.refusal;
    throw error;
  }
}

function routed(method: string, path: string): [name: string | undefined, parameter: string] {
  const { handler, parameter } = match(method, path);
  return [Object.keys(HANDLERS).find((name) => HANDLERS[name] === handler), parameter];
}

test('createRouter: fixed paths and parameters', () => {
  assert.deepEqual(routed('GET', '/'), ['index', '']);
  assert.deepEqual(routed('POST', '/'), ['create', '']);
  assert.deepEqual(routed('PUT', '/'), ['alias', '']);
  assert.deepEqual(routed('GET', '/health'), ['health', ''], 'before /{id}, although it comes later in the table');
  assert.deepEqual(routed('GET', '/abcdef'), ['getPaste', 'abcdef']);
  assert.deepEqual(routed('DELETE', '/abcdef'), ['remove', 'abcdef']);
  assert.deepEqual(routed('GET', '/abcdef/raw'), ['getRaw', 'abcdef']);
  assert.deepEqual(routed('POST', '/pki/revoke/00ff'), ['revoke', '00ff']);
});

test('createRouter: HEAD goes where GET does, and nowhere else', () => {
  assert.deepEqual(routed('HEAD', '/'), ['index', '']);
  assert.deepEqual(routed('HEAD', '/abcdef/raw'), ['getRaw', 'abcdef']);
  assert.equal(kindOf('HEAD', '/pki/issue'), 'methodNotAllowed');
});

test('createRouter: another method of a known path, and OPTIONS, name the methods in the order of the table', () => {
  const cases: readonly (readonly [method: string, path: string, expected: Partial<Match>])[] = [
    ['DELETE', '/', { route: '/', allow: 'GET, HEAD, POST, PUT, OPTIONS' }],
    ['PATCH', '/abcdef', { route: '/{id}', allow: 'GET, HEAD, DELETE, OPTIONS' }],
    ['GET', '/pki/issue', { route: '/pki/issue', allow: 'POST, OPTIONS' }],
    ['OPTIONS', '/health', { route: '/health', allow: 'GET, HEAD, OPTIONS' }],
    ['OPTIONS', '/abcdef/raw', { route: '/{id}/raw', allow: 'GET, HEAD, OPTIONS' }],
  ];
  for (const [method, path, expected] of cases) {
    const { route, allow } = match(method, path);
    assert.deepEqual({ route, allow }, expected);
    assert.equal(kindOf(method, path), 'methodNotAllowed');
  }
  assert.equal(match('OPTIONS', '*').allow, 'GET, HEAD, POST, PUT, DELETE, OPTIONS');
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
    const odd = [route('odd', 'GET', path)];
    assert.throws(() => createRouter(odd, handlersOf(odd)), TypeError, path);
  }
});

test('createRouter: a route without a handler is refused', () => {
  assert.throws(() => createRouter([route('alone', 'GET', '/')], {}), { message: 'route alone has no handler' });
});
