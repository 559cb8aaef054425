// Tokens and solutions of proof-of-work by themselves. How the service uses them is test/unit/challenges.test.ts.

import assert from 'node:assert/strict';
import test from 'node:test';
import {
  type Challenge, challengeToken, isSigned, isSolutionForm, isSolved, NONCE_BYTES, parseToken, type Purpose,
} from '../../src/crypto/digest.ts';
import { findSolution, workBits } from '../support/work.ts';

const KEY = Buffer.from('a key that the tests know');
const NONCE = '00112233445566778899aabbccddeeff';
const CHALLENGE: Challenge = { nonce: NONCE, expiresAt: 1_769_861_100, difficultyBits: 20 };
const TOKEN = challengeToken(KEY, 'paste', CHALLENGE);
const [, , , SIGNATURE = ''] = TOKEN.split(':');

function isAccepted(token: string, purpose: Purpose = 'paste', key: Uint8Array = KEY): boolean {
  const parsed = parseToken(token);
  return parsed !== undefined && isSigned(key, purpose, parsed, token);
}

test('challengeToken: the contract\'s form, signed over the purpose and the three fields', () => {
  // printf '%s' "<purpose>:00112233445566778899aabbccddeeff:1769861100:20" | openssl dgst -sha256 -hmac 'a key that the
  // tests know'
  const paste = 'e5ce8e9103504fe708c9cbe6e884356b9ba8b38e3f545e5723c1f9cb8ea7633c';
  const register = '52a1b2670d5bc17db038e12af71bf5179d2e98781a8bc14932cbee385cedcfde';
  assert.equal(TOKEN, `${NONCE}:1769861100:20:${paste}`);
  assert.equal(challengeToken(KEY, 'register', CHALLENGE), `${NONCE}:1769861100:20:${register}`);
  assert.equal(NONCE_BYTES * 2, NONCE.length);
});

test('parseToken: gives back what was signed', () => {
  for (const challenge of [CHALLENGE, { ...CHALLENGE, expiresAt: 999_999_999_999, difficultyBits: 1 }]) {
    assert.deepEqual(parseToken(challengeToken(KEY, 'paste', challenge)), challenge);
  }
});

test('parseToken: nothing but exactly the form', () => {
  const replacing = (place: number, text: string): string => TOKEN.split(':').with(place, text).join(':');
  const refused = [
    '', ':', ':::', 'x', NONCE, TOKEN.slice(1), TOKEN.slice(0, -1), `${TOKEN}0`, `0${TOKEN}`, ` ${TOKEN}`, `${TOKEN} `,
    `${TOKEN}\n`, `${TOKEN}:`, `${TOKEN}:${SIGNATURE}`, TOKEN.toUpperCase(), TOKEN.replaceAll(':', '.'),
    ...[NONCE.slice(1), `${NONCE}0`, `g${NONCE.slice(1)}`].map((nonce) => replacing(0, nonce)),
    ...['', '00', '-1', '1.5', '1e9', '01769861100', '1'.repeat(13)].map((expires) => replacing(1, expires)),
    ...['', '00', '-20', '0x14', '020', '1000'].map((difficulty) => replacing(2, difficulty)),
    ...['', SIGNATURE.slice(1), `${SIGNATURE}0`, SIGNATURE.toUpperCase()].map((signature) => replacing(3, signature)),
  ];
  for (const token of refused) assert.equal(parseToken(token), undefined, token);
});

test('isSigned: a token with any character changed, added or removed is not accepted', () => {
  assert.equal(isAccepted(TOKEN), true);
  for (let place = 0; place <= TOKEN.length; place += 1) {
    const [before, after] = [TOKEN.slice(0, place), TOKEN.slice(place)];
    for (const added of ['0', '1', 'a', ':']) {
      assert.equal(isAccepted(before + added + after), false, `${added} put in at ${place}`);
    }
    if (after === '') continue;
    const other = after[0] === '0' ? '1' : '0';
    assert.equal(isAccepted(before + other + after.slice(1)), false, `${other} in place of ${place}`);
    assert.equal(isAccepted(before + after.slice(1)), false, `without ${place}`);
  }
});

test('isSigned: purposes and keys are apart', () => {
  const registration = challengeToken(KEY, 'register', CHALLENGE);
  assert.deepEqual([isAccepted(TOKEN, 'paste'), isAccepted(TOKEN, 'register')], [true, false]);
  assert.deepEqual([isAccepted(registration, 'paste'), isAccepted(registration, 'register')], [false, true]);
  for (const key of ['', 'another key', `${KEY.toString()}\n`]) {
    assert.equal(isAccepted(TOKEN, 'paste', Buffer.from(key)), false);
  }
});

test('isSolutionForm: decimal digits, one to twenty of them', () => {
  const digits = '12345678901234567890';
  for (const solution of ['0', '1', '9', '007', '0'.repeat(20), digits.slice(0, 19), digits]) {
    assert.equal(isSolutionForm(solution), true, solution);
  }
  const refused = [
    '', `${digits}1`, '0'.repeat(21), '-1', '+1', '1.0', '1e3', '0x1f', 'ff', ' 1', '1 ', '1\n', '1,2', '1_000', 'NaN',
    'Infinity', '\u0661', '\uff11',
  ];
  for (const solution of refused) {
    assert.equal(isSolutionForm(solution), false, JSON.stringify(solution));
  }
});

test('isSolved: one bit less than the difficulty is not enough, as many and one more are', () => {
  for (const difficultyBits of [1, 7, 8, 9, 12]) {
    for (const bits of [difficultyBits - 1, difficultyBits, difficultyBits + 1]) {
      const solution = findSolution(NONCE, (found) => found === bits);
      const solved = isSolved({ ...CHALLENGE, difficultyBits }, solution);
      assert.equal(solved, bits >= difficultyBits, `${bits} bits for ${difficultyBits}`);
    }
  }
});

test('isSolved: the text is hashed as written, leading zeros and all', () => {
  const challenge = { ...CHALLENGE, difficultyBits: 6 };
  const padded = (n: number): string => String(n).padStart(20, '0');
  const bare = (n: number): string => String(n);
  for (const [form, otherForm] of [[padded, bare], [bare, padded]] as const) {
    const solves = (n: number): boolean => workBits(NONCE, form(n)) >= 6 && workBits(NONCE, otherForm(n)) < 6;
    let n = 0;
    while (!solves(n)) n += 1;
    assert.equal(isSolved(challenge, form(n)), true, form(n));
    assert.equal(isSolved(challenge, otherForm(n)), false, otherForm(n));
  }
});

test('isSolved: of any difficulty that a token can say', () => {
  // printf '%s' 00112233445566778899aabbccddeeff:2337373 | sha256sum begins with 000003b0: 22 bits.
  const isEnough = (difficultyBits: number) => isSolved({ ...CHALLENGE, difficultyBits }, '2337373');
  for (let bits = 0; bits <= 999; bits += 1) assert.equal(isEnough(bits), bits <= 22, `${bits} bits`);
});
