// Work that costs a tenth of a second of CPU, a few at a time: whoever finds the queue full is told to come back.

import { clientKey } from '../core/client-key.ts';
import { Refusal } from '../core/refusals.ts';
import { WorkQueueFull, type WorkQueue } from '../limits/work-queue.ts';

/** How long the refusal takes: a flood that asks again at once would otherwise be most of what the server does. */
const REFUSAL_MS = 500;

/**
 * Carries the work out when a place is free; refuses when too many wait, or one has waited too long. Whoever it is for
 * takes turns with the others by the address that limits go by; what is for everybody has a name of its own.
 */
export async function inTurn<Result>(queue: WorkQueue, client: string, work: () => Promise<Result>): Promise<Result> {
  const leave = await enter(queue, clientKey(client));
  try {
    return await work();
  } finally {
    leave();
  }
}

async function enter(queue: WorkQueue, client: string): Promise<() => void> {
  try {
    return await queue.enter(client);
  } catch (error) {
    if (!(error instanceof WorkQueueFull)) throw error;
    await new Promise((resolve) => setTimeout(resolve, REFUSAL_MS));
    throw new Refusal('passwordQueueFull', {}, { retryAfterSeconds: 1 });
  }
}
