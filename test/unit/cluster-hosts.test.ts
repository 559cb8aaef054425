// What a host does beside other hosts on the same nodes, from time to time or for a command: leases, upkeep, following
// what the others wrote, and copies. The node is SQLite in this process.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Nodes } from '../../src/cluster/nodes.ts';
import type { LogEntry } from '../../src/core/events.ts';
import { openClusterStore, requireSameTime } from '../../src/cluster/open.ts';
import { copyCluster, examineNodes, restoreCluster, tailCluster } from '../../src/cluster/visit.ts';
import { storeTasks } from '../../src/pastes/upkeep.ts';
import { MIGRATIONS } from '../../src/store/schema.ts';
import { type AuditFilter, CHUNK_BYTES, StoreError } from '../../src/store/store.ts';
import { TAIL_ENTRIES } from '../../src/store/visit.ts';
import { RUNNING_CLOCK } from '../support/app.ts';
import { fill } from '../support/databases.ts';
import { type Asked, type Fault, startImitatedNode } from '../support/faulty-nodes.ts';
import { EVENT, isUnavailable, isWrite, once, openStore, saying, startNode } from '../support/imitated-store.ts';
import { CREATED_AT, inlinePaste, newId, NO_TERMS, patternedBytes, temporaryFolder } from '../support/store.ts';

test('cluster: a lease that cannot be given up ends by itself, and ends no process', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { store, behind, db, logged } = await openStore(t);
  const [one, other] = [store.contents.upload(newId()), store.contents.upload(newId())];
  await one.write(patternedBytes(100));
  await other.write(patternedBytes(100));
  const isLetting = ({ body }: Asked): boolean => body.includes('DELETE FROM leases WHERE name');
  const body = '{"results":[{"error":"interrupted"}]}';
  const refused = { kind: 'replaced', status: 200, body, isCarriedOut: false } as const;
  behind.choose = (asked) => (isLetting(asked) ? refused : undefined);
  await one.discard();
  assert.deepEqual(logged.map(({ event }) => event), ['opened', 'lease not written']);

  db.exec('UPDATE leases SET until = 7');
  t.mock.timers.tick(15_000);
  await store.run('recordAudit', EVENT);
  const until = ({ contentId }: { contentId: string }) => (
    Number(db.prepare('SELECT until FROM leases WHERE name = ?').get(contentId)?.['until'])
  );
  assert.equal(until(one), 7);
  assert.ok(until(other) > 7);
  db.exec('DELETE FROM leases');
  t.mock.timers.tick(15_000);
  await store.run('recordAudit', EVENT);
  assert.ok(until(other) > 7, 'held, though another host took it for given up');
});

test('cluster: a lease that could not be renewed is renewed the next time, and ends no process', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { store, behind, db, logged } = await openStore(t);
  const { contentId, write } = store.contents.upload(newId());
  await write(patternedBytes(100));
  db.exec('UPDATE leases SET until = 7');
  const until = () => Number(db.prepare('SELECT until FROM leases WHERE name = ?').get(contentId)?.['until']);
  behind.choose = (asked) => (isWrite(asked) ? saying({ error: 'disk I/O error' }) : undefined);
  t.mock.timers.tick(15_000);
  // This command comes after the renewal.
  await assert.rejects(store.run('recordAudit', EVENT), StoreError);
  const { event, level, details } = logged[1] ?? assert.fail('nothing is logged');
  assert.deepEqual([event, level], ['lease not written', 'warning']);
  assert.match(String(details?.['reason']), /disk I\/O error$/);
  assert.equal(until(), 7);

  behind.choose = () => undefined;
  t.mock.timers.tick(15_000);
  await store.run('recordAudit', EVENT);
  assert.ok(until() > 7);
});

