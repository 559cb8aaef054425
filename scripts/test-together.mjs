// Decides which test files share a process when all run: starting a process takes longer than many test files do. A
// file shares one if neither its text nor that of its imports from test/ changes or measures the process, or starts
// programs that go on. What a text does not show is found when the tests run (test-shared.mjs).

import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDERS = ['api', 'conformance', 'property', 'unit'];

/** The text of one process's files: so little that no process goes on for long when all others are over. */
const PROCESS_BYTES = 50_000;

const NEEDS_OWN_PROCESS = [
  // Modules that start programs, or observe the process.
  /'node:(?:async_hooks|child_process|cluster|diagnostics_channel|inspector|perf_hooks|v8|vm)'/,
  // These hooks and mocks would act on all files of a process.
  /\b(?:after|afterEach|before|beforeEach|mock)\b[^}']*\} from 'node:test'/,
  /\bsyncBuiltinESMExports\b/,
  /\bprocess\.(?!(?:env|execPath|getuid|hrtime|nextTick|pid|platform|versions?)\b)[A-Za-z]+(?:[(.]| =)/,
];

/** These helpers run a program to its end, and change nothing in their own process. */
const HARMLESS = ['programs.ts', 'source.ts'].map((name) => join('test', 'support', name));

/** It changes the process in the same way for all importers, so these share processes with each other. */
const QUICK = join('test', 'support', 'quick-derivation.ts');

const GUARD = fileURLToPath(new URL('./test-shared.mjs', import.meta.url));

/** Replaces the files that share a process by one file that imports them all; `members` maps that file to them. */
export function together(root, files) {
  const folder = join(root, '.runtime', 'test-together');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const members = new Map();
  const inPlaceOf = new Map();
  const { own: _, ...kinds } = Object.groupBy(files, (file) => kindOf(root, file));
  for (const [kind, alike] of Object.entries(kinds)) {
    const bytes = alike.reduce((sum, file) => sum + statSync(file).size, 0);
    const processes = Math.ceil(bytes / PROCESS_BYTES);
    for (let index = 0; index < processes; index += 1) {
      const file = join(folder, `${kind}-${index + 1}.test.mjs`);
      const imported = alike.filter((_, place) => place % processes === index);
      writeFileSync(file, [GUARD, ...imported].map((path) => `import ${JSON.stringify(path)};\n`).join(''));
      members.set(file, imported);
      for (const [place, path] of imported.entries()) inPlaceOf.set(path, place === 0 ? [file] : []);
    }
  }
  return { files: files.flatMap((file) => inPlaceOf.get(file) ?? [file]), members };
}

/** The name of a kind whose files may share a process, or `own`. */
function kindOf(root, file) {
  const [, folder] = relative(root, file).split(sep);
  if (!FOLDERS.includes(folder)) return 'own';
  const texts = textsOf(root, file, new Map());
  for (const path of HARMLESS) texts.delete(join(root, path));
  const isQuick = texts.delete(join(root, QUICK));
  const needsOwn = texts.values().some((text) => NEEDS_OWN_PROCESS.some((pattern) => pattern.test(text)));
  return needsOwn ? 'own' : `${folder}${isQuick ? '-quick' : ''}`;
}

/** The texts of a file and of all files of test/ that it imports, by their paths. */
function textsOf(root, file, texts) {
  if (texts.has(file) || !existsSync(file)) return texts;
  const text = readFileSync(file, 'utf8');
  texts.set(file, text);
  for (const [, specifier] of text.matchAll(/\b(?:from|import)\b\s*\(?'(\.[^']+)'/g)) {
    const imported = resolve(dirname(file), specifier);
    if (imported.startsWith(join(root, 'test', sep))) textsOf(root, imported, texts);
  }
  return texts;
}
