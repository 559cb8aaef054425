// `pasted check`: what each state of a service is called, and that looking at
// it changes nothing.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { DAY_SECONDS } from '../../src/core/time.ts';
import { damageOf, restoreDatabase } from '../../src/store/backup.ts';
import { prepareUsage } from '../../src/store/records.ts';
import { MIGRATIONS, PAGE_BYTES, schemaVersionOf } from '../../src/store/schema.ts';
import { countedBytes } from '../../src/store/store.ts';
import { check, levelOf } from '../support/checked.ts';
import { damage, fill, inStore, makeNewer, makeOldest, makeStranger } from '../support/databases.ts';
import { saying, startNode } from '../support/imitated-store.ts';
import { openDesk } from '../support/operator.ts';
import { run } from '../support/programs.ts';
import { CREATED_AT, selectValue, storePaste } from '../support/store.ts';
import { CLIENT, RENEWED } from '../vectors/schema-rows.ts';
import { placeVector } from '../vectors/schema-vectors.ts';

test('check: one line for each thing, and nothing is changed', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const before = readFileSync(databasePath);
  const { code, stdout, stderr } = await pasted(['check']);
  assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual(stdout.replace(/[\d.]+ [KMGTP]iB are free/, 'N GiB are free').split('\n'), [
    'ok settings: can be used, and are not for production (NODE_ENV)',
    `ok folder: ${folder} is for its owner alone`,
    'ok files: pasted.db, pasted.db-lock: for one owner alone',
    'ok room: N GiB are free on the disk of the database',
    'ok write-ahead log: takes 0 bytes',
    'warn room in reserve: is not there: a server makes it within seconds, when the disk has room',
    `ok schema: ${MIGRATIONS.length}, of this version`,
    'ok integrity: no damage by a quick check, 4 pastes with 750.5 KiB of content',
    'ok records: owners, certificates and invitations agree',
    'ok clock: says 2026-01-31T12:00:00Z',
    'ok certificate authority: there is none',
    '',
  ]);
  assert.deepEqual(readFileSync(databasePath), before);
  assert.deepEqual(readdirSync(folder).sort(), ['pasted.db', 'pasted.db-lock']);
  const full = await check(t, { databasePath, words: ['--full'] });
  assert.match(full.found.get('integrity')!, /^ok no damage by a full check/);
});

/** Places a copy of a change, as Litestream leaves it beside the database. */
function placeCopy(databasePath: string, number: number, atSeconds: number): void {
  const folder = join(dirname(databasePath), '.pasted.db-litestream', 'ltx', '0');
  const path = join(folder, `${String(number).padStart(16, '0')}-${String(number).padStart(16, '0')}.ltx`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, 'a copy');
  utimesSync(path, atSeconds, atSeconds);
}

test('check: a replica that Litestream no longer makes', async (t) => {
  const { folder, databasePath } = openDesk(t);
  await fill(databasePath, 1);
  const replica = async (laterSeconds = 0) => (await check(t, { databasePath, laterSeconds })).found.get('replica');
  assert.equal(await replica(), undefined);
  const changed = Date.parse('2026-01-31T11:00:00Z') / 1000;
  utimesSync(databasePath, changed, changed);
  placeCopy(databasePath, 9, changed - 300);
  assert.equal(await replica(), 'ok the last change was copied at 2026-01-31T10:55:00Z', 'a quiet one is no matter');
  placeCopy(databasePath, 9, changed - 301);
  const stopped = 'warn has nothing of what changed since 2026-01-31T10:54:59Z, the last time at';
  assert.equal(await replica(), `${stopped} 2026-01-31T11:00:00Z: Litestream does not run, or is held up`);
  placeCopy(databasePath, 10, changed);
  utimesSync(databasePath, changed - 600, changed - 600);
  const behind = 'warn may have nothing of what changed since';
  const doubt = 'Litestream does not run, or cannot reach it';
  assert.equal(await replica(), `${behind} 2026-01-31T10:54:59Z: ${doubt}`);
  placeCopy(databasePath, 9, Date.parse('2026-01-31T11:45:00Z') / 1000);
  placeCopy(databasePath, 10, Date.parse('2026-01-31T11:46:00Z') / 1000);
  const copied = 'ok the last change was copied at 2026-01-31T11:46:00Z';
  assert.equal(await replica(), copied);
  assert.equal(await replica(1), `${behind} 2026-01-31T11:45:00Z: ${doubt}`);
  rmSync(join(folder, '.pasted.db-litestream', 'ltx', '0', `${'9'.padStart(16, '0')}-${'9'.padStart(16, '0')}.ltx`));
  assert.equal(await replica(DAY_SECONDS), copied, 'the newest copy stays, however old');
  // The log belongs to the same database, and is newer.
  writeFileSync(`${databasePath}-wal`, '');
  const logAt = Date.parse('2026-01-31T11:52:00Z') / 1000;
  utimesSync(`${databasePath}-wal`, logAt, logAt);
  assert.match((await replica())!, /^warn has nothing .* the last time at 2026-01-31T11:52:00Z: /);
});

