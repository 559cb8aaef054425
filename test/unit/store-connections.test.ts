// The connections of the store: how each is set up, and what it may do.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test from 'node:test';
import { requireDatabase } from '../../src/store/backup.ts';
import { openAsIs, openReading, openWriting, placeOf, refuseOtherFiles } from '../../src/store/database.ts';
import { openReader, prepareLookups } from '../../src/store/open.ts';
import { APPLICATION_ID, migrate, MIGRATIONS } from '../../src/store/schema.ts';
import { openTestStore, patternedBytes, temporaryFolder } from '../support/store.ts';

/** A database that SQLite itself has closed, made by these statements. */
function makeDatabase(path: string, ...statements: string[]): void {
  const db = new DatabaseSync(path);
  for (const statement of statements) db.exec(statement);
  db.close();
}

test('openWriting, openReading: a commit is durable, content that goes is overwritten, a damaged file runs nothing', (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  makeDatabase(path);
  const [writing, reading] = [openWriting(path), openReading(path)];
  t.after(() => [writing, reading].forEach((db) => db.close()));
  const value = (db: DatabaseSync, name: string): unknown => Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0];
  for (const db of [writing, reading]) {
    assert.deepEqual([value(db, 'trusted_schema'), value(db, 'cell_size_check'), value(db, 'busy_timeout')], [0, 1, 5000]);
    assert.throws(() => db.exec("ATTACH ':memory:' AS other"), /too many attached databases/);
  }
  assert.equal(value(reading, 'cache_size'), -4096);
  // 2 is FULL, 1 is ON, 2 is MEMORY.
  const ofWriting = ['synchronous', 'secure_delete', 'temp_store'].map((name) => value(writing, name));
  assert.deepEqual(ofWriting, [2, 1, 2]);
  assert.throws(() => reading.exec('DELETE FROM pastes'), /readonly/);
});

test('openAsIs: a backup may attach the one file that it writes, and who only looks attaches nothing', (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  makeDatabase(path, 'CREATE TABLE kept (x)');
  const [writable, immutable] = [openAsIs(path, 'writable'), openAsIs(path, 'immutable')];
  t.after(() => [writable, immutable].forEach((db) => db.close()));
  const attach = (db: DatabaseSync, name: string) => () => db.exec(`ATTACH ':memory:' AS ${name}`);
  assert.doesNotThrow(attach(writable, 'one'));
  for (const refused of [attach(writable, 'two'), attach(immutable, 'one')]) {
    assert.throws(refused, /too many attached databases/);
  }
  writable.exec('DELETE FROM kept');
  assert.throws(() => immutable.exec('DELETE FROM kept'), /readonly/);
});

test('openWriting: an upgrade is in the file itself at once, where an older version sees it, and an ordinary start writes nothing', async (t) => {
  const { path, store } = await openTestStore(t);
  await store.close();
  const inHeader = (): number => readFileSync(path).readUInt32BE(60);
  const migrations = MIGRATIONS as (readonly string[])[];
  migrations.push(['UPDATE removals SET count = count + 1']);
  t.after(() => migrations.pop());
  assert.equal(inHeader(), MIGRATIONS.length - 1);
  const upgraded = openWriting(path);
  assert.deepEqual([inHeader(), statSync(`${path}-wal`).size], [MIGRATIONS.length, 0]);
  upgraded.exec('UPDATE removals SET count = 5');
  const logBytes = statSync(`${path}-wal`).size;
  const again = openWriting(path);
  assert.ok(logBytes > 0);
  assert.equal(statSync(`${path}-wal`).size, logBytes, 'the log is left as it is');
  again.close();
  upgraded.close();
});

test('a database that cannot be read leaves no connection open', (t) => {
  if (!existsSync('/proc/self/fd')) return t.skip('there is no /proc');
  const folder = temporaryFolder(t);
  const [strange, empty] = ['strange.db', 'empty.db'].map((name) => join(folder, name)) as [string, string];
  writeFileSync(strange, patternedBytes(8192));
  makeDatabase(empty, 'CREATE TABLE other (x)');
  const tries: readonly (() => unknown)[] = [
    () => openReading(strange), () => openReader(strange, prepareLookups), () => openReader(empty, prepareLookups),
  ];
  const openFiles = () => readdirSync('/proc/self/fd').length;
  for (const open of tries) {
    const before = openFiles();
    assert.throws(open, String(open));
    assert.equal(openFiles(), before, String(open));
  }
});

