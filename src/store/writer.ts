// The serving thread's end of the writer thread: commands wait here while the writer is busy, go over together, and are
// settled when they are durable (group commit). What a command does is with its noun; how a batch is carried out is
// batch.ts.

import { Worker } from 'node:worker_threads';
import type { Log } from '../core/events.ts';
import { type Clock, MIB } from '../core/time.ts';
import {
  type Answer, type Command, type CommandName, type Commands, type Lane, LANES, type Report, type Request,
  type WriterSetup,
} from './commands.ts';
import { DatabaseRefusedError, describe, StoreError } from './failures.ts';

/** Far above what connections and cleanup can have waiting: only a caller that does not await gets here. */
const MAX_WAITING = 10_000;

/** A disk that takes so long for one batch does not work, whatever it may answer later. */
const STALLED_AFTER_MS = 10_000;

/**
 * So many prompt commands are worth a commit of their own: they go over at once, even behind a batch that is under way,
 * so that the writer has work while this thread answers and receives. Waiting for each other they had half a core each.
 */
export const MIN_AHEAD_COMMANDS = 16;

/** More would only be smaller: what does not go over gathers. */
const MAX_UNDER_WAY = 2;

/**
 * Where the writer takes longer for a batch, it is the disk that takes the time, and every commit costs that once more:
 * nothing goes ahead then, and all share one.
 */
const SLOW_BATCH_MS = 10;

/**
 * On such a disk, those who were just answered are waited for, this part of the batch's time at most, before the next
 * goes: two groups of clients that take turns would each wait for the other's commit, and get half as much done.
 */
const GATHERING_PART = 1 / 4;
const MAX_GATHERING_MS = 10;

/** What a command carries beside its few fields. */
export interface Cargo {
  /** Bytes of content that the command writes or clears. */
  readonly bytes: number;
}

/** `failed`: the last write did. `stalled`: it has not come back. `ended`: there is no thread, or no more. */
export type WriterState = 'working' | 'failed' | 'stalled' | 'ended';

interface Waiting extends Queued {
  readonly command: Command;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** Every command taken is either waiting or under way until it is settled, and every one is settled. */
export class Writer {
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #queue = createQueue<Waiting>();
  /** Oldest first: while one is being made durable, the next gathers, or is behind it already. */
  readonly #underWay: (readonly Waiting[])[] = [];
  /** When the writer came to the oldest. */
  #begunMs = 0;
  #lastWasSlow = false;
  #sendScheduled = false;
  /** Waits on a slow disk until `count` prompt commands are there, or its time is over. */
  #gathering: { readonly count: number; readonly timer: NodeJS.Timeout } | undefined;
  #lastFailed = false;
  #closing = false;
  #ended = false;
  /** Why the thread ends, when it has said so. */
  #fault: string | undefined;
  #whenIdle: () => void = () => {};

