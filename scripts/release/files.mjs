// Files of a release while they are put together: a Map from a path with slashes to the content, a string or bytes; and
// lines of text.
// Owners, times and whatever else the file system knows of them have no place in a release.

import { readFileSync, readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

/** What keeps a release from being made, in one line for whoever makes it. */
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

/** In the order of their paths, by code unit: no locale takes part. */
export function sorted(files) {
  return new Map([...files].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** The folders that `path` is in, from the outermost. */
export function foldersAbove(path) {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}

/** Whatever the source's own permissions were: programs are what names its interpreter, and what the kernel loads. */
export function modeOf(content) {
  const head = Buffer.from(content.slice(0, 4)).toString('latin1');
  return head.startsWith('#!') || head === '\x7fELF' ? 0o755 : 0o644;
}

/** The words of `text` in lines of at most `width` characters, but for words that are longer by themselves. */
export function wrapped(text, width) {
  const lines = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
