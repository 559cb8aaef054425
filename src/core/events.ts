// What the parts hand over about what happened: events for the log (ops/log.ts writes them down), counts and durations
// for the metrics (ops/metrics.ts). Below, what may be said of an error.

import type { RefusalName, WorkRefusal } from './refusals.ts';

export type LogDetails = Readonly<Record<string, string | number | boolean | null>>;

/** Never in it: passwords, secrets, tokens, keys, content, or the id of a paste, since the id is enough to read it. */
export interface LogEntry {
  readonly level: 'info' | 'warning' | 'error';
  /** The part that speaks: `http`, `store`, `cleanup`, `audit`, `config`, `pki`, `log`, `main`. */
  readonly logger: string;
  /** A fixed word or phrase of that part. */
  readonly event: string;
  readonly outcome?: 'success' | 'failure';
  /** The fingerprint of the caller, where there is one. */
  readonly clientId?: string;
  readonly clientIp?: string;
  readonly details?: LogDetails;
}

export type Log = (entry: LogEntry) => void;

export const DELETION_REASONS = ['deleted', 'burned', 'expired'] as const;
export const RATE_LIMITS = ['creation', 'lookup'] as const;
export const DUPLICATE_OUTCOMES = ['accepted', 'refused'] as const;

/** The contract's events and those of the decisions. */
export const AUDIT_EVENTS = [
  'cert_issued', 'cert_revoked', 'auth_failure', 'paste_deleted', 'admin_granted', 'ca_password_changed',
  'content_banned', 'content_unbanned',
] as const;
export type AuditEventName = (typeof AUDIT_EVENTS)[number];

/** Counts what has happened, once it is certain; `amount` is 1 unless given. Never throws. */
export type Count = (...counted:
  | [name: 'pastesCreated' | 'pastesAccessed']
  | [name: 'pastesDeleted', reason: (typeof DELETION_REASONS)[number], amount?: number]
  | [name: 'rateLimitHits', limit: (typeof RATE_LIMITS)[number]]
  | [name: 'proofOfWork', outcome: 'accepted' | WorkRefusal]
  | [name: 'duplicateChecks', outcome: (typeof DUPLICATE_OUTCOMES)[number]]
  | [name: 'refusals', refusal: RefusalName]
) => void;

/** `route` is a path of the table of routes: all else counts as `-`, so that nothing a client sends becomes a label. */
export type ObserveRequest = (route: string, status: number, seconds: number) => void;

export const countNothing: Count = () => {};

/** The code that errno(3), OpenSSL or node has for it. Never the message: it may repeat what could not be read. */
export function codeOf(error: unknown): string {
  // Node has no name for the error of a disk quota, so it is recognised by its number on Linux.
  if (error instanceof Error && 'errno' in error && error.errno === -122) return 'EDQUOT';
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}

/** The error, if it is of that kind. Any other is a bug, and is thrown on as it is. */
export function expected<Kind extends Error>(kind: abstract new (...given: never[]) => Kind, error: unknown): Kind {
  if (error instanceof kind) return error;
  throw error;
}

/** The code, and what to change if node --permission is in the way; with it, no option of node allows fsync. */
export function reasonOf(error: unknown): string {
  const code = codeOf(error);
  if (code !== 'ERR_ACCESS_DENIED') return code;
  const { permission = '' } = error as { permission?: string };
  if (permission === '') return `${code}: node --permission forbids fsync, so run this without it`;
  return `${code}: node --permission needs --allow-fs-${permission === 'FileSystemRead' ? 'read' : 'write'} for it`;
}

/** Undefined when the work throws: a file may be gone or not ours to read, and a text may make no sense. */
export function orUndefined<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
