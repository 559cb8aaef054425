// Puts the parts together: the one assembly, in production and in tests. Time, randomness and the log are handed in; everything
// below this file uses what it was given.

import type { Config } from './config/settings.ts';
import type { Log } from './core/log.ts';
import { ID_BYTES, idFromBytes } from './core/ids.ts';
import type { RandomBytes } from './core/random.ts';
import { DAY_SECONDS, HOUR_SECONDS, MINUTE_SECONDS, unixSeconds, type Clock } from './core/time.ts';
import { createCallerOf } from './http/callers.ts';
import { createAuditHandlers } from './http/handlers/audit.ts';
import { createChallengeHandlers } from './http/handlers/challenges.ts';
import { createOwnPasteHandlers } from './http/handlers/own-pastes.ts';
import { createPasteHandlers } from './http/handlers/pastes.ts';
import { createServiceHandlers } from './http/handlers/service.ts';
import { createHttpServer } from './http/server.ts';
import { createAntiflood, type AntifloodOptions } from './limits/antiflood.ts';
import { createWorkQueue } from './limits/work-queue.ts';
import { createCleanup, type Cleanup, type CleanupTask } from './ops/cleanup.ts';
import { createAudit } from './service/audit.ts';
import { createChallenges } from './service/challenges.ts';
import { createContentRules } from './service/content-rules.ts';
import { createIdentity } from './service/identity.ts';
import { createOwnPastes } from './service/own-pastes.ts';
import { createPasswords } from './service/passwords.ts';
import { createPastes } from './service/pastes.ts';
import { createRates, type Rates } from './service/rates.ts';
import { openStore } from './store/open.ts';
import type { Store } from './store/store.ts';

export interface AppParts {
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly log: Log;
  /** Processors of this host. */
  readonly cores: number;
}

export interface App {
  /** Begins to accept connections. */
  listen(): Promise<{ host: string; port: number; url: string }>;
  /** The background tasks, for tests and commands that want one now. */
  readonly cleanup: Cleanup;
  /** Lets requests in flight finish, then stops everything and closes the store. */
  close(): Promise<void>;
}

/** node's default pool has four threads; one must stay free for files and DNS (UV_THREADPOOL_SIZE). */
const MOST_PASSWORD_CHECKS = 3;

/** At 0.1 s a check, a queue of so many is a wait that a person still bears. */
const PASSWORD_CHECKS_WAITING = 32;
const PASSWORD_WAIT_MS = 5000;

/** Small enough for a step of a few milliseconds. */
const EXPIRED_PER_STEP = 64;
const PAGES_PER_STEP = 256;
const RECORDS_PER_STEP = 1000;

/** A host's clock that is set back by less must not make a used challenge valid and unknown at once. */
const CLOCK_MARGIN_SECONDS = HOUR_SECONDS;

/** As long as the output of the HMAC that it is for. */
const CHALLENGE_KEY_BYTES = 32;

