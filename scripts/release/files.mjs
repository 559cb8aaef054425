// Files of a release while they are put together: a Map from a path with slashes to the content, a string or bytes; and
// lines of text.
// Owners, times and other metadata of the file system have no place in a release.

import { readFileSync, readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

/** The reason why a release cannot be made, in one line for the person who makes it. */
export class ReleaseError extends Error {
  name = 'ReleaseError';
}

/** All files under `folder`, by their path in it. Refuses what is neither a file nor a folder. */
export function filesUnder(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory());
  return sorted(new Map(entries.map((entry) => {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile()) throw new ReleaseError(`${path}: expected a file`);
    return [relative(folder, path).split(sep).join('/'), readFileSync(path)];
  })));
}

/** The same files in the folder `name`. */
export function under(name, files) {
  return new Map([...files].map(([path, content]) => [`${name}/${path}`, content]));
}

/** The files ordered by their paths, by code unit, so that no locale changes the order. */
export function sorted(files) {
  return new Map([...files].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** The folders that `path` is in, from the outermost. */
export function foldersAbove(path) {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}

/** Ignores the permissions of the source: files with `#!` and ELF files are programs. */
export function modeOf(content) {
  const head = Buffer.from(content.slice(0, 4)).toString('latin1');
  return head.startsWith('#!') || head === '\x7fELF' ? 0o755 : 0o644;
}

/** The words of `text` in lines of at most `width` characters; a longer word has a line of its own. */
export function wrapped(text, width) {
  const lines = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
