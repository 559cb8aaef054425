// What counts as a failure of the storage, and what as an error of the program.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import test from 'node:test';
import { openReader, prepareLookups } from '../../src/store/open.ts';
import { asStoreError, describe, failureOf, isDamage, StoreError } from '../../src/store/store.ts';
import { CREATED_AT, openTestStore, patternedBytes, storePaste } from '../support/store.ts';

function sqliteError(errcode: number): Error {
  return Object.assign(new Error('words of SQLite'), { code: 'ERR_SQLITE_ERROR', errcode });
}

test('failureOf: full is full, the condition of disk and file is unavailable, all else is the program\'s', () => {
  assert.equal(failureOf(sqliteError(13)), 'full');
  const failures = (codes: number[]) => codes.map((code) => failureOf(sqliteError(code)));
  assert.deepEqual(failures([5, 6, 7, 8, 10, 11, 14, 15, 26]), Array(9).fill('unavailable'));
  assert.deepEqual(failures([1, 18, 19, 20, 21, 25]), Array(6).fill(undefined));
});

test('failureOf: extended codes count as their primary code', () => {
  assert.equal(failureOf(sqliteError(4874)), 'unavailable', 'IOERR_SHMSIZE: a disk too full to open');
  assert.equal(failureOf(sqliteError(778)), 'unavailable', 'IOERR_WRITE');
  assert.equal(failureOf(sqliteError(2067)), undefined, 'CONSTRAINT_UNIQUE');
});

test('failureOf: what did not come from SQLite is no failure of the storage', () => {
  for (const error of [new Error('13'), new TypeError('x'), undefined, null, 13, { errcode: 13 }]) {
    assert.equal(failureOf(error), undefined);
  }
});

test('isDamage: a file that is no database, or a broken one', () => {
  const expected = [[11, true], [26, true], [267, true], [10, false], [13, false]] as const;
  for (const [code, is] of expected) {
    assert.equal(isDamage(sqliteError(code)), is, `${code}`);
    // A StoreError tells the code in its words, whatever code it may have itself.
    const wrapped = Object.assign(new StoreError('unavailable', describe(sqliteError(code))), { errcode: is ? 10 : 11 });
    assert.equal(isDamage(wrapped), is, `${code} wrapped`);
  }
  assert.equal(isDamage(new Error('of no StoreError (SQLite 11)')), false);
});

test('asStoreError: wraps a failure with its cause, and passes an error of the program on', () => {
  const cause = sqliteError(13);
  const error = asStoreError(cause);
  assert.ok(error instanceof StoreError);
  assert.equal(error.failure, 'full');
  assert.equal(error.cause, cause);
  assert.equal(error.message, 'storage full: words of SQLite (SQLite 13)');
  const bug = new TypeError('x');
  assert.equal(asStoreError(bug), bug);
});

test('the rows of counts: where a disk has lost one, pastes are read all the same', async (t) => {
  const { path, store } = await openTestStore(t);
  const { id } = await storePaste(store, patternedBytes(10));
  using other = new DatabaseSync(path, { timeout: 5000 });
  other.exec('DELETE FROM removals; DELETE FROM revocations');
  assert.equal((await store.pastes.find(id, CREATED_AT))?.size, 10);
  assert.ok(Number.isNaN(await store.read.revokedCount()));
  const reopened = openReader(path, prepareLookups);
  assert.ok(Number.isNaN(reopened.countRemovals()));
  reopened.close();
});

test('describe: the words, with the code where there is one', () => {
  assert.equal(describe(sqliteError(1034)), 'words of SQLite (SQLite 1034)');
  assert.equal(describe(new Error('other')), 'other');
  assert.equal(describe('thrown text'), 'thrown text');
});
