// The serving thread's end of the writer thread: commands wait here while the writer is busy, are sent together, and
// are settled when they are durable (group commit). batch.ts carries a batch out.

import { Worker } from 'node:worker_threads';
import type { Log } from '../core/events.ts';
import { type Clock, KIB, MIB } from '../core/time.ts';
import type { Answer, Command, CommandName, Commands, FirstReport, Report, Request } from './batch.ts';
import { asStoreError, CHUNK_BYTES, DatabaseRefusedError, describe, StoreError, unavailable } from './store.ts';

/** A batch has `prompt` first (small, a request waits), then `bulk` (large or not urgent). `alone`: between batches. */
export type Lane = 'prompt' | 'bulk' | 'alone';

/** Commands that are not named here are `prompt`. */
export const LANES: Readonly<Partial<Record<CommandName, Lane>>> = {
  writeChunk: 'bulk', discardChunks: 'bulk', touchPastes: 'bulk', removeExpired: 'bulk', removeOldAudit: 'bulk',
  removeExpiredChallenges: 'bulk', removeOldSubmissions: 'bulk', removeExpiredCertificates: 'bulk',
  probe: 'alone', truncateWal: 'alone', releasePages: 'alone', optimize: 'alone', restoreBallast: 'alone',
};

/** After this time, a stop refuses commands that still wait. That breaks no promise: answers come after commits. */
const CLOSE_WAIT_MS = 2000;

/** A disk that takes longer than this for one batch counts as not working. */
const STALLED_AFTER_MS = 10_000;

/** This many are sent even behind a batch under way: when the threads waited for each other, each used half a core. */
export const MIN_AHEAD_COMMANDS = 16;

/** A third batch in flight only makes batches smaller. */
const MAX_UNDER_WAY = 2;

/** A batch that takes longer shows a slow disk. Then no batch goes ahead, since each commit costs that time again. */
const SLOW_BATCH_MS = 10;

/** Part of the last batch's time. Without gathering, two groups of clients would take turns to wait for each other. */
const GATHERING_PART = 1 / 4;
const MAX_GATHERING_MS = 10;

/**
 * `resting`: no command waits or is under way. `scheduled`: waiting commands are sent at the end of this turn of the
 * event loop, so that those of one turn share a commit. `gathering`: the disk is slow, so we wait for the clients who
 * were just answered. `writing`: the thread has batches; new commands wait or go ahead. `ended`: the thread has ended.
 */
