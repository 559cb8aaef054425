// How often one client address may create and look up. Counting is limits/sliding-window.ts; here is who is counted as
// whom, and what a caller is told.

import type { Config } from '../config/settings.ts';
import { type Caller, clientKey } from '../core/callers.ts';
import type { Count } from '../core/events.ts';
import { type RateStanding, Refusal } from '../core/refusals.ts';
import type { Clock } from '../core/time.ts';
import { type Allowance, createSlidingWindow } from '../limits/sliding-window.ts';
import { rateMaxFor } from './content-rules.ts';

export interface Rates {
  /**
   * Counts a creation, or an update that carries content or sets a password; where the caller stands then, null when
   * there is no limit.
   */
  countCreation(clientAddress: string, caller: Caller): RateStanding | null;
  /** Counts a GET or HEAD of a paste, a list of pastes, and a PUT or DELETE of what is not the caller's. */
  countLookup(clientAddress: string, caller: Caller): void;
  /** Forgets addresses that nothing is counted for any more. */
  sweep(): void;
}

export function createRates({ config, clock, count }: { config: Config; clock: Clock; count: Count }): Rates {
  const creations = createSlidingWindow({
    windowMs: config.rateWindowSeconds * 1000,
    maxKeys: config.rateMaxEntries,
    cleanupThreshold: config.rateCleanupThreshold,
  });
  const lookups = createSlidingWindow({
    windowMs: config.lookupRateWindowSeconds * 1000,
    maxKeys: config.lookupRateMaxEntries,
    cleanupThreshold: config.rateCleanupThreshold,
  });

  function standing(limit: number, allowance: Allowance): RateStanding {
    const resetAtSeconds = Math.ceil((clock.unixMs() + allowance.resetMs) / 1000);
    return { limit, remaining: allowance.remaining, resetAtSeconds };
  }

  return {
    countCreation: (clientAddress, caller) => {
      if (config.rateMax === 0) return null;
      const limit = rateMaxFor(config, caller, config.rateMax);
      const allowance = creations.take(clientKey(clientAddress), limit, clock.monotonicMs());
      const rate = standing(limit, allowance);
      if (allowance.allowed) return rate;
      count('rateLimitHits', 'creation');
      throw new Refusal('rateLimited', {}, { retryAfterSeconds: allowance.retryAfterMs / 1000, rate });
    },
    countLookup: (clientAddress, caller) => {
      if (config.lookupRateMax === 0) return;
      const limit = rateMaxFor(config, caller, config.lookupRateMax);
      const allowance = lookups.take(clientKey(clientAddress), limit, clock.monotonicMs());
      if (allowance.allowed) return;
      count('rateLimitHits', 'lookup');
      throw new Refusal('lookupRateLimited', {}, { retryAfterSeconds: allowance.retryAfterMs / 1000 });
    },
    sweep: () => {
      creations.sweep(clock.monotonicMs());
      lookups.sweep(clock.monotonicMs());
    },
  };
}
