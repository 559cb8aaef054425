// What an authority's certificate says to those that it issues for: taken out of its bytes, so that copies are exact.
// Does not verify the certificate, which is our own.

import { TAGS, contextTag } from './der.ts';
import { DerError, components, isEncoding, readDer } from './der-reader.ts';
import type { DerElement } from './der-reader.ts';
import type { PrivateKey } from './key-pair.ts';
import { OIDS } from './oids.ts';

/** An authority that can sign. */
export interface Authority {
  /** Its certificate in DER. */
  readonly certificate: Uint8Array;
  readonly privateKey: PrivateKey;
}

export interface Issuer {
  /** The encoding of its subject. */
  readonly name: Uint8Array;
  /** Its subjectKeyIdentifier. */
  readonly keyIdentifier: Uint8Array;
}

/**
 * Throws a DerError for anything but a version 3 certificate with a subjectKeyIdentifier and no unique ids.
 *
 *     TBSCertificate ::= SEQUENCE {
 *       version         [0] EXPLICIT INTEGER,
 *       serialNumber    INTEGER,
 *       signature       AlgorithmIdentifier,
 *       issuer          Name,
 *       validity        SEQUENCE { notBefore Time, notAfter Time },
 *       subject         Name,
 *       subjectPublicKeyInfo  SEQUENCE,
 *       extensions      [3] EXPLICIT SEQUENCE OF Extension }
 */
export function readIssuer(certificate: Uint8Array): Issuer {
  const { sequence, integer, bitString } = TAGS;
  const [tbsCertificate] = components(readDer(certificate), sequence, sequence, bitString);
  const [, , , , , subject, , extensions] = components(
    tbsCertificate,
    contextTag(0),
    integer,
    sequence,
    sequence,
    sequence,
    sequence,
    sequence,
    contextTag(3),
  );
  const list = extensions.children[0]?.children ?? [];
  const isSought = ([extnId]: readonly DerElement[]): boolean =>
    extnId !== undefined && isEncoding(extnId, OIDS.subjectKeyIdentifier);
  // It is never critical (RFC 5280 section 4.2.1.2), so nothing stands between the two.
  const extnValue = list.find(({ children }) => isSought(children))?.children[1];
  if (extnValue === undefined) throw new DerError('certificate without subjectKeyIdentifier');
  return { name: subject.encoding, keyIdentifier: readDer(extnValue.content).content };
}
