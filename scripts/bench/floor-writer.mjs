// The thread by which the floor stores rows as pasted wrote them, in the same tables with the same indexes. They are
// durable before they count as stored. Rows that come while the thread works share the next commit.

import { hash, randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { ID_CHARACTERS } from './requests.mjs';

/** The same as the service sets on its connection that writes. */
const PRAGMAS = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;
  PRAGMA journal_size_limit = 8388608; PRAGMA wal_autocheckpoint = 1024`;

export const makeId = () => randomBytes(ID_CHARACTERS / 2).toString('hex');

/**
 * Gives a function that stores a row and resolves when it is durable. A row is a small paste, whose `content` has one
 * character for each byte; a `chunk` of content; or the paste that its chunks belong to.
 */
export function startStoring(database) {
  const thread = new Worker(new URL(import.meta.url), { workerData: database });
  let waiting = [];
  let underWay = [];
  const send = () => {
    [underWay, waiting] = [waiting, []];
    thread.postMessage(underWay.map(({ row }) => row));
  };
  thread.on('message', () => {
    const durable = underWay;
    underWay = [];
    if (waiting.length > 0) send();
    for (const { resolve } of durable) resolve();
  });
  return (row) => new Promise((resolve) => {
    // Rows that arrive in the same turn of the event loop share a commit.
    if (waiting.push({ row, resolve }) === 1 && underWay.length === 0) setImmediate(send);
  });
}

/** `carryOut` stores rows in one transaction. All other columns of a paste are copied from the first paste there. */
export function openStoring(database) {
  const db = new DatabaseSync(database);
  db.exec(PRAGMAS);
  const first = db.prepare('SELECT * FROM pastes LIMIT 1').get();
  const names = Object.keys(first);
  const paste = db.prepare(`INSERT INTO pastes (${names}) VALUES (${names.map((name) => `:${name}`)})`);
  const chunk = db.prepare('INSERT INTO chunks (content_id, position, bytes) VALUES (:contentId, :position, :chunk)');
  const store = (row) => {
    if (row.chunk !== undefined) return chunk.run(row);
    const content = row.content === undefined ? null : Buffer.from(row.content, 'latin1');
    const { size = content.length, sha256 = hash('sha256', content, 'buffer'), contentId = null } = row;
    return paste.run({ ...first, id: makeId(), size, sha256, content_id: contentId, content });
  };
  const carryOut = (rows) => {
    db.exec('BEGIN IMMEDIATE');
    rows.forEach(store);
    db.exec('COMMIT');
  };
  return { db, carryOut };
}

if (!isMainThread) {
  const { carryOut } = openStoring(workerData);
  parentPort.on('message', (rows) => parentPort.postMessage(carryOut(rows)));
}
