// visitStore: a second process beside the server's store, and alone. The commands that visit are in commands-admin,
// commands-pki and api/commands-pki.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { gunzipSync } from 'node:zlib';
import { lockDatabase } from '../../src/store/database.ts';
import { openStore } from '../../src/store/open.ts';
import { MIGRATIONS } from '../../src/store/schema.ts';
import {
  type AuditEvent, CHUNK_BYTES, DatabaseInUseError, DatabaseRefusedError, type Issuance, StoreError,
} from '../../src/store/store.ts';
import { examineDatabase, tailAudit, type VisitedStore, visitStore } from '../../src/store/visit.ts';
import { movableClock } from '../support/clock.ts';
import {
  CREATED_AT, EXPIRES_AT, openTestStore, patternedBytes, selectValue, storePaste, strayChunks,
  temporaryFolder, uploadContent,
} from '../support/store.ts';
import { removalsDone } from '../support/stores.ts';

const PARTS = { clock: movableClock(), log: () => {} };

async function visit(t: TestContext, path: string): Promise<VisitedStore> {
  const visited = await visitStore({ ...PARTS, path, ifMissing: 'refuse' });
  t.after(() => visited.close());
  return visited;
}

function event(name: string): AuditEvent {
  return { time: CREATED_AT, event: name, outcome: 'success', clientId: null, clientIp: null, details: {} };
}

function issuance(terms: Pick<Issuance, 'onlyFirst'> = {}): Issuance {
  const certificate = {
    serial: randomBytes(16).toString('hex'),
    commonName: 'alice',
    fingerprint: randomBytes(20).toString('hex'),
    createdAt: CREATED_AT,
    expiresAt: EXPIRES_AT,
    issuedTo: null,
    publicKeySha256: randomBytes(32),
  };
  return { certificate, spend: null, issued: event('cert_issued'), granted: event('admin_granted'), ...terms };
}

test('visitStore: beside a server, each sees at once what the other has written', async (t) => {
  const { store, path } = await openTestStore(t);
  const visited = await visit(t, path);
  const { certificate, ...rest } = issuance();
  assert.deepEqual(await store.run('issueCertificate', { certificate, ...rest }), {
    refused: null, isAdmin: true, audited: [event('cert_issued'), event('admin_granted')],
  });
  assert.equal((await visited.read.findCertificateBySerial(certificate.serial))?.isAdmin, true);

  // The server remembers the certificate before the visitor changes it.
  assert.equal((await store.read.findCertificate(certificate.fingerprint))?.revokedAt, null);
  const { serial } = certificate;
  const revocation = { serial, nowSeconds: CREATED_AT, reason: null, revoked: event('cert_revoked') };
  assert.deepEqual(await visited.run('revokeCertificate', revocation), { refused: null, audited: [event('cert_revoked')] });
  assert.equal((await store.read.findCertificate(certificate.fingerprint))?.revokedAt, CREATED_AT);
  const filter = { event: 'cert_revoked', outcome: null, clientId: null, after: 0, before: EXPIRES_AT };
  assert.equal((await visited.read.listAudit(filter, { limit: 1, offset: 0 })).total, 1);
});

test('visitStore: beside a server, both write at the same moment and nothing is lost', async (t) => {
  const { store, path } = await openTestStore(t);
  const visited = await visit(t, path);
  const outcomes = await Promise.all(Array.from({ length: 40 }, (_, index) => {
    return (index % 2 === 0 ? store : visited).run('issueCertificate', issuance());
  }));
  assert.equal(outcomes.filter((outcome) => outcome.refused === null).length, 40);
  assert.equal(outcomes.filter((outcome) => outcome.refused === null && outcome.isAdmin).length, 1);
  assert.equal((await store.read.listCertificates()).length, 40);
});

test('visitStore: beside a server, leaves an upload under way alone', async (t) => {
  const { store, path } = await openTestStore(t);
  await uploadContent(store, patternedBytes(1000));
  await storePaste(store, patternedBytes(10));
  const visited = await visit(t, path);
  assert.deepEqual(await visited.read.usage(), { pastes: 1, bytes: 10, databaseBytes: 0 });
  await visited.close();
  assert.equal(strayChunks(path), 1);
});

