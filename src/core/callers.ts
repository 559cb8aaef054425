// Who calls: the four tiers, the key under which limits count a client's address, and IP addresses and CIDR blocks in a
// strict reading. pastes/identity.ts decides who a caller is, and http/ decides which address is the client's.

/** `untrusted` shows any fingerprint; `trusted` that of a valid certificate of this service, `admin` an admin's. */
export type Tier = 'anonymous' | 'untrusted' | 'trusted' | 'admin';

export interface Caller {
  readonly tier: Tier;
  /** 40 lowercase hex characters; null for the anonymous tier only. */
  readonly fingerprint: string | null;
}

export const ANONYMOUS: Caller = { tier: 'anonymous', fingerprint: null };

export function hasTrustedLimits({ tier }: Caller): boolean {
  return tier === 'trusted' || tier === 'admin';
}

/** For a plainAddress: IPv4 (never mapped) whole; IPv6 cut to its /64, a household's (RFC 6177); other text whole. */
export function clientKey(address: string): string {
  const bytes = address.includes(':') ? parseAddress(address) : undefined;
  return bytes === undefined ? address : `${Buffer.from(bytes.subarray(0, 8)).toString('hex')}/64`;
}

/** Whether the text is a block such as `10.0.0.0/8`, or one address. Bits past the prefix may be set. */
export function isNetwork(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/');
  const bytes = parseAddress(address);
  if (bytes === undefined || rest.length > 0) return false;
  return prefix === undefined || (/^(?:0|[1-9]\d{0,2})$/.test(prefix) && Number(prefix) <= bytes.length * 8);
}

const LONGEST_ADDRESS = 'ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255'.length;

/** 4 bytes for dotted decimal IPv4, 16 for IPv6 in any form of RFC 4291 section 2.2; no zones, brackets or ports. */
export function parseAddress(text: string): Uint8Array | undefined {
  if (text.length > LONGEST_ADDRESS) return undefined;
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text);
}

/** Accepts only the one form that its bytes give when written back: some readers take `010` for eight. */
function parseIpv4(text: string): Uint8Array | undefined {
  const octets = Uint8Array.from(text.split('.'), Number);
  return octets.length === 4 && octets.join('.') === text ? octets : undefined;
}

/** URL reads every form and writes one: groups in hex, `::` for the longest run of zeros, no dotted end. */
function parseIpv6(text: string): Uint8Array | undefined {
  const url = /^[0-9A-Fa-f:.]+$/.test(text) ? URL.parse(`http://[${text}]`) : null;
  if (url === null) return undefined;
  const [before = [], after = []] = url.hostname.slice(1, -1).split('::').map((part) => part.split(':'));
  // Where a side of `::` is empty, split gives one empty part for it, which counts as a group and becomes zeros.
  const groups = [...before, ...new Array<string>(8 - before.length - after.length).fill('0'), ...after];
  return Uint8Array.from(Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex'));
}
