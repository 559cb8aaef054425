// The fingerprint by which reverse proxies name a client certificate. SHA-1 identifies here, as the contract wants it,
// and proves nothing: the proxy has verified the certificate.

import { constants, createPrivateKey, hash, type KeyObject, X509Certificate } from 'node:crypto';
import { TAGS } from '../authority/der.ts';
import { components, DerError, readDer } from './der-reader.ts';

/** SHA-1 of a certificate's DER: 40 lowercase hex characters. */
export function fingerprintSha1(certificate: Uint8Array): string {
  return hash('sha1', certificate, 'hex');
}

/**
 * The same of bytes from outside. Undefined when they are not DER of the form of a Certificate (RFC 5280 section 4.1):
 * PEM, a chain or a part of a certificate must not become an identity of its own.
 */
export function presentedCertificateSha1(bytes: Uint8Array): string | undefined {
  try {
    components(readDer(bytes), TAGS.sequence, TAGS.sequence, TAGS.bitString);
  } catch (error) {
    if (error instanceof DerError) return undefined;
    throw error;
  }
  return fingerprintSha1(bytes);
}

// What the TLS listener needs of certificates and keys: its own pair judged before it is used, and a client's
// certificate traced to the authority. The handshake itself is http/tls.ts.

/**
 * Options of OpenSSL (SSL_CTX_set_options(3)). Without renegotiation (which TLS 1.3 does not have) an identity stays
 * the same as long as the connection.
 */
export const NO_RENEGOTIATION = constants.SSL_OP_NO_RENEGOTIATION;

/** Without tickets every connection is a full handshake, so that an identity is what this connection proved. */
export const FULL_HANDSHAKES_ONLY = constants.SSL_OP_NO_TICKET | NO_RENEGOTIATION;

/** Forward secrecy and authenticated encryption alone; all that TLS 1.3 has, and what TLS 1.2 has of that kind. */
export const CIPHERS = [
  'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256',
].join(':');

/** What is wrong with a server's certificate and key. */
export type ServerPairFault = 'certificateForm' | 'keyForm' | 'keyEncrypted' | 'keyOfAnother';

export type ServerPair = { readonly fault: ServerPairFault } | { readonly expiresAt: number };

/** Both as PEM, the server's certificate before those of its issuers. Gives when it runs out, in Unix seconds. */
export function readServerPair(certificatePem: string, keyPem: string): ServerPair {
  const certificate = attempt(() => new X509Certificate(certificatePem));
  if (certificate === undefined) return { fault: 'certificateForm' };
  // PKCS#8 (RFC 5958) and what OpenSSL wrote before it.
  if (/ENCRYPTED/.test(keyPem)) return { fault: 'keyEncrypted' };
  const key = attempt((): KeyObject => createPrivateKey(keyPem));
  if (key === undefined) return { fault: 'keyForm' };
  if (!certificate.checkPrivateKey(key)) return { fault: 'keyOfAnother' };
  return { expiresAt: Math.floor(certificate.validToDate.getTime() / 1000) };
}

/**
 * Whether the authority signed the certificate, both in DER. Says nothing about whether it is valid now, or whether
 * anyone has shown its key.
 */
export function isIssuedBy(certificate: Uint8Array, authority: Uint8Array): boolean {
  return issuedSerial(certificate, authority) !== undefined;
}

/** The serial, as makeSerial makes it, of a certificate that the authority signed; undefined for any other. */
export function issuedSerial(certificate: Uint8Array, authority: Uint8Array): string | undefined {
  const issuer = new X509Certificate(authority);
  const issued = attempt(() => new X509Certificate(certificate));
  const isOurs = issued?.checkIssued(issuer) === true && attempt(() => issued.verify(issuer.publicKey)) === true;
  return isOurs ? issued.serialNumber.toLowerCase() : undefined;
}

/** Why it fails does not matter: OpenSSL's own words may repeat a part of what it was given. */
function attempt<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}
