// What a host makes of its nodes' answers, and of missing ones: each change happens once, each caller gets its own
// answer, and errors say what to change. The node is SQLite in this process; real ones: interop/rqlite-nodes.test.ts.

import assert from 'node:assert/strict';
import dns from 'node:dns';
import { join } from 'node:path';
import { test } from 'node:test';
import { Nodes, STALE } from '../../src/cluster/nodes.ts';
import { openClusterStore } from '../../src/cluster/open.ts';
import { guardOf, Statements } from '../../src/cluster/statements.ts';
import { ClusterWriter } from '../../src/cluster/writer.ts';
import { MIB } from '../../src/core/time.ts';
import { ConfigError } from '../../src/config/load.ts';
import { MIGRATIONS } from '../../src/store/schema.ts';
import { CHUNK_BYTES, DatabaseRefusedError, StoreError, unavailable } from '../../src/store/store.ts';
import { RUNNING_CLOCK } from '../support/app.ts';
import { movableClock } from '../support/clock.ts';
import { type Fault, startFaultyNodes, startImitatedNode, STRANGE_BODIES } from '../support/faulty-nodes.ts';
import { isRead, isUnavailable, isWrite, once, openStore, saying, startNode } from '../support/imitated-store.ts';
import { CREATED_AT, inlinePaste, newId, NO_TERMS, patternedBytes, temporaryFolder } from '../support/store.ts';
import { testConfig } from '../support/test-config.ts';

const AFTERWARDS: readonly Fault[] = [
  { kind: 'unanswered' }, { kind: 'cut' }, { kind: 'halved' }, { kind: 'switched' }, { kind: 'repeated', ms: 0 },
  ...STRANGE_BODIES.map((body) => ({ kind: 'replaced', status: 200, body, isCarriedOut: true }) as const),
  ...[301, 401, 404, 500, 503].map((status) => (
    { kind: 'replaced', status, body: 'leader not found', isCarriedOut: true } as const
  )),
];

test('cluster: a change whose answer is lost, cut or replaced happens once, and is answered as it was', async (t) => {
  const { store, behind, count } = await openStore(t);
  for (const [index, fault] of AFTERWARDS.entries()) {
    const spend = { nonce: `n${index}`, expiresAt: CREATED_AT + 600, spendableUntil: CREATED_AT + 600 };
    const paste = inlinePaste(patternedBytes(50, index), { burnAfterRead: true });
    behind.choose = once(isWrite, fault);
    const created = await store.pastes.create(paste, { ...NO_TERMS, spend });
    behind.choose = once(isWrite, fault);
    const burned = await store.pastes.burn(paste.id, null, CREATED_AT);
    const later = await store.pastes.burn(paste.id, null, CREATED_AT);
    assert.deepEqual([created, burned, later], [{ refused: null }, true, false], JSON.stringify(fault));
    const [pastes, spent] = [count('pastes'), count('spent_challenges')];
    assert.deepEqual([pastes, spent], [0, index + 1], JSON.stringify(fault));
  }
});

test('cluster: a lookup is asked again until a node answers it', async (t) => {
  const { store, behind } = await openStore(t);
  const paste = inlinePaste(patternedBytes(50));
  await store.pastes.create(paste, NO_TERMS);
  for (const fault of AFTERWARDS) {
    behind.choose = once(isRead, fault);
    assert.equal((await store.pastes.find(paste.id, CREATED_AT))?.id, paste.id, JSON.stringify(fault));
  }
});

test('cluster: a lookup that a node refuses, or gives no row for, fails for now: it does not say that there is nothing', async (t) => {
  const { store, behind, count } = await openStore(t);
  const paste = inlinePaste(patternedBytes(50), { burnAfterRead: true });
  await store.pastes.create(paste, NO_TERMS);
  for (const [fault, said] of [
    [saying({ error: 'disk I/O error' }), /a node refused to read: disk I\/O error$/],
    [saying({ values: [[1]] }, {}), /a node answered without a row$/],
  ] as const) {
    behind.choose = once(isRead, fault);
    await assert.rejects(async () => store.pastes.find(paste.id, CREATED_AT), isUnavailable(said));
    behind.choose = (asked) => (isRead(asked) ? saying(...(JSON.parse(asked.body) as []).map(() => ({}))) : undefined);
    await assert.rejects(store.pastes.burn(paste.id, null, CREATED_AT), isUnavailable(/without a row$/));
  }
  behind.choose = () => undefined;
  assert.equal(count('pastes'), 1);
  assert.equal((await store.pastes.find(paste.id, CREATED_AT))?.id, paste.id);
});