  /** The worker must have reported that it has opened the database; see startWriter. */
  constructor(worker: Worker, clock: Clock, log: Log) {
    this.#worker = worker;
    this.#clock = clock;
    this.#log = log;
    worker.on('message', (report: Report) => {
      if (report.kind === 'answers') this.#settleOldest(report.answers);
    });
    worker.on('error', (error) => (this.#fault = describe(error)));
    worker.once('exit', () => this.#end());
    worker.unref();
  }

  /** Resolves when it is durable. Rejects with a StoreError, or with the error of the program that it ran into. */
  run<Name extends CommandName>(
    name: Name,
    params: Parameters<Commands[Name]>[0],
    cargo: Cargo = { bytes: 0 },
  ): Promise<ReturnType<Commands[Name]>> {
    if (this.#ended || this.#closing) return Promise.reject(unavailable('closed'));
    if (this.#queue.length >= MAX_WAITING) return Promise.reject(unavailable('too many writes wait'));
    return new Promise((resolve, reject) => {
      this.#queue.add({ lane: LANES[name], bytes: cargo.bytes, command: { name, params }, resolve, reject });
      if (this.#queue.prompt === this.#gathering?.count) this.#endGathering();
      if (this.#isWorthSending()) this.#send();
      else this.#scheduleSend();
    });
  }

  /** Commands that have not been answered. */
  get waiting(): number {
    return this.#underWay.reduce((sum, batch) => sum + batch.length, this.#queue.length);
  }

  state(): WriterState {
    if (this.#ended) return 'ended';
    if (this.#underWay.length > 0 && this.#busyMs() > STALLED_AFTER_MS) return 'stalled';
    return this.#lastFailed ? 'failed' : 'working';
  }

  /** Lets what waits finish, takes no more, closes the database. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#ended) return;
    this.#worker.ref();
    if (this.#isBusy()) await new Promise<void>((resolve) => (this.#whenIdle = resolve));
    if (this.#ended) return;
    const exited = new Promise((resolve) => this.#worker.once('exit', resolve));
    this.#worker.postMessage({ kind: 'close' } satisfies Request);
    await exited;
  }

  #isBusy(): boolean {
    return this.#underWay.length > 0 || this.#queue.length > 0;
  }

  #busyMs(): number {
    return this.#clock.monotonicMs() - this.#begunMs;
  }

  #isWorthSending(): boolean {
    return this.#queue.prompt >= MIN_AHEAD_COMMANDS && this.#underWay.length < MAX_UNDER_WAY && !this.#lastWasSlow;
  }

  /** At the end of the turn of the event loop, so that the few requests that arrived in it share a commit. */
  #scheduleSend(): void {
    if (this.#sendScheduled || this.#underWay.length > 0 || this.#gathering !== undefined) return;
    this.#sendScheduled = true;
    setImmediate(() => {
      this.#sendScheduled = false;
      if (!this.#ended && this.#underWay.length === 0) this.#send();
    });
  }

  #gather(count: number, milliseconds: number): void {
    const timer = setTimeout(() => {
      this.#endGathering();
      this.#scheduleSend();
    }, milliseconds);
    this.#gathering = { count, timer };
  }

  #endGathering(): void {
    clearTimeout(this.#gathering?.timer);
    this.#gathering = undefined;
  }

  #send(): void {
    const batch = this.#queue.take();
    const [first] = batch;
    if (first === undefined) return;
    if (this.#underWay.length === 0) this.#begunMs = this.#clock.monotonicMs();
    this.#underWay.push(batch);
    this.#worker.ref();
    const commands = batch.map(({ command }) => command);
    const alone = first.lane === 'alone';
    const request: Request = alone ? { kind: 'alone', command: first.command } : { kind: 'batch', commands };
    try {
      this.#worker.postMessage(request);
    } catch (error) {
      // Something in it can't cross, and nothing has: an error of the program, which must not take the process down.
      this.#underWay.pop();
      this.#settle(batch, batch.map(() => ({ done: false, failure: null, error })));
    }
  }

  #settleOldest(answers: readonly Answer[]): void {
    const oldest = this.#underWay.shift() ?? [];
    const busyMs = this.#busyMs();
    const promptCount = oldest.filter(({ lane }) => lane === 'prompt').length;
    this.#lastWasSlow = busyMs > SLOW_BATCH_MS;
    if (this.#lastWasSlow && promptCount > 0 && this.#underWay.length === 0) {
      this.#gather(promptCount + this.#queue.prompt, Math.min(busyMs * GATHERING_PART, MAX_GATHERING_MS));
    }
    this.#begunMs = this.#clock.monotonicMs();
    this.#settle(oldest, answers);
  }

  /** What waits goes first: answering takes time in which the writer can be at it. */
  #settle(batch: readonly Waiting[], answers: readonly Answer[]): void {
    if (this.#isWorthSending() || (this.#underWay.length === 0 && this.#gathering === undefined)) this.#send();
    for (const [index, { resolve, reject }] of batch.entries()) {
      const answer = answers[index];
      if (answer === undefined) reject(new Error('the writer thread left a command unanswered'));
      else if (answer.done) resolve(answer.value as never);
      else reject(errorOf(answer));
    }
    this.#lastFailed = answers.some((answer) => !answer.done && answer.failure !== null);
    if (!this.#isBusy()) this.#rest();
  }

  /** An idle thread does not keep the process alive. */
  #rest(): void {
    if (!this.#closing) this.#worker.unref();
    this.#whenIdle();
  }

  #end(): void {
    this.#ended = true;
    if (this.#fault !== undefined || !this.#closing || this.#isBusy()) this.#logEnd(this.#fault ?? 'exited');
    // What was under way may have become durable or not; nobody can tell before the database is opened again.
    const error = unavailable('the writer thread has ended');
    for (const { reject } of [...this.#underWay.splice(0).flat(), ...this.#queue.takeAll()]) reject(error);
    this.#whenIdle();
  }

  #logEnd(reason: string): void {
    const event = 'writer thread ended';
    this.#log({ level: 'error', logger: 'store', event, outcome: 'failure', details: { reason } });
  }
}

function unavailable(reason: string): StoreError {
  return new StoreError('unavailable', `storage unavailable: ${reason}`);
}

function errorOf({ failure, error }: Extract<Answer, { done: false }>): unknown {
  if (failure === null) return error;
  return new StoreError(failure, `storage ${failure}: ${describe(error)}`, { cause: error });
}

/** Resolves when the database is open; rejects with DatabaseRefusedError or StoreError, and the thread is gone then. */
export async function startWriter(
  path: string,
  clock: Clock,
  log: Log,
  { keepsBallast } = { keepsBallast: true },
): Promise<Writer> {
  const setup: WriterSetup = { path, keepsBallast };
  // The environment holds secrets, which are none of the thread's business.
  const options = { name: 'store writer', workerData: setup, env: {} };
  const worker = new Worker(new URL('./writer-thread.ts', import.meta.url), options);
  const exited = new Promise((resolve) => worker.once('exit', resolve));
  const report = await firstReport(worker);
  if (report?.kind === 'opened') return new Writer(worker, clock, log);
  await exited;
  if (report?.kind !== 'refused') throw unavailable('the writer thread did not start');
  if (report.failure === 'refused') throw new DatabaseRefusedError(report.message);
  throw new StoreError(report.failure, `the database ${path} cannot be opened: ${report.message}`);
}

/**
 * Undefined from a thread that ends without a word. Rejects with what it failed with. (`once` of node:events takes some
 * turns to resolve; who has been busy hears of a message and of the end after it in one, and the end would win.)
 */
export function firstReport(worker: Worker): Promise<Report | undefined> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve).once('error', reject).once('exit', () => resolve(undefined));
  });
}

// Where commands wait for the writer thread, and which of them go together. What commands do is with their nouns.

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
