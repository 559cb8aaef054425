// Who a request comes from, as far as its headers are believed: the decisions' "Identity and trust of headers". Does
// not know whose fingerprint it is (pastes/identity.ts) or whether its certificate is still valid.

import type { Config } from '../config/settings.ts';
import type { RandomBytes } from '../core/time.ts';
import { secretMatcher } from '../crypto/passwords.ts';
import { type HeaderLines, networkMatcher, plainAddress } from './engine/head.ts';
import { NO_CERTIFICATE, type Origin, type Peer, type Presented } from './engine/request.ts';

/** More proxies than stand in front of anything; each entry costs time to read. */
const MAX_HOPS = 20;

export class Forwarding {
  readonly #random: RandomBytes;
  readonly #header: Config['identityHeader'];
  readonly #isTrustedProxy: ReturnType<typeof networkMatcher>;
  /** Undefined without SERVICE_PROXY_SECRET. Before `replaceProxySecret` nobody is believed. */
  #isProxySecret: ReturnType<typeof secretMatcher> | undefined = () => false;
  /** The only header in which a proxy with the secret presents identities: it may forget to remove others. */
  #proxySource = SHA1_SOURCE;

  constructor(config: Pick<Config, 'trustedProxies' | 'identityHeader'>, random: RandomBytes) {
    this.#random = random;
    this.#header = config.identityHeader;
    this.#isTrustedProxy = networkMatcher(config.trustedProxies);
  }

  /** What X-Proxy-Secret must equal from now on; empty for none. */
  async replaceProxySecret(secret: string): Promise<void> {
    const header = this.#header;
    if (secret !== '' && header !== 'x-ssl-client-sha1') {
      const { CERTIFICATE_FORMS } = await import('../crypto/presented.ts');
      this.#proxySource = [header, CERTIFICATE_FORMS[header]];
    }
    this.#isProxySecret = secret === '' ? undefined : secretMatcher(Buffer.from(secret), this.#random);
  }

  originOf(headers: HeaderLines, peer: Peer): Origin {
    const isForwarded = this.#isProxySecret === undefined ? peer.isTrusted : this.#presentsSecret(headers);
    const { fingerprint, certificate } = this.#presentedBy(headers, peer, isForwarded);
    const clientAddress = isForwarded ? this.#forwardedAddress(headers, peer.address) : peer.address;
    return { isForwarded, clientAddress, fingerprint, certificate };
  }

  /** A secret that is given twice does not match. Header values have one character per byte. */
  #presentsSecret(headers: HeaderLines): boolean {
    const presented = headers.only('x-proxy-secret');
    return presented !== undefined && this.#isProxySecret?.(Buffer.from(presented, 'latin1')) === true;
  }

  /** A proxy that has shown its secret speaks for its clients, never for itself, nor with its own certificate. */
  #presentedBy(headers: HeaderLines, { tls }: Peer, isForwarded: boolean): Presented {
    const needsSecret = this.#isProxySecret !== undefined;
    if (needsSecret && isForwarded) return presentedIdentity(headers, this.#proxySource);
    // Anyone else is who TLS has proved; without TLS, and without a secret, anyone may present a fingerprint.
    if (tls !== undefined) return tls;
    return needsSecret ? NO_CERTIFICATE : presentedIdentity(headers, SHA1_SOURCE);
  }

  /** Read from the right, since only what trusted proxies appended is true; if all are trusted, the farthest counts. */
  #forwardedAddress(headers: HeaderLines, peerAddress: string): string {
    const lines = headers.all('x-forwarded-for');
    if (lines.length === 0) return peerAddress;
    let farthest = peerAddress;
    for (const hop of lines.join(',').split(',').slice(-MAX_HOPS).reverse()) {
      // A copy: limits remember addresses, and a slice of a string keeps the whole string, 16 KiB of header, in memory.
      const address = plainAddress(Buffer.from(hop.trim(), 'latin1').toString('latin1'));
      if (address === undefined) return peerAddress;
      if (!this.#isTrustedProxy(address)) return address;
      farthest = address;
    }
    return farthest;
  }
}

// What a request presents in its headers: a fingerprint, or the whole certificate, which crypto/presented.ts reads.

/** `read` gives undefined for a value that is malformed or stands for nobody. */
type Source = readonly [header: Config['identityHeader'], read: (value: string) => Presented | undefined];

/** Excludes what a proxy sends that had no certificate to hash: zeros, or SHA-1 of nothing. */
const FINGERPRINT = /^(?!0{40}$|da39a3ee5e6b4b0d3255bfef95601890afd80709$)[0-9a-f]{40}$/;

export const SHA1_SOURCE: Source = ['x-ssl-client-sha1', (value) => (
  FINGERPRINT.test(value) ? { fingerprint: value } : undefined
)];

/** No identity unless the header is given once and well-formed. */
export function presentedIdentity(headers: HeaderLines, [header, read]: Source): Presented {
  const value = headers.only(header);
  return (value === undefined ? undefined : read(value)) ?? NO_CERTIFICATE;
}
