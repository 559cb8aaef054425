// Passwords of pastes: PBKDF2-HMAC-SHA256 (RFC 8018 section 5.2), as the contract says. A check costs about 0.1 s of
// CPU: limits/work-queue.ts bounds how many run at once. Below, the other secrets that requests present.

import { pbkdf2, timingSafeEqual } from 'node:crypto';
import type { RandomBytes } from '../core/time.ts';
import { hmacKey, hmacSha256 } from './digest.ts';

const ITERATIONS = 600_000;
const SALT_BYTES = 32;
const KEY_BYTES = 32;

/** More than was ever written. Without a limit, a damaged count could keep a thread busy for hours. */
export const MAX_ITERATIONS = 10_000_000;

/** 43 characters of base64url are 32 bytes and no padding. */
const STORED = /^pbkdf2-sha256\$([1-9][0-9]{0,8})\$([A-Za-z0-9_-]{43})\$([A-Za-z0-9_-]{43})$/;

/** PBKDF2 with HMAC-SHA256 on the thread pool; text is taken as UTF-8, not normalised. */
export function pbkdf2Sha256(
  password: string | Uint8Array, salt: Uint8Array, iterations: number, keyBytes: number,
): Promise<Uint8Array> {
  // Not by promisify: an import of node:util reads all of its exports, which is a twentieth of a start's CPU.
  return new Promise((resolve, reject) => {
    pbkdf2(password, salt, iterations, keyBytes, 'sha256', (error, key) => (error ? reject(error) : resolve(key)));
  });
}

/** The text to store for a password: `pbkdf2-sha256$600000$<salt>$<key>` in base64url, under a salt of its own. */
export async function hashPassword(password: string, random: RandomBytes): Promise<string> {
  const salt = random(SALT_BYTES);
  return storedText(salt, await pbkdf2Sha256(password, salt, ITERATIONS, KEY_BYTES));
}

/** In constant time. Rejects if `stored` is malformed: it is our own data, so that means damage, no wrong password. */
export async function verifyPassword(password: string, stored: string): Promise<boolean> {
  const [, iterations, salt = '', key = ''] = STORED.exec(stored) ?? [];
  const count = Number(iterations);
  // No smaller count was ever written. The message leaves out the text, on which guesses could be tried.
  if (!(count >= ITERATIONS && count <= MAX_ITERATIONS)) throw new Error('stored password hash is malformed');
  const derived = await pbkdf2Sha256(password, Buffer.from(salt, 'base64url'), count, KEY_BYTES);
  return timingSafeEqual(derived, Buffer.from(key, 'base64url'));
}

/** A stored text without a password: lookups of unknown ids verify against it, and so take as long as others. */
export function decoyHash(random: RandomBytes): string {
  return storedText(random(SALT_BYTES), random(KEY_BYTES));
}

function storedText(salt: Uint8Array, key: Uint8Array): string {
  const [saltText, keyText] = [salt, key].map((bytes) => Buffer.from(bytes).toString('base64url'));
  return `pbkdf2-sha256$${ITERATIONS}$${saltText}$${keyText}`;
}

// Secrets that are presented again and again, compared in constant time.

/** Compares HMACs under a new key: `timingSafeEqual` throws if lengths differ, which would tell the secret's length. */
export function secretMatcher(secret: Uint8Array, random: RandomBytes): (presented: Uint8Array) => boolean {
  const key = hmacKey(random(KEY_BYTES));
  const expected = hmacSha256(key, secret);
  return (presented) => timingSafeEqual(hmacSha256(key, presented), expected);
}

// Delete tokens: whoever stored a paste without an identity can show that it was them. Nothing is kept but the key.

/** A token is HMAC-SHA-256 of a purpose word and the id, in base64url. */
export function createDeleteTokens(key: Uint8Array) {
  const imported = hmacKey(key);
  const tokenOf = (id: string): string => Buffer.from(hmacSha256(imported, `delete:${id}`)).toString('base64url');
  return {
    tokenOf,
    /** In constant time. All tokens have the same length, so refusing another length at once tells nothing. */
    isTokenOf: (id: string, presented: string): boolean => {
      const [expected, given] = [Buffer.from(tokenOf(id)), Buffer.from(presented)];
      return given.length === expected.length && timingSafeEqual(given, expected);
    },
  };
}
