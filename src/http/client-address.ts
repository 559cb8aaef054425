// Text forms of IP addresses: one form for each address, and the part of it that stands for one client. Which addresses
// are to be trusted is networks.ts and forwarded.ts.

import { isIPv4, isIPv6, SocketAddress } from 'node:net';
import { parseAddress } from '../core/addresses.ts';

/** RFC 4291 section 2.5.5.2, as inet_ntop writes it. */
const IPV4_MAPPED = '::ffff:';

/** How many bytes of an IPv6 address are one customer's network (RFC 6177: at least a /64 for each site). */
const IPV6_NETWORK_BYTES = 8;

/**
 * The one text of that address: IPv4 in dotted decimal, IPv4-mapped IPv6 as IPv4, IPv6 compressed and in lower case
 * without its zone. Undefined for anything that is no address.
 */
export function plainAddress(text: string): string | undefined {
  if (isIPv4(text)) return text;
  if (!isIPv6(text)) return undefined;
  const [address = ''] = text.split('%', 1);
  const canonical = new SocketAddress({ family: 'ipv6', address }).address;
  const mapped = canonical.startsWith(IPV4_MAPPED) ? canonical.slice(IPV4_MAPPED.length) : '';
  return isIPv4(mapped) ? mapped : canonical;
}

/** What limits count by: IPv4 whole, IPv6 by its /64. The address is one that plainAddress gave. */
export function clientKey(address: string): string {
  if (!address.includes(':')) return address;
  const bytes = parseAddress(address) ?? new Uint8Array();
  return `${Buffer.from(bytes.subarray(0, IPV6_NETWORK_BYTES)).toString('hex')}/64`;
}
