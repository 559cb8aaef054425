// Certificates (RFC 5280 section 4), exactly those of our profile: the authority's own, its clients', and a server's
// self-signed one. The caller hands in times and serials, and must know whether a serial is free.

import { hash, X509Certificate } from 'node:crypto';
import { BACKDATE_SECONDS, DAY_SECONDS, onceForEach, type RandomBytes } from '../core/time.ts';
import { bitStringOctets, components, DerError, isEncoding, readDer, TAGS } from '../crypto/presented.ts';
import {
  bitString, contextTag, distinguishedName, explicit, ia5String, implicit, integer, LATEST_TIME_SECONDS,
  normaliseCommonName, octetString, OIDS, seq, type ServerName, time, TRUE,
} from './der.ts';
import { type Authority, type CertifiedKey, ECDSA_WITH, signed, subjectPublicKeyInfo } from './keys.ts';

/** The period includes both ends (RFC 5280 section 4.1.2.5). */
export type Validity = ReturnType<typeof validityFrom>;

interface CertificateRequest extends CertifiedKey {
  /** As makeSerial makes it. */
  readonly serial: string;
  readonly validity: Validity;
}

type SelfSignedRequest = Required<CertificateRequest>;

/** Unix seconds. Ends with the authority at the latest; throws a RangeError while the authority is not valid itself. */
export function validityFrom(
  issuedAt: number, days: number,
  { createdAt, expiresAt } = { createdAt: issuedAt, expiresAt: LATEST_TIME_SECONDS },
) {
  const notAfter = Math.min(issuedAt + days * DAY_SECONDS, expiresAt, LATEST_TIME_SECONDS);
  const beginsAt = createdAt - BACKDATE_SECONDS;
  if (beginsAt > issuedAt) throw new RangeError('the authority is not valid yet: pasted pki ca renew');
  if (notAfter <= issuedAt) throw new RangeError('the authority has run out: pasted pki ca renew');
  return { notBefore: issuedAt - BACKDATE_SECONDS, notAfter };
}

// The three kinds, in DER. Names must come from normaliseCommonName; what can't be encoded rejects with a RangeError.

/** `subject` is a Name in DER. */
export function makeAuthorityCertificate(request: SelfSignedRequest, subject: Uint8Array): Promise<Uint8Array> {
  const extensions = [AUTHORITY_BASIC_CONSTRAINTS, AUTHORITY_KEY_USAGE, CLIENT_AUTH_ONLY];
  return make(request, subject, extensions, { privateKey: request.privateKey }, 'sha384');
}

/** The new certificate has the same name and key, so what was issued under either one verifies under the other. */
export async function renewAuthorityCertificate(
  request: Pick<CertificateRequest, 'serial' | 'validity'>, { certificate, privateKey }: Authority,
): Promise<Uint8Array> {
  const spki = subjectPublicKeyInfo(new X509Certificate(certificate).publicKey);
  return makeAuthorityCertificate({ ...request, spki, privateKey }, readIssuer(certificate).name);
}

/** The curve is secp384r1. A validity that ends after the authority's rejects with a RangeError too. */
export async function makeClientCertificate(
  request: CertificateRequest & { readonly commonName: string }, authority: Authority,
): Promise<Uint8Array> {
  // Some verifiers want a subjectAltName of clients too: a uniformResourceIdentifier [6], the serial as a UUID.
  const urn = implicit(6, ia5String(`urn:uuid:${uuidFromHex(request.serial)}`));
  const altName = extension(OIDS.subjectAltName, seq(urn));
  const extensions = [LEAF_BASIC_CONSTRAINTS, CLIENT_KEY_USAGE, CLIENT_AUTH_ONLY, altName];
  return make(request, distinguishedName(request.commonName), extensions, authority, 'sha384');
}

/** RFC 9562 section 5.4, from 32 hex digits: version 4 in the 13th, the variant in the top bits of the 17th. */
export function uuidFromHex(hex: string): string {
  const variant = '89ab'[Number.parseInt(hex.charAt(16), 16) & 3];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}

/** The common name where the first name is too long: clients look at the alternative names, only people read it. */
const NAMELESS = 'pasted';

