// The four kinds of caller and what each may do. Who is who is decided in pastes/identity.ts.

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

// IP addresses and CIDR blocks as bytes: a strict reading of their text forms. Does not resolve names, and does not
// know which addresses are to be trusted.

/** A block of addresses. */
export interface Network {
  /** 4 bytes for IPv4, 16 for IPv6; bits past the prefix may be set and mean nothing. */
  readonly bytes: Uint8Array;
  readonly prefixBits: number;
}

/** 0 to 255 without leading zeros: some readers take `010` for eight. */
const OCTET = /^(?:0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])$/;
const IPV6_GROUP = /^[0-9A-Fa-f]{1,4}$/;
const PREFIX_BITS = /^(?:0|[1-9]\d{0,2})$/;
const IPV6_GROUPS = 8;

/** The longest text form there is, IPv6 with IPv4 at its end. */
const LONGEST_ADDRESS = 'ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255'.length;

/**
 * 4 bytes for dotted decimal IPv4, 16 for IPv6 (RFC 4291 section 2.2, every form); undefined for anything else, zone
 * indices, brackets, ports and surrounding spaces included.
 */
export function parseAddress(text: string): Uint8Array | undefined {
  if (text.length > LONGEST_ADDRESS) return undefined;
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text);
}

/** A block such as `10.0.0.0/8`, or one address, which is a block of one. Undefined for anything else. */
export function parseNetwork(text: string): Network | undefined {
  const [addressText = '', prefixText, ...rest] = text.split('/');
  const bytes = parseAddress(addressText);
  if (bytes === undefined || rest.length > 0) return undefined;
  const allBits = bytes.length * 8;
  if (prefixText === undefined) return { bytes, prefixBits: allBits };
  const prefixBits = Number(prefixText);
  return PREFIX_BITS.test(prefixText) && prefixBits <= allBits ? { bytes, prefixBits } : undefined;
}

function parseIpv4(text: string): Uint8Array | undefined {
  const octets = text.split('.');
  if (octets.length !== 4 || !octets.every((octet) => OCTET.test(octet))) return undefined;
  return Uint8Array.from(octets, Number);
}

function parseIpv6(text: string): Uint8Array | undefined {
  const hexadecimal = withoutDottedEnd(text);
  if (hexadecimal === undefined) return undefined;
  const [head = '', tail, ...rest] = hexadecimal.split('::');
  if (rest.length > 0) return undefined;
  const before = groups(head);
  const after = tail === undefined ? [] : groups(tail);
  if (before === undefined || after === undefined) return undefined;
  const missing = IPV6_GROUPS - before.length - after.length;
  // '::' stands for one group or more; without it there is nothing that could be missing.
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  return bytesOf([...before, ...new Array<number>(missing).fill(0), ...after]);
}

/** RFC 4291 section 2.2, form 3: the last 32 bits may be written as IPv4. They become two groups like the others. */
function withoutDottedEnd(text: string): string | undefined {
  const lastStart = text.lastIndexOf(':') + 1;
  const last = text.slice(lastStart);
  if (!last.includes('.')) return text;
  const ipv4 = parseIpv4(last);
  if (ipv4 === undefined) return undefined;
  const hexadecimal = Array.from(ipv4, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return `${text.slice(0, lastStart)}${hexadecimal.slice(0, 4)}:${hexadecimal.slice(4)}`;
}

function groups(text: string): number[] | undefined {
  if (text === '') return [];
  const parts = text.split(':');
  return parts.every((part) => IPV6_GROUP.test(part)) ? parts.map((part) => Number.parseInt(part, 16)) : undefined;
}

function bytesOf(sixteenBitGroups: readonly number[]): Uint8Array {
  return Uint8Array.from(sixteenBitGroups.flatMap((group) => [group >> 8, group & 0xff]));
}
