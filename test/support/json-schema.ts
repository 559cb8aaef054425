// JSON Schema (2020-12) as far as the description of the API uses it. A keyword that is not known here fails the test
// rather than being passed over. An object takes only the members that its schema names. The description leaves objects
// open, so that clients accept the members of later versions, but it names all that this version writes.

import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';

export type Schema = Readonly<Record<string, unknown>>;

/** Keywords that say nothing about what is valid. */
const ANNOTATIONS = ['description', 'format'];

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  array: Array.isArray,
  object: isObject,
};

type Check = (argument: unknown, value: unknown, where: string, document: Schema) => string[];

const KEYWORDS: Readonly<Record<string, Check>> = {
  $ref: (pointer, value, where, document) => problemsOf(value, resolve(String(pointer), document), document, where),
  type: (types, value, where) => {
    const isAny = [types].flat().some((type) => (TYPES[String(type)] ?? assert.fail(`no type ${String(type)}`))(value));
    return isAny ? [] : [`${where} is no ${[types].flat().join(' or ')}`];
  },
  enum: (values, value, where) => ((values as unknown[]).some((allowed) => isDeepStrictEqual(allowed, value))
    ? []
    : [`${where} is none of ${JSON.stringify(values)}`]),
  pattern: (pattern, value, where) => (typeof value !== 'string' || new RegExp(String(pattern), 'u').test(value)
    ? []
    : [`${where} does not match ${String(pattern)}`]),
  minLength: (least, value, where) => (typeof value !== 'string' || [...value].length >= Number(least)
    ? []
    : [`${where} has fewer than ${String(least)} characters`]),
  maxLength: (most, value, where) => (typeof value !== 'string' || [...value].length <= Number(most)
    ? []
    : [`${where} has more than ${String(most)} characters`]),
  minimum: (least, value, where) => (typeof value !== 'number' || value >= Number(least)
    ? []
    : [`${where} is less than ${String(least)}`]),
  items: (schema, value, where, document) => (Array.isArray(value)
    ? value.flatMap((item, index) => problemsOf(item, schema as Schema, document, `${where}[${index}]`))
    : []),
  required: (names, value, where) => (isObject(value)
    ? (names as string[]).filter((name) => !Object.hasOwn(value, name)).map((name) => `${where} has no ${name}`)
    : []),
  properties: (schemas, value, where, document) => (isObject(value)
    ? Object.entries(value).flatMap(([name, member]) => {
      const schema = Object.hasOwn(schemas as object, name) ? (schemas as Record<string, Schema>)[name] : undefined;
      return schema === undefined ? [`${where} has ${name} besides`] : problemsOf(member, schema, document, `${where}.${name}`);
    })
    : []),
  additionalProperties: (schema, value, where, document) => (isObject(value)
    ? Object.entries(value).flatMap(([name, member]) => problemsOf(member, schema as Schema, document, `${where}.${name}`))
    : []),
};

/** What is wrong with the value, in words; nothing when it is valid. References are looked up in the document. */
export function problemsOf(value: unknown, schema: Schema, document: Schema, where = 'it'): string[] {
  return Object.entries(schema).flatMap(([keyword, argument]) => {
    if (ANNOTATIONS.includes(keyword)) return [];
    const check = KEYWORDS[keyword] ?? assert.fail(`the keyword ${keyword} is not known`);
    return check(argument, value, where, document);
  });
}

/** What a reference of the form `#/a/b` stands for. */
export function resolve(pointer: string, document: Schema): Schema {
  assert.ok(pointer.startsWith('#/'), pointer);
  const tokens = pointer.slice(2).split('/').map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
  let found: unknown = document;
  for (const token of tokens) found = isObject(found) && Object.hasOwn(found, token) ? found[token] : undefined;
  return isObject(found) ? found : assert.fail(`nothing at ${pointer}`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
