// Passwords of pastes: hashing and checking within a bounded number of CPU-heavy jobs, and answering for unknown ids as
// slowly as for wrong passwords. Does not know how pastes are stored. The decisions' section "Limits" is the source.

import { clientKey } from '../core/callers.ts';
import { Refusal } from '../core/refusals.ts';
import { andThen, type Awaitable, type Clock, type RandomBytes } from '../core/time.ts';
import { decoyHash, hashPassword, verifyPassword } from '../crypto/passwords.ts';
import { type WorkQueue, WorkQueueFull } from '../limits/work-queue.ts';

/** Code points; the contract's limit. */
export const MAX_PASSWORD_LENGTH = 1024;

/** A host that was suspended during a check must not make everyone wait for as long. */
const MOST_PRETENCE_MS = 500;

/** How many recent checks the running median is taken over; odd, so that it is one of them. */
const MEDIAN_OF = 15;

export interface Passwords {
  /** Refuses a password that is too long. */
  requireAcceptable(password: string | undefined): void;
  /** The text to store for a new password. Refuses when too many jobs wait. */
  hash(password: string, clientAddress: string): Promise<string>;
  /**
   * Finds what a password opens. The place in the queue is taken before the lookup and an unknown id is checked against
   * a decoy, so that neither shedding nor time tells whether something exists.
   */
  unlock<Found extends { readonly passwordHash: string | null }>(
    find: () => Awaitable<Found | undefined>,
    password: string | undefined,
    clientAddress: string,
  ): Awaitable<Found>;
}

/**
 * Begins with one check, measured, so that the first unknown id is answered as slowly as any; unless `checkMs` says how
 * long it takes.
 */
export function createPasswords(parts: {
  queue: WorkQueue;
  clock: Clock;
  random: RandomBytes;
  checkMs?: number | undefined;
}): Passwords {
  const { queue, clock, random, checkMs } = parts;
  const decoy = decoyHash(random);
  const recentMs: number[] = checkMs === undefined ? [] : [checkMs];

  async function timedVerify(password: string, stored: string): Promise<boolean> {
    const startedMs = clock.monotonicMs();
    const matches = await verifyPassword(password, stored);
    recentMs.push(clock.monotonicMs() - startedMs);
    if (recentMs.length > MEDIAN_OF) recentMs.shift();
    return matches;
  }

  function requireAcceptable(password: string | undefined): void {
    if (password === undefined || password.length <= MAX_PASSWORD_LENGTH) return;
    if ([...password].length > MAX_PASSWORD_LENGTH) throw new Refusal('passwordTooLong');
  }

  async function hash(password: string, clientAddress: string): Promise<string> {
    requireAcceptable(password);
    return inTurn(queue, clientAddress, () => hashPassword(password, random));
  }

  function unlock<Found extends { readonly passwordHash: string | null }>(
    find: () => Awaitable<Found | undefined>,
    password: string | undefined,
    clientAddress: string,
  ): Awaitable<Found> {
    requireAcceptable(password);
    if (password === undefined) return andThen(find(), requireOpen);
    return inTurn(queue, clientAddress, async () => {
      const found = await find();
      if (found !== undefined && found.passwordHash === null) return found;
      const matches = await timedVerify(password, found?.passwordHash ?? decoy);
      if (found === undefined) throw new Refusal('pasteNotFound');
      if (!matches) throw new Refusal('passwordInvalid');
      return found;
    });
  }

  function requireOpen<Found extends { readonly passwordHash: string | null }>(
    found: Found | undefined,
  ): Awaitable<Found> {
    if (found === undefined) return refuseUnknown();
    if (found.passwordHash !== null) throw new Refusal('passwordRequired', { passwordProtected: true });
    return found;
  }

  /** After as long as a wrong password takes. */
  async function refuseUnknown(): Promise<never> {
    await firstCheck;
    await new Promise((resolve) => setTimeout(resolve, Math.min(median(recentMs), MOST_PRETENCE_MS)));
    throw new Refusal('pasteNotFound');
  }

  const firstCheck = checkMs === undefined ? timedVerify('', decoy) : undefined;
  return { requireAcceptable, hash, unlock };
}

/** Of at least one value. */
function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[sorted.length >> 1]!;
}

// Work that costs a tenth of a second of CPU, a few at a time: whoever finds the queue full is told to come back.

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
