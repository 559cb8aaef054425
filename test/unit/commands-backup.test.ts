// `pasted backup`: what is in a backup, what is not, what it refuses, and what it leaves behind. Beside a running
// server: api/commands-database.test.ts.

import assert from 'node:assert/strict';
import diagnostics from 'node:diagnostics_channel';
import fs from 'node:fs';
import {
  appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statfsSync, statSync, symlinkSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { runCommandLine } from '../../src/operator/arguments.ts';
import { copyDatabase, draftBackup } from '../../src/store/backup.ts';
import { lockDatabase } from '../../src/store/database.ts';
import { APPLICATION_ID, MIGRATIONS } from '../../src/store/schema.ts';
import {
  assertHolds, damage, fill, inStore, makeNewer, makeOldest, makeStranger,
} from '../support/databases.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';
import { openDesk } from '../support/operator.ts';
import { smallFileSystem } from '../support/small-file-system.ts';
import { CREATED_AT, EXPIRES_AT, gather, selectValue, storePaste } from '../support/store.ts';

test('backup FILE: the copy has every paste, byte for byte, and is for its owner alone', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const pastes = await fill(databasePath, 1);
  const file = join(folder, 'copy.db');
  const { code, stdout, stderr } = await pasted(['backup', file]);
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /^Wrote \S+: 4 pastes with 750\.5 KiB of content, \d+\.\d [KM]iB in 0\.0 s, verified\.\n$/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  for (const [name, value] of [
    ['application_id', APPLICATION_ID],
    ['user_version', MIGRATIONS.length],
    ['auto_vacuum', 2],
    ['page_size', 8192],
    ['integrity_check', 'ok'],
  ] as const) {
    assert.equal(selectValue(file, `PRAGMA ${name}`), value, name);
  }
  assert.deepEqual(readdirSync(folder).sort(), ['copy.db', 'pasted.db', 'pasted.db-backup-lock', 'pasted.db-lock']);
  await inStore(file, (store) => assertHolds(store, pastes, 1));
});

test('backup --json: one object on one line', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const file = join(folder, 'copy.db');
  const { stdout } = await pasted(['backup', '--json', file]);
  assert.equal(stdout.indexOf('\n'), stdout.length - 1);
  assert.deepEqual(JSON.parse(stdout), {
    file, bytes: statSync(file).size, pastes: 4, content_bytes: 768_547, schema_version: MIGRATIONS.length, seconds: 0,
  });
});

test('backup: what was deleted before is not among its bytes', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const canary = (kind: string): Buffer => Buffer.from(`canary of ${kind} content `.repeat(5000));
  await inStore(databasePath, async (store) => {
    await storePaste(store, canary('removed'), { expiresAt: EXPIRES_AT - 1 });
    await storePaste(store, canary('removed').subarray(0, 2000), { expiresAt: EXPIRES_AT - 1 });
    await storePaste(store, canary('kept'));
    assert.equal(await store.pastes.removeExpired(EXPIRES_AT - 1, 10), 2);
  });
  const file = join(folder, 'copy.db');
  assert.equal((await pasted(['backup', file])).code, 0);
  assert.equal(readFileSync(file).includes('canary of removed'), false);
  assert.equal(readFileSync(file).includes('canary of kept'), true);
});

test('backup: what was removed while it is still read, or by a command, is not among its bytes', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const content = Buffer.from('canary of large content '.repeat(40_000));
  const file = join(folder, 'copy.db');
  const backUp = async (): Promise<void> => {
    assert.equal((await pasted(['backup', '--force', file])).code, 0);
    assert.equal(selectValue(file, 'SELECT count(*) FROM orphans'), 0);
    assert.equal(readFileSync(file).includes('canary of'), false);
    assert.ok(statSync(file).size < content.length / 2, `${statSync(file).size} bytes`);
  };
  const unread = await inStore(databasePath, async (store) => {
    const { id, contentId } = await storePaste(store, content, { burnAfterRead: true });
    const reader = await store.contents.open(contentId!);
    assert.equal(await store.pastes.burn(id, null, CREATED_AT), true);
    await backUp();
    assert.equal((await gather(reader!.read(0, content.length))).compare(content), 0);
    reader!.close();
    const { id: other } = await storePaste(store, content);
    return other;
  });
  assert.equal((await pasted(['paste', 'rm', unread])).code, 0);
  assert.equal(readFileSync(databasePath).includes('canary of'), true, 'no server runs that would remove it');
  await backUp();
});