test('openWriting: refuses another program, or a newer version, that only the log of a crash tells of', async (t) => {
  const { path, store, folder } = await openTestStore(t);
  await store.close();
  const tries = { application_id: [77, /another program \(application id 77\)/], user_version: [99, /schema 99/] } as const;
  for (const [mark, [value, message]] of Object.entries(tries)) {
    const crashed = join(folder, `${mark}.db`);
    writeFileSync(crashed, readFileSync(path));
    const db = new DatabaseSync(crashed);
    db.exec(`PRAGMA ${mark} = ${value}`);
    for (const suffix of ['', '-wal']) writeFileSync(`${crashed}-copy${suffix}`, readFileSync(crashed + suffix));
    db.close();
    refuseOtherFiles(`${crashed}-copy`);
    assert.throws(() => openWriting(`${crashed}-copy`), { name: 'DatabaseRefusedError', message });
  }
});

test('refuseOtherFiles: the header is 100 bytes, and says whose the file is', (t) => {
  assert.equal(APPLICATION_ID, Buffer.from('pstd').readUInt32BE());
  const path = join(temporaryFolder(t), 'some.db');
  const header = Buffer.alloc(101);
  header.write('SQLite format 3\0');
  header.writeUInt32BE(77, 68);
  for (const [bytes, message] of [[99, /is not a SQLite/], [100, /application id 77/], [101, /application id 77/]] as const) {
    writeFileSync(path, header.subarray(0, bytes));
    assert.throws(() => refuseOtherFiles(path), { name: 'DatabaseRefusedError', message });
  }
  const advised = { message: /: set SERVICE_DB to another path, or move the file away$/ };
  assert.throws(() => refuseOtherFiles(path, 'replace'), advised);
  assert.throws(() => refuseOtherFiles(path), { message: /: set SERVICE_DB to another path$/ });
});

test('refuseOtherFiles: of ours a newer version may be replaced, and not opened', (t) => {
  const path = join(temporaryFolder(t), 'newer.db');
  makeDatabase(path, 'CREATE TABLE later (a)', `PRAGMA application_id = ${APPLICATION_ID}`, 'PRAGMA user_version = 99');
  refuseOtherFiles(path, 'replace');
  assert.throws(() => refuseOtherFiles(path), { message: /schema 99/ });
});

test('refuseOtherFiles: a log without its file is not taken for a new database, but one that is replaced may have it', (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  const message = /^\S+ is away or empty, and its log is not: put it back, or move \S+-wal away$/;
  for (const content of [undefined, '']) {
    if (content !== undefined) writeFileSync(path, content);
    writeFileSync(`${path}-wal`, '');
    refuseOtherFiles(path);
    writeFileSync(`${path}-wal`, 'x');
    assert.throws(() => refuseOtherFiles(path), { name: 'DatabaseRefusedError', message });
    refuseOtherFiles(path, 'replace');
  }
});

test('placeOf: follows as many links as the system does, and ends where they go round', (t) => {
  const folder = temporaryFolder(t);
  for (let link = 1; link <= 41; link += 1) symlinkSync(link === 1 ? 'file' : `${link - 1}`, join(folder, `${link}`));
  writeFileSync(join(folder, 'file'), '');
  for (const links of [1, 39, 40]) assert.equal(placeOf(join(folder, `${links}`)), join(folder, 'file'), `${links}`);
  assert.equal(placeOf(join(folder, '41')), join(folder, '1'));
  symlinkSync('round', join(folder, 'round'));
  assert.equal(placeOf(join(folder, 'round')), join(folder, 'round'));
});

test('requireDatabase: there is none, only its log is there, or it cannot be looked at', (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'pasted.db');
  const isRefused = { name: 'DatabaseRefusedError', message: /^there is no database / };
  assert.throws(() => requireDatabase(path), isRefused);
  writeFileSync(`${path}-wal`, 'x');
  assert.throws(() => requireDatabase(path), isRefused);
  for (const [content, isAway] of [['', true], ['x', false], ['xx', false]] as const) {
    writeFileSync(path, content);
    if (isAway) assert.throws(() => requireDatabase(path), { name: 'DatabaseRefusedError', message: /away or empty/ });
    else requireDatabase(path);
  }
  symlinkSync('round', join(folder, 'round'));
  assert.throws(() => requireDatabase(join(folder, 'round')), {
    name: 'StoreError', failure: 'unavailable', message: `the database ${join(folder, 'round')} cannot be read`,
  });
});

test('migrate: while another process writes it says so, and changes nothing', (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  const [writing, db] = [new DatabaseSync(path), new DatabaseSync(path, { timeout: 0 })];
  t.after(() => [writing, db].forEach((each) => each.close()));
  writing.exec('BEGIN IMMEDIATE');
  assert.throws(() => migrate(db, [['CREATE TABLE a (x)']]), { errcode: 5, message: 'database is locked' });
  writing.exec('COMMIT');
  assert.equal(migrate(db, [['CREATE TABLE a (x)']]), 1);
});
