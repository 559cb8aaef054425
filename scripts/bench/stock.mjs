// Databases with many pastes, made once a run: the server under test makes an empty one, the rows are written into it
// without the server, since storing a million over HTTP would take longer than all that is measured with them.

import { hash, randomBytes } from 'node:crypto';
import { closeSync, constants, copyFileSync, fsyncSync, openSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { say } from '../child.mjs';
import { ID_CHARACTERS, text } from './requests.mjs';
import { startPasted } from './servers.mjs';

/** @typedef {import('./scene.mjs').Bench} Bench */

/**
 * A database of `count` pastes of PASTE_BYTES. `pristine` is its file, which nobody changes; `folder` holds a copy for
 * a server; `ids` is a file of all ids in a row, in the order of their rows.
 * @typedef {{ count: number, pristine: string, folder: string, ids: string, lastId: string }} Stock
 */

export const PASTE_BYTES = 1024;

/** So many pastes each owner has, however many there are in all. */
export const PASTES_OF_AN_OWNER = 1000;

const ROWS_IN_A_TRANSACTION = 50_000;
const DAY_SECONDS = 86_400;
const FILLING_BYTES = 1024 * 1024;

/**
 * The identity of owner number `owner`.
 * @param {number} owner
 * @returns {string} 40 hexadecimal digits
 */
export function fingerprintOf(owner) {
  return hash('sha1', `owner ${owner}`);
}

/** @param {import('./site.mjs').Site} site @param {string} main the entry of the server under test */
export function openStocks(site, main) {
  /** @type {Map<number, Promise<Stock>>} */
  const made = new Map();
  return {
    /** Made when first asked for; later users find the copy as the former ones left it. @param {number} count */
    of(count) {
      const stock = made.get(count) ?? makeStock(site, main, count);
      made.set(count, stock);
      return stock;
    },
  };
}

/**
 * @param {import('./site.mjs').Site} site
 * @param {string} main
 * @param {number} count
 * @returns {Promise<Stock>}
 */
async function makeStock(site, main, count) {
  say(`making a database of ${count} pastes`);
  const storeroom = site.makeFolder();
  const pristine = path.join(storeroom, 'pasted.db');
  await makeEmptyDatabase(site, main, storeroom);
  const ids = await makeIds(main, count);
  const now = Math.floor(Date.now() / 1000);
  await fill(pristine, ids, (index) => now - DAY_SECONDS + Math.floor((index * DAY_SECONDS) / count), 30 * DAY_SECONDS);
  const idsFile = path.join(storeroom, 'ids');
  writeFileSync(idsFile, ids.join(''));
  const folder = site.makeFolder();
  copy(pristine, path.join(folder, 'pasted.db'));
  return { count, pristine, folder, ids: idsFile, lastId: /** @type {string} */ (ids.at(-1)) };
}

/**
 * A folder with a copy of the database, in which `expired` more have outlived their time and nobody has noticed yet.
 * @param {import('./site.mjs').Site} site
 * @param {string} main
 * @param {Stock} stock
 * @param {number} expired
 */
export async function copyWithExpired(site, main, stock, expired) {
  const folder = site.makeFolder();
  const file = path.join(folder, 'pasted.db');
  copy(stock.pristine, file);
  const created = Math.floor(Date.now() / 1000) - 2 * DAY_SECONDS;
  await fill(file, await makeIds(main, expired), () => created, DAY_SECONDS);
  return { folder, file };
}

/** How many expired pastes are still there. @param {string} file */
export function countExpired(file) {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  const row = db.prepare('SELECT count(*) AS expired FROM pastes WHERE expires_at < unixepoch()').get();
  db.close();
  return Number(row?.['expired']);
}

/** @param {import('./site.mjs').Site} site @param {string} main @param {string} folder */
async function makeEmptyDatabase(site, main, folder) {
  await using _server = await startPasted(site, main, [], { folder });
}

/** Made as the server makes them. @param {string} main @param {number} count @returns {Promise<string[]>} */
async function makeIds(main, count) {
  const { idFromBytes, ID_BYTES } = await import(pathToFileURL(path.join(path.dirname(main), 'core', 'ids.js')).href);
  return Array.from({ length: count }, () => {
    const id = idFromBytes(randomBytes(ID_BYTES));
    if (id.length !== ID_CHARACTERS) throw new Error(`an id of ${id.length} characters`);
    return id;
  });
}

/**
 * Rows as the server writes them, of pastes with PASTE_BYTES of text that no two have in common.
 * @param {string} file
 * @param {string[]} ids
 * @param {(index: number) => number} createdAt
 * @param {number} ttlSeconds
 */
async function fill(file, ids, createdAt, ttlSeconds) {
  const db = new DatabaseSync(file);
  // Nobody else uses it, and one that broke off would be thrown away: no journal, no syncs but the last.
  for (const [name, value] of [['journal_mode', 'MEMORY'], ['synchronous', 'OFF'], ['cache_size', -(2 ** 20)]]) {
    db.exec(`PRAGMA ${name} = ${value}`);
  }
  const insert = db.prepare(`
    INSERT INTO pastes (id, owner, mime_type, size, sha256, created_at, expires_at, burn_after_read, accessed_at,
      content)
    VALUES (?, ?, 'text/plain', ?, ?, ?, ?, 0, ?, ?)`);
  const owners = Math.ceil(ids.length / PASTES_OF_AN_OWNER);
  const fingerprints = Array.from({ length: owners }, (_, owner) => fingerprintOf(owner));
  const contents = differentTexts();
  for (let start = 0; start < ids.length; start += ROWS_IN_A_TRANSACTION) {
    db.exec('BEGIN IMMEDIATE');
    for (const [offset, id] of ids.slice(start, start + ROWS_IN_A_TRANSACTION).entries()) {
      const index = start + offset;
      const content = contents();
      const created = createdAt(index);
      const digest = hash('sha256', content, 'buffer');
      const owner = fingerprints[index % owners] ?? null;
      insert.run(id, owner, PASTE_BYTES, digest, created, created + ttlSeconds, created, content);
    }
    db.exec('COMMIT');
    // So that a signal to end the run is not kept waiting for all of them.
    await new Promise((resolve) => setImmediate(resolve));
  }
  db.exec('PRAGMA journal_mode = WAL');
  db.close();
  sync(file);
}

/** @returns {() => Buffer} the same buffer each time */
function differentTexts() {
  const filling = text(FILLING_BYTES);
  const content = Buffer.alloc(PASTE_BYTES);
  let made = 0;
  return () => {
    filling.copy(content, 0, (made * 61) % (FILLING_BYTES - PASTE_BYTES));
    content.write(`${made}\n`, 'latin1');
    made += 1;
    return content;
  };
}

/** What is still to be written must not disturb what is measured next. @param {string} file */
function sync(file) {
  const descriptor = openSync(file, 'r+');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** @param {string} from @param {string} to */
function copy(from, to) {
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
  sync(to);
}
