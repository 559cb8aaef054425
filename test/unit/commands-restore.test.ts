// `pasted restore`: what is in the database afterwards, what is kept of the old database, and what it refuses. A
// restore that is killed in the middle: crash/restore-crash.test.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import {
  chmodSync, closeSync, copyFileSync, createReadStream, existsSync, linkSync, lstatSync, mkdirSync, openSync,
  readFileSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { lockDatabase } from '../../src/store/database.ts';
import { MIGRATIONS, PAGE_BYTES } from '../../src/store/schema.ts';
import { DatabaseInUseError, type NewPaste } from '../../src/store/store.ts';
import { assertHolds, damage, fill, inStore, makeNewer, makeOldest, makeStranger } from '../support/databases.ts';
import { openDesk, type Desk } from '../support/operator.ts';
import { temporaryFolder } from '../support/programs.ts';
import { smallFileSystem } from '../support/small-file-system.ts';
import { selectValue, storePaste } from '../support/store.ts';

const KEPT = 'pasted.db.before-restore-20260131T120000Z';

/** All there is in the folder of a database that was restored once. */
const AFTERWARDS = ['backups', 'pasted.db', 'pasted.db-backup-lock', KEPT, 'pasted.db-lock'].sort();

/** The suffixes of the files of a database that a process has open. */
const FILES = ['', '-wal', '-shm'];

interface Prepared extends Desk {
  /** A backup of pastes of seed 1. */
  readonly backup: string;
  readonly pastes: readonly NewPaste[];
}

async function prepare(t: TestContext): Promise<Prepared> {
  const desk = openDesk(t);
  const pastes = await fill(desk.databasePath, 1);
  mkdirSync(join(desk.folder, 'backups'));
  const backup = join(desk.folder, 'backups', 'copy.db');
  assert.equal((await desk.pasted(['backup', backup])).code, 0);
  return { ...desk, backup, pastes };
}

test('restore, check, backup: by a link they go to the file that it leads to, with its log, and leave the link', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const link = join(folder, 'links', 'link.db');
  mkdirSync(join(folder, 'links'));
  symlinkSync('../pasted.db', link);
  const byLink = (...words: string[]) => pasted(words, { SERVICE_DB: link });
  await fill(databasePath, 1);
  // As after a kill, the last change is in the log alone.
  const db = new DatabaseSync(databasePath);
  t.after(() => db.isOpen && db.close());
  db.exec(`PRAGMA wal_autocheckpoint = 0; DELETE FROM pastes WHERE rowid = 1`);
  const copied = join(folder, 'copied.db');
  for (const suffix of ['', '-wal']) copyFileSync(`${databasePath}${suffix}`, `${copied}${suffix}`);
  const checked = await byLink('check');
  assert.match(checked.stdout, /ok files: pasted\.db, pasted\.db-wal/);
  assert.match(checked.stdout, /takes [1-9][^]*, 3 pastes/);
  const over = await byLink('backup', '--force', databasePath);
  assert.deepEqual([over.code, /belongs to the database itself/.test(over.stderr)], [1, true], over.stderr);
  db.close();
  const copy = join(folder, 'links', 'copy.db');
  symlinkSync('../copied.db', copy);
  assert.equal((await byLink('restore', copy)).code, 0);
  assert.equal(selectValue(databasePath, 'SELECT count(*) FROM pastes'), 3);
  const toBeMade = join(folder, 'links', 'made.db');
  symlinkSync('../made.db', toBeMade);
  assert.equal((await pasted(['restore', copy], { SERVICE_DB: toBeMade })).code, 0);
  assert.ok(lstatSync(link).isSymbolicLink() && lstatSync(toBeMade).isSymbolicLink());
  assert.equal(selectValue(join(folder, 'made.db'), 'SELECT count(*) FROM pastes'), 3);
});

test('restore: a file that is open and has no name any more is taken as it is', async (t) => {
  if (!existsSync('/proc/self/fd')) return t.skip('there is no /proc');
  const { backup, databasePath, pastes, pasted } = await prepare(t);
  const file = openSync(backup, 'r');
  t.after(() => closeSync(file));
  rmSync(backup);
  assert.equal((await pasted(['restore', `/proc/self/fd/${file}`])).stderr, '');
  await inStore(databasePath, (store) => assertHolds(store, pastes, 1));
});

