// How the two kinds of connection are opened and set up. Whether the file may be opened at all is file.ts.

import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { KIB, MIB } from '../core/time.ts';
import { isDamage } from './failures.ts';
import { damagedRefused, newerVersionRefused, otherProgramRefused } from './file.ts';
import {
  APPLICATION_ID, applicationIdOf, migrate, MIGRATIONS, PAGE_BYTES, schemaVersionOf,
} from './schema.ts';

/** The log is moved into the database whenever it has grown so far, and cut back to this when it starts anew. */
export const WAL_LIMIT_BYTES = 8 * MIB;

/** A batch of the writer with the pages that it touches fits; more would only spill into the log early. */
const WRITER_CACHE_KIB = (8 * MIB) / KIB;

/** The inner pages of a million pastes and of their index take some 3 MiB: SQLite's own 2 MB would not keep them. */
const READER_CACHE_KIB = (4 * MIB) / KIB;

/** attach: nothing here uses a second database, so no statement can. */
const OPTIONS = { timeout: 5000, limits: { attach: 0 } } as const satisfies DatabaseSyncOptions;

/** A damaged or tampered file must not run code, nor be walked past the ends of its cells. */
const CAUTION = ['PRAGMA trusted_schema = OFF', 'PRAGMA cell_size_check = ON'];

/**
 * Fixed by the first table. Setting auto_vacuum writes a file, which must bear our application id from its first byte:
 * a crash would otherwise leave one that looks like another program's. Not IMMEDIATE, which writes before it is set.
 */
const LAYOUT = [
  `PRAGMA page_size = ${PAGE_BYTES}`,
  'BEGIN',
  'PRAGMA auto_vacuum = INCREMENTAL',
  `PRAGMA application_id = ${APPLICATION_ID}`,
  'COMMIT',
];

/** In effect for one connection each time. */
const WRITING = [
  'PRAGMA synchronous = FULL',
  'PRAGMA secure_delete = ON',
  `PRAGMA cache_size = -${WRITER_CACHE_KIB}`,
  `PRAGMA journal_size_limit = ${WAL_LIMIT_BYTES}`,
  `PRAGMA wal_autocheckpoint = ${WAL_LIMIT_BYTES / PAGE_BYTES}`,
];

/** Only for reading; the database must exist with all its tables. */
export function openReading(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { ...OPTIONS, readOnly: true });
  for (const pragma of [...CAUTION, `PRAGMA cache_size = -${READER_CACHE_KIB}`]) db.exec(pragma);
  return db;
}

/** For looking at all of it while other processes use it. It must exist, of any version and whatever its state. */
export function openWhole(path: string, mode: 'writable' | 'immutable'): DatabaseSync {
  const url = pathToFileURL(path);
  // One that may write tidies up after itself where nobody else has the database open, and makes none that is missing;
  // to an immutable one no file beside the database means anything (https://sqlite.org/uri.html).
  url.search = mode === 'writable' ? 'mode=rw' : 'immutable=1';
  // VACUUM INTO attaches what it writes.
  const limits = { attach: mode === 'writable' ? 1 : 0 };
  const db = new DatabaseSync(url, { ...OPTIONS, limits, readOnly: mode === 'immutable' });
  for (const pragma of [...CAUTION, 'PRAGMA temp_store = MEMORY']) db.exec(pragma);
  return db;
}

/**
 * The only connection that writes, on a database brought to the newest schema. Refuses one that is not ours. A new one
 * gets its tables before its write-ahead log, in one commit: a file with anything in it then bears our application id.
 */
export function openWriting(path: string): DatabaseSync {
  const db = new DatabaseSync(path, OPTIONS);
  try {
    refuseOthers(db, path);
    for (const pragma of [...CAUTION, ...WRITING]) db.exec(pragma);
    if (schemaVersionOf(db) === 0) for (const statement of LAYOUT) db.exec(statement);
    // What an index of all pastes is sorted by, ids and owners, is no content, and would not always fit into memory.
    const migrations = migrate(db);
    // What savepoints set aside is content, and stays off the disk.
    db.exec('PRAGMA temp_store = MEMORY');
    db.exec('PRAGMA journal_mode = WAL');
    // The header then tells an older version that it must refuse this database, even after a crash.
    if (migrations > 0) db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    return db;
  } catch (error) {
    db.close();
    throw isDamage(error) ? damagedRefused(path) : error;
  }
}

/** What file.ts saw in the header may be older than what a log left by a crash holds. */
function refuseOthers(db: DatabaseSync, path: string): void {
  const applicationId = applicationIdOf(db);
  const tables = Number(db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get()?.['tables']);
  if (tables > 0 && applicationId !== APPLICATION_ID) throw otherProgramRefused(path, applicationId);
  if (schemaVersionOf(db) > MIGRATIONS.length) throw newerVersionRefused(path, schemaVersionOf(db));
}
