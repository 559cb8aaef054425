// shorten-log.mjs of scripts/deploy/litestream beside others who use the same database; Litestream itself is in
// interop/litestream.test.ts.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { LITESTREAM_FOLDER } from '../support/litestream.ts';
import { run, temporaryFolder } from '../support/programs.ts';

const PAGE_BYTES = 8192;
const FRAME_BYTES = 24 + PAGE_BYTES;
const ROWS = 300;

/** A database with free pages, and a log that still has a page for each removed row, of which none counts. */
function makeDatabase(t: TestContext) {
  const path = join(temporaryFolder(t), 'pasted.db');
  const db = new DatabaseSync(path, { timeout: 5000 });
  t.after(() => db.close());
  db.exec(`PRAGMA page_size = ${PAGE_BYTES}; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0`);
  db.exec('PRAGMA secure_delete = ON; CREATE TABLE things (content)');
  const add = db.prepare('INSERT INTO things VALUES (:content)');
  const store = (text: string): unknown => add.run({ content: text.padEnd(PAGE_BYTES - 200, text) });
  for (let number = 0; number < ROWS; number += 1) store(`burned ${number}. `);
  db.exec('DELETE FROM things');
  db.exec('PRAGMA wal_checkpoint(PASSIVE)');
  store('kept. ');
  return { path, db, store, logBytes: () => statSync(`${path}-wal`).size };
}

const SCRIPT = ['--disable-warning=ExperimentalWarning', join(LITESTREAM_FOLDER, 'shorten-log.mjs')];

function startShortening(t: TestContext, path: string, seconds: number) {
  const child = spawn(process.execPath, [...SCRIPT, path, String(seconds)]);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text));
  const ended = once(child, 'close');
  /** Ends the script; gives what it has said. */
  const end = async (): Promise<string> => {
    child.kill('SIGKILL');
    await ended;
    return said;
  };
  t.after(end);
  return end;
}

const LIMIT = { timeout: 60_000 };

test('shorten-log: what was removed leaves the log at once, and what counts stays', LIMIT, async (t) => {
  const { path, db, logBytes } = makeDatabase(t);
  const log = `${path}-wal`;
  assert.ok(readFileSync(log).includes('burned 299. '));
  const { mtimeMs } = statSync(log);
  const end = startShortening(t, path, 0.02);
  while (logBytes() > 10 * FRAME_BYTES) await pause(5);
  assert.ok(!readFileSync(log).includes('burned'));
  assert.ok(readFileSync(log).includes('kept'));
  // `pasted check` judges by the time of the log, so the script puts that back, to the millisecond.
  assert.ok(Math.abs(statSync(log).mtimeMs - mtimeMs) <= 1);
  using another = new DatabaseSync(path);
  for (const each of [db, another]) {
    assert.deepEqual(each.prepare('PRAGMA integrity_check').all().map((row) => row['integrity_check']), ['ok']);
    assert.equal(each.prepare('SELECT count(*) AS things FROM things').get()?.['things'], 1);
  }
  assert.equal(await end(), '');
});

test('shorten-log: beside a writer and a long reader nothing is lost, and the log stays short', LIMIT, async (t) => {
  const { path, db, store, logBytes } = makeDatabase(t);
  const end = startShortening(t, path, 0.005);
  using reader = new DatabaseSync(path);
  const count = 'SELECT count(*) AS things FROM things';
  for (let turn = 1; turn <= 20; turn += 1) {
    reader.exec('BEGIN');
    const before = reader.prepare(count).get()?.['things'];
    for (let number = 0; number < 10; number += 1) store(`of turn ${turn}. `);
    await pause(20);
    assert.equal(reader.prepare(count).get()?.['things'], before);
    reader.exec('COMMIT');
    db.exec('PRAGMA wal_checkpoint(PASSIVE)');
  }
  let last = 0;
  do {
    // This does nothing while the script looks at the log, and then the next row does not begin the log anew.
    db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    store('last. ');
    last += 1;
    await pause(20);
  } while (logBytes() > 10 * FRAME_BYTES);
  assert.deepEqual(db.prepare('PRAGMA integrity_check').all().map((row) => row['integrity_check']), ['ok']);
  assert.equal(db.prepare(count).get()?.['things'], 1 + 20 * 10 + last);
  assert.equal(await end(), '');
});

test('shorten-log: without a time it empties the log once, or says who is in the way', LIMIT, (t) => {
  const { path, logBytes } = makeDatabase(t);
  const once = () => run(process.execPath, [...SCRIPT, path], '/');
  using reader = new DatabaseSync(path);
  reader.exec('BEGIN');
  assert.equal(reader.prepare('SELECT count(*) AS things FROM things').get()?.['things'], 1);
  const { status, output } = once();
  assert.equal(status, 1);
  assert.match(output, /is in use/);
  reader.exec('COMMIT');
  assert.deepEqual(once(), { status: 0, stdout: '', output: '' });
  assert.equal(logBytes(), 0);
  assert.equal(reader.prepare('SELECT count(*) AS things FROM things').get()?.['things'], 1);
});
