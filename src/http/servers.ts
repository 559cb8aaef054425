// The two HTTP servers: the public one, which is the engine with the routes, the trust in headers and the words of this
// service, and that of the metrics. Where they listen is listening.ts.

import type { Config } from '../config/settings.ts';
import type { Count, Log, ObserveRequest } from '../core/events.ts';
import { Refusal, type RefusalName } from '../core/refusals.ts';
import type { Clock, RandomBytes } from '../core/time.ts';
import type { Metrics } from '../ops/metrics.ts';
import { StoreError, type StoreFailure } from '../store/store.ts';
import { hostOf } from './engine/host.ts';
import type { AnsweredRequest, Handler } from './engine/reply.ts';
import { HttpServer, type TlsTermination } from './engine/server.ts';
import { Forwarding } from './forwarded.ts';
import { listenAt, type ListeningPlace, metricsPlace, publicPlace } from './listening.ts';
import { createRouter, type Route, ROUTES } from './routes.ts';

export interface ServerOptions {
  readonly config: Config;
  /** One for every name in the table of routes. */
  readonly handlers: Readonly<Record<string, Handler>>;
  readonly routes?: readonly Route[];
  readonly checkIntervalMs?: number;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly log: Log;
  readonly metrics?: { readonly count: Count; readonly observeRequest: ObserveRequest } | undefined;
  /** Called when a request was refused for want of room. */
  readonly onStorageFull?: () => void;
  readonly tls?: TlsTermination | undefined;
}

export interface ListeningAddress {
  /** Of a unix socket its path, `(inherited)` where that is unknown; its port is 0. */
  readonly host: string;
  readonly port: number;
  /** `http://host:port` or `https://host:port`, or `unix:` and the path. */
  readonly url: string;
}

/** Nothing listens yet. Throws when a route of the table has no handler. */
export function createPublicServer(options: ServerOptions) {
  const { config, random, handlers, routes = ROUTES, tls } = options;
  const missing = routes.find((route) => handlers[route.name] === undefined);
  if (missing !== undefined) throw new TypeError(`route ${missing.name} has no handler`);
  const trust = new Forwarding(config, random);
  const onAnswered = (answered: AnsweredRequest): void => noteAnswered(options, answered);
  const server = new HttpServer({ ...options, router: createRouter(routes), trust, refusalOf, onAnswered });
  return {
    /** Where the settings say, unless a place is given. Rejects with ListeningError. */
    listen: (place = publicPlace(config, 0)) => listen(server, place, tls === undefined ? 'http' : 'https'),
    stop: () => server.stop(),
    isStopping: () => server.isStopping,
    connectionsOpen: () => server.connectionsOpen,
    /** SERVICE_PROXY_SECRET for requests from now on. */
    replaceProxySecret: (secret: string) => trust.replaceProxySecret(secret),
  };
}

export type PublicServer = ReturnType<typeof createPublicServer>;

async function listen(server: HttpServer, place: ListeningPlace, scheme: string): Promise<ListeningAddress> {
  const bound = await listenAt(server.node, place);
  server.begin('path' in bound);
  if ('path' in bound) return { host: bound.path, port: 0, url: `unix:${bound.path}` };
  return { host: bound.address, port: bound.port, url: `${scheme}://${hostOf(bound.address, bound.port)}` };
}

/** One line of the log, and the metrics. */
function noteAnswered(options: ServerOptions, answered: AnsweredRequest): void {
  const { method, route, status, bytes, ms, requestId, clientIp, fingerprint, refusal } = answered;
  const { log, metrics, onStorageFull } = options;
  const details = { method, route, status, bytes, ms: Math.round(ms * 10) / 10, request_id: requestId };
  const entry = { level: 'info', logger: 'http', event: 'request', clientIp, details } as const;
  log(fingerprint === null ? entry : { ...entry, clientId: fingerprint });
  metrics?.observeRequest(route, status, ms / 1000);
  if (refusal !== undefined) metrics?.count('refusals', refusal);
  if (refusal === 'storageFull') onStorageFull?.();
}

const REFUSAL_OF_STORE: Readonly<Record<StoreFailure, RefusalName>> = {
  full: 'storageFull',
  unavailable: 'storeUnavailable',
};

/** Long enough for a busy disk to recover, short enough for a client to wait. */
const STORE_RETRY_SECONDS = 5;

/**
 * The refusal that an error stands for: itself, or what the store's condition means to a caller. Undefined for
 * everything unexpected, about which a caller learns nothing.
 */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error;
  if (!(error instanceof StoreError)) return undefined;
  const retryAfterSeconds = error.failure === 'unavailable' ? STORE_RETRY_SECONDS : undefined;
  return new Refusal(REFUSAL_OF_STORE[error.failure], {}, { retryAfterSeconds });
}

const METRICS_ROUTES = [
  { name: 'metrics', method: 'GET', path: '/metrics', summary: 'metrics for Prometheus' },
] as const satisfies readonly Route[];

const METRICS_MEDIA_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Those who collect metrics are few, and keep one connection each. */
const MAX_METRICS_CONNECTIONS = 16;

/**
 * GET and HEAD /metrics, and nothing else, for whoever reaches the address or the socket. Nothing listens yet. Refuses
 * a SERVICE_METRICS_LISTEN of another form with a RangeError.
 */
export function createMetricsServer(options: {
  /** Its time-outs and its grace are those of the public server. */
  config: Config;
  listenOn: string;
  metrics: Pick<Metrics, 'render'>;
  clock: Clock;
  random: RandomBytes;
  log: Log;
}): Pick<PublicServer, 'listen' | 'stop'> {
  const { config, listenOn, metrics, clock, random, log } = options;
  const place = metricsPlace(listenOn);
  const headers = { 'Content-Type': METRICS_MEDIA_TYPE };
  const server = createPublicServer({
    config: { ...config, maxConnections: MAX_METRICS_CONNECTIONS, maxConnectionsPerClient: 0 },
    routes: METRICS_ROUTES,
    handlers: { metrics: async () => ({ status: 200, headers, body: await metrics.render() }) },
    clock,
    random,
    // One request every few seconds, for ever, is no news.
    log: (entry) => {
      if (entry.event !== 'request') log(entry);
    },
  });
  return { listen: () => server.listen(place), stop: server.stop };
}
