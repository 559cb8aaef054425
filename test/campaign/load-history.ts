// What was asked under load as a history that can be carried out again, and shortened: the same steps by the same
// connections, in the order in which they were begun, with a kill at the end of each round.

import type { Step } from './history.ts';
import type { Entry, KnownPaste } from './load.ts';

/** Enough for what was answered before the kill to be answered again. */
const KILL_AFTER_MS = 50;

/** Of these pastes alone. What was only looked at after a kill is left out: a history ends with a look at all. */
export function historyOf(pastes: readonly Pick<KnownPaste, 'model' | 'history'>[]): readonly Step[] {
  const asked = pastes.flatMap(({ model, history }, paste) => {
    return history.filter(({ round }) => round >= 0).map((entry) => ({ paste, model, entry }));
  });
  asked.sort((one, other) => inOrder(one.entry, other.entry));
  return asked.map(({ paste, model, entry }, index) => {
    const { action, connection, attempt, seen, ttlSeconds, round } = entry;
    const isLastOfRound = asked[index + 1]?.entry.round !== round;
    const killAfterMs = seen.kind === 'unknown' ? 0 : KILL_AFTER_MS;
    return {
      action,
      connection,
      paste,
      bytes: model.bytesOf(attempt.version),
      burn: model.burn,
      ttlSeconds,
      killAfterMs: isLastOfRound ? killAfterMs : undefined,
    };
  });
}

/** Entries of one millisecond keep their order: those of one paste are in the order of their answers. */
function inOrder(one: Entry, other: Entry): number {
  return one.round - other.round || one.attempt.startMs - other.attempt.startMs;
}
