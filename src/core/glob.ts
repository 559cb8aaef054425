// The `type` filter of lists: a glob in which `*` stands for any text, `?` for any one character, and all else for
// itself. Matching is SQLite's GLOB operator; this makes its pattern and bounds what it may cost.

/** No stored media type is longer: 127 characters, a slash, 127 characters (RFC 6838 section 4.2). */
const MAX_GLOB_LENGTH = 255;

/**
 * Whether text from a request can be a glob: 1 to 255 characters, none of them a control character (NUL would end the
 * pattern).
 */
export function isGlob(text: string): boolean {
  return text.length <= MAX_GLOB_LENGTH && /^[^\0-\x1f\x7f]+$/.test(text);
}

/**
 * The pattern for `mime_type GLOB :pattern` of text that isGlob took. In lower case, as media types are stored; a
 * bracket, which would begin a set, stands in a set of its own.
 */
export function sqliteGlob(glob: string): string {
  return glob.toLowerCase().replaceAll('[', '[[]').replace(/\*+/g, '*');
}
