// npm run mutate [-- [--workers=N] [--distance=N] [--patience=SECONDS] [--keep] FILE...]: changes one operator, constant
// or condition at a time in the named files (all of core, crypto, authority, pastes and store unless given). In copies
// of the repository it runs the tests that enter the change, are at most `distance` imports away (any number unless
// given), and fit into `patience` together (a minute unless given). A mutant that no test notices survives. It is put
// on a list for a person to read: it is equivalent, or a test is missing. A run with more patience tries only survivors
// again. A run fails when fewer than 95 of 100 are killed. Results are kept in .runtime/mutation, so an interrupted run
// continues where it was. The checkout stays unchanged, except with --keep: that tries nothing, and writes the known
// results into mutation/found.jsonl. Once that is committed, a run in another clone continues from it.

import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { repositoryFiles } from '../test/support/source.ts';
import { say } from './child.mjs';
import { readFound, writeFound } from './mutation/found.mjs';
import { mutantsOf, mutated, piecesOf, withoutTypes } from './mutation/mutants.mjs';
import { reachOfTests } from './mutation/reach.mjs';
import { copyOfRepository, runTests } from './mutation/runs.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const kept = join(root, '.runtime', 'mutation');
const resultsFile = join(kept, 'results.jsonl');
const foundFile = join(root, 'scripts', 'mutation', 'found.jsonl');
const leastKilled = 0.95;

/** The usual time of the tests that share a process: short, so that an endless loop is noticed soon. */
const sliceMs = 2000;