test('cluster: a clock is too far off when no slow answer can be the reason', async (t) => {
  const { config, behind } = await startNode(t);
  const nodes = new Nodes(config, RUNNING_CLOCK);
  t.after(() => nodes[Symbol.dispose]());
  behind.choose = () => ({ kind: 'delayed', ms: 500 });
  await requireSameTime(nodes, RUNNING_CLOCK, 0.1);
  const ahead = (seconds: number) => ({ ...RUNNING_CLOCK, unixMs: () => RUNNING_CLOCK.unixMs() + seconds * 1000 });
  await assert.rejects(requireSameTime(nodes, ahead(60), 2), /clock is (59\.\d|60\.0) s ahead of the nodes/);
  await assert.rejects(requireSameTime(nodes, ahead(-60), 2), /clock is (59\.\d|60\.0) s behind the nodes/);
  behind.choose = () => undefined;
  await requireSameTime(nodes, ahead(1.5));
  await assert.rejects(requireSameTime(nodes, ahead(-2.5)), /clock is 2\.\d s behind the nodes/, 'by more than two seconds');
});

test('cluster: a host whose clock goes wrong removes nothing, and says so', async (t) => {
  const { stores, config, count } = await startNode(t);
  let aheadMs = 0;
  const clock = { ...RUNNING_CLOCK, unixMs: () => RUNNING_CLOCK.unixMs() + aheadMs };
  const store = await openClusterStore({ config, clock, log: () => {}, newId });
  stores.push(store);
  const expiresAt = Math.floor(clock.unixMs() / 1000) + 3600;
  await store.pastes.create(inlinePaste(patternedBytes(50), { expiresAt }), NO_TERMS);
  aheadMs = 7_200_000;
  const nowSeconds = Math.floor(clock.unixMs() / 1000);
  await assert.rejects(store.pastes.removeExpired(nowSeconds, 10), /clock is \d+\.\d s ahead of the nodes/);
  await assert.rejects(store.upkeep.truncateWal(), /clock is/);
  assert.deepEqual([await store.healthy(), count('pastes')], [false, 1]);
  aheadMs = 0;
  assert.deepEqual([await store.healthy(), await store.pastes.removeExpired(expiresAt, 10)], [true, 1]);
});

test('cluster: one host cleans up, until it has not for two minutes; the others make room, and have nothing else to do', async (t) => {
  const { stores, store, config, db, count } = await openStore(t);
  const other = await openClusterStore({ config, clock: RUNNING_CLOCK, log: () => {}, newId });
  stores.push(other);
  const [now, later] = [CREATED_AT, CREATED_AT + 7200];
  const add = async () => {
    const spend = { nonce: newId(), expiresAt: now, spendableUntil: Infinity };
    const duplicates = { max: 10, windowSeconds: 60 };
    const paste = inlinePaste(patternedBytes(50));
    assert.deepEqual(await store.pastes.create(paste, { ...NO_TERMS, spend, duplicates }), { refused: null });
    await store.run('recordAudit', EVENT);
    db.exec("INSERT INTO leases (name, host, until, promised) VALUES ('gone', 'gone', 1, 0)");
  };
  const removedBy = async ({ pastes, run, upkeep }: typeof store) => {
    const step = { untilSeconds: later, limit: 10 };
    const removed = [
      await pastes.removeExpired(later, 10), await run('removeOldSubmissions', step),
      await run('removeExpiredChallenges', step), await run('removeOldAudit', step),
    ];
    assert.deepEqual(await run('removeExpiredCertificates', { untilSeconds: later, after: null, limit: 10 }), { removed: 0, last: null });
    assert.equal(await upkeep.truncateWal(), true);
    return [...removed, db.prepare("SELECT count(*) AS rows FROM leases WHERE name = 'gone'").get()?.['rows']];
  };
  await add();
  assert.deepEqual(await removedBy(store), [1, 1, 1, 1, 0]);
  await add();
  assert.deepEqual(await removedBy(other), [1, 0, 0, 0, 1]);
  db.exec("UPDATE leases SET until = 2 WHERE name = 'cleanup'");
  assert.deepEqual(await removedBy(other), [0, 1, 1, 1, 0]);
  assert.deepEqual(await removedBy(store), [0, 0, 0, 0, 0]);
  assert.equal(count('pastes'), 0);
});

