// Who a request comes from, as far as its headers are believed: the decisions' "Identity and trust of headers". Does
// not know whose fingerprint it is (service/identity.ts) or whether its certificate is still valid.

import type { Config } from '../config/settings.ts';
import type { RandomBytes } from '../core/random.ts';
import { secretMatcher, type SecretMatcher } from '../crypto/secret-compare.ts';
import { plainAddress } from './client-address.ts';
import type { HeaderLines } from './header-lines.ts';
import { isWellFormedHost } from './host.ts';
import type { NetworkMatcher } from './networks.ts';
import { NOTHING, presentedIdentity, PROXY_SOURCES, SHA1_SOURCES, type Presented } from './presented-identity.ts';

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
