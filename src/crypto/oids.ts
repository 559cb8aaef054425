// Every object identifier that is written or recognised, one table, in the words of the standards that define them.

import { oid } from './der.ts';

/** Encoded, ready to be a component. */
export const OIDS = {
  // RFC 5280 appendix A.1
  commonName: oid('2.5.4.3'),

  // RFC 5280 section 4.2 and 5.2, 5.3: extensions
  subjectKeyIdentifier: oid('2.5.29.14'),
  keyUsage: oid('2.5.29.15'),
  subjectAltName: oid('2.5.29.17'),
  basicConstraints: oid('2.5.29.19'),
  cRLNumber: oid('2.5.29.20'),
  reasonCode: oid('2.5.29.21'),
  authorityKeyIdentifier: oid('2.5.29.35'),
  extKeyUsage: oid('2.5.29.37'),
  serverAuth: oid('1.3.6.1.5.5.7.3.1'),
  clientAuth: oid('1.3.6.1.5.5.7.3.2'),

  // RFC 5480 section 2.1 and RFC 5758 section 3.2: keys and signatures
  ecPublicKey: oid('1.2.840.10045.2.1'),
  secp384r1: oid('1.3.132.0.34'),
  ecdsaWithSha256: oid('1.2.840.10045.4.3.2'),
  ecdsaWithSha384: oid('1.2.840.10045.4.3.3'),
  ecdsaWithSha512: oid('1.2.840.10045.4.3.4'),

  // RFC 8018 appendix A and B, RFC 3565 section 4.1: encryption under a password
  pbes2: oid('1.2.840.113549.1.5.13'),
  pbkdf2: oid('1.2.840.113549.1.5.12'),
  hmacWithSha256: oid('1.2.840.113549.2.9'),
  aes256Cbc: oid('2.16.840.1.101.3.4.1.42'),

  // RFC 5652 section 4 and 8: content types
  data: oid('1.2.840.113549.1.7.1'),
  encryptedData: oid('1.2.840.113549.1.7.6'),

  // RFC 7292 section 4.2, appendix C; RFC 2985 section 5.5: bundles
  pkcs8ShroudedKeyBag: oid('1.2.840.113549.1.12.10.1.2'),
  certBag: oid('1.2.840.113549.1.12.10.1.3'),
  x509Certificate: oid('1.2.840.113549.1.9.22.1'),
  friendlyName: oid('1.2.840.113549.1.9.20'),
  localKeyId: oid('1.2.840.113549.1.9.21'),
  pbeWithSha1And3Des: oid('1.2.840.113549.1.12.1.3'),
  sha1: oid('1.3.14.3.2.26'),
  sha256: oid('2.16.840.1.101.3.4.2.1'),
} as const;