test('visitStore: where nobody serves, makes the database, and a server can open it meanwhile', async (t) => {
  const path = join(temporaryFolder(t), 'state', 'pasted.db');
  const visited = await visitStore({ ...PARTS, path, ifMissing: 'create' });
  assert.equal(selectValue(path, 'PRAGMA user_version'), MIGRATIONS.length);
  const store = await openStore({ ...PARTS, path });
  assert.deepEqual(await visited.run('issueCertificate', issuance()), {
    refused: null, isAdmin: true, audited: [event('cert_issued'), event('admin_granted')],
  });
  await visited.close();
  assert.equal((await store.read.listCertificates()).length, 1);
  await store.close();
});

test('visitStore: a path without a database is refused, and nothing is made', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'pasted.db');
  await assert.rejects(visit(t, path), (error: unknown) => {
    return error instanceof DatabaseRefusedError && error.message.includes(path);
  });
  assert.deepEqual(readdirSync(folder), []);
});

test('visitStore: a file that is no database is refused and stays as it was', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'diary.txt');
  writeFileSync(path, 'Dear diary,\n');
  await assert.rejects(visit(t, path), { name: 'DatabaseRefusedError' });
  assert.equal(readFileSync(path, 'utf8'), 'Dear diary,\n');
  assert.deepEqual(readdirSync(folder), ['diary.txt']);
});

test('visitStore: beside a server of another version, refuses and says which is older', async (t) => {
  const { path } = await openTestStore(t);
  const other = new DatabaseSync(path, { timeout: 5000 });
  t.after(() => other.close());
  other.exec(`PRAGMA user_version = ${MIGRATIONS.length + 1}`);
  await assert.rejects(visit(t, path), (error: unknown) => {
    return error instanceof DatabaseRefusedError && /newer version/.test(error.message);
  });
  other.exec(`PRAGMA user_version = ${MIGRATIONS.length - 1}`);
  await assert.rejects(visit(t, path), (error: unknown) => {
    return error instanceof DatabaseInUseError && /older version/.test(error.message);
  });
  assert.equal(selectValue(path, 'PRAGMA user_version'), MIGRATIONS.length - 1);
});

test('visitStore: beside a server whose database has lost a table, says which one', async (t) => {
  const { path } = await openTestStore(t);
  const other = new DatabaseSync(path, { timeout: 5000 });
  other.exec('DROP TABLE invitations');
  other.close();
  await assert.rejects(visit(t, path), { message: /no such table: (?:main\.)?invitations/ });
});

test('visitStore: beside a server that is still starting, says so and leaves making the database to it', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'pasted.db');
  const starting = lockDatabase(path);
  t.after(() => starting.release());
  const visiting = () => visitStore({ ...PARTS, path, ifMissing: 'create' });
  const isToldToWait = (error: unknown) => error instanceof DatabaseInUseError && /still starting/.test(error.message);
  await assert.rejects(visiting(), isToldToWait, 'before there is a file');
  assert.deepEqual(readdirSync(folder), ['pasted.db-lock']);
  writeFileSync(path, '');
  await assert.rejects(visiting(), isToldToWait, 'before there is anything in it');
  assert.equal(statSync(path).size, 0);
});

test('visitStore: what is in the place of the database or its lock, and is none, is a StoreError or a refusal', async (t) => {
  const folder = temporaryFolder(t);
  const isUnavailable = (error: unknown) => error instanceof StoreError && error.failure === 'unavailable';
  const folderAsLock = join(folder, 'locked.db');
  mkdirSync(`${folderAsLock}-lock`);
  await assert.rejects(visitStore({ ...PARTS, path: folderAsLock, ifMissing: 'create' }), isUnavailable);
  assert.equal(existsSync(folderAsLock), false, 'nothing is made where nobody can be kept out');

  const folderAsDatabase = join(folder, 'folder.db');
  mkdirSync(folderAsDatabase);
  await assert.rejects(visit(t, folderAsDatabase), (error: unknown) => {
    return error instanceof DatabaseRefusedError && error.message.includes(folderAsDatabase);
  });
  lockDatabase(folderAsDatabase, 0).release();

  const diary = join(folder, 'diary.txt');
  writeFileSync(diary, 'Dear diary,\n'.repeat(100));
  const lock = lockDatabase(diary);
  t.after(() => lock.release());
  await assert.rejects(visit(t, diary), isUnavailable, 'beside a server, which could not have it open either');
  assert.equal(readFileSync(diary, 'utf8'), 'Dear diary,\n'.repeat(100));
});

