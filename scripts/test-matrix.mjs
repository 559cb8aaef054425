// npm run test:matrix [-- FILE...]: npm test on every pinned version of Node, one after the other, each fetched when it
// is not kept yet. Fails when one of them fails. Runs on Node 18 and up, and fetches the same builds whatever the
// host's own Node is.

import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endLike, run, say } from './child.mjs';
import { Stopped, envOfHost, envWith, keptRuntime, pinnedVersions } from './runtime.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const files = process.argv.slice(2);

const results = [];
for (const version of pinnedVersions) results.push(await testOn(version));
for (const { line } of results) process.stdout.write(`${line}\n`);
process.exit(results.every(({ passed }) => passed) ? 0 : 1);

async function testOn(version) {
  const node = await keptRuntime(version).catch(giveUp);
  process.stdout.write(`Node ${version}\n`);
  const startedAt = performance.now();
  const ended = await run(node, [join(root, 'scripts', 'test.mjs'), ...files], {
    cwd: root,
    env: envWith(node, envOfHost()),
    stdio: ['ignore', 'pipe', 'inherit'],
    onText: (text) => process.stdout.write(text),
  });
  if (ended.received !== null) endLike({ code: null, signal: ended.received });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
  const passed = ended.code === 0;
  const outcome = passed ? 'passed' : `failed (${ended.signal ?? `exit code ${ended.code}`})`;
  return { passed, line: `Node ${version}: ${outcome}, ${countsOf(ended.output)}, ${seconds} s` };
}

// The last lines of the runner's own report. A run that was cut off has none.
function countsOf(output) {
  const counts = ['pass', 'fail', 'cancelled', 'skipped'].map((name) => {
    const found = [...output.matchAll(new RegExp(`^\\S* ?${name} (\\d+)$`, 'gm'))].at(-1);
    return found === undefined ? undefined : `${name} ${found[1]}`;
  });
  return counts.includes(undefined) ? 'no counts' : counts.join(', ');
}

function giveUp(error) {
  if (error instanceof Stopped) endLike({ code: null, signal: error.signal });
  say(`cannot test on every pinned version of Node (${error.message})`);
  process.exit(1);
}
