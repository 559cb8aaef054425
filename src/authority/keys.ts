// Keys: made, used to sign, written as PEM, encrypted under a password, and read from certification requests.

import {
  createCipheriv, createDecipheriv, createPrivateKey, createPublicKey, generateKeyPair as nodeGenerateKeyPair,
  type KeyObject, sign as nodeSign, verify, X509Certificate,
} from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expected, orUndefined } from '../core/events.ts';
import { Refusal } from '../core/refusals.ts';
import { KIB, type RandomBytes } from '../core/time.ts';
import { MAX_ITERATIONS, pbkdf2Sha256 } from '../crypto/passwords.ts';
import {
  bitStringOctets, components, type DerElement, DerError, integerValue, isEncoding, readDer, TAGS,
} from '../crypto/presented.ts';
import { bitString, contextTag, integer, NULL, octetString, OIDS, seq } from './der.ts';

export type PrivateKey = KeyObject;

export type Authority = Readonly<{ certificate: Uint8Array; privateKey: PrivateKey }>;

/** A public key to certify (SubjectPublicKeyInfo in DER), and its private key, to check the result, if made here. */
export type CertifiedKey = Readonly<{ spki: Uint8Array; privateKey?: PrivateKey }>;

const generate = promisify(nodeGenerateKeyPair);
const sign = promisify(nodeSign);

/** A new key pair, made on the thread pool. A server has P-256, which every TLS client knows (RFC 8446 section 9.1). */
export async function generateKeyPair(namedCurve: 'secp384r1' | 'prime256v1' = 'secp384r1') {
  const { publicKey, privateKey } = await generate('ec', { namedCurve });
  return { publicKey, privateKey, spki: subjectPublicKeyInfo(publicKey) };
}

/** The SubjectPublicKeyInfo (RFC 5480 section 2): the curve by name, the point uncompressed. 120 bytes of DER. */
export function subjectPublicKeyInfo(publicKey: KeyObject): Uint8Array {
  return publicKey.export({ type: 'spki', format: 'der' });
}

/** The AlgorithmIdentifier for each digest; the parameters are absent (RFC 5758 section 3.2). */
export const ECDSA_WITH = {
  sha256: seq(OIDS.ecdsaWithSha256), sha384: seq(OIDS.ecdsaWithSha384), sha512: seq(OIDS.ecdsaWithSha512),
} as const;

/** Certificate or CertificateList (RFC 5280 sections 4.1 and 5.1), signed on the thread pool. */
export async function signed(tbs: Uint8Array, key: PrivateKey, digest: keyof typeof ECDSA_WITH): Promise<Uint8Array> {
  // An ECDSA-Sig-Value (RFC 3279 section 2.2.3). With no digest named, OpenSSL takes SHA-256, whatever the curve.
  return seq(tbs, ECDSA_WITH[digest], bitString(await sign(digest, tbs, { key, dsaEncoding: 'der' })));
}

export function privateKeyPem(privateKey: PrivateKey): string {
  return String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
}

// The authority's key at rest.

/** OWASP's figure for PBKDF2-HMAC-SHA256; about 0.1 s of a thread of the pool. */
const AT_REST_ITERATIONS = 600_000;

/** The one answer for every way in which a stored key can't be had: a wrong password and damage look the same. */
export class AuthorityKeyError extends Error {}

export function lockPrivateKey(key: PrivateKey, password: string, random: RandomBytes): Promise<Uint8Array> {
  return encryptPrivateKey(key, (plaintext) => encryptPbes2(plaintext, password, AT_REST_ITERATIONS, random));
}

/** EncryptedPrivateKeyInfo (RFC 5958 section 3): SEQUENCE { AlgorithmIdentifier, OCTET STRING } of a PrivateKeyInfo. */
export async function encryptPrivateKey(key: PrivateKey, encrypt: Encrypt): Promise<Uint8Array> {
  const secretBytes = key.export({ type: 'pkcs8', format: 'der' });
  const { algorithm, ciphertext } = await encrypt(secretBytes);
  secretBytes.fill(0);
  return seq(algorithm, octetString(ciphertext));
}

