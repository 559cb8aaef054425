// An HTTP server of this service: the engine with routes, the trust in headers, and the words of refusals.

import { codeOf, type Count, type ObserveRequest } from '../core/events.ts';
import { Refusal } from '../core/refusals.ts';
import { StoreError } from '../store/store.ts';
import type { Handler, NoteAnswered } from './engine/reply.ts';
import { NO_ROUTE } from './engine/request.ts';
import { HttpServer, type HttpServerOptions, type Match } from './engine/server.ts';
import { allowOf, type Route, routesOf, UPLOAD_HINT } from './routes.ts';

type ServerOptions = Omit<HttpServerOptions, 'match' | 'refusalOf' | 'refusalPage' | 'noteAnswered'> & {
  readonly routes?: readonly Route[];
  /** By the names of routes. */
  readonly handlers: Readonly<Record<string, Handler>>;
  readonly metrics?: { readonly count: Count; readonly observeRequest: ObserveRequest } | undefined;
  readonly onStorageFull?: () => void;
};

export function createHttpServer(options: ServerOptions): HttpServer {
  const { config, handlers, routes = routesOf(config), log, metrics, onStorageFull } = options;
  const noteAnswered: NoteAnswered = (answered, ms) => {
    const { id, method, route, status, sentBytes, origin: { clientAddress, fingerprint }, refusal } = answered;
    const details = { method, route, status, bytes: sentBytes, ms: Math.round(ms * 10) / 10, request_id: id };
    const entry = { level: 'info', logger: 'http', event: 'request', clientIp: clientAddress, details } as const;
    log(fingerprint === null ? entry : { ...entry, clientId: fingerprint });
    metrics?.observeRequest(route, status, ms / 1000);
    if (refusal !== undefined) metrics?.count('refusals', refusal);
    if (refusal === 'storageFull') onStorageFull?.();
  };
  const refusalPage: HttpServerOptions['refusalPage'] = async (request, reply) => (
    (await import('./page.ts')).refusalPage(request, reply)
  );
  return new HttpServer({ ...options, match: createRouter(routes, handlers), refusalOf, refusalPage, noteAnswered });
}

/** Long enough for a busy disk to recover or clients to leave, short enough to wait. */
const RETRY_SECONDS = 5;

/** What a caller is told of an error; undefined for an unexpected one, of which the caller learns nothing. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error;
  const terms = { retryAfterSeconds: RETRY_SECONDS };
  // Connections hold all descriptors, so not even code can be read that this request is the first to need.
  if (codeOf(error) === 'EMFILE') return new Refusal('connectionsExhausted', {}, terms);
  if (!(error instanceof StoreError)) return undefined;
  return error.failure === 'full' ? new Refusal('storageFull') : new Refusal('storeUnavailable', {}, terms);
}

// From method and raw path to a handler. Nothing is decoded: fixed segments and ids are compared as they came.

/** Fixed paths come before others. Throws a TypeError for a path with several parameters, or without a handler. */
export function createRouter(routes: readonly Route[], handlers: ServerOptions['handlers']) {
  const byPath = Map.groupBy(routes, ({ path }) => path);
  const entries = [...byPath].map(([path, ofPath]) => pathEntry(path, ofPath, handlers));
  const fixed = new Map(entries.filter(({ name }) => name === '').map((entry) => [entry.path, entry]));
  const withParameter = entries.filter(({ name }) => name !== '');
  // The decisions, "Ids and addresses": fixed names are never ids.
  const reserved = new Set(entries.map(({ path }) => /^\/([^/{]+)/.exec(path)?.[1]));

  return (method: string, path: string): Match => {
    if (path === '*') return { route: NO_ROUTE, parameter: '', allow: allowOf(routes), handler: undefined };
    const entry = fixed.get(path);
    if (entry !== undefined) return entry.match(method, '');
    for (const { name, pattern, match } of withParameter) {
      const value = pattern.exec(path)?.[1];
      const isId = name === 'id';
      if (value === undefined || (isId && reserved.has(value))) continue;
      if (!isId || isWellFormedId(value)) return match(method, value);
      throw new Refusal('idInvalid', method === 'PUT' ? { hint: UPLOAD_HINT } : {});
    }
    throw new Refusal('notFound');
  };
}

/** Has the name of the path's parameter, empty for a fixed path, and the pattern that finds its value in a path. */
function pathEntry(path: string, routes: readonly Route[], handlers: ServerOptions['handlers']) {
  const byMethod = new Map<string, Handler>();
  for (const { name, method } of routes) {
    const handler = handlers[name];
    if (handler === undefined) throw new TypeError(`route ${name} has no handler`);
    byMethod.set(method, handler);
    if (method === 'GET') byMethod.set('HEAD', handler);
  }
  const allow = allowOf(routes);
  const match = (method: string, parameter: string): Match => (
    { route: path, parameter, allow, handler: byMethod.get(method) }
  );
  const [, before = path, name = '', after = ''] = /^([^{]*)\{([^}]+)\}([^{]*)$/.exec(path) ?? [];
  if (before.includes('{')) throw new TypeError(`a path has one parameter at most, unlike ${path}`);
  return { path, name, pattern: new RegExp(`^${before}([^/]*)${after}$`), match };
}

/** Whether a path segment can be an id at all. Wider than the ids made here, as the contract's examples differ. */
export function isWellFormedId(segment: string): boolean {
  return /^[A-Za-z0-9]{6,64}$/.test(segment);
}
