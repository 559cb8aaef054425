// The identity that a request presents in its headers: a certificate's fingerprint, or the certificate itself from
// proxies that can't give SHA-1. Whether the request may present one at all is forwarded.ts; whose it is, service/identity.ts.

import { presentedCertificateSha1 } from '../crypto/fingerprint.ts';
import type { HeaderLines } from './header-lines.ts';

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
