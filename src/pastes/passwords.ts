// Passwords of pastes: hashed and checked a few at a time, and unknown ids answered as slowly as wrong passwords. The
// decisions' section "Limits" is the source.

import { clientKey } from '../core/callers.ts';
import { Refusal } from '../core/refusals.ts';
import { andThen, type Awaitable, type Clock, type RandomBytes } from '../core/time.ts';
import { decoyHash, hashPassword, verifyPassword } from '../crypto/passwords.ts';
import { type WorkQueue, WorkQueueFull } from '../limits/work-queue.ts';

/** Code points; the contract's limit. */
export const MAX_PASSWORD_LENGTH = 1024;

/** If the host is suspended during a check, unknown ids must not wait for as long. */
const MAX_DECOY_DELAY_MS = 500;

/** The running median is taken over so many checks; odd, so that it is one of them. */
const MEDIAN_OF = 15;

/** How long a full queue takes to say so; else clients that ask again at once would be most of the work. */
const REFUSAL_MS = 500;

/** What a password can protect. */
interface Lockable {
  readonly passwordHash: string | null;
}

interface PasswordParts {
  readonly queue: WorkQueue;
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** How long a check takes here. When not given, the first check is made and measured at once. */
  readonly checkMs?: number | undefined;
}

export class Passwords {
  readonly #parts: PasswordParts;
  readonly #decoy: string;
  readonly #recentMs: number[];
  readonly #firstCheck: Promise<boolean> | undefined;

  constructor(parts: PasswordParts) {
    const { random, checkMs } = parts;
    this.#parts = parts;
    this.#decoy = decoyHash(random);
    this.#recentMs = checkMs === undefined ? [] : [checkMs];
    this.#firstCheck = checkMs === undefined ? this.#timedVerify('', this.#decoy) : undefined;
  }

  /** The text to store for a new password. Refuses one that is too long, and when too many checks wait. */
  async hash(password: string, clientAddress: string): Promise<string> {
    const { queue, random } = this.#parts;
    requireAcceptablePassword(password);
    return inTurn(queue, clientAddress, () => hashPassword(password, random));
  }

  /**
   * Finds what the password opens. The place in the queue is taken before the lookup, and an unknown id is checked
   * against a decoy: neither a full queue nor the time tells whether the id exists.
   */
  unlock<Found extends Lockable>(
    find: () => Awaitable<Found | undefined>,
    password: string | undefined,
    clientAddress: string,
  ): Awaitable<Found> {
    if (password === undefined) return andThen(find(), this.#requireOpen);
    requireAcceptablePassword(password);
    return inTurn(this.#parts.queue, clientAddress, async () => {
      const found = await find();
      if (found !== undefined && found.passwordHash === null) return found;
      const matches = await this.#timedVerify(password, found?.passwordHash ?? this.#decoy);
      if (found === undefined) throw new Refusal('pasteNotFound');
      if (!matches) throw new Refusal('passwordInvalid');
      return found;
    });
  }

  readonly #requireOpen = <Found extends Lockable>(found: Found | undefined): Awaitable<Found> => {
    if (found === undefined) return this.#refuseUnknown();
    if (found.passwordHash !== null) throw new Refusal('passwordRequired', { passwordProtected: true });
    return found;
  };

  /** Takes as long as a wrong password, without its work. */
  async #refuseUnknown(): Promise<never> {
    await this.#firstCheck;
    await delay(Math.min(median(this.#recentMs), MAX_DECOY_DELAY_MS));
    throw new Refusal('pasteNotFound');
  }

  async #timedVerify(password: string, stored: string): Promise<boolean> {
    const { clock } = this.#parts;
    const startedMs = clock.monotonicMs();
    const matches = await verifyPassword(password, stored);
    this.#recentMs.push(clock.monotonicMs() - startedMs);
    if (this.#recentMs.length > MEDIAN_OF) this.#recentMs.shift();
    return matches;
  }
}

/** Refuses a password that is too long. */
export function requireAcceptablePassword(password: string | undefined): void {
  if (password === undefined || password.length <= MAX_PASSWORD_LENGTH) return;
  if ([...password].length > MAX_PASSWORD_LENGTH) throw new Refusal('passwordTooLong');
}

/**
 * Does work that costs a tenth of a second of CPU when it is this client's turn. Refuses when too many wait, or when it
 * has waited too long. `client` is an address, or a name of its own for work that serves everybody.
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
    await delay(REFUSAL_MS);
    throw new Refusal('passwordQueueFull', {}, { retryAfterSeconds: 1 });
  }
}

async function delay(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/** Of at least one value. */
function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[sorted.length >> 1]!;
}
