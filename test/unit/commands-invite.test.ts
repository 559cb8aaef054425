// `pasted invite`: what it makes, lists and takes back, and what it refuses. What an invitation is good for:
// api/invitations.test.ts.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { openDesk } from '../support/operator.ts';
import { selectValue } from '../support/store.ts';

const NOW = 1_769_860_800;
const ROWS = `
  SELECT json_group_array(json_array(id, lower(hex(code_sha256)), note, created_at, expires_at, uses_left))
  FROM invitations`;

/** A desk whose database is there already, as the service makes it. */
async function openInviting(t: TestContext) {
  const desk = openDesk(t);
  await desk.createAdmin();
  const created = async (...words: string[]) => {
    const { code, stdout, stderr } = await desk.pasted(['invite', 'create', '--json', ...words]);
    assert.deepEqual([code, stderr], [0, '']);
    return JSON.parse(stdout) as { readonly id: number; readonly code: string };
  };
  return { ...desk, created, rows: () => JSON.parse(String(selectValue(desk.databasePath, ROWS))) as unknown[] };
}

test('invite create: prints a code once, and keeps its digest', async (t) => {
  const { databasePath, pasted, rows } = await openInviting(t);
  const { code, stdout, stderr } = await pasted(['invite', 'create', '--for', '12h', '--uses', '20', '--note', 'Ada\u2019s friends']);
  assert.deepEqual([code, stderr], [0, '']);
  const [, secret = ''] = /^code {5}([a-z2-7]{26})$/m.exec(stdout) ?? [];
  assert.match(secret, /^[a-z2-7]{26}$/);
  assert.match(stdout, /^id {7}1\nexpires {2}2026-02-01T00:00:00Z\nuses {5}20\n/m);
  const digest = createHash('sha256').update(secret).digest('hex');
  assert.deepEqual(rows(), [[1, digest, 'Ada\u2019s friends', NOW, NOW + 43_200, 20]]);
  for (const suffix of ['', '-wal']) {
    assert.ok(!readFileSync(`${databasePath}${suffix}`, { flag: 'a+' }).includes(secret), 'not in the database');
  }
});

test('invite create: by default for a week and one registration; as JSON; each code is another', async (t) => {
  const { pasted, created, rows } = await openInviting(t);
  const first = await created();
  const { code } = first;
  assert.deepEqual(first, { id: 1, note: '', created_at: NOW, expires_at: NOW + 7 * 86_400, uses_left: 1, code });
  assert.notEqual((await created()).code, code);
  const { stdout } = await pasted(['invite', 'list', '--json']);
  assert.ok(!stdout.includes(code));
  const { invitations, count } = JSON.parse(stdout) as { invitations: Record<string, unknown>[]; count: number };
  assert.deepEqual([invitations.map(({ id }) => id), count, rows().length], [[1, 2], 2, 2]);
  const { code: _, ...shown } = first;
  assert.deepEqual(invitations[0], shown);
});

test('invite create: says that nobody can register where registration is off', async (t) => {
  const { pasted } = await openInviting(t);
  const { code, stdout, stderr } = await pasted(['invite', 'create'], { SERVICE_REGISTER: 'off' });
  assert.equal(code, 0);
  assert.match(stdout, /^code {5}/);
  assert.match(stderr, /^pasted: with SERVICE_REGISTER=off nobody can use the code\n$/);
});

test('invite create: bounds of time, uses and note, each with its neighbour', async (t) => {
  const { pasted, created } = await openInviting(t);
  for (const words of [['--for', '1m'], ['--for', '60s'], ['--for', '365d'], ['--uses', '1000'], ['--note', 'x'.repeat(200)]]) {
    await created(...words);
  }
  const time = '--for takes a time from 1m to 365d, such as 12h: not ';
  const uses = '--uses takes a whole number from 1 to 1000';
  const note = '--note takes one line of at most 200 characters';
  for (const [option, value, message] of [
    ['--for', '59s', `${time}"59s"`], ['--for', '366d', `${time}"366d"`], ['--for', '7', `${time}"7"`],
    ['--for', '2026-03-01', `${time}"2026-03-01"`], ['--uses', '0', uses], ['--uses', '1001', uses], ['--uses', '1.5', uses],
    ['--note', 'x'.repeat(201), note], ['--note', 'a\u001b[2J', note], ['--note', 'a\u2028b', note],
  ] as const) {
    const { code, stdout, stderr } = await pasted(['invite', 'create', option, value]);
    assert.deepEqual([code, stdout], [2, '']);
    assert.ok(stderr.startsWith(`pasted: ${message}\n`), stderr);
  }
});

test('invite list: one to a line, whether it is over', async (t) => {
  const { databasePath, pasted, created } = await openInviting(t);
  await created('--note', 'alice', '--uses', '3');
  for (const note of ['now', 'in a second']) await created('--note', note);
  const db = new DatabaseSync(databasePath);
  db.exec(`UPDATE invitations SET expires_at = ${NOW} + id - 2, created_at = ${NOW} - 60 WHERE id > 1`);
  db.close();
  const { stdout } = await pasted(['invite', 'list']);
  assert.deepEqual(stdout.split('\n').map((line) => line.split(/ {2,}/)), [
    ['ID', 'USES LEFT', 'EXPIRES', 'NOTE'],
    ['1', '3', '2026-02-07T12:00:00Z', 'alice'],
    ['2', '1', '2026-01-31T12:00:00Z (over)', 'now'],
    ['3', '1', '2026-01-31T12:00:01Z', 'in a second'],
    [''],
  ]);
});

test('invite withdraw: once, by its number', async (t) => {
  const { pasted, created, rows } = await openInviting(t);
  await created();
  await created();
  const { code, stdout, stderr } = await pasted(['invite', 'withdraw', '1', '--json']);
  assert.deepEqual([code, JSON.parse(stdout), stderr], [0, { id: 1 }, '']);
  assert.deepEqual(rows().map((row) => (row as unknown[])[0]), [2]);
  const again = await pasted(['invite', 'withdraw', '1']);
  assert.deepEqual([again.code, again.stdout], [1, '']);
  assert.equal(again.stderr, 'pasted: there is no invitation 1: `pasted invite list` shows those there are\n');
  for (const id of ['x', '-1', '1.0', '']) {
    assert.equal((await pasted(['invite', 'withdraw', '--', id])).code, 2, id);
  }
  assert.match((await pasted(['invite', 'withdraw', '2'])).stdout, /^Withdrew invitation 2\./);
  assert.deepEqual(rows(), []);
});

test('invite: without a database it is 78, and makes none', async (t) => {
  const { pasted } = openDesk(t);
  for (const words of [['create'], ['list'], ['withdraw', '1']]) {
    const { code, stderr } = await pasted(['invite', ...words]);
    assert.equal(code, 78);
    assert.match(stderr, /there is no database/);
  }
});
