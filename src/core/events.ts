// The shape in which the parts hand over what happened. How it is written down is ops/log.ts.

import type { RefusalName } from './refusals.ts';

export type LogLevel = 'info' | 'warning' | 'error';
export type LogDetails = Readonly<Record<string, string | number | boolean | null>>;

/** One event. Never in it: passwords, secrets, tokens, keys, content, or the id of a paste (it is a capability). */
export interface LogEntry {
  readonly level: LogLevel;
  /** The part that speaks: `http`, `store`, `cleanup`, `audit`, `config`, `main`. */
  readonly logger: string;
  /** What happened, a fixed word or phrase of that part. */
  readonly event: string;
  readonly outcome?: 'success' | 'failure';
  /** The fingerprint of the caller, where there is one. */
  readonly clientId?: string;
  readonly clientIp?: string;
  readonly details?: LogDetails;
}

export type Log = (entry: LogEntry) => void;

// The shape in which the parts hand over what is counted, and the closed sets of values by which it is told apart. What
// a metric is called, and how all of them are written down, is ops/metrics.ts.

export const DELETION_REASONS = ['deleted', 'burned', 'expired'] as const;
export type DeletionReason = (typeof DELETION_REASONS)[number];

export const RATE_LIMITS = ['creation', 'lookup'] as const;
export type RateLimit = (typeof RATE_LIMITS)[number];

/** Accepted, or the name of the refusal that said why not. */
export const WORK_OUTCOMES = [
  'accepted',
  'powRequired',
  'powMalformedToken',
  'powBadSignature',
  'powExpired',
  'powMalformedSolution',
  'powInsufficient',
  'powAlreadyUsed',
] as const;
export type WorkOutcome = (typeof WORK_OUTCOMES)[number];

export const DUPLICATE_OUTCOMES = ['accepted', 'refused'] as const;
export type DuplicateOutcome = (typeof DUPLICATE_OUTCOMES)[number];

/** Counts what has happened, once it is certain. Never throws. */
export interface Count {
  (name: 'pastesCreated' | 'pastesAccessed'): void;
  /** Expired pastes are removed many at a time: `amount` of them, 1 unless given. */
  (name: 'pastesDeleted', reason: DeletionReason, amount?: number): void;
  (name: 'rateLimitHits', limit: RateLimit): void;
  (name: 'proofOfWork', outcome: WorkOutcome): void;
  (name: 'duplicateChecks', outcome: DuplicateOutcome): void;
  (name: 'refusals', refusal: RefusalName): void;
}

export type CounterName =
  | 'pastesCreated'
  | 'pastesAccessed'
  | 'pastesDeleted'
  | 'rateLimitHits'
  | 'proofOfWork'
  | 'duplicateChecks'
  | 'refusals';

/**
 * Notes how long one request took. `route` is the pattern of its path; one that is not in the table of routes counts
 * as `-`, so that nothing a client sends becomes a label. `status` is that of the answer.
 */
export type ObserveRequest = (route: string, status: number, seconds: number) => void;

export const countNothing: Count = () => {};