test('cluster: a change that a node refuses is told as what it is, and those beside it are carried out', async (t) => {
  const { store, behind, count } = await openStore(t);
  const create = () => store.pastes.create(inlinePaste(patternedBytes(50)), NO_TERMS);
  for (const [index, [error, failure]] of ([
    ['database or disk is full', 'full'],
    ['disk I/O error', 'unavailable'],
    ['database disk image is malformed', 'unavailable'],
    ['attempt to write a readonly database', 'unavailable'],
    ['no such table: pastes', 'unavailable'],
    ['near "SELEC": syntax error', undefined],
  ] as const).entries()) {
    behind.choose = once(isWrite, saying({ error }));
    const [refused, beside] = await Promise.allSettled([create(), create()]);
    const reason: unknown = refused.status === 'rejected' ? refused.reason : undefined;
    assert.ok(reason instanceof Error && reason.message.endsWith(`a node refused a change: ${error}`), error);
    assert.equal(reason instanceof StoreError ? reason.failure : undefined, failure, error);
    assert.deepEqual(beside, { status: 'fulfilled', value: { refused: null } }, error);
    assert.equal(count('pastes'), index + 1, error);
  }
  // The whole request fails, as when only its end finds no room. A repeated one would be done here, and not elsewhere.
  const body = JSON.stringify({ results: [], error: 'database or disk is full' });
  behind.choose = once(isWrite, { kind: 'replaced', status: 200, body, isCarriedOut: false });
  await assert.rejects(create(), { failure: 'full' });
  assert.equal(count('pastes'), 6);
});

test('cluster: no lookup waits for chunks, of which few are asked for at once', async (t) => {
  const { store, behind } = await openStore(t);
  const { contentId, write } = store.contents.upload(newId());
  const positions = Array.from({ length: 20 }, (_, position) => position);
  for (const position of positions) await write(patternedBytes(CHUNK_BYTES, position));
  const paste = inlinePaste(patternedBytes(50));
  await store.pastes.create(paste, NO_TERMS);
  const large = { ...paste, id: newId(), size: 20 * CHUNK_BYTES, content: null, contentId };
  await store.pastes.create(large, NO_TERMS);
  const readers = await Promise.all(positions.map(() => store.contents.open(contentId)));

  const asked: string[] = [];
  behind.choose = ({ body }) => void asked.push(body);
  const pieces = readers.map((reader, position) => reader!.read(position * CHUNK_BYTES, (position + 1) * CHUNK_BYTES).next());
  const found = store.pastes.find(paste.id, CREATED_AT);
  assert.equal((await found)?.id, paste.id);
  for (const [position, piece] of (await Promise.all(pieces)).entries()) {
    assert.deepEqual(piece.value, patternedBytes(CHUNK_BYTES, position));
  }
  const chunksIn = asked.map((body) => body.split('FROM chunks').length - 1);
  assert.equal(chunksIn.reduce((sum, chunks) => sum + chunks), 20);
  assert.ok(chunksIn.every((chunks) => chunks <= 8), String(chunksIn));
  assert.deepEqual(asked.filter((body) => body.includes('FROM pastes')).map((body) => body.includes('FROM chunks')), [false]);
});

test('cluster: what is carried out late, after another host has changed the same, is refused', async (t) => {
  const { store, behind, settled, count } = await openStore(t);
  const spend = { nonce: 'once', expiresAt: CREATED_AT + 600, spendableUntil: CREATED_AT + 600 };
  const repeated: Promise<unknown>[] = [];
  behind.choose = once(isWrite, { kind: 'late', ms: 100 });
  repeated.push(store.pastes.create(inlinePaste(patternedBytes(50, 1)), { ...NO_TERMS, spend }));
  repeated.push(store.pastes.create(inlinePaste(patternedBytes(50, 2)), { ...NO_TERMS, spend }));
  const outcomes = (await Promise.all(repeated)).map((outcome) => (outcome as { refused: unknown }).refused);
  assert.deepEqual(outcomes, [null, 'powAlreadyUsed']);
  await settled();
  assert.deepEqual([count('pastes'), count('spent_challenges')], [1, 1]);
});

