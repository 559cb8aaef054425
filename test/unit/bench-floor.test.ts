// The bare server that the benchmark runs beside the service does what its row says. A floor that did less would make
// the service look slow, one that did more would flatter it.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test, { type TestContext } from 'node:test';
import { binaryContent, startApp } from '../support/app.ts';
import { ROOT } from '../support/source.ts';

interface Answer {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: Buffer;
}

interface LargePaste {
  readonly size: number;
  readonly sha256: Uint8Array;
  readonly content_id: string;
}

type Capture = (port: number, method: string, path: string, content?: Uint8Array) => Promise<Answer>;

const scripts: string = join(ROOT, 'scripts', 'bench');
const { capture } = await import(join(scripts, 'scene.mjs')) as { capture: Capture };
const { copyOf } = await import(join(scripts, 'stock.mjs')) as { copyOf: (file: string) => string };
const { removeFolder } = await import(join(scripts, 'processes.mjs')) as { removeFolder: (folder: string) => void };
const { openStoring } = await import(join(scripts, 'floor-writer.mjs')) as {
  openStoring: (file: string) => { db: DatabaseSync; carryOut: (rows: readonly object[]) => void };
};

const SMALL = Buffer.from('a small paste\n'.repeat(70));
const LARGE = Buffer.from(binaryContent(600 * 1024));

/** Pastes that the service stored, what it answered then, and a copy of its database. */
async function prepare(t: TestContext) {
  const { port, config } = await startApp(t);
  const [small, large] = [await capture(port, 'POST', '/', SMALL), await capture(port, 'POST', '/', LARGE)];
  const [smallId, largeId] = [small, large].map(({ body }) => (JSON.parse(String(body)) as { id: string }).id);
  const copy = copyOf(config.databasePath);
  t.after(() => removeFolder(dirname(copy)));
  const raw = (id = ''): Promise<Answer> => capture(port, 'GET', `/${id}/raw`);
  const paths = { smallPath: `/${smallId}/raw`, largePath: `/${largeId}/raw` };
  return { copy, ...paths, stored: small, small: await raw(smallId), large: await raw(largeId) };
}

/** A floor that is told what to do, and all that it prints. */
async function startFloor(t: TestContext, order: object) {
  const child = fork(join(scripts, 'floor.mjs'), { silent: true, serialization: 'advanced' });
  t.after(async () => {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  child.send(order);
  const [port] = await once(child, 'message') as [number];
  return { port, output: child.stdout! };
}

/** The headers, without those that node:http adds by itself. */
function headersOf({ headers }: Answer): readonly string[] {
  const lines = headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1]}`] : []));
  return lines.filter((line) => !/^(Date|Connection|Keep-Alive):/i.test(line));
}

function rowsOf<Row>(file: string, sql: string): Row[] {
  using db = new DatabaseSync(file, { readOnly: true });
  return db.prepare(sql).all() as Row[];
}

test('floor: gives what was captured, with the same headers, and writes a line for each small GET', async (t) => {
  const { small, smallPath } = await prepare(t);
  const { port, output } = await startFloor(t, { small, logLine: 'one line\n' });
  for (const path of [smallPath, '/another']) {
    const answer = await capture(port, 'GET', path);
    assert.deepEqual([answer.status, headersOf(answer), answer.body], [200, headersOf(small), SMALL]);
  }
  let printed = '';
  output.setEncoding('latin1');
  while (printed.length < 2 * 'one line\n'.length) printed += String((await once(output, 'data') as [string])[0]);
  assert.equal(printed, 'one line\none line\n');
});

test('floor: looks up the content of the paste that is asked for, whole or in chunks', async (t) => {
  const { copy, small, smallPath, large, largePath } = await prepare(t);
  const marked = { ...small, body: Buffer.alloc(SMALL.length) };
  const withoutBody = { status: large.status, headers: large.headers };
  const { port } = await startFloor(t, { small: marked, large: withoutBody, contents: copy, chunks: copy });
  assert.deepEqual((await capture(port, 'GET', smallPath)).body, SMALL);
  const answer = await capture(port, 'GET', largePath);
  assert.ok(answer.body.equals(LARGE));
  assert.deepEqual(headersOf(answer), headersOf(large));
});

test('floor: what it answered is stored, in the rows that the service makes of it', async (t) => {
  const { copy, stored } = await prepare(t);
  const { port } = await startFloor(t, { stored, stores: copy });
  const pastes = 'SELECT mime_type, size, sha256, owner, content, burn_after_read, content_id FROM pastes';
  const chunks = 'SELECT position, bytes FROM chunks ORDER BY rowid';
  const [before, chunksBefore] = [rowsOf<object>(copy, pastes), rowsOf<object>(copy, chunks)];
  const many = Array.from({ length: 20 }, () => capture(port, 'POST', '/', SMALL));
  assert.deepEqual(new Set((await Promise.all(many)).map(({ status }) => status)), new Set([201]));
  assert.deepEqual(rowsOf(copy, pastes), [...before, ...many.map(() => before[0])]);
  await Promise.all([capture(port, 'POST', '/', LARGE), capture(port, 'POST', '/', LARGE)]);
  const larges = rowsOf<LargePaste>(copy, `${pastes} WHERE content_id IS NOT NULL`);
  assert.equal(larges.length, 3);
  for (const { size, sha256, content_id } of larges) {
    assert.deepEqual([size, Buffer.from(sha256).toString('hex')], [LARGE.length, hash('sha256', LARGE)]);
    const ofContent = `SELECT position, bytes FROM chunks WHERE content_id = '${content_id}' ORDER BY position`;
    assert.deepEqual(rowsOf(copy, ofContent), chunksBefore);
  }
});

test('floor: syncs every commit, and has the indexes and triggers of the service', async (t) => {
  const { config, store } = await startApp(t);
  await store('content');
  const copy = copyOf(config.databasePath);
  t.after(() => removeFolder(dirname(copy)));
  const schema = "SELECT name, sql FROM sqlite_schema WHERE type IN ('index', 'trigger') ORDER BY name";
  assert.deepEqual(rowsOf(copy, schema), rowsOf(config.databasePath, schema));
  const { db } = openStoring(copy);
  const pragma = (name: string): unknown => Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0];
  // https://sqlite.org/pragma.html#pragma_synchronous: 2 is FULL.
  assert.deepEqual([pragma('synchronous'), pragma('journal_mode'), pragma('secure_delete')], [2, 'wal', 1]);
  assert.deepEqual([pragma('page_size'), pragma('auto_vacuum'), pragma('wal_autocheckpoint')], [8192, 2, 1024]);
  db.close();
});
