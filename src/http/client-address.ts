// Text forms of IP addresses: one form for each address. Which addresses are to be trusted is networks.ts and forwarded.ts.

import { isIPv4, SocketAddress } from 'node:net';
import { parseAddress } from '../core/addresses.ts';

/** RFC 4291 section 2.5.5.2, as inet_ntop writes it. */
const IPV4_MAPPED = '::ffff:';

const IPV6_BYTES = 16;

/** RFC 4007 section 11. */
const ZONE = /%[0-9A-Za-z.:-]+$/;

/**
 * The one text of that address: IPv4 in dotted decimal, IPv4-mapped IPv6 as IPv4, IPv6 compressed and in lower case
 * without its zone. Undefined for anything that is no address. (Not by isIPv6 of node:net: the expression behind that
 * takes 8 ms to compile, in every start.)
 */
export function plainAddress(text: string): string | undefined {
  if (isIPv4(text)) return text;
  const address = text.replace(ZONE, '');
  if (parseAddress(address)?.length !== IPV6_BYTES) return undefined;
  const canonical = new SocketAddress({ family: 'ipv6', address }).address;
  const mapped = canonical.startsWith(IPV4_MAPPED) ? canonical.slice(IPV4_MAPPED.length) : '';
  return isIPv4(mapped) ? mapped : canonical;
}
