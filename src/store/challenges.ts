// The SQL of used challenges. They are spent in the transaction of what they bought (pastes.ts).

import type { DatabaseSync } from 'node:sqlite';

import type { SpendingRefusal, SpentChallenge } from './store.ts';

export interface PruneStep {
  /** Unix seconds: what has run out by then. */
  readonly untilSeconds: number;
  /** Rows at most. */
  readonly limit: number;
}

export interface ChallengeCommands {
  /** How many were removed. */
  removeExpiredChallenges(step: PruneStep): number;
}

export interface ChallengeLookups {
  isSpent(nonce: string): boolean;
}

export function challengeCommands(db: DatabaseSync): ChallengeCommands {
  const remove = db.prepare(`
    DELETE FROM spent_challenges
    WHERE rowid IN (
      SELECT rowid
      FROM spent_challenges
      WHERE expires_at <= :untilSeconds
      ORDER BY expires_at
      LIMIT :limit)`);
  return { removeExpiredChallenges: (step) => Number(remove.run({ ...step }).changes) };
}

export interface Spending {
  /** Why the challenge can't buy anything, or not any more. */
  refusal(challenge: SpentChallenge, nowSeconds: number): SpendingRefusal | undefined;
  /** Uses up a challenge that was not refused. */
  spend(challenge: SpentChallenge): void;
}

/** For commands that sell something for work. */
export function prepareSpending(db: DatabaseSync): Spending {
  const { isSpent } = challengeLookups(db);
  const spend = db.prepare('INSERT INTO spent_challenges (nonce, expires_at) VALUES (:nonce, :expiresAt)');
  return {
    refusal({ nonce, spendableUntil }, nowSeconds) {
      if (nowSeconds >= spendableUntil) return { kind: 'challengeExpired' };
      return isSpent(nonce) ? { kind: 'challengeUsed' } : undefined;
    },
    spend: ({ nonce, expiresAt }) => void spend.run({ nonce, expiresAt }),
  };
}

export function challengeLookups(db: DatabaseSync): ChallengeLookups {
  const spent = db.prepare('SELECT 1 FROM spent_challenges WHERE nonce = :nonce');
  return { isSpent: (nonce) => spent.get({ nonce }) !== undefined };
}