test('restore: the backup is served, and the database that was there is kept', async (t) => {
  const { folder, databasePath, backup, pastes, pasted } = await prepare(t);
  await inStore(databasePath, async (store) => {
    await storePaste(store, Buffer.from('newer than the backup'));
  });
  const before = readFileSync(backup);
  const { code, stdout, stderr } = await pasted(['restore', backup]);
  assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual(stdout.split('\n'), [
    `Restored ${databasePath} from ${backup}: 4 pastes with 750.5 KiB of content.`,
    `The database that was there is now ${join(folder, KEPT)}.`,
    'What was deleted, read, burned, banned, revoked or spent since the backup was made is as it was then.',
    '',
  ]);
  assert.deepEqual(readFileSync(backup), before);
  assert.deepEqual(readdirSync(join(folder, 'backups')), ['copy.db']);
  assert.deepEqual(readdirSync(folder).sort(), AFTERWARDS);
  for (const name of ['pasted.db', KEPT]) assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600);
  await inStore(databasePath, (store) => assertHolds(store, pastes, 1));
  assert.equal(selectValue(join(folder, KEPT), 'SELECT count(*) FROM pastes'), 5);
});

test('restore --json: one object on one line; a second one within the second keeps both', async (t) => {
  const { folder, databasePath, backup, pasted } = await prepare(t);
  await pasted(['restore', backup]);
  const { stdout } = await pasted(['restore', '--json', backup]);
  assert.deepEqual(JSON.parse(stdout), {
    database: databasePath,
    from: backup,
    pastes: 4,
    content_bytes: 768_547,
    schema_version: MIGRATIONS.length,
    kept_as: join(folder, `${KEPT}-2`),
  });
  assert.ok(existsSync(join(folder, KEPT)));
});

test('restore: makes the database and its folder where there is none', async (t) => {
  const { folder, backup, pastes, pasted } = await prepare(t);
  const path = join(folder, 'new', 'pasted.db');
  const { code, stdout } = await pasted(['restore', backup], { SERVICE_DB: path });
  assert.equal(code, 0);
  assert.doesNotMatch(stdout, /was there/);
  assert.equal(statSync(join(folder, 'new')).mode & 0o777, 0o700);
  assert.deepEqual(readdirSync(join(folder, 'new')).sort(), ['pasted.db', 'pasted.db-lock']);
  await inStore(path, (store) => assertHolds(store, pastes, 1));
});

test('restore: a log that a crash left is taken into the old database, not into the new one', async (t) => {
  const { folder, databasePath, backup, pastes, pasted } = await prepare(t);
  await inStore(databasePath, async (store) => {
    await storePaste(store, Buffer.from('only in the log'));
    for (const suffix of FILES) copyFileSync(`${databasePath}${suffix}`, join(folder, `crashed${suffix}`));
  });
  for (const suffix of FILES) renameSync(join(folder, `crashed${suffix}`), `${databasePath}${suffix}`);
  assert.equal((await pasted(['restore', backup])).code, 0);
  assert.equal(existsSync(`${databasePath}-wal`), false);
  await inStore(databasePath, (store) => assertHolds(store, pastes, 1));
  assert.equal(selectValue(join(folder, KEPT), 'SELECT count(*) FROM pastes'), 5);
});

test('restore: a log without its database is not taken for that of the new one', async (t) => {
  const { folder, databasePath, backup, pastes, pasted } = await prepare(t);
  await inStore(databasePath, async (store) => {
    await storePaste(store, Buffer.from('only in the log'));
    copyFileSync(`${databasePath}-wal`, join(folder, 'stale-wal'));
  });
  renameSync(databasePath, join(folder, 'moved.db'));
  renameSync(join(folder, 'stale-wal'), `${databasePath}-wal`);
  assert.equal((await pasted(['restore', backup])).code, 0);
  assert.ok(existsSync(join(folder, `${KEPT}-wal`)));
  await inStore(databasePath, (store) => assertHolds(store, pastes, 1));
});

test('restore: replaces a damaged database, or one of a newer version, and keeps it as it was', async (t) => {
  const { folder, databasePath, backup, pastes, pasted } = await prepare(t);
  // The damaged page has the schema, so nothing in the database can be opened.
  writeFileSync(databasePath, readFileSync(databasePath).fill(0xa5, 100, 8192));
  const damaged = readFileSync(databasePath);
  assert.equal((await pasted(['restore', backup])).code, 0);
  assert.deepEqual(readFileSync(join(folder, KEPT)), damaged);
  await inStore(databasePath, (store) => assertHolds(store, pastes, 1));

  const path = join(folder, 'newer.db');
  makeNewer(path);
  assert.equal((await pasted(['restore', backup], { SERVICE_DB: path })).code, 0);
  assert.equal(selectValue(path, 'PRAGMA user_version'), MIGRATIONS.length);
});

