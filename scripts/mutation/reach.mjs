// Which test files enter which characters of src/, and how long each takes. This is measured once for each state of a
// test file and of all its imports, and kept. Test files that fail without a mutant are named and left out.

import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, importsOf, resolveImport } from '../../test/support/source.ts';
import { say } from '../child.mjs';
import { enteredIn, rangesOf } from './entered.mjs';
import { runTests } from './runs.mjs';

const baselineTimeoutMs = 120_000;

/** Leaves out tests that start whole processes or other programs: they are slow, and run what was built. */
const isOfUse = (path) => /^test\/(?:unit|property|api)\/.*\.test\.ts$|^test\/interop\/crypto-.*\.test\.ts$/.test(path);

/**
 * For each test file its `path`, its duration in `ms`, how many imports away each file is (`distances`, by path), and
 * `entered`: by path of src/, the ranges `[start, end)` of characters that it executes. Test files whose distances
 * `isWanted` rejects are left out.
 */
export async function reachOfTests(copy, paths, keptIn, isWanted) {
  mkdirSync(keptIn, { recursive: true });
  const graph = importGraph(copy);
  const reach = [];
  for (const path of paths.filter(isOfUse)) {
    const distances = distancesFrom(graph, path);
    if (!isWanted(distances)) continue;
    const kept = join(keptIn, `${digestOf(copy, [...distances.keys()].sort())}.json`);
    const known = read(kept) ?? await measure(copy, path, kept);
    if (known.outcome !== 'passed') say(`${path} ${known.outcome} without a mutant, and is left out`);
    else reach.push({ path, distances, ...known });
  }
  return reach;
}

async function measure(copy, path, kept) {
  say(`measuring ${path}`);
  const coverageFolder = mkdtempSync(join(copy, '..', 'coverage-'));
  const { outcome, ms } = await runTests(copy, [path], { timeoutMs: baselineTimeoutMs, coverageFolder });
  const known = { outcome, ms, entered: outcome === 'passed' ? entered(coverageFolder, copy) : {} };
  rmSync(coverageFolder, { recursive: true, force: true });
  if (outcome === 'passed') writeFileSync(kept, JSON.stringify(known));
  return known;
}

function entered(coverageFolder, copy) {
  return Object.fromEntries([...enteredIn(coverageFolder, copy)].map(([path, mark]) => [path, rangesOf(mark)]));
}

/** A function that gives the direct imports of a file, and reads each file once. */
function importGraph(copy) {
  const known = new Map();
  return (path) => {
    if (!known.has(path)) {
      const text = read(join(copy, path), String);
      const isScript = text !== undefined && path.endsWith('.ts');
      const names = isScript ? importsOf({ path, text, code: codeOf(text, path) }) : [];
      known.set(path, names.map((name) => resolveImport(path, name)).filter((name) => /^(?:src|test)\//.test(name)));
    }
    return known.get(path);
  };
}

/** Breadth first: a Map visits what is added to it on the way. */
function distancesFrom(graph, path) {
  const distances = new Map([[path, 0]]);
  for (const [one, distance] of distances) {
    for (const imported of graph(one)) if (!distances.has(imported)) distances.set(imported, distance + 1);
  }
  return distances;
}

function digestOf(copy, paths) {
  const hash = createHash('sha256').update(process.version);
  for (const path of paths) hash.update(`${path}\0`).update(read(join(copy, path), String) ?? '').update('\0');
  return hash.digest('hex').slice(0, 32);
}

function read(path, parse = JSON.parse) {
  try {
    return parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'EISDIR') return undefined;
    throw error;
  }
}