test('backup: no row has a second copy in it, which would outlive the row once the backup is restored', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const canary = (index: number): Buffer => Buffer.from(`canary ${index} `.repeat(150));
  await inStore(databasePath, async (store) => {
    for (let index = 10; index < 50; index += 1) await storePaste(store, canary(index));
    await storePaste(store, Buffer.from('canary of chunks '.repeat(200_000)));
  });
  const file = join(folder, 'copy.db');
  assert.equal((await pasted(['backup', file])).code, 0);
  const bytes = readFileSync(file).toString('latin1');
  const timesIn = (text: string): number => bytes.split(text).length - 1;
  for (let index = 10; index < 50; index += 1) {
    // One canary may be cut, where the content goes on in another page.
    assert.ok([149, 150].includes(timesIn(`canary ${index} `)), `${timesIn(`canary ${index} `)} of ${index}`);
  }
  assert.ok(timesIn('canary of chunks ') <= 200_000, String(timesIn('canary of chunks ')));
});

test('backup -: the same bytes on standard output, nothing else, and nothing is left behind', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const pastes = await fill(databasePath, 1);
  const { code, stdout, stderr } = await pasted(['backup', '-']);
  assert.deepEqual([code, stderr], [0, '']);
  const file = join(folder, 'streamed.db');
  writeFileSync(file, stdout, 'latin1');
  assert.deepEqual(readdirSync(folder).sort(), ['pasted.db', 'pasted.db-backup-lock', 'pasted.db-lock', 'streamed.db']);
  await inStore(file, (store) => assertHolds(store, pastes, 1));
});

test('backup -: not onto a screen, and not with options that are for a file', async (t) => {
  const { databasePath, pasted } = openDesk(t);
  const fake = fakeTerminal(['backup', '-'], { environment: { SERVICE_DB: databasePath }, writesToScreen: true });
  assert.equal(await runCommandLine(fake.terminal), 2);
  assert.match(fake.stderr(), /not for this screen\n/);
  assert.equal((await pasted(['backup', '-', '--json'])).code, 2);
  assert.equal((await pasted(['backup', '--force', '-'])).code, 2);
});

test('backup -: ends with 1 when standard output does not take all of it', async (t) => {
  const { folder, databasePath } = openDesk(t);
  await fill(databasePath, 1);
  const fake = fakeTerminal(['backup', '-'], { environment: { SERVICE_DB: databasePath } });
  const stdout = { ...fake.terminal.stdout, writeWhole: async () => false };
  assert.equal(await runCommandLine({ ...fake.terminal, stdout }), 1);
  assert.match(fake.stderr(), /^pasted: the backup is not whole: [^\n]+\n$/);
  assert.deepEqual(readdirSync(folder).sort(), ['pasted.db', 'pasted.db-backup-lock', 'pasted.db-lock']);
});

test('backup FILE: an existing one only with --force, and never what belongs to the database', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const file = join(folder, 'copy.db');
  writeFileSync(file, 'mine');
  const stderr = `pasted: ${file} exists already, and is not overwritten without --force\n`;
  assert.deepEqual(await pasted(['backup', file]), { code: 1, stdout: '', stderr });
  assert.equal(readFileSync(file, 'utf8'), 'mine');
  assert.equal((await pasted(['backup', file, '--force'])).code, 0);
  assert.equal(selectValue(file, 'SELECT count(*) FROM pastes'), 4);

  const before = readFileSync(databasePath);
  mkdirSync(join(folder, 'sub'));
  symlinkSync(folder, join(folder, 'sub', 'link'));
  const elsewhere = join(folder, 'sub', 'link', 'pasted.db');
  for (const path of [databasePath, `${databasePath}-wal`, `${databasePath}-backup-note`, elsewhere]) {
    const { code, stderr } = await pasted(['backup', '--force', path]);
    assert.deepEqual([code, stderr], [1, `pasted: ${path} belongs to the database itself\n`]);
  }
  assert.deepEqual(readFileSync(databasePath), before);
  assert.match((await pasted(['backup', '--force', join(folder, 'sub')])).stderr, /sub is not a file\n$/);
  const missing = join(folder, 'missing', 'copy.db');
  assert.equal((await pasted(['backup', missing])).stderr, `pasted: ${missing} cannot be written (ENOENT)\n`);
});