/**
 * Not an authority: a server's key must not be able to vouch for other servers, and rustls and Firefox refuse
 * authorities as servers. There is no keyUsage: without keyCertSign in it, OpenSSL 1.1.1 does not see that the
 * certificate is self-signed; with keyCertSign, a leaf breaks RFC 5280 section 4.2.1.9. Where the extension is absent
 * every use is allowed, and extKeyUsage says which.
 */
export async function makeServerCertificate(request: SelfSignedRequest & { readonly names: readonly ServerName[] }) {
  const [first] = request.names;
  if (first === undefined) throw new RangeError('a server has a name');
  const subject = distinguishedName(normaliseCommonName(first.name) ?? NAMELESS);
  const extensions = [LEAF_BASIC_CONSTRAINTS, SERVER_AUTH_ONLY, subjectAltName(request.names)];
  return make(request, subject, extensions, { privateKey: request.privateKey }, 'sha256');
}

/** TBSCertificate (section 4.1), with no unique ids (section 4.1.2.8). A signer without a certificate signs its own. */
async function make(
  { serial, validity, spki, privateKey }: CertificateRequest, subject: Uint8Array, extensions: readonly Uint8Array[],
  signer: Pick<Authority, 'privateKey'> & Partial<Authority>, digest: keyof typeof ECDSA_WITH,
): Promise<Uint8Array> {
  const issuer = signer.certificate && readIssuer(signer.certificate);
  const identifiers = [extension(OIDS.subjectKeyIdentifier, octetString(keyIdentifier(spki)))];
  if (issuer !== undefined) identifiers.push(authorityKeyIdentifier(issuer.keyIdentifier));
  const tbsCertificate = seq(
    explicit(0, integer(2)), // v3
    certificateSerialNumber(serial), ECDSA_WITH[digest], issuer?.name ?? subject,
    seq(time(validity.notBefore), time(validity.notAfter)), subject, spki,
    explicit(3, seq(...extensions, ...identifiers)),
  );
  const certificate = await signed(tbsCertificate, signer.privateKey, digest);
  // Read back with OpenSSL's parser, so that a certificate which does not verify is never handed out.
  const made = new X509Certificate(certificate);
  const authority = issuer?.parsed ?? made;
  if (made.validToDate > authority.validToDate) throw new RangeError('certificate would outlive its authority');
  const isOfKey = privateKey === undefined
    ? Buffer.compare(subjectPublicKeyInfo(made.publicKey), spki) === 0
    : made.checkPrivateKey(privateKey);
  const isProved = isOfKey && made.verify(authority.publicKey) && made.checkIssued(authority);
  if (!isProved) throw new Error('certificate does not verify under its authority');
  return certificate;
}

/**
 * What certificates take from that of their authority: its encoded subject and its subjectKeyIdentifier, both copied
 * since verifiers compare bytes. Throws a DerError for anything but version 3 with the latter and no unique ids.
 * Kept, because reading it again would cost 0.1 ms of processor for each certificate that is issued.
 */
export const readIssuer = onceForEach((certificate: Uint8Array) => {
  const { sequence, integer: number, bitString: bits } = TAGS;
  const [tbs] = components(readDer(certificate), sequence, sequence, bits);
  const fields = [contextTag(0), number, sequence, sequence, sequence, sequence, sequence, contextTag(3)] as const;
  const [, , , , , subject, , extensions] = components(tbs, ...fields);
  const found = extensions.children[0]?.children.find(({ children: [extnId] }) => (
    extnId !== undefined && isEncoding(extnId, OIDS.subjectKeyIdentifier)
  ));
  // This extension is never critical (section 4.2.1.2), so its value comes right after its OID.
  const extnValue = found?.children[1];
  if (extnValue === undefined) throw new DerError('certificate without subjectKeyIdentifier');
  const keyIdentifier = readDer(extnValue.content).content;
  return { name: subject.encoding, keyIdentifier, parsed: new X509Certificate(certificate) };
});

/** SHA-256, as browsers and `openssl x509 -fingerprint -sha256` show it. */
export function shownFingerprint(certificate: Uint8Array): string {
  return new X509Certificate(certificate).fingerprint256;
}

