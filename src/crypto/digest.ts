// What a small request needs: SHA-256 (FIPS 180-4), HMAC (RFC 2104), randomness, proof-of-work. Not passwords.

import {
  createHash, createHmac, createSecretKey, hash, type KeyObject, randomBytes as nodeRandomBytes, timingSafeEqual,
} from 'node:crypto';
import type { RandomBytes } from '../core/time.ts';

/** `hash` is quicker than a Hash object where all bytes are at hand. */
export function sha256(bytes: string | Uint8Array): Uint8Array {
  return hash('sha256', bytes, 'buffer');
}

/** For bytes that come in pieces: call `update` with each, and `digest` once. */
export const beginSha256 = () => createHash('sha256');

/** Importing a key costs several times the rest of an HMAC, so a key that is used again is imported once. */
export type HmacKey = KeyObject;

export const hmacKey: (key: Uint8Array) => HmacKey = createSecretKey;

/** 32 bytes; text is taken as UTF-8. */
export function hmacSha256(key: HmacKey | Uint8Array, message: string | Uint8Array): Uint8Array {
  return createHmac('sha256', key).update(message).digest();
}

// Randomness as production hands it in: the operating system's, through OpenSSL.

/** Bytes that one call fetches: it costs a microsecond or two, whether it is for 16 bytes or for 2048. */
const POOL_BYTES = 2048;

/** Ids and nonces come from the pool. Keys and salts are larger, and are not kept ready in memory. */
const MOST_POOLED_BYTES = 16;

/** What was fetched and not handed out yet. */
let pool = new Uint8Array();

/** Synchronous. No byte is handed out twice, and no copy of a byte that was handed out stays in the pool. */
export const randomBytes: RandomBytes = (size) => {
  if (size > MOST_POOLED_BYTES) return nodeRandomBytes(size);
  if (size > pool.length) pool = new Uint8Array(nodeRandomBytes(POOL_BYTES));
  const bytes = pool.slice(0, size);
  pool.fill(0, 0, size);
  pool = pool.subarray(size);
  return bytes;
};

export { randomUUID as newUuid } from 'node:crypto';

// Proof-of-work: signed challenge tokens `<nonce>:<expires>:<difficulty>:<signature>` and the check of a solution. The
// store decides which challenges were used, in the transaction that stores what the work was for.

/** Signed with the rest, so that work for a paste can't buy a registration. `trusted` is pastes of trusted callers. */
export type Purpose = 'paste' | 'trusted' | 'register';

/** The nonce as 32 hex characters, the expiry in Unix seconds. */
export interface Challenge {
  readonly nonce: string;
  readonly expiresAt: number;
  /** Leading zero bits that SHA-256 of `<nonce>:<N>` must have. */
  readonly difficultyBits: number;
}

export const NONCE_BYTES = 16;

/** Admits one text for each challenge, since isSigned makes the text again from the numbers to compare it. */
const TOKEN = /^([0-9a-f]{32}):(0|[1-9]\d{0,11}):(0|[1-9]\d{0,2}):[0-9a-f]{64}$/;

export function challengeToken(key: HmacKey | Uint8Array, purpose: Purpose, challenge: Challenge): string {
  const signed = `${challenge.nonce}:${challenge.expiresAt}:${challenge.difficultyBits}`;
  return `${signed}:${createHmac('sha256', key).update(`${purpose}:${signed}`).digest('hex')}`;
}

/** Undefined when the token is not of the form. The signature is still to be checked. */
export function parseToken(token: string): Challenge | undefined {
  const [, nonce, expires, difficulty] = TOKEN.exec(token) ?? [];
  return nonce === undefined ? undefined : { nonce, expiresAt: Number(expires), difficultyBits: Number(difficulty) };
}

/** Whether the token from which parseToken read the challenge was signed here for that purpose; in constant time. */
export function isSigned(key: HmacKey | Uint8Array, purpose: Purpose, challenge: Challenge, token: string): boolean {
  return timingSafeEqual(Buffer.from(challengeToken(key, purpose, challenge)), Buffer.from(token));
}

/** A non-negative decimal integer of at most 20 digits; leading zeros count as written. */
export function isSolutionForm(solution: string): boolean {
  return /^\d{1,20}$/.test(solution);
}

/** The contract's rule: SHA-256 of the ASCII text `<nonce>:<N>` begins with at least `difficultyBits` zero bits. */
export function isSolved({ nonce, difficultyBits }: Challenge, solution: string): boolean {
  return BigInt(`0x${hash('sha256', `${nonce}:${solution}`, 'hex')}`) >> BigInt(256 - difficultyBits) === 0n;
}
