// What the gauges of the metrics read, each at the moment it is asked for.

import { unixSeconds, type Clock } from '../core/time.ts';
import type { WorkQueue } from '../limits/work-queue.ts';
import type { EventLoopDelay } from '../ops/event-loop.ts';
import type { GaugeReaders } from '../ops/metrics.ts';
import { countedBytes, type Store } from '../store/store.ts';

export function gaugeReaders(parts: {
  store: Store;
  passwordQueue: WorkQueue;
  eventLoopDelay: EventLoopDelay;
  connectionsOpen: () => number;
  clock: Clock;
}): GaugeReaders {
  const { store, passwordQueue, eventLoopDelay, connectionsOpen, clock } = parts;
  return {
    databaseBytes: () => store.upkeep.fileBytes().database,
    walBytes: () => store.upkeep.fileBytes().wal,
    pastesStored: async () => (await store.pastes.usage()).pastes,
    contentBytesStored: async () => (await store.pastes.usage()).bytes,
    quotaBytesUsed: async () => countedBytes(await store.pastes.usage()),
    eventLoopDelaySeconds: () => eventLoopDelay.read(),
    writerQueueLength: () => store.upkeep.writesWaiting(),
    passwordChecksRunning: () => passwordQueue.running,
    passwordChecksWaiting: () => passwordQueue.waiting,
    certificates: () => store.certificates.countByStatus(unixSeconds(clock)),
    authorityExpiry: async () => (await store.authority.find())?.expiresAt ?? null,
    connectionsOpen,
  };
}