test('check: owners, holders and invitations that contradict themselves, each by its number', async (t) => {
  const { databasePath } = openDesk(t);
  placeVector(MIGRATIONS.length, databasePath);
  chmodSync(databasePath, 0o600);
  const sound = readFileSync(databasePath);
  assert.equal((await check(t, { databasePath })).found.get('records'), 'ok owners, certificates and invitations agree');
  const owners = (count: number): string => `fail ${count} owners whose bytes are not the sum of their pastes`;
  const holders = (count: number): string =>
    `fail ${count} certificates whose holder is not the first of their chain, or that are unused and renew none`;
  for (const [change, expected] of [
    ['UPDATE owners SET bytes = bytes + 1 WHERE owner = (SELECT max(owner) FROM owners)', owners(1)],
    ['DELETE FROM owners WHERE owner = (SELECT max(owner) FROM owners)', owners(1)],
    ["INSERT INTO owners VALUES ('nobody', 1)", owners(1)],
    ['UPDATE certificates SET holder = NULL WHERE is_admin = 1', holders(1)],
    [`UPDATE certificates SET holder = '${'e'.repeat(40)}' WHERE is_unused = 1`, holders(1)],
    [`DELETE FROM certificates WHERE fingerprint = '${CLIENT}'`, holders(1)],
    [`UPDATE certificates SET holder = '${RENEWED}' WHERE fingerprint = '${CLIENT}'`, holders(2)],
    ['UPDATE certificates SET is_unused = 1 WHERE is_admin = 1', holders(1)],
    ['UPDATE invitations SET expires_at = created_at', 'fail 1 invitations that end before they begin'],
    ['UPDATE owners SET bytes = 0; UPDATE invitations SET expires_at = 0', `${owners(1)}fail 1 invitations that end before they begin`],
  ] as const) {
    writeFileSync(databasePath, sound);
    const db = new DatabaseSync(databasePath);
    db.exec(change);
    db.close();
    const { code, found } = await check(t, { databasePath });
    assert.deepEqual([code, found.get('records')], [1, expected], change);
  }
  writeFileSync(databasePath, sound);
  const db = new DatabaseSync(databasePath);
  assert.throws(() => db.exec('UPDATE invitations SET uses_left = -1'), /CHECK constraint failed/);
  // An owner without pastes may have a row with 0 bytes, or none.
  db.exec("INSERT INTO owners VALUES ('nothing', 0)");
  db.close();
  assert.match((await check(t, { databasePath })).found.get('records')!, /^ok /);
});

test('check: beside a server it sees what was just stored, and leaves the log alone', async (t) => {
  const { databasePath } = openDesk(t);
  await inStore(databasePath, async (store) => {
    await storePaste(store, Buffer.from('hello'));
    await store.upkeep.restoreBallast();
    const walBytes = statSync(`${databasePath}-wal`).size;
    const checked = await check(t, { databasePath });
    assert.equal(checked.code, 0);
    assert.match(checked.found.get('integrity')!, /, 1 paste with 5 bytes of content$/);
    assert.equal(checked.found.get('room in reserve'), 'ok is kept for a full disk');
    assert.equal(statSync(`${databasePath}-wal`).size, walBytes);
  });
});