/** Opens the store and puts everything together; nothing listens yet. Rejects when the database is refused. */
export async function createApp(config: Config, parts: AppParts): Promise<App> {
  const { clock, random, log } = parts;
  const store = await openStore({ path: config.databasePath, clock, log });
  const queue = createWorkQueue({
    concurrency: Math.max(1, Math.min(parts.cores - 1, MOST_PASSWORD_CHECKS)),
    maxWaiting: PASSWORD_CHECKS_WAITING,
    maxWaitMs: PASSWORD_WAIT_MS,
    clock,
  });
  const passwords = createPasswords({ queue, clock, random });
  const antiflood = createAntiflood(antifloodOptions(config));
  const key = await challengeKey(config, store, random);
  const challenges = createChallenges({ config, key, antiflood, spent: store.challenges, clock, random });
  const rates = createRates(config, clock);
  const rules = createContentRules({ config, store, passwords, newContentId: () => idFromBytes(random(ID_BYTES)) });
  const audit = createAudit({ clock, log });
  const identity = createIdentity({ certificates: store.certificates, auditLog: store.audit, audit, clock });
  const callerOf = createCallerOf(identity);
  const pastes = createPastes({ config, store, rules, passwords, challenges, rates, antiflood, clock, random });
  const ownPastes = createOwnPastes({ config, store, rules, passwords, rates, audit, clock });
  const handlers = {
    ...createServiceHandlers({ config, store }),
    ...createChallengeHandlers(challenges),
    ...createPasteHandlers({ pastes, rates, callerOf }),
    ...createOwnPasteHandlers({ pastes: ownPastes, callerOf }),
    ...createAuditHandlers({ auditLog: store.audit, callerOf }),
  };
  const server = createHttpServer({ config, handlers, clock, random, log });
  const cleanup = createCleanup(cleanupTasks({ config, store, rates, clock }), log);

  return {
    cleanup,
    listen: async () => {
      const address = await server.listen();
      cleanup.start();
      return address;
    },
    close: async () => {
      await server.stop();
      await cleanup.stop();
      await store.close();
    },
  };
}

/** An operator who runs several hosts gives them the same key; else one is made once and kept. */
async function challengeKey(config: Config, store: Store, random: RandomBytes): Promise<Uint8Array> {
  if (config.powSecret !== '') return Buffer.from(config.powSecret);
  return store.secrets.keep('proof-of-work', random(CHALLENGE_KEY_BYTES));
}

function antifloodOptions(config: Config): AntifloodOptions {
  return {
    baseBits: config.powDifficultyBits,
    thresholdCount: config.antifloodThreshold,
    windowMs: config.antifloodWindowSeconds * 1000,
    stepBits: config.antifloodStepBits,
    maxBits: config.antifloodMaxBits,
    decayMs: config.antifloodDecaySeconds * 1000,
    maxEntries: config.antifloodMaxEntries,
  };
}

/** Every background task, in one table. */
function cleanupTasks(parts: { config: Config; store: Store; rates: Rates; clock: Clock }): readonly CleanupTask[] {
  const { config, store, rates, clock } = parts;
  return [
    {
      name: 'expired pastes',
      intervalSeconds: HOUR_SECONDS,
      step: async () => (await store.pastes.removeExpired(unixSeconds(clock), EXPIRED_PER_STEP)) === EXPIRED_PER_STEP,
    },
    {
      name: 'duplicate records',
      intervalSeconds: 15 * MINUTE_SECONDS,
      step: async () => {
        const untilSeconds = unixSeconds(clock) - config.duplicateWindowSeconds;
        return (await store.submissions.removeUntil(untilSeconds, RECORDS_PER_STEP)) === RECORDS_PER_STEP;
      },
    },
    {
      name: 'used challenges',
      intervalSeconds: 5 * MINUTE_SECONDS,
      step: async () => {
        const untilSeconds = unixSeconds(clock) - CLOCK_MARGIN_SECONDS;
        return (await store.challenges.removeExpired(untilSeconds, RECORDS_PER_STEP)) === RECORDS_PER_STEP;
      },
    },
    {
      name: 'audit log',
      intervalSeconds: DAY_SECONDS,
      step: async () => {
        const untilSeconds = unixSeconds(clock) - config.auditRetentionSeconds;
        return (await store.audit.removeUntil(untilSeconds, RECORDS_PER_STEP)) === RECORDS_PER_STEP;
      },
    },
    {
      name: 'rate records',
      intervalSeconds: 5 * MINUTE_SECONDS,
      step: async () => {
        rates.sweep();
        return false;
      },
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

/** More to do as long as each step leaves fewer free pages than the one before. */
function releaseStep(store: Store): () => Promise<boolean> {
  let freeBefore = Infinity;
  return async () => {
    const free = await store.upkeep.releasePages(PAGES_PER_STEP);
    const goesOn = free > 0 && free < freeBefore;
    freeBefore = goesOn ? free : Infinity;
    return goesOn;
  };
}
