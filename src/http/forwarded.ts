// Who a request comes from, as far as its headers are believed: the decisions' "Identity and trust of headers". Does
// not know whose fingerprint it is (service/identity.ts) or whether its certificate is still valid.

import type { Config } from '../config/settings.ts';
import type { RandomBytes } from '../core/random.ts';
import { secretMatcher } from '../crypto/secret-compare.ts';
import { plainAddress } from './client-address.ts';
import type { HeaderLines } from './header-lines.ts';
import { isWellFormedHost } from './host.ts';
import type { NetworkMatcher } from './networks.ts';

/** The other end of a connection. */
export interface Peer {
  /** In the form of plainAddress. */
  readonly address: string;
  /** It is in SERVICE_TRUSTED_PROXIES. */
  readonly isTrusted: boolean;
}

export interface Origin {
  readonly clientAddress: string;
  readonly fingerprint: string | null;
  /** The X-Forwarded-* headers of this request are believed. */
  readonly isForwarded: boolean;
}

/** Where a request was sent to, as the connection and the request's own target say. */
export interface Destination {
  /** Host, or what an absolute-form target put in its place. */
  readonly host: string | undefined;
  /** Address and port that the connection arrived at: safe to show. */
  readonly listening: string;
}

export interface Forwarding {
  originOf(headers: HeaderLines, peer: Peer): Origin;
  /** `scheme://host` and URL_PREFIX, without a slash at its end. Nothing in it that is not well-formed. */
  publicUrl(headers: HeaderLines, isForwarded: boolean, destination: Destination): string;
}

const FINGERPRINT = /^[0-9a-f]{40}$/;

/** What a proxy sends that had no certificate to hash: nothing at all, or SHA-1 of nothing. */
const NOBODY: ReadonlySet<string> = new Set(['0'.repeat(40), 'da39a3ee5e6b4b0d3255bfef95601890afd80709']);

/** More proxies than stand in front of anything; each entry costs time to read. */
const MAX_HOPS = 20;

export interface ForwardingParts {
  readonly config: Config;
  readonly random: RandomBytes;
  readonly isTrustedProxy: NetworkMatcher;
}

export function createForwarding({ config, random, isTrustedProxy }: ForwardingParts): Forwarding {
  const isProxySecret = config.proxySecret === '' ? undefined : secretMatcher(Buffer.from(config.proxySecret), random);

  /** Given twice it does not match; header values are one character a byte. */
  function presentsSecret(headers: HeaderLines): boolean {
    const presented = headers.only('x-proxy-secret');
    return presented !== undefined && isProxySecret !== undefined && isProxySecret(Buffer.from(presented, 'latin1'));
  }

  function originOf(headers: HeaderLines, peer: Peer): Origin {
    const isForwarded = isProxySecret === undefined ? peer.isTrusted : presentsSecret(headers);
    return {
      isForwarded,
      clientAddress: isForwarded ? forwardedAddress(headers, peer.address) : peer.address,
      fingerprint: isProxySecret === undefined || isForwarded ? presentedFingerprint(headers) : null,
    };
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

  function publicUrl(headers: HeaderLines, isForwarded: boolean, { host, listening }: Destination): string {
    const forwardedProto = isForwarded ? lastElement(headers, 'x-forwarded-proto')?.toLowerCase() : undefined;
    const forwardedHost = isForwarded ? lastElement(headers, 'x-forwarded-host') : undefined;
    const scheme = forwardedProto === 'https' ? 'https' : 'http';
    const shown = [forwardedHost, host].find((candidate) => candidate !== undefined && isWellFormedHost(candidate));
    return `${scheme}://${shown ?? listening}${config.urlPrefix}`;
  }

  return { originOf, publicUrl };
}

function presentedFingerprint(headers: HeaderLines): string | null {
  const value = headers.only('x-ssl-client-sha1');
  return value !== undefined && FINGERPRINT.test(value) && !NOBODY.has(value) ? value : null;
}

/** Proxies that append put their own finding last; undefined when the header is absent. */
function lastElement(headers: HeaderLines, name: string): string | undefined {
  return headers.all(name).at(-1)?.split(',').at(-1)?.trim();
}
