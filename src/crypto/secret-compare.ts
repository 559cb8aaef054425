// Whether a presented secret is the expected one, in a time that says nothing about either. Does not hash for storage.

import { timingSafeEqual } from 'node:crypto';
import type { RandomBytes } from '../core/random.ts';
import { hmacKey, hmacSha256 } from './digest.ts';

const KEY_BYTES = 32;

/** Whether the presented bytes are the secret. */
export type SecretMatcher = (presented: Uint8Array) => boolean;

/**
 * Compares HMAC-SHA-256 values under a key that lives as long as the matcher: `timingSafeEqual` alone throws for
 * another length, and so would say how long the secret is.
 */
export function secretMatcher(secret: Uint8Array, random: RandomBytes): SecretMatcher {
  const key = hmacKey(random(KEY_BYTES));
  const expected = hmacSha256(key, secret);
  return (presented) => timingSafeEqual(hmacSha256(key, presented), expected);
}
