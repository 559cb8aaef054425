// Who a request comes from, as far as its headers are believed: the decisions' "Identity and trust of headers". Does
// not know whose fingerprint it is (pastes/identity.ts) or whether its certificate is still valid.

import { BlockList, isIPv4, SocketAddress } from 'node:net';
import type { Config } from '../config/settings.ts';
import { parseAddress } from '../core/callers.ts';
import type { RandomBytes } from '../core/time.ts';
import { secretMatcher, type SecretMatcher } from '../crypto/passwords.ts';
import { presentedCertificateSha1 } from '../crypto/presented.ts';
import { isWellFormedHost } from './engine/host.ts';
import type { HeaderLines } from './engine/request.ts';

/** The other end of a connection. */
export interface Peer {
  /** In the form of plainAddress. */
  readonly address: string;
  /** It is in SERVICE_TRUSTED_PROXIES. */
  readonly isTrusted: boolean;
  /** What its TLS handshake with this server has proved, null for nobody's identity; undefined without TLS. */
  readonly tls: Presented | undefined;
}

export interface Origin extends Presented {
  readonly clientAddress: string;
  /** The X-Forwarded-* headers of this request are believed. */
  readonly isForwarded: boolean;
}

/** Where a request was sent to, as the connection and the request's own target say. */
export interface Destination {
  /** Host, or what an absolute-form target put in its place. */
  readonly host: string | undefined;
  /** Of the connection itself. */
  readonly scheme: 'http' | 'https';
  /** Address and port that the connection arrived at: safe to show. */
  readonly listening: string;
}

export interface Forwarding {
  originOf(headers: HeaderLines, peer: Peer): Origin;
  /** `scheme://host` and URL_PREFIX, without a slash at its end. Nothing in it that is not well-formed. */
  publicUrl(headers: HeaderLines, isForwarded: boolean, destination: Destination): string;
  /** What X-Proxy-Secret must equal from now on; without one when empty. */
  replaceProxySecret(proxySecret: string): void;
}

/** More proxies than stand in front of anything; each entry costs time to read. */
const MAX_HOPS = 20;

export interface ForwardingParts {
  readonly config: Config;
  readonly random: RandomBytes;
  readonly isTrustedProxy: NetworkMatcher;
}

export function createForwarding({ config, random, isTrustedProxy }: ForwardingParts): Forwarding {
  let isProxySecret = matcherOf(config.proxySecret);

  function matcherOf(secret: string): SecretMatcher | undefined {
    return secret === '' ? undefined : secretMatcher(Buffer.from(secret), random);
  }

  /** Given twice it does not match; header values are one character a byte. */
  function presentsSecret(headers: HeaderLines): boolean {
    const presented = headers.only('x-proxy-secret');
    return presented !== undefined && isProxySecret !== undefined && isProxySecret(Buffer.from(presented, 'latin1'));
  }

  function originOf(headers: HeaderLines, peer: Peer): Origin {
    const isForwarded = isProxySecret === undefined ? peer.isTrusted : presentsSecret(headers);
    const { fingerprint, certificate } = presentedBy(headers, peer, isForwarded);
    const clientAddress = isForwarded ? forwardedAddress(headers, peer.address) : peer.address;
    return { isForwarded, clientAddress, fingerprint, certificate };
  }

  /**
   * A proxy that has shown its secret speaks for its clients, and never for itself: not with its own certificate
   * either. Anyone else is who TLS has proved; without TLS, and without a secret, anyone may present a fingerprint.
   */
  function presentedBy(headers: HeaderLines, { tls }: Peer, isForwarded: boolean): Presented {
    if (isProxySecret !== undefined && isForwarded) return presentedIdentity(headers, PROXY_SOURCES);
    if (tls !== undefined) return tls;
    return isProxySecret === undefined ? presentedIdentity(headers, SHA1_SOURCES) : NOTHING;
  }

  /** From the right, since only what trusted proxies appended is true; when all are trusted, the one farthest away. */
  function forwardedAddress(headers: HeaderLines, peerAddress: string): string {
    const lines = headers.all('x-forwarded-for');
    if (lines.length === 0) return peerAddress;
    let farthest = peerAddress;
    for (const hop of lines.join(',').split(',').slice(-MAX_HOPS).reverse()) {
      const address = plainAddress(hop.trim());
      if (address === undefined) return peerAddress;
      if (!isTrustedProxy(address)) return address;
      farthest = address;
    }
    return farthest;
  }

  function publicUrl(headers: HeaderLines, isForwarded: boolean, destination: Destination): string {
    const { host, listening } = destination;
    const forwardedProto = isForwarded ? lastElement(headers, 'x-forwarded-proto')?.toLowerCase() : undefined;
    const forwardedHost = isForwarded ? lastElement(headers, 'x-forwarded-host') : undefined;
    const isNamed = forwardedProto === 'http' || forwardedProto === 'https';
    const scheme = isNamed ? forwardedProto : destination.scheme;
    const shown = [forwardedHost, host].find((candidate) => candidate !== undefined && isWellFormedHost(candidate));
    return `${scheme}://${shown ?? listening}${config.urlPrefix}`;
  }

  return {
    originOf,
    publicUrl,
    replaceProxySecret: (proxySecret) => {
      isProxySecret = matcherOf(proxySecret);
    },
  };
}

