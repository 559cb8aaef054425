// The service's challenges by themselves: what is asked for, in which order a request's work is checked, and when it
// stops counting.

import assert from 'node:assert/strict';
import test from 'node:test';
import type { Count } from '../../src/core/events.ts';
import { Refusal, type RefusalName } from '../../src/core/refusals.ts';
import { challengeToken, type Purpose } from '../../src/crypto/digest.ts';
import type { Antiflood } from '../../src/limits/windows.ts';
import { Challenges, type Work } from '../../src/pastes/admission.ts';
import type { Store } from '../../src/store/open.ts';
import { movableClock } from '../support/clock.ts';
import { createSeeded } from '../support/seeded.ts';
import { testConfig } from '../support/test-config.ts';
import { findSolution, solve } from '../support/work.ts';

const KEY = Buffer.from('a key that the tests know');
const TTL_SECONDS = 300;
const HINTS: Readonly<Record<Purpose, RegExp>> = {
  paste: /\bGET \/challenge\b/,
  trusted: /\bGET \/challenge\b/,
  register: /\bGET \/register\/challenge\b/,
};

/** Challenges whose difficulty for pastes and whose used nonces the test sets. */
function challengesOf(bits: { paste: number; register: number }) {
  const clock = movableClock();
  const spentNonces = new Set<string>();
  const asked: string[] = [];
  const counted: string[] = [];
  const count: Count = (...[name, outcome]) => counted.push(`${name} ${outcome}`);
  const challenges = new Challenges({
    config: testConfig({ powDifficultyBits: 5, powTtlSeconds: TTL_SECONDS, registerPowDifficultyBits: bits.register }),
    key: KEY,
    antiflood: {
      record: () => assert.fail('issuing and checking count nothing'), difficultyBits: () => bits.paste,
    } as unknown as Antiflood,
    store: {
      read: {
        isSpent: async (nonce: string) => {
          asked.push(nonce);
          return spentNonces.has(nonce);
        },
      } as Store['read'],
    },
    clock,
    random: createSeeded(1).bytes,
    count,
  });
  const nowSeconds = (): number => clock.unixMs() / 1000;
  return { challenges, clock, nowSeconds, spentNonces, asked, counted, bits };
}

async function refusedAs(required: Promise<unknown>, name: RefusalName, purpose: Purpose): Promise<void> {
  await assert.rejects(required, (error) => {
    assert.ok(error instanceof Refusal);
    assert.deepEqual([error.refusal, Object.keys(error.fields)], [name, ['hint']]);
    assert.match(String(error.fields['hint']), HINTS[purpose]);
    return true;
  });
}

test('issue: signed for its purpose, valid for the setting\'s time, at the difficulty of the moment', () => {
  const { challenges, nowSeconds, bits } = challengesOf({ paste: 7, register: 24 });
  for (const [purpose, difficultyBits] of [['paste', 7], ['register', 24]] as const) {
    const issued = challenges.issue(purpose) ?? assert.fail('there is work to do');
    const { token, ...challenge } = issued;
    assert.match(challenge.nonce, /^[0-9a-f]{32}$/);
    assert.deepEqual(challenge, { nonce: challenge.nonce, expiresAt: nowSeconds() + TTL_SECONDS, difficultyBits });
    assert.equal(token, challengeToken(KEY, purpose, challenge));
    assert.notEqual(challenges.issue(purpose)?.nonce, challenge.nonce);
  }
  bits.paste = 9;
  assert.equal(challenges.issue('paste')?.difficultyBits, 9);
});

test('issue and require: nothing is asked where the difficulty is 0, for each purpose by itself', async () => {
  const nonsense: Work = { token: 'x', solution: 'x' };
  const noPasteWork = challengesOf({ paste: 0, register: 1 });
  assert.equal(noPasteWork.challenges.issue('paste'), null);
  assert.equal(await noPasteWork.challenges.require('paste', nonsense), null);
  await refusedAs(noPasteWork.challenges.require('register', nonsense), 'powMalformedToken', 'register');
  const noRegisterWork = challengesOf({ paste: 1, register: 0 });
  assert.equal(noRegisterWork.challenges.issue('register'), null);
  assert.equal(await noRegisterWork.challenges.require('register', nonsense), null);
  await refusedAs(noRegisterWork.challenges.require('paste', nonsense), 'powMalformedToken', 'paste');
});

