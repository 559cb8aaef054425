// An HTTP server of this service: the engine with routes, the trust in headers, and the words of refusals.

import type { Count, ObserveRequest } from '../core/events.ts';
import { Refusal } from '../core/refusals.ts';
import { StoreError } from '../store/store.ts';
import type { NoteAnswered } from './engine/reply.ts';
import { NO_PARAMS } from './engine/request.ts';
import { HttpServer, type HttpServerOptions, type Match, type Router } from './engine/server.ts';
import { allowOf, type Route, routesOf, UPLOAD_HINT } from './routes.ts';

type ServerOptions = Omit<HttpServerOptions, 'router' | 'refusalOf' | 'refusalPage' | 'noteAnswered'> & {
  readonly routes?: readonly Route[];
  readonly metrics?: { readonly count: Count; readonly observeRequest: ObserveRequest } | undefined;
  readonly onStorageFull?: () => void;
};

/** Throws when a route of the table has no handler. */
export function createHttpServer(options: ServerOptions): HttpServer {
  const { config, handlers, routes = routesOf(config), log, metrics, onStorageFull } = options;
  const missing = routes.find((route) => handlers[route.name] === undefined);
  if (missing !== undefined) throw new TypeError(`route ${missing.name} has no handler`);
  const noteAnswered: NoteAnswered = (answered, ms) => {
    const { id, method, route: { path: route }, status, sentBytes, clientAddress, fingerprint, refusal } = answered;
    const details = { method, route, status, bytes: sentBytes, ms: Math.round(ms * 10) / 10, request_id: id };
    const entry = { level: 'info', logger: 'http', event: 'request', clientIp: clientAddress, details } as const;
    log(fingerprint === null ? entry : { ...entry, clientId: fingerprint });
    metrics?.observeRequest(route, status, ms / 1000);
    if (refusal !== undefined) metrics?.count('refusals', refusal);
    if (refusal === 'storageFull') onStorageFull?.();
  };
  return new HttpServer({ ...options, router: createRouter(routes), refusalOf, refusalPage, noteAnswered });
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

// From method and raw path to a route. Nothing is decoded: fixed segments and ids are compared as they came.

const WELL_FORMED_ID = /^[A-Za-z0-9]{6,64}$/;

/** A path without a parameter is found before any with one. Throws a TypeError for a path with several. */
export function createRouter(routes: readonly Route[]): Router {
  const entries = [...Map.groupBy(routes, (route) => route.path)].map(([path, ofPath]) => pathEntry(path, ofPath));
  const fixed = new Map(entries.filter(({ parameter }) => parameter === '').map((entry) => [entry.path, entry]));
  const withParameter = entries.filter(({ parameter }) => parameter !== '');
  // The decisions, "Ids and addresses": fixed names are never ids.
  const firstSegments = entries.map(({ path }) => path.split('/', 2)[1] ?? '');
  const reserved = new Set(firstSegments.filter((segment) => segment !== '' && !segment.startsWith('{')));

  function match(method: string, path: string): Match {
    const entry = fixed.get(path);
    if (entry !== undefined) return matchMethod(entry, method, NO_PARAMS);
    for (const candidate of withParameter) {
      const { parameter, pattern } = candidate;
      const value = pattern.exec(path)?.[1];
      const isId = parameter === 'id';
      if (value === undefined || (isId && reserved.has(value))) continue;
      if (!isId || isWellFormedId(value)) return matchMethod(candidate, method, { [parameter]: value });
      throw new Refusal('idInvalid', method === 'PUT' ? { hint: UPLOAD_HINT } : {});
    }
    throw new Refusal('notFound');
  }

  return { match, allow: allowOf(routes) };
}

/** With the name of its parameter, empty for a fixed path, and what finds the value in a path. */
function pathEntry(path: string, routes: readonly Route[]) {
  const byMethod = new Map<string, Route>(routes.map((route) => [route.method, route]));
  const get = byMethod.get('GET');
  if (get !== undefined) byMethod.set('HEAD', get);
  const [, before = path, parameter = '', after = ''] = /^([^{]*)\{([^}]+)\}([^{]*)$/.exec(path) ?? [];
  if (before.includes('{')) throw new TypeError(`a path has one parameter at most, unlike ${path}`);
  const pattern = new RegExp(`^${before}([^/]*)${after}$`);
  return { path, routes: byMethod, allow: allowOf(routes), parameter, pattern };
}

type PathEntry = ReturnType<typeof pathEntry>;

function matchMethod(entry: PathEntry, method: string, params: Readonly<Record<string, string>>): Match {
  const route = entry.routes.get(method);
  return route === undefined ? { path: entry.path, allow: entry.allow } : { route, params };
}

/** Whether a path segment can be an id at all: wider than what is made here, as the contract's examples differ. */
export function isWellFormedId(segment: string): boolean {
  return WELL_FORMED_ID.test(segment);
}
