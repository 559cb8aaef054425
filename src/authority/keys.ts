// Private keys as bytes: in the clear for the client that asked for one, encrypted under a password for the authority's
// own, at rest. Does not store them.

import {
  createCipheriv, createDecipheriv, createPrivateKey, generateKeyPair as nodeGenerateKeyPair, type KeyObject,
  sign as nodeSign, X509Certificate,
} from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { RandomBytes } from '../core/time.ts';
import { pbkdf2Sha256 } from '../crypto/passwords.ts';
import { components, type DerElement, DerError, integerValue, isEncoding, readDer, TAGS } from '../crypto/presented.ts';
import { contextTag, integer, nil, octetString, OIDS, seq } from './der.ts';

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

// Key pairs, of the authority and of its clients on secp384r1 and of servers on P-256, and signatures with them. Keys
// as bytes, and encrypted, are above.

export type PublicKey = KeyObject;
export type PrivateKey = KeyObject;

export interface KeyPair {
  readonly publicKey: PublicKey;
  readonly privateKey: PrivateKey;
}

const generate = promisify(nodeGenerateKeyPair);

/** A new key pair on secp384r1, made on the thread pool. */
export async function generateKeyPair(): Promise<KeyPair> {
  return generate('ec', { namedCurve: 'secp384r1' });
}

/** The same on P-256, for servers: what every TLS client knows (RFC 8446 section 9.1). */
export async function generateServerKeyPair(): Promise<KeyPair> {
  return generate('ec', { namedCurve: 'prime256v1' });
}

/** The SubjectPublicKeyInfo (RFC 5480 section 2): the curve by name, the point uncompressed. 120 bytes of DER. */
export function subjectPublicKeyInfo(publicKey: PublicKey): Uint8Array {
  return publicKey.export({ type: 'spki', format: 'der' });
}

/** ECDSA with SHA-384, an ECDSA-Sig-Value in DER (RFC 3279 section 2.2.3), made on the thread pool. */
export function signSha384(privateKey: PrivateKey, bytes: Uint8Array): Promise<Uint8Array> {
  return sign('sha384', privateKey, bytes);
}

/** The same with SHA-256, the digest that goes with P-256. */
export function signSha256(privateKey: PrivateKey, bytes: Uint8Array): Promise<Uint8Array> {
  return sign('sha256', privateKey, bytes);
}

/** The digest must be named: with none, OpenSSL silently takes SHA-256, whatever the curve. */
function sign(digest: string, privateKey: PrivateKey, bytes: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    nodeSign(digest, bytes, { key: privateKey, dsaEncoding: 'der' }, (error, signature) => {
      if (error === null) resolve(signature);
      else reject(error);
    });
  });
}

// Encryption under a password (PBES2, RFC 8018 section 6.2) in the one form that we write: PBKDF2 with HMAC-SHA-256,
// then AES-256-CBC. For bundles and for the authority's key at rest; passwords of pastes are passwords.ts.

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

// PEM (RFC 7468): DER as text between labelled lines. Writes and accepts the strict grammar alone: no explanatory text
// around the block, no headers, no second block. Does not look into the bytes.

export type PemLabel =
  | 'CERTIFICATE'
  | 'CERTIFICATE REQUEST'
  | 'NEW CERTIFICATE REQUEST'
  | 'ENCRYPTED PRIVATE KEY'
  | 'PRIVATE KEY'
  | 'X509 CRL';

/** RFC 7468 section 2: every line of base64 but the last has exactly 64 characters. */
const LINES = /.{1,64}/g;
const BYTES_A_LINE = 48;

/** Finds the parts. That they are all there is, and in their strict form, is seen when they are written again. */
const BLOCK = /^-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]+)-----END /;

/** Lines end in a newline, the last one too. */
export function encodePem(label: PemLabel, der: Uint8Array): string {
  const lines = Buffer.from(der).toString('base64').match(LINES) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

/** Of so many lines at a time: a millisecond. */
const LINES_A_TURN = 2000;

/** The same in ASCII, of bytes of any number: others have their turns meanwhile. */
export async function encodeLongPem(label: PemLabel, der: Uint8Array): Promise<Uint8Array> {
  const pieces = [Buffer.from(`-----BEGIN ${label}-----\n`)];
  for (let at = 0; at < der.length; at += LINES_A_TURN * BYTES_A_LINE) {
    const base64 = Buffer.from(der.subarray(at, at + LINES_A_TURN * BYTES_A_LINE)).toString('base64');
    pieces.push(Buffer.from(base64.replace(LINES, '$&\n'), 'latin1'));
    await setImmediate();
  }
  return Buffer.concat([...pieces, Buffer.from(`-----END ${label}-----\n`)]);
}

/** The bytes of a text that is one block with one of these labels and nothing more; undefined otherwise. */
export function decodePem(text: string, ...labels: readonly PemLabel[]): Uint8Array | undefined {
  const [, found, body = ''] = BLOCK.exec(text) ?? [];
  const label = labels.find((accepted) => accepted === found);
  if (label === undefined) return undefined;
  const der = Buffer.from(body, 'base64');
  // Buffer reads base64 leniently; what encodes back to the same lines was strict. Lines may end in CR LF.
  const sameLines = encodePem(label, der).trimEnd() === text.trimEnd().replaceAll('\r\n', '\n');
  return der.length > 0 && sameLines ? der : undefined;
}

// What an authority's certificate says to those that it issues for: taken out of its bytes, so that copies are exact.
// Does not verify the certificate, which is our own.

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