test('cluster: a migration whose answer is lost is not applied twice', async (t) => {
  const { stores, config, behind, db } = await openStore(t);
  const migrations = MIGRATIONS as (readonly string[])[];
  migrations.push(['UPDATE removals SET count = count + 1']);
  t.after(() => migrations.pop());
  behind.choose = once(isWrite, { kind: 'unanswered' });
  const store = await openClusterStore({ config, clock: RUNNING_CLOCK, log: () => {}, newId });
  stores.push(store);
  assert.equal(db.prepare('SELECT count FROM removals').get()?.['count'], 1);
});

test('cluster: nodes with the database of another program, or of a newer version, are refused and left as they are', async (t) => {
  const { config, behind, db } = await startNode(t);
  const written: string[] = [];
  behind.choose = (asked) => void (isWrite(asked) && written.push(asked.body));
  const isRefused = async (why: string) => assert.rejects(
    openClusterStore({ config, clock: RUNNING_CLOCK, log: () => {}, newId }),
    new DatabaseRefusedError(`the database of the cluster ${why}`),
  );
  db.exec('CREATE TABLE theirs (name TEXT); PRAGMA application_id = 7');
  await isRefused('is of another program (application id 7)');
  db.exec('DROP TABLE theirs');
  const opened = await openClusterStore({ config, clock: RUNNING_CLOCK, log: () => {}, newId });
  await opened.close();
  db.exec(`PRAGMA user_version = ${MIGRATIONS.length + 1}`);
  written.length = 0;
  await isRefused(`is of a newer version (schema ${MIGRATIONS.length + 1}, this one knows ${MIGRATIONS.length})`);
  assert.deepEqual(written, []);
});

test('cluster: a start on nodes that take no tables fails, and says why', async (t) => {
  const { config, behind } = await startNode(t);
  let asked = 0;
  behind.choose = (one) => {
    if (!isWrite(one)) return undefined;
    asked += 1;
    return saying({ error: 'disk I/O error' });
  };
  const opening = openClusterStore({ config, clock: RUNNING_CLOCK, log: () => {}, newId });
  await assert.rejects(opening, isUnavailable(/the tables cannot be made: disk I\/O error$/));
  assert.equal(asked, 4, 'other hosts that start at once make it fail up to three times');
});

test('cluster: nodes that never answer as nodes do are told by name, with what to change', async (t) => {
  const { config, behind } = await startNode(t);
  const nodes = new Nodes(config, RUNNING_CLOCK);
  t.after(() => nodes[Symbol.dispose]());
  let asked = 0;
  const failures = [
    [200, '<html>', /127\.0\.0\.1:\d+: not what a node answers\); if this was a change, it may have happened: /],
    [401, 'Unauthorized', /401 Unauthorized\); set the user in SERVICE_DB and SERVICE_DB_PASSWORD$/],
    [400, 'Client sent an HTTP request to an HTTPS server.\n', /; write rqlites:\/\/$/],
    [503, 'leader not found', /503 leader not found\)$/],
    [502, ' \u001b[31mred\u0007\n', /: 502 \[31mred\)$/],
  ] as const;
  for (const [status, body, message] of failures) {
    behind.choose = () => {
      asked += 1;
      return { kind: 'replaced', status, body, isCarriedOut: false };
    };
    await assert.rejects(nodes.query([['SELECT 1', {}]], 'strong', 100), (error) => (
      error instanceof StoreError && error.failure === 'unavailable' && message.test(error.message)
    ));
  }
  // The node is asked every 50 ms for 100 ms, and for less time where waiting changes nothing.
  assert.ok(asked <= 3 * failures.length, `asked ${asked} times`);
  const databasePath = config.databasePath.replace('rqlite', 'rqlites');
  const secure = new Nodes({ ...config, databasePath }, RUNNING_CLOCK);
  // The host gives up long before the deadline. A short deadline could pass before the first answer on a busy machine.
  await assert.rejects(secure.query([['SELECT 1', {}]], 'strong'), /they speak HTTP: write rqlite:\/\/ without/);
  const nowhere = join(temporaryFolder(t), 'ca.pem');
  for (const [changes, problem] of [
    [{ databasePath: 'rqlite://db1:99999' }, 'SERVICE_DB: db1:99999 is no host and port'],
    [{ databasePath, clusterCaPath: nowhere }, `SERVICE_DB_CA: ${nowhere} cannot be read (ENOENT)`],
  ] as const) {
    assert.throws(() => new Nodes({ ...config, ...changes }, RUNNING_CLOCK), (error) => (
      error instanceof ConfigError && error.problems.length === 1 && error.problems[0] === problem
    ));
  }
});

