// Histories: sequences of actions on a few pastes, with kills between and during them, made from a seed, carried out
// one after another on a service, and held to the model. A history that fails is made as short as it can be and still
// fail. The service is behind `Site`, so that the search itself can be tested.

import { carryOut } from './actions.ts';
import type { Answer, Ask } from './client.ts';
import { createPasteModel, type Action, type PasteModel } from './model.ts';
import type { Seeded } from '../support/seeded.ts';

export interface Step {
  readonly action: Action;
  /** Which paste, from 0; the first `create` makes it, others of the same number do nothing. */
  readonly paste: number;
  /** Of the content that it brings. */
  readonly bytes: number;
  /** Of `create`: read only once. */
  readonly burn: boolean;
  /** Of `create`. */
  readonly ttlSeconds?: number | undefined;
  /** SIGKILL so many milliseconds after the request was sent, whether or not it was answered. */
  readonly killAfterMs?: number | undefined;
}

/** Where a history is carried out. */
export interface Site {
  ask(request: Ask): Promise<Answer | undefined>;
  /** Kills the service at once, and resolves when another serves the same database. */
  restart(): Promise<void>;
}

const PASTES = 4;
const LARGE_BYTES = 200_000;

/** A history of so many steps. Only what has been made is used, mostly. */
export function randomHistory(random: Seeded, length: number): readonly Step[] {
  const actions: readonly Action[] = ['create', 'read', 'look', 'update', 'update', 'delete'];
  return Array.from({ length }, (_, index) => ({
    action: index < PASTES ? 'create' : random.pick(actions),
    paste: index < PASTES ? index : random.below(PASTES + Math.floor(index / 6)),
    bytes: random.oneIn(5) ? random.between(65_000, LARGE_BYTES) : random.between(40, 3000),
    burn: random.oneIn(3),
    ttlSeconds: random.oneIn(10) ? random.between(1, 2) : undefined,
    killAfterMs: random.oneIn(5) ? random.below(12) : undefined,
  }));
}

/** Carries a history out on an empty site; what is wrong first, in words, or undefined. */
export async function replay(history: readonly Step[], site: Site, label: string): Promise<string | undefined> {
  const models = new Map<number, PasteModel>();
  for (const [index, step] of history.entries()) {
    const wrong = await take(step, models, site, label);
    if (wrong !== undefined) return `step ${index}: ${wrong}`;
  }
  await site.restart();
  for (const model of models.values()) {
    const { wrong } = await carryOut(site, model, model.burn ? 'look' : 'read');
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
  const { action, paste, burn, killAfterMs } = step;
  const known = models.get(paste);
  if ((known === undefined) !== (action === 'create')) return undefined;
  const model = known ?? createPasteModel(`${label}p${paste}`, { burn });
  if (model.burn && action === 'update') return undefined;
  const done = carryOut(site, model, action, step);
  if (killAfterMs !== undefined) {
    await new Promise((resolve) => setTimeout(resolve, killAfterMs));
    await site.restart();
  }
  const { wrong } = await done;
  // Of one whose creation was not answered, nobody knows the id.
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
