// The schedule of background tasks (pastes/upkeep.ts): each by its interval, one at a time, with pauses for requests.

import { setTimeout } from 'node:timers/promises';
import type { Log } from '../core/events.ts';

export interface CleanupTask {
  readonly name: string;
  readonly intervalSeconds: number;
  /** A bounded piece of the work; true when there is more to do now. */
  readonly step: () => Promise<boolean | void>;
}

/** The pause after a step that leaves more to do, whichever task is next: requests come first. */
const PAUSE_MS = 20;

export class Cleanup {
  readonly #tasks: readonly CleanupTask[];
  readonly #log: Log;
  readonly #running = new Map<CleanupTask, Promise<void>>();
  /** Resolves when the next step may begin. */
  #turn: Promise<unknown> = Promise.resolve();
  readonly #end = new AbortController();

  constructor(tasks: readonly CleanupTask[], log: Log) {
    this.#tasks = tasks;
    this.#log = log;
  }

  /** Every task runs once at first. */
  start(): void {
    for (const task of this.#tasks) void this.#repeat(task);
  }

  async run(name: string): Promise<void> {
    const task = this.#tasks.find((candidate) => candidate.name === name);
    if (task === undefined) throw new RangeError(`no cleanup task is called ${name}`);
    await this.#join(task);
  }

  /** No further step begins; resolves when the running one has ended. */
  async stop(): Promise<void> {
    this.#end.abort();
    await Promise.all(this.#running.values());
  }

  async #repeat(task: CleanupTask): Promise<void> {
    const { signal } = this.#end;
    const pause = () => setTimeout(task.intervalSeconds * 1000, undefined, { ref: false, signal }).catch(() => {});
    for (; !signal.aborted; await pause()) await this.#join(task);
  }

  /** One run of a task at a time; a second call joins the first. */
  #join(task: CleanupTask): Promise<void> {
    const run = this.#running.get(task) ?? this.#runSteps(task).finally(() => this.#running.delete(task));
    this.#running.set(task, run);
    return run;
  }

  async #runSteps(task: CleanupTask): Promise<void> {
    try {
      while (await this.#takeTurn(task));
    } catch (error) {
      const details = { task: task.name, reason: error instanceof Error ? error.message : String(error) };
      this.#log({ level: 'error', logger: 'cleanup', event: 'task failed', outcome: 'failure', details });
    }
  }

  /** Steps of two tasks at once would share a transaction, and a request would wait for both. */
  async #takeTurn(task: CleanupTask): Promise<boolean | void> {
    const step = this.#turn.then(() => !this.#end.signal.aborted && task.step());
    this.#turn = step.then((hasMore) => (hasMore ? setTimeout(PAUSE_MS) : undefined), () => undefined);
    return step;
  }
}
