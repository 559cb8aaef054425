// Private keys as bytes: in the clear for the client that asked for one, encrypted under a password for the authority's
// own, at rest. Does not generate keys (key-pair.ts) and does not store them.

import { X509Certificate, createPrivateKey } from 'node:crypto';
import type { RandomBytes } from '../core/random.ts';
import { TAGS, octetString, seq } from './der.ts';
import { components, readDer } from './der-reader.ts';
import type { PrivateKey } from './key-pair.ts';
import { decryptPbes2, encryptPbes2 } from './pbes2.ts';
import type { Encrypted } from './pbes2.ts';
import { encodePem } from './pem.ts';

/** OWASP's figure for PBKDF2-HMAC-SHA256; about 0.1 s of a thread of the pool. */
const AT_REST_ITERATIONS = 600_000;

/** The one answer for every way in which a stored key can't be had: a wrong password and damage look the same. */
export class AuthorityKeyError extends Error {
  override readonly name = 'AuthorityKeyError';

  constructor() {
    super('the private key of the authority cannot be unlocked: wrong password, or damaged');
  }
}

/** PrivateKeyInfo (RFC 5958 section 2) in DER. The bytes are the secret itself: to be overwritten after use. */
export function privateKeyInfo(privateKey: PrivateKey): Buffer {
  return privateKey.export({ type: 'pkcs8', format: 'der' });
}

/** The same in PEM, given to its owner once. */
export function privateKeyPem(privateKey: PrivateKey): string {
  return encodePem('PRIVATE KEY', privateKeyInfo(privateKey));
}

/**
 * RFC 5958 section 3, what `openssl pkey` reads; in a bundle it is the value of a pkcs8ShroudedKeyBag.
 *
 *     EncryptedPrivateKeyInfo ::= SEQUENCE {
 *       encryptionAlgorithm  AlgorithmIdentifier,
 *       encryptedData        OCTET STRING }
 */
export function encryptedPrivateKeyInfo({ algorithm, ciphertext }: Encrypted): Uint8Array {
  return seq(algorithm, octetString(ciphertext));
}

/** The key encrypted under the password, for storing: an EncryptedPrivateKeyInfo in DER. */
export async function lockPrivateKey(
  privateKey: PrivateKey,
  password: string,
  random: RandomBytes,
): Promise<Uint8Array> {
  const secretBytes = privateKeyInfo(privateKey);
  const encrypted = await encryptPbes2(secretBytes, password, AT_REST_ITERATIONS, random);
  secretBytes.fill(0);
  return encryptedPrivateKeyInfo(encrypted);
}

/**
 * The key that lockPrivateKey locked, proved to be the one of the certificate (DER). Rejects with AuthorityKeyError
 * whatever is wrong.
 */
export async function unlockPrivateKey(
  locked: Uint8Array,
  password: string,
  certificate: Uint8Array,
): Promise<PrivateKey> {
  try {
    const [algorithm, ciphertext] = components(readDer(locked), TAGS.sequence, TAGS.octetString);
    const secretBytes = await decryptPbes2(algorithm, ciphertext.content, password);
    const privateKey = createPrivateKey({ key: secretBytes, format: 'der', type: 'pkcs8' });
    secretBytes.fill(0);
    if (new X509Certificate(certificate).checkPrivateKey(privateKey)) return privateKey;
  } catch {
    // Which step failed would tell a guesser how close the guess was.
  }
  throw new AuthorityKeyError();
}
