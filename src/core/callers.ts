// The four kinds of caller and what each may do. Who is who is decided in pastes/identity.ts.

import { parseAddress } from './addresses.ts';

/**
 * `untrusted` presents any fingerprint; `trusted` one of a valid certificate of this service; `admin` the first of
 * these.
 */
export type Tier = 'anonymous' | 'untrusted' | 'trusted' | 'admin';

export interface Caller {
  readonly tier: Tier;
  /** 40 lowercase hex characters; null for the anonymous tier only. */
  readonly fingerprint: string | null;
}

export const ANONYMOUS: Caller = { tier: 'anonymous', fingerprint: null };

/** The admin has the limits of a trusted caller. */
export function hasTrustedLimits(caller: Caller): boolean {
  return caller.tier === 'trusted' || caller.tier === 'admin';
}

// Under which key the limits count a client's address. (The decisions, Identity and trust of headers.) Does not
// decide which address is the client's.

/** ::ffff:0:0/96, under which IPv4 clients appear on a dual-stack socket (RFC 4291 section 2.5.5.2). */
const MAPPED_PREFIX = '00000000000000000000ffff';
const MAPPED_PREFIX_BYTES = 12;

/**
 * IPv4 whole; IPv4-mapped IPv6 as that IPv4; other IPv6 by its /64, since that is what one host or household is given
 * (RFC 6177), and all of its addresses are equally easy to use. Text that is no address is its own key.
 */
export function clientKey(address: string): string {
  if (!address.includes(':')) return address;
  // A zone (RFC 4007) tells interfaces of this host apart, and no clients.
  const [withoutZone = ''] = address.split('%', 1);
  const bytes = parseAddress(withoutZone);
  if (bytes === undefined) return address;
  const isMapped = hexText(bytes.subarray(0, MAPPED_PREFIX_BYTES)) === MAPPED_PREFIX;
  if (isMapped) return bytes.subarray(MAPPED_PREFIX_BYTES).join('.');
  const groups = [0, 2, 4, 6].map((position) => (bytes[position]! * 256 + bytes[position + 1]!).toString(16));
  return `${groups.join(':')}::/64`;
}

function hexText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