test('restore: a backup of an older version is brought to this one; the file stays as it is', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const backup = join(folder, 'oldest.db');
  makeOldest(backup);
  const before = readFileSync(backup);
  const { code, stdout } = await pasted(['restore', backup]);
  assert.equal(code, 0);
  assert.match(stdout, new RegExp(`^Brought it from schema 1 to ${MIGRATIONS.length}\\.$`, 'm'));
  assert.deepEqual(readFileSync(backup), before);
  await inStore(databasePath, async (store) => assert.deepEqual(await store.read.usage(), { pastes: 1, bytes: 5, databaseBytes: 0 }));
});

test('restore: a file that was copied by hand counts with the log beside it', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  mkdirSync(join(folder, 'copied'));
  const backup = join(folder, 'copied', 'pasted.db');
  await inStore(databasePath, async (store) => {
    await storePaste(store, Buffer.from('in the log'));
    for (const suffix of ['', '-wal']) copyFileSync(`${databasePath}${suffix}`, `${backup}${suffix}`);
  });
  const before = readFileSync(`${backup}-wal`);
  assert.ok(before.length > 0);
  chmodSync(backup, 0o444);
  assert.equal((await pasted(['restore', backup])).code, 0);
  assert.deepEqual(readFileSync(`${backup}-wal`), before);
  assert.deepEqual(readdirSync(join(folder, 'copied')).sort(), ['pasted.db', 'pasted.db-wal']);
  await inStore(databasePath, async (store) => assert.equal((await store.read.usage()).pastes, 5));
});

test('restore: refuses what is no sound backup, and then nothing has changed', async (t) => {
  const { folder, databasePath, backup, pasted } = await prepare(t);
  const file = (name: string): string => join(folder, 'backups', name);
  const damaged = file('damaged.db');
  copyFileSync(backup, damaged);
  damage(damaged);
  writeFileSync(file('short.db'), readFileSync(backup).subarray(0, 20_000));
  writeFileSync(file('diary.txt'), 'Dear diary,\n'.repeat(100));
  writeFileSync(file('empty.db'), '');
  makeStranger(file('stranger.db'));
  makeNewer(file('newer.db'));
  const before = readFileSync(databasePath);
  const names = readdirSync(folder);
  for (const [name, code, reason] of [
    ['damaged.db', 78, /is damaged, or a disk fails: [^\n*]+\n$/],
    ['short.db', 78, /is damaged/],
    ['diary.txt', 78, /is damaged, or no database, or a disk fails\n$/],
    ['empty.db', 78, /is empty/],
    ['stranger.db', 78, /is of another program/],
    ['newer.db', 78, /is of a newer version/],
    ['missing.db', 1, /there is no file/],
  ] as const) {
    const refused = await pasted(['restore', file(name)]);
    assert.deepEqual([refused.code, refused.stdout], [code, ''], `${name}: ${refused.stderr}`);
    assert.match(refused.stderr, reason);
    assert.ok(refused.stderr.includes(file(name)));
  }
  assert.match((await pasted(['restore', folder])).stderr, /is not a file/);
  assert.match((await pasted(['restore', databasePath])).stderr, /is the database itself/);
  assert.deepEqual(readFileSync(databasePath), before);
  assert.deepEqual(readdirSync(folder), names);
});

test('restore: of a backup with a table that SQLite cannot read at all, SQLite says what is wrong', async (t) => {
  const { databasePath, backup, pasted } = await prepare(t);
  const before = readFileSync(databasePath);
  const root = Number(selectValue(backup, "SELECT rootpage FROM sqlite_schema WHERE name = 'certificates'"));
  writeFileSync(backup, readFileSync(backup).fill(0xa5, (root - 1) * PAGE_BYTES, root * PAGE_BYTES));
  const { code, stdout, stderr } = await pasted(['restore', backup]);
  const reason = 'is damaged, or a disk fails: database disk image is malformed (SQLite 11)';
  assert.deepEqual([code, stdout, stderr], [78, '', `pasted: the backup ${backup} ${reason}\n`]);
  assert.deepEqual(readFileSync(databasePath), before);
});

test('restore -: not from a keyboard, and not beside a server', async (t) => {
  const { databasePath, backup, pasted } = await prepare(t);
  const keyboard = await pasted(['restore', '-'], {}, Object.assign(Readable.from([]), { isTTY: true }));
  assert.deepEqual([keyboard.code, keyboard.stdout], [2, '']);
  assert.match(keyboard.stderr, /not from this keyboard\n/);
  // The file is opened beforehand, because nothing reads it and it is removed at the end of the test.
  const stdin = createReadStream(backup);
  await once(stdin, 'open');
  await inStore(databasePath, async () => {
    const served = await pasted(['restore', '-'], {}, stdin);
    assert.equal(served.code, 75);
    assert.match(served.stderr, /stop the service that uses it first; root can see which: fuser \S+-lock\n$/);
  });
});

