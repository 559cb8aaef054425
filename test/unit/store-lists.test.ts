// Lists of pastes in a database with 200 000 of one owner: that pages and totals come from covering indexes, how long
// they take, and that the store reads them in parts. Which pastes a list holds is list-pastes.test.ts.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Awaitable } from '../../src/core/time.ts';
import { openReading, openWriting } from '../../src/store/database.ts';
import type { Store } from '../../src/store/open.ts';
import { pasteListLookups } from '../../src/store/pastes.ts';
import { auditLookups } from '../../src/store/records.ts';
import type { AuditFilter, Listed, PasteFilter } from '../../src/store/store.ts';
import { newFingerprint } from '../support/certificates.ts';
import { insertPastes } from '../support/paste-rows.ts';
import { cpuMsOf } from '../support/cpu.ts';
import { EVENT, isRead, openStore as openClusterHost } from '../support/imitated-store.ts';
import { CREATED_AT, inlinePaste, NO_TERMS, openTestStore } from '../support/store.ts';

const OWNER = newFingerprint();
const PASTES = 200_000;
const OTHERS = 20_000;

const EVERYTHING: PasteFilter = { owner: OWNER, typeGlob: null, after: Number.MIN_SAFE_INTEGER, before: Number.MAX_SAFE_INTEGER };
const KINDS = [
  ['own', EVERYTHING, 'pastes_by_owner'],
  ['own of a type', { ...EVERYTHING, typeGlob: 'text/*' }, 'pastes_by_owner'],
  ['everyone\'s', { ...EVERYTHING, owner: null }, 'pastes_by_time'],
  ['everyone\'s of a type', { ...EVERYTHING, owner: null, typeGlob: 'text/*' }, 'pastes_by_time'],
] as const;

const folder = mkdtempSync(join(tmpdir(), 'pasted-lists-'));
const path = join(folder, 'pasted.db');
let db: DatabaseSync;

before(() => {
  openWriting(path).close();
  insertPastes(path, { count: PASTES, owner: OWNER });
  insertPastes(path, { count: OTHERS, owner: newFingerprint(), prefix: 'b' });
  db = openReading(path);
});
after(() => {
  db.close();
  rmSync(folder, { recursive: true });
});

/** The statements that a lookup prepares, in the order in which it prepares them. */
function statementsOf(prepare: (db: DatabaseSync) => unknown): string[] {
  const statements: string[] = [];
  const noting = {
    prepare: (sql: string) => {
      statements.push(sql);
      return db.prepare(sql);
    },
  };
  prepare(noting as unknown as DatabaseSync);
  return statements;
}

/** SQLite's plan for a statement: one step in each line, indented by how deep it is nested. */
function planOf(connection: DatabaseSync, sql: string): string[] {
  const depths = new Map<unknown, number>();
  return connection.prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map((row) => {
    const depth = (depths.get(row['parent']) ?? -1) + 1;
    depths.set(row['id'], depth);
    return `${'  '.repeat(depth)}${String(row['detail'])}`;
  });
}

/** `found` finds types that fit a glob; `named`, `fitting` and `any` take pastes by type; `part` finds a part's end. */
function typesIn(sql: string): 'found' | 'named' | 'fitting' | 'any' | 'part' {
  if (sql.includes('LIMIT 1 OFFSET')) return 'part';
  if (sql.includes('DISTINCT')) return 'found';
  if (sql.includes(':types')) return 'named';
  return sql.includes(':typeGlob') ? 'fitting' : 'any';
}

/** The statements that find types and the end of a part, and the pages and totals of one kind of list. */
function listStatements(filter: PasteFilter): { types: string; nth: string; pages: string[]; totals: string[] } {
  const statements = statementsOf(pasteListLookups).filter((sql) => sql.includes(':owner') === (filter.owner !== null));
  assert.deepEqual(statements.map(typesIn), ['any', 'any', 'named', 'named', 'fitting', 'fitting', 'found', 'part']);
  const isWanted = (sql: string): boolean => (typesIn(sql) === 'any') === (filter.typeGlob === null);
  const wanted = statements.slice(0, -2).filter(isWanted);
  const isCount = (sql: string): boolean => sql.includes('count(*)');
  return {
    types: statements.at(-2) ?? '',
    nth: statements.at(-1) ?? '',
    pages: wanted.filter((sql) => !isCount(sql)),
    totals: wanted.filter(isCount),
  };
}

