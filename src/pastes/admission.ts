// Proof-of-work for callers: new challenges at the difficulty of the moment, and the check of one that was solved.
// Whether a challenge was used before is decided by the store, in the transaction of what it buys; asking here only
// spares the work of a replay. The decisions' "Proof-of-work and anti-flood" is the source.

import type { Config } from '../config/settings.ts';
import { type Caller, clientKey, hasTrustedLimits } from '../core/callers.ts';
import type { Count, WorkOutcome } from '../core/events.ts';
import { type RateStanding, Refusal, type RefusalName } from '../core/refusals.ts';
import { type Clock, HOUR_SECONDS, type RandomBytes, unixSeconds } from '../core/time.ts';
import { hmacKey } from '../crypto/digest.ts';
import {
  type Challenge, challengeToken, isSigned, isSolutionForm, isSolved, NONCE_BYTES, parseToken, type Purpose,
} from '../crypto/proof-of-work.ts';
import type { Antiflood } from '../limits/antiflood.ts';
import { type Allowance, createSlidingWindow } from '../limits/sliding-window.ts';
import type { ChallengeStore, SpendingRefusal, SpentChallenge } from '../store/store.ts';

export interface IssuedChallenge extends Challenge {
  readonly token: string;
}

/** What a request shows for its work, as sent. */
export interface Work {
  readonly token: string | undefined;
  readonly solution: string | undefined;
}

export interface Challenges {
  /** A new challenge; null when none is asked for. */
  issue(purpose: Purpose): IssuedChallenge | null;
  /** What a challenge of this moment asks for; 0 when none is asked for. */
  difficultyBits(purpose: Purpose): number;
  /** What is asked for a paste in quiet times. */
  readonly pasteBaseBits: number;
  /** Refuses work that does not hold, by its reason; null when none is asked for. */
  require(purpose: Purpose, work: Work): Promise<SpentChallenge | null>;
  /** For whoever finds out when spending it: another request was quicker, or its own has taken too long. */
  notSpent(reason: SpendingRefusal, purpose: Purpose): Refusal;
  /** Signs and checks with this key from now on. What the one before has signed is refused: its holder asks again. */
  replaceKey(key: Uint8Array): void;
}

/**
 * How long after its expiry a challenge can be spent: an upload that began before may take so long. With the settings'
 * defaults, 50 MiB at the slowest rate that is allowed take 53 minutes.
 */
export const SPENDABLE_SECONDS = HOUR_SECONDS;

/** Where a new challenge is had, by purpose. */
const CHALLENGE_PATHS: Readonly<Record<Purpose, string>> = { paste: '/challenge', register: '/register/challenge' };

export function createChallenges(parts: {
  config: Config;
  /** Signs and checks tokens; kept from one start to the next. */
  key: Uint8Array;
  antiflood: Antiflood;
  spent: ChallengeStore;
  clock: Clock;
  random: RandomBytes;
  count: Count;
}): Challenges {
  const { config, antiflood, spent, clock, random, count } = parts;
  let key = hmacKey(parts.key);

  function difficultyBits(purpose: Purpose): number {
    return purpose === 'paste' ? antiflood.difficultyBits(clock.monotonicMs()) : config.registerPowDifficultyBits;
  }

  function issue(purpose: Purpose): IssuedChallenge | null {
    const bits = difficultyBits(purpose);
    if (bits === 0) return null;
    const challenge = {
      nonce: Buffer.from(random(NONCE_BYTES)).toString('hex'),
      expiresAt: unixSeconds(clock) + config.powTtlSeconds,
      difficultyBits: bits,
    };
    return { ...challenge, token: challengeToken(key, purpose, challenge) };
  }

  function refused(name: WorkOutcome & RefusalName, purpose: Purpose): Refusal {
    count('proofOfWork', name);
    return new Refusal(name, { hint: `request a new challenge: GET ${CHALLENGE_PATHS[purpose]}` });
  }

  /** In the decided order: form, signature and purpose, expiry, solution, not used before. */
  async function requireWork(purpose: Purpose, { token, solution }: Work): Promise<SpentChallenge | null> {
    if (difficultyBits(purpose) === 0) return null;
    if (token === undefined || solution === undefined) throw refused('powRequired', purpose);
    const parsed = parseToken(token);
    if (parsed === undefined) throw refused('powMalformedToken', purpose);
    const { challenge } = parsed;
    if (!isSigned(key, purpose, parsed)) throw refused('powBadSignature', purpose);
    if (challenge.expiresAt <= unixSeconds(clock)) throw refused('powExpired', purpose);
    if (!isSolutionForm(solution)) throw refused('powMalformedSolution', purpose);
    if (!isSolved(challenge, solution)) throw refused('powInsufficient', purpose);
    if (await spent.isSpent(challenge.nonce)) throw refused('powAlreadyUsed', purpose);
    count('proofOfWork', 'accepted');
    const { nonce, expiresAt } = challenge;
    return { nonce, expiresAt, spendableUntil: expiresAt + SPENDABLE_SECONDS };
  }

  return {
    issue,
    difficultyBits,
    pasteBaseBits: config.powDifficultyBits,
    require: requireWork,
    notSpent: ({ kind }, purpose) => refused(kind === 'challengeUsed' ? 'powAlreadyUsed' : 'powExpired', purpose),
    replaceKey: (replacement) => {
      key = hmacKey(replacement);
    },
  };
}

