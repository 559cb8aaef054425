// Encryption under a password (PBES2, RFC 8018 section 6.2) in the one form that we write: PBKDF2 with HMAC-SHA-256,
// then AES-256-CBC. For bundles and for the authority's key at rest; passwords of pastes are password.ts.

import { createCipheriv, createDecipheriv } from 'node:crypto';
import type { RandomBytes } from '../core/random.ts';
import { TAGS, integer, nil, octetString, seq } from './der.ts';
import { DerError, components, integerValue, isEncoding } from './der-reader.ts';
import type { DerElement } from './der-reader.ts';
import { OIDS } from './oids.ts';
import { pbkdf2Sha256 } from './password.ts';

const CIPHER = 'aes-256-cbc';
const KEY_BYTES = 32;
const IV_BYTES = 16;
const SALT_BYTES = 16;

/** More than was ever written: so that a damaged count can't keep a thread busy for hours. */
const MAX_ITERATIONS = 10_000_000;

/** A ciphertext and the AlgorithmIdentifier, in DER, that says how to decrypt it. */
export interface Encrypted {
  readonly algorithm: Uint8Array;
  readonly ciphertext: Uint8Array;
}

interface Parameters {
  readonly salt: Uint8Array;
  readonly iterations: number;
  readonly iv: Uint8Array;
}

/** Under the UTF-8 of the password, with a new salt and iv. The key is derived on the thread pool. */
export async function encryptPbes2(
  plaintext: Uint8Array,
  password: string,
  iterations: number,
  random: RandomBytes,
): Promise<Encrypted> {
  const parameters = { salt: random(SALT_BYTES), iterations, iv: random(IV_BYTES) };
  const key = await pbkdf2Sha256(password, parameters.salt, iterations, KEY_BYTES);
  const cipher = createCipheriv(CIPHER, key, parameters.iv);
  const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()]);
  return { algorithm: algorithmIdentifier(parameters), ciphertext };
}

/** The plaintext. Rejects when the algorithm is not of the form above, or the password is not the right one. */
export async function decryptPbes2(
  algorithm: DerElement,
  ciphertext: Uint8Array,
  password: string,
): Promise<Buffer> {
  const { salt, iterations, iv } = readParameters(algorithm);
  const key = await pbkdf2Sha256(password, salt, iterations, KEY_BYTES);
  const decipher = createDecipheriv(CIPHER, key, iv);
  return Buffer.concat([decipher.update(ciphertext), decipher.final()]);
}

/**
 *     PBES2-params ::= SEQUENCE {
 *       keyDerivationFunc  AlgorithmIdentifier {{PBES2-KDFs}},
 *       encryptionScheme   AlgorithmIdentifier {{PBES2-Encs}} }
 *     PBKDF2-params ::= SEQUENCE {
 *       salt            CHOICE { specified OCTET STRING, ... },
 *       iterationCount  INTEGER (1..MAX),
 *       keyLength       INTEGER (1..MAX) OPTIONAL,
 *       prf             AlgorithmIdentifier {{PBKDF2-PRFs}} DEFAULT algid-hmacWithSHA1 }
 *
 * The NULL of hmacWithSHA256 is written out (appendix B.1.2); the parameter of aes256-CBC is the iv (appendix B.2.5).
 */
function algorithmIdentifier({ salt, iterations, iv }: Parameters): Uint8Array {
  return seq(
    OIDS.pbes2,
    seq(
      seq(OIDS.pbkdf2, seq(octetString(salt), integer(iterations), seq(OIDS.hmacWithSha256, nil()))),
      seq(OIDS.aes256Cbc, octetString(iv)),
    ),
  );
}

function readParameters(algorithm: DerElement): Parameters {
  const { sequence, oid, octetString: octets, integer: count } = TAGS;
  const [, pbes2] = components(algorithm, oid, sequence);
  const [kdf, scheme] = components(pbes2, sequence, sequence);
  const [, pbkdf2] = components(kdf, oid, sequence);
  const [salt, iterationCount] = components(pbkdf2, octets, count, sequence);
  const [, iv] = components(scheme, oid, octets);
  const parameters = { salt: salt.content, iterations: integerValue(iterationCount), iv: iv.content };
  // Writing it again compares everything that was skipped above.
  const same = isEncoding(algorithm, algorithmIdentifier(parameters));
  if (!same || parameters.iterations > MAX_ITERATIONS) throw new DerError('unsupported encryption');
  return parameters;
}
