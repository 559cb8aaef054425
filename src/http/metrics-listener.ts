// The listener for metrics, loaded only where a setting asks for it, and what the gauges of ops/metrics.ts read.

import { unixSeconds } from '../core/time.ts';
import { createMetrics, type GaugeReaders, measureEventLoopDelay, type Metrics } from '../ops/metrics.ts';
import type { Parts } from '../pastes/parts.ts';
import { countedBytes } from '../store/store.ts';
import { metricsPlace } from './engine/listening.ts';
import { ROUTES } from './routes.ts';
import { createHttpServer } from './servers.ts';

type Served = Pick<Parameters<typeof createHttpServer>[0], 'config' | 'clock' | 'trust' | 'newUuid' | 'log'>;

export function createMetricsListener(parts: Served & Pick<Parts, 'store' | 'queue'>, connectionsOpen: () => number) {
  const eventLoopDelay = measureEventLoopDelay();
  const readers = gaugeReaders(parts, eventLoopDelay, connectionsOpen);
  const metrics = createMetrics({ routes: ROUTES.map((route) => route.path), readers });
  const { listen, stop } = createMetricsServer({ ...parts, metrics });
  return { ...metrics, listen, stop: () => stop().finally(eventLoopDelay.stop) };
}

/** Each reader is called at the moment when somebody reads the metrics. */
export function gaugeReaders(
  { store, queue, clock }: Pick<Parts, 'store' | 'queue' | 'clock'>,
  eventLoopDelay: ReturnType<typeof measureEventLoopDelay>, connectionsOpen: () => number,
): GaugeReaders {
  return {
    databaseBytes: () => store.upkeep.fileBytes().database,
    walBytes: () => store.upkeep.fileBytes().wal,
    pastesStored: async () => (await store.read.usage()).pastes,
    contentBytesStored: async () => (await store.read.usage()).bytes,
    quotaBytesUsed: async () => countedBytes(await store.read.usage()),
    eventLoopDelaySeconds: () => eventLoopDelay.read(),
    writerQueueLength: () => store.upkeep.writesWaiting(),
    passwordChecksRunning: () => queue.running,
    passwordChecksWaiting: () => queue.waiting,
    certificates: () => store.read.countCertificates(unixSeconds(clock)),
    authorityExpiry: async () => (await store.read.findAuthority())?.expiresAt ?? null,
    connectionsOpen,
  };
}

const METRICS_HEADERS = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' };

/** Those who collect metrics are few, and keep one connection each. */
const MAX_METRICS_CONNECTIONS = 16;

export function createMetricsServer({ metrics, ...options }: Served & { metrics: Pick<Metrics, 'render'> }) {
  const { config, log } = options;
  const place = metricsPlace(config.metricsListen);
  const server = createHttpServer({
    ...options,
    config: { ...config, maxConnections: MAX_METRICS_CONNECTIONS, maxConnectionsPerClient: 0, servesHtml: false },
    routes: [{ name: 'metrics', method: 'GET', path: '/metrics', summary: 'metrics for Prometheus' }],
    handlers: { metrics: async () => ({ status: 200, headers: METRICS_HEADERS, body: await metrics.render() }) },
    // Requests are not logged: one comes every few seconds, for ever.
    log: (entry) => {
      if (entry.event !== 'request') log(entry);
    },
  });
  return { listen: () => server.listen(place), stop: () => server.stop() };
}
