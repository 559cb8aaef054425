// node scripts/compile.mjs [OUT]: makes OUT (dist/ unless given) from src/ by removing the types. All code keeps its
// line and column. Needs no package. It does not check the types: build.mjs does. Run it with
// --disable-warning=ExperimentalWarning, since module.stripTypeScriptTypes is still marked as experimental on Node 24.

import { createHash } from 'node:crypto';
import {
  copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync,
  writeFileSync,
} from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { say } from './child.mjs';
import { withLock } from './lock.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const source = join(root, 'src');
const dist = join(root, 'dist');
const runtime = join(root, '.runtime');
const stampFile = join(runtime, 'dist.stamp');

const HOUR_MS = 3_600_000;

const out = process.argv[2] === undefined ? dist : resolve(process.argv[2]);
try {
  if (out !== dist) compile(out, dirname(out));
  else if (!isCurrent()) await compileDist();
} catch (error) {
  if (!(error instanceof SyntaxError)) throw error;
  say(error.message);
  process.exitCode = 1;
}

async function compileDist() {
  mkdirSync(runtime, { recursive: true });
  const onWait = () => say('waiting for another process that is building');
  await withLock(join(runtime, 'build.lock'), onWait, () => isCurrent() || replaceDist());
}

function replaceDist() {
  say('building dist/');
  // Folders of killed processes. The folder of a slow process may be a minute old, and must stay.
  for (const name of readdirSync(runtime).filter((name) => name.startsWith('building-'))) {
    const madeMs = statSync(join(runtime, name), { throwIfNoEntry: false })?.mtimeMs;
    if (madeMs < Date.now() - HOUR_MS) rmSync(join(runtime, name), { recursive: true, force: true });
  }
  // Read before compiling, so that an edit while this runs leaves dist/ stale, not current.
  const inputs = inputsDigest();
  compile(dist, runtime);
  writeFileSync(stampFile, stampOf(inputs));
}

function isCurrent() {
  return existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stampOf(inputsDigest());
}

// Names both what dist/ was made of and what it holds, so that an edit on either side makes it stale.
function stampOf(inputs) {
  return `${inputs} ${digest(filesUnder(dist))}\n`;
}

function inputsDigest() {
  return digest([...filesUnder(source), fileURLToPath(import.meta.url)]);
}

function digest(files) {
  const hash = createHash('sha256');
  for (const file of files) {
    const content = readFileSync(file);
    hash.update(`${relative(root, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

// Compiles into a new folder under `workFolder` (on the same file system as `target`) and renames that into place: a
// crash leaves the old folder or none, and the new folder has no file that was removed from src/.
function compile(target, workFolder) {
  mkdirSync(workFolder, { recursive: true });
  const work = mkdtempSync(join(workFolder, 'building-'));
  try {
    const made = join(work, 'new');
    for (const file of filesUnder(source)) compileFile(file, join(made, relative(source, file)));
    writeFileSync(join(made, 'package.json'), `${JSON.stringify({ type: 'module' })}\n`);
    if (existsSync(target)) renameSync(target, join(work, 'old'));
    renameSync(made, target);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function compileFile(file, target) {
  mkdirSync(dirname(target), { recursive: true });
  if (!file.endsWith('.ts')) {
    copyFileSync(file, target);
    return;
  }
  const text = readFileSync(file, 'utf8');
  writeFileSync(target.replace(/\.ts$/, '.js'), importCompiled(trimBlanked(text, withoutTypes(file, text))));
}

function withoutTypes(file, text) {
  try {
    return stripTypeScriptTypes(text, { mode: 'strip' });
  } catch (error) {
    throw new SyntaxError(`cannot take the types out of ${relative(root, file)}: ${error.message}`);
  }
}

// Types become spaces. Spaces at the end of a line are removed, unless the line had white space there before (in a
// template literal, say).
function trimBlanked(text, stripped) {
  const before = text.split('\n');
  return stripped.split('\n').map((line, index) => (/\s$/.test(before[index]) ? line : line.trimEnd())).join('\n');
}

// Modules name each other by relative string literals: import, export from, import() and new URL(..., import.meta.url).
function importCompiled(text) {
  return text.replace(/(['"])(\.{1,2}\/[^'"\n]*)\.ts\1/g, '$1$2.js$1');
}

function filesUnder(folder) {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name)).sort();
}
