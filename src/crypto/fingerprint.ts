// The fingerprint by which reverse proxies name a client certificate. SHA-1 identifies here, as the contract wants it,
// and proves nothing: the proxy has verified the certificate.

import { hash } from 'node:crypto';
import { TAGS } from './der.ts';
import { DerError, components, readDer } from './der-reader.ts';

/** SHA-1 of a certificate's DER: 40 lowercase hex characters. */
export function fingerprintSha1(certificate: Uint8Array): string {
  return hash('sha1', certificate, 'hex');
}

/**
 * The same of bytes from outside. Undefined when they are not DER of the form of a Certificate (RFC 5280 section 4.1):
 * PEM, a chain or a part of a certificate must not become an identity of its own.
 */
export function presentedCertificateSha1(bytes: Uint8Array): string | undefined {
  try {
    components(readDer(bytes), TAGS.sequence, TAGS.sequence, TAGS.bitString);
  } catch (error) {
    if (error instanceof DerError) return undefined;
    throw error;
  }
  return fingerprintSha1(bytes);
}
