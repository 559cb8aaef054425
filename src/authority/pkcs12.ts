// PKCS #12 bundles (RFC 7292): a client's certificate and key and the authority's certificate under one password.
// Writes only; never a bag in the clear, never without a MAC.

import { createCipheriv, createHmac, hash } from 'node:crypto';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { RandomBytes } from '../core/time.ts';
import { fingerprintSha1 } from '../crypto/presented.ts';
import { bmpString, explicit, implicit, integer, NULL, octetString, OIDS, seq, setOf, utf16be } from './der.ts';
import { type Encrypt, type Encrypted, encryptPbes2, encryptPrivateKey, type PrivateKey } from './keys.ts';

/** `compat` is for Android, iOS before 18, Windows Server 2016 and BouncyCastle, which do not know PBES2. */
export type BundleProfile = 'modern' | 'compat';

/** Certificates are in DER; key stores show the name as the friendly name. */
export interface BundleRequest {
  readonly certificate: Uint8Array;
  readonly privateKey: PrivateKey;
  readonly authority: Uint8Array;
  readonly commonName: string;
  readonly profile: BundleProfile;
  /** Empty, or a password that isBundlePassword accepts. */
  readonly password: string;
}

/** PKCS #12 has no form for U+0000 in a password, nor for half a character. */
export function isBundlePassword(text: string): boolean {
  const length = [...text].length;
  return length >= 1 && length <= MAX_PASSWORD_LENGTH && text.isWellFormed() && !text.includes('\0');
}

export const MAX_PASSWORD_LENGTH = 1024;

/** What the thread is sent. It answers on the port, with the bundle or with the error. */
export type BundleJob = { readonly request: BundleRequest; readonly port: MessagePort };

/** Makes bundles in a thread that starts when it is first needed, until the signal aborts. */
export class BundleThread {
  readonly #signal: AbortSignal;
  #worker: Worker | undefined;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', () => void this.close());
  }

  async make(request: BundleRequest): Promise<Uint8Array> {
    this.#signal.throwIfAborted();
    this.#worker ??= this.#start();
    // Each request has its own port, which closes when the thread ends, and keeps the process alive while it is open.
    const { port1, port2: port } = new MessageChannel();
    this.#worker.postMessage({ request, port } satisfies BundleJob, [port]);
    const answer = await new Promise<unknown>((resolve) => {
      port1.once('message', resolve).once('close', () => {
        resolve(this.#signal.reason ?? new Error('the thread of bundles has ended'));
      });
    });
    if (answer instanceof Uint8Array) return answer;
    throw answer;
  }

  #start(): Worker {
    // The environment holds secrets, which are none of the thread's business.
    const worker = new Worker(new URL('./pkcs12-worker.ts', import.meta.url), { name: 'bundles', env: {} });
    worker.unref();
    const drop = (): void => {
      if (this.#worker === worker) this.#worker = undefined;
    };
    return worker.on('error', drop).on('exit', drop);
  }

  /** Ends the thread, so that bundles that are not done fail. The next request starts a new thread. */
  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }
}

/** An empty password protects nothing at any count, and .NET opens such a bundle up to 600 000 iterations in total. */
const EMPTY_PASSWORD_ITERATIONS = 2048;

/** The most that .NET accepts for one derivation (Pkcs12LoaderLimits.IndividualKdfIterationLimit). */
const PASSWORD_ITERATIONS = 300_000;

/** The hash of the HMAC, which PKCS #12's own key derivation uses too. */
const MACS = {
  modern: { digest: 'sha256', digestOid: OIDS.sha256, macBytes: 32, saltBytes: 16 },
  compat: { digest: 'sha1', digestOid: OIDS.sha1, macBytes: 20, saltBytes: 8 },
} as const;

/** PFX (RFC 7292 section 4) in DER, on this thread: milliseconds with an empty password, seconds with another. */
export async function makeBundle(request: BundleRequest, random: RandomBytes): Promise<Uint8Array> {
  const { profile, password, certificate, privateKey, authority, commonName } = request;
  const iterations = password === '' ? EMPTY_PASSWORD_ITERATIONS : PASSWORD_ITERATIONS;
  const { digest, digestOid, macBytes, saltBytes } = MACS[profile];
  // RFC 7292 appendix B.1: UTF-16 with two zero bytes at the end, so an empty password is these two bytes.
  const kdf = { digest, password: utf16be(`${password}\0`), iterations };
  const encrypt: Encrypt = (plaintext) => (profile === 'modern'
    ? encryptPbes2(plaintext, password, iterations, random)
    : encryptPbe(plaintext, { ...kdf, salt: random(saltBytes) }));
  // The same attributes on the leaf and its key tie the two together; NSS refuses a key without a localKeyID.
  const attributes = setOf(
    attribute(OIDS.friendlyName, bmpString(commonName)),
    attribute(OIDS.localKeyId, octetString(Buffer.from(fingerprintSha1(certificate), 'hex'))),
  );
  const certificates = await encrypt(seq(certBag(certificate, attributes), certBag(authority)));
  const keyBag = seq(OIDS.pkcs8ShroudedKeyBag, explicit(0, await encryptPrivateKey(privateKey, encrypt)), attributes);
  const authenticatedSafe = seq(encryptedDataContent(certificates), dataContent(seq(keyBag)));
  const macKey = { ...kdf, salt: random(saltBytes), id: KDF_IDS.mac, size: macBytes };
  return seq(integer(3), dataContent(authenticatedSafe), macData(authenticatedSafe, macKey, digestOid));
}

