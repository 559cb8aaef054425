// npm run coverage [-- FILE...]: runs npm test with these files (all of test/ unless given) and lists, by line and
// column, the places of src/ that no test enters: a branch never taken, or a function never called. Fails when a test
// fails, or when the layers of `isWhole` have such a place. Threads and programs that tests start count too, unless
// they are killed before they write their coverage.

import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { repositoryFiles } from '../test/support/source.ts';
import { run, say } from './child.mjs';
import { coverageEnv, enteredIn, rangesOf } from './mutation/entered.mjs';
import { withoutTypes } from './mutation/mutants.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** How many characters of a place are shown, so that a reader finds it. */
const SHOWN = 60;

/** The layers that hold the rules of the service: nothing in them may go untried. */
const isWhole = (path) => /^src\/(?:core|crypto|authority|pastes|store)\//.test(path);

const folder = mkdtempSync(join(tmpdir(), 'pasted-coverage-'));
// Some tests start programs as another user, whose coverage goes here too.
chmodSync(folder, 0o777);
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const ended = await run(process.execPath, [join(root, 'scripts', 'test.mjs'), ...process.argv.slice(2)], {
  env: coverageEnv(folder), stdio: 'inherit',
});
const marks = enteredIn(folder, root);
const open = repositoryFiles().filter((path) => /^src\/.*\.ts$/.test(path)).flatMap((path) => {
  const source = readFileSync(join(root, path), 'utf8');
  const mark = marks.get(path);
  // A file that was never loaded counts as not entered. If it holds only types, it has no places.
  const places = placesIn(source, mark ?? new Uint8Array(source.length));
  return places.map((place) => ({ path, text: `${path}:${mark === undefined ? ' never loaded' : place}` }));
});
for (const { text } of open) process.stdout.write(`${text}\n`);
const inner = open.filter(({ path }) => isWhole(path)).length;
say(`${open.length} places of src/ that no test enters, ${inner} of them in the inner layers`);
process.exitCode = ended.code === 0 && inner === 0 ? 0 : 1;

/** Each place as line:column and the code there; places without code are left out. */
function placesIn(source, mark) {
  const script = withoutTypes(source);
  return rangesOf(mark, 0).flatMap(([start, end]) => {
    const text = script.slice(start, end).replace(/\/\*[^]*?\*\/|\/\/.*/g, '').trim();
    if (!/\w/.test(text)) return [];
    const before = source.slice(0, start + script.slice(start, end).search(/\S/)).split('\n');
    return [`${before.length}:${before.at(-1).length + 1} ${text.replace(/\s+/g, ' ').slice(0, SHOWN)}`];
  });
}
