// What storing content depends on in the transaction itself, the same for creating and updating: the duplicate throttle and the quota.

import type { Config } from '../config/settings.ts';
import type { Count } from '../core/metrics.ts';
import { Refusal, type RateStanding } from '../core/refusals.ts';
import type { CreationOutcome, CreationTerms } from '../store/store.ts';

export interface StorageRules {
  /** As plain values, for the store. */
  readonly terms: Omit<CreationTerms, 'spend'>;
  /** To be called when content was stored under these terms. */
  countStored(): void;
  refusalOf(outcome: Extract<CreationOutcome, { kind: 'duplicate' | 'storageFull' }>, rate: RateStanding | null): Refusal;
}

export function createStorageRules(config: Config, count: Count): StorageRules {
  const { duplicateMax, duplicateWindowSeconds, maxStorageBytes } = config;
  return {
    terms: {
      duplicates: duplicateMax === 0 ? null : { max: duplicateMax, windowSeconds: duplicateWindowSeconds },
      maxStoredBytes: maxStorageBytes === 0 ? null : maxStorageBytes,
    },
    countStored: () => {
      if (duplicateMax > 0) count('duplicateChecks', 'accepted');
    },
    refusalOf: (outcome, rate) => {
      if (outcome.kind === 'storageFull') return new Refusal('storageFull');
      count('duplicateChecks', 'refused');
      const fields = { count: outcome.count, windowSeconds: duplicateWindowSeconds };
      return new Refusal('duplicateContent', fields, { retryAfterSeconds: outcome.retryAfterSeconds, rate });
    },
  };
}