test('restore -: ends with 1 when there is no room for what comes, and nothing has changed', async (t) => {
  const small = smallFileSystem(t, 17);
  if (small === undefined) return t.skip('mounting a file system in memory is not permitted here');
  const { backup, pasted } = await prepare(t);
  copyFileSync(backup, join(small, 'pasted.db'));
  const names = readdirSync(small);
  const refused = await pasted(['restore', '-'], { SERVICE_DB: join(small, 'pasted.db') }, createReadStream(backup));
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /no room to restore/);
  assert.deepEqual(readdirSync(small).filter((name) => !name.endsWith('-lock')), names);
});

test('restore: does not replace what is no database of this service', async (t) => {
  const { folder, backup, pasted } = await prepare(t);
  const diary = join(folder, 'diary.txt');
  writeFileSync(diary, 'Dear diary,\n');
  const stranger = join(folder, 'stranger.db');
  makeStranger(stranger);
  for (const path of [diary, stranger]) {
    const before = readFileSync(path);
    const { code, stderr } = await pasted(['restore', backup], { SERVICE_DB: path });
    assert.equal(code, 78);
    assert.match(stderr, /set SERVICE_DB to another path, or move the file away\n$/);
    assert.deepEqual(readFileSync(path), before);
    assert.equal(existsSync(`${path}-lock`), false);
  }
});

test('restore: refuses with 75 while a server has the database, or the backup', async (t) => {
  const { folder, databasePath, backup, pasted } = await prepare(t);
  await inStore(databasePath, async () => {
    const { code, stderr } = await pasted(['restore', backup]);
    assert.equal(code, 75);
    assert.match(stderr, /is in use by another process: stop the service that uses it first; root can see which: fuser \S+-lock\n$/);
    const other = await pasted(['restore', databasePath], { SERVICE_DB: join(folder, 'other.db') });
    assert.equal(other.code, 75);
    assert.equal(existsSync(join(folder, 'other.db')), false);
  });
});

test('restore: refuses with 75 while another command reads the database', async (t) => {
  const { databasePath, backup, pasted } = await prepare(t);
  const reader = new DatabaseSync(databasePath);
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM pastes').get();
  const before = readFileSync(backup);
  const { code, stderr } = await pasted(['restore', backup]);
  assert.equal(code, 75);
  assert.match(stderr, /is in use by another command/);
  reader.exec('COMMIT');
  reader.close();
  assert.deepEqual(readFileSync(backup), before);
  assert.equal((await pasted(['restore', backup])).code, 0);
});

test('restore: what a killed one left is removed by the next', async (t) => {
  const { folder, databasePath, backup, pastes, pasted } = await prepare(t);
  for (const suffix of ['', '-wal', '-shm']) writeFileSync(`${databasePath}-restore-draft${suffix}`, 'half a copy');
  // Left by a restore that was killed after it linked the old database, and before it put the new one in its place.
  linkSync(databasePath, `${databasePath}.before-restore-20260131T000000Z`);
  assert.equal((await pasted(['restore', backup])).code, 0);
  assert.deepEqual(readdirSync(folder).sort(), AFTERWARDS);
  await inStore(databasePath, (store) => assertHolds(store, pastes, 1));
});

test('restore: a link to nowhere that has the name of its draft is removed, and nothing is written behind it', async (t) => {
  const { folder, databasePath, backup, pastes, pasted } = await prepare(t);
  const elsewhere = temporaryFolder(t);
  for (const suffix of ['', '-wal', '-journal', '-shm']) {
    symlinkSync(join(elsewhere, `none${suffix}`), `${databasePath}-restore-draft${suffix}`);
  }
  const { code, stderr } = await pasted(['restore', backup]);
  assert.deepEqual([code, stderr, readdirSync(elsewhere)], [0, '', []]);
  assert.deepEqual(readdirSync(folder).filter((name) => name.includes('-restore') && !name.includes('.before-restore-')), []);
  await inStore(databasePath, (store) => assertHolds(store, pastes, 1));
});

/** From now on, giving a file a second name fails with this code. */
function refuseLinks(t: TestContext, code: string): void {
  const mocked = t.mock.method(fs, 'linkSync', () => {
    throw Object.assign(new Error(`${code}: words of the system`), { code });
  });
  syncBuiltinESMExports();
  t.after(() => {
    mocked.mock.restore();
    syncBuiltinESMExports();
  });
}

