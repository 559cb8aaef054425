// The description of the whole API in the form of OpenAPI 3.1, made from the tables of routes, refusals and operations.

import { type RefusalName, REFUSALS } from '../../src/core/refusals.ts';
import { COMMON_HEADERS } from '../../src/http/engine/reply.ts';
import { ROUTES } from '../../src/http/routes.ts';
import {
  type Answer, type Body, OPERATIONS, PATH_PARAMETERS, QUERY_PARAMETERS, REQUEST_HEADERS, RESPONSE_HEADERS,
  type ResponseHeader,
} from './operations.ts';
import { GENERAL_REFUSALS, ROUTE_REFUSALS } from './refusals.ts';
import { ref, type Schema, SCHEMAS } from './schemas.ts';

type Json = Readonly<Record<string, unknown>>;

/** Security requirements of an operation: each array element is one way to satisfy them. */
const IDENTITY = { required: [{ fingerprint: [] }], optional: [{}, { fingerprint: [] }], none: [] };

const DESCRIPTION = `A paste service for people who work in terminals. Errors are JSON on one line, \`error\` first; \
where Accept prefers text/html, they are pages with the same words. \
HEAD works wherever GET does, and OPTIONS names what a path takes. Every answer carries X-Request-ID, \
${COMMON_HEADERS.map(([name]) => name).join(', ')}.`;

/** An OpenAPI 3.1.0 document, ready for JSON. Its version is filled in when it is printed. */
export function describeApi(): Json {
  return {
    openapi: '3.1.0',
    info: { title: 'pasted', version: '', description: DESCRIPTION, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/' }],
    tags: [...new Set(Object.values(OPERATIONS).map(({ tag }) => tag))].map((name) => ({ name })),
    paths: paths(),
    components: {
      schemas: SCHEMAS,
      parameters: { ...parameters(REQUEST_HEADERS, 'header'), ...parameters(QUERY_PARAMETERS, 'query') },
      headers: RESPONSE_HEADERS,
      responses: sharedResponses(),
      securitySchemes: {
        fingerprint: {
          type: 'apiKey',
          in: 'header',
          name: 'X-SSL-Client-SHA1',
          description: 'SHA-1 fingerprint of a client certificate, set by the reverse proxy that has verified it. ' +
            'Where the operator has set a secret, it counts only beside that in X-Proxy-Secret.',
        },
      },
    },
  };
}

function parameters(table: typeof REQUEST_HEADERS | typeof QUERY_PARAMETERS, place: 'header' | 'query'): Json {
  return Object.fromEntries(Object.entries(table).map(([name, given]) => [name, { name, in: place, ...given }]));
}

function sharedResponses(): Json {
  const given = new Set<RefusalName>([...GENERAL_REFUSALS, ...Object.values(ROUTE_REFUSALS).flat()]);
  return Object.fromEntries([...given].map((refusal) => [refusal, response(undefined, [refusal])]));
}

function paths(): Json {
  const byPath = Map.groupBy(ROUTES, ({ path }) => path);
  return Object.fromEntries([...byPath].map(([path, routes]) => {
    const operations = Object.fromEntries(routes.map((route) => [route.method.toLowerCase(), operation(route)]));
    return [path, { ...pathParameters(path), ...operations }];
  }));
}

function pathParameters(path: string): Json {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  if (names.length === 0) return {};
  return { parameters: names.map((name) => ({ name, in: 'path', required: true, ...PATH_PARAMETERS[name] })) };
}

function operation({ name, method, summary }: (typeof ROUTES)[number]): Json {
  const { tag, identity, headers = [], query = [], aliasBody, answers, ...given } = OPERATIONS[name];
  const isFirst = ROUTES.find((route) => route.name === name)?.method === method;
  const body = isFirst ? given.body : (aliasBody ?? given.body);
  const refs = [...headers, ...query].map((parameter) => ({ $ref: `#/components/parameters/${parameter}` }));
  return {
    operationId: isFirst ? name : `${name}By${method}`,
    summary,
    tags: [tag],
    security: IDENTITY[identity],
    ...(refs.length === 0 ? {} : { parameters: refs }),
    ...(body === undefined ? {} : { requestBody: requestBody(body) }),
    responses: responses(answers, [...ROUTE_REFUSALS[name], ...GENERAL_REFUSALS]),
  };
}

function requestBody({ isRequired, description, content }: Body): Json {
  return { required: isRequired, ...(description !== undefined && { description }), content: mediaTypes(content) };
}

/** By status. A status that stands for one refusal alone refers to the shared description of that refusal. */
function responses(answers: Readonly<Record<number, Answer>>, refusals: readonly RefusalName[]): Json {
  const byStatus = Map.groupBy(refusals, (refusal): number => REFUSALS[refusal].status);
  const statuses = new Set([...Object.keys(answers).map(Number), ...byStatus.keys()]);
  return Object.fromEntries([...statuses].map((status) => {
    const ofStatus = byStatus.get(status) ?? [];
    const isShared = answers[status] === undefined && ofStatus.length === 1;
    return [status, isShared ? { $ref: `#/components/responses/${ofStatus[0]}` } : response(answers[status], ofStatus)];
  }));
}

/** An answer, some refusals, or both; with both, the form of the answer has the members of a refusal too. */
function response(answer: Answer | undefined, refusals: readonly RefusalName[]): Json {
  const words = refusals.map((refusal) => REFUSALS[refusal].error);
  const content = answer === undefined ? { 'application/json': ref('Refusal') } : answer.content;
  const headers = [...(answer?.headers ?? []), ...refusalHeaders(refusals)];
  return {
    description: [...(answer === undefined ? [] : [answer.description]), ...words].join('; '),
    ...(headers.length === 0 ? {} : { headers: headerRefs(headers) }),
    ...(content === undefined ? {} : { content: mediaTypes(content) }),
  };
}

function refusalHeaders(refusals: readonly RefusalName[]): ResponseHeader[] {
  const isLimited = refusals.some((refusal) => REFUSALS[refusal].status === 429);
  const isRated = refusals.includes('rateLimited');
  const isRetried = isLimited || refusals.includes('passwordQueueFull') || refusals.includes('storeUnavailable');
  const rate: ResponseHeader[] = isRated ? ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] : [];
  const range: ResponseHeader[] = refusals.includes('rangeNotSatisfiable') ? ['Content-Range'] : [];
  const allowed: ResponseHeader[] = refusals.includes('methodNotAllowed') ? ['Allow'] : [];
  const isChallenged = refusals.some((refusal) => REFUSALS[refusal].status === 401);
  const challenge: ResponseHeader[] = isChallenged ? ['WWW-Authenticate'] : [];
  return [...rate, ...(isRetried ? (['Retry-After'] as const) : []), ...range, ...allowed, ...challenge];
}

function headerRefs(names: readonly ResponseHeader[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function mediaTypes(content: Readonly<Record<string, Schema>>): Json {
  return Object.fromEntries(Object.entries(content).map(([type, schema]) => [type, { schema }]));
}
