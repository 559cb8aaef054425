// The SQL of the audit log. What is worth an entry is decided in pastes/; entries are written with what they record,
// in the same transaction.

import type { DatabaseSync } from 'node:sqlite';
import type {
  AuditEntry, AuditEvent, AuditFilter, DuplicateLimit, Listed, Page, SpendingRefusal, SpentChallenge,
} from './store.ts';

export interface AuditCommands {
  recordAudit(event: AuditEvent): void;
  /** How many were removed. */
  removeOldAudit(step: PruneStep): number;
}

export interface AuditLookups {
  listAudit(filter: AuditFilter, page: Page): Listed<AuditEntry>;
}

/** For commands that must be answered for. */
export function prepareAudit(db: DatabaseSync): (event: AuditEvent) => void {
  const insert = db.prepare(`
    INSERT INTO audit (time, event, outcome, client_id, client_ip, details)
    VALUES (:time, :event, :outcome, :clientId, :clientIp, :details)`);
  return (event) => {
    insert.run({ ...event, details: JSON.stringify(event.details) });
  };
}

export function auditCommands(db: DatabaseSync): AuditCommands {
  const remove = db.prepare(`
    DELETE FROM audit
    WHERE id IN (
      SELECT id
      FROM audit
      WHERE time <= :untilSeconds
      ORDER BY time
      LIMIT :limit)`);
  return {
    recordAudit: prepareAudit(db),
    removeOldAudit: (step) => Number(remove.run({ ...step }).changes),
  };
}

export function auditLookups(db: DatabaseSync): AuditLookups {
  const matching = `
    FROM audit
    WHERE time > :after
      AND time < :before
      AND (:event IS NULL OR event = :event)
      AND (:outcome IS NULL OR outcome = :outcome)
      AND (:clientId IS NULL OR client_id = :clientId)`;
  const page = db.prepare(`
    SELECT id, time, event, outcome, client_id AS clientId, client_ip AS clientIp, details ${matching}
    ORDER BY time DESC, id DESC
    LIMIT :limit OFFSET :offset`);
  const total = db.prepare(`SELECT count(*) AS total ${matching}`);
  return {
    listAudit(filter, { limit, offset }) {
      const items = page.all({ ...filter, limit, offset }).map((row) => fromAuditRow(row));
      return { items, total: Number(total.get({ ...filter })?.['total']) };
    },
  };
}

function fromAuditRow(row: Record<string, unknown>): AuditEntry {
  return { ...(row as unknown as AuditEntry), details: JSON.parse(row['details'] as string) };
}

// The SQL of used challenges. They are spent in the transaction of what they bought (pastes.ts).

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

// The SQL of the duplicate throttle: what was stored when, by the digest of its content. Outlives the pastes
// themselves, so that deleting and storing again does not go round it.

export interface SubmissionCommands {
  /** How many were removed. */
  removeOldSubmissions(step: PruneStep): number;
}

export interface Submissions {
  /**
   * Whether one more would exceed the limit: then how many there are, and in how many seconds one of them leaves the
   * window.
   */
  excess(
    sha256: Uint8Array,
    nowSeconds: number,
    limit: DuplicateLimit,
  ): { count: number; retryAfterSeconds: number } | undefined;
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

// The SQL of keys that the service made for itself, such as the one that signs challenges.

export interface KeptSecret {
  readonly name: string;
  readonly value: Uint8Array;
}

export interface SecretCommands {
  /** The value under that name: the one given, when there was none. */
  keepSecret(secret: KeptSecret): Uint8Array;
}

export interface SecretLookups {
  findSecret(name: string): Uint8Array | undefined;
}

export function secretCommands(db: DatabaseSync): SecretCommands {
  const insert = db.prepare(`
    INSERT INTO secrets (name, value)
    VALUES (:name, :value)
    ON CONFLICT DO NOTHING`);
  const { findSecret } = secretLookups(db);
  return {
    keepSecret({ name, value }) {
      insert.run({ name, value });
      return findSecret(name)!;
    },
  };
}

export function secretLookups(db: DatabaseSync): SecretLookups {
  const select = db.prepare('SELECT value FROM secrets WHERE name = :name');
  return { findSecret: (name) => select.get({ name })?.['value'] as Uint8Array | undefined };
}
