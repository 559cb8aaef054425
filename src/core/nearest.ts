// "Did you mean": the known name that is closest to one that is not known. Does not decide what is known.

/** How much of a name may differ before a suggestion would be a guess. */
const TOLERANCE = 0.3;

/** The candidate that takes the fewest edits, undefined when all take too many; the first of those that are equal. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(name.length * TOLERANCE)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(name, candidate);
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/**
 * Characters to insert, remove, replace, or swap with their neighbour to come from one text to the other (optimal
 * string alignment distance). Takes a.length * b.length steps.
 */
export function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replacing = previous[column - 1]! + Number(a[row - 1] !== b[column - 1]);
      const removing = previous[column]! + 1;
      const inserting = current[column - 1]! + 1;
      // Before the first character there is none, and undefined is like no character.
      const canSwap = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swapping = canSwap ? beforePrevious[column - 2]! + 1 : Infinity;
      current.push(Math.min(replacing, removing, inserting, swapping));
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length]!;
}
