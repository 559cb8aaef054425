// What the repository keeps of earlier runs of npm run mutate: a line of JSON for each file of which a mutant was tried,
// with what was not killed and what is still to be tried. A file that has changed since is not known any more.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/**
 * By path of the source: what became of a mutant, or undefined when it has to be tried, since nobody has, or since it
 * survived the tests that there were. `digestOf` tells a source as it was from one that has changed.
 * @param {string} file
 * @param {ReadonlyMap<string, string>} sources
 * @param {(source: string) => string} digestOf
 * @returns {Map<string, (mutant: { key: string, testedKey: string }) => string | undefined>}
 */
export function readFound(file, sources, digestOf) {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter((line) => line !== '') : [];
  const current = lines.map((line) => JSON.parse(line)).filter(({ path, source }) => {
    return sources.has(path) && digestOf(sources.get(path)) === source;
  });
  return new Map(current.map(({ path, late, survived, untried }) => [path, ({ key, testedKey }) => {
    if (untried.includes(key)) return undefined;
    if (late.includes(key)) return 'killed by time';
    if (!(key in survived)) return 'killed';
    return survived[key] === testedKey ? 'survived' : undefined;
  }]));
}

/**
 * Of how many mutants it has written what became of them.
 * @param {string} file
 * @param {ReadonlyMap<string, string>} sources
 * @param {(source: string) => string} digestOf
 * @param {readonly { path: string, key: string, testedKey: string, outcome?: string }[]} mutants
 */
export function writeFound(file, sources, digestOf, mutants) {
  const isUntried = ({ outcome }) => outcome === undefined;
  const keysOf = (some) => some.map(({ key }) => key);
  const lines = [...sources].flatMap(([path, source]) => {
    const own = mutants.filter((mutant) => mutant.path === path);
    if (own.every(isUntried)) return [];
    const late = keysOf(own.filter(({ outcome }) => outcome === 'killed by time'));
    const survivors = own.filter((mutant) => !isUntried(mutant) && !mutant.outcome.startsWith('killed'));
    const survived = Object.fromEntries(survivors.map(({ key, testedKey }) => [key, testedKey]));
    const untried = keysOf(own.filter(isUntried));
    return [`${JSON.stringify({ path, source: digestOf(source), mutants: own.length, late, survived, untried })}\n`];
  });
  writeFileSync(file, lines.join(''));
  return mutants.filter((mutant) => !isUntried(mutant)).length;
}
