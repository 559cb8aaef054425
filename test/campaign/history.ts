// Histories: actions on a few pastes by one connection or several at once, with kills between and during them. They are
// made from a seed or written down under load, carried out on a service, and checked against the model. A failing one
// is made as short as it can be and still fail. The service is behind `Site`, so that the search itself can be tested.

import { carryOut } from './actions.ts';
import type { Answer, Ask } from './client.ts';
import { createPasteModel, isChange, type Action, type PasteModel } from './model.ts';
import type { Seeded } from '../support/seeded.ts';

export interface Step {
  readonly action: Action;
  /** The connection that takes the step: each takes its steps one after another, several at the same time. */
  readonly connection: number;
  /** Which paste, from 0; the first `create` makes it, others of the same number do nothing. */
  readonly paste: number;
  /** Of the content that it brings. */
  readonly bytes: number;
  /** Of `create`: whether the paste is read only once. */
  readonly burn: boolean;
  /** Of `create`. */
  readonly ttlSeconds?: number | undefined;
  /** SIGKILL so many milliseconds after the request was sent, whether or not it was answered. */
  readonly killAfterMs?: number | undefined;
}

/** Where a history is carried out. */
export interface Site {
  ask(request: Ask, connection: number): Promise<Answer | undefined>;
  /** Kills the service at once, and resolves when another serves the same database. What is asked meanwhile waits. */
  restart(): Promise<void>;
}

const PASTES = 4;
const LARGE_BYTES = 200_000;

/** A kill within 3 ms mostly comes while the request is under way, one within 12 ms mostly just after its answer. */
const KILL_WITHIN_MS = [3, 12];

/** A creation is repeated only when another kill has cut it off. */
const MORE_CREATIONS = 10;

/** A history of `length` steps. Each makes a paste or asks for one that was made, which may be gone again. */
export function randomHistory(random: Seeded, length: number, connections = 1): readonly Step[] {
  const actions: readonly Action[] = ['create', 'read', 'look', 'update', 'update', 'delete'];
  const burning: boolean[] = [];
  return Array.from({ length }, () => {
    const drawn = burning.length < PASTES ? 'create' : random.pick(actions);
    const paste = drawn === 'create' ? burning.length : random.below(burning.length);
    const burn = drawn === 'create' ? random.oneIn(3) : burning[paste]!;
    burning[paste] = burn;
    return {
      // What is read only once cannot be updated.
      action: burn && drawn === 'update' ? 'read' : drawn,
      connection: connections === 1 ? 0 : random.below(connections),
      paste,
      bytes: random.oneIn(5) ? random.between(65_000, LARGE_BYTES) : random.between(40, 3000),
      burn,
      ttlSeconds: random.oneIn(10) ? random.between(1, 2) : undefined,
      killAfterMs: random.oneIn(5) ? random.below(random.pick(KILL_WITHIN_MS)) : undefined,
    };
  });
}

/**
 * Carries a history out on an empty site; resolves with the first thing that is wrong, in words, or undefined. A step
 * waits only for steps that it must not overtake: those of its connection, a kill, the creation of its paste, and,
 * when it changes the paste, other changes of it (the model wants them one after another).
 */
export async function replay(history: readonly Step[], site: Site, label: string): Promise<string | undefined> {
  const models = new Map<number, PasteModel>();
  const burning = new Set(history.filter(({ action, burn }) => action === 'create' && burn).map(({ paste }) => paste));
  const latest = new Map<string, Promise<void>>();
  let wrong: string | undefined;
  for (const [index, step] of history.entries()) {
    const { action, connection, paste } = step;
    const changes = isChange(action, burning.has(paste));
    const line = `connection ${connection}`;
    const awaited = [line, 'kill', `${changes ? 'change' : 'creation'} of ${paste}`].map((what) => latest.get(what));
    const taken = Promise.all(awaited).then(async () => {
      const found = wrong === undefined ? await take(step, models, site, label) : undefined;
      if (found !== undefined) wrong ??= `step ${index}: ${found}`;
    });
    latest.set(line, taken);
    if (step.killAfterMs !== undefined) latest.set('kill', taken);
    if (changes) latest.set(`change of ${paste}`, taken);
    if (action === 'create') latest.set(`creation of ${paste}`, taken);
  }
  await Promise.all(latest.values());
  return wrong ?? lookAtAll(models, site);
}

async function lookAtAll(models: ReadonlyMap<number, PasteModel>, site: Site): Promise<string | undefined> {
  await site.restart();
  for (const model of models.values()) {
    const asker = { ask: (request: Ask) => site.ask(request, 0) };
    const { wrong } = await carryOut(asker, model, model.burn ? 'look' : 'read');
    if (wrong !== undefined) return `at the end: ${wrong}`;
  }
  return undefined;
}

async function take(
  step: Step,
  models: Map<number, PasteModel>,
  site: Site,
  label: string,
): Promise<string | undefined> {
  const { action, connection, paste, burn, killAfterMs } = step;
  const known = models.get(paste);
  const isUsable = (known === undefined) === (action === 'create') && !(known?.burn === true && action === 'update');
  // The kill belongs to the history, even when there is nothing to ask meanwhile.
  if (!isUsable) return killAfterMs === undefined ? undefined : void (await site.restart());
  const model = known ?? createPasteModel(`${label}p${paste}`, { burn });
  const asker = { ask: (request: Ask) => site.ask(request, connection) };
  const done = carryOut(asker, model, action, step);
  if (killAfterMs !== undefined) {
    await new Promise((resolve) => setTimeout(resolve, killAfterMs));
    await site.restart();
  }
  let { wrong } = await done;
  // Later steps need the id of the paste, which is unknown while its creation was not answered.
  const isCutOff = (): boolean => action === 'create' && model.id() === undefined && wrong === undefined;
  for (let left = MORE_CREATIONS; isCutOff() && left > 0; left -= 1) {
    ({ wrong } = await carryOut(asker, model, action, step));
  }
  if (model.id() !== undefined) models.set(paste, model);
  return wrong;
}

/**
 * The shortest history that still fails, found by leaving ever smaller pieces out (Zeller's delta debugging). Each
 * attempt is `fails` on a part of the history; at most `attempts` are made.
 */
export async function shrink<Item>(
  history: readonly Item[],
  fails: (part: readonly Item[]) => Promise<boolean>,
  attempts = 200,
): Promise<readonly Item[]> {
  let shortest = history;
  let left = attempts;
  for (let size = Math.ceil(shortest.length / 2); size >= 1 && left > 0; ) {
    let isShorter = false;
    for (let start = 0; start < shortest.length && left > 0; ) {
      const part = [...shortest.slice(0, start), ...shortest.slice(start + size)];
      left -= 1;
      if (part.length > 0 && (await fails(part))) {
        shortest = part;
        isShorter = true;
      } else {
        start += size;
      }
    }
    if (size === 1 && !isShorter) break;
    size = isShorter ? Math.min(size, Math.ceil(shortest.length / 2)) : Math.ceil(size / 2);
    if (size === 1 && shortest.length === 1) break;
  }
  return shortest;
}
