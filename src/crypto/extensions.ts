// Extensions of certificates and revocation lists (RFC 5280 sections 4.2, 5.2 and 5.3), exactly those of our profile.

import { hash } from 'node:crypto';
import type { ServerName } from '../core/server-names.ts';
import { TAGS, boolean, enumerated, ia5String, implicit, integer, namedBits, octetString, seq, seqOf } from './der.ts';
import { bitStringOctets, components, readDer } from './der-reader.ts';
import { OIDS } from './oids.ts';

/** RFC 5280 section 4.2.1.3, bit numbers of KeyUsage. */
const KEY_USAGE = { digitalSignature: 0, keyCertSign: 5, cRLSign: 6 } as const;

/** RFC 5280 section 5.3.1, those that a caller may give. `unspecified` is said by leaving the extension out. */
export const REVOCATION_REASONS = {
  keyCompromise: 1,
  affiliationChanged: 3,
  superseded: 4,
  cessationOfOperation: 5,
  privilegeWithdrawn: 9,
} as const;

export type RevocationReason = keyof typeof REVOCATION_REASONS;

/** RFC 7093 section 2, method 1: the leftmost 160 bits of SHA-256. */
const KEY_IDENTIFIER_BYTES = 20;

/**
 *     Extension ::= SEQUENCE {
 *       extnID      OBJECT IDENTIFIER,
 *       critical    BOOLEAN DEFAULT FALSE,
 *       extnValue   OCTET STRING }
 */
function extension(extnId: Uint8Array, value: Uint8Array): Uint8Array {
  return seq(extnId, octetString(value));
}

function criticalExtension(extnId: Uint8Array, value: Uint8Array): Uint8Array {
  return seq(extnId, boolean(true), octetString(value));
}

/**
 * An authority that may issue for clients, but make no further authority.
 *
 *     BasicConstraints ::= SEQUENCE { cA BOOLEAN DEFAULT FALSE, pathLenConstraint INTEGER (0..MAX) OPTIONAL }
 */
export function authorityBasicConstraints(): Uint8Array {
  return criticalExtension(OIDS.basicConstraints, seq(boolean(true), integer(0)));
}

/** No authority: an empty sequence, as DER encodes no default. */
export function leafBasicConstraints(): Uint8Array {
  return criticalExtension(OIDS.basicConstraints, seq());
}

export function authorityKeyUsage(): Uint8Array {
  return criticalExtension(OIDS.keyUsage, namedBits(KEY_USAGE.keyCertSign, KEY_USAGE.cRLSign));
}

export function clientKeyUsage(): Uint8Array {
  return criticalExtension(OIDS.keyUsage, namedBits(KEY_USAGE.digitalSignature));
}

/** On the authority too: whoever comes to trust it by accident still accepts no server that it vouches for. */
export function clientAuthOnly(): Uint8Array {
  return extension(OIDS.extKeyUsage, seq(OIDS.clientAuth));
}

export function serverAuthOnly(): Uint8Array {
  return extension(OIDS.extKeyUsage, seq(OIDS.serverAuth));
}

/**
 * Beside a subject, so not critical (section 4.2.1.6).
 *
 *     GeneralNames ::= SEQUENCE SIZE (1..MAX) OF GeneralName
 *     GeneralName ::= CHOICE { dNSName [2] IA5String, iPAddress [7] OCTET STRING, ... }
 */
export function subjectAltName(names: readonly ServerName[]): Uint8Array {
  const generalNames = names.map(({ name, address }) => {
    return address === undefined ? implicit(2, ia5String(name)) : implicit(7, octetString(address));
  });
  return extension(OIDS.subjectAltName, seqOf(generalNames));
}

/** SHA-256 over the public point: the BIT STRING of the SubjectPublicKeyInfo without tag, length and unused bits. */
export function keyIdentifier(spki: Uint8Array): Uint8Array {
  const [, subjectPublicKey] = components(readDer(spki), TAGS.sequence, TAGS.bitString);
  return hash('sha256', bitStringOctets(subjectPublicKey), 'buffer').subarray(0, KEY_IDENTIFIER_BYTES);
}

/** SubjectKeyIdentifier ::= OCTET STRING */
export function subjectKeyIdentifier(identifier: Uint8Array): Uint8Array {
  return extension(OIDS.subjectKeyIdentifier, octetString(identifier));
}

/**
 * The issuer's subjectKeyIdentifier.
 *
 *     AuthorityKeyIdentifier ::= SEQUENCE { keyIdentifier [0] IMPLICIT OCTET STRING OPTIONAL, ... }
 */
export function authorityKeyIdentifier(identifier: Uint8Array): Uint8Array {
  return extension(OIDS.authorityKeyIdentifier, seq(implicit(0, octetString(identifier))));
}

/** CRLNumber ::= INTEGER (0..MAX) */
export function crlNumber(number: number): Uint8Array {
  return extension(OIDS.cRLNumber, integer(number));
}

/** CRLReason ::= ENUMERATED */
export function reasonCode(reason: RevocationReason): Uint8Array {
  return extension(OIDS.reasonCode, enumerated(REVOCATION_REASONS[reason]));
}