function assertPlans(connection: DatabaseSync): void {
  for (const [name, filter, index] of KINDS) {
    const { types, nth, pages, totals } = listStatements(filter);
    const covering = new RegExp(`^SEARCH pastes USING COVERING INDEX ${index} \\(`);
    const shown = filter.owner === null ? new RegExp(`^SEARCH pastes USING INDEX ${index} \\(`) : covering;
    // These steps read the named types, which happens once.
    const isOfTypes = (step: string): boolean => /LIST SUBQUERY|json_each|BLOOM FILTER/.test(step);
    for (const [statements, expected] of [[[...totals, nth], covering], [pages, shown]] as const) {
      for (const sql of statements) {
        const [step = '', ...more] = planOf(connection, sql);
        assert.match(step, expected, `${name}: ${sql}`);
        assert.deepEqual(more.filter((other) => !isOfTypes(other)), [], `${name}: ${sql}`);
      }
    }
    const finding = planOf(connection, types).map((step) => step.trim());
    assert.equal(finding[0], 'MATERIALIZE stored', `types of ${name}`);
    assert.match(finding[1] ?? '', covering, `types of ${name}`);
  }
}

test('list: pages and totals are found in indexes that hold all that is filtered and sorted by, without sorting', () => {
  assertPlans(db);
});

test('list: the plans stay when SQLite has statistics', () => {
  const analysing = new DatabaseSync(path);
  analysing.exec('PRAGMA optimize = 0x10002');
  analysing.exec('ANALYZE');
  analysing.close();
  const reader = openReading(path);
  assertPlans(reader);
  reader.close();
});

test('list: the first page, one at 100 000, the last, one past it, and totals', () => {
  const { listPastes } = pasteListLookups(db);
  const last = CREATED_AT + PASTES - 1;
  for (const [name, filter] of KINDS) {
    const total = filter.owner === null ? PASTES + OTHERS : PASTES;
    // In lists of everyone's pastes, each of the oldest seconds has two pastes.
    for (const [limit, offset, firstAt] of [[100, 0, last], [1000, 100_000, last - 100_000], [100, total - 1, CREATED_AT],
      [100, total, undefined]] as const) {
      const found = listPastes(filter, { limit, offset }, CREATED_AT);
      const expected = [total, Math.min(limit, total - offset), firstAt];
      assert.deepEqual([found.total, found.items.length, found.items[0]?.createdAt], expected, `${name} at ${offset}`);
    }
  }
});

test('list: a page at 0, one at 100 000 and the total alone take some milliseconds, which are reported', (t) => {
  const { listPastes } = pasteListLookups(db);
  for (const [name, filter] of KINDS) {
    const timed = (offset: number, rows: number): string => {
      const started = performance.now();
      assert.equal(listPastes(filter, { limit: 100, offset }, CREATED_AT).items.length, rows);
      return (performance.now() - started).toFixed(1);
    };
    t.diagnostic(`${name}: at 0 ${timed(0, 100)} ms, at 100 000 ${timed(100_000, 100)} ms, past the end ${timed(10 ** 6, 0)} ms`);
  }
});

/** As slow to match against LONG_TYPE as a glob can be. */
const SLOW_GLOB = `*${'a'.repeat(30)}b`;
const LONG_TYPE = `image/${'a'.repeat(58)}`;

test('list: a glob is matched once against each type, and not against each paste', () => {
  const owner = newFingerprint();
  insertPastes(path, { count: 20_000, owner, prefix: 'c', mimeType: LONG_TYPE });
  const { listPastes } = pasteListLookups(db);
  const cpuMs = (typeGlob: string, total: number): number => cpuMsOf(() => {
    for (let turn = 0; turn < 3; turn += 1) {
      assert.equal(listPastes({ ...EVERYTHING, owner, typeGlob }, { limit: 100, offset: 0 }, CREATED_AT).total, total);
    }
  });
  const quick = cpuMs('image/*', 20_000);
  const slow = cpuMs(SLOW_GLOB, 0);
  assert.ok(slow < 5 * quick, `${slow} ms against ${quick} ms`);
});

