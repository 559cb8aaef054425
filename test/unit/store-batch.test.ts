// Executor: a batch is one transaction in which each command fails alone, unless the storage itself fails.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import test from 'node:test';
import type { TestContext } from 'node:test';
import { type Answer, type Command, Executor } from '../../src/store/batch.ts';
import type { Ballast } from '../../src/store/database.ts';
import { migrate } from '../../src/store/schema.ts';
import { inlinePaste, newId, NO_TERMS, patternedBytes } from '../support/store.ts';

function createCommand(size: number, id = newId()): Command {
  return { name: 'createPaste', params: { paste: inlinePaste(patternedBytes(size), { id }), terms: NO_TERMS } };
}

/** An executor on a database in memory; `intercept` sees every statement that is not prepared, and may throw. */
function openExecutor(t: TestContext, intercept: (sql: string) => void = () => {}, ballast?: Ballast) {
  const db = new DatabaseSync(':memory:');
  t.after(() => db.close());
  migrate(db);
  const intercepted: DatabaseSync = new Proxy(db, {
    get(target, name) {
      if (name === 'exec') return (sql: string) => (intercept(sql), target.exec(sql));
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  const stored = () => db.prepare('SELECT count(*) AS n FROM pastes').get()?.['n'];
  return { db, executor: new Executor(intercepted, ballast), stored };
}

const failuresOf = (answers: readonly Answer[]) => answers.map((answer) => (answer.done ? 'done' : answer.failure));

function sqliteError(message: string, errcode: number): Error {
  return Object.assign(new Error(message), { errcode });
}

test('carryOut: a batch is one transaction', (t) => {
  const statements: string[] = [];
  const { executor, stored } = openExecutor(t, (sql) => statements.push(sql));
  const answers = executor.carryOut(Array.from({ length: 10 }, () => createCommand(10)));
  assert.deepEqual(failuresOf(answers), Array(10).fill('done'));
  assert.deepEqual(statements, ['BEGIN IMMEDIATE', 'COMMIT']);
  assert.equal(stored(), 10);
});

test('carryOut: a command that fails by itself has no effect, and the others have theirs', (t) => {
  const { db, executor, stored } = openExecutor(t);
  const { params } = createCommand(10);
  const broken: Command = { name: 'touchPastes', params: null };
  const answers = executor.carryOut([
    { name: 'createPaste', params }, { name: 'createPaste', params }, broken, createCommand(20),
  ]);
  assert.deepEqual(failuresOf(answers), ['done', null, null, 'done']);
  const bug = answers[2]!;
  assert.ok(!bug.done && bug.error instanceof TypeError, 'a bug is told as it is, with its own stack');
  assert.equal(stored(), 2);
  assert.equal(db.isTransaction, false);
});

test('carryOut: a command in which SQLite ends the transaction is told why, and the next batch works', (t) => {
  const { db, executor, stored } = openExecutor(t);
  db.exec("CREATE TRIGGER ended BEFORE INSERT ON pastes BEGIN SELECT RAISE(ROLLBACK, 'ended here'); END");
  for (const answer of executor.carryOut([createCommand(10), createCommand(10)])) {
    assert.match(String(!answer.done && answer.error), /ended here/);
  }
  db.exec('DROP TRIGGER ended');
  assert.deepEqual([failuresOf(executor.carryOut([createCommand(10)])), stored()], [['done'], 1]);
});

test('carryOut: a commit that fails though the storage does not fails every command, and the next batch works', (t) => {
  let isBroken = true;
  const { executor, stored } = openExecutor(t, (sql) => {
    if (isBroken && sql === 'COMMIT') throw new RangeError('no commit');
  });
  for (const answer of executor.carryOut([createCommand(10), createCommand(10)])) {
    assert.equal(!answer.done && String(answer.error), 'RangeError: no commit');
  }
  isBroken = false;
  assert.deepEqual([failuresOf(executor.carryOut([createCommand(10)])), stored()], [['done'], 1]);
});

test('carryOut: where a command fails everything is undone, and done once more without it, in one transaction', (t) => {
  const statements: string[] = [];
  const { executor, stored } = openExecutor(t, (sql) => statements.push(sql));
  const { params } = createCommand(10);
  const twice: Command = { name: 'createPaste', params };
  assert.deepEqual(failuresOf(executor.carryOut([createCommand(10), twice, twice, createCommand(10)])), ['done', 'done', null, 'done']);
  assert.deepEqual(statements, ['BEGIN IMMEDIATE', 'ROLLBACK', 'BEGIN IMMEDIATE', 'COMMIT']);
  assert.equal(stored(), 3);
});

test('carryOut: a command that meets a damaged page fails alone, as the storage, and costs no commit', (t) => {
  const statements: string[] = [];
  const { executor, stored } = openExecutor(t, (sql) => statements.push(sql));
  const meeting = new Proxy([], {
    get() {
      throw sqliteError('database disk image is malformed', 11);
    },
  });
  const damaged: Command = { name: 'touchPastes', params: meeting };
  const answers = executor.carryOut([createCommand(10), damaged, createCommand(20), damaged]);
  assert.deepEqual(failuresOf(answers), ['done', 'unavailable', 'done', 'unavailable']);
  assert.equal(stored(), 2);
  const undone = ['BEGIN IMMEDIATE', 'ROLLBACK'];
  assert.deepEqual(statements, [...undone, ...undone, 'BEGIN IMMEDIATE', 'COMMIT'], 'no commit was there to overwrite');
});

test('carryOut: a failing command takes back all of its own statements', (t) => {
  const { db, executor } = openExecutor(t);
  const contentId = newId();
  executor.carryOut([{ name: 'writeChunk', params: { contentId, position: 0, bytes: patternedBytes(10), quota: null } }]);
  const taken = createCommand(10, 'taken1');
  const adopting = inlinePaste(patternedBytes(10), { id: 'taken1', content: null, contentId });
  const answers = executor.carryOut([taken, { name: 'createPaste', params: { paste: adopting, terms: NO_TERMS } }]);
  assert.deepEqual(failuresOf(answers), ['done', null]);
  assert.equal(db.prepare('SELECT count(*) AS n FROM orphans').get()?.['n'], 1, 'the content is still to be had');
});

test('writeChunk: for content that a paste has, or that was discarded, the storage fails it and nothing is written', (t) => {
  const { db, executor } = openExecutor(t);
  const chunk = (contentId: string, position: number): Command => (
    { name: 'writeChunk', params: { contentId, position, bytes: patternedBytes(10), quota: null } }
  );
  const [adopted, discarded] = [newId(), newId()];
  const paste = { ...inlinePaste(patternedBytes(10)), content: null, contentId: adopted };
  assert.deepEqual(failuresOf(executor.carryOut([
    chunk(adopted, 0), { name: 'createPaste', params: { paste, terms: NO_TERMS } },
    chunk(discarded, 0), { name: 'discardChunks', params: { contentId: discarded, limit: 8 } },
  ])), Array(4).fill('done'));
  assert.deepEqual(failuresOf(executor.carryOut([chunk(adopted, 1), chunk(discarded, 1)])), Array(2).fill('unavailable'));
  assert.equal(db.prepare('SELECT count(*) AS n FROM chunks').get()?.['n'], 1);
});

test('carryOut: with no room for one command, those that need none or little are carried out', (t) => {
  const { db, executor, stored } = openExecutor(t);
  const burning = inlinePaste(patternedBytes(10), { burnAfterRead: true });
  executor.carryOut([{ name: 'createPaste', params: { paste: burning, terms: NO_TERMS } }]);
  const pages = Number(db.prepare('PRAGMA page_count').get()?.['page_count']);
  db.exec(`PRAGMA max_page_count = ${pages + 2}`);
  const claim = { id: burning.id, passwordHash: null, nowSeconds: burning.createdAt };
  const burn: Command = { name: 'burnPaste', params: claim };
  const answers = executor.carryOut([createCommand(10), createCommand(60_000), burn, createCommand(60_000)]);
  assert.deepEqual(failuresOf(answers), ['done', 'full', 'done', 'full']);
  assert.equal(stored(), 1);
  assert.equal(db.isTransaction, false);
});

test('carryOut: when the commit fails nothing is done, and the next batch works', (t) => {
  let faults = 1;
  const executed: string[] = [];
  const { db, executor, stored } = openExecutor(t, (sql) => {
    executed.push(sql);
    if (sql === 'COMMIT' && faults-- > 0) throw sqliteError('disk I/O error', 1034);
  });
  const commands = [createCommand(10), createCommand(10)];
  const answers = executor.carryOut(commands);
  assert.deepEqual(failuresOf(answers), ['unavailable', 'unavailable']);
  for (const answer of answers) assert.match(String(!answer.done && answer.error), /disk I\/O error \(SQLite 1034\)/);
  // The failed commit may be whole in the log, so an empty one takes its place before anybody is answered.
  assert.match(executed.at(-1) ?? '', /^PRAGMA user_version = /);
  assert.equal(stored(), 0);
  assert.equal(db.isTransaction, false);
  assert.deepEqual(failuresOf(executor.carryOut(commands)), ['done', 'done']);
});

test('carryOut, carryOutAlone: what a failed commit left in the log is overwritten as soon as anything can be', (t) => {
  const executed: string[] = [];
  let isFailing = false;
  const ballast: Ballast = { isDiskShort: () => true, isLogLong: () => false, giveUp: () => false, restore: () => false };
  const { executor } = openExecutor(t, (sql) => {
    executed.push(sql.replace(/ = \d+$/, ''));
    if (isFailing && /^(?:COMMIT|PRAGMA user_version)/.test(sql)) throw sqliteError('database or disk is full', 13);
  }, ballast);
  const askedFor = (ask: () => unknown): string[] => (executed.splice(0), ask(), [...executed]);
  const restoring: Command = { name: 'restoreBallast', params: null };
  isFailing = true;
  executor.carryOut([{ name: 'removeExpired', params: { nowSeconds: 0, limit: 1, skipped: 0 } }]);
  assert.deepEqual(askedFor(() => executor.carryOut([createCommand(10)])), ['PRAGMA user_version'], 'refused for want of room');
  assert.deepEqual(askedFor(() => executor.carryOutAlone(restoring)), ['PRAGMA user_version']);
  isFailing = false;
  assert.deepEqual(askedFor(() => executor.carryOutAlone(restoring)), ['PRAGMA user_version']);
  assert.deepEqual(askedFor(() => executor.carryOutAlone(restoring)), [], 'once it is done');
});

test('carryOut: a full disk at the commit is answered command by command', (t) => {
  for (const [commands, outcomes] of [[3, ['done', 'full', 'done']], [2, ['done', 'full']]] as const) {
    let commits = 0;
    const { executor, stored } = openExecutor(t, (sql) => {
      if (sql !== 'COMMIT') return;
      commits += 1;
      if (commits === 1 || commits === 3) throw sqliteError('database or disk is full', 13);
    });
    const answers = executor.carryOut(Array.from({ length: commands }, () => createCommand(10)));
    assert.deepEqual(failuresOf(answers), outcomes);
    assert.equal(stored(), commands - 1);
  }
});

test('carryOut: a rollback that failed is made up for before the next batch', (t) => {
  let faults = 1;
  const { executor, stored } = openExecutor(t, (sql) => {
    if (sql === 'COMMIT' && faults === 1) throw sqliteError('disk I/O error', 10);
    if (sql === 'ROLLBACK' && faults-- > 0) throw sqliteError('disk I/O error', 10);
  });
  assert.deepEqual(failuresOf(executor.carryOut([createCommand(10)])), ['unavailable']);
  assert.deepEqual(failuresOf(executor.carryOut([createCommand(10)])), ['done']);
  assert.equal(stored(), 1);
});

test('carryOutAlone: runs outside a transaction, and its failure is an answer too', (t) => {
  const statements: string[] = [];
  const { executor } = openExecutor(t, (sql) => {
    statements.push(sql);
    if (sql === 'PRAGMA optimize') throw sqliteError('disk I/O error', 10);
  });
  assert.deepEqual(executor.carryOutAlone({ name: 'releasePages', params: 10 }), { done: true, value: 0 });
  assert.deepEqual(statements, ['PRAGMA incremental_vacuum(10)']);
  assert.deepEqual(failuresOf([executor.carryOutAlone({ name: 'optimize', params: null })]), ['unavailable']);
});

test('carryOut: a broken disk beside a command that fails by itself fails the others, a full one what needs room', (t) => {
  const { db, executor, stored } = openExecutor(t);
  let failure: Error | undefined;
  db.function('fault', () => {
    if (failure !== undefined) throw failure;
    return null;
  });
  db.exec('CREATE TEMP TRIGGER faulty BEFORE INSERT ON pastes WHEN new.size = 20 BEGIN SELECT fault(); END');
  const broken: Command = { name: 'touchPastes', params: null };
  const carryOut = () => failuresOf(executor.carryOut([broken, createCommand(20), createCommand(10)]));
  failure = sqliteError('disk I/O error', 10);
  assert.deepEqual(carryOut(), [null, 'unavailable', 'unavailable'], 'what a broken disk did is not known');
  assert.deepEqual([stored(), db.isTransaction], [0, false]);
  failure = sqliteError('database or disk is full', 13);
  assert.deepEqual(carryOut(), [null, 'full', 'done'], 'on a full disk each has a transaction of its own');
  assert.deepEqual([stored(), db.isTransaction], [1, false]);
  failure = undefined;
  assert.deepEqual(carryOut(), [null, 'done', 'done']);
});

test('carryOutAlone: on a full disk the room in reserve is given up for it once, and it is carried out again', (t) => {
  const statements: string[] = [];
  let isFull = true;
  let givenUp = 0;
  const giveUp = () => {
    givenUp += 1;
    isFull = givenUp > 1;
    return givenUp === 1;
  };
  const { executor } = openExecutor(t, (sql) => {
    statements.push(sql);
    if (isFull) throw sqliteError('database or disk is full', 13);
  }, { isDiskShort: () => false, isLogLong: () => false, giveUp, restore: () => false });
  const releasing: Command = { name: 'releasePages', params: 10 };
  assert.deepEqual(executor.carryOutAlone(releasing), { done: true, value: 0 });
  assert.deepEqual(statements.splice(0), Array(2).fill('PRAGMA incremental_vacuum(10)'));
  isFull = true;
  assert.deepEqual(failuresOf([executor.carryOutAlone(releasing)]), ['full'], 'there is no more to give up');
  assert.equal(statements.length, 1);
});

test('restoreBallast: whether more may be stored; where no room is kept nothing is missing', (t) => {
  const restoring: Command = { name: 'restoreBallast', params: null };
  for (const isWhole of [true, false]) {
    const { executor } = openExecutor(t, () => {}, {
      isDiskShort: () => !isWhole, isLogLong: () => false, giveUp: () => false, restore: () => isWhole,
    });
    assert.deepEqual(executor.carryOutAlone(restoring), { done: true, value: isWhole });
  }
  assert.deepEqual(openExecutor(t).executor.carryOutAlone(restoring), { done: true, value: true });
});

test('carryOut: a disk that is short of room is closed to what stores, and its reserve is for the rest', (t) => {
  let isShort = false;
  let isLong = false;
  let isGivenUp = false;
  let faults = 0;
  const { db, executor, stored } = openExecutor(t, (sql) => {
    if (sql === 'COMMIT' && faults-- > 0) throw sqliteError('database or disk is full', 13);
  }, {
    isDiskShort: () => isShort || isGivenUp,
    isLogLong: () => isLong,
    giveUp: () => !isGivenUp && (isGivenUp = true),
    restore: () => true,
  });
  const burning = inlinePaste(patternedBytes(10), { burnAfterRead: true });
  executor.carryOut([{ name: 'createPaste', params: { paste: burning, terms: NO_TERMS } }]);
  const claim = { id: burning.id, passwordHash: null, nowSeconds: burning.createdAt };
  const event = { time: 1, event: 'auth_failure', outcome: 'failure', clientId: null, clientIp: null, details: {} };
  const batch: Command[] = [{ name: 'recordAudit', params: event }, { name: 'burnPaste', params: claim }, createCommand(10)];
  isShort = true;
  faults = 1;
  assert.deepEqual(failuresOf(executor.carryOut(batch)), ['full', 'done', 'full']);
  assert.deepEqual([isGivenUp, stored(), db.prepare('SELECT count(*) AS n FROM audit').get()?.['n']], [true, 0, 0]);
  const clearing: Command = { name: 'discardChunks', params: { contentId: 'content', limit: 1 } };
  for (const [short, long, clears] of [[true, false, 'done'], [true, true, 'full'], [false, true, 'done']] as const) {
    [isShort, isGivenUp, isLong] = [short, short, long];
    assert.deepEqual(failuresOf(executor.carryOut([clearing, { name: 'burnPaste', params: claim }])), [clears, 'done']);
  }
  isShort = isGivenUp = false;
  assert.deepEqual(failuresOf(executor.carryOut(batch)), ['done', 'done', 'done']);
});
