// Carries out commands on the writing connection: many in one transaction, in which each has its whole effect or none.
// That this happens on a thread of its own is writer-thread.ts.

import type { DatabaseSync } from 'node:sqlite';
import type { Ballast } from './ballast.ts';
import { type Answer, type Command, NEEDS_ROOM, prepareCommands } from './commands.ts';
import { describe, failureOf } from './failures.ts';

export interface Executor {
  /** One answer for each command. What is answered as done is durable by then. */
  carryOut(commands: readonly Command[]): Answer[];
  carryOutAlone(command: Command): Answer;
}

/** Without a ballast, a full disk is what it is. */
export function createExecutor(db: DatabaseSync, ballast?: Ballast): Executor {
  const commands = prepareCommands(db, ballast);
  const savepoint = db.prepare('SAVEPOINT command');
  const release = db.prepare('RELEASE command');
  const rollBack = db.prepare('ROLLBACK TO command');

  function run(command: Command): Answer {
    // The writer's types hold name and params together; a message does not.
    const carry = commands[command.name] as (params: unknown) => unknown;
    return { done: true, value: carry(command.params) };
  }

  function runInSavepoint(command: Command): Answer {
    savepoint.run();
    try {
      const answer = run(command);
      release.run();
      return answer;
    } catch (error) {
      // A failure of the storage may have ended the whole transaction, and leaves nothing to go on with.
      if (failureOf(error) !== undefined || !db.isTransaction) throw error;
      rollBack.run();
      release.run();
      return failed(error);
    }
  }

  /**
   * Savepoints cost a seventh of the writing of chunks, and hardly any command ever throws: only when one did is
   * everything undone and carried out again, apart from each other. A failure of the storage is thrown.
   */
  function inTransaction(batch: readonly Command[]): Answer[] {
    try {
      return inTransactionBy(run, batch);
    } catch (error) {
      if (failureOf(error) !== undefined) throw error;
      return inTransactionBy(runInSavepoint, batch);
    }
  }

  function inTransactionBy(carry: (command: Command) => Answer, batch: readonly Command[]): Answer[] {
    if (db.isTransaction) db.exec('ROLLBACK');
    db.exec('BEGIN IMMEDIATE');
    try {
      const answers = batch.map(carry);
      db.exec('COMMIT');
      return answers;
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      if (failureOf(error) !== undefined) overwriteFailed();
      throw error;
    }
  }

  /**
   * A commit that failed when it was synced is whole in the log, and whoever opens the database after a crash takes it
   * for one that succeeded (https://sqlite.org/walformat.html#recovery): a commit of nothing takes its place.
   */
  function overwriteFailed(): void {
    try {
      commands.probe(null);
    } catch {
      // Where nothing can be written at all, the next commit that can be takes its place.
    }
  }

  function carryOut(batch: readonly Command[]): Answer[] {
    return ballast?.isDiskShort() === true ? carryOutSparingly(batch) : attempt(batch);
  }

  /** What room there is left is for what removes content. */
  function carryOutSparingly(batch: readonly Command[]): Answer[] {
    const spared = batch.filter(({ name }) => !NEEDS_ROOM.has(name));
    const answers = spared.length === 0 ? [] : attempt(spared);
    return batch.map(({ name }) => (NEEDS_ROOM.has(name) ? NO_ROOM : answers.shift()!));
  }

  function attempt(batch: readonly Command[]): Answer[] {
    try {
      return inTransaction(batch);
    } catch (error) {
      if (failureOf(error) === 'full' && ballast?.giveUp() === true) return carryOutSparingly(batch);
      return carryOutApart(batch, error);
    }
  }

  function carryOutApart(batch: readonly Command[], error: unknown): Answer[] {
    // One command too large must not fail those beside it that need no room: each gets a transaction of its own.
    const separable = batch.length > 1 && failureOf(error) === 'full';
    return separable ? batch.flatMap((command) => attempt([command])) : batch.map(() => failed(error));
  }

  function carryOutAlone(command: Command): Answer {
    try {
      return run(command);
    } catch (error) {
      return failureOf(error) === 'full' && ballast?.giveUp() === true ? carryOutAlone(command) : failed(error);
    }
  }
  return { carryOut, carryOutAlone };
}

const NO_ROOM: Answer = { done: false, failure: 'full', error: new Error('the disk is full') };

/** An error of the program crosses as it is; one of SQLite would lose its code, so the code goes into the words. */
function failed(error: unknown): Answer {
  const failure = failureOf(error) ?? null;
  return { done: false, failure, error: failure === null ? error : new Error(describe(error)) };
}
