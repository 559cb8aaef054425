// The writer thread: owns the only writing connection, and does what the messages say, one at a time. Its other end is
// writer.ts.

import { parentPort, workerData } from 'node:worker_threads';

import { createExecutor } from './batch.ts';
import { openWriting } from './connection.ts';
import { describe, failureOf } from './failures.ts';
import type { Report, Request, WriterSetup } from './protocol.ts';
import { DatabaseRefusedError } from './store.ts';

function serve(): void {
  const port = parentPort;
  if (port === null) throw new Error('this module is for a worker thread');
  const report = (message: Report) => port.postMessage(message);
  const { path } = workerData as WriterSetup;

  let db;
  try {
    db = openWriting(path);
  } catch (error) {
    report(refusal(error));
    return;
  }
  const executor = createExecutor(db);
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

/** A class does not survive the way to the other thread. */
function refusal(error: unknown): Report {
  const failure = error instanceof DatabaseRefusedError ? 'refused' : failureOf(error);
  if (failure === undefined) throw error;
  return { kind: 'refused', failure, message: describe(error) };
}

serve();
