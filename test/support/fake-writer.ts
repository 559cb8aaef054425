// A writer whose thread is the test: the test sees every request and decides how it is answered.

import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { LogEntry } from '../../src/core/events.ts';
import type { Answer, Report, Request } from '../../src/store/batch.ts';
import { StoreError } from '../../src/store/store.ts';
import { Writer } from '../../src/store/writer.ts';
import { movableClock } from './clock.ts';

/** A writer whose thread hands every request to the test and sends back what the test answers. */
export async function openFake(t: TestContext) {
  const echo = `
    const { parentPort } = require('node:worker_threads');
    parentPort.on('message', (message) => parentPort.postMessage(message));`;
  const thread = new Worker(echo, { eval: true });
  await once(thread, 'online');
  t.after(() => thread.terminate());
  const clock = movableClock();
  const logged: LogEntry[] = [];
  const requests: Request[] = [];
  let arrived = Promise.withResolvers<void>();
  thread.on('message', (message: Request | Report) => {
    if (message.kind === 'answers') return;
    requests.push(message as Request);
    arrived.resolve();
    arrived = Promise.withResolvers();
  });
  const writer = new Writer(thread, clock, (entry) => logged.push(entry));
  return {
    writer,
    clock,
    logged,
    thread,
    requests,
    /** Resolves when the thread has been sent one more request. */
    next: () => arrived.promise,
    answer: (answers: readonly Answer[]) => thread.emit('message', { kind: 'answers', answers }),
  };
}

export const DONE: Answer = { done: true, value: undefined };
export const FAILED: Answer = { done: false, failure: 'unavailable', error: new Error('disk I/O error') };

/** The parameters of burnPaste. */
export const burning = { id: 'a', passwordHash: null, nowSeconds: 1 };

export const isUnavailable = (error: unknown) => error instanceof StoreError && error.failure === 'unavailable';