test('list: of as many types as are collected, and of more, a glob finds the same', () => {
  for (const [index, count] of [1000, 1001, 2500].entries()) {
    const owner = newFingerprint();
    insertPastes(path, { count, owner, prefix: `${index}d`, mimeType: 'image/x-' });
    const writing = new DatabaseSync(path, { timeout: 5000 });
    writing.prepare('UPDATE pastes SET mime_type = mime_type || CAST(created_at - :first AS TEXT) WHERE owner = :owner')
      .run({ owner, first: BigInt(CREATED_AT) });
    writing.close();
    const find = (typeGlob: string, offset: number) =>
      pasteListLookups(db).listPastes({ ...EVERYTHING, owner, typeGlob }, { limit: 2, offset }, CREATED_AT);
    const every = find('image/x-*', 0);
    assert.deepEqual([every.total, every.items.map(({ mimeType }) => mimeType)], [count, [1, 2].map((back) => `image/x-${count - back}`)]);
    const some = find('image/x-?7', 1);
    assert.deepEqual([some.total, some.items.map(({ mimeType }) => mimeType)], [9, ['image/x-87', 'image/x-77']]);
    const same = find('*/x-?7', 1);
    assert.deepEqual(same, some);
    assert.deepEqual([find('image/x', 0).total, find('*/x', 0).total, find('*-7', 1)], [0, 0, { items: [], total: 1 }]);
  }
});

const PAGES = [[1, 0], [1000, 0], [1000, 1500], [1000, 5000], [100, 11_950], [100, 12_000], [0, 0]] as const;

test('list: in parts it is the same as in one go, also where more is of one second than a part has', async (t) => {
  const { store, path: databasePath } = await openTestStore(t);
  const owner = newFingerprint();
  const kinds = [['b', 'text/plain', 300], ['c', 'image/png', 1], ['d', 'text/x-dense', 7000]] as const;
  for (const [prefix, mimeType, perSecond] of kinds) {
    insertPastes(databasePath, { count: 4000, owner, prefix, mimeType, perSecond });
  }
  const reading = openReading(databasePath);
  const { listPastes } = pasteListLookups(reading);
  const bounds = { after: CREATED_AT + 100, before: CREATED_AT + 3500 };
  for (const given of [{}, { owner: null }, { owner: null, typeGlob: '*x' }, { typeGlob: '*/*n*' }, { typeGlob: '*x' }, bounds]) {
    for (const [limit, offset] of PAGES) {
      const filter = { ...EVERYTHING, owner, ...given };
      const found = await store.read.listPastes(filter, { limit, offset }, CREATED_AT);
      assert.deepEqual(found, listPastes(filter, { limit, offset }, CREATED_AT), JSON.stringify({ ...given, limit, offset }));
    }
  }
  reading.close();
});

const ANY_AUDIT: AuditFilter = {
  event: null, outcome: null, clientId: null, after: Number.MIN_SAFE_INTEGER, before: Number.MAX_SAFE_INTEGER,
};

function insertAudit(databasePath: string, count: number, perSecond: number): void {
  const writing = new DatabaseSync(databasePath, { timeout: 5000 });
  writing.prepare(`
    WITH RECURSIVE turn (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM turn WHERE n + 1 < :count)
    INSERT INTO audit (time, event, outcome, details) SELECT n / :perSecond, 'event-' || (n % 3), 'success', '{}' FROM turn`)
    .run({ count, perSecond: BigInt(perSecond) });
  writing.close();
}

test('audit list: in parts it is the same as in one go, also where more is of one second than a part has', async (t) => {
  const { store, path: databasePath } = await openTestStore(t);
  for (const perSecond of [1, 150, 6000]) insertAudit(databasePath, 4000, perSecond);
  const reading = openReading(databasePath);
  const { listAudit } = auditLookups(reading);
  for (const given of [{}, { event: 'event-1' }, { event: 'none' }, { after: 10, before: 3000 }]) {
    for (const [limit, offset] of PAGES) {
      const filter = { ...ANY_AUDIT, ...given };
      const found = await store.read.listAudit(filter, { limit, offset });
      assert.deepEqual(found, listAudit(filter, { limit, offset }), JSON.stringify({ ...given, limit, offset }));
    }
  }
  reading.close();
});

