// What names certificates may hold: the common name of a person, and host names and addresses of a server.

import { parseAddress } from '../core/callers.ts';

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
