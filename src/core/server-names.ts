// What a server's certificate may be for: host names and addresses, in a strict reading of their text forms. Does not
// ask whether a name exists or who it belongs to.

import { parseAddress } from './addresses.ts';

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
