// Proof-of-work: signed challenge tokens `<nonce>:<expires>:<difficulty>:<signature>` and the check of a solution. The
// store decides which challenges were used, in the transaction that stores what the work was for.

import { hash, timingSafeEqual } from 'node:crypto';
import { type HmacKey, hmacSha256 } from './digest.ts';

/** What a challenge is good for; part of what is signed, so that a paste token does not register and the reverse. */
export type Purpose = 'paste' | 'register';

export interface Challenge {
  /** 32 hex characters. */
  readonly nonce: string;
  /** Unix seconds. */
  readonly expiresAt: number;
  /** Leading zero bits that SHA-256 of `<nonce>:<N>` must have. */
  readonly difficultyBits: number;
}

export const NONCE_BYTES = 16;

/** One text for each challenge: what is signed is rebuilt from the numbers, so a leading zero would pass unnoticed. */
const TOKEN = /^([0-9a-f]{32}):([1-9]\d{0,11}):([1-9]\d{0,2}):([0-9a-f]{64})$/;
const SOLUTION = /^\d{1,20}$/;

export function challengeToken(key: HmacKey | Uint8Array, purpose: Purpose, challenge: Challenge): string {
  return `${signedText(challenge)}:${Buffer.from(signature(key, purpose, challenge)).toString('hex')}`;
}

interface ParsedToken {
  readonly challenge: Challenge;
  /** Still to be checked. */
  readonly signature: Uint8Array;
}

/** Undefined when the token is not of the form. */
export function parseToken(token: string): ParsedToken | undefined {
  const [, nonce, expires, difficulty, signed] = TOKEN.exec(token) ?? [];
  if (nonce === undefined || signed === undefined) return undefined;
  const challenge = { nonce, expiresAt: Number(expires), difficultyBits: Number(difficulty) };
  return { challenge, signature: Buffer.from(signed, 'hex') };
}

/** Whether this service signed the challenge for that purpose; constant time. */
export function isSigned(key: HmacKey | Uint8Array, purpose: Purpose, parsed: ParsedToken): boolean {
  return timingSafeEqual(signature(key, purpose, parsed.challenge), parsed.signature);
}

/** A non-negative decimal integer of at most 20 digits; leading zeros count as written. */
export function isSolutionForm(solution: string): boolean {
  return SOLUTION.test(solution);
}

/** The contract's rule: SHA-256 of the ASCII text `<nonce>:<N>` begins with at least so many zero bits. */
export function isSolved(challenge: Challenge, solution: string): boolean {
  return leadingZeroBits(hash('sha256', `${challenge.nonce}:${solution}`, 'buffer')) >= challenge.difficultyBits;
}

export function leadingZeroBits(digest: Uint8Array): number {
  let bits = 0;
  for (const byte of digest) {
    if (byte !== 0) return bits + Math.clz32(byte) - 24;
    bits += 8;
  }
  return bits;
}

function signedText({ nonce, expiresAt, difficultyBits }: Challenge): string {
  return `${nonce}:${expiresAt}:${difficultyBits}`;
}

function signature(key: HmacKey | Uint8Array, purpose: Purpose, challenge: Challenge): Uint8Array {
  return hmacSha256(key, `${purpose}:${signedText(challenge)}`);
}