// How often one client address may create and look up. Counting is limits/sliding-window.ts; here is who is counted as
// whom, and what a caller is told.

export interface Rates {
  /**
   * Counts a creation, or an update that carries content or sets a password; where the caller stands then, null when
   * there is no limit.
   */
  countCreation(clientAddress: string, caller: Caller): RateStanding | null;
  /** Counts a GET or HEAD of a paste, a list of pastes, and a PUT or DELETE of what is not the caller's. */
  countLookup(clientAddress: string, caller: Caller): void;
  /** Forgets addresses that nothing is counted for any more. */
  sweep(): void;
}

export function createRates({ config, clock, count }: { config: Config; clock: Clock; count: Count }): Rates {
  const creations = createSlidingWindow({
    windowMs: config.rateWindowSeconds * 1000,
    maxKeys: config.rateMaxEntries,
    cleanupThreshold: config.rateCleanupThreshold,
  });
  const lookups = createSlidingWindow({
    windowMs: config.lookupRateWindowSeconds * 1000,
    maxKeys: config.lookupRateMaxEntries,
    cleanupThreshold: config.rateCleanupThreshold,
  });

  function standing(limit: number, allowance: Allowance): RateStanding {
    const resetAtSeconds = Math.ceil((clock.unixMs() + allowance.resetMs) / 1000);
    return { limit, remaining: allowance.remaining, resetAtSeconds };
  }

  return {
    countCreation: (clientAddress, caller) => {
      if (config.rateMax === 0) return null;
      const limit = rateMaxFor(config, caller, config.rateMax);
      const allowance = creations.take(clientKey(clientAddress), limit, clock.monotonicMs());
      const rate = standing(limit, allowance);
      if (allowance.allowed) return rate;
      count('rateLimitHits', 'creation');
      throw new Refusal('rateLimited', {}, { retryAfterSeconds: allowance.retryAfterMs / 1000, rate });
    },
    countLookup: (clientAddress, caller) => {
      if (config.lookupRateMax === 0) return;
      const limit = rateMaxFor(config, caller, config.lookupRateMax);
      const allowance = lookups.take(clientKey(clientAddress), limit, clock.monotonicMs());
      if (allowance.allowed) return;
      count('rateLimitHits', 'lookup');
      throw new Refusal('lookupRateLimited', {}, { retryAfterSeconds: allowance.retryAfterMs / 1000 });
    },
    sweep: () => {
      creations.sweep(clock.monotonicMs());
      lookups.sweep(clock.monotonicMs());
    },
  };
}

/** The largest paste, in bytes, that the caller may store. */
export function maxPasteBytes(config: Config, caller: Caller): number {
  return hasTrustedLimits(caller) ? config.maxAuthBytes : config.maxAnonBytes;
}

/**
 * Seconds until a new paste expires: what was asked for, up to SERVICE_MAX_EXPIRY, or the tier's default. The cap is
 * for requests only: an operator may set a default above it.
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