/** 32 lowercase hex digits with 126 random bits. The first is 4 to 7: positive, and all 32 shown by every tool. */
export function makeSerial(random: RandomBytes): string {
  const bytes = Uint8Array.from(random(16));
  bytes[0] = (bytes[0]! & 0x3f) | 0x40;
  return Buffer.from(bytes).toString('hex');
}

/** CertificateSerialNumber ::= INTEGER (section 4.1.2.2). Throws a RangeError for what makeSerial does not make. */
export function certificateSerialNumber(serial: string): Uint8Array {
  if (!/^[4-7][0-9a-f]{31}$/.test(serial)) throw new RangeError(`no serial: ${serial}`);
  return integer(BigInt(`0x${serial}`));
}

// Extensions of certificates and revocation lists (RFC 5280 sections 4.2, 5.2 and 5.3).

/** The reasons of section 5.3.1 that a caller may give. Leaving the extension out means `unspecified`. */
export const REVOCATION_REASONS = {
  keyCompromise: 1, affiliationChanged: 3, superseded: 4, cessationOfOperation: 5, privilegeWithdrawn: 9,
} as const;

export type RevocationReason = keyof typeof REVOCATION_REASONS;

/** Extension ::= SEQUENCE { extnID OBJECT IDENTIFIER, critical BOOLEAN DEFAULT FALSE, extnValue OCTET STRING } */
export function extension(extnId: Uint8Array, value: Uint8Array, critical?: typeof TRUE): Uint8Array {
  return seq(extnId, ...(critical === undefined ? [] : [critical]), octetString(value));
}

/** SEQUENCE { cA BOOLEAN DEFAULT FALSE, pathLenConstraint INTEGER OPTIONAL }: 0 allows no authority below this one. */
export const AUTHORITY_BASIC_CONSTRAINTS = extension(OIDS.basicConstraints, seq(TRUE, integer(0)), TRUE);
export const LEAF_BASIC_CONSTRAINTS = extension(OIDS.basicConstraints, seq(), TRUE);

/** KeyUsage (section 4.2.1.3): keyCertSign (bit 5) and cRLSign (6), or digitalSignature (0); without trailing zeros. */
export const AUTHORITY_KEY_USAGE = extension(OIDS.keyUsage, bitString(Uint8Array.of(0b0000_0110), 1), TRUE);
export const CLIENT_KEY_USAGE = extension(OIDS.keyUsage, bitString(Uint8Array.of(0b1000_0000), 7), TRUE);

/** The authority has it too: a client that trusts the authority by accident still accepts no server from it. */
export const CLIENT_AUTH_ONLY = extension(OIDS.extKeyUsage, seq(OIDS.clientAuth));
export const SERVER_AUTH_ONLY = extension(OIDS.extKeyUsage, seq(OIDS.serverAuth));

/** SEQUENCE OF CHOICE { dNSName [2], iPAddress [7], ... }; not critical, as there is a subject (section 4.2.1.6). */
export function subjectAltName(names: readonly ServerName[]): Uint8Array {
  const generalNames = names.map(({ name, address }) => {
    return address === undefined ? implicit(2, ia5String(name)) : implicit(7, octetString(address));
  });
  return extension(OIDS.subjectAltName, seq(...generalNames));
}

/** RFC 7093 section 2, method 1: the leftmost 160 bits of SHA-256 over the public point. */
export function keyIdentifier(spki: Uint8Array): Uint8Array {
  const [, subjectPublicKey] = components(readDer(spki), TAGS.sequence, TAGS.bitString);
  return hash('sha256', bitStringOctets(subjectPublicKey), 'buffer').subarray(0, 20);
}

/** The issuer's: AuthorityKeyIdentifier ::= SEQUENCE { keyIdentifier [0] IMPLICIT OCTET STRING OPTIONAL, ... } */
export function authorityKeyIdentifier(identifier: Uint8Array): Uint8Array {
  return extension(OIDS.authorityKeyIdentifier, seq(implicit(0, octetString(identifier))));
}
