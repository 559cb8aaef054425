// The thread that copies a database: one request, one report. What is copied and how is backup.ts.

import { parentPort, workerData } from 'node:worker_threads';
import { copyDatabase, type CopyReport, type CopyRequest } from './backup.ts';
import { DatabaseRefusedError, StoreError } from './failures.ts';

function report(): CopyReport {
  try {
    return { kind: 'copied', copied: copyDatabase(workerData as CopyRequest) };
  } catch (error) {
    // A class does not survive the way to the other thread.
    if (error instanceof DatabaseRefusedError) return { kind: 'refused', failure: 'refused', message: error.message };
    if (error instanceof StoreError) return { kind: 'refused', failure: error.failure, message: error.message };
    throw error;
  }
}

parentPort?.postMessage(report());
