// Lists of pastes in a database with 200 000 of one owner: that pages and totals come from covering indexes, and how
// long they take. Which pastes a list holds is list-pastes.test.ts.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { auditLookups } from '../../src/store/audit.ts';
import { openReading, openWriting } from '../../src/store/connection.ts';
import { pasteListLookups } from '../../src/store/paste-lists.ts';
import type { PasteFilter } from '../../src/store/store.ts';
import { newFingerprint } from '../support/certificates.ts';
import { insertPastes } from '../support/paste-rows.ts';
import { CREATED_AT } from '../support/store.ts';

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

/** The statements of one kind of list, told by whether they name an owner and a type. */
function listStatements(filter: PasteFilter): { page: string; total: string } {
  const statements = statementsOf(pasteListLookups).filter((sql) =>
    sql.includes(':owner') === (filter.owner !== null) && sql.includes(':typeGlob') === (filter.typeGlob !== null));
  assert.equal(statements.length, 2);
  const isCount = (sql: string): boolean => sql.includes('count(*)');
  return { page: statements.find((sql) => !isCount(sql)) ?? '', total: statements.find(isCount) ?? '' };
}

function assertPlans(connection: DatabaseSync): void {
  for (const [name, filter, index] of KINDS) {
    const { page, total } = listStatements(filter);
    const covering = new RegExp(`^SEARCH pastes USING COVERING INDEX ${index} \\(`);
    const [totalStep = '', ...more] = planOf(connection, total);
    assert.match(totalStep, covering, `total of ${name}`);
    assert.deepEqual(more, [], `total of ${name}`);

    const [pageStep = '', ...sorting] = planOf(connection, page);
    const shown = filter.owner === null ? new RegExp(`^SEARCH pastes USING INDEX ${index} \\(`) : covering;
    assert.match(pageStep, shown, `page of ${name}`);
    assert.deepEqual(sorting, [], `page of ${name}`);
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

test('list: a page at 0, one at 100 000 and the total each take some milliseconds, which are reported', (t) => {
  for (const [name, filter] of KINDS) {
    const { page, total } = listStatements(filter);
    const { owner, typeGlob, ...times } = filter;
    const optional = { ...(owner === null ? {} : { owner }), ...(typeGlob === null ? {} : { typeGlob }) };
    const named = { ...times, nowSeconds: CREATED_AT, ...optional };
    const timed = (sql: string, rows: number, more: object): string => {
      const statement = db.prepare(sql);
      const started = performance.now();
      assert.equal(statement.all({ ...named, ...more }).length, rows);
      return (performance.now() - started).toFixed(1);
    };
    const [first, later] = [0, 100_000].map((offset) => timed(page, 100, { limit: 100, offset }));
    t.diagnostic(`${name}: page at 0 ${first} ms, at 100 000 ${later} ms, total ${timed(total, 1, {})} ms`);
  }
});

test('audit list: newest first comes from an index, without sorting', () => {
  const [page = '', total = ''] = statementsOf(auditLookups);
  assert.match(planOf(db, page).join('\n'), /^SEARCH audit USING INDEX audit_by_time \(time>\? AND time<\?\)$/);
  assert.match(planOf(db, total).join('\n'), /^SEARCH audit USING INDEX audit_by_time \(time>\? AND time<\?\)$/);
});