const { values: options, positionals: named } = parseArgs({
  options: {
    workers: { type: 'string' }, distance: { type: 'string' }, patience: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const workers = numberOf('workers', Math.max(1, availableParallelism() - 1));
const mostDistance = numberOf('distance', Infinity);
/** How much testing one mutant gets at most, in the time that the tests take without a mutant. */
const patienceMs = numberOf('patience', 60) * 1000;

const paths = repositoryFiles();
const isInner = (path) => /^src\/(?:core|crypto|authority|pastes|store)\/.*\.ts$/.test(path);
const isTried = (path) => (named.length > 0 && !options.keep ? named.includes(path) : isInner(path));
const sources = new Map(paths.filter(isTried).map((path) => [path, readFileSync(join(root, path), 'utf8')]));
if (sources.size === 0) {
  say('no such file');
  process.exit(2);
}

const copies = Array.from({ length: workers }, copyOfRepository);
mkdirSync(kept, { recursive: true });
const isNear = (distances) => [...sources.keys()].some((path) => distances.get(path) <= mostDistance);
const reach = await reachOfTests(copies[0], paths, join(kept, 'reach'), isNear);
const results = keptResults();
const found = readFound(foundFile);

const mutants = [...sources].flatMap(([path, source]) => {
  const pieces = piecesOf(source, path);
  return mutantsOf(source, path).map((mutant) => {
    return describe(path, source, mutant, pieces.findLast(({ start }) => start <= mutant.start));
  });
});
say(`${mutants.length} mutants of ${sources.size} files, ${reach.length} test files, ${workers} at a time`);
const waiting = mutants.filter((mutant) => {
  const known = results.get(mutant.key) ?? results.get(mutant.testedKey) ?? found(mutant);
  mutant.outcome = mutant.tests.length === 0 ? 'entered by no test' : known;
  return mutant.outcome === undefined;
});
if (options.keep) {
  say(`${writeFound(foundFile, mutants)} of ${mutants.length} mutants are in ${foundFile}`);
  process.exit(0);
}
/** Which tests killed a mutant of which file, oldest first: of equally near tests, the latest to kill runs first. */
const kills = [];
await Promise.all(copies.map(work));
process.exitCode = report() ? 0 : 1;

function numberOf(name, fallback) {
  const given = options[name];
  if (given === undefined || /^[1-9]\d*$/.test(given)) return Number(given ?? fallback);
  say(`--${name} is a whole number from 1: ${JSON.stringify(given)} is none`);
  return process.exit(2);
}

async function work(copy) {
  for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
    const file = join(copy, mutant.path);
    const source = sources.get(mutant.path);
    writeFileSync(file, mutated(withoutTypes(source), mutant));
    mutant.outcome = await tested(copy, mutant.path, mutant.tests);
    writeFileSync(file, source);
    // More tests change nothing for a mutant that was killed; one that survived is tried again when its tests change.
    const key = mutant.outcome === 'survived' ? mutant.testedKey : mutant.key;
    appendFileSync(resultsFile, `${JSON.stringify([key, mutant.outcome])}\n`);
    if (mutant.outcome === 'survived') say(`survived ${place(mutant)}`);
  }
}

async function tested(copy, path, given) {
  const lastKill = (test) => kills.lastIndexOf(`${path} ${test.path}`);
  const tests = given.toSorted((one, other) => one.distance - other.distance || lastKill(other) - lastKill(one));
  for (let from = 0, to; from < tests.length; from = to) {
    let usualMs = tests[from].ms;
    for (to = from + 1; usualMs + tests[to]?.ms <= sliceMs; to += 1) usualMs += tests[to].ms;
    const slice = tests.slice(from, to);
    const run = await runTests(copy, slice.map((test) => test.path), { timeoutMs: 5000 + 4 * usualMs });
    if (run.outcome === 'passed') continue;
    kills.push(...slice.map((test) => `${path} ${test.path}`));
    return run.outcome === 'late' ? 'killed by time' : 'killed';
  }
  return 'survived';
}

function describe(path, source, mutant, piece) {
  const from = source.lastIndexOf('\n', mutant.start - 1) + 1;
  const end = source.indexOf('\n', mutant.end);
  const to = end === -1 ? source.length : end;
  const before = source.slice(from, to).trim();
  const after = (source.slice(from, mutant.start) + mutant.text + source.slice(mutant.end, to)).trim();
  const tests = testsFor(path, mutant.start);
  const key = digest(path, piece.text, mutant.start - piece.start, mutant.end - piece.start, mutant.text);
  return {
    ...mutant,
    path,
    before,
    after,
    tests,
    line: source.slice(0, mutant.start).split('\n').length,
    piece: digest(path, piece.text),
    key,
    testedKey: digest(key, ...tests.map((test) => test.digest)),
  };
}

/**
 * The tests that enter the mutant, as many as patience allows: the nearest by imports first, then those that enter most
 * of its file for their time, since a test of that file is likelier to notice than one that only passes through.
 */
function testsFor(path, position) {
  const entering = reach.filter(({ distances, entered }) => (distances.get(path) ?? Infinity) <= mostDistance &&
    entered[path]?.some(([start, end]) => start <= position && position < end));
  const tests = entering.map((test) => {
    test.digest ??= digest(readFileSync(join(root, test.path), 'utf8'));
    const share = test.entered[path].reduce((sum, [start, end]) => sum + end - start, 0) / test.ms;
    return { path: test.path, ms: test.ms, digest: test.digest, share, distance: test.distances.get(path) ?? Infinity };
  });
  tests.sort((one, other) => one.distance - other.distance || other.share - one.share);
  let spentMs = 0;
  return tests.filter(({ ms }) => (spentMs += ms) - ms < patienceMs);
}

function report() {
  const open = mutants.filter(({ outcome }) => !outcome.startsWith('killed'));
  for (const path of sources.keys()) {
    const own = mutants.filter((mutant) => mutant.path === path);
    const left = own.filter((mutant) => open.includes(mutant));
    process.stdout.write(`${path}: ${own.length - left.length} of ${own.length} killed\n`);
  }
  for (const mutant of open) process.stdout.write(`${mutant.outcome}: ${place(mutant)}\n`);
  const killed = mutants.length - open.length;
  const late = mutants.filter(({ outcome }) => outcome === 'killed by time').length;
  const percent = ((killed / mutants.length) * 100).toFixed(1);
  process.stdout.write(`${killed} of ${mutants.length} killed (${percent} %; ${late} by time), ${open.length} left\n`);
  return killed >= leastKilled * mutants.length;
}

function place({ path, line, before, after }) {
  return `${path}:${line}\n  - ${before}\n  + ${after}`;
}

function keptResults() {
  if (!existsSync(resultsFile)) return new Map();
  // The last line may be cut off.
  const lines = readFileSync(resultsFile, 'utf8').split('\n').filter((line) => line.endsWith(']'));
  return new Map(lines.map((line) => JSON.parse(line)));
}

function digest(...parts) {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}
