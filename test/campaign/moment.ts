// Finds the moment of which a restored database is. It must be one: a paste as it was then beside another as it was
// later is a state that never existed. What was asked and answered says when each may have been as found. No I/O here.

import type { Entry, KnownCertificate, KnownPaste, Span } from './load.ts';
import { isChange, type State } from './model.ts';

/** Where the history of a paste begins for this purpose: with the last start, or with its creation. */
export interface Beginning {
  readonly state: State;
  /** How many entries of its history are from before. */
  readonly entries: number;
}

/** When the paste may have been in that state. */
export function spansOfPaste(
  { model, history }: Pick<KnownPaste, 'model' | 'history'>,
  found: State,
  begun: Beginning = { state: 'gone', entries: 0 },
): Span[] {
  const changes = history.slice(begun.entries).filter((entry) => mayHaveChanged(entry, model.burn));
  // A request that was never answered may have replaced nothing.
  const replacedMs = (index: number): number => {
    return changes.slice(index).find(({ seen }) => seen.kind === 'done')?.endMs ?? Infinity;
  };
  const spans = changes.flatMap((entry, index) => {
    return stateAfter(entry) === found ? [{ fromMs: entry.attempt.startMs, toMs: replacedMs(index + 1) }] : [];
  });
  if (begun.state === found) spans.push({ fromMs: -Infinity, toMs: replacedMs(0) });
  if (found === 'gone') spans.push({ fromMs: expiryMs(history), toMs: Infinity });
  return spans;
}

function mayHaveChanged({ action, seen }: Entry, burn: boolean): boolean {
  return isChange(action, burn) && (seen.kind === 'done' || seen.kind === 'unknown');
}

function stateAfter({ action, attempt }: Entry): State {
  return action === 'create' || action === 'update' ? attempt.version : 'gone';
}

/** From this moment on the paste may have been removed. */
function expiryMs(history: readonly Entry[]): number {
  const created = history.find(({ action, seen }) => action === 'create' && seen.kind === 'done')?.seen;
  return created?.kind === 'done' ? (created.expiresAt ?? Infinity) * 1000 : Infinity;
}

/** When the certificate may have been as it is found; `found` is undefined when the database does not have it. */
export function spansOfCertificate(
  { issued, revoked }: Pick<KnownCertificate, 'issued' | 'revoked'>, found: { readonly isRevoked: boolean } | undefined,
): Span[] {
  if (found === undefined) return [{ fromMs: -Infinity, toMs: issued.toMs }];
  if (!found.isRevoked) return [{ fromMs: issued.fromMs, toMs: revoked?.toMs ?? Infinity }];
  return revoked === undefined ? [] : [{ fromMs: revoked.fromMs, toMs: Infinity }];
}

/** The latest moment within `bounds` that fits the most things, and the things that it does not fit. */
export function latestMoment<Thing>(
  spans: ReadonlyMap<Thing, readonly Span[]>, bounds: Span,
): { readonly atMs: number; readonly others: readonly Thing[] } {
  const within = new Map([...spans].map(([thing, some]) => [thing, joined(some, bounds)]));
  const ends = [...within.values()].flat()
    .flatMap(({ fromMs, toMs }) => [{ ms: fromMs, by: 1 }, { ms: toMs, by: -1 }])
    // A span includes both its ends, so beginnings come first.
    .sort((one, other) => one.ms - other.ms || other.by - one.by);
  const best = { count: 0, atMs: bounds.fromMs };
  let count = 0;
  for (const { ms, by } of ends) {
    if (by < 0 && count >= best.count) Object.assign(best, { count, atMs: ms });
    count += by;
  }
  const isOther = ([, some]: [Thing, readonly Span[]]): boolean => {
    return !some.some(({ fromMs, toMs }) => fromMs <= best.atMs && best.atMs <= toMs);
  };
  return { atMs: best.atMs, others: [...within].filter(isOther).map(([thing]) => thing) };
}

/** In their order, and merged where they touch. A moment of a clock of milliseconds lasts one millisecond. */
function joined(spans: readonly Span[], bounds: Span): Span[] {
  const apart: Span[] = [];
  for (const span of spans.toSorted((one, other) => one.fromMs - other.fromMs)) {
    const fromMs = Math.max(span.fromMs, bounds.fromMs);
    const toMs = Math.min(span.toMs + 1, bounds.toMs);
    const last = apart.at(-1);
    if (toMs < fromMs) continue;
    if (last === undefined || last.toMs < fromMs) apart.push({ fromMs, toMs });
    else apart.splice(-1, 1, { fromMs: last.fromMs, toMs: Math.max(last.toMs, toMs) });
  }
  return apart;
}