test('backup: refuses what is not a database of this service, and makes none', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const file = join(folder, 'copy.db');
  const refusal = async (): Promise<string> => {
    const { code, stdout, stderr } = await pasted(['backup', file]);
    assert.deepEqual([code, stdout, existsSync(file)], [78, '', false]);
    return stderr;
  };
  assert.match(await refusal(), /there is no database/);
  assert.deepEqual(readdirSync(folder), []);
  makeStranger(databasePath);
  assert.match(await refusal(), /is of another program \(application id 0\)/);
  makeNewer(join(folder, 'newer.db'));
  const newer = await pasted(['backup', file], { SERVICE_DB: join(folder, 'newer.db') });
  assert.equal(newer.code, 78);
  assert.match(newer.stderr, /is of a newer version/);
});

test('backup: a damaged database is said to be, and what was there before as FILE stays', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const file = join(folder, 'copy.db');
  writeFileSync(file, 'an older backup');
  damage(databasePath);
  const { code, stdout, stderr } = await pasted(['backup', '--force', file]);
  assert.deepEqual([code, stdout], [78, '']);
  assert.match(stderr, /^pasted: the database \S+ is damaged[^\n]*\n$/);
  assert.equal(readFileSync(file, 'utf8'), 'an older backup');
  writeFileSync(databasePath, 'no database at all');
  const stranger = await pasted(['backup', '--force', file]);
  assert.deepEqual([stranger.code, stranger.stderr], [78, `pasted: the database ${databasePath} is damaged, or no database, or a disk fails\n`]);
  assert.equal(readFileSync(file, 'utf8'), 'an older backup');
  assert.deepEqual(readdirSync(folder).filter((name) => name.includes('partial')), []);
});

test('backup: one of an older version is copied as it is', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  makeOldest(databasePath);
  const file = join(folder, 'copy.db');
  assert.equal((await pasted(['backup', file])).code, 0);
  for (const path of [file, databasePath]) assert.equal(selectValue(path, 'PRAGMA user_version'), 1);
  assert.equal(selectValue(file, 'SELECT count(*) FROM pastes'), 1);
});

/** Files that are there only while a backup is being made. */
const leftOf = (folder: string): string[] => readdirSync(folder).filter((name) => /partial|-backup$/.test(name));

test('backup: one at a time; what a killed one left is removed by the next', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const left = join(folder, 'yesterday.db.0123456789abcdef.partial');
  const lock = lockDatabase(`${databasePath}-backup`);
  for (const path of [left, `${left}-journal`]) writeFileSync(path, 'half a copy');
  writeFileSync(`${databasePath}-backup-note`, left);
  const { code, stderr } = await pasted(['backup', join(folder, 'copy.db')]);
  assert.equal(code, 75);
  assert.match(stderr, /another backup of the database \S+ is being made/);
  assert.ok(existsSync(left));
  lock.release();
  assert.equal((await pasted(['backup', join(folder, 'copy.db')])).code, 0);
  assert.deepEqual(readdirSync(folder).sort(), ['copy.db', 'pasted.db', 'pasted.db-backup-lock', 'pasted.db-lock']);
});

test('backup: a note that names no draft makes it remove nothing', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  writeFileSync(join(folder, 'diary.txt'), 'Dear diary,\n');
  writeFileSync(`${databasePath}-backup-note`, join(folder, 'diary.txt'));
  assert.equal((await pasted(['backup', join(folder, 'copy.db')])).code, 0);
  assert.ok(existsSync(join(folder, 'diary.txt')));
});

test('backup: ended by a signal, it leaves nothing and ends by that signal', async (t) => {
  const { folder, databasePath } = openDesk(t);
  await fill(databasePath, 1);
  const fake = fakeTerminal(['backup', join(folder, 'copy.db')], { environment: { SERVICE_DB: databasePath } });
  let isThere = false;
  const terminal = {
    ...fake.terminal,
    // When the command reads the clock, the draft is there.
    clock: {
      ...fake.terminal.clock,
      monotonicMs: () => {
        isThere = readdirSync(folder).some((name) => name.endsWith('.partial'));
        fake.signal('SIGTERM');
        return 0;
      },
    },
  };
  await assert.rejects(runCommandLine(terminal), /ended by SIGTERM/);
  assert.equal(isThere, true);
  assert.equal(existsSync(join(folder, 'copy.db')), false);
  assert.deepEqual(leftOf(folder), []);
});

