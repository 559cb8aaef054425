// Gathers the decoded text of one JSON string out of the pieces in which its source arrives: one output for each
// piece, and the piece itself, uncopied, where nothing in it was escaped.

import type { JsonTextTarget } from './json-string.ts';

/**
 * How many bytes a piece's output can be longer than the piece: what earlier pieces held back is at most a high
 * surrogate, which may turn out to be alone (3 bytes), and an escape but for its last digit (3 more).
 */
const HELD_BACK_BYTES = 6;

export interface ContentBuffer extends JsonTextTarget {
  /** A piece of so many bytes comes next. */
  begin(pieceBytes: number): void;
  /** What was gathered of the piece; it belongs to the caller from then on. */
  take(): Uint8Array;
}

const NOTHING = new Uint8Array(0);

export function createContentBuffer(): ContentBuffer {
  let capacity = 0;
  let gathered: Uint8Array = NOTHING;
  // Allocated when a second part comes; the parts are then copied together.
  let copy: Uint8Array | undefined;
  let length = 0;

  function room(): Uint8Array {
    if (copy === undefined) {
      copy = new Uint8Array(capacity);
      copy.set(gathered);
    }
    return copy;
  }

  return {
    begin(pieceBytes) {
      capacity = pieceBytes + HELD_BACK_BYTES;
    },
    run(bytes, start, end) {
      const part = bytes.subarray(start, end);
      if (length === 0) gathered = part;
      else room().set(part, length);
      length += part.length;
    },
    codePoint(codePoint) {
      length += encodeUtf8(codePoint, room(), length);
    },
    take() {
      const content = copy === undefined ? gathered : copy.subarray(0, length);
      gathered = NOTHING;
      copy = undefined;
      length = 0;
      return content;
    },
  };
}

/** Writes a Unicode scalar value as UTF-8 (RFC 3629 section 3); how many bytes it took. */
function encodeUtf8(codePoint: number, into: Uint8Array, at: number): number {
  if (codePoint < 0x80) {
    into[at] = codePoint;
    return 1;
  }
  if (codePoint < 0x800) {
    into[at] = 0xc0 | (codePoint >> 6);
    into[at + 1] = continuation(codePoint);
    return 2;
  }
  if (codePoint < 0x10000) {
    into[at] = 0xe0 | (codePoint >> 12);
    into[at + 1] = continuation(codePoint >> 6);
    into[at + 2] = continuation(codePoint);
    return 3;
  }
  into[at] = 0xf0 | (codePoint >> 18);
  into[at + 1] = continuation(codePoint >> 12);
  into[at + 2] = continuation(codePoint >> 6);
  into[at + 3] = continuation(codePoint);
  return 4;
}

function continuation(bits: number): number {
  return 0x80 | (bits & 0x3f);
}
