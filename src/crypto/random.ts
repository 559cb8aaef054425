// Randomness as production hands it in: the operating system's, through OpenSSL. Key pairs are
// made elsewhere.

import { randomBytes as nodeRandomBytes } from 'node:crypto';
import type { RandomBytes } from '../core/random.ts';

/** Synchronous: the sizes asked for are tens of bytes, which cost about a microsecond. */
export const randomBytes: RandomBytes = (size) => nodeRandomBytes(size);
