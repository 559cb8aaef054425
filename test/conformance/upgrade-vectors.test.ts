// The databases of older versions in test/vectors: every schema version has one, and no version that has one changes
// any more. What becomes of them is api/upgrade.test.ts.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { MIGRATIONS, migrate, schemaVersionOf } from '../../src/store/schema.ts';
import { temporaryFolder } from '../support/programs.ts';
import { ROOT } from '../support/source.ts';
import { ROWS } from '../vectors/schema-rows.ts';
import { placeVector, readVector, VECTOR_DIGESTS } from '../vectors/schema-vectors.ts';

const HOW = 'write the rows of what it brought into schema-rows.ts, and run make-schema-vectors.ts';

function openVector(t: TestContext, version: number): DatabaseSync {
  const path = join(temporaryFolder(t), 'pasted.db');
  placeVector(version, path);
  const db = new DatabaseSync(path);
  t.after(() => db.close());
  return db;
}

/** Everything that a migration can make, with its SQL as it was written. */
function objectsOf(db: DatabaseSync): unknown[] {
  return db.prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name').all();
}

test('schema: every version has a database that is kept, the newest one too', () => {
  assert.equal(VECTOR_DIGESTS.length, MIGRATIONS.length, HOW);
  assert.equal(ROWS.length, MIGRATIONS.length, HOW);
  const files = readdirSync(join(ROOT, 'test', 'vectors')).filter((name) => name.endsWith('.db.gz'));
  assert.deepEqual(files.sort(), VECTOR_DIGESTS.map((_, index) => `schema-${index + 1}.db.gz`).sort());
});

test('schema: the kept databases are the ones that were made when their version was new', () => {
  for (const index of VECTOR_DIGESTS.keys()) assert.ok(readVector(index + 1).length > 0);
});

test('schema: a version that is kept is what its migrations make today: none of them is edited', (t) => {
  for (const index of VECTOR_DIGESTS.keys()) {
    const kept = openVector(t, index + 1);
    const fresh = new DatabaseSync(':memory:');
    migrate(fresh, MIGRATIONS.slice(0, index + 1));
    assert.equal(schemaVersionOf(kept), index + 1);
    assert.deepEqual(objectsOf(kept), objectsOf(fresh), `schema ${index + 1}`);
    fresh.close();
  }
});

test('schema: every table of a kept database has rows in it', (t) => {
  for (const index of VECTOR_DIGESTS.keys()) {
    const db = openVector(t, index + 1);
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all();
    for (const { name } of tables) {
      const { rows } = db.prepare(`SELECT count(*) AS rows FROM ${String(name)}`).get() as { rows: number };
      assert.ok(rows > 0, `schema ${index + 1}: ${String(name)}`);
    }
  }
});

test('schema: CHANGELOG.md says which version changes the tables, as operators are told, and to which schema', () => {
  const changes = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');
  const said = [...changes.matchAll(/^- The tables change: the first start brings the database to schema (\d+)\b/gm)];
  assert.equal(said[0]?.[1], String(MIGRATIONS.length));
  assert.match(readFileSync(join(ROOT, 'scripts', 'deploy', 'cluster', 'README.md'), 'utf8'), /tables; CHANGELOG says which does/);
});
