// Gauge readers with numbers to recognise, for tests that need all of them.

import type { GaugeReaders } from '../../src/ops/metrics.ts';

export const GAUGE_READERS: GaugeReaders = {
  databaseBytes: () => 4096,
  walBytes: async () => 512,
  pastesStored: () => 3,
  contentBytesStored: () => 77,
  quotaBytesUsed: () => 99,
  eventLoopDelaySeconds: () => ({ '0.5': 0.001, '0.99': 0.02 }),
  writerQueueLength: () => 5,
  passwordChecksRunning: () => 1,
  passwordChecksWaiting: () => 2,
  certificates: async () => ({ valid: 6, revoked: 7, expired: 8 }),
  authorityExpiry: () => 2_000_000_000,
  connectionsOpen: () => 9,
};
