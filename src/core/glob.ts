// The `type` filter of lists: a glob in which `*` stands for any text, `?` for any one character, and all else for
// itself. Matching is SQLite's GLOB operator; this makes its pattern and bounds what it may cost.

import { MAX_MEDIA_TYPE_LENGTH } from './content.ts';

/**
 * Whether text from a request can be a glob: 1 to 64 characters, none of them a control character (NUL would end the
 * pattern). Matching one against one type takes up to as many steps as the product of their lengths.
 */
export function isGlob(text: string): boolean {
  return text.length <= MAX_MEDIA_TYPE_LENGTH && /^[^\0-\x1f\x7f]+$/.test(text);
}

/**
 * The pattern for `mime_type GLOB :pattern` of text that isGlob took. In lower case, as media types are stored; a
 * bracket, which would begin a set, stands in a set of its own.
 */
export function sqliteGlob(glob: string): string {
  return glob.toLowerCase().replaceAll('[', '[[]').replace(/\*+/g, '*');
}
