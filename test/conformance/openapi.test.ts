// The description of the API against the tables it is made of, so that it can't drift from them. Against what the
// running service answers: openapi-answers.test.ts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { describedFiles } from '../../scripts/describe/files.ts';
import { GENERAL_REFUSALS, ROUTE_REFUSALS, ROUTELESS_REFUSALS } from '../../scripts/describe/refusals.ts';
import { REFUSALS, type RefusalName } from '../../src/core/refusals.ts';
import { ROUTES } from '../../src/http/routes.ts';
import { problemsOf, resolve, type Schema } from '../support/json-schema.ts';
import { API, operationOf, responseOf } from '../support/openapi.ts';
import { ROOT } from '../support/source.ts';

function statusOf(refusal: RefusalName): number {
  return REFUSALS[refusal].status;
}

test('describe: the committed files are what the tables give (else: node scripts/with-node.mjs scripts/describe.ts)', () => {
  const files = describedFiles();
  assert.deepEqual([...files.keys()], ['openapi.json', 'completion.bash', 'completion.zsh', 'completion.fish']
    .map((name) => `src/operator/${name}`));
  for (const [path, content] of files) assert.equal(readFileSync(join(ROOT, path), 'utf8'), content, path);
});

test('openapi: version 3.1, with the members that it must have', () => {
  assert.match(String(API['openapi']), /^3\.1\.\d+$/);
  const { title, version, description, license } = API['info'] as Record<string, unknown>;
  assert.deepEqual([title, license], ['pasted', { name: 'MIT', identifier: 'MIT' }]);
  assert.match(`${String(version)} ${String(description)}`, /^1\.5\.\d+ \S/);
});

test('openapi: every route is there with its summary, and nothing else is', () => {
  const described = Object.entries(API.paths).flatMap(([path, { parameters: _, ...operations }]) =>
    Object.entries(operations).map(([method, { summary }]) => `${method.toUpperCase()} ${path}: ${summary}`));
  const routes = ROUTES.map(({ method, path, summary }) => `${method} ${path}: ${summary}`);
  assert.deepEqual(described.sort(), routes.sort());
});

test('openapi: operations have names of their own and tags that are described', () => {
  const operations = ROUTES.map(operationOf);
  assert.equal(new Set(operations.map(({ operationId }) => operationId)).size, ROUTES.length);
  const tags = new Set(API.tags.map(({ name }) => name));
  for (const { tags: used, operationId } of operations) assert.ok(used.every((tag) => tags.has(tag)), operationId);
});

test('openapi: the parameters of each path are those in braces', () => {
  for (const [path, { parameters = [] }] of Object.entries(API.paths)) {
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const described = parameters.map(({ name, in: place, required }) => ({ name, place, required }));
    assert.deepEqual(described, named.map((name) => ({ name, place: 'path', required: true })));
    for (const { description, schema } of parameters) assert.ok(description && schema, path);
  }
});

test('openapi: every reference leads somewhere, and every schema, parameter and header is used', () => {
  const used = new Set<string>();
  JSON.stringify(API, (key, value: unknown) => {
    if (key === '$ref') used.add(String(value));
    return value;
  });
  for (const pointer of used) resolve(pointer, API);
  for (const kind of ['schemas', 'parameters', 'headers']) {
    const pointers = Object.keys(API.components[kind]!).map((name) => `#/components/${kind}/${name}`);
    assert.deepEqual(pointers.filter((pointer) => !used.has(pointer)), []);
  }
});

test('ROUTE_REFUSALS: every refusal is given by some route, or by all, or by none, and by one of these only', () => {
  const ofRoutes = new Set(Object.values(ROUTE_REFUSALS).flat());
  for (const refusal of Object.keys(REFUSALS) as RefusalName[]) {
    const places = [ofRoutes, new Set<RefusalName>(GENERAL_REFUSALS), new Set<RefusalName>(ROUTELESS_REFUSALS)];
    assert.equal(places.filter((place) => place.has(refusal)).length, 1, refusal);
  }
});

test('ROUTE_REFUSALS: no route names a refusal twice', () => {
  for (const [name, refusals] of Object.entries(ROUTE_REFUSALS)) {
    assert.equal(new Set(refusals).size, refusals.length, name);
  }
});

test('ROUTE_REFUSALS: whatever is no GET, and what burns, may be refused as cross-site, and nothing else may', () => {
  for (const { name, method } of ROUTES) {
    assert.equal(ROUTE_REFUSALS[name].includes('crossSite'), method !== 'GET' || name === 'getRaw', name);
  }
});

