// Access times on their way to the database, in batches: a lookup must not cost a commit. Nothing depends on them, so a
// failure loses them.

import type { Log } from '../core/log.ts';
import { describe } from './failures.ts';
import type { Access } from './pastes.ts';

const FLUSH_AFTER_MS = 5000;

/** Beyond that no access is noted until the batch under way is through. */
export const MAX_TOUCHES = 10_000;

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

  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    flushing = flushing.then(() => {
      const accesses = Array.from(noted, ([id, atSeconds]) => ({ id, atSeconds }));
      noted.clear();
      return writeSteps(accesses);
    });
    return flushing;
  }

  return {
    note(id, atSeconds) {
      const isNew = !noted.has(id);
      if (closed || (isNew && noted.size >= MAX_TOUCHES)) return;
      noted.set(id, atSeconds);
      if (isNew && noted.size === MAX_TOUCHES) void flush();
      else timer ??= setTimeout(() => void flush(), FLUSH_AFTER_MS).unref();
    },
    close() {
      closed = true;
      return flush();
    },
  };
}
