// The one rule for common names of certificates, whoever asks for them. What stands in for none is decided elsewhere.

import { parseAddress } from './addresses.ts';

/** RFC 5280 appendix A.1: ub-common-name. */
const MAX_CODE_POINTS = 64;

// C0, DEL and C1 controls; the line and paragraph separators; and every explicit directional formatting character
// (Unicode Standard Annex 9, section 2: embeddings, overrides, isolates), with which one name could be made to look
// like another.
const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;

/**
 * The name trimmed and in Unicode normalization form C, so that names which look the same are the same bytes.
 * Undefined when that is not 1 to 64 code points, is not well-formed Unicode, or holds a forbidden character.
 */
export function normaliseCommonName(name: string): string | undefined {
  if (!name.isWellFormed()) return undefined;
  const normalised = name.trim().normalize('NFC');
  const codePoints = [...normalised].length;
  if (codePoints < 1 || codePoints > MAX_CODE_POINTS || FORBIDDEN.test(normalised)) return undefined;
  return normalised;
}

// What a server's certificate may be for: host names and addresses, in a strict reading of their text forms. Does not
// ask whether a name exists or who it belongs to.

export interface ServerName {
  /** In lower case; of a wildcard with its `*`. */
  readonly name: string;
  /** 4 or 16 bytes; undefined for a host name. */
  readonly address: Uint8Array | undefined;
}

/** RFC 1035 section 2.3.4, as text. */
const MAX_NAME_CHARACTERS = 253;

/** RFC 1123 section 2.1: letters, digits, and hyphens that are not at an end; at most 63 of them. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * A name such as `paste.example` or `localhost`, a wildcard such as `*.example.org`, an IPv4 or an IPv6 address.
 * Undefined for anything else: a port, brackets, a dot at the end, letters beyond ASCII (their `xn--` form is one), the
 * address that stands for every address.
 */
export function parseServerName(text: string): ServerName | undefined {
  const name = text.toLowerCase();
  const address = parseAddress(name);
  if (address !== undefined) return address.some((byte) => byte !== 0) ? { name, address } : undefined;
  return isHostName(name) ? { name, address: undefined } : undefined;
}

function isHostName(name: string): boolean {
  if (name.length > MAX_NAME_CHARACTERS) return false;
  const isWildcard = name.startsWith('*.');
  const labels = (isWildcard ? name.slice(2) : name).split('.');
  if (!labels.every((label) => LABEL.test(label))) return false;
  // Whatever ends in a number is an address or nothing (https://url.spec.whatwg.org/#ends-in-a-number-checker).
  if (/^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1)!)) return false;
  // No client lets a wildcard stand for all of a top-level domain.
  return !isWildcard || labels.length > 1;
}

// "Did you mean": the known name that is closest to one that is not known. Does not decide what is known.

/** How much of a name may differ before a suggestion would be a guess. */
const TOLERANCE = 0.3;

/** The candidate that takes the fewest edits, undefined when all take too many; the first of those that are equal. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(name.length * TOLERANCE)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(name, candidate);
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/**
 * Characters to insert, remove, replace, or swap with their neighbour to come from one text to the other (optimal
 * string alignment distance). Takes a.length * b.length steps.
 */
export function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replacing = previous[column - 1]! + Number(a[row - 1] !== b[column - 1]);
      const removing = previous[column]! + 1;
      const inserting = current[column - 1]! + 1;
      // Before the first character there is none, and undefined is like no character.
      const canSwap = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swapping = canSwap ? beforePrevious[column - 2]! + 1 : Infinity;
      current.push(Math.min(replacing, removing, inserting, swapping));
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length]!;
}
