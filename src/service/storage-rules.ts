// What storing content depends on in the transaction itself, the same for creating and updating: the duplicate throttle and the quota.

import type { Config } from '../config/settings.ts';
import { Refusal, type RateStanding } from '../core/refusals.ts';
import type { CreationOutcome, CreationTerms } from '../store/store.ts';

export interface StorageRules {
  /** As plain values, for the store. */
  readonly terms: Omit<CreationTerms, 'spend'>;
  refusalOf(outcome: Extract<CreationOutcome, { kind: 'duplicate' | 'storageFull' }>, rate: RateStanding | null): Refusal;
}

export function createStorageRules(config: Config): StorageRules {
  const { duplicateMax, duplicateWindowSeconds, maxStorageBytes } = config;
  return {
    terms: {
      duplicates: duplicateMax === 0 ? null : { max: duplicateMax, windowSeconds: duplicateWindowSeconds },
      maxStoredBytes: maxStorageBytes === 0 ? null : maxStorageBytes,
    },
    refusalOf: (outcome, rate) => {
      if (outcome.kind === 'storageFull') return new Refusal('storageFull');
      const fields = { count: outcome.count, windowSeconds: duplicateWindowSeconds };
      return new Refusal('duplicateContent', fields, { retryAfterSeconds: outcome.retryAfterSeconds, rate });
    },
  };
}
