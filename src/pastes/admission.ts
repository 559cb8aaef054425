// Who may do how much: proof-of-work, the rates of a client address, and the sizes and times that each tier may ask
// for. Says nothing about content, which is intake.ts.

import type { Config } from '../config/settings.ts';
import { type Caller, clientKey, hasTrustedLimits } from '../core/callers.ts';
import type { Count, WorkOutcome } from '../core/events.ts';
import { type RateStanding, Refusal, type RefusalName } from '../core/refusals.ts';
import { type Clock, HOUR_SECONDS, type RandomBytes, unixSeconds } from '../core/time.ts';
import { type HmacKey, hmacKey } from '../crypto/digest.ts';
import {
  type Challenge, challengeToken, isSigned, isSolutionForm, isSolved, NONCE_BYTES, parseToken, type Purpose,
} from '../crypto/proof-of-work.ts';
import type { Antiflood } from '../limits/antiflood.ts';
import { SlidingWindow } from '../limits/sliding-window.ts';
import type { Store } from '../store/open.ts';
import type { SpendingRefusal, SpentChallenge } from '../store/store.ts';

export interface IssuedChallenge extends Challenge {
  readonly token: string;
}

/** What a request shows for its work, as sent. */
export interface Work {
  readonly token: string | undefined;
  readonly solution: string | undefined;
}

/**
 * How long after its expiry a challenge can still be spent, since an upload may have begun before. With the defaults,
 * 50 MiB at the slowest rate that is allowed take 53 minutes.
 */
export const SPENDABLE_SECONDS = HOUR_SECONDS;

/** Where to get a new challenge. */
const CHALLENGE_PATHS: Readonly<Record<Purpose, string>> = { paste: '/challenge', register: '/register/challenge' };

interface ChallengeParts {
  readonly config: Config;
  readonly antiflood: Antiflood;
  readonly store: Pick<Store, 'challenges'>;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly count: Count;
}

/**
 * Proof-of-work for callers. The store decides whether a challenge was used before, in the transaction that stores what
 * it pays for; asking here only spares the work of a replay. (The decisions, "Proof-of-work and anti-flood".)
 */
export class Challenges {
  readonly #parts: ChallengeParts;
  #key: HmacKey;

  /** @param parts `key` signs and checks tokens, and is the same from one start to the next. */
  constructor(parts: ChallengeParts & { readonly key: Uint8Array }) {
    this.#parts = parts;
    this.#key = hmacKey(parts.key);
  }

  /** Tokens that the key before has signed are refused from now on, and their holders ask for new ones. */
  replaceKey(key: Uint8Array): void {
    this.#key = hmacKey(key);
  }

  /** What is asked for a paste in quiet times. */
  get pasteBaseBits(): number {
    return this.#parts.config.powDifficultyBits;
  }

  /** What a new challenge asks for; 0 when no work is asked for. */
  difficultyBits(purpose: Purpose): number {
    const { config, antiflood, clock } = this.#parts;
    return purpose === 'paste' ? antiflood.difficultyBits(clock.monotonicMs()) : config.registerPowDifficultyBits;
  }

