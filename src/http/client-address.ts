// Text forms of IP addresses: one form for each address. Which addresses are to be trusted is networks.ts and forwarded.ts.

import { isIPv4, isIPv6, SocketAddress } from 'node:net';

/** RFC 4291 section 2.5.5.2, as inet_ntop writes it. */
const IPV4_MAPPED = '::ffff:';

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
