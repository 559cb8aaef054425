// The reading connection of the serving thread: each lookup is one short statement, so it never stands in a
// checkpoint's way for long. Sees every commit that has been acknowledged.

import type { DatabaseSync } from 'node:sqlite';

import { openReading } from './connection.ts';
import { auditLookups } from './audit.ts';
import type { AuditLookups } from './audit.ts';
import { authorityLookups } from './authority.ts';
import type { AuthorityLookups } from './authority.ts';
import { certificateLookups } from './certificates.ts';
import type { CertificateLookups } from './certificates.ts';
import { challengeLookups } from './challenges.ts';
import type { ChallengeLookups } from './challenges.ts';
import { contentLookups } from './contents.ts';
import type { ContentLookups } from './contents.ts';
import { asStoreError } from './failures.ts';
import { pasteListLookups } from './paste-lists.ts';
import type { PasteListLookups } from './paste-lists.ts';
import { pasteLookups } from './pastes.ts';
import type { PasteLookups } from './pastes.ts';
import { secretLookups } from './secrets.ts';
import type { SecretLookups } from './secrets.ts';
import { statsLookups } from './stats.ts';
import type { StatsLookups } from './stats.ts';
import { StoreError } from './store.ts';

export interface Lookups
  extends PasteLookups, PasteListLookups, ContentLookups, ChallengeLookups, CertificateLookups, AuthorityLookups, AuditLookups,
    SecretLookups, StatsLookups {}

export interface Reader {
  /** Throws a StoreError when the storage fails or is closed. */
  look<Found>(lookup: (lookups: Lookups) => Found): Found;
  close(): void;
}

/** Throws a StoreError when the database cannot be opened. */
export function openReader(path: string): Reader {
  const db = attempt(() => openReading(path));
  const lookups: Lookups = attempt(() => prepareLookups(db));
  return {
    look(lookup) {
      if (!db.isOpen) throw new StoreError('unavailable', 'storage unavailable: closed');
      return attempt(() => lookup(lookups));
    },
    close: () => db.close(),
  };
}

function prepareLookups(db: DatabaseSync): Lookups {
  return {
    ...pasteLookups(db),
    ...pasteListLookups(db),
    ...contentLookups(db),
    ...challengeLookups(db),
    ...certificateLookups(db),
    ...authorityLookups(db),
    ...auditLookups(db),
    ...secretLookups(db),
    ...statsLookups(db),
  };
}

function attempt<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw asStoreError(error);
  }
}
