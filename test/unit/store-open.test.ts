// openStore: what it makes of a path, whom it lets in, and that what it refuses stays as it was.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { draftBackup, restoreDatabase } from '../../src/store/backup.ts';
import { freeBytes } from '../../src/store/database.ts';
import { openReader, openStore, settledWithin } from '../../src/store/open.ts';
import { APPLICATION_ID, migrate, MIGRATIONS } from '../../src/store/schema.ts';
import { CHUNK_BYTES, DatabaseInUseError, DatabaseRefusedError, StoreError } from '../../src/store/store.ts';
import { Writer } from '../../src/store/writer.ts';
import { movableClock } from '../support/clock.ts';
import {
  CREATED_AT, inlinePaste, NO_TERMS, openTestStore, patternedBytes, selectValue, storePaste, strayChunks,
  temporaryFolder, uploadContent,
} from '../support/store.ts';

const open = (path: string) => openStore({ path, clock: movableClock(), log: () => {} });

const digestOf = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

/** A database that SQLite itself has closed, made by these statements. */
function makeDatabase(path: string, ...statements: string[]): void {
  const db = new DatabaseSync(path);
  for (const statement of statements) db.exec(statement);
  db.close();
}

/** What must be the same before and after. */
function traceOf(path: string) {
  return { digest: digestOf(path), files: readdirSync(dirname(path)), modified: statSync(path).mtimeMs };
}

async function assertRefusedUntouched(path: string, message: RegExp): Promise<void> {
  const before = traceOf(path);
  await assert.rejects(open(path), (error: unknown) => {
    assert.ok(error instanceof DatabaseRefusedError, String(error));
    assert.match(error.message, message);
    assert.ok(error.message.includes(path), 'the message names the path');
    return true;
  });
  assert.deepEqual(traceOf(path), before);
}

test('openStore: makes folder and files for their owner alone, even under a lax umask', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'state', 'deeper', 'pasted.db');
  const umask = process.umask(0o022);
  t.after(() => process.umask(umask));
  const store = await open(path);
  await store.pastes.create(inlinePaste(patternedBytes(10)), NO_TERMS);
  const names = readdirSync(dirname(path)).sort();
  assert.deepEqual(names, ['pasted.db', 'pasted.db-lock', 'pasted.db-shm', 'pasted.db-wal']);
  for (const name of names) assert.equal(modeOf(join(dirname(path), name)), '600', name);
  assert.equal(modeOf(dirname(path)), '700');
  assert.equal(modeOf(join(folder, 'state')), '700');
  await store.close();
});

test('openStore: a lock that is a link to a file yet to be made is made there, for its owner alone', async (t) => {
  const folder = temporaryFolder(t);
  const umask = process.umask(0o022);
  t.after(() => process.umask(umask));
  symlinkSync('there', join(folder, 'pasted.db-lock'));
  const store = await open(join(folder, 'pasted.db'));
  assert.equal(modeOf(join(folder, 'there')), '600');
  await store.close();
});

test('openStore: a new database has our id, the newest schema, WAL, incremental vacuum, strict tables', async (t) => {
  const { path, store } = await openTestStore(t);
  await storePaste(store, patternedBytes(10));
  assert.equal(selectValue(path, 'PRAGMA application_id'), APPLICATION_ID);
  assert.equal(selectValue(path, 'PRAGMA user_version'), MIGRATIONS.length);
  assert.equal(selectValue(path, 'PRAGMA journal_mode'), 'wal');
  assert.equal(selectValue(path, 'PRAGMA auto_vacuum'), 2);
  const lax = "type = 'table' AND name NOT LIKE 'sqlite_%' AND sql NOT LIKE '%STRICT%'";
  assert.equal(selectValue(path, `SELECT count(*) FROM sqlite_schema WHERE ${lax}`), 0);
});

test('hasRoomFor: so many bytes must leave the reserve free', async (t) => {
  const { path, store } = await openTestStore(t);
  const free = freeBytes(path);
  assert.equal(store.hasRoomFor(0), true);
  assert.equal(store.hasRoomFor(free), false);
});

