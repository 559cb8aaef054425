// The fingerprint by which reverse proxies name a client certificate. SHA-1 identifies here, as the contract wants it,
// and proves nothing: the proxy has verified the certificate.

import { hash } from 'node:crypto';

/** SHA-1 of a certificate's DER: 40 lowercase hex characters. */
export function fingerprintSha1(certificate: Uint8Array): string {
  return hash('sha1', certificate, 'hex');
}