test('visitStore, openStore: a database that vanishes before it is read leaves no lock and no thread', async (t) => {
  const open = {
    visited: (path: string) => visitStore({ ...PARTS, path, ifMissing: 'create' }),
    served: (path: string) => openStore({ ...PARTS, path }),
  };
  for (const [name, opening] of Object.entries(open)) {
    const path = join(temporaryFolder(t), 'pasted.db');
    const threads: Worker[] = [];
    // At this message the writer has opened the database, and the reader opens it next.
    const intervene = (thread: Worker) => threads.push(thread.once('message', () => rmSync(path)));
    process.once('worker', intervene);
    t.after(() => process.off('worker', intervene));
    await assert.rejects(opening(path), { name: 'StoreError', failure: 'unavailable' }, name);
    assert.deepEqual(threads.map(({ threadId }) => threadId), [-1], name);
    lockDatabase(path, 0).release();
  }
});

test('takeDown: beside a server, it forgets what it had in memory, and its chunks go', async (t) => {
  const { store, path, clock } = await openTestStore(t);
  const visited = await visit(t, path);
  const [small, large, kept] = [
    await storePaste(store, patternedBytes(10)), await storePaste(store, patternedBytes(CHUNK_BYTES)),
    await storePaste(store, patternedBytes(20)),
  ];
  const isFound = async ({ id }: { id: string }) => (await store.pastes.find(id, CREATED_AT)) !== undefined;
  for (const paste of [small, large, kept]) assert.equal(await isFound(paste), true, 'and is in memory from now on');
  const takeDown = ({ id }: { id: string }, sha256: string | null = null) => (
    visited.run('takeDown', { id, content: sha256, removed: event('paste_deleted') })
  );
  assert.equal(await takeDown(small, 'f'.repeat(64)), false, 'it has other content by now');
  const noted = () => selectValue(path, 'SELECT count FROM removals');
  assert.equal(noted(), 0);
  assert.equal(await isFound(small), true);
  assert.deepEqual([await takeDown(small), await takeDown(large), await takeDown(small)], [true, true, false]);
  assert.equal(noted(), 2);
  clock.advance(1);
  assert.deepEqual([await isFound(small), await isFound(large), await isFound(kept)], [false, false, true]);
  await removalsDone(store);
  assert.equal(strayChunks(path), 0);
  assert.equal(selectValue(path, "SELECT count(*) FROM audit WHERE event = 'paste_deleted'"), 2);
});

test('tailAudit, lockDatabase: an error of the program is no storage that is away, and stays what it is', async (t) => {
  const { path } = await openTestStore(t);
  const bug = new RangeError('a bug');
  const failing = (): never => {
    throw bug;
  };
  const filter = { event: null, outcome: null, clientId: null, after: 0, before: CREATED_AT };
  const look = tailAudit(path, filter, true);
  const reading = t.mock.method(DatabaseSync.prototype, 'prepare', failing);
  assert.throws(look, bug);
  reading.mock.restore();
  const locking = t.mock.method(DatabaseSync.prototype, 'exec', failing);
  assert.throws(() => lockDatabase(`${path}-other`), bug);
  locking.mock.restore();
  lockDatabase(`${path}-other`, 0).release();
});

test('examineDatabase: what somebody changed while it was looked at is seen by a second look', async (t) => {
  const { path, store } = await openTestStore(t);
  await store.close();
  const newer = MIGRATIONS.length + 1;
  const reading = t.mock.method(DatabaseSync.prototype, 'prepare', function (this: DatabaseSync, sql: string) {
    reading.mock.restore();
    const other = new DatabaseSync(path);
    t.after(() => other.close());
    other.exec(`PRAGMA user_version = ${newer}`);
    return this.prepare(sql);
  });
  assert.equal(examineDatabase(path).schemaVersion, newer);
});

test('examineDatabase: a directory in the place of a database cannot be opened, which is no damage', (t) => {
  const folder = temporaryFolder(t);
  assert.throws(() => examineDatabase(folder), { name: 'StoreError', failure: 'unavailable' });
  assert.deepEqual(readdirSync(folder), []);
});

