// Kills `pasted restore` before each of the calls by which it changes something: the database in its place is then the
// old one or the new one, whole, and the next restore works.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, cpSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { damageOf, holdingsOf, restoreDatabase } from '../../src/store/backup.ts';
import { openWriting } from '../../src/store/database.ts';
import { builtMain } from '../support/built.ts';
import { fill, inStore } from '../support/databases.ts';
import { openDesk } from '../support/operator.ts';
import { storePaste, temporaryFolder } from '../support/store.ts';

/** This many processes run at a time: each of them waits for the disk for a good part of its life. */
const AT_ONCE = 4;

/** More calls than a restore makes; the test fails when no restore has come to its end by then. */
const MOST_CALLS = 200;

/** Ends the process, as a power cut would, before the call of that number. */
const KILLER = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  import { DatabaseSync } from 'node:sqlite';
  let left = Number(process.env.KILL_BEFORE_CALL);
  const counted = (owner, name) => {
    const original = owner[name];
    owner[name] = function (...args) {
      left -= 1;
      if (left === 0) process.kill(process.pid, 'SIGKILL');
      return original.apply(this, args);
    };
  };
  for (const name of ['writeSync', 'fsyncSync', 'linkSync', 'renameSync']) counted(fs, name);
  for (const name of ['exec', 'close']) counted(DatabaseSync.prototype, name);
  syncBuiltinESMExports();`;

/** The exit code, or the name of the signal. */
async function restoreKilled(t: TestContext, databasePath: string, backup: string, call: number): Promise<unknown> {
  const words = ['--import', `data:text/javascript,${encodeURIComponent(KILLER)}`, builtMain(), 'restore', backup];
  const env = { SERVICE_DB: databasePath, KILL_BEFORE_CALL: String(call) };
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [code, signal] = await once(child, 'exit');
  return code ?? signal;
}

/** Pastes of a sound database, opened as a server opens it, so that a log left beside it counts. */
function countSound(path: string): number {
  const db = openWriting(path);
  try {
    assert.deepEqual(damageOf(db, 'full'), []);
    return holdingsOf(db).pastes;
  } finally {
    db.close();
  }
}

/** More than in the backup; one of them is in the log alone. */
const PASTES_BEFORE = 5;
const PASTES_IN_BACKUP = 4;

/** A folder as a killed server leaves it, with part of what it stored in the log alone, and a backup. */
async function makeScene(t: TestContext) {
  const { folder, databasePath, pasted } = openDesk(t);
  const backup = join(folder, 'copy.db');
  assert.equal((await fill(databasePath, 1)).length, PASTES_IN_BACKUP);
  assert.equal((await pasted(['backup', backup])).code, 0);
  const scene = join(folder, 'scene');
  mkdirSync(scene);
  const old = join(folder, 'old.db');
  await fill(old, 2);
  await inStore(old, async (store) => {
    await storePaste(store, Buffer.from('only in the log'));
    for (const suffix of ['', '-wal', '-shm']) copyFileSync(`${old}${suffix}`, join(scene, `pasted.db${suffix}`));
  });
  return { backup, scene };
}

test('restore: killed before any of its calls, the old database or the new one is there, whole', async (t) => {
  const { backup, scene } = await makeScene(t);
  const ends = { old: 0, new: 0, whole: 0 };
  let call = 0;

  async function killOnce(): Promise<void> {
    call += 1;
    const folder = temporaryFolder(t);
    const databasePath = join(folder, 'pasted.db');
    cpSync(scene, folder, { recursive: true });
    const ended = await restoreKilled(t, databasePath, backup, call);
    if (ended === 0) ends.whole += 1;
    else assert.equal(ended, 'SIGKILL');
    const pastes = countSound(databasePath);
    assert.ok([PASTES_BEFORE, PASTES_IN_BACKUP].includes(pastes), `${pastes} pastes after call ${call}`);
    ends[pastes === PASTES_BEFORE ? 'old' : 'new'] += 1;

    await restoreDatabase({ path: databasePath, backup, moment: 'again' });
    assert.equal(countSound(databasePath), PASTES_IN_BACKUP);
    const kept = readdirSync(folder).filter((name) => /\.before-restore-\w+$/.test(name));
    const old = kept.filter((name) => countSound(join(folder, name)) === PASTES_BEFORE);
    assert.equal(old.length, 1, `the old database is kept once: ${kept.join(', ')}`);
    assert.deepEqual(readdirSync(folder).filter((name) => /-(?:restore|wal|shm|journal)$/.test(name)), []);
  }
  while (ends.whole === 0) {
    assert.ok(call < MOST_CALLS);
    await Promise.all(Array.from({ length: AT_ONCE }, killOnce));
  }
  assert.ok(ends.old > 0 && ends.new > ends.whole, JSON.stringify(ends));
  t.diagnostic(`${call - ends.whole} kills: ${ends.old} left the old database, ${ends.new - ends.whole} the new one`);
});
