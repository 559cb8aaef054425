// SHA-256 (FIPS 180-4), at once, as bytes arrive, and keyed (HMAC, RFC 2104). Not for passwords (passwords.ts).

import {
  createHash, createHmac, createSecretKey, hash, type KeyObject, randomBytes as nodeRandomBytes,
} from 'node:crypto';
import type { Digest, Digests } from '../core/content.ts';
import type { RandomBytes } from '../core/time.ts';

/** A digest that has taken no bytes yet. `digest()` gives 32 bytes, once; it and `update` throw after that. */
export function createSha256(): Digest {
  return createHash('sha256');
}

/** The 32 bytes of the digest; `hash` is quicker than a Hash object where everything is at hand. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return hash('sha256', bytes, 'buffer');
}

/** For callers that learn only later whether all bytes are at hand. */
export const SHA256: Digests = { whole: sha256, begin: createSha256 };

/** Importing a key costs several times the rest of an HMAC, so a key that is used again is imported once. */
export type HmacKey = KeyObject;

export function hmacKey(key: Uint8Array): HmacKey {
  return createSecretKey(key);
}

/** The 32 bytes of HMAC-SHA-256; text is taken as UTF-8. */
export function hmacSha256(key: HmacKey | Uint8Array, message: string | Uint8Array): Uint8Array {
  return createHmac('sha256', key).update(message).digest();
}

// Randomness as production hands it in: the operating system's, through OpenSSL.

/** Fetched at a time: a call costs a microsecond or two, whether it is for 16 bytes or for these. */
const POOL_BYTES = 2048;

/** Ids and nonces. Keys and salts are larger, and are not kept ready in memory. */
const MOST_POOLED_BYTES = 16;

let pool = new Uint8Array();
let handedOut = 0;

/** Synchronous. No byte is handed out twice, and none of what was handed out stays here. */
export const randomBytes: RandomBytes = (size) => {
  if (size > MOST_POOLED_BYTES) return nodeRandomBytes(size);
  if (handedOut + size > pool.length) {
    pool = new Uint8Array(nodeRandomBytes(POOL_BYTES));
    handedOut = 0;
  }
  const start = handedOut;
  handedOut += size;
  const bytes = pool.slice(start, handedOut);
  pool.fill(0, start, handedOut);
  return bytes;
};
