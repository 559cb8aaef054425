// The schedule of everything that is done in the background: each task by its own interval, in small steps, one at a
// time and with pauses between, so that a large backlog never delays requests. What a step does is handed in;
// pastes/upkeep.ts has the table of tasks.

import type { Log } from '../core/events.ts';

export interface CleanupTask {
  readonly name: string;
  readonly intervalSeconds: number;
  /** A bounded piece of the work; whether there is more to do now. */
  readonly step: () => Promise<boolean>;
}

export interface Cleanup {
  /** Begins the schedule; every task runs once at first. */
  start(): void;
  /** Carries a task out now, to its end. Tests and the command line use it. */
  run(name: string): Promise<void>;
  /** No further step begins; resolves when the running one has ended. */
  stop(): Promise<void>;
}

/** After a step that leaves more to do, whichever task is next: requests come first. */
const PAUSE_MS = 20;

export function createCleanup(tasks: readonly CleanupTask[], log: Log): Cleanup {
  let stopped = false;
  const timers = new Map<string, NodeJS.Timeout>();
  const running = new Map<string, Promise<void>>();
  /** Resolves when the next step may begin. */
  let turn: Promise<unknown> = Promise.resolve();

  /** One run of a task at a time; a second call joins the first. */
  function run(task: CleanupTask): Promise<void> {
    const current = running.get(task.name);
    if (current !== undefined) return current;
    const begun = runSteps(task).finally(() => running.delete(task.name));
    running.set(task.name, begun);
    return begun;
  }

  async function runSteps(task: CleanupTask): Promise<void> {
    try {
      while (await takeTurn(task));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const details = { task: task.name, reason };
      log({ level: 'error', logger: 'cleanup', event: 'task failed', outcome: 'failure', details });
    }
  }

  /** Steps of two tasks at once would share a transaction, and a request would wait for both. */
  async function takeTurn(task: CleanupTask): Promise<boolean> {
    const mine = turn.then(() => !stopped && task.step());
    const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    turn = mine.then((hasMore) => (hasMore ? pause() : undefined), () => undefined);
    return mine;
  }

  function schedule(task: CleanupTask): void {
    if (stopped) return;
    timers.set(task.name, setTimeout(() => runAndSchedule(task), task.intervalSeconds * 1000).unref());
  }

  function runAndSchedule(task: CleanupTask): void {
    void run(task).then(() => schedule(task));
  }

  return {
    start: () => tasks.forEach(runAndSchedule),
    run: async (name) => {
      const task = tasks.find((candidate) => candidate.name === name);
      if (task === undefined) throw new RangeError(`no cleanup task is called ${name}`);
      await run(task);
    },
    stop: async () => {
      stopped = true;
      for (const timer of timers.values()) clearTimeout(timer);
      await Promise.all(running.values());
    },
  };
}
