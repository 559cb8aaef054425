// The description of the API as its readers get it, for tests that compare it with other things.

import assert from 'node:assert/strict';
import type { Route } from '../../src/http/routes.ts';
import { runCommandLine } from '../../src/operator/arguments.ts';
import { fakeTerminal } from './fake-terminal.ts';
import { resolve, type Schema } from './json-schema.ts';

export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Schema>>;
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly security: readonly object[];
  readonly parameters?: readonly { readonly $ref: string }[];
  readonly requestBody?: Pick<Response, 'content'> & { readonly required: boolean };
  readonly responses: Readonly<Record<string, Schema>>;
}

type PathItem = Readonly<Record<string, Operation>> & { readonly parameters?: readonly Schema[] };

const printed = fakeTerminal(['openapi']);
assert.equal(await runCommandLine(printed.terminal), 0);

export const API = JSON.parse(printed.stdout()) as Schema & {
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly tags: readonly { readonly name: string }[];
  readonly components: Readonly<Record<string, Readonly<Record<string, Schema>>>>;
};

export function operationOf({ method, path }: { readonly method: Route['method']; readonly path: string }): Operation {
  return API.paths[path]?.[method.toLowerCase()] ?? assert.fail(`${method} ${path} is not described`);
}

export function responseOf(operation: Operation, status: number): Response {
  const described = operation.responses[status] ?? assert.fail(`${operation.operationId} does not list ${status}`);
  return (typeof described['$ref'] === 'string' ? resolve(described['$ref'], API) : described) as unknown as Response;
}
