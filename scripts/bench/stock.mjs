// Databases with many pastes, each made once a run. The server under test makes an empty one; this module then writes
// the rows itself, since storing a million pastes over HTTP would take longer than all that is measured with them.

import { hash, randomBytes } from 'node:crypto';
import { closeSync, constants, copyFileSync, fsyncSync, openSync, readSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { say } from '../child.mjs';
import { makeFolder, removeFolder, startPasted } from './processes.mjs';
import { ID_CHARACTERS, text } from './requests.mjs';

export const PASTE_BYTES = 1024;

/** Each owner has this many pastes, however many there are in all. */
export const PASTES_OF_AN_OWNER = 1000;

const DAY_SECONDS = 86_400;
const FILLING_BYTES = 1024 * 1024;
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

const made = new Map();

/** The identities of the owners of `count` pastes; the pastes belong to them in turn. */
export function ownersOf(count) {
  return Array.from({ length: Math.ceil(count / PASTES_OF_AN_OWNER) }, (_, owner) => hash('sha1', `owner ${owner}`));
}

/**
 * A database of `count` pastes of PASTE_BYTES, made when first asked for. `pristine` is its file, which nobody changes;
 * `folder` holds a copy for a server, which later operations find as earlier ones left it; `ids` is a file of all ids,
 * one after the other, in the order of their rows.
 */
export function stockOf(main, count) {
  if (!made.has(count)) made.set(count, makeStock(main, count));
  return made.get(count);
}

async function makeStock(main, count) {
  say(`making a database of ${count} pastes`);
  const storeroom = makeFolder();
  const pristine = path.join(storeroom, 'pasted.db');
  const empty = await startPasted(main, { folder: storeroom });
  await empty[Symbol.asyncDispose]();
  const ids = Array.from({ length: count }, makeId);
  const now = Math.floor(Date.now() / 1000);
  await fill(pristine, ids, (index) => now - DAY_SECONDS + Math.floor((index * DAY_SECONDS) / count), 30 * DAY_SECONDS);
  const idsFile = path.join(storeroom, 'ids');
  writeFileSync(idsFile, ids.join(''));
  const folder = makeFolder();
  const copy = path.join(folder, 'pasted.db');
  copyFileSync(pristine, copy, constants.COPYFILE_FICLONE);
  sync(copy);
  return { count, pristine, folder, ids: idsFile, lastId: ids.at(-1) };
}

/** A copy of the stock with `expired` more pastes, which have expired but are still there; disposal removes it. */
export async function copyWithExpired(stock, expired) {
  const file = copyOf(stock.pristine);
  const folder = path.dirname(file);
  const created = Math.floor(Date.now() / 1000) - 2 * DAY_SECONDS;
  await fill(file, Array.from({ length: expired }, makeId), () => created, DAY_SECONDS);
  return { ...stock, folder, file, [Symbol.dispose]: () => removeFolder(folder) };
}

/** A database with the same rows, in a folder of its own. */
export function copyOf(file) {
  const copy = path.join(makeFolder(), 'pasted.db');
  using db = new DatabaseSync(file, { readOnly: true });
  db.prepare('VACUUM INTO ?').run(copy);
  return copy;
}

/** Reads a file to its end, so that all of it is in the system's page cache, if there is room. */
export function readThrough(file) {
  const buffer = Buffer.allocUnsafe(FILLING_BYTES);
  const descriptor = openSync(file);
  while (readSync(descriptor, buffer) > 0) continue;
  closeSync(descriptor);
}

/** How many expired pastes are still there. */
export function countExpired({ file }) {
  using db = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  return db.prepare('SELECT count(*) AS expired FROM pastes WHERE expires_at < unixepoch()').get().expired;
}

/** An id as long as the server's ids, of the same characters. */
function makeId() {
  return Array.from(randomBytes(ID_CHARACTERS), (byte) => BASE32[byte & 31]).join('');
}

/** Writes rows as the server does, of pastes with PASTE_BYTES of text each; no two have the same text. */
async function fill(file, ids, createdAt, ttlSeconds) {
  const db = new DatabaseSync(file);
  // No journal and only one sync, at the end: nobody else uses the database, and an unfinished one is thrown away.
  db.exec(`PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA cache_size = ${-(2 ** 20)}`);
  const insert = db.prepare(`
    INSERT INTO pastes (id, owner, mime_type, size, sha256, created_at, expires_at, burn_after_read, accessed_at,
      content)
    VALUES (?, ?, 'text/plain', ?, ?, ?, ?, 0, ?, ?)`);
  const owners = ownersOf(ids.length);
  const filling = text(FILLING_BYTES);
  db.exec('BEGIN IMMEDIATE');
  for (const [index, id] of ids.entries()) {
    const at = (index * 61) % (FILLING_BYTES - PASTE_BYTES);
    const content = Buffer.from(filling.subarray(at, at + PASTE_BYTES));
    content.write(`${index}\n`, 'latin1');
    const created = createdAt(index);
    const digest = hash('sha256', content, 'buffer');
    const owner = owners[index % owners.length];
    insert.run(id, owner, PASTE_BYTES, digest, created, created + ttlSeconds, created, content);
    // Lets a signal end the run before all rows are written.
    if (index % 10_000 === 0) await setImmediate();
  }
  db.exec('COMMIT; PRAGMA journal_mode = WAL');
  db.close();
  sync(file);
}

/** Waits until the file is on disk, so that writing it does not disturb the next measurement. */
function sync(file) {
  const descriptor = openSync(file, 'r+');
  fsyncSync(descriptor);
  closeSync(descriptor);
}
