// The description of the API against the tables it is made of, so that it can't drift from them. Against what the
// running service answers: openapi-answers.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REFUSALS, type RefusalName } from '../../src/core/refusals.ts';
import { GENERAL_REFUSALS, ROUTE_REFUSALS, ROUTELESS_REFUSALS } from '../../src/http/openapi-refusals.ts';
import { ROUTES } from '../../src/http/routes.ts';
import { problemsOf, resolve } from '../support/json-schema.ts';
import { API, operationOf, responseOf } from '../support/openapi.ts';

function statusOf(refusal: RefusalName): number {
  return REFUSALS[refusal].status;
}

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

test('openapi: every operation takes the words and the status of each refusal that it can give', () => {
  for (const route of ROUTES) {
    for (const refusal of [...ROUTE_REFUSALS[route.name], ...GENERAL_REFUSALS]) {
      const { description, content } = responseOf(operationOf(route), statusOf(refusal));
      const { error } = REFUSALS[refusal];
      assert.ok(description.split('; ').includes(error), `${route.name}: ${refusal}`);
      const schema = content?.['application/json']?.schema ?? assert.fail(`${route.name}: ${refusal} has no schema`);
      assert.deepEqual(problemsOf({ error, hint: 'a hint' }, schema, API), []);
      assert.notDeepEqual(problemsOf({ error: `${error}!` }, schema, API), []);
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
    assert.equal(isRequired, ROUTE_REFUSALS[route.name].includes('identityRequired'), route.name);
  }
});
