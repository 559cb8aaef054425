// Certification requests (PKCS #10, RFC 2986) from outside: all that is taken from one is its public key. Subject,
// attributes and requested extensions must be canonical DER and are then ignored.

import { createPublicKey, verify } from 'node:crypto';
import { KIB } from '../core/time.ts';
import {
  bitStringOctets, components, type DerElement, DerError, isEncoding, readDer, TAGS,
} from '../crypto/presented.ts';
import { contextTag, integer, OIDS, seq } from './der.ts';
import { decodePem, type PublicKey } from './keys.ts';

/** The longest request, PEM included: several times what any tool makes for this curve. */
export const MAX_CSR_CHARACTERS = 8 * KIB;

/** Why a request was not taken, in words for whoever made it: what to change. */
export class CsrRefused extends Error {
  override readonly name = 'CsrRefused';
}

interface CertificationRequest {
  /** What is signed: the encoding of the CertificationRequestInfo. */
  readonly info: Uint8Array;
  readonly spki: Uint8Array;
  readonly keyAlgorithm: DerElement;
  readonly point: Uint8Array;
  readonly signatureAlgorithm: DerElement;
  readonly signature: Uint8Array;
}

/** RFC 5480 section 2.1.1: the curve by its name. */
const EC_P384 = seq(OIDS.ecPublicKey, OIDS.secp384r1);

/** 0x04 and two coordinates of 48 octets (RFC 5480 section 2.2). */
const UNCOMPRESSED = 0x04;
const POINT_BYTES = 97;

/** How a request may be signed: openssl takes SHA-256 unless told otherwise, whatever the curve. */
const SIGNATURE_DIGESTS = [
  { algorithm: seq(OIDS.ecdsaWithSha256), digest: 'sha256' },
  { algorithm: seq(OIDS.ecdsaWithSha384), digest: 'sha384' },
  { algorithm: seq(OIDS.ecdsaWithSha512), digest: 'sha512' },
] as const;

/**
 * The SubjectPublicKeyInfo, in DER, of a request in PEM whose self-signature proves that its maker has the private key.
 * Throws CsrRefused for anything else: other curves and key types, bytes that are not canonical DER, text around it.
 */
export function readCertificationRequest(pem: string): Uint8Array {
  if (pem.length > MAX_CSR_CHARACTERS) throw new CsrRefused(`csr must be at most ${MAX_CSR_CHARACTERS} bytes long`);
  const der = decodePem(pem, 'CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST');
  if (der === undefined) throw new CsrRefused('csr must be one PEM block CERTIFICATE REQUEST and nothing else');
  const request = parse(der);
  const publicKey = readPublicKey(request);
  const { info, spki, signatureAlgorithm, signature } = request;
  const digest = SIGNATURE_DIGESTS.find(({ algorithm }) => isEncoding(signatureAlgorithm, algorithm))?.digest;
  if (digest === undefined) throw new CsrRefused('csr must be signed with ECDSA and SHA-256, SHA-384 or SHA-512');
  if (!isEcdsaSignature(digest, publicKey, info, signature)) {
    throw new CsrRefused('csr signature does not match its public key: sign it with the private key of that key');
  }
  return Uint8Array.from(spki);
}

/** Whether the signature, an ECDSA-Sig-Value in DER (RFC 3279 section 2.2.3), is the key's over the bytes. */
export function isEcdsaSignature(
  digest: string,
  publicKey: PublicKey,
  bytes: Uint8Array,
  signature: Uint8Array,
): boolean {
  return verify(digest, bytes, { key: publicKey, dsaEncoding: 'der' }, signature);
}

/**
 *     CertificationRequest ::= SEQUENCE {
 *       certificationRequestInfo  SEQUENCE {
 *         version                 INTEGER { v1(0) },
 *         subject                 Name,
 *         subjectPKInfo           SEQUENCE { algorithm AlgorithmIdentifier, subjectPublicKey BIT STRING },
 *         attributes              [0] IMPLICIT SET OF SEQUENCE { type OBJECT IDENTIFIER, values SET OF ANY } },
 *       signatureAlgorithm        AlgorithmIdentifier,
 *       signature                 BIT STRING }
 */
function parse(der: Uint8Array): CertificationRequest {
  const { sequence, bitString } = TAGS;
  try {
    const [info, signatureAlgorithm, signature] = components(readDer(der), sequence, sequence, bitString);
    const [version, , spki, attributes] = components(info, TAGS.integer, sequence, sequence, contextTag(0));
    if (!isEncoding(version, integer(0))) throw new DerError('version other than 0');
    // Behind its implicit tag the reader can't know a SET, so its order is checked with the tag that it stands for.
    const set = readDer(Uint8Array.from(attributes.encoding, (octet, i) => (i === 0 ? TAGS.set : octet)));
    for (const attribute of set.children) components(attribute, TAGS.oid, TAGS.set);
    const [keyAlgorithm, subjectPublicKey] = components(spki, sequence, bitString);
    return {
      info: info.encoding,
      spki: spki.encoding,
      keyAlgorithm,
      point: bitStringOctets(subjectPublicKey),
      signatureAlgorithm,
      signature: bitStringOctets(signature),
    };
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw new CsrRefused(`csr must be a PKCS #10 request, version 0, in canonical DER: ${error.message}`);
  }
}

function readPublicKey({ spki, keyAlgorithm, point }: CertificationRequest): PublicKey {
  const isP384 = isEncoding(keyAlgorithm, EC_P384);
  if (!isP384 || point.length !== POINT_BYTES || point[0] !== UNCOMPRESSED) {
    throw new CsrRefused('csr must hold an EC key on P-384 (secp384r1), its curve named and its point uncompressed');
  }
  try {
    return createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  } catch {
    throw new CsrRefused('csr must hold a public key that is a point of P-384 (secp384r1)');
  }
}
