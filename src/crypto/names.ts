// Distinguished names (RFC 5280 section 4.1.2.4): one common name and nothing else. An issuer is never encoded from
// text: its bytes are copied from the authority's certificate (issuer.ts), since verifiers compare them as bytes.

import { normaliseCommonName } from '../core/common-name.ts';
import { seq, setOf, utf8String } from './der.ts';
import { OIDS } from './oids.ts';

/**
 * Refuses, with a RangeError, a name that is not as normaliseCommonName returns it.
 *
 *     Name ::= CHOICE { rdnSequence  SEQUENCE OF RelativeDistinguishedName }
 *     RelativeDistinguishedName ::= SET SIZE (1..MAX) OF AttributeTypeAndValue
 *     AttributeTypeAndValue ::= SEQUENCE { type OBJECT IDENTIFIER, value ANY }
 */
export function distinguishedName(commonName: string): Uint8Array {
  if (normaliseCommonName(commonName) !== commonName) throw new RangeError('common name is not normalised');
  return seq(setOf(seq(OIDS.commonName, utf8String(commonName))));
}
