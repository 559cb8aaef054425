// npm test [-- FILE...]: builds, then runs the named test files (all of test/ unless given) with Node's own test
// runner, on dist/ (test-built.mjs). Fails when a test fails, when none ran, or when a file has none. A test has a
// limit, and so has a file in which none comes to its end (test-limit.mjs); the suite takes as long as the machine
// needs. It does not retry and does not measure coverage.

import { availableParallelism } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { run as runTests } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { endLike, run, say } from './child.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
// Many times what any test takes on a machine that does nothing else.
const testTimeoutMs = 4 * 60_000;
const silentFileMs = 2 * testTimeoutMs;

const files = process.argv.slice(2);
const built = await run(process.execPath, [join(root, 'scripts', 'build.mjs')]);
if (built.code !== 0) endLike(built);

const stop = new AbortController();
const stopBecause = (reason) => stop.abort(new Error(reason));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stopBecause(`stopped by ${signal}`));

// Until the summary says otherwise.
process.exitCode = 1;
let hasEmptyFile = false;

const report = runTests({
  cwd: root,
  globPatterns: files.length > 0 ? files : ['test/**/*.test.ts'],
  execArgv: [
    '--import', import.meta.resolve('./test-built.mjs'),
    '--import', import.meta.resolve(`./test-limit.mjs?ms=${silentFileMs}`),
  ],
  // One more than cores: most files wait for sockets and processes at times, and some measure time.
  concurrency: availableParallelism() + 1,
  timeout: testTimeoutMs,
  signal: stop.signal,
});
report.on('test:pass', noteEmptyFile);
report.on('test:summary', (summary) => {
  if (summary.file !== undefined) return;
  const { passed, failed, cancelled } = summary.counts;
  if (passed + failed + cancelled === 0) say('no test ran');
  else if (summary.success && !hasEmptyFile) process.exitCode = 0;
});
report.compose(spec).pipe(process.stdout);

// The runner counts a file that holds no test as one passed test under the file's own name.
function noteEmptyFile({ name, nesting, file }) {
  if (nesting > 0 || file === undefined || name !== relative(root, file)) return;
  say(`${name} holds no test`);
  hasEmptyFile = true;
}
