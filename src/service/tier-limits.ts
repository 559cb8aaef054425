// What each tier may do, in numbers from the settings: sizes, times to live, rates. Rates are applied in rates.ts.

import type { Config } from '../config/settings.ts';
import { hasTrustedLimits, type Caller } from '../core/tiers.ts';

/** The largest paste, in bytes, that the caller may store. */
export function maxPasteBytes(config: Config, caller: Caller): number {
  return hasTrustedLimits(caller) ? config.maxAuthBytes : config.maxAnonBytes;
}

/**
 * Seconds until a new paste expires: what was asked for, up to SERVICE_MAX_EXPIRY, or the tier's default. The cap is for requests
 * only: an operator may set a default above it.
 */
export function ttlSeconds(config: Config, caller: Caller, requestedSeconds: number | undefined): number {
  if (requestedSeconds !== undefined) return cappedTtlSeconds(config, requestedSeconds);
  if (hasTrustedLimits(caller)) return config.expiryTrustedSeconds;
  return caller.tier === 'untrusted' ? config.expiryUntrustedSeconds : config.expiryAnonSeconds;
}

export function cappedTtlSeconds(config: Config, requestedSeconds: number): number {
  return Math.min(requestedSeconds, config.maxExpirySeconds);
}

/** What a rate of strangers, creations or lookups in a window, is for the caller; 0 stays no limit. */
export function rateMaxFor(config: Config, caller: Caller, max: number): number {
  return hasTrustedLimits(caller) ? max * config.rateTrustedFactor : max;
}