test('cluster: a name for several addresses, none of which answers, is told with its port and with why', async (t) => {
  const { config } = await startNode(t);
  const found = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
  const lookup = (_name: string, _options: object, then: (error: null, all: typeof found) => void) => then(null, found);
  t.mock.method(dns, 'lookup', lookup as unknown as typeof dns.lookup);
  for (const [place, said] of [
    ['rqlite://nodes.test:1', /\(nodes\.test:1: ECONNREFUSED\)$/],
    // The default ports of HTTP and HTTPS. Whether something answers there depends on the machine.
    ['rqlite://nodes.test', /\(nodes\.test:80: /],
    ['rqlites://nodes.test', /\(nodes\.test:443: /],
  ] as const) {
    const nodes = new Nodes({ ...config, databasePath: place }, RUNNING_CLOCK);
    t.after(() => nodes[Symbol.dispose]());
    await assert.rejects(nodes.query([['SELECT 1', {}]], 'strong', 500), isUnavailable(said));
  }
});

test('cluster: a node that stops to answer is told with what it answered before', async (t) => {
  const { config, behind } = await startNode(t);
  const nodes = new Nodes(config, RUNNING_CLOCK);
  t.after(() => nodes[Symbol.dispose]());
  let asked = 0;
  behind.choose = () => {
    asked += 1;
    return asked === 1
      ? { kind: 'replaced', status: 503, body: 'leader not found', isCarriedOut: false }
      : { kind: 'dripping' };
  };
  await assert.rejects(nodes.query([['SELECT 1', {}]], 'strong', 1000), /503 leader not found\)$/);
  assert.ok(asked >= 2);
});

test('cluster: a leader that a node names is asked next, and a node that was silent after those that were not', async (t) => {
  const { address } = await startImitatedNode(t);
  const asked: number[] = [];
  let faults: readonly Fault[] = [];
  const { addresses } = await startFaultyNodes(t, [address, address, address], ({ place }) => {
    asked.push(place);
    return faults[asked.length - 1];
  });
  const [first = '', , last = ''] = addresses;
  const silent: Fault = { kind: 'silent', isCarriedOut: false };
  const leaderless = { kind: 'replaced', status: 500, body: 'leader not found', isCarriedOut: false } as const;
  const naming = (place: string): Fault => ({ ...leaderless, status: 301, location: `http://${place}/db/query?redirect` });
  for (const [given, places] of [
    // If nodes took turns, the silent first one would be waited for again, and longer, though the second knows by then.
    [[silent, leaderless, leaderless, leaderless, silent], [0, 1, 2, 1, 2, 1]],
    [[naming(last)], [0, 2]],
    // Two that name each other, and one that names itself, don't keep the others from being asked.
    [[naming(last), naming(first), leaderless], [0, 2, 1, 0]],
    [[naming(first)], [0, 1]],
    [[naming('127.0.0.1:1')], [0, 1]],
    [[naming('')], [0, 1]],
  ] as const) {
    faults = given;
    asked.length = 0;
    const nodes = new Nodes(testConfig({ databasePath: `rqlite://${addresses.join()}` }), RUNNING_CLOCK);
    t.after(() => nodes[Symbol.dispose]());
    assert.deepEqual(await nodes.query([['SELECT 1', {}]], 'strong'), [[[1]]]);
    assert.deepEqual(asked, places);
  }
});

test('cluster: a leader that this host cannot reach, or does not know, is asked through the others', async (t) => {
  const { address } = await startImitatedNode(t);
  const asked: string[] = [];
  for (const leader of ['127.0.0.1:1', null]) {
    const { addresses } = await startFaultyNodes(t, [address, address], ({ place, path }) => {
      asked.push(`${place} ${path}`);
      if (leader === null && place === 0) return { kind: 'lost' };
      if (!path.includes('redirect')) return undefined;
      return {
        kind: 'replaced', status: 301, body: '', isCarriedOut: false, location: `http://${leader ?? addresses[0]}${path}`,
      };
    });
    const nodes = new Nodes(testConfig({ databasePath: `rqlite://${addresses.join()}` }), RUNNING_CLOCK);
    t.after(() => nodes[Symbol.dispose]());
    asked.length = 0;
    assert.deepEqual(await nodes.query([['SELECT 1', {}]], 'strong'), [[[1]]]);
    assert.equal(asked.at(-1), `${leader === null ? 1 : 0} /db/query?level=strong`);
    await nodes.execute([['CREATE TABLE IF NOT EXISTS t (a)', {}]]);
    assert.match(asked.at(-1)!, /^[01] \/db\/execute\?transaction$/);
  }
});

test('cluster: an answer that comes byte by byte is given up at the deadline', async (t) => {
  const { config, behind } = await startNode(t);
  const nodes = new Nodes(config, RUNNING_CLOCK);
  behind.choose = () => ({ kind: 'dripping' });
  const startMs = performance.now();
  await assert.rejects(nodes.query([['SELECT 1', {}]], 'strong', 300), StoreError);
  assert.ok(performance.now() - startMs < 2000);

  behind.choose = () => ({ kind: 'silent', isCarriedOut: false });
  const asked = assert.rejects(nodes.query([['SELECT 1', {}]], 'strong'), StoreError);
  nodes[Symbol.dispose]();
  await asked;
  assert.ok(performance.now() - startMs < 4000, 'nothing is asked any more once it is closed');
});

test('cluster: an answer that would fill the memory is cut off', async (t) => {
  const { config, behind } = await startNode(t);
  for (const status of [200, 503]) {
    const nodes = new Nodes(config, RUNNING_CLOCK);
    t.after(() => nodes[Symbol.dispose]());
    let sent = 0;
    behind.choose = () => {
      // Ends the time for asking, so that the node is asked once.
      nodes.endWithin(0);
      return { kind: 'long', status, sendMebibyte: () => void (sent += 1) };
    };
    await assert.rejects(nodes.query([['SELECT 1', {}]], 'strong'), /: too long an answer\); if this was a change, it may have happened: /);
    assert.ok(sent >= 128 && sent < 200, `${sent} MiB`);
  }
});

