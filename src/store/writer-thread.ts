// The writer thread: owns the only writing connection, and does what the messages say, one at a time. The other end of
// the messages is writer.ts.

import type { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { type Ballast, createBallast } from './ballast.ts';
import { createExecutor, type Executor } from './batch.ts';
import type { Report, Request, WriterSetup } from './commands.ts';
import { openWriting } from './connection.ts';
import { DatabaseRefusedError, describe, failureOf, isOutOfRoom } from './failures.ts';

function serve(): void {
  const port = parentPort;
  if (port === null) throw new Error('this module is for a worker thread');
  const report = (message: Report) => port.postMessage(message);
  const { path, keepsBallast } = workerData as WriterSetup;

  let db: DatabaseSync;
  let executor: Executor;
  try {
    const ballast = keepsBallast ? createBallast(path) : undefined;
    db = openWithRoom(path, ballast);
    executor = createExecutor(db, ballast);
  } catch (error) {
    report(refusal(error));
    return;
  }
  // Anything thrown from here on is an error of the program: it ends the thread, and the other end says so.
  port.on('message', (request: Request) => {
    switch (request.kind) {
      case 'batch':
        return report({ kind: 'answers', answers: executor.carryOut(request.commands) });
      case 'alone':
        return report({ kind: 'answers', answers: [executor.carryOutAlone(request.command)] });
      case 'close':
        // To close truncates the log only where no other process looks at the database.
        executor.carryOutAlone({ name: 'truncateWal', params: null });
        db.close();
        return port.close();
    }
  });
  report({ kind: 'opened' });
}

function openWithRoom(path: string, ballast: Ballast | undefined): DatabaseSync {
  try {
    return openWriting(path);
  } catch (error) {
    if (!isOutOfRoom(error) || ballast?.giveUp() !== true) throw error;
    return openWriting(path);
  }
}

/** A class does not survive the way to the other thread. */
function refusal(error: unknown): Report {
  const failure = error instanceof DatabaseRefusedError ? 'refused' : failureOf(error);
  if (failure === undefined) throw error;
  return { kind: 'refused', failure, message: describe(error) };
}

serve();
