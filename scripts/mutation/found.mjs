// What the repository keeps of earlier runs of npm run mutate: a line of JSON for each file with a tried mutant. It has
// the file's known pieces, and which of their mutants were killed by time, survived, or are still to be tried. A piece
// that has changed since is no longer known; an unchanged piece stays known, whatever changes around it.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/**
 * What became of a mutant, or undefined when it has to be tried: it was never tried, or its tests have changed since it
 * survived.
 * @param {string} file
 * @returns {(mutant: { path: string, piece: string, key: string, testedKey: string }) => string | undefined}
 */
export function readFound(file) {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter((line) => line !== '') : [];
  const found = new Map(lines.map((line) => JSON.parse(line)).map((known) => [known.path, known]));
  return ({ path, piece, key, testedKey }) => {
    const known = found.get(path);
    if (known === undefined || !known.pieces.includes(piece) || known.untried.includes(key)) return undefined;
    if (known.late.includes(key)) return 'killed by time';
    if (!(key in known.survived)) return 'killed';
    return known.survived[key] === testedKey ? 'survived' : undefined;
  };
}

/**
 * Returns how many mutants it has written the outcome of.
 * @param {string} file
 * @param {readonly { path: string, piece: string, key: string, testedKey: string, outcome?: string }[]} mutants
 */
export function writeFound(file, mutants) {
  const isTried = ({ outcome }) => outcome !== undefined;
  const keysOf = (some) => some.map(({ key }) => key);
  const lines = Object.entries(Object.groupBy(mutants, ({ path }) => path)).flatMap(([path, own]) => {
    const pieces = [...new Set(own.filter(isTried).map(({ piece }) => piece))];
    if (pieces.length === 0) return [];
    const late = keysOf(own.filter(({ outcome }) => outcome === 'killed by time'));
    const survivors = own.filter((mutant) => isTried(mutant) && !mutant.outcome.startsWith('killed'));
    const survived = Object.fromEntries(survivors.map(({ key, testedKey }) => [key, testedKey]));
    const untried = keysOf(own.filter((mutant) => !isTried(mutant) && pieces.includes(mutant.piece)));
    return [`${JSON.stringify({ path, pieces, late, survived, untried })}\n`];
  });
  writeFileSync(file, lines.join(''));
  return mutants.filter(isTried).length;
}