test('openStore: an idle store does not keep its process alive, after a write neither', (t) => {
  const folder = temporaryFolder(t);
  const script = join(folder, 'write-once.mjs');
  const path = JSON.stringify(join(folder, 'pasted.db'));
  writeFileSync(script, `
    import { openStore } from ${JSON.stringify(new URL('../../src/store/open.ts', import.meta.url).href)};
    const clock = { unixMs: () => Date.now(), monotonicMs: () => performance.now() };
    const store = await openStore({ path: ${path}, clock, log: () => {} });
    await store.keepSecret('name', new Uint8Array(1));`);
  const { status, stderr } = spawnSync(process.execPath, [script], { timeout: 30_000 });
  assert.equal(status, 0, String(stderr));
});

test('settledWithin: as soon as the work has settled, or the time is over, for which no process stays alive', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const before = timers();
  const stuck = settledWithin(new Promise(() => {}), 20);
  assert.equal(timers(), before);
  await Promise.all([settledWithin(Promise.resolve(), 1_000_000_000), new Promise((resolve) => setTimeout(resolve, 40))]);
  await stuck;
});

test('openStore: closed, it leaves one file beside the lock, and what was stored is there again', async (t) => {
  const opened = await openTestStore(t);
  const paste = await storePaste(opened.store, patternedBytes(1000));
  await opened.store.close();
  assert.deepEqual(readdirSync(opened.folder), ['pasted.db', 'pasted.db-lock']);
  const store = await opened.reopen();
  assert.equal((await store.pastes.find(paste.id, CREATED_AT))?.size, 1000);
});

test('openStore: an empty file becomes a database', async (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  writeFileSync(path, '');
  const store = await open(path);
  assert.equal(selectValue(path, 'PRAGMA user_version'), MIGRATIONS.length);
  await store.close();
});

test('openStore: refuses a database of a newer version and leaves it untouched', async (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  const newer = MIGRATIONS.length + 1;
  makeDatabase(path, 'PRAGMA journal_mode = WAL', 'CREATE TABLE later (a)', `PRAGMA application_id = ${APPLICATION_ID}`,
    `PRAGMA user_version = ${newer}`);
  await assertRefusedUntouched(path, new RegExp(`newer version \\(schema ${newer}`));
});

test('openStore: refuses a database of another program, with or without an id of its own', async (t) => {
  const folder = temporaryFolder(t);
  const marked = join(folder, 'marked.db');
  makeDatabase(marked, 'CREATE TABLE theirs (a)', 'PRAGMA application_id = 252006673');
  await assertRefusedUntouched(marked, /another program \(application id 252006673\)/);
  const unmarked = join(folder, 'unmarked.db');
  makeDatabase(unmarked, 'PRAGMA journal_mode = WAL', 'CREATE TABLE theirs (a)');
  await assertRefusedUntouched(unmarked, /another program \(application id 0\)/);
});

test('openStore: refuses what is no database, however short', async (t) => {
  const folder = temporaryFolder(t);
  const contents = {
    long: patternedBytes(10_000),
    header: Buffer.alloc(100, 'x'),
    short: Buffer.from('SQLite format 3\0'),
    one: Buffer.of(0),
  };
  for (const [name, content] of Object.entries(contents)) {
    const path = join(folder, name);
    writeFileSync(path, content);
    await assertRefusedUntouched(path, /is not a SQLite database/);
  }
});

test('openStore: refuses a database of ours that is damaged', async (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  await (await open(path)).close();
  const bytes = readFileSync(path);
  bytes.fill(0xa5, 100);
  writeFileSync(path, bytes);
  const digest = digestOf(path);
  await assert.rejects(open(path), {
    name: 'DatabaseRefusedError', message: /is damaged, or its disk fails: mend the disk, or restore a backup$/,
  });
  assert.equal(digestOf(path), digest);
});

