// What a request has to show before it is served: proof-of-work, room in the rate of its address, a password; and what
// each tier may ask for. The decisions' "Proof-of-work and anti-flood" and "Limits" are the source.

import type { Config } from '../config/settings.ts';
import { type Caller, clientKey, hasTrustedLimits } from '../core/callers.ts';
import { type Count, expected } from '../core/events.ts';
import { type RateStanding, Refusal, type WorkRefusal } from '../core/refusals.ts';
import { andThen, type Awaitable, type Clock, HOUR_SECONDS, type RandomBytes, unixSeconds } from '../core/time.ts';
import {
  type Challenge, challengeToken, hmacKey, type HmacKey, isSigned, isSolutionForm, isSolved, NONCE_BYTES, parseToken,
  type Purpose,
} from '../crypto/digest.ts';
import { decoyHash, hashPassword, verifyPassword } from '../crypto/passwords.ts';
import { type Antiflood, SlidingWindow } from '../limits/windows.ts';
import { type WorkQueue, WorkQueueFull } from '../limits/work-queue.ts';
import type { Store } from '../store/open.ts';
import type { Paste, SpentChallenge } from '../store/store.ts';

export type PastePurpose = Exclude<Purpose, 'register'>;

export type IssuedChallenge = Challenge & { readonly token: string };

/** The proof-of-work that a request shows, as it was sent. */
export type Work = Readonly<Record<'token' | 'solution', string | undefined>>;

/** Past a challenge's expiry, for uploads begun before it: 50 MiB at the slowest rate by default take 53 minutes. */
export const SPENDABLE_SECONDS = HOUR_SECONDS;

/** The members of Parts that this file works with; parts.ts imports this file, so they are named here. */
export interface ChallengeParts {
  readonly config: Config;
  readonly store: Pick<Store, 'read'>;
  readonly antiflood: Antiflood;
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** Counts for the metrics; does nothing where nobody can read them. */
  readonly count: Count;
}

/** The store decides whether a challenge was used, in the transaction that it pays for; asking early saves work. */
export class Challenges {
  readonly #parts: ChallengeParts;
  #key: HmacKey;

  /** `key` signs and checks tokens, and is the same from one start to the next. */
  constructor(parts: ChallengeParts & { readonly key: Uint8Array }) {
    this.#parts = parts;
    this.#key = hmacKey(parts.key);
  }

  /** Tokens that the previous key has signed are refused from now on. */
  replaceKey(key: Uint8Array): void {
    this.#key = hmacKey(key);
  }

  /** Which work this caller does for a paste: trusted callers have challenges of their own if the operator says so. */
  purposeFor(caller: Caller): PastePurpose {
    return this.#parts.config.powTrustedBits !== '' && hasTrustedLimits(caller) ? 'trusted' : 'paste';
  }

  /** The difficulty for a paste while anti-flood adds nothing. */
  baseBits(purpose: PastePurpose): number {
    const { powDifficultyBits, powTrustedBits } = this.#parts.config;
    return purpose === 'paste' ? powDifficultyBits : Number(powTrustedBits);
  }

  /** 0 when no work is asked for. Anti-flood adds the same bits for trusted callers, unless their base is 0. */
  difficultyBits(purpose: Purpose): number {
    const { config, antiflood, clock } = this.#parts;
    if (purpose === 'register') return config.registerPowDifficultyBits;
    const everyones = antiflood.difficultyBits(clock.monotonicMs());
    const base = this.baseBits(purpose);
    if (base === 0) return 0;
    return Math.min(base + everyones - config.powDifficultyBits, Math.max(base, config.antifloodMaxBits));
  }

