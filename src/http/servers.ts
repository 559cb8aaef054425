// An HTTP server of this service: the engine with routes, the trust in headers, and the words of refusals.

import type { Count, ObserveRequest } from '../core/events.ts';
import { Refusal } from '../core/refusals.ts';
import { StoreError } from '../store/store.ts';
import type { Handler, NoteAnswered } from './engine/reply.ts';
import { HttpServer, type HttpServerOptions, type Match, type Router } from './engine/server.ts';
import { allowOf, type Route, routesOf, UPLOAD_HINT } from './routes.ts';

type ServerOptions = Omit<HttpServerOptions, 'router' | 'refusalOf' | 'refusalPage' | 'noteAnswered'> & {
  readonly routes?: readonly Route[];
  /** By the names of routes. */
  readonly handlers: Readonly<Record<string, Handler>>;
  readonly metrics?: { readonly count: Count; readonly observeRequest: ObserveRequest } | undefined;
  readonly onStorageFull?: () => void;
};

export function createHttpServer(options: ServerOptions): HttpServer {
  const { config, handlers, routes = routesOf(config), log, metrics, onStorageFull } = options;
  const noteAnswered: NoteAnswered = (answered, ms) => {
    const { id, method, route, status, sentBytes, clientAddress, fingerprint, refusal } = answered;
    const details = { method, route, status, bytes: sentBytes, ms: Math.round(ms * 10) / 10, request_id: id };
    const entry = { level: 'info', logger: 'http', event: 'request', clientIp: clientAddress, details } as const;
    log(fingerprint === null ? entry : { ...entry, clientId: fingerprint });
    metrics?.observeRequest(route, status, ms / 1000);
    if (refusal !== undefined) metrics?.count('refusals', refusal);
    if (refusal === 'storageFull') onStorageFull?.();
  };
  return new HttpServer({ ...options, router: createRouter(routes, handlers), refusalOf, refusalPage, noteAnswered });
}

/** Long enough for a busy disk to recover, short enough for a client to wait. */
const STORE_RETRY_SECONDS = 5;

/** What an error says to a caller, who learns nothing of one that is unexpected: undefined. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error;
  if (!(error instanceof StoreError)) return undefined;
  if (error.failure === 'full') return new Refusal('storageFull');
  return new Refusal('storeUnavailable', {}, { retryAfterSeconds: STORE_RETRY_SECONDS });
}

const refusalPage: HttpServerOptions['refusalPage'] = async (request, reply) => (
  (await import('./page.ts')).refusalPage(request, reply)
);

// From method and raw path to a handler. Nothing is decoded: fixed segments and ids are compared as they came.

const WELL_FORMED_ID = /^[A-Za-z0-9]{6,64}$/;

/**
 * A path without a parameter is found before any with one. Throws a TypeError for a path with several, and for a route
 * without a handler.
 */
export function createRouter(routes: readonly Route[], handlers: ServerOptions['handlers']): Router {
  const entries = [...Map.groupBy(routes, ({ path }) => path).values()].map((ofPath) => pathEntry(ofPath, handlers));
  const fixed = new Map(entries.filter(({ name }) => name === '').map((entry) => [entry.route, entry]));
  const withParameter = entries.filter(({ name }) => name !== '');
  // The decisions, "Ids and addresses": fixed names are never ids.
  const firstSegments = routes.map(({ path }) => path.split('/', 2)[1] ?? '');
  const reserved = new Set(firstSegments.filter((segment) => segment !== '' && !segment.startsWith('{')));

  function match(method: string, path: string): Match {
    const entry = fixed.get(path);
    if (entry !== undefined) return matchMethod(entry, method, '');
    for (const candidate of withParameter) {
      const value = candidate.pattern.exec(path)?.[1];
      const isId = candidate.name === 'id';
      if (value === undefined || (isId && reserved.has(value))) continue;
      if (!isId || isWellFormedId(value)) return matchMethod(candidate, method, value);
      throw new Refusal('idInvalid', method === 'PUT' ? { hint: UPLOAD_HINT } : {});
    }
    throw new Refusal('notFound');
  }

  return { match, allow: allowOf(routes) };
}

/** Of routes with the same path: the name of its parameter, empty for a fixed path, and what finds the value in one. */
function pathEntry(routes: readonly Route[], handlers: ServerOptions['handlers']) {
  const byMethod = new Map<string, Handler>();
  for (const { name, method } of routes) {
    const handler = handlers[name];
    if (handler === undefined) throw new TypeError(`route ${name} has no handler`);
    byMethod.set(method, handler);
    if (method === 'GET') byMethod.set('HEAD', handler);
  }
  const { path: route } = routes[0]!;
  const [, before = route, name = '', after = ''] = /^([^{]*)\{([^}]+)\}([^{]*)$/.exec(route) ?? [];
  if (before.includes('{')) throw new TypeError(`a path has one parameter at most, unlike ${route}`);
  return { route, byMethod, allow: allowOf(routes), name, pattern: new RegExp(`^${before}([^/]*)${after}$`) };
}

function matchMethod(entry: ReturnType<typeof pathEntry>, method: string, parameter: string): Match {
  const { route, allow, byMethod } = entry;
  return { route, parameter, allow, handler: byMethod.get(method) };
}

/** Whether a path segment can be an id at all: wider than what is made here, as the contract's examples differ. */
export function isWellFormedId(segment: string): boolean {
  return WELL_FORMED_ID.test(segment);
}
