// Anti-flood for tests: its settings under short names, and tokens. Of a token it looks only at the nonce and at when
// it expires.

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

/** A new token each time, issued later than all before it. */
export function freshToken(): ShownToken {
  made += 1;
  return { nonce: String(made), expiresAt: made };
}
