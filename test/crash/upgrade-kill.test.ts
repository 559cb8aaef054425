// kill -9 in the middle of an upgrade: what it leaves before each statement of opening a database as the writer thread
// does, and at random moments of a longer one. Whatever is left opens, and has everything.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { fileBytes, openWriting, refuseOtherFiles } from '../../src/store/database.ts';
import { MIGRATIONS } from '../../src/store/schema.ts';
import { builtMain } from '../support/built.ts';
import { insertPastes } from '../support/paste-rows.ts';
import { selectValue, temporaryFolder } from '../support/store.ts';
import { placeVector } from '../vectors/schema-vectors.ts';

const NEVER = -1;

/** This many processes are killed, all at the same time. */
const AT_ONCE = 4;

const RANDOM_KILLS = 10;

/** The indexes of this many rows take a moment to make. */
const MANY_PASTES = 20_000;

/**
 * The program opens the database, and kills itself before the statement of that number. It says `migrating` before the
 * first transaction and, when it gets to the end, how many milliseconds it took from there.
 */
function programOf(): string {
  const database = pathToFileURL(join(dirname(builtMain()), 'store', 'database.js'));
  return `
    import { writeSync } from 'node:fs';
    import { DatabaseSync } from 'node:sqlite';
    import { openWriting } from '${database}';
    const [path, killAt] = process.argv.slice(1);
    const { exec } = DatabaseSync.prototype;
    let statements = 0;
    let startedMs;
    DatabaseSync.prototype.exec = function (sql) {
      if (startedMs === undefined && sql.startsWith('BEGIN')) {
        startedMs = performance.now();
        writeSync(1, 'migrating\\n');
      }
      if (statements++ === Number(killAt)) {
        process.kill(process.pid, 'SIGKILL');
        for (;;);
      }
      return exec.call(this, sql);
    };
    openWriting(path).close();
    writeSync(1, String(Math.ceil(performance.now() - startedMs)) + '\\n');`;
}

interface Opening {
  /** Resolves when the process begins its first transaction, or ends. */
  readonly migrating: Promise<unknown>;
  kill(): void;
  /** Whether it was killed, and all that it said. */
  readonly ended: Promise<{ readonly isKilled: boolean; readonly said: string }>;
}

function startOpening(t: TestContext, program: string, path: string, killAt: number): Opening {
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program, path, String(killAt)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const ended = once(child, 'close').then(([code, signal]) => {
    assert.ok(code === 0 || signal === 'SIGKILL', `ended with ${code ?? signal}`);
    return { isKilled: signal === 'SIGKILL', said };
  });
  return { migrating: Promise.race([once(child.stdout, 'data'), ended]), kill: () => child.kill('SIGKILL'), ended };
}

/** A digest of all that the tables hold; those of `tables` when given, else of every table there is. */
function contentOf(path: string, tables?: readonly Table[]): { tables: readonly Table[]; digest: string } {
  const db = new DatabaseSync(path);
  const found = tables ?? tablesOf(db);
  const hash = createHash('sha256');
  for (const { name, columns } of found) {
    for (const row of db.prepare(`SELECT ${columns} FROM ${name} ORDER BY ${columns}`).iterate()) {
      for (const value of Object.values(row)) hash.update(value instanceof Uint8Array ? value : `${value}\0`);
    }
  }
  db.close();
  return { tables: found, digest: hash.digest('hex') };
}

interface Table {
  readonly name: string;
  readonly columns: string;
}

function tablesOf(db: DatabaseSync): Table[] {
  return db.prepare(`
    SELECT schema.name AS name, group_concat(info.name, ', ') AS columns
    FROM sqlite_schema AS schema, pragma_table_info(schema.name) AS info
    WHERE schema.type = 'table'
    GROUP BY schema.name
    ORDER BY schema.name`).all() as unknown as Table[];
}

