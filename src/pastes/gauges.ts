// What the gauges of the metrics read, each at the moment it is asked for.

import { type Config, SETTINGS } from '../config/settings.ts';
import { type Clock, DAY_SECONDS, isoSeconds, unixSeconds } from '../core/time.ts';
import type { WorkQueue } from '../limits/work-queue.ts';
import type { EventLoopDelay, GaugeReaders } from '../ops/metrics.ts';
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

// What the operator should know about certificates, said when the service starts and by `pasted check`: that anyone can
// become the admin, that the authority runs out. Does not look anything up.

export interface Doubt {
  readonly level: 'warning' | 'error';
  readonly message: string;
}

/** A new authority means new certificates for everyone. */
const EXPIRY_NOTICE_SECONDS = 90 * DAY_SECONDS;
const EXPIRY_ALARM_SECONDS = 30 * DAY_SECONDS;

/** With a password, POST /register makes whoever comes first the admin. `issued` is how many certificates there are. */
export function adminDoubt({ pkiCaPassword }: Config, issued: number): Doubt | undefined {
  if (pkiCaPassword === '' || issued > 0) return undefined;
  const message = `there is no admin, and ${SETTINGS.pkiCaPassword.name} is set: whoever registers first becomes ` +
    'the admin; before that: pasted admin create';
  return { level: 'warning', message };
}

export function authorityDoubt(expiresAt: number, nowSeconds: number): Doubt | undefined {
  const moment = isoSeconds(expiresAt);
  const leftSeconds = expiresAt - nowSeconds;
  if (leftSeconds <= 0) return { level: 'error', message: `ran out at ${moment}, and all of its certificates with it` };
  if (leftSeconds > EXPIRY_NOTICE_SECONDS) return undefined;
  const days = Math.floor(leftSeconds / DAY_SECONDS);
  const level = leftSeconds <= EXPIRY_ALARM_SECONDS ? 'error' : 'warning';
  return { level, message: `runs out soon, at ${moment} (${days} days), and all of its certificates with it` };
}