test('check: settings that cannot be used are 78; doubtful ones are warnings', async (t) => {
  const { databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const wrong = await pasted(['check'], { SERVICE_PORT: 'many' });
  assert.deepEqual([wrong.code, wrong.stdout], [78, '']);
  assert.match(wrong.stderr, /SERVICE_PORT/);
  const checked = await check(t, { databasePath, environment: { SERVICE_PROT: '1', NODE_ENV: 'production' } });
  assert.equal(checked.code, 0);
  const settings = checked.found.get('settings')!;
  assert.match(settings, /^ok .*for production.*warn "SERVICE_PROT" .*warn SERVICE_PROXY_SECRET is not set/);
});

test('check: a missing database fails in plain words, and none is made', async (t) => {
  const { folder, databasePath } = openDesk(t);
  const checked = await check(t, { databasePath });
  assert.equal(checked.code, 1);
  assert.equal(
    checked.found.get('database'),
    `fail there is none at ${databasePath}: the service makes a new one when it starts, or SERVICE_DB is wrong`,
  );
  assert.deepEqual(readdirSync(folder), []);
  const nowhere = await check(t, { databasePath: join(folder, 'missing', 'pasted.db') });
  assert.equal(
    nowhere.found.get('folder'),
    `fail there is none at ${join(folder, 'missing')}: the service makes a new one when it starts, or SERVICE_DB is wrong`,
  );
  assert.deepEqual([nowhere.code, levelOf(nowhere, 'folder')], [1, 'fail']);
});

test('check: what is in the place of the database and no file fails, and a pipe is not opened', async (t) => {
  const { folder } = openDesk(t);
  const pipe = join(folder, 'pipe');
  assert.equal(run('mkfifo', [pipe], folder).status, 0);
  for (const databasePath of [folder, pipe]) {
    const { code, found } = await check(t, { databasePath });
    assert.deepEqual([code, found.get('database')], [1, `fail ${databasePath} is not a file: SERVICE_DB is wrong`]);
  }
});

test('check: a database of an older version, a newer one, a stranger, and none at all', async (t) => {
  const { folder } = openDesk(t);
  const path = (name: string): string => join(folder, name);
  makeOldest(path('oldest.db'));
  makeNewer(path('newer.db'));
  makeStranger(path('stranger.db'));
  writeFileSync(path('diary.txt'), 'Dear diary,\n'.repeat(100));
  writeFileSync(path('empty.db'), '');
  for (const name of readdirSync(folder)) chmodSync(path(name), 0o600);
  for (const [name, code, finding, pattern] of [
    ['oldest.db', 0, 'schema', /^warn 1; a start or command brings it to \d+: make a backup before$/],
    ['newer.db', 1, 'schema', /^fail the database is of a newer version/],
    ['stranger.db', 1, 'schema', /^fail the database is of another program/],
    ['empty.db', 1, 'schema', /^fail the database is empty/],
    ['diary.txt', 1, 'integrity', /^fail file is not a database/],
  ] as const) {
    const before = readFileSync(path(name));
    const checked = await check(t, { databasePath: path(name) });
    assert.equal(checked.code, code, name);
    assert.match(checked.found.get(finding)!, pattern, name);
    assert.deepEqual(readFileSync(path(name)), before, name);
  }
});

test('check: a damaged database, and one whose content is not whole', async (t) => {
  const { databasePath } = openDesk(t);
  await fill(databasePath, 1);
  const sound = readFileSync(databasePath);
  damage(databasePath);
  const damaged = await check(t, { databasePath });
  assert.deepEqual([damaged.code, levelOf(damaged, 'integrity')], [1, 'fail']);
  // SQLite gives all its findings in one row of many lines.
  const told = damaged.found.get('integrity')!.split('fail ').slice(1);
  assert.deepEqual([told.length, told.filter((line) => /[*;\n]/.test(line))], [5, []]);
  writeFileSync(databasePath, sound);
  const db = new DatabaseSync(databasePath);
  db.exec('DELETE FROM chunks WHERE position = 1');
  db.close();
  const halved = await check(t, { databasePath });
  assert.equal(halved.found.get('integrity'), 'fail 1 pastes without their whole content');
});

test('check: a table that SQLite cannot read at all is told as damage, by either depth', async (t) => {
  const { databasePath } = openDesk(t);
  await fill(databasePath, 1);
  const sound = readFileSync(databasePath);
  for (const table of ['pastes', 'usage', 'certificates']) {
    const root = Number(selectValue(databasePath, `SELECT rootpage FROM sqlite_schema WHERE name = '${table}'`));
    const damaged = Buffer.from(sound).fill(0xa5, (root - 1) * PAGE_BYTES, root * PAGE_BYTES);
    writeFileSync(databasePath, damaged);
    for (const words of [[], ['--full']]) {
      const { code, found } = await check(t, { databasePath, words });
      const expected = 'fail database disk image is malformed (SQLite 11)';
      assert.deepEqual([code, found.get('integrity')], [1, expected], table);
      assert.equal(found.get('schema'), 'fail cannot be trusted in a damaged database');
    }
    writeFileSync(databasePath, sound);
  }
});

test('check: pastes that were miscounted, which the limit of all storage goes by', async (t) => {
  const { databasePath } = openDesk(t);
  await fill(databasePath, 1);
  const sound = readFileSync(databasePath);
  for (const change of ['pastes = pastes - 1', 'bytes = bytes + 1']) {
    writeFileSync(databasePath, sound);
    const db = new DatabaseSync(databasePath);
    db.exec(`UPDATE usage SET ${change}`);
    db.close();
    const { code, found } = await check(t, { databasePath });
    const expected = 'fail 1 counts of pastes that are not those of the pastes there are';
    assert.deepEqual([code, found.get('integrity')], [1, expected], change);
  }
});

test('check: a table, an index or a trigger that has been dropped', async (t) => {
  const { databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const sound = readFileSync(databasePath);
  for (const part of ['table bans', 'table pastes', 'index pastes_by_expiry', 'trigger usage_of_new', 'table orphans']) {
    writeFileSync(databasePath, sound);
    const db = new DatabaseSync(databasePath);
    db.exec(`DROP ${part}`);
    db.close();
    const { code, found } = await check(t, { databasePath });
    assert.equal(code, 1, part);
    assert.match(found.get('integrity') ?? '', new RegExp(`^fail has no ${part} as it should be(fail|$)`));
    await assert.rejects(restoreDatabase({ path: `${databasePath}-new`, backup: databasePath, moment: 'now' }), {
      name: 'DatabaseRefusedError', message: new RegExp(`^the backup .* has no ${part} as it should be$`),
    });
    const backup = await pasted(['backup', `${databasePath}.copy`]);
    assert.equal(backup.code, 78, part);
    assert.ok(backup.stderr.endsWith(`has no ${part} as it should be\n`), backup.stderr);
  }
});

test('check: what a database of an older version does not have yet is no damage', (t) => {
  const { folder } = openDesk(t);
  for (let version = 1; version <= MIGRATIONS.length; version += 1) {
    const path = join(folder, `schema-${version}.db`);
    placeVector(version, path);
    using db = new DatabaseSync(path);
    assert.deepEqual([schemaVersionOf(db), damageOf(db, 'full')], [version, []]);
  }
});

test('check: a lock is no damage', async (t) => {
  const { databasePath } = openDesk(t);
  await fill(databasePath, 1);
  using db = new DatabaseSync(databasePath, { timeout: 0 });
  // In this mode a writer keeps readers out.
  db.exec('PRAGMA journal_mode = DELETE');
  assert.deepEqual(damageOf(db, 'full'), []);
  using writer = new DatabaseSync(databasePath);
  writer.exec('BEGIN EXCLUSIVE');
  assert.throws(() => damageOf(db, 'full'), { message: 'database is locked' });
});

test('check: a clock that is behind the newest paste by more than five minutes, or was never set', async (t) => {
  const { databasePath } = openDesk(t);
  await inStore(databasePath, async (store) => {
    await storePaste(store, Buffer.from('hello'), { createdAt: CREATED_AT + 300 });
  });
  assert.equal(levelOf(await check(t, { databasePath }), 'clock'), 'ok');
  const behind = await check(t, { databasePath, laterSeconds: -1 });
  assert.deepEqual([behind.code, levelOf(behind, 'clock')], [1, 'fail']);
  const unset = await check(t, { databasePath, laterSeconds: -31 * DAY_SECONDS });
  assert.match(unset.found.get('clock')!, /before this program was written$/);
});

test('check: the authority, its key, and its revocation list', async (t) => {
  const { databasePath, createAdmin, pasted } = openDesk(t);
  const { serial } = await createAdmin();
  await pasted(['pki', 'crl']);
  const name = 'certificate authority';
  const sound = await check(t, { databasePath });
  assert.deepEqual([sound.code, levelOf(sound, name), levelOf(sound, 'revocation list')], [0, 'ok', 'ok']);
  assert.match(sound.found.get('revocation list')!, /^ok good until \S+Z; a proxy has a copy of its own$/);
  assert.match(sound.found.get('authority key')!, /^ok opens with SERVICE_PKI_CA_PASSWORD/);

  const without = await check(t, { databasePath, environment: { SERVICE_PKI_CA_PASSWORD: '' } });
  assert.deepEqual([without.code, levelOf(without, 'authority key')], [0, 'warn']);
  const wrong = await check(t, { databasePath, environment: { SERVICE_PKI_CA_PASSWORD: 'wrong-canary' } });
  assert.deepEqual([wrong.code, levelOf(wrong, 'authority key')], [1, 'fail']);
  assert.ok(!wrong.found.get('authority key')!.includes('wrong-canary'));

  // If a clock that was ahead made the authority, nobody accepts what it issues. Its certificate begins 5 min early.
  const early = async (seconds: number) => (await check(t, { databasePath, laterSeconds: -seconds })).found.get(name);
  assert.match((await early(5 * 60))!, /^ok /);
  assert.match((await early(5 * 60 + 1))!, /^fail is not valid before .*: pasted pki ca renew$/);
  const before = await check(t, { databasePath, laterSeconds: -5 * 60 });
  assert.deepEqual([levelOf(before, 'revocation list'), before.found.get('certificates')], ['ok', undefined]);
  const { found } = await check(t, { databasePath, laterSeconds: -5 * 60 - 1 });
  assert.match(found.get('revocation list')!, /^warn begins at \S+Z: .*pasted pki crl$/);
  assert.match(found.get('certificates')!, /^warn not all are valid before \S+Z: issue anew \(pasted pki issue\), and admin grant$/);

  const environment = { SERVICE_PKI_CA_PASSWORD: '' };
  for (const [days, level, crlLevel] of [
    [6, 'ok', 'ok'], [7, 'ok', 'warn'], [3559, 'ok', 'warn'], [3560, 'warn', 'warn'], [3619, 'warn', 'warn'],
    [3620, 'fail', 'warn'], [3650, 'fail', 'warn'],
  ] as const) {
    const later = await check(t, { databasePath, environment, laterSeconds: days * DAY_SECONDS });
    assert.deepEqual([levelOf(later, name), levelOf(later, 'revocation list')], [level, crlLevel], `${days} days`);
  }
  assert.equal((await pasted(['pki', 'revoke', serial])).code, 0);
  const revoked = await check(t, { databasePath, laterSeconds: -5 * 60 - 1 });
  assert.equal(revoked.found.get('certificates'), undefined, 'none is left to begin too late');
});

test('check: what is doubtful where others can connect, and in production; not on loopback', async (t) => {
  const { databasePath, createAdmin } = openDesk(t);
  await inStore(databasePath, async () => {});
  const open = { SERVICE_HOST: '0.0.0.0' };
  for (const [environment, level] of [[{}, undefined], [open, 'warn'], [{ NODE_ENV: 'production' }, 'warn']] as const) {
    const checked = await check(t, { databasePath, environment });
    assert.deepEqual([checked.code, levelOf(checked, 'admin')], [0, level]);
    const settings = checked.found.get('settings')!;
    assert.equal(settings.includes('SERVICE_PROXY_SECRET is not set'), level === 'warn', settings);
  }
  const noPassword = { ...open, SERVICE_PKI_ENABLED: '1', SERVICE_PKI_CA_PASSWORD: '' };
  const without = await check(t, { databasePath, environment: noPassword });
  assert.match(without.found.get('settings')!, /SERVICE_PKI_ENABLED is on without SERVICE_PKI_CA_PASSWORD/);
  assert.equal(levelOf(without, 'admin'), undefined);
  await createAdmin();
  assert.equal(levelOf(await check(t, { databasePath, environment: open }), 'admin'), undefined);
});

test('check: the certificate for TLS, its key and its days', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  await fill(databasePath, 1);
  const [certificate, key] = [join(folder, 'server.crt'), join(folder, 'server.key')];
  const made = await pasted([
    'tls', 'self-signed', '--host', 'localhost', '--days', '30', '--out-cert', certificate, '--out-key', key,
  ]);
  assert.equal(made.code, 0, made.stderr);
  const environment = { SERVICE_TLS_CERT: certificate, SERVICE_TLS_KEY: key };
  const name = 'TLS certificate';
  for (const [days, level] of [[0, 'ok'], [15, 'ok'], [17, 'warn'], [29, 'warn'], [31, 'fail']] as const) {
    const checked = await check(t, { databasePath, environment, laterSeconds: days * DAY_SECONDS });
    assert.equal(levelOf(checked, name), level, `${days} days`);
  }
  const early = await check(t, { databasePath, environment, laterSeconds: -DAY_SECONDS });
  assert.match(early.found.get(name)!, /^fail is not valid yet: valid from 2026-01-31T11:55:00Z to /);
  writeFileSync(key, 'no key');
  const wrong = await check(t, { databasePath, environment });
  assert.deepEqual([wrong.code, levelOf(wrong, name)], [1, 'fail']);
  rmSync(certificate);
  assert.match((await check(t, { databasePath, environment })).found.get(name)!, /^fail SERVICE_TLS_CERT: .*ENOENT/);
  assert.equal((await check(t, { databasePath })).found.has(name), false);
});

test('check: a quota that has no room for another paste', async (t) => {
  const { databasePath } = openDesk(t);
  await fill(databasePath, 1);
  using db = new DatabaseSync(databasePath, { readOnly: true });
  const used = countedBytes(prepareUsage(db)());
  const quota = async (size: string) => (
    await check(t, { databasePath, environment: { SERVICE_MAX_STORAGE: size, SERVICE_MAX_ANON: '1000' } })
  ).found.get('quota');
  assert.equal(await quota('0'), undefined);
  assert.match((await quota(String(used + 1000)))!, /^ok .* of SERVICE_MAX_STORAGE are used$/);
  assert.match((await quota(String(used + 999)))!, /^warn .* are used: new pastes, or the larger of them, are refused$/);
  assert.match((await quota('20'))!, /^warn .* of the 20 bytes of SERVICE_MAX_STORAGE are used: /);
});

test('check, restore: what runs with each change, or says what a row is, is that of this program, word for word', async (t) => {
  const { folder, databasePath } = openDesk(t);
  const told = "INSERT INTO audit (time, event, outcome, details) VALUES (1, 'x', 'success', '{}')";
  const another = (name: string): string => `CREATE ${name} AFTER INSERT ON pastes BEGIN ${told}; END`;
  const rename = (type: string): string => `
    PRAGMA writable_schema = ON; UPDATE sqlite_schema SET type = '${type}' WHERE name = 'extra'`;
  for (const [changes, said] of [
    [another('TRIGGER extra'), 'has a trigger that is none of this program\'s'],
    [`${another('TRIGGER extra')}; ${rename('TRIGGER')}`, 'has a trigger that is none of this program\'s'],
    [`DROP TRIGGER usage_of_new; ${another('TRIGGER usage_of_new')}`, 'has no trigger usage_of_new as it should be'],
    [`PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'expires_at', 'expires_it')
      WHERE name = 'invitations'`, 'has no table invitations as it should be'],
  ] as const) {
    rmSync(databasePath, { force: true });
    await fill(databasePath, 1);
    using db = new DatabaseSync(databasePath, { defensive: false });
    db.exec(changes);
    db.close();
    const { code, found } = await check(t, { databasePath });
    assert.equal(code, 1);
    assert.equal(found.get('integrity'), `fail ${said}`);
    const restoring = restoreDatabase({ path: join(folder, 'other.db'), backup: databasePath, moment: '' });
    await assert.rejects(restoring, (error: Error) => error.message.includes(said), said);
    assert.deepEqual(readdirSync(folder).filter((name) => name.startsWith('other.db')), []);
  }
  // An operator may add an index or a table, since neither runs anything.
  rmSync(databasePath, { force: true });
  await fill(databasePath, 1);
  using db = new DatabaseSync(databasePath);
  db.exec('CREATE INDEX own ON pastes (created_at); CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)');
  db.close();
  assert.equal((await check(t, { databasePath })).code, 0);
});

test('check: nodes whose rqlite is of a version that damages databases, by the SQLite in it', async (t) => {
  const { config: { databasePath }, behind, db } = await startNode(t);
  db.exec('CREATE TABLE claims (id TEXT)');
  for (const [sqlite, isOld] of [['3.45.3', true], ['3.46.0', false], ['3.100.0', false], ['4.0.0', false]] as const) {
    behind.choose = ({ body }) => (
      body.includes('sqlite_version()') ? saying({ values: [[CREATED_AT, sqlite]] }) : undefined
    );
    const { stdout } = await openDesk(t).pasted(['check'], { SERVICE_DB: databasePath });
    assert.match(stdout, /^ok nodes: one of them leads, /m, sqlite);
    assert.equal(/^warn nodes: rqlite before 8\.30\.5 damages databases/m.test(stdout), isOld, sqlite);
  }
});
