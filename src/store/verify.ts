// Whether what a database holds is whole, page by page and paste by paste. Reads alone; what follows from it is for
// copy.ts, restore.ts and examine.ts to say.

import type { DatabaseSync } from 'node:sqlite';

import { describe, isDamage } from './failures.ts';
import { APPLICATION_ID, MIGRATIONS, applicationIdOf, schemaVersionOf } from './schema.ts';

/** `quick` leaves out whether every index agrees with its table. */
export type CheckDepth = 'quick' | 'full';

/** What a sound database holds. */
export interface Holdings {
  readonly schemaVersion: number;
  readonly pastes: number;
  /** Of the pastes' content. */
  readonly contentBytes: number;
}

/** The schema that counts pastes as they come and go, in `usage`. */
const COUNTS_SINCE_SCHEMA = 2;

/** Why the database is none of this program's, in words that follow its name; undefined when it is. */
export function strangenessOf(db: DatabaseSync): string | undefined {
  const applicationId = applicationIdOf(db);
  const version = schemaVersionOf(db);
  if (Number(db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get()?.['tables']) === 0) return 'is empty';
  if (applicationId !== APPLICATION_ID) return `is of another program (application id ${applicationId})`;
  if (version <= MIGRATIONS.length) return undefined;
  return `is of a newer version (schema ${version}, this one knows ${MIGRATIONS.length})`;
}

/** What is wrong with it, a line each; none when it is sound. Throws what is no damage, such as a lock. */
export function damageOf(db: DatabaseSync, depth: CheckDepth): readonly string[] {
  try {
    const pages = damagedPages(db, depth);
    return pages.length > 0 ? pages : damagedPastes(db);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [describe(error)];
  }
}

function damagedPages(db: DatabaseSync, depth: CheckDepth): string[] {
  const rows = db.prepare(depth === 'full' ? 'PRAGMA integrity_check' : 'PRAGMA quick_check').all();
  return rows.map((row) => String(Object.values(row)[0])).filter((line) => line !== 'ok');
}

/** SQLite knows a length without reading what has it. */
function damagedPastes(db: DatabaseSync): string[] {
  const broken = db.prepare(`
    SELECT count(*) AS broken
    FROM pastes
    WHERE content_id IS NOT NULL
      AND size <> (SELECT coalesce(sum(length(bytes)), 0) FROM chunks WHERE chunks.content_id = pastes.content_id)`);
  const count = Number(broken.get()?.['broken']);
  return [
    ...(count === 0 ? [] : [`${count} pastes without their whole content`]),
    ...(isCountedRight(db) ? [] : ['the count of pastes is not that of the pastes there are']),
  ];
}

function isCountedRight(db: DatabaseSync): boolean {
  if (schemaVersionOf(db) < COUNTS_SINCE_SCHEMA) return true;
  const right = db.prepare(`
    SELECT (pastes, bytes) = (SELECT count(*), coalesce(sum(size), 0) FROM pastes) AS isRight
    FROM usage`);
  return right.get()?.['isRight'] === 1;
}

export function holdingsOf(db: DatabaseSync): Holdings {
  const select = db.prepare('SELECT count(*) AS pastes, coalesce(sum(size), 0) AS contentBytes FROM pastes');
  const counted = select.get() as unknown as Omit<Holdings, 'schemaVersion'>;
  return { ...counted, schemaVersion: schemaVersionOf(db) };
}