test('restore: without hard links the old database is copied, and is in its place until the backup is', async (t) => {
  const { folder, databasePath, backup, pastes, pasted } = await prepare(t);
  await inStore(databasePath, async (store) => {
    await storePaste(store, Buffer.from('newer than the backup'));
  });
  const counts: unknown[] = [];
  const rename = fs.renameSync;
  const renamed = t.mock.method(fs, 'renameSync', (from: string, to: string) => {
    // Opens copies of both, since that is what a kill at this moment would leave.
    for (const path of [databasePath, join(folder, KEPT)]) {
      const left = join(folder, 'left.db');
      copyFileSync(path, left);
      counts.push(selectValue(left, 'SELECT count(*) FROM pastes'));
      fs.rmSync(left);
    }
    rename(from, to);
  });
  t.after(() => {
    renamed.mock.restore();
    syncBuiltinESMExports();
  });
  refuseLinks(t, 'EPERM');
  const { code, stderr } = await pasted(['restore', backup]);
  assert.deepEqual([code, stderr, counts], [0, '', [5, 5]]);
  assert.deepEqual(readdirSync(folder).sort(), AFTERWARDS);
  assert.equal(statSync(join(folder, KEPT)).mode & 0o777, 0o600);
  await inStore(databasePath, (store) => assertHolds(store, pastes, 1));
  assert.equal(selectValue(join(folder, KEPT), 'SELECT count(*) FROM pastes'), 5);
});

test('restore: an old database that cannot be kept stays in its place', async (t) => {
  const { folder, databasePath, backup, pasted } = await prepare(t);
  await inStore(databasePath, async (store) => {
    await storePaste(store, Buffer.from('newer than the backup'));
  });
  const names = readdirSync(folder);
  refuseLinks(t, 'EIO');
  const { code, stdout, stderr } = await pasted(['restore', backup]);
  assert.deepEqual([code, stdout, stderr], [1, '', `pasted: ${databasePath} cannot be written (EIO)\n`]);
  assert.equal(selectValue(databasePath, 'SELECT count(*) FROM pastes'), 5);
  assert.deepEqual(readdirSync(folder), names);
});

test('restore: a log of the old database that cannot be opened ends it, and nothing has changed', async (t) => {
  const { folder, databasePath, backup, pasted } = await prepare(t);
  mkdirSync(`${databasePath}-wal`);
  const before = readFileSync(databasePath);
  const names = readdirSync(folder);
  const { code, stdout, stderr } = await pasted(['restore', backup]);
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /^pasted: storage unavailable: unable to open database file [^\n]+\n$/);
  assert.deepEqual(readFileSync(databasePath), before);
  assert.deepEqual(readdirSync(folder), names);
});

test('restore: from the database of a service that is stopped, which cannot start until it is copied', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const other = join(folder, 'other.db');
  const pastes = await fill(other, 1);
  let isRefused = false;
  const ofFileSystem = fs.statfsSync;
  // The command asks for room before each piece, so this runs while it copies.
  const asked = t.mock.method(fs, 'statfsSync', (path: string) => {
    try {
      lockDatabase(other, 0).release();
    } catch (error) {
      isRefused = error instanceof DatabaseInUseError;
    }
    return ofFileSystem(path);
  });
  syncBuiltinESMExports();
  const { code, stderr } = await pasted(['restore', other]);
  asked.mock.restore();
  syncBuiltinESMExports();
  assert.deepEqual([code, stderr, isRefused], [0, '', true]);
  for (const path of [databasePath, other]) await inStore(path, (store) => assertHolds(store, pastes, 1));
});

test('restore: a lock beside the backup that cannot be opened is none', async (t) => {
  const { databasePath, backup, pastes, pasted } = await prepare(t);
  await inStore(databasePath, async (store) => {
    await storePaste(store, Buffer.from('newer than the backup'));
  });
  mkdirSync(`${backup}-lock`);
  const { code, stderr } = await pasted(['restore', backup]);
  assert.deepEqual([code, stderr], [0, '']);
  await inStore(databasePath, (store) => assertHolds(store, pastes, 1));
});

test('restore: a path that the system does not take is named with its reason', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const file = join(folder, 'x'.repeat(256));
  const { code, stderr } = await pasted(['restore', file]);
  assert.deepEqual([code, stderr], [1, `pasted: ${file} cannot be read (ENAMETOOLONG)\n`]);
});