test('cluster: a host cleans up though each answer of the nodes takes a second', async (t) => {
  const { config } = await startNode(t);
  let unixMs = Date.now();
  const clock = { ...RUNNING_CLOCK, unixMs: () => (unixMs += 1000) };
  const store = await openClusterStore({ config, clock, log: () => {}, newId, maxSkewSeconds: 1_000_000 });
  const late = new Promise<string>((resolve) => void setTimeout(resolve, 5000, 'it goes on for ever').unref());
  assert.equal(await Promise.race([store.upkeep.truncateWal(), late]), true);
  await store.close();
});

test('cluster: a host that stops gives up all that it held, and the next one cleans up at once', async (t) => {
  const { stores, store, config, db } = await openStore(t);
  const upload = store.contents.upload(newId());
  await upload.write(patternedBytes(100));
  await store.upkeep.truncateWal();
  const leases = () => db.prepare('SELECT name, host FROM leases').all() as { name: string; host: string }[];
  const nowSeconds = Date.now() / 1000;
  const left = (name: string) => Number(db.prepare('SELECT until FROM leases WHERE name = ?').get(name)?.['until']) - nowSeconds;
  assert.ok(left(upload.contentId) > 50 && left(upload.contentId) <= 61, 'what is held is for a minute');
  assert.ok(left('cleanup') > 110 && left('cleanup') <= 121, 'for two turns of cleanup');
  const [{ host } = { host: '' }] = leases();
  await store.close();
  assert.deepEqual(leases(), []);
  const next = await openClusterStore({ config, clock: RUNNING_CLOCK, log: () => {}, newId });
  stores.push(next);
  await next.upkeep.truncateWal();
  assert.deepEqual(leases().map((lease) => [lease.name, lease.host === host]), [['cleanup', false], ['serving', false]]);
});

test('cluster: what a command answered is kept for ten minutes, for who did not hear it, and no longer', async (t) => {
  const { store, db } = await openStore(t);
  const nowSeconds = Math.floor(Date.now() / 1000);
  const add = db.prepare('INSERT INTO claims (id, at, answer) VALUES (:id, :at, :answer)');
  for (const age of [590, 610]) add.run({ id: `aged ${age}`, at: nowSeconds - age, answer: 'null' });
  assert.equal(await store.upkeep.truncateWal(), true);
  const aged = db.prepare("SELECT id FROM claims WHERE id LIKE 'aged%'").all().map(({ id }) => id);
  assert.deepEqual(aged, ['aged 590']);
});

test('cluster: room that one host has promised to an upload is no other host\'s to give', async (t) => {
  const { stores, store, config } = await openStore(t);
  const other = await openClusterStore({ config, clock: RUNNING_CLOCK, log: () => {}, newId });
  stores.push(other);
  const quota = { maxStoredBytes: 6 * CHUNK_BYTES, declaredBytes: 4 * CHUNK_BYTES };
  const uploads = Array.from({ length: 8 }, (_, index) => (index % 2 === 0 ? store : other).contents.upload(newId(), quota));
  const begun = await Promise.allSettled(uploads.map(({ write }) => write(patternedBytes(CHUNK_BYTES))));
  const outcomes = begun.map((one) => (one.status === 'fulfilled' ? 'taken' : (one.reason as StoreError).failure));
  assert.deepEqual(outcomes.sort(), [...Array.from({ length: 7 }, () => 'full'), 'taken']);
});

