// Imported before anything of src/: PBKDF2 does a tenth of the iterations that it is asked for, in this process and not in
// its threads. For tests in which such a key is only on the way, as each use of the authority's key is: 600 000 iterations
// are 0.13 s of CPU each time. What is stored names 600 000 as ever. Not for tests in which another process or program
// unlocks what this one locked: unit/password, interop/ and unit/crypto-pkcs12 hold the count.

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

/** What the derivations since the last call were asked for: all that their time depends on but for the password. */
export function takeDerivations(): readonly object[] {
  return asked.splice(0);
}
