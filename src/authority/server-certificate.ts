// The certificate of a server that vouches for itself (RFC 5280 section 4): a leaf that is its own trust anchor, for
// whoever is given it. Times and the serial are handed in. Does not look at certificates that others made, but to find
// the first of a file.

import { X509Certificate } from 'node:crypto';
import {
  ECDSA_WITH_SHA256, keyIdentifier, leafBasicConstraints, prove, serverAuthOnly, signedWithSha256,
  subjectAltName, subjectKeyIdentifier, tbsCertificate, type Validity,
} from './certificates.ts';
import { distinguishedName } from './der.ts';
import { type KeyPair, subjectPublicKeyInfo } from './keys.ts';
import { normaliseCommonName, type ServerName } from './names.ts';

/** Nobody reads it but people: clients look at the alternative names. For when the first of those is too long. */
const NAMELESS = 'pasted';

export interface ServerCertificateRequest {
  /** One or more. */
  readonly names: readonly ServerName[];
  /** As makeSerial makes it. */
  readonly serial: string;
  readonly validity: Validity;
  /** On P-256. */
  readonly keyPair: KeyPair;
}

/**
 * The certificate in DER. Rejects with a RangeError what can't be encoded. It is no authority: the key of a server must
 * not be able to vouch for other servers, and rustls and Firefox refuse authorities as servers. There is no keyUsage:
 * without keyCertSign OpenSSL 1.1.1 does not see that such a certificate is self-signed, and with it a leaf breaks RFC
 * 5280 section 4.2.1.9; without the extension every use is allowed, and extKeyUsage says which.
 */
export async function makeServerCertificate(request: ServerCertificateRequest): Promise<Uint8Array> {
  const { names, serial, validity, keyPair } = request;
  if (names.length === 0) throw new RangeError('a server has a name');
  const subject = distinguishedName(normaliseCommonName(names[0]!.name) ?? NAMELESS);
  const spki = subjectPublicKeyInfo(keyPair.publicKey);
  const extensions = [
    leafBasicConstraints(),
    serverAuthOnly(),
    subjectAltName(names),
    subjectKeyIdentifier(keyIdentifier(spki)),
  ];
  const signature = ECDSA_WITH_SHA256;
  const tbs = tbsCertificate({ serial, signature, issuer: subject, validity, subject, spki, extensions });
  const certificate = await signedWithSha256(tbs, keyPair.privateKey);
  prove(certificate, certificate, { spki, privateKey: keyPair.privateKey });
  return certificate;
}

/** SHA-256 of a certificate's DER as browsers and `openssl x509 -fingerprint -sha256` show it. */
export function shownFingerprint(certificate: Uint8Array): string {
  return new X509Certificate(certificate).fingerprint256;
}

/** DER of the first certificate of a PEM file, which is the server's own; undefined when there is none. */
export function firstCertificate(pem: string): Uint8Array | undefined {
  try {
    return new X509Certificate(pem).raw;
  } catch {
    return undefined;
  }
}