/** Proxies that append put their own finding last; undefined when the header is absent. */
function lastElement(headers: HeaderLines, name: string): string | undefined {
  return headers.all(name).at(-1)?.split(',').at(-1)?.trim();
}

// The identity that a request presents in its headers: a certificate's fingerprint, or the certificate itself from
// proxies that can't give SHA-1. Whether the request may present one at all is forwarded.ts; whose it is,
// pastes/identity.ts.

/** What a request presents of a client certificate. */
export interface Presented {
  /** Null when it presents none. */
  readonly fingerprint: string | null;
  /** DER, where the whole certificate was shown. */
  readonly certificate?: Uint8Array | undefined;
}

interface Source {
  readonly header: string;
  /** What the value stands for; undefined when it is malformed or stands for nobody. */
  readonly read: (value: string) => Presented | undefined;
}

const FINGERPRINT = /^[0-9a-f]{40}$/;

/** What a proxy sends that had no certificate to hash: nothing at all, or SHA-1 of nothing. */
const NOBODY: ReadonlySet<string> = new Set(['0'.repeat(40), 'da39a3ee5e6b4b0d3255bfef95601890afd80709']);

/** The contract's header. */
export const SHA1_SOURCES: readonly Source[] = [{ header: 'x-ssl-client-sha1', read: readFingerprint }];

/** And those that only a proxy which has shown its secret may send: after it, since the last one found is kept. */
export const PROXY_SOURCES: readonly Source[] = [
  ...SHA1_SOURCES,
  { header: 'client-cert', read: readByteSequence },
  { header: 'x-ssl-client-cert', read: readBase64 },
];

export const NOTHING: Presented = { fingerprint: null };

/** Nothing unless everything that is presented is well-formed, is presented once, and agrees. */
export function presentedIdentity(headers: HeaderLines, sources: readonly Source[]): Presented {
  let presented = NOTHING;
  for (const { header, read } of sources) {
    const values = headers.all(header);
    if (values.length === 0) continue;
    const found = values.length === 1 ? read(values[0]!) : undefined;
    if (found === undefined || found.fingerprint !== (presented.fingerprint ?? found.fingerprint)) return NOTHING;
    presented = found;
  }
  return presented;
}

function readFingerprint(value: string): Presented | undefined {
  return FINGERPRINT.test(value) && !NOBODY.has(value) ? { fingerprint: value } : undefined;
}

/** RFC 9440 section 2.2: base64 between colons (RFC 8941 section 3.3.5), without parameters. */
function readByteSequence(value: string): Presented | undefined {
  const isDelimited = value.length >= 2 && value.startsWith(':') && value.endsWith(':');
  return isDelimited ? readBase64(value.slice(1, -1)) : undefined;
}

/** node takes any text for base64, so the bytes must give the same text again. */
function readBase64(value: string): Presented | undefined {
  const certificate = Buffer.from(value, 'base64');
  const fingerprint = certificate.toString('base64') === value ? presentedCertificateSha1(certificate) : undefined;
  return fingerprint === undefined ? undefined : { fingerprint, certificate };
}

// Whether an address lies in one of the networks that a setting lists.

/** Whether the address, in the form of plainAddress, is in one of the networks. */
export type NetworkMatcher = (address: string) => boolean;

/** Takes addresses and CIDR blocks, already checked to be such (config/load.ts). */
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

// Text forms of IP addresses: one form for each address. Which addresses are to be trusted is
// above.

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
