// Text forms of hosts and addresses, as in a Host header, in a URL, or of a socket's other end. Reading is strict: what
// passes is safe to show and to put into a script.

import { BlockList, isIPv4, isIPv6, SocketAddress } from 'node:net';
import { parseAddress } from '../../core/callers.ts';

/**
 * Letters, digits, dots, hyphens and underscores: a name or IPv4. The longest name of the DNS has 253 characters;
 * systemd-resolved has names such as `_gateway`.
 */
const NAMED = /^([A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9._])?)(?::(\d{1,5}))?$/;
const BRACKETED = /^\[([0-9A-Fa-f:.]{2,45})\](?::(\d{1,5}))?$/;
const MAX_PORT = 65535;

/** Whether the text is `name[:port]`, `v4[:port]` or `[v6][:port]`. */
export function isWellFormedHost(text: string): boolean {
  return readHost(text) !== null;
}

/** A name or an address without brackets, and the port, behind the whole of it. */
function readHost(text: string): readonly string[] | null {
  const named = NAMED.exec(text);
  const read = named ?? BRACKETED.exec(text);
  const [, host = '', port] = read ?? [];
  if (named === null && !isIPv6(host)) return null;
  return port === undefined || (Number(port) >= 1 && Number(port) <= MAX_PORT) ? read : null;
}

/** The address and port as a URL writes them. */
export function hostOf(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

/** Where a service is, as people give it on the command line: `url`, without a slash at its end, and its parts. */
export interface ServiceUrl {
  readonly url: string;
  readonly isTls: boolean;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** The path under which the service is published; empty, or `/paste`. */
  readonly prefix: string;
}

const SERVICE_URL = /^(https?):\/\/([^/]+)((?:\/[A-Za-z0-9._~-]+)*)\/?$/;

/** Undefined for anything else: other schemes, credentials, a query, a fragment, spaces. */
export function parseServiceUrl(text: string): ServiceUrl | undefined {
  const [, scheme, authority = '', prefix = ''] = SERVICE_URL.exec(text) ?? [];
  const [, host, port] = readHost(authority) ?? [];
  if (scheme === undefined || host === undefined) return undefined;
  const isTls = scheme === 'https';
  const defaultPort = isTls ? 443 : 80;
  return { url: `${scheme}://${authority}${prefix}`, isTls, host, port: Number(port ?? defaultPort), prefix };
}

/** RFC 4291 section 2.5.5.2, as inet_ntop writes it. */
const IPV4_MAPPED = '::ffff:';
const IPV6_BYTES = 16;

/** RFC 4007 section 11. */
const ZONE = /%[0-9A-Za-z.:-]+$/;

/**
 * The one text of that address: IPv4 in dotted decimal, IPv4-mapped IPv6 as IPv4, IPv6 compressed and in lower case
 * without its zone. Undefined for anything that is no address. (Not by isIPv6 of node:net: its regular expression
 * takes 8 ms to compile, at every start.)
 */
export function plainAddress(text: string): string | undefined {
  if (isIPv4(text)) return text;
  const address = text.replace(ZONE, '');
  if (parseAddress(address)?.length !== IPV6_BYTES) return undefined;
  const canonical = new SocketAddress({ family: 'ipv6', address }).address;
  const mapped = canonical.startsWith(IPV4_MAPPED) ? canonical.slice(IPV4_MAPPED.length) : '';
  return isIPv4(mapped) ? mapped : canonical;
}

/** Whether the address, in the form of plainAddress, is in one of the networks of a setting. */
export type NetworkMatcher = (address: string) => boolean;

/** Takes addresses and CIDR blocks that config/load.ts has checked. */
export function networkMatcher(networks: readonly string[]): NetworkMatcher {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    const plain = plainAddress(address) ?? address;
    // Addresses are compared in their plain form, so a block of IPv4-mapped addresses is one of IPv4.
    const mappedBits = family(address) !== family(plain) ? 96 : 0;
    if (prefix === undefined) list.addAddress(plain, family(plain));
    else list.addSubnet(plain, Math.max(0, Number(prefix) - mappedBits), family(plain));
  }
  return (address) => list.check(address, family(address));
}

function family(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4';
}
