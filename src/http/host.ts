// Host names with an optional port, as in the Host header and in a URL: a strict reading, so that what passes can be
// shown.

import { isIPv6 } from 'node:net';

/**
 * Letters, digits, dots, hyphens and underscores: a name or IPv4. The longest name of the DNS has 253 characters;
 * systemd-resolved has names such as `_gateway`.
 */
const NAMED = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9._])?(?::(\d{1,5}))?$/;
const BRACKETED = /^\[([0-9A-Fa-f:.]{2,45})\](?::(\d{1,5}))?$/;
const MAX_PORT = 65535;

/** Whether the text is `name[:port]`, `v4[:port]` or `[v6][:port]`, and so is safe to show and to put into a script. */
export function isWellFormedHost(text: string): boolean {
  const named = NAMED.exec(text);
  if (named !== null) return isPort(named[1]);
  const bracketed = BRACKETED.exec(text);
  return bracketed !== null && isIPv6(bracketed[1] ?? '') && isPort(bracketed[2]);
}

/** The address and port as a URL writes them. */
export function hostOf(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

function isPort(digits: string | undefined): boolean {
  return digits === undefined || (Number(digits) >= 1 && Number(digits) <= MAX_PORT);
}
