// SHA-256 (FIPS 180-4), at once, as bytes arrive, and keyed (HMAC, RFC 2104). Not for passwords (password.ts).

import { createHash, createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';
import type { Digest, Digests } from '../core/content.ts';

/** A digest that has taken no bytes yet. `digest()` gives 32 bytes, once; it and `update` throw after that. */
export function createSha256(): Digest {
  const sha256 = createHash('sha256');
  return {
    update: (bytes) => {
      sha256.update(bytes);
    },
    digest: () => sha256.digest(),
  };
}

/** The 32 bytes of the digest; `hash` is quicker than a Hash object where everything is at hand. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return hash('sha256', bytes, 'buffer');
}

/** For whoever learns only later whether everything is at hand. */
export const SHA256: Digests = { whole: sha256, begin: createSha256 };

/** What a key costs to take up is several times the rest of an HMAC: for one that is used again and again. */
export type HmacKey = KeyObject;

export function hmacKey(key: Uint8Array): HmacKey {
  return createSecretKey(key);
}

/** The 32 bytes of HMAC-SHA-256; text is taken as UTF-8. */
export function hmacSha256(key: HmacKey | Uint8Array, message: string | Uint8Array): Uint8Array {
  return createHmac('sha256', key).update(message).digest();
}
