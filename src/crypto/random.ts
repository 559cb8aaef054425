// Randomness as production hands it in: the operating system's, through OpenSSL. Key pairs are
// made elsewhere.

import { randomBytes as nodeRandomBytes } from 'node:crypto';
import type { RandomBytes } from '../core/random.ts';

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