test('openStore: refuses a newer version that only the log of a crash tells of', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'pasted.db');
  await (await open(path)).close();
  const crashed = join(folder, 'crashed.db');
  const db = new DatabaseSync(path);
  db.exec('PRAGMA user_version = 99');
  for (const suffix of ['', '-wal']) writeFileSync(crashed + suffix, readFileSync(path + suffix));
  db.close();
  await assert.rejects(open(crashed), (error) => error instanceof DatabaseRefusedError && /schema 99/.test(error.message));
  assert.equal(selectValue(crashed, 'PRAGMA user_version'), 99);
});

test('openStore: a link, and a link to it, mean the file that they lead to, also before that is there', async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'there'));
  const path = join(folder, 'there', 'pasted.db');
  const link = join(folder, 'link.db');
  const outer = join(folder, 'there', 'outer.db');
  symlinkSync('there/pasted.db', link);
  symlinkSync('../link.db', outer);
  const store = await open(outer);
  for (const other of [path, link, outer]) {
    await assert.rejects(open(other), DatabaseInUseError, other);
    const restoring = { path: join(folder, 'copy.db'), backup: other, moment: '' };
    await assert.rejects(restoreDatabase(restoring), DatabaseInUseError, other);
  }
  await store.close();
  writeFileSync(`${path}-restore-draft`, 'content');
  await (await open(outer)).close();
  assert.equal(existsSync(`${path}-restore-draft`), false);
  const loop = join(folder, 'loop.db');
  symlinkSync('loop.db', loop);
  await assert.rejects(open(loop), StoreError);
});

test('openStore: what a backup that was killed has left goes, and that of one under way stays', async (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  await (await open(path)).close();
  const beside = join(temporaryFolder(t), 'backup.db');
  const left = join(dirname(beside), 'backup.0123456789abcdef.partial');
  writeFileSync(left, 'content that has burned since');
  writeFileSync(`${left}-journal`, 'content');
  writeFileSync(`${path}-backup-note`, left);
  await (await open(path)).close();
  assert.deepEqual(readdirSync(dirname(beside)), []);
  using draft = draftBackup({ path, beside, mark: 'fedcba9876543210' });
  await (await open(path)).close();
  assert.ok(existsSync(draft.path));
});

test('openStore: by a link, the reserve and the room are those of the disk that has the file', async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'there'));
  const path = join(folder, 'there', 'pasted.db');
  const link = join(folder, 'link.db');
  symlinkSync('there/pasted.db', link);
  const store = await open(link);
  await storePaste(store, patternedBytes(50));
  assert.equal(await store.upkeep.restoreBallast(), true);
  assert.deepEqual(readdirSync(folder).sort(), ['link.db', 'there']);
  assert.ok(existsSync(`${path}-ballast`));
  assert.ok(store.upkeep.fileBytes().wal > 0);
  await store.close();
});

test('openStore: refuses a database that is open already, and opens it when it is closed', async (t) => {
  const { path, store } = await openTestStore(t);
  const paste = await storePaste(store, patternedBytes(10));
  await assert.rejects(open(path), (error: unknown) => {
    return error instanceof DatabaseInUseError && error.message.includes(path);
  });
  const link = join(temporaryFolder(t), 'link.db');
  symlinkSync(path, link);
  await assert.rejects(open(link), DatabaseInUseError, 'by another name');
  assert.ok(await store.pastes.find(paste.id, CREATED_AT), 'the first is not disturbed');
  await store.close();
  const second = await open(path);
  assert.ok(await second.pastes.find(paste.id, CREATED_AT));
  await second.close();
});

test('openStore: by a link that leads elsewhere by now, or is gone, it is not healthy: the next start takes another', async (t) => {
  const folder = temporaryFolder(t);
  const link = join(folder, 'link.db');
  symlinkSync('pasted.db', link);
  const store = await open(link);
  assert.equal(await store.healthy(), true);
  for (const target of ['other.db', undefined, 'pasted.db']) {
    rmSync(link, { force: true });
    if (target !== undefined) symlinkSync(target, link);
    assert.equal(await store.healthy(), target === 'pasted.db', target);
  }
  await store.close();
});