test('backup: a database in use keeps its log, and the backup has what is in it', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await inStore(databasePath, async (store) => {
    await storePaste(store, Buffer.from('in the log'));
    assert.ok(statSync(`${databasePath}-wal`).size > 0);
    assert.equal((await pasted(['backup', join(folder, 'copy.db')])).code, 0);
    assert.ok(statSync(`${databasePath}-wal`).size > 0);
  });
  const db = new DatabaseSync(join(folder, 'copy.db'), { readOnly: true });
  assert.deepEqual({ ...db.prepare('SELECT CAST(content AS TEXT) AS text FROM pastes').get() }, { text: 'in the log' });
  db.close();
});

test('backup: refuses a disk without the room, and leaves nothing on one that fills up under it', async (t) => {
  const small = smallFileSystem(t, 17);
  if (small === undefined) return t.skip('mounting a file system in memory is not permitted here');
  const { folder, databasePath, pasted } = openDesk(t);
  for (const seed of [1, 2]) await fill(databasePath, seed);
  const file = join(small, 'copy.db');
  const refused = await pasted(['backup', file]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /it may take 1\.\d MiB and 16\.0 MiB to spare, and 1\d\.\d MiB are free\n$/);

  // The room seems to be there when the command asks for it, and is not there when it is needed.
  writeFileSync(join(small, 'filler'), new Uint8Array(16.5 * 1024 * 1024));
  const { bavail, bsize, ...others } = statfsSync(folder);
  const free = t.mock.method(fs, 'statfsSync', () => ({ bavail, bsize, ...others }));
  syncBuiltinESMExports();
  const failed = await pasted(['backup', file]);
  free.mock.restore();
  syncBuiltinESMExports();
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /^pasted: no backup was made as \S+: storage full: [^\n]+\n$/);
  assert.deepEqual(readdirSync(small), ['filler']);
  assert.deepEqual(leftOf(folder), []);
});

test('backup: a path that the system does not take is named with its reason', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const file = join(folder, 'x'.repeat(256));
  const { code, stderr } = await pasted(['backup', file]);
  assert.deepEqual([code, stderr], [1, `pasted: ${file} cannot be written (ENAMETOOLONG)\n`]);
});

test('backup: as FILE goes every name that the system takes, however long', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const file = join(folder, 'x'.repeat(255));
  const { code, stderr } = await pasted(['backup', file]);
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(selectValue(file, 'SELECT count(*) FROM pastes'), 4);
  assert.deepEqual(leftOf(folder), []);
});

test('backup: where no draft can be made nothing is left of it, and the next backup is none the worse', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  // As in a folder that this user may not look into, nobody can say what is there.
  const beside = join(databasePath, 'copy.db');
  assert.throws(() => draftBackup({ path: databasePath, beside, mark: '0123456789abcdef' }), { code: 'ENOTDIR' });
  assert.deepEqual(leftOf(folder), []);
  writeFileSync(`${databasePath}-backup-note`, `${beside}.0123456789abcdef.partial`);
  assert.equal((await pasted(['backup', join(folder, 'copy.db')])).code, 0);
  assert.deepEqual(leftOf(folder), []);
});

test('copyDatabase: a disk that fails only when the copy is synced is a failure of the storage', async (t) => {
  const { folder, databasePath } = openDesk(t);
  await fill(databasePath, 1);
  const failed = { code: 'ENOSPC', syscall: 'fsync' };
  const mocked = t.mock.method(fs, 'fsyncSync', () => {
    throw Object.assign(new Error('ENOSPC: no space left on device, fsync'), failed);
  });
  syncBuiltinESMExports();
  try {
    assert.throws(() => copyDatabase(databasePath, join(folder, 'copy.db')), {
      name: 'StoreError', failure: 'unavailable', message: 'storage unavailable: ENOSPC: no space left on device, fsync',
    });
  } finally {
    mocked.mock.restore();
    syncBuiltinESMExports();
  }
});

