// A single byte range of a GET and the conditions on it (RFC 9110 sections 13 and 14). Several ranges in one request are answered
// with the whole, as section 14.2 allows.

/** `start` inclusive, `end` exclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

const SINGLE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/**
 * The range that the header asks for of a representation of `size` bytes; `whole` when the header is absent, not understood or
 * asks for several ranges; `unsatisfiable` when it lies past the end.
 */
export function parseRange(header: string | undefined, size: number): ByteRange | 'whole' | 'unsatisfiable' {
  const match = header === undefined ? null : SINGLE_RANGE.exec(header);
  if (match === null) return 'whole';
  const [, first = '', last = ''] = match;
  if (first === '') return last === '' ? 'whole' : suffixRange(Number(last), size);
  const start = Number(first);
  if (last !== '' && Number(last) < start) return 'whole';
  if (start >= size) return 'unsatisfiable';
  const end = last === '' ? size : Math.min(Number(last) + 1, size);
  return { start, end };
}

function suffixRange(lengthBytes: number, size: number): ByteRange | 'unsatisfiable' {
  if (lengthBytes === 0 || size === 0) return 'unsatisfiable';
  return { start: Math.max(size - lengthBytes, 0), end: size };
}

/** Whether `If-None-Match` names the entity tag: weak comparison, `*` names every one (RFC 9110 section 13.1.2). */
export function namesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === etag);
}

/** Whether `If-Range` lets a range be answered: strong comparison; a date never matches (RFC 9110 section 13.1.5). */
export function allowsRange(ifRange: string | undefined, etag: string): boolean {
  return ifRange === undefined || ifRange.trim() === etag;
}