test('examineDatabase: a quick look skips what only a full one compares, and what is no database has no version', async (t) => {
  const { path, store, folder } = await openTestStore(t);
  const owner = 'a'.repeat(40);
  for (const size of [1, 2, 3]) await storePaste(store, patternedBytes(size), { owner });
  await store.close();
  const db = new DatabaseSync(path, { defensive: false });
  // The index on owners misses a change, since it is not in the schema for a moment.
  db.exec(`
    PRAGMA writable_schema = ON;
    CREATE TABLE kept AS SELECT * FROM sqlite_schema WHERE name = 'pastes_by_owner';
    DELETE FROM sqlite_schema WHERE name = 'pastes_by_owner'`);
  db.close();
  const without = new DatabaseSync(path, { defensive: false });
  without.exec(`
    UPDATE pastes SET mime_type = 'text/html' WHERE size = 2;
    PRAGMA writable_schema = ON;
    INSERT INTO sqlite_schema SELECT * FROM kept;
    PRAGMA writable_schema = RESET;
    DROP TABLE kept`);
  without.close();
  const full = () => createHash('sha256');
  assert.deepEqual(examineDatabase(path).damage, []);
  assert.match(String(examineDatabase(path, full).damage), /pastes_by_owner/);
  const garbage = join(folder, 'garbage');
  writeFileSync(garbage, patternedBytes(8192));
  const { damage, ...found } = examineDatabase(garbage);
  assert.deepEqual(found, { whyRefused: undefined, schemaVersion: 0, contents: undefined });
  assert.match(String(damage), /not a database/);
});

test('examineDatabase: of every version whose tables have counts, a wrong one is damage', (t) => {
  const folder = temporaryFolder(t);
  for (let version = 1; version <= MIGRATIONS.length; version += 1) {
    const path = join(folder, `${version}.db`);
    writeFileSync(path, gunzipSync(readFileSync(new URL(`../vectors/schema-${version}.db.gz`, import.meta.url))));
    assert.deepEqual(examineDatabase(path).damage, [], `${version}`);
    if (version === 1) continue;
    using db = new DatabaseSync(path);
    db.exec('UPDATE usage SET bytes = bytes + 1');
    assert.equal(examineDatabase(path).damage.length, 1, `${version}`);
  }
});

test('findContent, countPastes: from the first row to the last', async (t) => {
  const { store, path } = await openTestStore(t);
  const pastes = [];
  for (let count = 0; count < 3; count += 1) {
    pastes.push(await storePaste(store, patternedBytes(10), { burnAfterRead: count === 0, passwordHash: count < 2 ? 'x' : null }));
  }
  await storePaste(store, patternedBytes(11));
  const visited = await visit(t, path);
  const found = [];
  for await (const ids of visited.findContent(pastes[0]!.sha256)) found.push(...ids);
  assert.deepEqual(found, pastes.map(({ id }) => id));
  const { burnAfterRead, passwordProtected } = await visited.read.countPastes(CREATED_AT);
  assert.deepEqual([burnAfterRead, passwordProtected], [1, 2]);
});

test('tailAudit: begins with the first entry or behind the last, and so behind the last of another database', async (t) => {
  const { store, path, folder } = await openTestStore(t);
  await store.run('recordAudit', event('first'));
  await store.run('recordAudit', event('second'));
  const filter = { event: null, outcome: null, clientId: null, after: 0, before: EXPIRES_AT };
  const [whole, rest] = [tailAudit(path, filter, true), tailAudit(path, filter, false)];
  const look = async (tail: typeof whole) => {
    const { entries, state } = await tail();
    return [state, ...entries.map((entry) => entry.event)];
  };
  assert.deepEqual([await look(whole), await look(rest)], [['same', 'first', 'second'], ['same']]);
  const other = join(folder, 'other.db');
  const replacing = await openStore({ ...PARTS, path: other });
  for (const name of ['a', 'b', 'c', 'd']) await replacing.run('recordAudit', event(name));
  await replacing.close();
  await store.close();
  renameSync(other, path);
  assert.deepEqual([await look(whole), await look(rest)], [['replaced'], ['replaced']]);
  const again = await openStore({ ...PARTS, path });
  await again.run('recordAudit', event('e'));
  assert.deepEqual([await look(whole), await look(rest)], [['same', 'e'], ['same', 'e']]);
  await again.close();
});

test('issueCertificate: with onlyFirst, records the first certificate ever and nothing after it', async (t) => {
  const { store, path } = await openTestStore(t);
  const issueFirst = () => store.run('issueCertificate', issuance({ onlyFirst: true }));
  const outcomes = await Promise.all(Array.from({ length: 8 }, issueFirst));
  assert.deepEqual(outcomes.map(({ refused }) => `${refused}`).sort(), [...Array<string>(7).fill('notFirst'), 'null']);
  assert.equal(selectValue(path, 'SELECT count(*) FROM certificates'), 1);
  assert.equal(selectValue(path, 'SELECT count(*) FROM audit'), 2);
  assert.deepEqual(await store.run('issueCertificate', issuance()), {
    refused: null, isAdmin: false, audited: [event('cert_issued')],
  });
});