/** How many turns of the event loop pass until something is there. */
async function countTurns(work: Awaitable<unknown>): Promise<number> {
  let isDone = false;
  const ended = Promise.resolve(work).finally(() => (isDone = true));
  let turns = 0;
  for (; !isDone; turns += 1) await setImmediate();
  await ended;
  return turns;
}

/** Begins ten lists at once. Each has ten parts and the end. */
function beginLong(store: Store): Record<'pastes' | 'audit', () => Promise<Listed<unknown>[]>> {
  const page = { limit: 100, offset: 0 };
  const ten = <Item>(list: () => Awaitable<Listed<Item>>) => () => Promise.all(Array.from({ length: 10 }, list));
  return {
    pastes: ten(() => store.read.listPastes({ ...EVERYTHING, typeGlob: '*x' }, page, CREATED_AT)),
    audit: ten(() => store.read.listAudit({ ...ANY_AUDIT, clientId: 'x' }, page)),
  };
}

async function openLong(t: TestContext): Promise<Store> {
  const { store, path: databasePath } = await openTestStore(t);
  insertPastes(databasePath, { count: 10_000, owner: OWNER });
  insertAudit(databasePath, 10_000, 2);
  return store;
}

test('list: of long ones, however many, one part is read in a turn, the first ones too', async (t) => {
  for (const begin of Object.values(beginLong(await openLong(t)))) {
    const turns = await countTurns(begin());
    assert.ok(turns >= 110, `${turns} turns`);
  }
});

test('list: one that is short or cheap does not wait for long ones', async (t) => {
  const store = await openLong(t);
  const long = beginLong(store).pastes();
  const page = { limit: 100, offset: 0 };
  for (const filter of [EVERYTHING, { ...EVERYTHING, typeGlob: 'text/*' }, { ...EVERYTHING, typeGlob: '*x', after: CREATED_AT + 9500 }]) {
    const turns = await countTurns(store.read.listPastes(filter, page, CREATED_AT));
    assert.ok(turns <= 1, `${turns} turns of ${JSON.stringify(filter)}`);
  }
  await long;
});

test('list: a store that is closed meanwhile refuses it', async (t) => {
  const { store, path: databasePath } = await openTestStore(t);
  insertPastes(databasePath, { count: 10_000, owner: OWNER });
  const list = () => store.read.listPastes({ ...EVERYTHING, typeGlob: '*x' }, { limit: 100, offset: 0 }, CREATED_AT);
  const refused = assert.rejects(async () => list(), { name: 'StoreError', failure: 'unavailable' });
  await Promise.all([store.close(), refused]);
  await assert.rejects(async () => list(), { name: 'StoreError', failure: 'unavailable' });
});

test('audit list: newest first comes from an index, without sorting', () => {
  const [page = '', total = ''] = statementsOf(auditLookups);
  assert.match(planOf(db, page).join('\n'), /^SEARCH audit USING INDEX audit_by_time \(time>\? AND time<\?\)$/);
  assert.match(planOf(db, total).join('\n'), /^SEARCH audit USING INDEX audit_by_time \(time>\? AND time<\?\)$/);
});

test('listPastes, listAudit: in a cluster one request asks for the items and their total', async (t) => {
  const { store, behind } = await openClusterHost(t);
  await store.pastes.create(inlinePaste(new Uint8Array(1), { owner: OWNER, mimeType: 'text/plain' }), NO_TERMS);
  await store.run('recordAudit', EVENT);
  let requests = 0;
  behind.choose = (asked) => void (requests += isRead(asked) ? 1 : 0);
  const [page, any] = [{ limit: 2, offset: 0 }, { after: 0, before: 9e9 }];
  const lists = [
    () => store.read.listPastes({ ...any, owner: null, typeGlob: null }, page, 1),
    () => store.read.listPastes({ ...any, owner: OWNER, typeGlob: null }, page, 1),
    () => store.read.listPastes({ ...any, owner: null, typeGlob: 'text/*' }, page, 1),
    () => store.read.listAudit({ ...any, event: null, outcome: null, clientId: null }, page),
  ];
  for (const list of lists) {
    requests = 0;
    const { items, total } = await list();
    assert.deepEqual([items.length, total, requests], [1, 1, 1], String(list));
  }
});