/** The key that lockPrivateKey locked, proved to be the certificate's. AuthorityKeyError for whatever goes wrong. */
export async function unlockPrivateKey(locked: Uint8Array, password: string, certificate: Uint8Array) {
  try {
    const [algorithm, ciphertext] = components(readDer(locked), TAGS.sequence, TAGS.octetString);
    const { salt, iterations, iv } = readPbes2Parameters(algorithm);
    const decipher = createDecipheriv(CIPHER, await pbkdf2Sha256(password, salt, iterations, KEY_BYTES), iv);
    const secretBytes = Buffer.concat([decipher.update(ciphertext.content), decipher.final()]);
    const privateKey = createPrivateKey({ key: secretBytes, format: 'der', type: 'pkcs8' });
    secretBytes.fill(0);
    if (new X509Certificate(certificate).checkPrivateKey(privateKey)) return privateKey;
  } catch {
    // The error hides which step failed: that would tell a guesser how close the guess was.
  }
  throw new AuthorityKeyError('the private key of the authority cannot be unlocked: wrong password, or damaged');
}

// Encryption under a password: PBES2 (RFC 8018 section 6.2), with PBKDF2-HMAC-SHA-256 and AES-256-CBC alone.

const CIPHER = 'aes-256-cbc';
const KEY_BYTES = 32;
const IV_BYTES = 16;
const SALT_BYTES = 16;

/** A ciphertext and the AlgorithmIdentifier, in DER, that says how to decrypt it. */
export type Encrypted = Awaited<ReturnType<typeof encryptPbes2>>;
export type Encrypt = (plaintext: Uint8Array) => Promise<Encrypted>;

/** Encrypts under the UTF-8 of the password, with a new salt and iv. Derives the key on the thread pool. */
export async function encryptPbes2(plaintext: Uint8Array, password: string, iterations: number, random: RandomBytes) {
  const salt = random(SALT_BYTES);
  const iv = random(IV_BYTES);
  const cipher = createCipheriv(CIPHER, await pbkdf2Sha256(password, salt, iterations, KEY_BYTES), iv);
  const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()]);
  return { algorithm: pbes2Algorithm(salt, iterations, iv), ciphertext };
}

/** PBES2-params and PBKDF2-params of appendix A. NULL for hmacWithSHA256 (B.1.2); the iv for aes256-CBC (B.2.5). */
function pbes2Algorithm(salt: Uint8Array, iterations: number, iv: Uint8Array): Uint8Array {
  const pbkdf2 = seq(octetString(salt), integer(iterations), seq(OIDS.hmacWithSha256, NULL));
  return seq(OIDS.pbes2, seq(seq(OIDS.pbkdf2, pbkdf2), seq(OIDS.aes256Cbc, octetString(iv))));
}

function readPbes2Parameters(algorithm: DerElement) {
  const { sequence, oid, octetString: octets, integer: count } = TAGS;
  const [, pbes2] = components(algorithm, oid, sequence);
  const [kdf, scheme] = components(pbes2, sequence, sequence);
  const [, pbkdf2] = components(kdf, oid, sequence);
  const [{ content: salt }, iterationCount] = components(pbkdf2, octets, count, sequence);
  const [, { content: iv }] = components(scheme, oid, octets);
  const iterations = integerValue(iterationCount);
  // The fields skipped above are checked too: the whole is encoded again and compared.
  const isOurs = isEncoding(algorithm, pbes2Algorithm(salt, iterations, iv));
  if (!isOurs || iterations > MAX_ITERATIONS) throw new DerError('unsupported encryption');
  return { salt, iterations, iv };
}

// PEM (RFC 7468), in its strict grammar alone: no explanatory text around the block, no headers, no second block.

export type PemLabel = 'CERTIFICATE' | 'CERTIFICATE REQUEST' | 'NEW CERTIFICATE REQUEST' | 'PRIVATE KEY' | 'X509 CRL';

export function encodePem(label: PemLabel, der: Uint8Array): string {
  return `-----BEGIN ${label}-----\n${base64Lines(der)}-----END ${label}-----\n`;
}

/** RFC 7468 section 2: every line but the last has exactly 64 characters, for 48 bytes. */
function base64Lines(der: Uint8Array): string {
  return Buffer.from(der).toString('base64').replace(/.{1,64}/g, '$&\n');
}

/** A whole number of lines; this many take a millisecond. */
const BYTES_A_TURN = 2000 * 48;

/** Like encodePem, but returns ASCII bytes, and does not hold the event loop up for megabytes of DER. */
export async function encodeLongPem(label: PemLabel, der: Uint8Array): Promise<Uint8Array> {
  const pieces = [Buffer.from(`-----BEGIN ${label}-----\n`)];
  for (let at = 0; at < der.length; at += BYTES_A_TURN) {
    pieces.push(Buffer.from(base64Lines(der.subarray(at, at + BYTES_A_TURN)), 'latin1'));
    await setImmediate();
  }
  return Buffer.concat([...pieces, Buffer.from(`-----END ${label}-----\n`)]);
}

