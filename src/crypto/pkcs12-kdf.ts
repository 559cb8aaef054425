// The key derivation of PKCS #12 (RFC 7292 appendix B.2), one hash at a time: milliseconds to seconds of CPU. The
// serving thread asks pkcs12-kdf-thread.ts instead. New formats use PBKDF2; a bundle's MAC is what still needs this.

import { hash } from 'node:crypto';

/** Appendix B.3: what the derived bytes are for. */
export const KDF_IDS = { key: 1, iv: 2, mac: 3 } as const;

export interface KdfRequest {
  readonly digest: 'sha1' | 'sha256';
  readonly id: (typeof KDF_IDS)[keyof typeof KDF_IDS];
  /** As appendix B.1 formats it (pkcs12.ts): two bytes for the empty one, so length 0 is no password at all. */
  readonly password: Uint8Array;
  readonly salt: Uint8Array;
  readonly iterations: number;
  /** Bytes to derive. */
  readonly size: number;
}

/** Derives the bytes of each request, under the same name; off the thread that asks, in production. */
export type DeriveKeys = <Name extends string>(
  requests: Readonly<Record<Name, KdfRequest>>,
) => Promise<Readonly<Record<Name, Uint8Array>>>;

/** v of appendix B.2: both hashes take input in blocks of 512 bits. */
const BLOCK_BYTES = 64;

/** The derived bytes. The letters are those of appendix B.2; its numbered steps stand in the comments. */
export function pkcs12Kdf({ digest, id, password, salt, iterations, size }: KdfRequest): Uint8Array {
  if (!Number.isInteger(iterations) || iterations < 1) throw new RangeError(`no iteration count: ${iterations}`);
  // 1 to 4.
  const D = new Uint8Array(BLOCK_BYTES).fill(id);
  const I = Buffer.concat([fillBlocks(salt), fillBlocks(password)]);
  const derived: Uint8Array[] = [];
  // 5 and 6: one block of hash output a turn, until there are enough.
  for (let derivedBytes = 0; derivedBytes < size; ) {
    let A = hash(digest, Buffer.concat([D, I]), 'buffer');
    for (let iteration = 1; iteration < iterations; iteration += 1) A = hash(digest, A, 'buffer');
    derived.push(A);
    derivedBytes += A.length;
    addToBlocks(I, repeat(A, BLOCK_BYTES));
  }
  // 7 and 8.
  return Uint8Array.from(Buffer.concat(derived, size));
}

/** Steps 2 and 3: repeated up to the next whole block; nothing stays nothing. */
function fillBlocks(bytes: Uint8Array): Uint8Array {
  return repeat(bytes, BLOCK_BYTES * Math.ceil(bytes.length / BLOCK_BYTES));
}

function repeat(bytes: Uint8Array, size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, i) => bytes[i % bytes.length]!);
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