test('openapi: every operation takes the words and the status of each refusal that it can give', () => {
  for (const route of ROUTES) {
    for (const refusal of [...ROUTE_REFUSALS[route.name], ...GENERAL_REFUSALS]) {
      const { description, content } = responseOf(operationOf(route), statusOf(refusal));
      const { error } = REFUSALS[refusal];
      assert.ok(description.split('; ').includes(error), `${route.name}: ${refusal}`);
      const schema = content?.['application/json']?.schema ?? assert.fail(`${route.name}: ${refusal} has no schema`);
      assert.deepEqual(problemsOf({ error, hint: 'a hint' }, schema, API), []);
      assert.notDeepEqual(problemsOf({ hint: 'a hint' }, schema, API), []);
    }
  }
});

test('openapi: no operation lists a failure that no refusal of its stands for', () => {
  for (const route of ROUTES) {
    const possible = new Set([...ROUTE_REFUSALS[route.name], ...GENERAL_REFUSALS].map(statusOf));
    const listed = Object.keys(operationOf(route).responses).map(Number).filter((status) => status >= 400);
    assert.deepEqual(listed.filter((status) => !possible.has(status)), [], route.name);
  }
});

test('openapi: who needs an identity is who can be refused for want of one', () => {
  for (const route of ROUTES) {
    const { security } = operationOf(route);
    const isRequired = security.length > 0 && security.every((ways) => Object.keys(ways).length > 0);
    // SERVICE_CREATE may ask an identity of those who store; for those who delete, a token may take its place.
    const isAskedOfSome = ['createPaste', 'deletePaste'].includes(route.name);
    assert.equal(isRequired || isAskedOfSome, ROUTE_REFUSALS[route.name].includes('identityRequired'), route.name);
  }
});

/** What generators of clients need: tried with those of Python, Go, Rust, TypeScript and Java. */
const CONTENTS = ROUTES.flatMap((route) => {
  const { requestBody, responses } = operationOf(route);
  const answers = Object.keys(responses).map((status) => responseOf(operationOf(route), Number(status)));
  return [requestBody, ...answers].flatMap((described) => Object.entries(described?.content ?? {})
    .map(([type, { schema }]) => ({ where: `${route.method} ${route.path}: ${type}`, type, schema })));
});

test('openapi: every media type has a schema, a named one for JSON and a string for others', () => {
  for (const { where, type, schema } of CONTENTS) {
    assert.ok(schema, where);
    if (type === 'application/json') assert.match(String(schema['$ref']), /^#\/components\/schemas\/\w+$/, where);
    else assert.deepEqual([schema['type'], schema['$ref']], ['string', undefined], where);
    if (type === 'application/octet-stream') assert.equal(schema['format'], 'binary', where);
  }
  assert.ok(CONTENTS.length > ROUTES.length);
});

test('openapi: no body is described as JSON or something else, of which generators make nothing usable', () => {
  const types = ROUTES.map((route) => Object.keys(operationOf(route).requestBody?.content ?? {}));
  assert.deepEqual(types.filter(({ length }) => length > 1), []);
  const optional = ROUTES.filter((route) => operationOf(route).requestBody?.required === false);
  assert.deepEqual(optional.map(({ name }) => name), ['updatePaste'], 'a null may be sent for an optional JSON body');
});

test('openapi: the bundle of POST /register is bytes that a client returns', () => {
  const { content } = responseOf(operationOf({ method: 'POST', path: '/register' }), 200);
  assert.deepEqual(content, { 'application/x-pkcs12': { schema: { type: 'string', format: 'binary' } } });
});

test('openapi: client_id=operator is said to be about pastes, as by `pasted audit`: other commands have no client_id', () => {
  const { description } = resolve('#/components/parameters/client_id', API) as { description: string };
  assert.match(description, /operator: by commands about pastes$/);
});

test('openapi: objects have names of their own, and none that a generator gives to something else', () => {
  const names = Object.keys(API.components['schemas']!);
  const isTaken = (name: string): boolean => names.includes(name) || names.some((other) => `New${other}` === name);
  // Go has a constructor NewX for each X, and request and response types are made for each operation.
  assert.deepEqual(names.filter((name) => names.includes(`New${name}`)), []);
  assert.deepEqual(ROUTES.flatMap((route) => {
    const { operationId } = operationOf(route);
    const made = `${operationId[0]!.toUpperCase()}${operationId.slice(1)}`;
    return [`${made}Request`, `${made}Response`].filter(isTaken);
  }), []);
  for (const [name, schema] of Object.entries(API.components['schemas']!)) {
    for (const [member, inner] of Object.entries((schema['properties'] ?? {}) as Record<string, Schema>)) {
      assert.equal(inner['properties'], undefined, `${name}.${member}`);
      assert.equal((inner['items'] as Schema | undefined)?.['properties'], undefined, `${name}.${member}`);
    }
  }
});

test('openapi: every enumeration has a type, and every whole number room for moments after 2038', () => {
  JSON.stringify(API, (_, value: Schema | undefined) => {
    if (Array.isArray(value?.['enum'])) assert.ok(value['type'], JSON.stringify(value));
    if ([value?.['type']].flat().includes('integer')) assert.equal(value?.['format'], 'int64', JSON.stringify(value));
    return value;
  });
});
