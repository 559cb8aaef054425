// The listener of the metrics, apart from the public one: GET and HEAD /metrics, and nothing else. Who reaches the
// address or the socket may read them. What they are is ops/metrics.ts.

import type { Config } from '../config/settings.ts';
import type { Log } from '../core/events.ts';
import type { Clock, RandomBytes } from '../core/time.ts';
import { type Metrics, METRICS_MEDIA_TYPE } from '../ops/metrics.ts';
import { createHttpServer, type HttpServer, type ListeningAddress } from './engine/server.ts';
import { metricsPlace } from './listening.ts';
import type { Route } from './routes.ts';

export interface MetricsServerOptions {
  /** Its time-outs and its grace are those of the public listener. */
  readonly config: Config;
  /** `host:port`, `[v6]:port`, or the absolute path of a unix socket: SERVICE_METRICS_LISTEN, not empty. */
  readonly listenOn: string;
  readonly metrics: Pick<Metrics, 'render'>;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly log: Log;
}

export type MetricsServer = Pick<HttpServer, 'stop'> & {
  /** Rejects with ListeningError. */
  listen(): Promise<ListeningAddress>;
};

const METRICS_ROUTES = [
  { name: 'metrics', method: 'GET', path: '/metrics', summary: 'metrics for Prometheus' },
] as const satisfies readonly Route[];

/** Those who collect metrics are few, and keep one connection each. */
const MAX_CONNECTIONS = 16;

/** Nothing listens yet. Refuses a `listenOn` of another form with a RangeError. */
export function createMetricsServer(options: MetricsServerOptions): MetricsServer {
  const { config, listenOn, metrics, clock, random, log } = options;
  const place = metricsPlace(listenOn);
  const server = createHttpServer({
    config: { ...config, maxConnections: MAX_CONNECTIONS, maxConnectionsPerClient: 0 },
    routes: METRICS_ROUTES,
    handlers: {
      metrics: async () => ({
        status: 200,
        headers: { 'Content-Type': METRICS_MEDIA_TYPE },
        body: await metrics.render(),
      }),
    },
    clock,
    random,
    // One request every few seconds, for ever, is no news.
    log: (entry) => {
      if (entry.event !== 'request') log(entry);
    },
  });
  return { listen: () => server.listen(place), stop: server.stop };
}