/** The bytes of a text that is one block with one of these labels and nothing more; undefined otherwise. */
export function decodePem(text: string, ...labels: readonly PemLabel[]): Uint8Array | undefined {
  const [, body = ''] = /^-----BEGIN [A-Z0-9 ]+-----([A-Za-z0-9+/=\s]+)-----END /.exec(text) ?? [];
  const der = Buffer.from(body, 'base64');
  // Buffer reads base64 leniently; what encodes back to the same lines was strict. Lines may end in CR LF.
  const given = text.trimEnd().replaceAll('\r\n', '\n');
  return der.length > 0 && labels.some((label) => encodePem(label, der).trimEnd() === given) ? der : undefined;
}

// Certification requests (PKCS #10, RFC 2986) from outside: all that is taken from one is its public key. Subject,
// attributes and requested extensions must be canonical DER and are then ignored.

/** The longest request, PEM included: several times what any tool makes for this curve. */
export const MAX_CSR_CHARACTERS = 8 * KIB;

/** RFC 5480 section 2: the curve by its name; a point as 0x04 and two coordinates of 48 octets. */
const EC_P384 = seq(OIDS.ecPublicKey, OIDS.secp384r1);
const UNCOMPRESSED = 0x04;
const POINT_BYTES = 97;

/** The SubjectPublicKeyInfo of a request in PEM whose self-signature proves that its maker has the private key. */
export function readCertificationRequest(pem: string): Uint8Array {
  if (pem.length > MAX_CSR_CHARACTERS) throw invalid(`csr must be at most ${MAX_CSR_CHARACTERS} bytes long`);
  const der = decodePem(pem, 'CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST');
  if (der === undefined) throw invalid('csr must be one PEM block CERTIFICATE REQUEST and nothing else');
  const { info, spki, keyAlgorithm, point, signatureAlgorithm, signature } = parseRequest(der);
  if (!isEncoding(keyAlgorithm, EC_P384) || point.length !== POINT_BYTES || point[0] !== UNCOMPRESSED) {
    throw invalid('csr must hold an EC key on P-384 (secp384r1), its curve named and its point uncompressed');
  }
  const key = orUndefined(() => createPublicKey({ key: Buffer.from(spki.encoding), format: 'der', type: 'spki' }));
  if (key === undefined) throw invalid('csr must hold a public key that is a point of P-384 (secp384r1)');
  // SHA-384 alone, which our client certificates have, would not do: openssl's default is SHA-256 for any curve.
  const [digest] = Object.entries(ECDSA_WITH).find(([, known]) => isEncoding(signatureAlgorithm, known)) ?? [];
  if (digest === undefined) throw invalid('csr must be signed with ECDSA and SHA-256, SHA-384 or SHA-512');
  if (!isEcdsaSignature(digest, key, info.encoding, signature)) {
    throw invalid('csr signature does not match its public key: sign it with the private key of that key');
  }
  return Uint8Array.from(spki.encoding);
}

/** Whether the signature, an ECDSA-Sig-Value in DER (RFC 3279 section 2.2.3), is the key's over the bytes. */
export function isEcdsaSignature(digest: string, key: KeyObject, bytes: Uint8Array, signature: Uint8Array): boolean {
  return verify(digest, bytes, { key, dsaEncoding: 'der' }, signature);
}

/** CertificationRequest (RFC 2986 section 4.2); its attributes are [0] IMPLICIT SET OF SEQUENCE { type, SET OF }. */
function parseRequest(der: Uint8Array) {
  const { sequence, bitString } = TAGS;
  try {
    const [info, signatureAlgorithm, signature] = components(readDer(der), sequence, sequence, bitString);
    const [version, , spki, attributes] = components(info, TAGS.integer, sequence, sequence, contextTag(0));
    if (!isEncoding(version, integer(0))) throw new DerError('version other than 0');
    // The reader can't recognise a SET behind an implicit tag, so its order is checked under the tag of a SET.
    const set = readDer(Uint8Array.from(attributes.encoding, (octet, i) => (i === 0 ? TAGS.set : octet)));
    for (const attribute of set.children) components(attribute, TAGS.oid, TAGS.set);
    const [keyAlgorithm, subjectPublicKey] = components(spki, sequence, bitString);
    const point = bitStringOctets(subjectPublicKey);
    return { info, spki, keyAlgorithm, point, signatureAlgorithm, signature: bitStringOctets(signature) };
  } catch (error) {
    const { message } = expected(DerError, error);
    throw invalid(`csr must be a PKCS #10 request, version 0, in canonical DER: ${message}`);
  }
}

function invalid(hint: string): Refusal {
  return new Refusal('csrInvalid', { hint });
}
