// Proof-of-work for callers: new challenges at the difficulty of the moment, and the check of one that was solved.
// Whether a challenge was used before is decided by the store, in the transaction of what it buys; asking here only
// spares the work of a replay. The decisions' "Proof-of-work and anti-flood" is the source.

import type { Config } from '../config/settings.ts';
import type { Count, WorkOutcome } from '../core/events.ts';
import { Refusal, type RefusalName } from '../core/refusals.ts';
import { type Clock, HOUR_SECONDS, type RandomBytes, unixSeconds } from '../core/time.ts';
import { hmacKey } from '../crypto/digest.ts';
import {
  type Challenge, challengeToken, isSigned, isSolutionForm, isSolved, NONCE_BYTES, parseToken, type Purpose,
} from '../crypto/proof-of-work.ts';
import type { Antiflood } from '../limits/antiflood.ts';
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
