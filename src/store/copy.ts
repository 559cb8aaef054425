// A verified copy of a database that others may be writing to. Where it goes and what it is for: backup.ts. The thread
// that it is made on: copy-thread.ts.

import { Worker } from 'node:worker_threads';

import { openReading, openWhole } from './connection.ts';
import { asStoreError } from './failures.ts';
import { fileBytes, syncFile } from './file.ts';
import { DatabaseRefusedError, StoreError } from './store.ts';
import type { StoreFailure } from './store.ts';
import { damageOf, holdingsOf, strangenessOf } from './verify.ts';
import type { Holdings } from './verify.ts';

export interface Copied extends Holdings {
  /** Of the copy. */
  readonly bytes: number;
}

/** What the thread is started with. */
export interface CopyRequest {
  readonly from: string;
  /** An empty file, which has the permissions that the copy is to have. */
  readonly to: string;
}

export type CopyReport =
  | { readonly kind: 'copied'; readonly copied: Copied }
  | { readonly kind: 'refused'; readonly failure: StoreFailure | 'refused'; readonly message: string };

/**
 * One consistent moment of the database, durable when this returns. VACUUM INTO holds one snapshot, so that writers
 * beside it neither wait nor make it begin again, and copies rows, not pages: nothing of removed content comes along.
 * Throws DatabaseRefusedError when it is not ours or the copy is not sound, and StoreError.
 */
export function copyDatabase({ from, to }: CopyRequest): Copied {
  try {
    copyRows(from, to);
    syncFile(to);
    return { ...verified(from, to), bytes: fileBytes(to) };
  } catch (error) {
    throw asStoreError(error);
  }
}

function copyRows(from: string, to: string): void {
  const db = openWhole(from, 'writable');
  try {
    const strangeness = strangenessOf(db);
    if (strangeness !== undefined) throw new DatabaseRefusedError(`the database ${from} ${strangeness}`);
    db.prepare('VACUUM INTO :to').run({ to });
  } finally {
    db.close();
  }
}

function verified(from: string, to: string): Holdings {
  const copy = openReading(to);
  try {
    const [damage] = damageOf(copy, 'full');
    if (damage !== undefined) throw new DatabaseRefusedError(`the database ${from} is damaged: ${damage}`);
    return holdingsOf(copy);
  } finally {
    copy.close();
  }
}

/** The same on a thread of its own. It can't be interrupted: who cannot wait for it ends the process. */
export async function copyOnThread(request: CopyRequest): Promise<Copied> {
  const options = { name: 'store copy', workerData: request, env: {} };
  const worker = new Worker(new URL('./copy-thread.ts', import.meta.url), options);
  const report = await new Promise<CopyReport>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', () => reject(new StoreError('unavailable', 'the copying thread ended early')));
  });
  if (report.kind === 'copied') return report.copied;
  if (report.failure === 'refused') throw new DatabaseRefusedError(report.message);
  throw new StoreError(report.failure, report.message);
}
