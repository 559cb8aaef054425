// npm run coverage [-- FILE...]: runs the named test files (all of test/ unless given) and says which lines and
// branches of src/ no test entered. Fails when a test fails, or when a branch of the layers below is left out. Types
// are stripped by Node itself, which keeps every character in its place: what a transpiler moves or adds is not ours.
// Worker threads count; programs that tests start from dist/ do not.

import { availableParallelism } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import { run as runTests } from 'node:test';
import { dot } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { endLike, run, say } from './child.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const testTimeoutMs = 120_000;

/** The layers that hold the rules of the service: nothing in them may go untried. */
const wholeLayers = ['src/core/', 'src/crypto/', 'src/authority/', 'src/pastes/', 'src/store/'];

const files = process.argv.slice(2);
const built = await run(process.execPath, [join(root, 'scripts', 'build.mjs')]);
if (built.code !== 0) endLike(built);

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stop.abort(new Error(`stopped by ${signal}`)));

process.exitCode = 1;
let success = false;
const report = runTests({
  cwd: root,
  globPatterns: files.length > 0 ? files : ['test/**/*.test.ts'],
  coverage: true,
  coverageIncludeGlobs: ['src/**'],
  concurrency: availableParallelism(),
  timeout: testTimeoutMs,
  signal: stop.signal,
});
report.on('test:fail', ({ name, details, file }) => {
  if (details.error?.failureType !== 'subtestsFailed') say(`failed: ${name} (${relative(root, file ?? '')})`);
});
report.on('test:summary', (summary) => {
  if (summary.file === undefined) success = summary.success;
});
report.on('test:coverage', ({ summary }) => {
  process.stdout.write('\n');
  const missing = summary.files.map(describe).toSorted((one, other) => (one.path < other.path ? -1 : 1));
  for (const { text } of missing.filter(({ isWhole }) => !isWhole)) process.stdout.write(`${text}\n`);
  const left = missing.filter(({ path, openBranches }) => openBranches > 0 && isOfWholeLayer(path));
  process.stdout.write(`${totalsOf(summary.files)}\n`);
  if (left.length > 0) say(`branches that no test enters: ${left.map(({ path }) => path).join(', ')}`);
  else if (success) process.exitCode = 0;
});
report.compose(dot).pipe(process.stdout);

function describe(file) {
  const path = relative(root, file.path).split(sep).join('/');
  const branches = file.branches.filter(({ count }) => count === 0).map(({ line }) => line);
  const lines = file.lines.filter(({ count }) => count === 0).map(({ line }) => line);
  const parts = [path];
  if (branches.length > 0) parts.push(`branches at ${rangesOf(branches)}`);
  if (lines.length > 0) parts.push(`lines ${rangesOf(lines)}`);
  return { path, text: parts.join('; '), openBranches: branches.length, isWhole: parts.length === 1 };
}

function isOfWholeLayer(path) {
  return wholeLayers.some((layer) => path.startsWith(layer));
}

/** '3-5 9' for 3, 4, 5 and 9; each number once. */
function rangesOf(numbers) {
  const ranges = [];
  for (const number of [...new Set(numbers)].toSorted((one, other) => one - other)) {
    const last = ranges.at(-1);
    if (last?.[1] === number - 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(' ');
}

function totalsOf(covered) {
  const sum = (key) => covered.reduce((total, file) => total + file[key], 0);
  const share = (of) => `${sum(`covered${of}Count`)} of ${sum(`total${of}Count`)}`;
  return `${covered.length} files: lines ${share('Line')}, branches ${share('Branch')}, ` +
    `functions ${share('Function')}`;
}
