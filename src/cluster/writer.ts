// Carries commands out on the nodes, many in one transaction (group commit). Once rehearsed, each is sent as a claim,
// which is taken once and keeps the answer; guards, which fail if anything it has read has changed; and its changes.
// If another host has changed something meanwhile, the command is rehearsed again.

import { setTimeout } from 'node:timers/promises';
import { type Clock, unixSeconds } from '../core/time.ts';
import { StoreError, unavailable } from '../store/store.ts';
import { LANES, Queue, type Queued } from '../store/writer.ts';
import { DEADLINE_MS, FULL, type Nodes, onlyRow, STALE, type Statement } from './nodes.ts';
import { guardOf, type Known, type Rehearsal, type Statements } from './statements.ts';

type Commands = Readonly<Record<string, (params: never) => unknown>>;

type Parts<Rules> = Readonly<{ nodes: Nodes; statements: Statements; rules: Rules; clock: Clock; newId: () => string }>;

interface Waiting extends Queued {
  readonly id: string;
  readonly rule: () => unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

interface Planned extends Pick<Rehearsal<unknown>, 'answer' | 'changes'> {
  readonly waiting: Waiting;
  /** One for each statement that was read. */
  readonly guards: readonly Statement[];
}

type Plan = readonly [planned: readonly Planned[], later: readonly Waiting[]];

const CLAIM = 'INSERT INTO claims (id, at, answer) VALUES (:id, :at, :answer)';
const ANSWERS = 'SELECT id, answer FROM claims WHERE id IN (SELECT value FROM json_each(:ids))';
const CLAIMED = 'UNIQUE constraint failed: claims.id';

export class ClusterWriter<Rules extends Commands> {
  readonly #parts: Parts<Rules>;
  readonly #queue = new Queue<Waiting>();
  #underWay = 0;
  #working: Promise<void> | undefined;
  #isClosed = false;

  constructor(parts: Parts<Rules>) {
    this.#parts = parts;
  }

