// Which characters of src/ were executed, from the files that V8 writes into NODE_V8_COVERAGE, one for each thread and
// process. Code in dist/ counts as the same place in src/, since the two differ only by blanks at the ends of lines.

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The environment in which a process, its threads and the programs that it starts write coverage into `folder`. */
export function coverageEnv(folder) {
  const hook = `--import=${new URL('threads.mjs', import.meta.url)}`;
  return { ...process.env, NODE_V8_COVERAGE: folder, NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} ${hook}`.trim() };
}

/**
 * By path of src/, a mark for each character: 1 if any process executed it. Files that were never loaded are missing.
 * @param {string} coverageFolder
 * @param {string} root of the repository, or of a copy of it
 * @returns {Map<string, Uint8Array>}
 */
export function enteredIn(coverageFolder, root) {
  const marks = new Map();
  for (const name of readdirSync(coverageFolder)) {
    for (const { url, functions } of scriptsIn(join(coverageFolder, name))) {
      const place = placeOf(url, root);
      if (place === undefined) continue;
      const mark = inSource(paint(functions, place.script.length), place);
      const before = marks.get(place.path);
      if (before === undefined) marks.set(place.path, mark);
      else before.forEach((value, at) => (before[at] = value | mark[at]));
    }
  }
  return marks;
}

/** The ranges `[start, end)` of characters that have the mark. */
export function rangesOf(mark, wanted = 1) {
  const ranges = [];
  for (let at = 0; at < mark.length; at += 1) {
    if (mark[at] !== wanted) continue;
    if (ranges.at(-1)?.[1] === at) ranges.at(-1)[1] = at + 1;
    else ranges.push([at, at + 1]);
  }
  return ranges;
}

/** The scripts in a coverage file; none if its process was killed while it wrote. */
function scriptsIn(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).result;
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

/**
 * Undefined for scripts that are neither in src/ nor in dist/. A dist/ elsewhere is a release that a test has unpacked:
 * it may be gone by now, and counts as having the bytes of this dist/.
 */
function placeOf(url, root) {
  if (!url.startsWith('file:')) return undefined;
  const file = fileURLToPath(url);
  const inRoot = join(root, '/');
  const found = file.startsWith(inRoot)
    ? /^(src|dist)\/(.+)\.[jt]s$/.exec(file.slice(inRoot.length))
    : /\/(dist)\/(.+)\.js$/.exec(file);
  if (found === null) return undefined;
  const [, folder, name] = found;
  const [path, compiled] = [`src/${name}.ts`, `dist/${name}.js`].map((one) => join(root, one));
  if (!existsSync(path) || (folder === 'dist' && !existsSync(compiled))) return undefined;
  const script = readFileSync(folder === 'dist' ? compiled : path, 'utf8');
  return { path: `src/${name}.ts`, script, source: readFileSync(path, 'utf8') };
}

/** The innermost range around a character counts, so the outer ones are painted first. */
function paint(functions, length) {
  const mark = new Uint8Array(length);
  const ranges = functions.flatMap((one) => one.ranges);
  ranges.sort((one, other) => one.startOffset - other.startOffset || other.endOffset - one.endOffset);
  for (const { startOffset, endOffset, count } of ranges) mark.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  return mark;
}

/** Where a line of the source is longer than that of the script, the rest has the mark of the script's line end. */
function inSource(mark, { script, source }) {
  if (script === source) return mark;
  const result = new Uint8Array(source.length);
  const scriptLines = script.split('\n');
  let [from, to] = [0, 0];
  for (const [index, line] of source.split('\n').entries()) {
    const length = scriptLines[index]?.length ?? 0;
    result.set(mark.subarray(from, from + Math.min(length, line.length)), to);
    result.fill(mark[from + length] ?? 1, to + length, to + line.length + 1);
    from += length + 1;
    to += line.length + 1;
  }
  return result;
}