  issue(purpose: Purpose): IssuedChallenge | null {
    const { config, clock, random } = this.#parts;
    const difficultyBits = this.difficultyBits(purpose);
    if (difficultyBits === 0) return null;
    const nonce = Buffer.from(random(NONCE_BYTES)).toString('hex');
    const challenge = { nonce, expiresAt: unixSeconds(clock) + config.powTtlSeconds, difficultyBits };
    return { ...challenge, token: challengeToken(this.#key, purpose, challenge) };
  }

  /** Null if no work is asked for. Refuses in the decided order: form, signature and purpose, expiry, solution, use. */
  async require(purpose: Purpose, { token, solution }: Work): Promise<SpentChallenge | null> {
    const { config, store, clock, count } = this.#parts;
    const askedBits = this.difficultyBits(purpose);
    if (askedBits === 0) return null;
    if (token === undefined || solution === undefined) throw this.refusal('powRequired', purpose);
    const challenge = parseToken(token);
    if (challenge === undefined) throw this.refusal('powMalformedToken', purpose);
    if (!this.#isGoodFor(purpose, challenge, token, askedBits)) throw this.refusal('powBadSignature', purpose);
    const leftSeconds = challenge.expiresAt - unixSeconds(clock);
    // A token from a time when the clock was far ahead would otherwise be good until that time.
    const isPast = leftSeconds <= 0 || leftSeconds > config.powTtlSeconds + HOUR_SECONDS;
    if (isPast) throw this.refusal('powExpired', purpose);
    if (!isSolutionForm(solution)) throw this.refusal('powMalformedSolution', purpose);
    if (!isSolved(challenge, solution)) throw this.refusal('powInsufficient', purpose);
    if (await store.read.isSpent(challenge.nonce)) throw this.refusal('powAlreadyUsed', purpose);
    count('proofOfWork', 'accepted');
    const { nonce, expiresAt } = challenge;
    return { nonce, expiresAt, spendableUntil: expiresAt + SPENDABLE_SECONDS };
  }

  /** Trusted callers may have fetched a challenge without a certificate: that is good too, if it is hard enough now. */
  #isGoodFor(purpose: Purpose, challenge: Challenge, token: string, askedBits: number): boolean {
    if (isSigned(this.#key, purpose, challenge, token)) return true;
    const isHardEnough = challenge.difficultyBits >= askedBits;
    return purpose === 'trusted' && isHardEnough && isSigned(this.#key, 'paste', challenge, token);
  }

  /** Also for a challenge that the store did not spend: another request was quicker, or this one took too long. */
  refusal(name: WorkRefusal, purpose: Purpose): Refusal {
    this.#parts.count('proofOfWork', name);
    const path = purpose === 'register' ? '/register/challenge' : '/challenge';
    return new Refusal(name, { hint: `request a new challenge: GET ${path}` });
  }
}

export function createRates({ config, clock, count }: Pick<ChallengeParts, 'config' | 'clock' | 'count'>) {
  const windowOf = (seconds: number, maxKeys: number) => (
    new SlidingWindow({ windowMs: seconds * 1000, maxKeys, cleanupThreshold: config.rateCleanupThreshold })
  );
  const creations = windowOf(config.rateWindowSeconds, config.rateMaxEntries);
  const lookups = windowOf(config.lookupRateWindowSeconds, config.lookupRateMaxEntries);
  const take = (what: 'creation' | 'lookup', clientAddress: string, caller: Caller): RateStanding | null => {
    const [window, max] = what === 'creation' ? [creations, config.rateMax] : [lookups, config.lookupRateMax];
    if (max === 0) return null;
    const limit = rateMaxFor(config, caller, max);
    const taken = window.take(clientKey(clientAddress), limit, clock.monotonicMs());
    const resetAtSeconds = Math.ceil((clock.unixMs() + taken.resetMs) / 1000);
    const rate = { limit, remaining: taken.remaining, resetAtSeconds };
    if (taken.allowed) return rate;
    count('rateLimitHits', what);
    const retryAfterSeconds = taken.retryAfterMs / 1000;
    if (what === 'lookup') throw new Refusal('lookupRateLimited', {}, { retryAfterSeconds });
    throw new Refusal('rateLimited', {}, { retryAfterSeconds, rate });
  };
  return {
    /** Counts a creation, or an update that carries content or sets a password. Null when there is no limit. */
    countCreation: (clientAddress: string, caller: Caller) => take('creation', clientAddress, caller),
    /** Counts a GET or HEAD of a paste, a list of pastes, and a PUT or DELETE of a paste that is not the caller's. */
    countLookup: (clientAddress: string, caller: Caller) => void take('lookup', clientAddress, caller),
    sweep(): void {
      for (const window of [creations, lookups]) window.sweep(clock.monotonicMs());
    },
  };
}

/** The caller's limit where strangers have `max`; 0 still means no limit. */
export function rateMaxFor(config: Config, caller: Caller, max: number): number {
  return hasTrustedLimits(caller) ? Math.min(max * config.rateTrustedFactor, Number.MAX_SAFE_INTEGER) : max;
}

export function maxPasteBytes(config: Config, caller: Caller): number {
  return hasTrustedLimits(caller) ? config.maxAuthBytes : config.maxAnonBytes;
}

/** The requested ttl, up to SERVICE_MAX_EXPIRY, or the tier's default, which an operator may set above that. */
export function ttlSeconds(config: Config, caller: Caller, requestedSeconds: number | undefined): number {
  if (requestedSeconds !== undefined) return Math.min(requestedSeconds, config.maxExpirySeconds);
  if (hasTrustedLimits(caller)) return config.expiryTrustedSeconds;
  return caller.tier === 'untrusted' ? config.expiryUntrustedSeconds : config.expiryAnonSeconds;
}

/** The contract's limit, in code points. */
const MAX_PASSWORD_LENGTH = 1024;

/** If the host is suspended during a check, unknown ids must not wait as long as that check took. */
const MAX_DECOY_DELAY_MS = 500;

/** The running median is taken over this many checks; the number is odd, so that the median is one of them. */
const MEDIAN_OF = 15;

/** How long a full queue delays its refusal: otherwise clients that ask again at once would be most of the work. */
const REFUSAL_MS = 500;

interface PasswordParts extends Pick<ChallengeParts, 'clock' | 'random'> {
  readonly queue: WorkQueue;
  /** How long a check takes here. When not given, three checks are made and measured. */
  readonly checkMs?: number | undefined;
}

/** Passwords are hashed and checked a few at a time, and unknown ids are answered as slowly as wrong passwords. */
export class Passwords {
  readonly #parts: PasswordParts;
  readonly #decoy: string;
  readonly #recentMs: number[];
  #firstCheck: Promise<unknown> | undefined;

  constructor(parts: PasswordParts) {
    this.#parts = parts;
    this.#decoy = decoyHash(parts.random);
    this.#recentMs = parts.checkMs === undefined ? [] : [parts.checkMs];
  }

  /** Unknown ids wait for this, which needs CPU, so start-up goes first. The median of three leaves out a slow one. */
  measure(): Promise<unknown> {
    const check = () => this.#timedVerify('', this.#decoy);
    return (this.#firstCheck ??= this.#recentMs.length > 0 ? Promise.resolve() : check().then(check).then(check));
  }

  /** The text to store for a new password. Refuses one that is too long, and when too many checks wait. */
  async hash(password: string, clientAddress: string): Promise<string> {
    requireAcceptablePassword(password);
    return inTurn(this.#parts.queue, clientAddress, () => hashPassword(password, this.#parts.random));
  }

  /** Waits its turn before it looks, and checks unknown ids against a decoy, so nothing tells whether an id exists. */
  unlock<Found extends Pick<Paste, 'passwordHash'>>(
    find: () => Awaitable<Found | undefined>, password: string | undefined, clientAddress: string,
  ): Awaitable<Found> {
    if (password === undefined) return andThen(find(), this.#requireOpen);
    requireAcceptablePassword(password);
    return inTurn(this.#parts.queue, clientAddress, async () => {
      const found = await find();
      if (found !== undefined && found.passwordHash === null) return found;
      const matches = await this.#timedVerify(password, found?.passwordHash ?? this.#decoy);
      if (found === undefined) throw new Refusal('pasteNotFound');
      if (!matches) throw new Refusal('passwordInvalid');
      // Its owner may have replaced the content meanwhile: with the same password there is nothing more to check.
      const now = await find();
      return now?.passwordHash === found.passwordHash ? now! : found;
    });
  }

  readonly #requireOpen = <Found extends Pick<Paste, 'passwordHash'>>(found: Found | undefined): Awaitable<Found> => {
    if (found === undefined) return this.#refuseUnknown();
    if (found.passwordHash !== null) throw new Refusal('passwordRequired', { passwordProtected: true });
    return found;
  };

  /** Takes as long as checking a wrong password does, without doing that work. */
  async #refuseUnknown(): Promise<never> {
    await this.measure();
    const median = this.#recentMs.toSorted((one, other) => one - other)[this.#recentMs.length >> 1]!;
    await delay(Math.min(median, MAX_DECOY_DELAY_MS));
    throw new Refusal('pasteNotFound');
  }

  async #timedVerify(password: string, stored: string): Promise<boolean> {
    const { clock } = this.#parts;
    const startedMs = clock.monotonicMs();
    const matches = await verifyPassword(password, stored);
    this.#recentMs.push(clock.monotonicMs() - startedMs);
    if (this.#recentMs.length > MEDIAN_OF) this.#recentMs.shift();
    return matches;
  }
}

export function requireAcceptablePassword(password: string | undefined): void {
  if (password === undefined || password.length <= MAX_PASSWORD_LENGTH) return;
  if ([...password].length > MAX_PASSWORD_LENGTH) throw new Refusal('passwordTooLong');
}

/** Refuses when too many wait, or this waits too long. `client` is an address, or a name for work for everybody. */
export async function inTurn<Result>(queue: WorkQueue, client: string, work: () => Promise<Result>): Promise<Result> {
  using place = new DisposableStack();
  place.defer(await queue.enter(clientKey(client)).catch(refuseFullQueue));
  return await work();
}

async function refuseFullQueue(error: unknown): Promise<never> {
  expected(WorkQueueFull, error);
  await delay(REFUSAL_MS);
  throw new Refusal('passwordQueueFull', {}, { retryAfterSeconds: 1 });
}

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
