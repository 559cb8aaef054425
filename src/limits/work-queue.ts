// Places for costly work, and a bounded queue, fair between clients, with a deadline. Whoever entered must release.

import type { Clock } from '../core/time.ts';

interface WorkQueueOptions {
  /** At least 1. */
  readonly concurrency: number;
  /** How many may wait for a place, all clients together; 0 refuses whoever finds none free. */
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
  readonly clock: Clock;
}

export class WorkQueueFull extends Error {}

interface Waiter {
  readonly deadlineMs: number;
  readonly timer: NodeJS.Timeout;
  readonly admit: (release: () => void) => void;
  readonly refuse: (reason: WorkQueueFull) => void;
}

/** Of the waiting places, a client has at most one in so many while others wait, and at least one place. */
const SHARES = 4;

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #share: number;
  #running = 0;
  /** By client, in the order of their turns; each client's in order of arrival, and never empty. */
  readonly #lines = new Map<string, Waiter[]>();

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#share = Math.max(1, Math.floor(options.maxWaiting / SHARES));
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return [...this.#lines.values()].reduce((sum, line) => sum + line.length, 0);
  }

  /** Resolves with what gives the place back, once. Rejects with WorkQueueFull, at once or when a wait was in vain. */
  async enter(client: string): Promise<() => void> {
    if (this.#running < this.#options.concurrency) return this.#place();
    this.#makeRoomFor(client);
    return this.#wait(client);
  }

  #place(): () => void {
    this.#running += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#running -= 1;
      this.#admitNext();
    };
  }

  /** The first in the line of the client whose turn it is; that client's next turn is after everyone else's. */
  #admitNext(): void {
    for (const [client, line] of this.#lines) {
      const waiter = line[0]!;
      this.#remove(client, line, waiter);
      // Set anew, it comes last, in this loop too.
      if (this.#lines.delete(client)) this.#lines.set(client, line);
      if (this.#options.clock.monotonicMs() < waiter.deadlineMs) return waiter.admit(this.#place());
      // Timers run late when the event loop is busy, which is when shedding matters most.
      waiter.refuse(new WorkQueueFull('no place was free in time'));
    }
  }

  #remove(client: string, line: Waiter[], waiter: Waiter): void {
    clearTimeout(waiter.timer);
    line.splice(line.indexOf(waiter), 1);
    if (line.length === 0) this.#lines.delete(client);
  }

  /** Throws when one more of this client can't wait; else others may have to give places up for it. */
  #makeRoomFor(client: string): void {
    const { maxWaiting } = this.#options;
    const own = this.#lines.get(client)?.length ?? 0;
    const isAlone = own === this.waiting;
    if (own >= (isAlone ? maxWaiting : this.#share)) throw new WorkQueueFull('too much work is waiting already');
    if (isAlone) return;
    // Whoever was alone until now may have more than a share.
    for (const [other, line] of this.#lines) while (line.length > this.#share) this.#giveUpNewest(other, line);
    if (this.waiting < maxWaiting) return;
    const [longest, line] = [...this.#lines].reduce((one, other) => (other[1].length > one[1].length ? other : one));
    if (line.length <= own + 1) throw new WorkQueueFull('too much work is waiting already');
    this.#giveUpNewest(longest, line);
  }

  #giveUpNewest(client: string, line: Waiter[]): void {
    const newest = line.at(-1)!;
    this.#remove(client, line, newest);
    newest.refuse(new WorkQueueFull('another client has fewer places'));
  }

  #wait(client: string): Promise<() => void> {
    const { maxWaitMs, clock } = this.#options;
    const line = this.#lines.get(client) ?? [];
    this.#lines.set(client, line);
    return new Promise((admit, refuse) => {
      const timer = setTimeout(() => {
        this.#remove(client, line, waiter);
        refuse(new WorkQueueFull('no place was free in time'));
      }, maxWaitMs).unref();
      const waiter: Waiter = { deadlineMs: clock.monotonicMs() + maxWaitMs, timer, admit, refuse };
      line.push(waiter);
    });
  }
}
