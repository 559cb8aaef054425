// Which characters of src/ were carried out, from the files that V8 writes where NODE_V8_COVERAGE says: one for each
// thread and process. What runs in dist/ counts as the same place in src/: it differs by blanks at the ends of lines.

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** For a process that shall say in that folder where it, its threads and the programs that it starts have been. */
export function coverageEnv(folder) {
  const hook = `--import=${new URL('threads.mjs', import.meta.url)}`;
  return { ...process.env, NODE_V8_COVERAGE: folder, NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} ${hook}`.trim() };
}

/**
 * By path of src/, a mark for each of its characters: 1 where one of the processes was. What was never loaded has none.
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

/** None in the file of a process that was killed while it wrote. */
function scriptsIn(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).result;
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

/**
 * Undefined for what is neither in src/ nor in dist/. A dist/ elsewhere is a release that a test has unpacked: it may be
 * gone by now, and is taken to have the bytes of this one.
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

/** What a line of the source has more at its end is as the end of the script's line. */
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
