// What is tidied up in the background, in one table: which work, how often, how much at a time. When it runs is
// ops/cleanup.ts.

import { type Config, SETTINGS } from '../config/settings.ts';
import type { Count } from '../core/events.ts';
import {
  type Clock, DAY_SECONDS, HOUR_SECONDS, isoSeconds, MINUTE_SECONDS, unixSeconds,
} from '../core/time.ts';
import type { WorkQueue } from '../limits/work-queue.ts';
import type { Cleanup, CleanupTask } from '../ops/cleanup.ts';
import type { EventLoopDelay, GaugeReaders } from '../ops/metrics.ts';
import type { Store } from '../store/open.ts';
import { type CertificatePlace, countedBytes } from '../store/store.ts';
import { type Rates, SPENDABLE_SECONDS } from './admission.ts';

/** Small enough for a step of about 10 ms: a paste clears up to 64 KiB, each record a page of an index by itself. */
const EXPIRED_PER_STEP = 32;
const PAGES_PER_STEP = 256;
const RECORDS_PER_STEP = 100;
const CERTIFICATES_PER_STEP = 100;

/** How soon new pastes are taken again after a full disk has got room. */
const BALLAST_SECONDS = 10;

/** How often a full storage has what has expired removed, where someone wants room. */
const MAKING_ROOM_SECONDS = 10;

/** A clock that is set back by less must not make a used challenge, or a certificate, valid and unknown at once. */
const CLOCK_MARGIN_SECONDS = HOUR_SECONDS;

/** What is tidied up in the database; what removes comes before what gives its room back. */
export function storeTasks(parts: {
  config: Config;
  store: Pick<Store, 'pastes' | 'certificates' | 'submissions' | 'challenges' | 'audit' | 'upkeep'>;
  clock: Clock;
  count: Count;
}): readonly CleanupTask[] {
  const { config, store, clock, count } = parts;
  return [
    {
      name: 'expired pastes',
      intervalSeconds: HOUR_SECONDS,
      step: async () => {
        const removed = await store.pastes.removeExpired(unixSeconds(clock), EXPIRED_PER_STEP);
        count('pastesDeleted', 'expired', removed);
        return removed === EXPIRED_PER_STEP;
      },
    },
    {
      name: 'duplicate records',
      intervalSeconds: 15 * MINUTE_SECONDS,
      step: pruneStep(clock, config.duplicateWindowSeconds, store.submissions.removeUntil),
    },
    {
      name: 'used challenges',
      intervalSeconds: 5 * MINUTE_SECONDS,
      step: pruneStep(clock, SPENDABLE_SECONDS + CLOCK_MARGIN_SECONDS, store.challenges.removeExpired),
    },
    {
      name: 'audit log',
      intervalSeconds: DAY_SECONDS,
      step: pruneStep(clock, config.auditRetentionSeconds, store.audit.removeUntil),
    },
    {
      name: 'expired certificates',
      intervalSeconds: DAY_SECONDS,
      step: certificatesStep(store, clock),
    },
    {
      name: 'free pages',
      intervalSeconds: 5 * MINUTE_SECONDS,
      step: releaseStep(store),
    },
    {
      name: 'write-ahead log',
      intervalSeconds: MINUTE_SECONDS,
      step: async () => {
        await store.upkeep.truncateWal();
        return false;
      },
    },
    {
      name: 'statistics',
      intervalSeconds: 6 * HOUR_SECONDS,
      step: async () => {
        await store.upkeep.optimize();
        return false;
      },
    },
  ];
}

/** Every background task. */
export function cleanupTasks(
  parts: Parameters<typeof storeTasks>[0] & { rates: Rates; revocationList: { renew(): Promise<void> } },
): readonly CleanupTask[] {
  const { store, rates, revocationList } = parts;
  return [
    {
      name: 'revocation list',
      intervalSeconds: DAY_SECONDS,
      step: async () => {
        await revocationList.renew();
        return false;
      },
    },
    ...storeTasks(parts),
    {
      name: 'rate records',
      intervalSeconds: 5 * MINUTE_SECONDS,
      step: async () => {
        rates.sweep();
        return false;
      },
    },
    {
      name: 'room in reserve',
      intervalSeconds: BALLAST_SECONDS,
      step: async () => {
        await store.upkeep.restoreBallast();
        return false;
      },
    },
  ];
}

/** From most to least that they give: what has expired, its pages, and what the log holds of it. */
const MAKES_ROOM = ['expired pastes', 'free pages', 'write-ahead log'];

/** What a refusal for want of room starts; not again for a while, so that a flood of them costs nothing. */
export function createRoomMaking(run: Cleanup['run'], clock: Clock): () => void {
  let begunMs = -Infinity;
  const runAll = async (): Promise<void> => {
    for (const name of MAKES_ROOM) await run(name);
  };
  return () => {
    const nowMs = clock.monotonicMs();
    if (nowMs - begunMs < MAKING_ROOM_SECONDS * 1000) return;
    begunMs = nowMs;
    void runAll();
  };
}

/** Removes records that ran out, or were made, so many seconds ago or before. */
function pruneStep(
  clock: Clock,
  ageSeconds: number,
  removeUntil: (untilSeconds: number, limit: number) => Promise<number>,
): () => Promise<boolean> {
  return async () => (await removeUntil(unixSeconds(clock) - ageSeconds, RECORDS_PER_STEP)) === RECORDS_PER_STEP;
}

/** Goes through all that have expired, since what refers to one may go at any time; a step looks at so many. */
function certificatesStep({ certificates }: Pick<Store, 'certificates'>, clock: Clock): () => Promise<boolean> {
  let after: CertificatePlace | null = null;
  return async () => {
    const untilSeconds = unixSeconds(clock) - CLOCK_MARGIN_SECONDS;
    after = (await certificates.removeExpired(untilSeconds, after, CERTIFICATES_PER_STEP)).last;
    return after !== null;
  };
}

/** More to do as long as each step leaves fewer free pages than the one before. */
function releaseStep(store: Pick<Store, 'upkeep'>): () => Promise<boolean> {
  let freeBefore = Infinity;
  return async () => {
    const free = await store.upkeep.releasePages(PAGES_PER_STEP);
    const goesOn = free > 0 && free < freeBefore;
    freeBefore = goesOn ? free : Infinity;
    return goesOn;
  };
}

// What the gauges of the metrics read, each at the moment it is asked for.

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
