// Carries out commands on the writing connection: many in one transaction, each in a savepoint of its own. Knows no
// threads.

import type { DatabaseSync } from 'node:sqlite';

import { prepareCommands } from './commands.ts';
import { describe, failureOf } from './failures.ts';
import type { Answer, Command } from './protocol.ts';

export interface Executor {
  /** One answer for each command. What is answered as done is durable by then. */
  carryOut(commands: readonly Command[]): Answer[];
  carryOutAlone(command: Command): Answer;
}

export function createExecutor(db: DatabaseSync): Executor {
  const commands = prepareCommands(db);
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

  function inTransaction(batch: readonly Command[]): Answer[] {
    if (db.isTransaction) db.exec('ROLLBACK');
    db.exec('BEGIN IMMEDIATE');
    try {
      const answers = batch.map(runInSavepoint);
      db.exec('COMMIT');
      return answers;
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      throw error;
    }
  }

  function carryOut(batch: readonly Command[]): Answer[] {
    try {
      return inTransaction(batch);
    } catch (error) {
      // One command too large must not fail those beside it that need no room: each is tried in a transaction of its
      // own.
      const separable = batch.length > 1 && failureOf(error) === 'full';
      return separable ? batch.flatMap((command) => carryOut([command])) : batch.map(() => failed(error));
    }
  }

  function carryOutAlone(command: Command): Answer {
    try {
      return run(command);
    } catch (error) {
      return failed(error);
    }
  }
  return { carryOut, carryOutAlone };
}

/** An error of the program crosses as it is; one of SQLite would lose its code, so the code goes into the words. */
function failed(error: unknown): Answer {
  const failure = failureOf(error) ?? null;
  return { done: false, failure, error: failure === null ? error : new Error(describe(error)) };
}
