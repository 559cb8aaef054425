// Costly work, a few at a time: a fixed number of places, a bounded queue before them that is fair between clients, and
// a deadline for waiting in it. Does not run the work and does not know what it is; whoever entered must release.

import type { Clock } from '../core/time.ts';

/** Gives the place back. Further calls do nothing. */
export type Release = () => void;

export interface WorkQueueOptions {
  /** Places: at least 1. */
  readonly concurrency: number;
  /** How many may wait for a place, all clients together; 0 refuses whoever finds none free. */
  readonly maxWaiting: number;
  /** How long each may wait. */
  readonly maxWaitMs: number;
  readonly clock: Clock;
}

export interface WorkQueue {
  /**
   * Resolves with the release function when a place is free: clients take turns, and of one client the first to come
   * goes first. Rejects with WorkQueueFull at once when too many wait already, later when the deadline passes before a
   * place was free, or when the client has to give a waiting place up to another.
   */
  enter(client: string): Promise<Release>;
  /** Places taken. */
  readonly running: number;
  readonly waiting: number;
}

export class WorkQueueFull extends Error {
  override readonly name = 'WorkQueueFull';
}

interface Waiter {
  readonly deadlineMs: number;
  readonly timer: NodeJS.Timeout;
  readonly admit: (release: Release) => void;
  readonly refuse: (reason: WorkQueueFull) => void;
}

/** Of the waiting places, a client has at most one in so many while others wait, and at least one place. */
const SHARES = 4;

export function createWorkQueue({ concurrency, maxWaiting, maxWaitMs, clock }: WorkQueueOptions): WorkQueue {
  if (!(concurrency >= 1)) throw new RangeError(`a work queue needs at least one place, not ${concurrency}`);
  const share = Math.max(1, Math.floor(maxWaiting / SHARES));
  let running = 0;
  let waiting = 0;
  /** By client, in the order of their turns; each client's in order of arrival, and never empty. */
  const lines = new Map<string, Waiter[]>();

  function place(): Release {
    running += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      running -= 1;
      admitNext();
    };
  }

  function admitNext(): void {
    for (let waiter = takeNext(); waiter !== undefined; waiter = takeNext()) {
      if (clock.monotonicMs() < waiter.deadlineMs) {
        waiter.admit(place());
        return;
      }
      // Timers run late when the event loop is busy, which is when shedding matters most.
      waiter.refuse(tooLong());
    }
  }

  /** The first in the line of the client whose turn it is; that client's next turn is after everyone else's. */
  function takeNext(): Waiter | undefined {
    for (const [client, line] of lines) {
      const waiter = line[0]!;
      remove(client, line, waiter);
      if (lines.delete(client)) lines.set(client, line);
      return waiter;
    }
    return undefined;
  }

  function remove(client: string, line: Waiter[], waiter: Waiter): void {
    clearTimeout(waiter.timer);
    line.splice(line.indexOf(waiter), 1);
    waiting -= 1;
    if (line.length === 0) lines.delete(client);
  }

  function giveUpNewest(client: string, line: Waiter[]): void {
    const newest = line.at(-1)!;
    remove(client, line, newest);
    newest.refuse(new WorkQueueFull('another client has fewer places'));
  }

  /** Throws when one more of this client can't wait; else others may have to give places up for it. */
  function makeRoomFor(client: string): void {
    const own = lines.get(client)?.length ?? 0;
    const isAlone = own === waiting;
    if (own >= (isAlone ? maxWaiting : share)) throw tooMany();
    if (isAlone) return;
    // Whoever was alone until now may have more than a share.
    for (const [other, line] of lines) while (line.length > share) giveUpNewest(other, line);
    if (waiting < maxWaiting) return;
    const [longest, line] = [...lines].reduce((one, other) => (other[1].length > one[1].length ? other : one));
    if (line.length <= own + 1) throw tooMany();
    giveUpNewest(longest, line);
  }

  function wait(client: string): Promise<Release> {
    const line = lines.get(client) ?? [];
    lines.set(client, line);
    waiting += 1;
    return new Promise((admit, refuse) => {
      const timer = setTimeout(() => {
        remove(client, line, waiter);
        refuse(tooLong());
      }, maxWaitMs);
      timer.unref();
      const waiter: Waiter = { deadlineMs: clock.monotonicMs() + maxWaitMs, timer, admit, refuse };
      line.push(waiter);
    });
  }

  return {
    async enter(client) {
      if (running < concurrency) return place();
      makeRoomFor(client);
      return wait(client);
    },
    get running() {
      return running;
    },
    get waiting() {
      return waiting;
    },
  };
}

function tooMany(): WorkQueueFull {
  return new WorkQueueFull('too much work is waiting already');
}

function tooLong(): WorkQueueFull {
  return new WorkQueueFull('no place was free in time');
}
