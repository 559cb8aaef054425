// Certificates (RFC 5280 section 4): the self-signed one of the authority and those of its clients; a server's is
// server-certificate.ts. Times and serials are handed in; whether a serial is free, and storing what was made, is the
// caller's.

import { X509Certificate } from 'node:crypto';
import { DAY_SECONDS, MINUTE_SECONDS } from '../core/time.ts';
import { LATEST_TIME_SECONDS, explicit, integer, seq, time } from './der.ts';
import {
  authorityBasicConstraints,
  authorityKeyIdentifier,
  authorityKeyUsage,
  clientAuthOnly,
  clientKeyUsage,
  keyIdentifier,
  leafBasicConstraints,
  subjectKeyIdentifier,
} from './extensions.ts';
import { readIssuer } from './issuer.ts';
import type { Authority } from './issuer.ts';
import { subjectPublicKeyInfo } from './key-pair.ts';
import type { KeyPair, PrivateKey } from './key-pair.ts';
import { distinguishedName } from './names.ts';
import { certificateSerialNumber } from './serial.ts';
import { ECDSA_WITH_SHA384, signed } from './signed.ts';

/** How long before its making a certificate is valid, for clients whose clocks are slow. */
const BACKDATE_SECONDS = 5 * MINUTE_SECONDS;

/** Both ends belong to it (RFC 5280 section 4.1.2.5). Unix seconds. */
export interface Validity {
  readonly notBefore: number;
  readonly notAfter: number;
}

export interface AuthorityRequest {
  /** As normaliseCommonName returns it. */
  readonly commonName: string;
  /** As makeSerial makes it. */
  readonly serial: string;
  readonly validity: Validity;
  readonly keyPair: KeyPair;
}

export interface ClientRequest {
  readonly commonName: string;
  readonly serial: string;
  readonly validity: Validity;
  /** The client's SubjectPublicKeyInfo in DER, on secp384r1. */
  readonly spki: Uint8Array;
  /** The key to `spki`, to be proved, where it was made here. */
  readonly privateKey?: PrivateKey;
}

type CertifiedKey = Pick<ClientRequest, 'spki' | 'privateKey'>;

/** What a certificate says before it is signed. */
export interface Template {
  readonly serial: string;
  /** AlgorithmIdentifier of the signature that will be put under it. */
  readonly signature: Uint8Array;
  readonly issuer: Uint8Array;
  readonly validity: Validity;
  readonly subject: Uint8Array;
  readonly spki: Uint8Array;
  readonly extensions: readonly Uint8Array[];
}

/**
 * From 5 minutes before `issuedAt` to so many days after it, but not past `latest`, and not past the last moment that
 * has an encoding. Refuses, with a RangeError, when nothing is left: the authority itself has expired. Unix seconds.
 */
export function validityFrom(issuedAt: number, days: number, latest: number = LATEST_TIME_SECONDS): Validity {
  const notAfter = Math.min(issuedAt + days * DAY_SECONDS, latest, LATEST_TIME_SECONDS);
  if (notAfter <= issuedAt) throw new RangeError('no time left to be valid in');
  return { notBefore: issuedAt - BACKDATE_SECONDS, notAfter };
}

/** The certificate of a new authority in DER. Rejects with a RangeError what can't be encoded. */
export async function makeAuthorityCertificate(request: AuthorityRequest): Promise<Uint8Array> {
  const { commonName, serial, validity, keyPair } = request;
  const subject = distinguishedName(commonName);
  const spki = subjectPublicKeyInfo(keyPair.publicKey);
  const extensions = [
    authorityBasicConstraints(),
    authorityKeyUsage(),
    clientAuthOnly(),
    subjectKeyIdentifier(keyIdentifier(spki)),
  ];
  const tbs = tbsCertificate({ serial, signature: ECDSA_WITH_SHA384, issuer: subject, validity, subject, spki, extensions });
  const certificate = await signed(tbs, keyPair.privateKey);
  prove(certificate, certificate, { spki, privateKey: keyPair.privateKey });
  return certificate;
}

/**
 * A client's certificate in DER. Rejects with a RangeError what can't be encoded, and a validity that ends after the
 * authority's.
 */
export async function makeClientCertificate(request: ClientRequest, authority: Authority): Promise<Uint8Array> {
  const { commonName, serial, validity, spki } = request;
  const issuer = readIssuer(authority.certificate);
  const extensions = [
    leafBasicConstraints(),
    clientKeyUsage(),
    clientAuthOnly(),
    subjectKeyIdentifier(keyIdentifier(spki)),
    authorityKeyIdentifier(issuer.keyIdentifier),
  ];
  const subject = distinguishedName(commonName);
  const signature = ECDSA_WITH_SHA384;
  const tbs = tbsCertificate({ serial, signature, issuer: issuer.name, validity, subject, spki, extensions });
  const certificate = await signed(tbs, authority.privateKey);
  prove(certificate, authority.certificate, request);
  return certificate;
}

/**
 *     TBSCertificate ::= SEQUENCE {
 *       version         [0] EXPLICIT Version DEFAULT v1,
 *       serialNumber    CertificateSerialNumber,
 *       signature       AlgorithmIdentifier,
 *       issuer          Name,
 *       validity        SEQUENCE { notBefore Time, notAfter Time },
 *       subject         Name,
 *       subjectPublicKeyInfo  SubjectPublicKeyInfo,
 *       issuerUniqueID  [1] IMPLICIT UniqueIdentifier OPTIONAL,
 *       subjectUniqueID [2] IMPLICIT UniqueIdentifier OPTIONAL,
 *       extensions      [3] EXPLICIT Extensions OPTIONAL }
 *
 * The unique ids MUST NOT be there (section 4.1.2.8). v3 is the number 2.
 */
export function tbsCertificate({ serial, signature, issuer, validity, subject, spki, extensions }: Template): Uint8Array {
  return seq(
    explicit(0, integer(2)),
    certificateSerialNumber(serial),
    signature,
    issuer,
    seq(time(validity.notBefore), time(validity.notAfter)),
    subject,
    spki,
    explicit(3, seq(...extensions)),
  );
}

/** Reads a certificate back with OpenSSL's parser before anyone relies on it: what comes out of here, works. */
export function prove(certificate: Uint8Array, issuer: Uint8Array, { spki, privateKey }: CertifiedKey): void {
  const made = new X509Certificate(certificate);
  const authority = new X509Certificate(issuer);
  if (made.validToDate > authority.validToDate) throw new RangeError('certificate would outlive its authority');
  const proved =
    made.verify(authority.publicKey) &&
    made.checkIssued(authority) &&
    Buffer.compare(subjectPublicKeyInfo(made.publicKey), spki) === 0 &&
    (privateKey === undefined || made.checkPrivateKey(privateKey));
  if (!proved) throw new Error('certificate does not verify under its authority');
}