test('require: each reason in the decided order, counted by its name; the store is asked last', async () => {
  const { challenges, clock, spentNonces, asked, counted } = challengesOf({ paste: 3, register: 3 });
  for (const purpose of ['paste', 'register'] as const) {
    const { token, nonce, expiresAt } = challenges.issue(purpose) ?? assert.fail('there is work to do');
    const tampered = token.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    const tooLittle = findSolution(nonce, (bits) => bits === 2);
    const enough = solve(nonce, 3);
    const right: Work = { token, solution: enough };
    const insteadOf = (work: Partial<Work>): Promise<unknown> => challenges.require(purpose, { ...right, ...work });
    clock.advance(TTL_SECONDS * 1000);
    spentNonces.add(nonce);
    asked.length = 0;
    counted.length = 0;

    await refusedAs(insteadOf({ token: undefined, solution: 'x' }), 'powRequired', purpose);
    await refusedAs(insteadOf({ token: 'x', solution: undefined }), 'powRequired', purpose);
    await refusedAs(insteadOf({ token: '', solution: '' }), 'powMalformedToken', purpose);
    await refusedAs(insteadOf({ token: tampered, solution: 'x' }), 'powBadSignature', purpose);
    await refusedAs(insteadOf({ solution: 'x' }), 'powExpired', purpose);
    clock.jump(-1000);
    await refusedAs(insteadOf({ solution: 'x' }), 'powMalformedSolution', purpose);
    await refusedAs(insteadOf({ solution: tooLittle }), 'powInsufficient', purpose);
    assert.deepEqual(asked, []);
    await refusedAs(insteadOf({}), 'powAlreadyUsed', purpose);
    spentNonces.delete(nonce);
    assert.deepEqual(await insteadOf({}), { nonce, expiresAt, spendableUntil: expiresAt + 3600 });
    const outcomes = [
      'powRequired', 'powRequired', 'powMalformedToken', 'powBadSignature', 'powExpired', 'powMalformedSolution',
      'powInsufficient', 'powAlreadyUsed', 'accepted',
    ];
    assert.deepEqual(counted, outcomes.map((outcome) => `proofOfWork ${outcome}`));
  }
});

test('require: a challenge is good up to its expiry, that second not included', async () => {
  for (const beforeMs of [1, 0, -1]) {
    const { challenges, clock } = challengesOf({ paste: 1, register: 1 });
    const { token, nonce } = challenges.issue('paste') ?? assert.fail('there is work to do');
    const work = { token, solution: solve(nonce, 1) };
    clock.advance(TTL_SECONDS * 1000 - beforeMs);
    if (beforeMs > 0) await challenges.require('paste', work);
    else await refusedAs(challenges.require('paste', work), 'powExpired', 'paste');
  }
});

test('require: what was signed is what must be satisfied, whatever is asked for now', async () => {
  const { challenges, bits } = challengesOf({ paste: 4, register: 1 });
  const easy = challenges.issue('paste') ?? assert.fail('there is work to do');
  bits.paste = 8;
  const hard = challenges.issue('paste') ?? assert.fail('there is work to do');
  await challenges.require('paste', { token: easy.token, solution: findSolution(easy.nonce, (found) => found === 4) });
  bits.paste = 4;
  const tooEasy = findSolution(hard.nonce, (found) => found >= 4 && found < 8);
  await refusedAs(challenges.require('paste', { token: hard.token, solution: tooEasy }), 'powInsufficient', 'paste');
  await challenges.require('paste', { token: hard.token, solution: solve(hard.nonce, 8) });
});

test('refusal: the same words as when it is found out before', () => {
  const { challenges, counted } = challengesOf({ paste: 1, register: 1 });
  for (const purpose of ['paste', 'register'] as const) {
    for (const name of ['powAlreadyUsed', 'powExpired'] as const) {
      const refusal = challenges.refusal(name, purpose);
      assert.equal(refusal.refusal, name);
      assert.match(String(refusal.fields['hint']), HINTS[purpose]);
      assert.equal(counted.pop(), `proofOfWork ${name}`);
    }
  }
});