type Phase = 'resting' | 'scheduled' | 'gathering' | 'writing' | 'ended';

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
  #phase: Phase = 'resting';
  readonly #queue = new Queue<Waiting>();
  /** Oldest first. */
  readonly #underWay: (readonly Waiting[])[] = [];
  /** When the writer began the oldest batch. */
  #begunMs = 0;
  /** Gathering ends early when this many prompt commands wait. */
  #gatheredCount = 0;
  /** The timer that ends `scheduled` or `gathering`. */
  #alarm: NodeJS.Immediate | NodeJS.Timeout | undefined;
  #last = { wasSlow: false, failed: false };
  #closing = false;
  #deadline: NodeJS.Timeout | undefined;
  /** The error that ended the thread, if there was one. */
  #fault: string | undefined;
  #whenIdle: () => void = () => {};
  /** Resolves when the thread has ended, whether it was asked to or not. */
  readonly ended: Promise<void>;

  /** The worker must have opened the database already; see startWriter. */
  constructor(worker: Worker, clock: Clock, log: Log) {
    this.#worker = worker;
    this.#clock = clock;
    this.#log = log;
    worker.on('message', (report: Report) => {
      if (report.kind === 'answers') this.#settleOldest(report.answers);
    });
    worker.on('error', (error) => (this.#fault = describe(error)));
    this.ended = new Promise((resolve) => worker.once('exit', () => resolve(this.#end())));
    worker.unref();
  }

  /** Resolves when the command is durable. Rejects with a StoreError, or with an error of this program. */
  run<Name extends CommandName>(
    name: Name, params: Parameters<Commands[Name]>[0], bytes = 0,
  ): Promise<ReturnType<Commands[Name]>> {
    if (this.#phase === 'ended' || this.#closing) return Promise.reject(unavailable('closed'));
    const lane = LANES[name] ?? 'prompt';
    if (!this.#queue.hasRoomFor(lane, bytes)) return Promise.reject(unavailable('too many writes wait'));
    return new Promise((resolve, reject) => {
      this.#queue.add({ lane, bytes, command: { name, params }, resolve, reject });
      const isGathered = this.#phase === 'gathering' && this.#queue.prompt === this.#gatheredCount;
      if (this.#isWorthSending()) this.#send();
      else if (this.#phase === 'resting' || isGathered) this.#schedule();
    });
  }

  /** Commands that have not been answered. */
  get waiting(): number {
    return this.#underWay.reduce((sum, batch) => sum + batch.length, this.#queue.length);
  }

  /** `failed`: a write failed, and no probe has succeeded since. `stalled`: the oldest batch takes too long. */
  state(): 'working' | 'failed' | 'stalled' | 'ended' {
    if (this.#phase === 'ended') return 'ended';
    if (this.#underWay.length > 0 && this.#busyMs() > STALLED_AFTER_MS) return 'stalled';
    return this.#last.failed ? 'failed' : 'working';
  }

  /** After CLOSE_WAIT_MS refuses waiting and new commands: another process may block writes for as long as it likes. */
  hurry(): void {
    this.#deadline ??= setTimeout(() => {
      this.#closing = true;
      this.#refuse(this.#queue.takeAll(), 'closed');
    }, CLOSE_WAIT_MS).unref();
  }

  /** Takes no more commands, lets those that wait finish or soon refuses them, then closes the database. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#phase === 'ended') return;
    const exited = new Promise((resolve) => this.#worker.once('exit', resolve));
    this.#worker.ref();
    this.hurry();
    if (this.waiting > 0) await new Promise<void>((resolve) => (this.#whenIdle = resolve));
    this.#worker.postMessage({ kind: 'close' } satisfies Request);
    await exited;
  }

  #busyMs(): number {
    return this.#clock.monotonicMs() - this.#begunMs;
  }

  #isWorthSending(): boolean {
    return this.#queue.prompt >= MIN_AHEAD_COMMANDS && this.#underWay.length < MAX_UNDER_WAY && !this.#last.wasSlow;
  }

  #enter(phase: Phase, alarm?: NodeJS.Immediate | NodeJS.Timeout): void {
    this.#alarm?.[Symbol.dispose]();
    this.#phase = phase;
    this.#alarm = alarm;
  }

  #schedule(): void {
    this.#enter('scheduled', setImmediate(() => this.#send()));
  }

  #send(): void {
    const batch = this.#queue.take();
    const [first] = batch;
    if (first === undefined) return this.#enter('resting');
    if (this.#underWay.length === 0) this.#begunMs = this.#clock.monotonicMs();
    this.#underWay.push(batch);
    this.#enter('writing');
    this.#worker.ref();
    const commands = batch.map(({ command }) => command);
    const alone = first.lane === 'alone';
    const request: Request = alone ? { kind: 'alone', command: first.command } : { kind: 'batch', commands };
    try {
      this.#worker.postMessage(request);
    } catch (error) {
      // Something in the batch can't be cloned, so nothing was sent. An error of the program must not end the process.
      this.#underWay.pop();
      this.#settle(batch, batch.map(() => ({ done: false, failure: null, error })));
    }
  }

  #settleOldest(answers: readonly Answer[]): void {
    const oldest = this.#underWay.shift()!;
    const busyMs = this.#busyMs();
    const promptCount = oldest.filter(({ lane }) => lane === 'prompt').length;
    this.#last.wasSlow = busyMs > SLOW_BATCH_MS;
    if (this.#last.wasSlow && promptCount > 0 && this.#underWay.length === 0) {
      this.#gatheredCount = promptCount + this.#queue.prompt;
      const waitMs = Math.min(busyMs * GATHERING_PART, MAX_GATHERING_MS);
      this.#enter('gathering', setTimeout(() => this.#schedule(), waitMs));
    }
    this.#begunMs = this.#clock.monotonicMs();
    this.#settle(oldest, answers);
  }

  /** Sends waiting commands before it answers, so that the writer works meanwhile. */
  #settle(batch: readonly Waiting[], answers: readonly Answer[]): void {
    const isIdle = this.#underWay.length === 0 && this.#phase === 'writing';
    if (isIdle || this.#isWorthSending()) this.#send();
    for (const [index, { resolve, reject }] of batch.entries()) {
      const answer = answers[index];
      if (answer === undefined) reject(new Error('the writer thread left a command unanswered'));
      else if (answer.done) resolve(answer.value as never);
      else reject(asStoreError(answer.error, answer.failure ?? undefined));
    }
    const failed = answers.some((answer) => !answer.done && answer.failure !== null);
    // Other commands may have found nothing to write: only a probe shows that writing works again.
    if (failed || batch[0]!.command.name === 'probe') this.#last.failed = failed;
    if (this.waiting > 0) return;
    // An idle thread does not keep the process alive.
    if (!this.#closing) this.#worker.unref();
    this.#whenIdle();
  }

  #end(): void {
    this.#enter('ended');
    if (this.#fault !== undefined || !this.#closing || this.waiting > 0) {
      const details = { reason: this.#fault ?? 'exited' };
      this.#log({ level: 'error', logger: 'store', event: 'writer thread ended', outcome: 'failure', details });
    }
    // Whether commands under way became durable is unknown until the database is opened again.
    this.#refuse([...this.#underWay.splice(0).flat(), ...this.#queue.takeAll()], 'the writer thread has ended');
  }

  #refuse(commands: readonly Waiting[], reason: string): void {
    for (const { reject } of commands) reject(unavailable(reason));
    if (this.waiting === 0) this.#whenIdle();
  }
}

/** Resolves when the database is open; rejects as firstWord does. */
export async function startWriter(path: string, clock: Clock, log: Log, worker = startThread('store writer')) {
  worker.postMessage(path);
  const notOpened = `the database ${path} cannot be opened: `;
  await firstWord(worker, 'storage unavailable: the writer thread did not start', notOpened);
  return new Writer(worker, clock, log);
}

/** Without a task, the thread loads what the writer needs, and waits. It gets no environment, which holds secrets. */
export function startThread(name: string, task: object | null = null): Worker {
  return new Worker(new URL('./thread.ts', import.meta.url), { name, workerData: task, env: {} });
}

/** Rejects with DatabaseRefusedError or StoreError once the thread is gone, or with the error that ended the thread. */
export async function firstWord<Given>(worker: Worker, ifSilent: string, notDone = ''): Promise<Given> {
  const exited = new Promise((resolve) => worker.once('exit', resolve));
  const report = await new Promise<FirstReport<Given> | undefined>((resolve, reject) => {
    // `once` of node:events resolves some turns later: on a busy thread, the exit would overtake the message before it.
    worker.once('message', resolve).once('error', reject).once('exit', () => resolve(undefined));
  });
  if (report?.kind === 'done') return report.given;
  await exited;
  if (report === undefined) throw new StoreError('unavailable', ifSilent);
  if (report.failure === 'refused') throw new DatabaseRefusedError(report.message);
  throw new StoreError(report.failure, `${notDone}${report.message}`);
}

/** More commands in one transaction gain little, and make the first one wait for the last. */
export const MAX_BATCH_COMMANDS = 256;

/** Content in one transaction. A small write waits for at most two of them. A single command may carry more. */
export const MAX_BATCH_BYTES = 2 * MIB;

/** Far more commands than connections and cleanup can have waiting. */
const MAX_WAITING = 10_000;

/** Content, whose clients may have left. `bulk` has room for a chunk per connection: when many upload, each has one. */
const MAX_WAITING_BYTES: Readonly<Record<Lane, number>> = { prompt: 64 * MIB, bulk: 256 * MIB, alone: 0 };

/** A command that writes or clears `bytes` of content. */
export interface Queued {
  readonly lane: Lane;
  readonly bytes: number;
}

/** Lanes keep their order, and none waits for ever: each batch has some of `bulk`, `alone` gets every second turn. */
export class Queue<Entry extends Queued> {
  readonly #lanes: Record<Lane, Entry[]> = { prompt: [], bulk: [], alone: [] };
  #lastWasAlone = false;

  get length(): number {
    return this.prompt + this.#lanes.bulk.length + this.#lanes.alone.length;
  }

  get prompt(): number {
    return this.#lanes.prompt.length;
  }

  hasRoomFor(lane: Lane, more: number): boolean {
    const waiting = this.#lanes[lane].reduce((sum, { bytes }) => sum + bytes, 0);
    return this.length < MAX_WAITING && waiting + more <= MAX_WAITING_BYTES[lane];
  }

  add(entry: Entry): void {
    this.#lanes[entry.lane].push(entry);
  }

  /** What is sent next: one entry of the lane `alone`, or a batch without any; empty when nothing waits. */
  take(): Entry[] {
    const { prompt, bulk, alone } = this.#lanes;
    this.#lastWasAlone = alone.length > 0 && !(this.#lastWasAlone && prompt.length + bulk.length > 0);
    if (this.#lastWasAlone) return alone.splice(0, 1);
    const batch: Entry[] = [];
    for (const lane of [prompt, bulk]) batch.push(...takeFitting(lane, batch));
    return batch;
  }

  takeAll(): Entry[] {
    return Object.values(this.#lanes).flatMap((waiting) => waiting.splice(0));
  }
}

/** Takes the entries that still fit into the batch, and the first one in any case. */
function takeFitting<Entry extends Queued>(waiting: Entry[], batch: readonly Entry[]): Entry[] {
  let bytes = batch.reduce((sum, entry) => sum + entry.bytes, 0);
  const room = MAX_BATCH_COMMANDS - batch.length;
  const end = waiting.findIndex((entry, index) => {
    bytes += entry.bytes;
    return index > 0 && (index >= room || bytes > MAX_BATCH_BYTES);
  });
  return waiting.splice(0, end === -1 ? waiting.length : end);
}

// Shared memory in which bytes cross to the writer thread.

/** 4 MiB, two batches of the writer, that stay allocated when nobody uploads. */
const MAX_KEPT_BUFFERS = 16;

/** Buffers for chunks, shared with the writer thread and used again: new ones would keep the garbage collector busy. */
export function createChunkBuffers() {
  const taken = new Set<ArrayBufferLike>();
  const kept: SharedArrayBuffer[] = [];
  return {
    /** CHUNK_BYTES, perhaps with old bytes in them. They are the caller's until it gives them back. */
    take(): Uint8Array<SharedArrayBuffer> {
      const buffer = kept.pop() ?? new SharedArrayBuffer(CHUNK_BYTES);
      taken.add(buffer);
      return new Uint8Array(buffer);
    },
    /** Accepts any view of a taken buffer; ignores other buffers, and one that was given back already. */
    giveBack({ buffer }: Uint8Array): void {
      if (!taken.delete(buffer) || kept.length === MAX_KEPT_BUFFERS) return;
      kept.push(buffer as SharedArrayBuffer);
    },
    get taken() {
      return taken.size;
    },
  };
}

/** Some fifty small pastes. One that is held for long keeps the memory of all, so it must be little. */
const PARCEL_BYTES = 64 * KIB;

/** Copies small byte arrays into shared memory, many to a buffer: a buffer for each would cost more than the bytes. */
export function createParcels(): (bytes: Uint8Array) => Uint8Array {
  let parcel = new SharedArrayBuffer(0);
  let usedBytes = 0;
  return (bytes) => {
    if (usedBytes + bytes.length > parcel.byteLength) {
      parcel = new SharedArrayBuffer(Math.max(PARCEL_BYTES, bytes.length));
      usedBytes = 0;
    }
    const wrapped = new Uint8Array(parcel, usedBytes, bytes.length);
    wrapped.set(bytes);
    usedBytes += bytes.length;
    return wrapped;
  };
}