test('cluster: of a disk of its own a host has nothing to tell or to free, and each task of its upkeep ends', async (t) => {
  const { store, config, behind } = await openStore(t);
  const asked: string[] = [];
  behind.choose = ({ path }) => void asked.push(path);
  assert.equal(store.hasRoomFor(Number.MAX_SAFE_INTEGER), true, 'the quota of the nodes decides');
  assert.deepEqual(store.upkeep.fileBytes(), { database: 0, wal: 0 });
  assert.equal(await store.upkeep.restoreBallast(), true);
  const tasks = storeTasks({ config, store, clock: RUNNING_CLOCK }, () => {});
  const ofFiles = tasks.filter(({ name }) => ['free pages', 'statistics'].includes(name));
  for (const { step } of ofFiles) assert.notEqual(await step(), true);
  assert.deepEqual([ofFiles.length, asked], [2, []]);
  for (const { name, step } of tasks) assert.notEqual(await step(), true, name);
});

test('cluster: a challenge that another host has taken counts on this one, from the time that it is there', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { stores, store, config, db } = await openStore(t);
  const spend = async (nonce: string) => {
    const taken = { nonce, expiresAt: CREATED_AT + 600, spendableUntil: CREATED_AT + 600 };
    const paste = inlinePaste(patternedBytes(50));
    assert.deepEqual(await store.pastes.create(paste, { ...NO_TERMS, spend: taken }), { refused: null });
  };
  db.exec(`INSERT INTO spent_challenges (rowid, nonce, expires_at) VALUES (1000, 'before', ${CREATED_AT})`);
  const other = await openClusterStore({ config, clock: RUNNING_CLOCK, log: () => {}, newId });
  stores.push(other);
  const noted: { nonce: string; expiresAt: number }[] = [];
  other.followSpent((spent) => noted.push(spent));
  /** Spends challenges until the other host tells of one: it does not tell what was spent before its first look. */
  const noteOneOf = async (name: string) => {
    for (let index = 0; !noted.some(({ nonce }) => nonce.startsWith(name)); index += 1) {
      assert.ok(index < 100, `none of ${index} is told`);
      await spend(`${name}${index}`);
      t.mock.timers.tick(1000);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  await noteOneOf('first');
  assert.ok(noted.every(({ nonce, expiresAt }) => nonce !== 'before' && expiresAt === CREATED_AT + 600));
  // A registration needs work too. Its challenge is spent as well, but makes no paste dearer.
  const taken = { nonce: 'c'.repeat(32), expiresAt: CREATED_AT + 600, spendableUntil: CREATED_AT + 600 };
  const [given, next] = ['1', '2'].map((digit) => ({
    serial: digit.repeat(32), commonName: 'alice', fingerprint: digit.repeat(40), createdAt: CREATED_AT, issuedTo: null,
    expiresAt: CREATED_AT + 600, publicKeySha256: new Uint8Array(32).fill(Number(digit)),
  }));
  const terms = { spend: taken, issued: EVENT, granted: EVENT };
  assert.equal((await store.run('issueCertificate', { ...terms, certificate: given! })).refused, null);
  assert.equal((await store.run('issueCertificate', { ...terms, certificate: next! })).refused, 'powAlreadyUsed');
  assert.equal(await store.read.isSpent(taken.nonce), true);
  await noteOneOf('later');
  assert.ok(noted.every(({ nonce }) => nonce.toLowerCase() !== taken.nonce));
  // After this the database numbers challenges from 1 again.
  db.exec('DELETE FROM spent_challenges');
  await noteOneOf('again');
});

const EVERYTHING: AuditFilter = {
  event: null, outcome: null, clientId: null, after: Number.MIN_SAFE_INTEGER, before: Number.MAX_SAFE_INTEGER,
};

test('audit --follow beside a cluster: from the start or from now on, thousands at once, and each entry once', async (t) => {
  const { store, config, db } = await openStore(t);
  const options = { config, clock: RUNNING_CLOCK, newId };
  await store.run('recordAudit', EVENT);
  const [all, fromNow] = [await tailCluster(options, EVERYTHING, true), await tailCluster(options, EVERYTHING, false)];
  const many = TAIL_ENTRIES + 500;
  db.exec(`
    WITH RECURSIVE turns(turn) AS (SELECT 1 UNION ALL SELECT turn + 1 FROM turns WHERE turn < ${many})
    INSERT INTO audit (time, event, outcome, details) SELECT turn, 'many', 'success', '{}' FROM turns`);
  for (const [tail, count] of [[all, many + 1], [fromNow, many]] as const) {
    const [first, rest] = [await tail(), await tail()];
    assert.deepEqual([first.entries.length, first.state], [TAIL_ENTRIES, 'same']);
    const ids = [...first.entries, ...rest.entries].map(({ id }) => id);
    assert.deepEqual(ids, Array.from({ length: count }, (_, index) => many + 2 - count + index));
    assert.deepEqual(await tail(), { entries: [], state: 'same' });
  }
});

test('audit --follow beside a cluster: waits for nodes that are away, tells what came meanwhile, and waits for nothing else', async (t) => {
  const { store, config, behind } = await openStore(t);
  const tail = await tailCluster({ config, clock: RUNNING_CLOCK, newId }, EVERYTHING, false);
  await store.run('recordAudit', EVENT);
  behind.choose = () => ({ kind: 'replaced', status: 401, body: 'Unauthorized', isCarriedOut: false });
  assert.deepEqual(await tail(), { entries: [], state: 'away' });
  behind.choose = () => undefined;
  const { entries, ...rest } = await tail();
  assert.deepEqual([entries, rest], [[{ ...EVENT, id: 1 }], { state: 'same' }]);
  // The tail would wait for ever if it took this answer for nodes that are away.
  const noRows = { values: [['no rows']] };
  behind.choose = () => saying(noRows);
  await assert.rejects(async () => tail(), SyntaxError);
});

test('backup of a cluster: a node that refuses, breaks off or falls silent ends it, and says why', async (t) => {
  const { config, behind } = await startNode(t);
  const folder = temporaryFolder(t);
  const { setTimeout: setSilence } = Socket.prototype;
  // A node may take a minute for its copy: here that minute is over after 100 ms.
  t.mock.method(Socket.prototype, 'setTimeout', function (this: Socket, ms: number, then?: () => void) {
    return setSilence.call(this, ms === 60_000 ? 100 : ms, then);
  });
  const copied: Fault = { kind: 'replaced', status: 200, body: 'a copy', isCarriedOut: false };
  const faults: readonly (readonly [string, Fault, RegExp])[] = [
    ['refused', { ...copied, status: 503 }, /a node gave no copy \(503\)$/],
    ['lost', { kind: 'lost' }, /a node gave no copy \(Error: socket hang up\)$/],
    ['silent', { kind: 'silent', isCarriedOut: false }, /a node gave no copy \(Error: silent\)$/],
    ['switched', { kind: 'switched' }, /a node gave no copy \(101\)$/],
  ];
  for (const [name, fault, said] of faults) {
    behind.choose = ({ path }) => (path.startsWith('/db/backup') ? fault : undefined);
    const copying = copyCluster({ config, clock: RUNNING_CLOCK }, join(folder, name));
    await assert.rejects(copying, isUnavailable(said), name);
  }
  behind.choose = ({ path }) => (path.startsWith('/db/backup') ? copied : undefined);
  const path = join(folder, 'taken.db');
  await copyCluster({ config, clock: RUNNING_CLOCK }, path);
  assert.equal(readFileSync(path, 'utf8'), 'a copy');
  writeFileSync(path, 'of somebody else');
  await assert.rejects(copyCluster({ config, clock: RUNNING_CLOCK }, path), { code: 'EEXIST' });
  assert.equal(readFileSync(path, 'utf8'), 'of somebody else');
});

test('backup of a cluster: a node that makes a snapshot or another copy is asked again, for a minute at most', async (t) => {
  const { config, behind } = await startNode(t);
  const path = join(temporaryFolder(t), 'copy.db');
  let [asked, laterMs] = [0, 0];
  const clock = { ...RUNNING_CLOCK, monotonicMs: () => RUNNING_CLOCK.monotonicMs() + laterMs };
  const answerWhen = (isFree: () => boolean): void => {
    behind.choose = ({ path }) => {
      if (!path.startsWith('/db/backup')) return undefined;
      asked += 1;
      const status = isFree() ? 200 : 500;
      return { kind: 'replaced', status, body: status === 200 ? 'a copy' : 'CAS conflict', isCarriedOut: false };
    };
  };
  answerWhen(() => asked === 3);
  await copyCluster({ config, clock }, path);
  assert.deepEqual([readFileSync(path, 'utf8'), asked], ['a copy', 3]);
  answerWhen(() => {
    laterMs += 20_000;
    return false;
  });
  await assert.rejects(copyCluster({ config, clock }, `${path}-2`), isUnavailable(/a node gave no copy \(500\)$/));
  assert.deepEqual([existsSync(`${path}-2`), asked], [false, 6]);
});

test('cluster: tables are not changed under hosts that serve; one that died holds it up until its leases are over', async (t) => {
  const { stores, config, store, db } = await openStore(t);
  const open = () => openClusterStore({ config, clock: RUNNING_CLOCK, log: () => {}, newId });
  const beside = await open();
  stores.push(beside);
  assert.equal(await store.upkeep.truncateWal(), true);
  assert.equal(await beside.upkeep.truncateWal(), true);
  const migrations = MIGRATIONS as (readonly string[])[];
  migrations.push(['UPDATE removals SET count = count + 1']);
  t.after(() => migrations.pop());
  const isServed = isUnavailable(/: hosts of an earlier version serve, or did lately: stop them all$/);
  await assert.rejects(open(), isServed);
  // This host cleaned up; another one still serves.
  await store.close();
  await assert.rejects(open(), isServed);
  const setUntil = (seconds: number): void => db.exec(`UPDATE leases SET until = unixepoch() + ${seconds}`);
  setUntil(2);
  await assert.rejects(open(), isServed);
  setUntil(0);
  const later = await open();
  stores.push(later);
  assert.equal(db.prepare('SELECT count FROM removals').get()?.['count'], 1);
});

const LACKING = isUnavailable(/: the node that leads lacks changes, as if its disk was full: restart it, or have it join anew$/);

test('cluster: where a node leads that lacks what was acknowledged, nothing is answered and nothing is changed', async (t) => {
  const { store, db, count } = await openStore(t);
  const kept = inlinePaste(patternedBytes(50), { burnAfterRead: true });
  await store.pastes.create(kept, NO_TERMS);
  const burned = inlinePaste(patternedBytes(50), { burnAfterRead: true });
  await store.pastes.create(burned, NO_TERMS);
  const last = db.prepare('SELECT rowid AS number, * FROM claims ORDER BY rowid DESC LIMIT 1');
  const { number, id, at, answer } = last.get()!;
  // As if this node had skipped the last change.
  db.exec('DELETE FROM claims WHERE rowid = (SELECT max(rowid) FROM claims)');
  const before = [count('claims'), count('pastes')];
  for (let turn = 0; turn < 3; turn += 1) {
    await assert.rejects(async () => store.pastes.find(kept.id, CREATED_AT), LACKING);
    await assert.rejects(store.pastes.burn(kept.id, null, CREATED_AT), LACKING);
    await assert.rejects(store.pastes.create(inlinePaste(patternedBytes(50)), NO_TERMS), LACKING);
    assert.equal(await store.healthy(), false);
  }
  assert.deepEqual([count('claims'), count('pastes')], before);
  // The node has caught up.
  db.prepare('INSERT INTO claims (rowid, id, at, answer) VALUES (?, ?, ?, ?)').run(number!, id!, at!, answer!);
  assert.equal(await store.healthy(), true);
  assert.equal(await store.pastes.burn(kept.id, null, CREATED_AT), true);
});

test('cluster: a change whose answer has no number leaves a host with what it had seen', async (t) => {
  const { store, db, behind } = await openStore(t);
  await store.run('recordAudit', EVENT);
  const body = JSON.stringify({ results: Array(3).fill({}) });
  behind.choose = once(isWrite, { kind: 'replaced', status: 200, body, isCarriedOut: true });
  await store.run('recordAudit', EVENT);
  db.exec('DELETE FROM claims');
  assert.equal(await store.healthy(), false);
});

test('cluster: what other hosts read and changed is missed too, by who serves and by who starts', async (t) => {
  const { stores, store, config, db } = await openStore(t);
  const open = () => openClusterStore({ config, clock: RUNNING_CLOCK, log: () => {}, newId });
  await store.run('recordAudit', EVENT);
  const other = await open();
  stores.push(other);
  await store.run('recordAudit', EVENT);
  // A host sees from its probes what other hosts changed.
  assert.equal(await other.healthy(), true);
  db.exec('DELETE FROM claims WHERE rowid = (SELECT max(rowid) FROM claims)');
  assert.equal(await other.healthy(), false);
  const ahead = await startImitatedNode(t);
  ahead.db.exec(`
    CREATE TABLE claims (id TEXT NOT NULL PRIMARY KEY, at INTEGER NOT NULL, answer TEXT NOT NULL) STRICT;
    INSERT INTO claims VALUES ('one', 1, ''), ('two', 2, '')`);
  const databasePath = `${config.databasePath},${ahead.address}`;
  const both = { config: { ...config, databasePath }, clock: RUNNING_CLOCK, log: () => {}, newId };
  await assert.rejects(openClusterStore(both), LACKING);
  await assert.rejects(copyCluster(both, join(temporaryFolder(t), 'copy.db')), LACKING);
  await assert.rejects(examineNodes(both), LACKING);
});

test('cluster: the host that cleans up, and check, say which node lacks something or is silent', async (t) => {
  const { stores, config } = await startNode(t);
  const follower = await startImitatedNode(t);
  follower.db.exec('CREATE TABLE claims (id TEXT NOT NULL PRIMARY KEY, at INTEGER NOT NULL, answer TEXT NOT NULL) STRICT');
  const logged: LogEntry[] = [];
  const log = (entry: LogEntry): void => void logged.push(entry);
  const naming = (...more: string[]) => ({
    config: { ...config, databasePath: [config.databasePath, follower.address, ...more].join() }, clock: RUNNING_CLOCK,
  });
  const store = await openClusterStore({ ...naming(), log, newId });
  stores.push(store);
  await store.upkeep.truncateWal();
  assert.deepEqual(logged.map(({ event }) => event), ['opened'], 'it may be under way');
  await store.upkeep.truncateWal();
  const { event, level, details } = logged[1] ?? assert.fail('nothing is logged');
  assert.deepEqual([event, level, details], ['nodes behind', 'warning', { behind: follower.address }]);
  // Nothing listens at this address.
  const silent = '127.0.0.1:1';
  assert.deepEqual((await examineNodes(naming(silent))).behind, [follower.address, silent]);
  follower.db.exec("INSERT INTO claims (rowid, id, at, answer) VALUES (1000, 'a', 1, '')");
  // Now the follower is ahead of the leader. Every host sees that within about a second, and obeys the leader no more.
  for (const startMs = performance.now(); await store.healthy(); await pause(50)) {
    assert.ok(performance.now() - startMs < 10_000, 'it is obeyed still');
  }
  await assert.rejects(store.upkeep.truncateWal(), LACKING);
});

test('restore of a cluster: nodes that take the backup, and have nothing of it, are told', async (t) => {
  const { config, behind } = await startNode(t);
  const folder = temporaryFolder(t);
  const backup = join(folder, 'backup.db');
  await fill(backup, 1);
  behind.choose = ({ path }) => (path === '/boot' ? saying() : undefined);
  const restoring = restoreCluster({ config, clock: RUNNING_CLOCK }, backup, temporaryFolder(t));
  await assert.rejects(restoring, isUnavailable(/: the nodes took the backup, and do not have it$/));
});
