// Room kept in reserve. With the disk full to the last byte, SQLite in WAL mode can neither delete nor checkpoint: then
// this file is given up, so that removing content goes on and frees more, and made again when there is room. When that
// is tried: pastes/upkeep.ts.

import { closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { MIB } from '../core/time.ts';
import { WAL_LIMIT_BYTES } from './connection.ts';
import { fileBytes } from './file.ts';
import { schemaVersionOf } from './schema.ts';

/** Enough for a log at its limit and for moving it into the database. */
export const BALLAST_BYTES = 2 * WAL_LIMIT_BYTES;

/**
 * What stays free beside the ballast: content that would leave less is refused when it is offered, and when it is
 * written.
 */
export const FREE_RESERVE_BYTES = BALLAST_BYTES;

const OWNER_ONLY_FILE = 0o600;

export interface Ballast {
  /** Where the reserve is touched, and from giving up until the ballast is whole again: no more may be stored. */
  isDiskShort(): boolean;
  /** Frees the room; false when there was none to free. */
  giveUp(): boolean;
  /** Makes the file whole where there is room for it and the reserve; whether it is whole. */
  restore(): boolean;
}

/** `path` is the database's. */
export function createBallast(path: string): Ballast {
  const ballastPath = `${path}-ballast`;
  let givenUp = false;

  function isWhole(): boolean {
    return fileBytes(ballastPath) >= BALLAST_BYTES;
  }

  function giveUp(): boolean {
    const bytes = fileBytes(ballastPath);
    givenUp = true;
    rmSync(ballastPath, { force: true });
    return bytes > 0;
  }

  function restore(): boolean {
    if (!isWhole() && !(freeBytes(path) > BALLAST_BYTES + FREE_RESERVE_BYTES && fill(ballastPath))) return false;
    givenUp = false;
    return true;
  }

  function isDiskShort(): boolean {
    try {
      return givenUp || freeBytes(path) <= FREE_RESERVE_BYTES;
    } catch {
      // What is wrong with the disk is for the write itself to say.
      return false;
    }
  }
  return { isDiskShort, giveUp, restore };
}

/** Bytes that this process may still write to the file system of that path. */
export function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(dirname(path));
  return bavail * bsize;
}

/** Written, not only made long: a hole takes no room. */
function fill(ballastPath: string): boolean {
  const zeros = new Uint8Array(MIB);
  const descriptor = openSync(ballastPath, 'w', OWNER_ONLY_FILE);
  try {
    for (let written = 0; written < BALLAST_BYTES; written += writeSync(descriptor, zeros));
    return true;
  } catch {
    rmSync(ballastPath, { force: true });
    return false;
  } finally {
    closeSync(descriptor);
  }
}

// The SQL of upkeep, run on the writing connection between transactions, since a checkpoint can't be inside one. When
// it is due is the cleanup schedule's business.

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
