// Lists of pastes in a database with 200 000 of one owner: that pages and totals come from covering indexes, how long
// they take, and that the store reads them in parts. Which pastes a list holds is list-pastes.test.ts.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { openReading, openWriting } from '../../src/store/database.ts';
import { pasteListLookups } from '../../src/store/pastes.ts';
import { auditLookups } from '../../src/store/records.ts';
import type { AuditFilter, PasteFilter } from '../../src/store/store.ts';
import { newFingerprint } from '../support/certificates.ts';
import { insertPastes } from '../support/paste-rows.ts';
import { CREATED_AT, openTestStore } from '../support/store.ts';

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

/** The statements that a lookup prepares, in order, as it prepares them. */
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

/** What SQLite would do, a step a line, indented as they are nested. */
function planOf(connection: DatabaseSync, sql: string): string[] {
  const depths = new Map<unknown, number>();
  return connection.prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map((row) => {
    const depth = (depths.get(row['parent']) ?? -1) + 1;
    depths.set(row['id'], depth);
    return `${'  '.repeat(depth)}${String(row['detail'])}`;
  });
}

/** The statements of one kind of list: pages, totals, and the one that finds where a part of it begins. */
function listStatements(filter: PasteFilter): { pages: string[]; totals: string[]; nth: string } {
  const statements = statementsOf(pasteListLookups).filter((sql) => sql.includes(':owner') === (filter.owner !== null));
  const nth = statements.at(-1) ?? '';
  const isWanted = (sql: string): boolean => sql.includes(':typeGlob') === (filter.typeGlob !== null);
  const wanted = statements.slice(0, -1).filter(isWanted);
  const isCount = (sql: string): boolean => sql.includes('count(*)');
  assert.deepEqual(wanted.map(isCount), [false, true]);
  return { pages: wanted.filter((sql) => !isCount(sql)), totals: wanted.filter(isCount), nth };
}

function assertPlans(connection: DatabaseSync): void {
  for (const [name, filter, index] of KINDS) {
    const { pages, totals, nth } = listStatements(filter);
    const covering = new RegExp(`^SEARCH pastes USING COVERING INDEX ${index} \\(`);
    const shown = filter.owner === null ? new RegExp(`^SEARCH pastes USING INDEX ${index} \\(`) : covering;
    for (const [statements, expected] of [[[...totals, nth], covering], [pages, shown]] as const) {
      for (const sql of statements) {
        const [step = '', ...more] = planOf(connection, sql);
        assert.match(step, expected, `${name}: ${sql}`);
        assert.deepEqual(more, [], `${name}: ${sql}`);
      }
    }
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
    // Everyone's oldest pastes are two a second.
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
  for (const given of [{}, { owner: null }, { typeGlob: '*/*n*' }, { typeGlob: '*x' }, bounds]) {
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
async function countTurns(work: Promise<unknown>): Promise<number> {
  let isDone = false;
  const ended = work.finally(() => (isDone = true));
  let turns = 0;
  for (; !isDone; turns += 1) await setImmediate();
  await ended;
  return turns;
}

test('list: of however many lists one part is read in a turn, so that others are served meanwhile', async (t) => {
  const { store, path: databasePath } = await openTestStore(t);
  insertPastes(databasePath, { count: 10_000, owner: OWNER });
  insertAudit(databasePath, 10_000, 2);
  const lists = Array.from({ length: 10 }, (_, index) => (
    index % 2 === 0
      ? store.read.listPastes({ ...EVERYTHING, typeGlob: '*x' }, { limit: 100, offset: 0 }, CREATED_AT)
      : store.read.listAudit({ ...ANY_AUDIT, clientId: 'x' }, { limit: 100, offset: 0 })
  ));
  const turns = await countTurns(Promise.all(lists));
  assert.ok(turns >= 50, `${turns} turns`);
  const few = { ...EVERYTHING, after: CREATED_AT + 8500 };
  assert.ok(await countTurns(Promise.resolve(store.read.listPastes(few, { limit: 100, offset: 0 }, CREATED_AT))) <= 2);
});

test('list: a store that is closed meanwhile refuses it', async (t) => {
  const { store, path: databasePath } = await openTestStore(t);
  insertPastes(databasePath, { count: 10_000, owner: OWNER });
  const list = () => store.read.listPastes(EVERYTHING, { limit: 100, offset: 0 }, CREATED_AT);
  const refused = assert.rejects(async () => list(), { name: 'StoreError', failure: 'unavailable' });
  await Promise.all([store.close(), refused]);
  await assert.rejects(async () => list(), { name: 'StoreError', failure: 'unavailable' });
});

test('audit list: newest first comes from an index, without sorting', () => {
  const [page = '', total = ''] = statementsOf(auditLookups);
  assert.match(planOf(db, page).join('\n'), /^SEARCH audit USING INDEX audit_by_time \(time>\? AND time<\?\)$/);
  assert.match(planOf(db, total).join('\n'), /^SEARCH audit USING INDEX audit_by_time \(time>\? AND time<\?\)$/);
});
