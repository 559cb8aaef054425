// Where commands wait for the writer thread, and which of them go together. What commands do is with their nouns.

import { MIB } from '../core/time.ts';
import type { Lane } from './commands.ts';

/** More commits in one transaction gain little, and make the first of them wait for the last. */
export const MAX_BATCH_COMMANDS = 256;

/** Content in one transaction; a small write waits for that of two at most. A single command may carry more. */
export const MAX_BATCH_BYTES = 2 * MIB;

export interface Queued {
  readonly lane: Lane;
  /** Bytes of content that the command writes or clears. */
  readonly bytes: number;
}

export interface Queue<Entry extends Queued> {
  /** How many wait. */
  readonly length: number;
  /** How many of them are of the lane `prompt`. */
  readonly prompt: number;
  add(entry: Entry): void;
  /** What goes next: either one entry of the lane `alone`, or a batch without any; nothing when nothing waits. */
  take(): Entry[];
  /** Everything, in no order. */
  takeAll(): Entry[];
}

/**
 * Each lane keeps its order. `prompt` goes before `bulk`; at least one of `bulk` goes with every batch, and `alone` has
 * every second turn, so no lane waits for ever.
 */
export function createQueue<Entry extends Queued>(): Queue<Entry> {
  const lanes: Record<Lane, Entry[]> = { prompt: [], bulk: [], alone: [] };
  let lastWasAlone = false;

  function takeBatch(): Entry[] {
    const batch: Entry[] = [];
    let bytes = 0;
    const fill = (waiting: Entry[], minimum: number) => {
      let count = 0;
      for (const entry of waiting) {
        const fits = batch.length < MAX_BATCH_COMMANDS && bytes + entry.bytes <= MAX_BATCH_BYTES;
        if (!fits && count >= minimum) break;
        batch.push(entry);
        bytes += entry.bytes;
        count += 1;
      }
      waiting.splice(0, count);
    };
    fill(lanes.prompt, 1);
    fill(lanes.bulk, 1);
    return batch;
  }

  return {
    get length() {
      return lanes.prompt.length + lanes.bulk.length + lanes.alone.length;
    },
    get prompt() {
      return lanes.prompt.length;
    },
    add: (entry) => lanes[entry.lane].push(entry),
    take() {
      const othersWait = lanes.prompt.length + lanes.bulk.length > 0;
      lastWasAlone = lanes.alone.length > 0 && !(lastWasAlone && othersWait);
      return lastWasAlone ? lanes.alone.splice(0, 1) : takeBatch();
    },
    takeAll: () => Object.values(lanes).flatMap((waiting) => waiting.splice(0)),
  };
}
