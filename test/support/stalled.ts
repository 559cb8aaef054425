// Waits until a transfer within this process has come to rest.

import { setImmediate, setTimeout } from 'node:timers/promises';

const REST_MS = 100;

/** Turns of the event loop: a busy machine may do little in REST_MS, but in so many turns all that can go on does. */
const REST_TURNS = 200;

/** Resolves when the number has not changed for a while. */
export async function stalled(read: () => number): Promise<void> {
  for (let before = -1; before !== read();) {
    before = read();
    await setTimeout(REST_MS);
    for (let turn = 0; turn < REST_TURNS && before === read(); turn += 1) await setImmediate();
  }
}