/** What a killed opening leaves is whole and of one of the versions; opened again, it is as if nothing had happened. */
function assertUpgrades(path: string, before: ReturnType<typeof contentOf>, from: number): number {
  const version = fileBytes(path) === 0 ? 0 : Number(selectValue(path, 'PRAGMA user_version'));
  assert.ok(version >= from && version <= MIGRATIONS.length, `schema ${version}`);
  if (version > 0) assert.equal(selectValue(path, 'PRAGMA integrity_check'), 'ok');
  refuseOtherFiles(path);
  openWriting(path).close();
  assert.equal(selectValue(path, 'PRAGMA user_version'), MIGRATIONS.length);
  assert.equal(selectValue(path, 'PRAGMA integrity_check'), 'ok');
  assert.equal(selectValue(path, 'PRAGMA auto_vacuum'), 2);
  assert.equal(contentOf(path, before.tables).digest, before.digest);
  const counted = `
    SELECT pastes = (SELECT count(*) FROM pastes) AND bytes = (SELECT coalesce(sum(size), 0) FROM pastes)
    FROM usage`;
  assert.equal(selectValue(path, counted), 1);
  const ofOwners = 'SELECT owner, sum(size) FROM pastes WHERE owner IS NOT NULL GROUP BY owner';
  assert.equal(selectValue(path, `SELECT count(*) FROM (${ofOwners} EXCEPT SELECT owner, bytes FROM owners)`), 0);
  assert.equal(selectValue(path, 'SELECT count(*) FROM certificates WHERE holder IS NULL'), 0);
  return version;
}

const FILES = ['', '-wal', '-shm', '-journal'];

function copyDatabase(from: string, to: string): void {
  for (const suffix of FILES) if (existsSync(from + suffix)) copyFileSync(from + suffix, to + suffix);
}

/**
 * Opens the database here, and calls `before` with the number of each statement before it runs. A kill there leaves the
 * files as they are then: everything else is lost with the process.
 */
function openInSteps(t: TestContext, path: string, before: (statement: number) => void): number {
  const { exec } = DatabaseSync.prototype;
  let statements = 0;
  const { mock } = t.mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
    before(statements);
    statements += 1;
    exec.call(this, sql);
  });
  openWriting(path).close();
  mock.restore();
  return statements;
}

/** Opens what a kill leaves before the first statement, the second ... and does kill a process before some of them. */
async function killAtEach(t: TestContext, from: number): Promise<void> {
  const folder = temporaryFolder(t);
  const [model, path] = [join(folder, 'model.db'), join(folder, 'pasted.db')];
  if (from > 0) placeVector(from, model);
  const before = from > 0 ? contentOf(model) : { tables: [], digest: createHash('sha256').digest('hex') };
  const nameOf = (statement: number): string => join(folder, `${statement}.db`);
  copyDatabase(model, path);
  const statements = openInSteps(t, path, (statement) => copyDatabase(path, nameOf(statement)));
  const versions = Array.from({ length: statements }, (_, statement) => assertUpgrades(nameOf(statement), before, from));
  const wanted = Array.from({ length: MIGRATIONS.length + 1 - from }, (_, index) => from + index);
  assert.deepEqual([...new Set(versions)].sort(), wanted, 'it was left in every version there is on the way');

  const program = programOf();
  await Promise.all(Array.from({ length: AT_ONCE }, async (_, index) => {
    const statement = Math.floor((statements * index) / AT_ONCE);
    const killed = join(folder, `killed-${statement}.db`);
    copyDatabase(model, killed);
    const { isKilled } = await startOpening(t, program, killed, statement).ended;
    assert.ok(isKilled);
    assert.equal(assertUpgrades(killed, before, from), versions[statement], `killed before statement ${statement}`);
  }));
  t.diagnostic(`left before each of ${statements} statements`);
}

test('kill -9 before each statement of an upgrade from schema 1: nothing is lost', (t) => killAtEach(t, 1));

test('kill -9 before each statement of the first start: the next one is like a first one', (t) => killAtEach(t, 0));

test('kill -9 at random moments of a long upgrade: nothing is lost', async (t) => {
  const folder = temporaryFolder(t);
  const program = programOf();
  const model = join(folder, 'model.db');
  placeVector(1, model);
  insertPastes(model, { count: MANY_PASTES, owner: 'a'.repeat(40) });
  const before = contentOf(model);
  const path = join(folder, 'pasted.db');
  copyFileSync(model, path);
  const whole = Number((await startOpening(t, program, path, NEVER).ended).said.split('\n')[1]);
  assert.ok(whole > 0);

  const versions: number[] = [];
  for (let round = 0; round < RANDOM_KILLS; round += 1) {
    copyFileSync(model, path);
    const opening = startOpening(t, program, path, NEVER);
    await opening.migrating;
    await new Promise((resolve) => setTimeout(resolve, randomInt(whole)));
    opening.kill();
    await opening.ended;
    versions.push(assertUpgrades(path, before, 1));
  }
  t.diagnostic(`an upgrade takes ${whole} ms; what was left was of schema ${versions.join(', ')}`);
});
