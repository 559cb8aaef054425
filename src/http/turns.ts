// Whose turn it is to go on with a large transfer: so many in one turn of the event loop, in the order asked for. A
// socket gives or takes megabytes without a pause; many of them at once would keep everyone else waiting for seconds.

import { KIB } from '../core/time.ts';

export interface Turns {
  /** Resolves when the next TURN_BYTES may be moved: at once, unless others have had this turn of the event loop. */
  wait(): Promise<void> | undefined;
  /** Whether others wait: then whoever moves something should not go on for long. */
  areAwaited(): boolean;
}

/** As much as the store reads or writes at once. */
export const TURN_BYTES = 256 * KIB;

/** `atOnce` transfers are moved in one turn of the event loop. */
export function createTurns(atOnce: number): Turns {
  const waiting: (() => void)[] = [];
  let left = atOnce;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      left = atOnce;
      for (const resolve of waiting.splice(0, atOnce)) {
        left -= 1;
        resolve();
      }
      if (waiting.length > 0) schedule();
    });
  }

  return {
    wait: () => {
      schedule();
      if (left > 0) {
        left -= 1;
        return undefined;
      }
      return new Promise((resolve) => waiting.push(resolve));
    },
    areAwaited: () => waiting.length > 0,
  };
}
