// Imported before anything of src/: makes PBKDF2 do a tenth of the iterations that it is asked for, in this process and
// not in its threads. For tests that derive such a key only on the way, as each use of the authority's key does:
// 600 000 iterations take 0.13 s of CPU each time. What is stored still names 600 000. Not for tests in which another
// process or program unlocks what this one locked: unit/password, interop/ and unit/crypto-pkcs12 keep the whole count.

import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

const { pbkdf2 } = crypto;
const asked: object[] = [];
const quick: typeof pbkdf2 = (password, salt, iterations, keyBytes, digest, ...rest) => {
  asked.push({ saltBytes: (salt as Uint8Array).length, iterations, keyBytes, digest });
  return pbkdf2(password, salt, Math.ceil(iterations / 10), keyBytes, digest, ...rest);
};
Object.assign(crypto, { pbkdf2: quick });
syncBuiltinESMExports();

/** What derivations were asked for since the last call: all that their time depends on, except the password. */
export function takeDerivations(): readonly object[] {
  return asked.splice(0);
}
