// What certificates and revocation lists have in common: bytes, the algorithm, and the issuer's signature over the
// bytes.

import { bitString, seq } from './der.ts';
import { signSha256, signSha384 } from './key-pair.ts';
import type { PrivateKey } from './key-pair.ts';
import { OIDS } from './oids.ts';

/** AlgorithmIdentifier; the parameters are absent (RFC 5758 section 3.2). */
export const ECDSA_WITH_SHA384 = seq(OIDS.ecdsaWithSha384);
export const ECDSA_WITH_SHA256 = seq(OIDS.ecdsaWithSha256);

/**
 * Certificate and CertificateList alike (RFC 5280 sections 4.1 and 5.1).
 *
 *     SEQUENCE {
 *       tbs                  TBSCertificate or TBSCertList,
 *       signatureAlgorithm   AlgorithmIdentifier,
 *       signatureValue       BIT STRING }
 */
export async function signed(toBeSigned: Uint8Array, privateKey: PrivateKey): Promise<Uint8Array> {
  return seq(toBeSigned, ECDSA_WITH_SHA384, bitString(await signSha384(privateKey, toBeSigned)));
}

/** The same by a key on P-256. */
export async function signedWithSha256(toBeSigned: Uint8Array, privateKey: PrivateKey): Promise<Uint8Array> {
  return seq(toBeSigned, ECDSA_WITH_SHA256, bitString(await signSha256(privateKey, toBeSigned)));
}
