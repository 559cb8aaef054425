// What can be told about a database without changing anything: for `pasted check`, beside a running server or where
// nobody serves, of any version and in any state. What of it is good or bad is the command's to say.

import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';

import { authorityLookups } from './authority.ts';
import { BALLAST_BYTES, FREE_RESERVE_BYTES, freeBytes } from './ballast.ts';
import { WAL_LIMIT_BYTES, openReading, openWhole } from './connection.ts';
import { asStoreError, describe, isDamage } from './failures.ts';
import { fileBytes } from './file.ts';
import type { StoredAuthority, StoredCrl } from './pki-store.ts';
import { MIGRATIONS, schemaVersionOf } from './schema.ts';
import { damageOf, holdingsOf, strangenessOf } from './verify.ts';
import type { CheckDepth, Holdings } from './verify.ts';

/** What a sound database of this version says of itself. Times are Unix seconds. */
export interface Contents {
  readonly holdings: Holdings;
  /** Null without pastes. */
  readonly newestCreatedAt: number | null;
  /** How many were ever issued. */
  readonly certificates: number;
  readonly authority: StoredAuthority | undefined;
  readonly crl: StoredCrl | undefined;
}

export interface Examination {
  /** Why it is none that this version may open, in words that follow its name. */
  readonly strangeness: string | undefined;
  readonly schemaVersion: number;
  readonly newestSchemaVersion: number;
  /** A line each; none when it is sound. Not looked for in a strange one. */
  readonly damage: readonly string[];
  /** undefined of one that is strange, damaged, or not of this version. */
  readonly contents: Contents | undefined;
}

export interface Room {
  readonly walBytes: number;
  /** Above this something keeps the log from being emptied. */
  readonly usualWalBytes: number;
  readonly freeBytes: number;
  /** What the service leaves free: with less, new pastes are refused. */
  readonly reserveBytes: number;
  readonly hasBallast: boolean;
}

const NOTHING_KNOWN: Examination = {
  strangeness: undefined, schemaVersion: 0, newestSchemaVersion: MIGRATIONS.length, damage: [], contents: undefined,
};

/** The file must exist. Throws StoreError when it can't be opened. */
export function examineDatabase(path: string, depth: CheckDepth): Examination {
  const isAlone = isUnused(path);
  const examination = examineAs(path, depth, isAlone);
  // Who opened it meanwhile may have changed what had been taken for immutable.
  return isAlone && !isUnused(path) ? examineAs(path, depth, false) : examination;
}

/** Without files beside it nobody has it open, and nothing but the file itself counts. */
function isUnused(path: string): boolean {
  return !['-wal', '-shm', '-journal'].some((suffix) => existsSync(`${path}${suffix}`));
}

function examineAs(path: string, depth: CheckDepth, isAlone: boolean): Examination {
  let db;
  try {
    // To read one that has a log, without one beside it, would leave an empty log and its index there.
    db = isAlone ? openWhole(path, 'immutable') : openReading(path);
    return examine(db, depth);
  } catch (error) {
    if (!isDamage(error)) throw asStoreError(error);
    const damage = [describe(error)];
    return { ...NOTHING_KNOWN, damage };
  } finally {
    db?.close();
  }
}

function examine(db: DatabaseSync, depth: CheckDepth): Examination {
  const strangeness = strangenessOf(db);
  const schemaVersion = schemaVersionOf(db);
  const damage = strangeness === undefined ? damageOf(db, depth) : [];
  const isReadable = strangeness === undefined && damage.length === 0 && schemaVersion === MIGRATIONS.length;
  const contents = isReadable ? contentsOf(db) : undefined;
  return { strangeness, schemaVersion, newestSchemaVersion: MIGRATIONS.length, damage, contents };
}

function contentsOf(db: DatabaseSync): Contents {
  const newest = db.prepare('SELECT max(created_at) AS newest FROM pastes').get()?.['newest'];
  const { findAuthority, findCrl } = authorityLookups(db);
  return {
    holdings: holdingsOf(db),
    newestCreatedAt: typeof newest === 'number' ? newest : null,
    certificates: Number(db.prepare('SELECT count(*) AS issued FROM certificates').get()?.['issued']),
    authority: findAuthority(),
    crl: findCrl(),
  };
}

/** `path` is the database's; its folder must exist. */
export function measureRoom(path: string): Room {
  return {
    walBytes: fileBytes(`${path}-wal`),
    usualWalBytes: 2 * WAL_LIMIT_BYTES,
    freeBytes: freeBytes(path),
    reserveBytes: FREE_RESERVE_BYTES,
    hasBallast: fileBytes(`${path}-ballast`) >= BALLAST_BYTES,
  };
}
