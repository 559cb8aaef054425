// Tokens for tests of anti-flood: it looks at nothing but which is which and when each expires.

import type { ShownToken } from '../../src/limits/windows.ts';

let made = 0;

/** Another one each time, issued later than all before. */
export function freshToken(): ShownToken {
  made += 1;
  return { nonce: String(made), expiresAt: made };
}
