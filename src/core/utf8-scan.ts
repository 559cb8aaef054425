// Whether bytes that arrive in pieces are valid UTF-8 as a whole (RFC 3629: no overlong forms, no surrogates, nothing
// above U+10FFFF). Does not decode; each piece is judged by the runtime's own vectorised check, and only what a cut
// splits is looked at here.

import { isUtf8 } from 'node:buffer';

const MAX_SEQUENCE_BYTES = 4;

export interface Utf8Scan {
  /** Takes the next bytes; whether all so far can still be the beginning of something valid. Only read, never kept. */
  update(bytes: Uint8Array): boolean;
  /** Whether everything so far is valid and no sequence is left unfinished. */
  isValid(): boolean;
}

export function createUtf8Scan(): Utf8Scan {
  // The beginning of a sequence that the last piece cut off: at most 3 bytes, with room for the fourth.
  const cut = new Uint8Array(MAX_SEQUENCE_BYTES);
  let cutBytes = 0;
  let valid = true;

  /** Completes the cut sequence from the start of a piece; how many bytes of the piece that took. */
  function completeCut(bytes: Uint8Array): number {
    const missing = sequenceBytes(cut[0]!) - cutBytes;
    const taken = Math.min(missing, bytes.length);
    cut.set(bytes.subarray(0, taken), cutBytes);
    cutBytes += taken;
    if (taken === missing) {
      valid = isUtf8(cut.subarray(0, cutBytes));
      cutBytes = 0;
    }
    return taken;
  }

  return {
    update(bytes) {
      if (!valid) return false;
      const start = cutBytes === 0 ? 0 : completeCut(bytes);
      if (!valid || start === bytes.length) return valid;

      const end = endOfWholeSequences(bytes, start);
      valid = isUtf8(bytes.subarray(start, end));
      cutBytes = bytes.length - end;
      cut.set(bytes.subarray(end));
      return valid;
    },
    isValid: () => valid && cutBytes === 0,
  };
}

/** How long the sequence is that a byte begins. Bytes that can begin none count as one, for isUtf8 to find them. */
function sequenceBytes(lead: number): number {
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  return 1;
}

/**
 * Where a sequence begins, from `start` on, that needs more bytes than there are; the end of the bytes if there is
 * none.
 */
function endOfWholeSequences(bytes: Uint8Array, start: number): number {
  const earliest = Math.max(start, bytes.length - (MAX_SEQUENCE_BYTES - 1));
  for (let position = bytes.length - 1; position >= earliest; position -= 1) {
    if (position + sequenceBytes(bytes[position]!) > bytes.length) return position;
  }
  return bytes.length;
}
