// Costly work, a few at a time: a fixed number of places, a bounded queue before them, and a deadline for waiting in
// it. Does not run the work and does not know what it is; whoever entered must release.

import type { Clock } from '../core/time.ts';

/** Gives the place back. Further calls do nothing. */
export type Release = () => void;

export interface WorkQueueOptions {
  /** Places: at least 1. */
  readonly concurrency: number;
  /** How many may wait for a place; 0 refuses whoever finds none free. */
  readonly maxWaiting: number;
  /** How long each may wait. */
  readonly maxWaitMs: number;
  readonly clock: Clock;
}

export interface WorkQueue {
  /**
   * Resolves with the release function when a place is free, first come, first served. Rejects with WorkQueueFull at
   * once when too many wait already, or when the deadline passes before a place was free.
   */
  enter(): Promise<Release>;
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

export function createWorkQueue({ concurrency, maxWaiting, maxWaitMs, clock }: WorkQueueOptions): WorkQueue {
  if (!(concurrency >= 1)) throw new RangeError(`a work queue needs at least one place, not ${concurrency}`);
  let running = 0;
  // In order of arrival; a set, since one that gave up is taken out of the middle.
  const waiters = new Set<Waiter>();

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
    for (const waiter of waiters) {
      waiters.delete(waiter);
      clearTimeout(waiter.timer);
      if (clock.monotonicMs() < waiter.deadlineMs) {
        waiter.admit(place());
        return;
      }
      // Timers run late when the event loop is busy, which is when shedding matters most.
      waiter.refuse(tooLong());
    }
  }

  function wait(): Promise<Release> {
    return new Promise((admit, refuse) => {
      const timer = setTimeout(() => {
        waiters.delete(waiter);
        refuse(tooLong());
      }, maxWaitMs);
      timer.unref();
      const waiter: Waiter = { deadlineMs: clock.monotonicMs() + maxWaitMs, timer, admit, refuse };
      waiters.add(waiter);
    });
  }

  return {
    async enter() {
      if (running < concurrency) return place();
      if (waiters.size >= maxWaiting) throw new WorkQueueFull('too much work is waiting already');
      return wait();
    },
    get running() {
      return running;
    },
    get waiting() {
      return waiters.size;
    },
  };
}

function tooLong(): WorkQueueFull {
  return new WorkQueueFull('no place was free in time');
}