test('openStore: a database that was emptied, or a file of it that was removed or replaced, is not healthy', async (t) => {
  const { path, store, logged } = await openTestStore(t);
  assert.equal(await store.healthy(), true);
  await store.upkeep.checkFiles();
  assert.deepEqual(logged.map(({ event }) => event), ['opened']);
  for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-lock`]) {
    renameSync(file, `${path}-moved`);
    assert.equal(await store.healthy(), false, 'removed');
    await store.upkeep.checkFiles();
    assert.deepEqual(logged.splice(1), [{ level: 'error', logger: 'store', event: 'files moved, removed, replaced or emptied' }]);
    writeFileSync(file, readFileSync(`${path}-moved`));
    assert.equal(await store.healthy(), false, 'replaced');
    renameSync(`${path}-moved`, file);
    assert.equal(await store.healthy(), true, 'back in its place');
  }
  truncateSync(path);
  assert.equal(await store.healthy(), false, 'emptied');
  await store.upkeep.checkFiles();
  assert.equal(logged.splice(1).length, 1, 'emptied');
});

test('openStore: what a restore that was killed has left goes, and nothing else beside the database', async (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  const left = ['', '-journal', '-shm', '-wal'].map((suffix) => `-restore-draft${suffix}`);
  const kept = '.before-restore-20260131T120000Z';
  for (const suffix of [...left, kept]) writeFileSync(`${path}${suffix}`, 'content');
  await (await open(path)).close();
  assert.deepEqual([...left, kept].filter((suffix) => existsSync(`${path}${suffix}`)), [kept]);
});

test('openStore: a path that cannot be had is a StoreError or a refusal that names it', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'file'), 'not a folder');
  const within = join(folder, 'file', 'pasted.db');
  await assert.rejects(open(within), (error: unknown) => error instanceof StoreError && error.message.includes(within));
  const path = join(folder, 'folder.db');
  mkdirSync(path);
  await assert.rejects(open(path), new DatabaseRefusedError(`${path} is not a file: set SERVICE_DB to another path`));
  const loop = join(folder, 'loop.db');
  symlinkSync('loop.db', loop);
  await assert.rejects(open(loop), (error: unknown) => (
    error instanceof StoreError && error.message === `the database ${loop} cannot be read`
      && (error.cause as NodeJS.ErrnoException).code === 'ELOOP'
  ));
  // A path that is looked into is locked first.
  assert.deepEqual(readdirSync(folder).sort(), ['file', 'folder.db', 'loop.db', 'loop.db-lock']);
});

test('openReader: a failure to open or to read is a StoreError; an error of the program stays what it is', async (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  const isUnavailable = (error: unknown) => error instanceof StoreError && error.failure === 'unavailable';
  assert.throws(() => openReader(path, () => ({})), isUnavailable, 'there is none');
  await (await open(path)).close();
  const bug = new RangeError('a bug');
  let failure: Error | undefined = Object.assign(new Error('database disk image is malformed'), { errcode: 11 });
  const reader = openReader(path, () => ({
    find: (id: string) => {
      if (failure !== undefined) throw failure;
      return id;
    },
  }));
  t.after(() => reader.close());
  assert.throws(() => reader.find('a'), isUnavailable);
  failure = bug;
  assert.throws(() => reader.find('a'), bug);
  failure = undefined;
  assert.equal(reader.find('a'), 'a');
});

test('openStore: keeps the permissions that an operator gave an existing database', async (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  await (await open(path)).close();
  chmodSync(path, 0o640);
  const store = await open(path);
  await storePaste(store, patternedBytes(10));
  assert.equal(modeOf(path), '640');
  assert.equal(modeOf(`${path}-wal`), '640');
  await store.close();
});

test('openStore: sweeps what uploads left behind, and nothing else', async (t) => {
  const opened = await openTestStore(t);
  const kept = await storePaste(opened.store, patternedBytes(2 * CHUNK_BYTES));
  await uploadContent(opened.store, patternedBytes(20 * CHUNK_BYTES));
  await uploadContent(opened.store, patternedBytes(1));
  await opened.store.close();
  assert.equal(strayChunks(opened.path), 21);
  assert.equal(selectValue(opened.path, 'SELECT count(*) FROM orphans'), 2);
  await opened.reopen();
  assert.equal(strayChunks(opened.path), 0);
  assert.equal(selectValue(opened.path, 'SELECT count(*) FROM orphans'), 0);
  assert.equal(selectValue(opened.path, `SELECT count(*) FROM chunks WHERE content_id = '${kept.contentId}'`), 2);
});

test('openStore: a failure after the writer has begun ends its thread, and others can open the database', async (t) => {
  const path = join(temporaryFolder(t), 'pasted.db');
  const closed = t.mock.method(Writer.prototype, 'close');
  const log = (): void => {
    throw new Error('no log');
  };
  await assert.rejects(openStore({ path, clock: movableClock(), log }), { message: 'no log' });
  assert.equal(closed.mock.callCount(), 1);
  await (await open(path)).close();
});

test('close: a second call waits for the first', async (t) => {
  const store = await open(join(temporaryFolder(t), 'pasted.db'));
  const closing = store.close();
  assert.equal(store.close(), closing);
  await closing;
});

test('truncateWal: also removes the content of a paste that another process has removed', async (t) => {
  const { path, store } = await openTestStore(t);
  const { contentId } = await storePaste(store, patternedBytes(CHUNK_BYTES));
  assert.ok(contentId);
  using other = new DatabaseSync(path, { timeout: 5000 });
  other.exec(`DELETE FROM pastes; INSERT INTO orphans (content_id) VALUES ('${contentId}')`);
  assert.equal(strayChunks(path), 1);
  assert.equal(await store.upkeep.truncateWal(), true);
  do await setImmediate();
  while (store.upkeep.writesWaiting() > 0);
  assert.equal(strayChunks(path), 0);
});

test('releasePages: gives back as many free pages as are asked for, and one at least', async (t) => {
  const { path, store } = await openTestStore(t);
  const { contentId } = await storePaste(store, patternedBytes(CHUNK_BYTES));
  using other = new DatabaseSync(path, { timeout: 5000 });
  other.exec(`DELETE FROM pastes; DELETE FROM chunks WHERE content_id = '${contentId}'`);
  const left: number[] = [];
  for (const pages of [1, 0, 0.5, 3]) left.push(await store.upkeep.releasePages(pages));
  assert.ok(left[0]! > 10);
  assert.deepEqual(left.map((pages) => left[0]! - pages), [0, 1, 2, 5]);
});

test('openStore: logs that it has opened', async (t) => {
  const { logged } = await openTestStore(t);
  const details = { schema: MIGRATIONS.length, milliseconds: 0 };
  assert.deepEqual(logged, [{ level: 'info', logger: 'store', event: 'opened', outcome: 'success', details }]);
});

test('migrate: applies what is missing in order, each migration once', () => {
  const db = new DatabaseSync(':memory:');
  const first = ['CREATE TABLE a (x)', 'INSERT INTO a VALUES (1)'];
  const second = ['INSERT INTO a SELECT x + 1 FROM a'];
  assert.equal(migrate(db, [first]), 1);
  assert.equal(migrate(db, [first, second]), 1);
  assert.equal(migrate(db, [first, second]), 0);
  assert.deepEqual(db.prepare('SELECT x FROM a').all().map((row) => row['x']), [1, 2]);
  assert.equal(db.prepare('PRAGMA user_version').get()?.['user_version'], 2);
  db.close();
});

test('migrate: a migration that fails leaves the database at the one before', () => {
  const db = new DatabaseSync(':memory:');
  const first = ['CREATE TABLE a (x)'];
  const broken = ['INSERT INTO a VALUES (1)', 'INSERT INTO missing VALUES (1)'];
  assert.throws(() => migrate(db, [first, broken]), /no such table: missing/);
  assert.equal(db.isTransaction, false);
  assert.equal(db.prepare('PRAGMA user_version').get()?.['user_version'], 1);
  assert.equal(db.prepare('SELECT count(*) AS rows FROM a').get()?.['rows'], 0);
  db.close();
});
