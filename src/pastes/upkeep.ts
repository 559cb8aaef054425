// What is tidied up in the background, in one table: which work, how often, how much at a time. When it runs is
// ops/cleanup.ts.

import type { RevocationList } from '../authority/revocation-list.ts';
import type { Config } from '../config/settings.ts';
import type { Count } from '../core/events.ts';
import { type Clock, DAY_SECONDS, HOUR_SECONDS, MINUTE_SECONDS, unixSeconds } from '../core/time.ts';
import type { Cleanup, CleanupTask } from '../ops/cleanup.ts';
import type { CertificatePlace, Store } from '../store/store.ts';
import { SPENDABLE_SECONDS } from './challenges.ts';
import type { Rates } from './rates.ts';

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
  parts: Parameters<typeof storeTasks>[0] & { rates: Rates; revocationList: Pick<RevocationList, 'renew'> },
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
