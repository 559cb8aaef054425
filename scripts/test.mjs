// npm test [-- FILE...]: builds, then runs the named test files (all of test/ unless given) with Node's own test
// runner, on dist/ (test-built.mjs). Fails when a test fails, when none ran, or when a file has none. A test has a
// time limit, and so has a file in which no test ends (test-limit.mjs); the suite takes as long as the machine needs.
// It does not retry and does not measure coverage.

import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { run as runTests } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { endLike, run, say } from './child.mjs';
import { together } from './test-together.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
// Many times what any test takes on an otherwise idle machine.
const testTimeoutMs = 4 * 60_000;
const silentFileMs = 2 * testTimeoutMs;

/** The folders with the shortest files come last, so that no long one is left to run alone at the end. */
const SHORTEST_LAST = ['client', 'crash', 'interop', 'api', 'conformance', 'property', 'unit'];

const named = process.argv.slice(2);
const built = await run(process.execPath, [join(root, 'scripts', 'build.mjs')]);
if (built.code !== 0) endLike(built);

const stop = new AbortController();
const stopBecause = (reason) => stop.abort(new Error(reason));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stopBecause(`stopped by ${signal}`));

// The run counts as failed until the summary says otherwise.
process.exitCode = 1;
let hasEmptyFile = false;
const all = testFiles(named.length > 0 ? named : ['test/**/*.test.ts']);
const { files, members } = named.length > 0 ? { files: all, members: new Map() } : together(root, all);
/** Files of shared processes from which no test was reported. */
const unheardOf = new Set([...members.values()].flat());

const report = runTests({
  cwd: root,
  files,
  execArgv: [
    '--import', import.meta.resolve('./test-built.mjs'),
    '--import', import.meta.resolve(`./test-limit.mjs?ms=${silentFileMs}`),
  ],
  // Twice the cores: most files wait for disks, sockets and processes much of the time.
  concurrency: 2 * availableParallelism(),
  timeout: testTimeoutMs,
  signal: stop.signal,
});
report.on('test:pass', noteEmptyFile);
for (const event of ['test:pass', 'test:fail']) report.on(event, ({ file }) => unheardOf.delete(file));
report.on('test:summary', (summary) => {
  if (summary.file !== undefined) return;
  for (const file of unheardOf) say(`no test of ${relative(root, file)} came to its end`);
  const { passed, failed, cancelled } = summary.counts;
  if (passed + failed + cancelled === 0) say('no test ran');
  else if (summary.success && !hasEmptyFile && unheardOf.size === 0) process.exitCode = 0;
});
report.compose(spec).pipe(process.stdout);

function testFiles(patterns) {
  const place = (file) => SHORTEST_LAST.indexOf(relative(root, file).split(sep)[1]);
  const files = globSync(patterns, { cwd: root }).map((file) => resolve(root, file));
  return files.sort((one, other) => place(one) - place(other) || (one < other ? -1 : 1));
}

// The runner counts a file that holds no test as one passed test under the file's own name.
function noteEmptyFile({ name, nesting, file }) {
  if (nesting > 0 || file === undefined || name !== relative(root, file)) return;
  say(`${name} holds no test`);
  hasEmptyFile = true;
}
