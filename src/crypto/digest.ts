// SHA-256 (FIPS 180-4), at once and as bytes arrive. Not for passwords (password.ts) and not keyed.

import { createHash, hash } from 'node:crypto';
import type { Digest } from '../core/content.ts';

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