  /** Resolves when it is on the disks of most nodes. Rejects with a StoreError, or with an error of this program. */
  run<Name extends keyof Rules & string>(
    name: Name, params: Parameters<Rules[Name]>[0], bytes = 0,
  ): Promise<ReturnType<Rules[Name]>> {
    if (this.#isClosed) return Promise.reject(unavailable('closed'));
    const lane = LANES[name as keyof typeof LANES] ?? 'prompt';
    if (!this.#queue.hasRoomFor(lane, bytes)) return Promise.reject(unavailable('too many writes wait'));
    return new Promise((resolve, reject) => {
      const rule = () => this.#parts.rules[name]!(params);
      this.#queue.add({ lane, bytes, id: this.#parts.newId(), rule, resolve, reject });
      this.#working ??= this.#work();
    });
  }

  get waiting(): number {
    return this.#queue.length + this.#underWay;
  }

  /** Lets what waits finish, and takes no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#working;
  }

  async #work(): Promise<void> {
    // Waits for the end of the turn, so that commands that come in it share a transaction.
    await setTimeout(0);
    for (let batch = this.#queue.take(); batch.length > 0; batch = this.#queue.take()) {
      this.#underWay = batch.length;
      await this.#carryOut(batch);
      this.#underWay = 0;
    }
    // Reset in the turn in which nothing waited any more, so that the next command starts the work anew.
    this.#working = undefined;
  }

  async #carryOut(batch: readonly Waiting[]): Promise<void> {
    const endMs = this.#parts.clock.monotonicMs() + DEADLINE_MS;
    let left = batch;
    try {
      while (left.length > 0 && this.#parts.clock.monotonicMs() < endMs) {
        const [planned, later] = await this.#plan(left);
        left = [...await this.#commit(planned), ...later];
      }
      for (const { reject } of left) reject(unavailable('other hosts kept changing the same'));
    } catch (error) {
      // While nodes are away, waiting commands would wait just as long, batch after batch: they are rejected too.
      for (const { reject } of [...left, ...this.#queue.takeAll()]) reject(error);
    }
  }

  /** Rehearses until nothing is missing. What throws may need changes of commands before it, and is left for later. */
  async #plan(batch: readonly Waiting[], level: 'weak' | 'strong' = 'weak'): Promise<Plan> {
    const known: Known = new Map();
    for (let count = batch.length; ; ) {
      const planned: Planned[] = [];
      const missing = new Map<string, Statement>();
      for (const [index, waiting] of batch.slice(0, count).entries()) {
        try {
          const { reads, missing: unknown, ...rehearsal } = this.#parts.statements.rehearse(known, waiting.rule);
          for (const [key, statement] of unknown) missing.set(key, statement);
          const guards = Array.from(reads, ([key, statement]) => guardOf(statement, known.get(key) ?? ''));
          planned.push({ waiting, guards, ...rehearsal });
        } catch (error) {
          if (index === 0 && level === 'weak') return this.#plan(batch, 'strong');
          if (index === 0) waiting.reject(error);
          count = index;
          break;
        }
      }
      if (missing.size === 0) return [planned, batch.slice(Math.max(1, count))];
      await learn(this.#parts.nodes, missing, known, level);
    }
  }

  /** Settles what can be settled; gives the commands that are to be planned again. */
  async #commit(planned: readonly Planned[]): Promise<readonly Waiting[]> {
    if (planned.length === 0) return [];
    const at = unixSeconds(this.#parts.clock);
    const parts = planned.map(({ waiting: { id }, guards, changes, answer }): readonly Statement[] => (
      [[CLAIM, { id, at, answer: JSON.stringify(answer ?? null) }], ...guards, ...changes]
    ));
    const results = await this.#parts.nodes.commit(parts.flat());
    const failedAt = results.findIndex((result) => result.error !== undefined);
    const error = results[failedAt]?.error;
    if (error === undefined) {
      for (const { waiting, answer } of planned) waiting.resolve(answer as never);
      return [];
    }
    if (error === CLAIMED) return this.#settleClaimed(planned);
    let end = 0;
    const place = parts.findIndex(({ length }) => (end += length) > failedAt);
    const { waiting } = planned[place]!;
    const isStale = error === STALE;
    if (!isStale) waiting.reject(failureOf(error));
    // Those before it can go as they are: a guard may be stale only by what another command in the batch does.
    const left = await this.#commit(planned.slice(0, place));
    // Another host may try the same: waits up to 15 ms, by a digit of the random id, so that their pauses differ.
    if (isStale && place === 0) await setTimeout(Number.parseInt(waiting.id[0]!, 16));
    return [...left, ...planned.slice(isStale ? place : place + 1).map((one) => one.waiting)];
  }

  /** For when an earlier try was carried out, but its answer was lost. Gives the commands that are still to be done. */
  async #settleClaimed(planned: readonly Planned[]): Promise<readonly Waiting[]> {
    const ids = JSON.stringify(planned.map(({ waiting }) => waiting.id));
    const [rows = []] = await this.#parts.nodes.read([[ANSWERS, { ids }]]);
    const answers = new Map(rows.map(([id, answer]) => [id, answer as string]));
    return planned.map(({ waiting }) => waiting).filter(({ id, resolve }) => {
      const answer = answers.get(id);
      if (answer !== undefined) resolve(JSON.parse(answer) as never);
      return answer === undefined;
    });
  }
}

/** Anything but the disk is an error of this program. */
function failureOf(error: string): Error {
  if (FULL.test(error)) return new StoreError('full', `storage full: a node refused a change: ${error}`);
  if (/disk I\/O|malformed|readonly|no such table/.test(error)) return unavailable(`a node refused a change: ${error}`);
  return new Error(`a node refused a change: ${error}`);
}

/** Has the nodes find what is missing. */
export async function learn(
  nodes: Nodes, missing: ReadonlyMap<string, Statement>, known: Known, level: 'weak' | 'strong',
): Promise<void> {
  const statements = [...missing.values()];
  const found = await (level === 'strong' ? nodes.read(statements) : nodes.query(statements, level));
  for (const [index, key] of [...missing.keys()].entries()) known.set(key, String(onlyRow(found[index])[0]));
}