test('cluster: content that another host took for abandoned is refused for now, and no error of this program', async (t) => {
  const { store, db } = await openStore(t);
  const bytes = patternedBytes(CHUNK_BYTES + 1);
  const chunks = [bytes.slice(0, CHUNK_BYTES), bytes.slice(CHUNK_BYTES)] as const;
  // What a host finds after it was suspended for longer than its lease.
  const abandon = () => db.exec('DELETE FROM leases; DELETE FROM chunks; DELETE FROM orphans');
  const isRefused = (error: unknown) => error instanceof StoreError && error.failure === 'unavailable';
  const begun = store.contents.upload(newId());
  await begun.write(chunks[0]);
  abandon();
  await assert.rejects(begun.write(chunks[1]), isRefused);

  const whole = store.contents.upload(newId());
  for (const chunk of chunks) await whole.write(chunk);
  abandon();
  const paste = inlinePaste(bytes, { content: null, contentId: whole.contentId });
  await assert.rejects(store.pastes.create(paste, NO_TERMS), isRefused);
});

test('cluster: nodes that find the same rows in another order decide alike', async (t) => {
  const { db } = await startImitatedNode(t);
  db.exec("CREATE TABLE found (name TEXT); INSERT INTO found VALUES ('],['), ('b'), ('c'), ('c')");
  db.exec('CREATE VIEW guards AS SELECT 1 AS holds');
  db.exec(`CREATE TRIGGER guard INSTEAD OF INSERT ON guards WHEN new.holds IS NOT 1
    BEGIN SELECT RAISE(ABORT, '${STALE}'); END`);
  const guard = (found: unknown) => () => {
    const [sql, values] = guardOf(['SELECT json_group_array(json_array(name)) FROM found', {}], JSON.stringify(found));
    db.prepare(sql).run(values);
  };
  assert.doesNotThrow(guard([['],['], ['b'], ['c'], ['c']]));
  assert.doesNotThrow(guard([['c'], ['b'], ['c'], ['],[']]));
  for (const found of [[], [['b']], [['],['], ['b'], ['c']], [['],['], ['b'], ['b'], ['c']]]) {
    assert.throws(guard(found), { message: STALE });
  }
});