  /** A new challenge; null when no work is asked for. */
  issue(purpose: Purpose): IssuedChallenge | null {
    const { config, clock, random } = this.#parts;
    const difficultyBits = this.difficultyBits(purpose);
    if (difficultyBits === 0) return null;
    const nonce = Buffer.from(random(NONCE_BYTES)).toString('hex');
    const challenge = { nonce, expiresAt: unixSeconds(clock) + config.powTtlSeconds, difficultyBits };
    return { ...challenge, token: challengeToken(this.#key, purpose, challenge) };
  }

  /**
   * Refuses work that does not hold; null when none is asked for. In the decided order: form, signature and purpose,
   * expiry, solution, not used before.
   */
  async require(purpose: Purpose, { token, solution }: Work): Promise<SpentChallenge | null> {
    const { store, clock, count } = this.#parts;
    if (this.difficultyBits(purpose) === 0) return null;
    if (token === undefined || solution === undefined) throw this.#refusal('powRequired', purpose);
    const parsed = parseToken(token);
    if (parsed === undefined) throw this.#refusal('powMalformedToken', purpose);
    const { challenge } = parsed;
    if (!isSigned(this.#key, purpose, parsed)) throw this.#refusal('powBadSignature', purpose);
    if (challenge.expiresAt <= unixSeconds(clock)) throw this.#refusal('powExpired', purpose);
    if (!isSolutionForm(solution)) throw this.#refusal('powMalformedSolution', purpose);
    if (!isSolved(challenge, solution)) throw this.#refusal('powInsufficient', purpose);
    if (await store.challenges.isSpent(challenge.nonce)) throw this.#refusal('powAlreadyUsed', purpose);
    count('proofOfWork', 'accepted');
    const { nonce, expiresAt } = challenge;
    return { nonce, expiresAt, spendableUntil: expiresAt + SPENDABLE_SECONDS };
  }

  /** When the store would not spend it: another request was quicker, or this one took too long. */
  notSpent(reason: SpendingRefusal, purpose: Purpose): Refusal {
    return this.#refusal(reason, purpose);
  }

  #refusal(name: WorkOutcome & RefusalName, purpose: Purpose): Refusal {
    this.#parts.count('proofOfWork', name);
    return new Refusal(name, { hint: `request a new challenge: GET ${CHALLENGE_PATHS[purpose]}` });
  }
}

interface RateParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly count: Count;
}

/** How often one client address may create and look up. */
export class Rates {
  readonly #parts: RateParts;
  readonly #creations: SlidingWindow;
  readonly #lookups: SlidingWindow;

  constructor(parts: RateParts) {
    const { config } = parts;
    const cleanupThreshold = config.rateCleanupThreshold;
    this.#parts = parts;
    this.#creations = new SlidingWindow({
      windowMs: config.rateWindowSeconds * 1000, maxKeys: config.rateMaxEntries, cleanupThreshold,
    });
    this.#lookups = new SlidingWindow({
      windowMs: config.lookupRateWindowSeconds * 1000, maxKeys: config.lookupRateMaxEntries, cleanupThreshold,
    });
  }

  /**
   * Counts a creation, or an update that carries content or sets a password. Gives where the caller stands then, null
   * when there is no limit.
   */
  countCreation(clientAddress: string, caller: Caller): RateStanding | null {
    const { config, clock, count } = this.#parts;
    if (config.rateMax === 0) return null;
    const limit = rateMaxFor(config, caller, config.rateMax);
    const allowance = this.#creations.take(clientKey(clientAddress), limit, clock.monotonicMs());
    const resetAtSeconds = Math.ceil((clock.unixMs() + allowance.resetMs) / 1000);
    const rate = { limit, remaining: allowance.remaining, resetAtSeconds };
    if (allowance.allowed) return rate;
    count('rateLimitHits', 'creation');
    throw new Refusal('rateLimited', {}, { retryAfterSeconds: allowance.retryAfterMs / 1000, rate });
  }

  /** Counts a GET or HEAD of a paste, a list of pastes, and a PUT or DELETE of what is not the caller's. */
  countLookup(clientAddress: string, caller: Caller): void {
    const { config, clock, count } = this.#parts;
    if (config.lookupRateMax === 0) return;
    const limit = rateMaxFor(config, caller, config.lookupRateMax);
    const allowance = this.#lookups.take(clientKey(clientAddress), limit, clock.monotonicMs());
    if (allowance.allowed) return;
    count('rateLimitHits', 'lookup');
    throw new Refusal('lookupRateLimited', {}, { retryAfterSeconds: allowance.retryAfterMs / 1000 });
  }

  /** Forgets addresses that nothing is counted for any more. */
  sweep(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    this.#creations.sweep(nowMs);
    this.#lookups.sweep(nowMs);
  }
}

/** What a rate of strangers, creations or lookups in a window, is for the caller; 0 stays no limit. */
export function rateMaxFor(config: Config, caller: Caller, max: number): number {
  return hasTrustedLimits(caller) ? max * config.rateTrustedFactor : max;
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
