// Cuts off what lies behind the end of the write-ahead log, every SECONDS: shorten-log.mjs DATABASE SECONDS. Without
// SECONDS it moves the log into the database once, before Litestream starts, which then copies the whole database.
//
// The service empties its log every minute, and so removes what was burned or deleted. Litestream reads the database
// all the time, which keeps the log from being emptied: it begins anew, and what lay behind stays in the file. So this
// cuts the file off there, as SQLite itself does with a limit (PRAGMA journal_size_limit): only whoever holds the
// lock for writing adds to the log, and nobody reads what is behind its end.

import { statSync, truncateSync, utimesSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

const [path = '', seconds = ''] = process.argv.slice(2);
const logPath = `${path}-wal`;

// https://sqlite.org/fileformat2.html#walformat
const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

function shortenLog() {
  const writer = new DatabaseSync(path, { timeout: 5000 });
  const looker = new DatabaseSync(path);
  try {
    const { page_size: pageBytes } = looker.prepare('PRAGMA page_size').get();
    // From here on no other connection writes.
    writer.exec('BEGIN IMMEDIATE');
    // Before SQLite 3.51 this is a checkpoint, which waits for nobody. -1: another is under way.
    const { log: frames } = looker.prepare('PRAGMA wal_checkpoint(NOOP)').get();
    const endBytes = HEADER_BYTES + frames * (FRAME_HEADER_BYTES + pageBytes);
    const { size, atime, mtime } = statSync(logPath);
    if (frames >= 0 && endBytes < size) {
      truncateSync(logPath, endBytes);
      // `pasted check` takes the log's time for that of the last change to the database, and this is no such change.
      utimesSync(logPath, atime, mtime);
    }
    writer.exec('ROLLBACK');
  } finally {
    looker.close();
    writer.close();
  }
}

function emptyLog() {
  const db = new DatabaseSync(path, { timeout: 5000 });
  const { busy } = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
  db.close();
  if (busy !== 0) throw new Error(`${path} is in use`);
}

const service = process.ppid;
if (seconds === '') emptyLog();
else setInterval(() => {
  if (process.ppid !== service) process.exit();
  try {
    if (statSync(logPath, { throwIfNoEntry: false }) !== undefined) shortenLog();
  } catch (error) {
    process.stderr.write(`pasted: the write-ahead log was not shortened: ${error.message}\n`);
  }
}, Number(seconds) * 1000);
