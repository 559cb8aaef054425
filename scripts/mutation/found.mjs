// What the repository keeps of earlier runs of npm run mutate: a line of JSON for each file of which every mutant was
// tried, with what was not killed. A file that has changed since is not known any more.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/**
 * By path of the source: what became of a mutant, or undefined when it has to be tried, since it survived the tests that
 * there were. `digestOf` tells a source as it was from one that has changed.
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
  return new Map(current.map(({ path, late, survived }) => [path, ({ key, testedKey }) => {
    if (late.includes(key)) return 'killed by time';
    if (!(key in survived)) return 'killed';
    return survived[key] === testedKey ? 'survived' : undefined;
  }]));
}

/**
 * Of how many files it has written what became of their mutants.
 * @param {string} file
 * @param {ReadonlyMap<string, string>} sources
 * @param {(source: string) => string} digestOf
 * @param {readonly { path: string, key: string, testedKey: string, outcome?: string }[]} mutants
 */
export function writeFound(file, sources, digestOf, mutants) {
  const lines = [...sources].flatMap(([path, source]) => {
    const own = mutants.filter((mutant) => mutant.path === path);
    if (own.some(({ outcome }) => outcome === undefined)) return [];
    const late = own.filter(({ outcome }) => outcome === 'killed by time').map(({ key }) => key);
    const survivors = own.filter(({ outcome }) => !outcome.startsWith('killed'));
    const survived = Object.fromEntries(survivors.map(({ key, testedKey }) => [key, testedKey]));
    return [`${JSON.stringify({ path, source: digestOf(source), mutants: own.length, late, survived })}\n`];
  });
  writeFileSync(file, lines.join(''));
  return lines.length;
}
