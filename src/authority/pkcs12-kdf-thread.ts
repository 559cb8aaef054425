// Key derivation for bundles off the serving thread: one worker thread, started when first needed, and a bounded queue
// before it. node:crypto has no asynchronous form of this derivation, as it has of PBKDF2.

import { Worker } from 'node:worker_threads';
import type { DeriveKeys, KdfRequest } from './pkcs12.ts';

export interface KdfThread {
  /** All the requests are one job. Rejects with KdfQueueFull at once when too many jobs wait, KdfClosed after close. */
  readonly derive: DeriveKeys;
  /** Ends the thread; jobs that are not done reject with KdfClosed. */
  readonly close: () => Promise<void>;
}

export class KdfQueueFull extends Error {
  override readonly name = 'KdfQueueFull';
}

export class KdfClosed extends Error {
  override readonly name = 'KdfClosed';
}

type Derived = Readonly<Record<string, Uint8Array>>;

interface Job {
  /** Iterations in all: how long it takes. */
  readonly cost: number;
  readonly requests: Readonly<Record<string, KdfRequest>>;
  readonly resolve: (derived: Derived) => void;
  readonly reject: (reason: Error) => void;
}

/** The worker beside this file, which is TypeScript in a checkout and JavaScript in a build. */
const WORKER_URL = new URL(import.meta.url.replace(/pkcs12-kdf-thread(\.[jt]s)$/, 'pkcs12-kdf-worker$1'));

/** At most `maxWaiting` jobs wait while one runs. An idle thread does not keep the process alive; a job does. */
export function createKdfThread(maxWaiting: number): KdfThread {
  const waiting: Job[] = [];
  let running: Job | undefined;
  let worker: Worker | undefined;
  let closed = false;

  function start(): Worker {
    // The environment holds secrets, which are none of the thread's business.
    const started = new Worker(WORKER_URL, { name: 'key derivation', env: {} });
    started.on('message', (derived: Derived) => {
      running?.resolve(derived);
      runNext();
    });
    started.on('error', (error: Error) => lose(started, error));
    started.on('exit', () => lose(started, new Error('key derivation thread ended')));
    return started;
  }

  /** The quickest first: the milliseconds of an empty password don't wait for the seconds of others. */
  function enqueue(job: Job): void {
    const slower = waiting.findIndex(({ cost }) => cost > job.cost);
    waiting.splice(slower === -1 ? waiting.length : slower, 0, job);
  }

  function runNext(): void {
    running = waiting.shift();
    if (running === undefined) {
      worker?.unref();
      return;
    }
    worker ??= start();
    worker.ref();
    worker.postMessage(running.requests);
  }

  /** The job that ended the thread fails; those behind it get a new thread. */
  function lose(lost: Worker, error: Error): void {
    if (worker !== lost) return;
    worker = undefined;
    running?.reject(error);
    runNext();
  }

  return {
    derive(requests) {
      if (closed) return Promise.reject(new KdfClosed('key derivation is closed'));
      if (running !== undefined && waiting.length >= maxWaiting) {
        return Promise.reject(new KdfQueueFull('too many bundles are being made'));
      }
      return new Promise((resolve, reject) => {
        // Before the job is queued: should no thread start, this call rejects and nothing is left behind.
        worker ??= start();
        enqueue({ cost: costOf(requests), requests, resolve, reject });
        if (running === undefined) runNext();
      });
    },
    async close() {
      closed = true;
      const unfinished = [running, ...waiting.splice(0)];
      running = undefined;
      const ended = worker?.terminate();
      worker = undefined;
      for (const job of unfinished) job?.reject(new KdfClosed('key derivation is closed'));
      await ended;
    },
  };
}

function costOf(requests: Readonly<Record<string, KdfRequest>>): number {
  return Object.values(requests).reduce((sum, { iterations }) => sum + iterations, 0);
}
