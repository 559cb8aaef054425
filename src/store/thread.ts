// What the store's threads do: one carries out what writer.ts asks, the other copies a database for a backup.

import type { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { Copied, CopyRequest } from './backup.ts';
import { type Answer, Executor, type FirstReport, type Report, type Request, type ThreadRefusal } from './batch.ts';
import { type Ballast, createBallast, failureAt, openWriting } from './database.ts';
import { DatabaseRefusedError, describe, StoreError } from './store.ts';

const port = parentPort;
if (port === null) throw new Error('this module is for a worker thread');
const task = workerData as CopyRequest | null;
if (task === null) port.once('message', write);
else port.postMessage(await copy(task));

function write(path: string): void {
  const report = (message: Report) => port!.postMessage(message);
  const answer = (answers: readonly Answer[]) => report({ kind: 'answers', answers });
  let db: DatabaseSync;
  let executor: Executor;
  try {
    const ballast = createBallast(path);
    db = openWithRoom(path, ballast);
    executor = new Executor(db, ballast);
  } catch (error) {
    return report(refusal(error, path));
  }
  // Anything thrown from here on is an error of the program: it ends the thread, and the serving thread logs that.
  port!.on('message', (request: Request) => {
    if (request.kind === 'batch') return answer(executor.carryOut(request.commands));
    if (request.kind === 'alone') return answer([executor.carryOutAlone(request.command)]);
    // Closing alone truncates the log only if no other process has the database open.
    executor.carryOutAlone({ name: 'truncateWal', params: null });
    db.close();
    port!.close();
  });
  report({ kind: 'done', given: null });
}

function openWithRoom(path: string, ballast: Ballast): DatabaseSync {
  try {
    return openWriting(path);
  } catch (error) {
    if (failureAt(path, error) !== 'full' || !ballast.giveUp()) throw error;
    return openWriting(path);
  }
}

/** Only a backup needs backup.ts, so it is loaded here. */
async function copy([from, to]: CopyRequest): Promise<FirstReport<Copied>> {
  const { copyDatabase } = await import('./backup.ts');
  try {
    return { kind: 'done', given: copyDatabase(from, to) };
  } catch (error) {
    return refusal(error, to);
  }
}

function refusal(error: unknown, path: string): ThreadRefusal {
  const message = describe(error);
  if (error instanceof DatabaseRefusedError) return { kind: 'refused', failure: 'refused', message };
  if (error instanceof StoreError) return { kind: 'refused', failure: error.failure, message };
  const failure = failureAt(path, error);
  if (failure === undefined) throw error;
  return { kind: 'refused', failure, message: failure === 'full' ? `no room on its disk: ${message}` : message };
}