/** SafeBag: SEQUENCE { bagId, bagValue [0] EXPLICIT, bagAttributes }; CertBag: { certId, certValue [0] EXPLICIT } */
function certBag(certificate: Uint8Array, ...bagAttributes: readonly Uint8Array[]): Uint8Array {
  const bag = seq(OIDS.x509Certificate, explicit(0, octetString(certificate)));
  return seq(OIDS.certBag, explicit(0, bag), ...bagAttributes);
}

/** PKCS12Attribute ::= SEQUENCE { attrId OBJECT IDENTIFIER, attrValues SET OF ANY } */
function attribute(attrId: Uint8Array, value: Uint8Array): Uint8Array {
  return seq(attrId, setOf(value));
}

/** ContentInfo ::= SEQUENCE { contentType OBJECT IDENTIFIER, content [0] EXPLICIT ANY } (RFC 5652 sections 3 and 4) */
function dataContent(octets: Uint8Array): Uint8Array {
  return seq(OIDS.data, explicit(0, octetString(octets)));
}

/** SEQUENCE { version, { contentType, contentEncryptionAlgorithm, encryptedContent [0] IMPLICIT } } (RFC 5652, 8) */
function encryptedDataContent({ algorithm, ciphertext }: Encrypted): Uint8Array {
  const encryptedContentInfo = seq(OIDS.data, algorithm, implicit(0, octetString(ciphertext)));
  return seq(OIDS.encryptedData, explicit(0, seq(integer(0), encryptedContentInfo)));
}

/** pbeWithSHAAnd3-KeyTripleDES-CBC (RFC 7292 appendix C): old, and widely read. */
async function encryptPbe(plaintext: Uint8Array, kdf: Omit<KdfRequest, 'id' | 'size'>): Promise<Encrypted> {
  const key = pkcs12Kdf({ ...kdf, id: KDF_IDS.key, size: 24 });
  const cipher = createCipheriv('des-ede3-cbc', key, pkcs12Kdf({ ...kdf, id: KDF_IDS.iv, size: 8 }));
  // pkcs-12PbeParams ::= SEQUENCE { salt OCTET STRING, iterations INTEGER }
  const algorithm = seq(OIDS.pbeWithSha1And3Des, seq(octetString(kdf.salt), integer(kdf.iterations)));
  return { algorithm, ciphertext: Buffer.concat([cipher.update(plaintext), cipher.final()]) };
}

/** MacData ::= SEQUENCE { mac DigestInfo, macSalt OCTET STRING, iterations INTEGER DEFAULT 1 } */
function macData(authenticatedSafe: Uint8Array, key: KdfRequest, digestOid: Uint8Array): Uint8Array {
  const mac = createHmac(key.digest, pkcs12Kdf(key)).update(authenticatedSafe).digest();
  return seq(seq(seq(digestOid, NULL), octetString(mac)), octetString(key.salt), integer(key.iterations));
}

// The key derivation of PKCS #12 (RFC 7292 appendix B.2), which node:crypto does not have.

/** Appendix B.3: what the derived bytes are for. */
export const KDF_IDS = { key: 1, iv: 2, mac: 3 } as const;

export interface KdfRequest {
  readonly digest: 'sha1' | 'sha256';
  readonly id: (typeof KDF_IDS)[keyof typeof KDF_IDS];
  /** With its two zero bytes at the end: length 0 would mean no password at all. */
  readonly password: Uint8Array;
  readonly salt: Uint8Array;
  readonly iterations: number;
  /** Bytes to derive. */
  readonly size: number;
}

/** v of appendix B.2: both hashes take input in blocks of 512 bits. */
const BLOCK_BYTES = 64;

/** The derived bytes. The letters are those of appendix B.2; its numbered steps stand in the comments. */
export function pkcs12Kdf({ digest, id, password, salt, iterations, size }: KdfRequest): Uint8Array {
  if (!Number.isInteger(iterations) || iterations < 1) throw new RangeError(`no iteration count: ${iterations}`);
  // Steps 1 to 4.
  const D = new Uint8Array(BLOCK_BYTES).fill(id);
  const I = Buffer.concat([fillBlocks(salt), fillBlocks(password)]);
  const derived: Uint8Array[] = [];
  // Steps 5 and 6: one hash output a turn, until there are enough bytes.
  for (let derivedBytes = 0; derivedBytes < size; ) {
    let A = hash(digest, Buffer.concat([D, I]), 'buffer');
    for (let iteration = 1; iteration < iterations; iteration += 1) A = hash(digest, A, 'buffer');
    derived.push(A);
    derivedBytes += A.length;
    addToBlocks(I, Buffer.alloc(BLOCK_BYTES, A));
  }
  // Steps 7 and 8.
  return Buffer.concat(derived, size);
}

/** Steps 2 and 3: repeats the bytes to fill whole blocks; no bytes stay no bytes. */
function fillBlocks(bytes: Uint8Array): Uint8Array {
  return Buffer.alloc(BLOCK_BYTES * Math.ceil(bytes.length / BLOCK_BYTES), bytes);
}

/** Step 6 C: each block of I, a big-endian number, becomes (block + B + 1) mod 2^512. */
function addToBlocks(I: Uint8Array, B: Uint8Array): void {
  for (let start = 0; start < I.length; start += BLOCK_BYTES) {
    let carry = 1;
    for (let i = BLOCK_BYTES - 1; i >= 0; i -= 1) {
      const sum = I[start + i]! + B[i]! + carry;
      I[start + i] = sum & 0xff;
      carry = sum >> 8;
    }
  }
}
