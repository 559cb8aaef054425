// npm run coverage [-- FILE...]: runs npm test with these files (all of test/ unless given) and says which places of src/
// no test enters, by line and column: what a branch would do, or a function that nobody calls. Fails when a test fails,
// or when there is such a place in the layers below. Threads and programs that tests start count, but for those that
// are killed before they could say where they have been.

import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { repositoryFiles } from '../test/support/source.ts';
import { run, say } from './child.mjs';
import { coverageEnv, enteredIn, rangesOf } from './mutation/entered.mjs';
import { withoutTypes } from './mutation/mutants.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** Of a place, to be found again. */
const SHOWN = 60;

/** The layers that hold the rules of the service: nothing in them may go untried. */
const isWhole = (path) => /^src\/(?:core|crypto|authority|pastes|store)\//.test(path);

const folder = mkdtempSync(join(tmpdir(), 'pasted-coverage-'));
// Some tests start programs as another user.
chmodSync(folder, 0o777);
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const ended = await run(process.execPath, [join(root, 'scripts', 'test.mjs'), ...process.argv.slice(2)], {
  env: coverageEnv(folder), stdio: 'inherit',
});
const marks = enteredIn(folder, root);
const open = repositoryFiles().filter((path) => /^src\/.*\.ts$/.test(path)).flatMap((path) => {
  const source = readFileSync(join(root, path), 'utf8');
  const mark = marks.get(path);
  // Nothing is left to load of a file of types alone.
  const places = placesIn(source, mark ?? new Uint8Array(source.length));
  return places.map((place) => ({ path, text: `${path}:${mark === undefined ? ' never loaded' : place}` }));
});
for (const { text } of open) process.stdout.write(`${text}\n`);
const inner = open.filter(({ path }) => isWhole(path)).length;
say(`${open.length} places of src/ that no test enters, ${inner} of them in the inner layers`);
process.exitCode = ended.code === 0 && inner === 0 ? 0 : 1;

/** Each as line:column and what is there; without those in which there is nothing to be carried out. */
function placesIn(source, mark) {
  const script = withoutTypes(source);
  return rangesOf(mark, 0).flatMap(([start, end]) => {
    const text = script.slice(start, end).replace(/\/\*[^]*?\*\/|\/\/.*/g, '').trim();
    if (!/\w/.test(text)) return [];
    const before = source.slice(0, start + script.slice(start, end).search(/\S/)).split('\n');
    return [`${before.length}:${before.at(-1).length + 1} ${text.replace(/\s+/g, ' ').slice(0, SHOWN)}`];
  });
}
