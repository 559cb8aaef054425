// Overwrites what the write-ahead log still holds of former content: overwrite-log.mjs DATABASE SECONDS, so often.
//
// The service empties its log every minute, and so removes what was burned or deleted. Litestream reads the database
// all the time, which keeps the log from being emptied: it begins anew, and what lay behind stays in the file until as
// much has been written again. So this writes zeros there, in a transaction that is rolled back: pages that don't fit
// into the cache go into the log before the commit, and without one they mean nothing to whoever reads the log.

import { closeSync, existsSync, fstatSync, openSync, readSync, utimesSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

const [path = '', seconds = ''] = process.argv.slice(2);

// https://sqlite.org/fileformat2.html#walformat: the header and each frame have the salts of the log that they are of.
const HEADER_BYTES = 32;
const HEADER_SALTS = 16;
const FRAME_HEADER_BYTES = 24;
const FRAME_SALTS = 8;
const SALT_BYTES = 8;

/** More than SQLite keeps of a cache of one page, since it needs some at the same time. */
const CACHED_PAGES = 64;

function overwriteLog() {
  const db = new DatabaseSync(path, { timeout: 5000 });
  const log = openSync(`${path}-wal`, 'r');
  try {
    db.exec('PRAGMA cache_size = 1');
    const { page_size: pageBytes } = db.prepare('PRAGMA page_size').get();
    // From here on nobody else writes.
    db.exec('BEGIN IMMEDIATE');
    const { size, atime, mtime } = fstatSync(log);
    const frameBytes = FRAME_HEADER_BYTES + pageBytes;
    const frames = Math.ceil((size - HEADER_BYTES) / frameBytes);
    const lastFrame = HEADER_BYTES + (frames - 1) * frameBytes;
    const isOver = () => saltsAt(log, lastFrame + FRAME_SALTS).equals(saltsAt(log, HEADER_SALTS));
    if (frames > 0 && !isOver()) {
      db.exec('CREATE TABLE overwriting (zeros)');
      const zeros = db.prepare('INSERT INTO overwriting VALUES (zeroblob(:bytes))');
      // Each makes a frame or more, and the first few may wait in the cache.
      for (let made = 0; made < frames + CACHED_PAGES && !isOver(); made += 1) zeros.run({ bytes: pageBytes });
      if (!isOver()) throw new Error('nothing went into the log before the commit');
    }
    db.exec('ROLLBACK');
    // `pasted check` takes the time of the log for that of the last change, which this is not.
    utimesSync(`${path}-wal`, atime, mtime);
  } finally {
    closeSync(log);
    db.close();
  }
}

function saltsAt(file, position) {
  const salts = Buffer.alloc(SALT_BYTES);
  readSync(file, salts, 0, SALT_BYTES, position);
  return salts;
}

const service = process.ppid;
setInterval(() => {
  if (process.ppid !== service) process.exit();
  try {
    if (existsSync(`${path}-wal`)) overwriteLog();
  } catch (error) {
    process.stderr.write(`pasted: the write-ahead log was not overwritten: ${error.message}\n`);
  }
}, Number(seconds) * 1000);