test('cluster: nodes that need seconds for a change are waited for, and do it once', async (t) => {
  const { store, behind, count } = await openStore(t);
  behind.choose = (asked) => (isWrite(asked) ? { kind: 'delayed', ms: 2500 } : undefined);
  assert.deepEqual(await store.pastes.create(inlinePaste(patternedBytes(50)), NO_TERMS), { refused: null });
  assert.equal(count('pastes'), 1);
});

/** A writer whose nodes are functions. The command `note` writes nothing but its claim. */
function writerOver(execute: () => Promise<readonly object[]>, clock = RUNNING_CLOCK) {
  const statements = new Statements();
  const nodes = { commit: execute, query: async () => [] } as unknown as Nodes;
  return new ClusterWriter({ nodes, statements, rules: { note: (value: number) => value }, clock, newId });
}

test('cluster: a command that comes while another is being answered does not wait for the next', async () => {
  const writer = writerOver(async () => [{}]);
  for (let turns = 0; turns < 40; turns += 1) {
    await writer.run('note', turns);
    for (let turn = 0; turn < turns; turn += 1) await null;
    const late = new Promise((_, reject) => void setTimeout(reject, 2000, new Error(`after ${turns} turns`)).unref());
    assert.equal(await Promise.race([writer.run('note', -turns), late]), -turns);
  }
});

test('cluster: commands that wait for nodes that are away are refused together, and not without bound', async () => {
  let asked = 0;
  const writer = writerOver(async () => {
    asked += 1;
    await new Promise((resolve) => setTimeout(resolve, 50));
    throw unavailable('away');
  });
  const results = await Promise.allSettled(Array.from({ length: 10_100 }, (_, index) => writer.run('note', index)));
  const reasons = results.map((result) => (result.status === 'rejected' ? String(result.reason) : 'done'));
  const refused = reasons.filter((reason) => reason.endsWith('too many writes wait'));
  assert.deepEqual([asked, refused.length, new Set(reasons).size], [1, 100, 2]);
  assert.equal(writer.waiting, 0);
});

test('cluster: content that waits for nodes that are away has a bound in bytes too', async () => {
  const writer = writerOver(async () => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    throw unavailable('away');
  });
  const each = 16 * MIB;
  const results = await Promise.allSettled(Array.from({ length: 10 }, (_, index) => writer.run('note', index, each)));
  const reasons = results.map((result) => (result.status === 'rejected' ? String(result.reason) : 'done'));
  const taken = reasons.filter((reason) => !reason.endsWith('too many writes wait')).length;
  assert.equal(taken, 64 / 16);
});

test('cluster: a command that other hosts forestall each time is given up after ten seconds, and the next is tried', async () => {
  const clock = movableClock();
  let [asked, areOthersBusy] = [0, true];
  const writer = writerOver(async () => {
    asked += 1;
    clock.advance(3000);
    assert.ok(asked < 10);
    return [areOthersBusy ? { error: STALE } : {}];
  }, clock);
  await assert.rejects(writer.run('note', 1), isUnavailable(/other hosts kept changing the same$/));
  assert.equal(asked, 4);
  areOthersBusy = false;
  assert.equal(await writer.run('note', 2), 2);
});

test('cluster: a statement out of place, or without one of its values, is an error and asks for nothing', () => {
  const statements = new Statements();
  const found = statements.prepare('SELECT :name AS name');
  assert.throws(() => found.get({ name: 'a' }), { message: 'a statement outside a rule' });
  assert.throws(() => found.run({ name: 'a' }), { message: 'a statement outside a rule' });
  // SQLite itself would take the missing value for NULL, and find other rows.
  const without = () => statements.rehearse(new Map(), () => found.get({ other: 'a' }));
  assert.throws(without, { message: 'a statement without a value for :name' });
});
