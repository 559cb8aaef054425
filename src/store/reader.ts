// The reading connection of the serving thread: each lookup is one short statement, so it never stands in a
// checkpoint's way for long. Sees every commit that has been acknowledged.

import type { DatabaseSync } from 'node:sqlite';
import {
  authorityLookups, type AuthorityLookups, certificateLookups, type CertificateLookups,
} from './certificates.ts';
import { openReading } from './connection.ts';
import { contentLookups, type ContentLookups } from './contents.ts';
import { asStoreError, StoreError } from './failures.ts';
import { pasteListLookups, type PasteListLookups } from './paste-lists.ts';
import { pasteLookups, type PasteLookups } from './pastes.ts';
import {
  auditLookups, type AuditLookups, challengeLookups, type ChallengeLookups, secretLookups,
  type SecretLookups,
} from './records.ts';
import { statsLookups, type StatsLookups } from './stats.ts';

export interface Lookups
  extends PasteLookups, PasteListLookups, ContentLookups, ChallengeLookups, CertificateLookups, AuthorityLookups,
    AuditLookups, SecretLookups, StatsLookups {}

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
