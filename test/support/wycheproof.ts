// The vectors of Project Wycheproof (test/vectors/wycheproof, each file with its origin and licence) through our own
// wrappers. Stored passwords and tokens fix their own iterations, salts and messages, so the vectors try the functions
// under them: pbkdf2Sha256 under verifyPassword and encryptPbes2, hmacSha256 under tokens and secretMatcher, and
// isEcdsaSignature under certification requests.

import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isEcdsaSignature } from '../../src/authority/keys.ts';
import { hmacSha256 } from '../../src/crypto/digest.ts';
import { pbkdf2Sha256 } from '../../src/crypto/passwords.ts';

export interface WycheproofResult {
  /** How many vectors the file says it has. */
  readonly promised: number;
  readonly tried: number;
  /** Ids of the vectors whose result was wrong. */
  readonly failed: readonly number[];
}

interface Vectors<Group> {
  readonly count: number;
  readonly groups: readonly Group[];
}

type Vector<Fields extends readonly unknown[]> = readonly [id: number, ...Fields];

const bytes = (base64: string): Buffer => Buffer.from(base64, 'base64');

async function tryVectors<Group extends { readonly tests: readonly Vector<readonly unknown[]>[] }>(
  name: string,
  holds: (vector: Group['tests'][number], group: Group) => boolean | Promise<boolean>,
): Promise<WycheproofResult> {
  const file = new URL(`../vectors/wycheproof/${name}.json`, import.meta.url);
  const { count, groups } = JSON.parse(readFileSync(file, 'utf8')) as Vectors<Group>;
  const failed: number[] = [];
  let tried = 0;
  for (const group of groups) {
    for (const vector of group.tests) {
      tried += 1;
      if (!(await holds(vector, group))) failed.push(vector[0]);
    }
  }
  return { promised: count, tried, failed };
}

function tryPbkdf2(): Promise<WycheproofResult> {
  type Fields = [password: string, salt: string, iterations: number, key: string];
  return tryVectors<{ tests: readonly Vector<Fields>[] }>('pbkdf2_hmacsha256', async (vector) => {
    const [, password, salt, iterations, key] = vector;
    const derived = await pbkdf2Sha256(bytes(password), bytes(salt), iterations, bytes(key).length);
    return bytes(key).equals(derived);
  });
}

function tryHmac(): Promise<WycheproofResult> {
  type Fields = [key: string, message: string, tag: string, isValid: boolean];
  return tryVectors<{ tagBits: number; tests: readonly Vector<Fields>[] }>('hmac_sha256', (vector, { tagBits }) => {
    const [, key, message, tag, isValid] = vector;
    return bytes(tag).equals(hmacSha256(bytes(key), bytes(message)).subarray(0, tagBits / 8)) === isValid;
  });
}

function tryEcdsa(digest: string): Promise<WycheproofResult> {
  type Fields = [message: string, signature: string, isValid: boolean];
  type Group = { spki: string; tests: readonly Vector<Fields>[] };
  return tryVectors<Group>(`ecdsa_secp384r1_${digest}`, ([, message, signature, isValid], { spki }) => {
    const publicKey = createPublicKey({ key: bytes(spki), format: 'der', type: 'spki' });
    return isEcdsaSignature(digest, publicKey, bytes(message), bytes(signature)) === isValid;
  });
}

/** By the name of what is tried. */
export const WYCHEPROOF: Readonly<Record<string, () => Promise<WycheproofResult>>> = {
  'PBKDF2-HMAC-SHA256': tryPbkdf2,
  'HMAC-SHA256': tryHmac,
  'ECDSA P-384 SHA-256': () => tryEcdsa('sha256'),
  'ECDSA P-384 SHA-384': () => tryEcdsa('sha384'),
  'ECDSA P-384 SHA-512': () => tryEcdsa('sha512'),
};