test('backup: a copying thread that ends early is no backup, and nothing stays of what it wrote', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const file = join(folder, 'copy.db');
  writeFileSync(file, 'an older backup');
  const end = (message: unknown): void => {
    void (message as { worker: Worker }).worker.terminate();
    const [draft = ''] = readdirSync(folder).filter((name) => name.endsWith('.partial'));
    for (const suffix of ['', '-journal']) appendFileSync(join(folder, `${draft}${suffix}`), 'half a copy');
  };
  diagnostics.subscribe('worker_threads', end);
  t.after(() => diagnostics.unsubscribe('worker_threads', end));
  const { code, stdout, stderr } = await pasted(['backup', '--force', file]);
  const reason = 'the copying thread ended early';
  assert.deepEqual([code, stdout, stderr], [1, '', `pasted: no backup was made as ${file}: ${reason}\n`]);
  assert.equal(readFileSync(file, 'utf8'), 'an older backup');
  assert.deepEqual(readdirSync(folder).sort(), ['copy.db', 'pasted.db', 'pasted.db-backup-lock', 'pasted.db-lock']);
});

test('backup: a lock that cannot be taken is no other backup, which could be waited for', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  mkdirSync(`${databasePath}-backup-lock`);
  const { code, stdout, stderr } = await pasted(['backup', join(folder, 'copy.db')]);
  assert.deepEqual([code, stdout], [1, '']);
  const reason = 'unable to open database file (SERVICE_DB)';
  assert.equal(stderr, `pasted: the lock ${databasePath}-backup-lock cannot be taken: ${reason}\n`);
  assert.deepEqual(readdirSync(folder).sort(), ['pasted.db', 'pasted.db-backup-lock', 'pasted.db-lock']);
});

test('backup: without hard links it is given its name all the same, and none that was taken meanwhile', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const pastes = await fill(databasePath, 1);
  const names = ['pasted.db', 'pasted.db-backup-lock', 'pasted.db-lock'];
  let [refusal, meanwhile] = ['EPERM', ''];
  t.mock.method(fs, 'linkSync', () => {
    if (meanwhile.endsWith('/link.db')) symlinkSync('nowhere', meanwhile);
    else if (meanwhile !== '') writeFileSync(meanwhile, 'of somebody else');
    throw Object.assign(new Error(`${refusal}: words of the system`), { code: refusal });
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const copy = join(folder, 'copy.db');
  const { code, stdout, stderr } = await pasted(['backup', copy]);
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /^Wrote \S+copy\.db: 4 pastes /);
  assert.equal(statSync(copy).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder).sort(), ['copy.db', ...names]);
  await inStore(copy, (store) => assertHolds(store, pastes, 1));

  const file = join(folder, 'another.db');
  refusal = 'EIO';
  const failed = await pasted(['backup', file]);
  assert.deepEqual(failed, { code: 1, stdout: '', stderr: `pasted: ${file} cannot be written (EIO)\n` });
  assert.equal(existsSync(file), false);
  for (refusal of ['EPERM', 'EEXIST']) {
    meanwhile = file;
    const taken = await pasted(['backup', file]);
    assert.deepEqual([taken.code, taken.stdout], [1, '']);
    assert.ok(taken.stderr.startsWith(`pasted: ${file} `), taken.stderr);
    assert.equal(readFileSync(file, 'utf8'), 'of somebody else');
  }
  [refusal, meanwhile] = ['EPERM', join(folder, 'link.db')];
  assert.equal((await pasted(['backup', meanwhile])).code, 1);
  assert.equal(readlinkSync(meanwhile), 'nowhere', 'a link to nowhere has taken the name too');
  assert.deepEqual(readdirSync(folder).filter((name) => name.endsWith('.partial')), []);
});

test('restore, backup: a copy beside the database stays, whatever somebody has called it', async (t) => {
  const { databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const copies = [`${databasePath}-restore`, `${databasePath}-backup`];
  for (const copy of copies) assert.equal((await pasted(['backup', copy])).code, 0);
  const before = copies.map((copy) => readFileSync(copy));
  assert.equal((await pasted(['backup', `${databasePath}.copy`])).code, 0);
  for (const copy of copies) assert.equal((await pasted(['restore', copy])).code, 0);
  await inStore(databasePath, async () => {});
  assert.deepEqual(copies.map((copy) => readFileSync(copy)), before);
});
