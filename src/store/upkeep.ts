// The SQL of upkeep, run on the writing connection between transactions, since a checkpoint can't be inside one. When
// it is due is the cleanup schedule's business.

import type { DatabaseSync } from 'node:sqlite';

import type { Ballast } from './ballast.ts';
import { schemaVersionOf } from './schema.ts';

export interface UpkeepCommands {
  /** Whether the log is empty now; false when a reader was in the way for TRUNCATE_WAIT_MS. */
  truncateWal(params: null): boolean;
  /** Gives at most so many free pages back; how many are left. */
  releasePages(pages: number): number;
  optimize(params: null): void;
  /** Whether the room in reserve is there; true where none is kept. */
  restoreBallast(params: null): boolean;
  /** Changes nothing, through the log and to the disk. */
  probe(params: null): void;
}

/** All writes wait meanwhile, and a backup or a check reads for as long as it takes: to be tried again later then. */
const TRUNCATE_WAIT_MS = 200;

export function upkeepCommands(db: DatabaseSync, ballast?: Ballast): UpkeepCommands {
  const version = schemaVersionOf(db);
  const truncate = prepareTruncate(db);
  const freePages = db.prepare('PRAGMA freelist_count');
  return {
    truncateWal: truncate,
    releasePages(pages) {
      // A PRAGMA takes no parameters; the number is one.
      db.exec(`PRAGMA incremental_vacuum(${Math.max(1, Math.trunc(pages))})`);
      return Number(freePages.get()?.['freelist_count']);
    },
    optimize: () => db.exec('PRAGMA optimize'),
    restoreBallast: () => ballast?.restore() ?? true,
    // Writing a header field again, even as it was, makes a page of the log; an UPDATE of no rows would not.
    probe: () => db.exec(`PRAGMA user_version = ${version}`),
  };
}

function prepareTruncate(db: DatabaseSync): () => boolean {
  const truncate = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)');
  const usualWaitMs = Number(db.prepare('PRAGMA busy_timeout').get()?.['timeout']);
  const waitAtMost = (milliseconds: number): void => db.exec(`PRAGMA busy_timeout = ${milliseconds}`);
  return () => {
    waitAtMost(Math.min(TRUNCATE_WAIT_MS, usualWaitMs));
    try {
      return truncate.all()[0]?.['busy'] === 0;
    } finally {
      waitAtMost(usualWaitMs);
    }
  };
}
