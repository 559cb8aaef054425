// Access times on their way to the database, in batches: a lookup must not cost a commit. Nothing depends on them, so a
// failure loses them.

import type { Log } from '../core/log.ts';
import { describe } from './failures.ts';
import type { Access } from './pastes.ts';

const FLUSH_AFTER_MS = 5000;

/** Beyond that no access is noted until some are written. */
export const MAX_TOUCHES = 10_000;

/**
 * Written in FLUSH_AFTER_MS, the oldest first; the rest waits. Rows that lie all over a large file cost many times what
 * the reads cost that they tell of, and would keep the writer busy without a pause.
 */
export const BATCH_TOUCHES = 2048;

/** Rows in one command, each read whole from its pages: 16 MiB at the worst. */
const STEP_ROWS = 256;

export interface Touches {
  note(id: string, atSeconds: number): void;
  /** Takes no more; resolves when all that was noted is written, or has failed and been logged. */
  close(): Promise<void>;
}

export function createTouches(write: (accesses: readonly Access[]) => Promise<void>, log: Log): Touches {
  const noted = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  /** Since the last batch, until the timer fires. */
  let resting = false;
  let flushing = Promise.resolve();
  let closed = false;

  async function writeSteps(accesses: readonly Access[]): Promise<void> {
    try {
      for (let start = 0; start < accesses.length; start += STEP_ROWS) {
        await write(accesses.slice(start, start + STEP_ROWS));
      }
    } catch (error) {
      const details = { reason: describe(error), accesses: accesses.length };
      log({ level: 'warning', logger: 'store', event: 'access times lost', outcome: 'failure', details });
    }
  }

  function startTimer(): NodeJS.Timeout {
    return setTimeout(() => {
      resting = false;
      timer = undefined;
      if (noted.size > 0) void flush();
    }, FLUSH_AFTER_MS).unref();
  }

  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = closed ? undefined : startTimer();
    resting = true;
    flushing = flushing.then(() => {
      const accesses = Array.from(noted, ([id, atSeconds]) => ({ id, atSeconds }));
      const batch = closed ? accesses : accesses.slice(0, BATCH_TOUCHES);
      for (const { id } of batch) noted.delete(id);
      return writeSteps(batch);
    });
    return flushing;
  }

  return {
    note(id, atSeconds) {
      const isNew = !noted.has(id);
      if (closed || (isNew && noted.size >= MAX_TOUCHES)) return;
      noted.set(id, atSeconds);
      if (isNew && noted.size === MAX_TOUCHES && !resting) void flush();
      else timer ??= startTimer();
    },
    close() {
      closed = true;
      return flush();
    },
  };
}
