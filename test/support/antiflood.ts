// Anti-flood for tests: its settings under short names, and tokens, of which it looks at nothing but which is which and
// when each expires.

import { Antiflood, type ShownToken } from '../../src/limits/windows.ts';
import { testConfig } from './test-config.ts';

export interface AntifloodOptions {
  readonly baseBits: number;
  readonly thresholdCount: number;
  readonly windowMs: number;
  readonly stepBits: number;
  readonly maxBits: number;
  readonly decayMs: number;
  readonly maxEntries: number;
}

export function antifloodOf(options: AntifloodOptions): Antiflood {
  return new Antiflood(testConfig({
    powDifficultyBits: options.baseBits,
    antifloodThreshold: options.thresholdCount,
    antifloodWindowSeconds: options.windowMs / 1000,
    antifloodStepBits: options.stepBits,
    antifloodMaxBits: options.maxBits,
    antifloodDecaySeconds: options.decayMs / 1000,
    antifloodMaxEntries: options.maxEntries,
    powTtlSeconds: 300,
  }));
}

let made = 0;

/** Another one each time, issued later than all before. */
export function freshToken(): ShownToken {
  made += 1;
  return { nonce: String(made), expiresAt: made };
}
