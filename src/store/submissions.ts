// The SQL of the duplicate throttle: what was stored when, by the digest of its content. Outlives the pastes themselves, so that
// deleting and storing again does not go round it.

import type { DatabaseSync } from 'node:sqlite';

import type { PruneStep } from './challenges.ts';
import type { DuplicateLimit } from './store.ts';

export interface SubmissionCommands {
  /** How many were removed. */
  removeOldSubmissions(step: PruneStep): number;
}

export interface Submissions {
  /** Whether one more would exceed the limit: then how many there are, and in how many seconds one of them leaves the window. */
  excess(sha256: Uint8Array, nowSeconds: number, limit: DuplicateLimit): { count: number; retryAfterSeconds: number } | undefined;
  record(sha256: Uint8Array, nowSeconds: number): void;
}

export function submissionCommands(db: DatabaseSync): SubmissionCommands {
  const remove = db.prepare(`
    DELETE FROM submissions
    WHERE rowid IN (
      SELECT rowid
      FROM submissions
      WHERE stored_at <= :untilSeconds
      ORDER BY stored_at
      LIMIT :limit)`);
  return { removeOldSubmissions: (step) => Number(remove.run({ ...step }).changes) };
}

/** For commands that store content. */
export function prepareSubmissions(db: DatabaseSync): Submissions {
  // Never more rows than decide the question.
  const recent = db.prepare(`
    SELECT stored_at AS storedAt
    FROM submissions
    WHERE sha256 = :sha256
      AND stored_at > :sinceSeconds
    ORDER BY stored_at DESC
    LIMIT :max`);
  const insert = db.prepare('INSERT INTO submissions (sha256, stored_at) VALUES (:sha256, :nowSeconds)');
  return {
    excess(sha256, nowSeconds, { max, windowSeconds }) {
      const stored = recent.all({ sha256, sinceSeconds: nowSeconds - windowSeconds, max });
      if (stored.length < max) return undefined;
      const oldestCounted = Number(stored.at(-1)?.['storedAt']);
      return { count: stored.length, retryAfterSeconds: oldestCounted + windowSeconds - nowSeconds };
    },
    record: (sha256, nowSeconds) => {
      insert.run({ sha256, nowSeconds });
    },
  };
}
