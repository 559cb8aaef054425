// Removes the chunks of orphaned content in steps, one content at a time, so that other writes come in between. That a
// content may go now, since nobody reads it, is content-store.ts's knowledge.

import type { Log } from '../core/log.ts';
import { describe } from './failures.ts';

export interface Discards {
  /** Resolves when nothing is left, or after a failure: what remains is tried again by the next call or start. */
  add(contentIds: readonly string[]): Promise<void>;
}

/** `step` removes some chunks of one content and says whether it is gone. */
export function createDiscards(step: (contentId: string) => Promise<boolean>, log: Log): Discards {
  const waiting = new Set<string>();
  let running: Promise<void> | undefined;

  /** Its last step and `running = undefined` are one turn: what is added after it begins a run of its own. */
  async function run(): Promise<void> {
    try {
      for (const contentId of waiting) await discard(contentId);
    } catch (error) {
      const details = { reason: describe(error), waiting: waiting.size };
      log({ level: 'warning', logger: 'store', event: 'content not removed', outcome: 'failure', details });
    } finally {
      running = undefined;
    }
  }

  async function discard(contentId: string): Promise<void> {
    try {
      while (!(await step(contentId)));
      waiting.delete(contentId);
    } catch (error) {
      // To the end of the row, so that one content that can't be removed does not keep the others.
      waiting.delete(contentId);
      waiting.add(contentId);
      throw error;
    }
  }

  return {
    add(contentIds) {
      for (const contentId of contentIds) waiting.add(contentId);
      // A run without anything to do would be over before it is noted here.
      if (waiting.size > 0) running ??= run();
      return running ?? Promise.resolve();
    },
  };
}
