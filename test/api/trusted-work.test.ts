// SERVICE_POW_TRUSTED over real sockets: what is asked of trusted callers, and which tokens are good for whom. The
// proof-of-work of everyone is proof-of-work.test.ts, anti-flood for everyone antiflood.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SETTINGS } from '../../src/config/settings.ts';
import { challengeToken, type Purpose } from '../../src/crypto/digest.ts';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { insertCertificate, newFingerprint, presenting, setRevoked } from '../support/certificates.ts';
import { type Answer, assertError, assertStored, assertWorkRefused, post, statusCounts } from '../support/posting.ts';
import { CREATED_AT, selectValue } from '../support/store.ts';
import { findSolution, type PasteChallenge, showing, solve, workHint } from '../support/work.ts';

type Headers = Record<string, string>;

const SECRET = 'a key that the tests know';
const BITS = 4;
const NO_WORK = { enabled: false, difficulty: 0 };

/** Callers of whom the work of trusted callers is asked, and everyone else. */
function callersOf({ config: { databasePath } }: RunningApp): { trusted: Headers[]; others: Headers[] } {
  const holder = (given: object): Headers => presenting(insertCertificate(databasePath, given).fingerprint);
  return {
    trusted: [holder({}), holder({ isAdmin: true })],
    others: [{}, presenting(newFingerprint()), holder({ revokedAt: CREATED_AT }), holder({ expiresAt: CREATED_AT })],
  };
}

async function challengeFor(app: RunningApp, headers: Headers): Promise<PasteChallenge> {
  return await (await app.request('/challenge', { headers })).json() as PasteChallenge;
}

async function workOf(app: RunningApp, headers: Headers): Promise<Headers> {
  const { token, nonce, difficulty } = await challengeFor(app, headers);
  return showing(token, solve(nonce, difficulty));
}

/** Nonces are never the same twice. */
let lastNonce = 0;

/** Work that the service would take from the callers that it is for, with exactly that many bits. */
function signedWork(app: RunningApp, purpose: Purpose, difficultyBits: number, foundBits = difficultyBits): Headers {
  const nonce = (lastNonce += 1).toString(16).padStart(32, '0');
  const expiresAt = app.clock.unixMs() / 1000 + 300;
  const token = challengeToken(Buffer.from(SECRET), purpose, { nonce, expiresAt, difficultyBits });
  return showing(token, findSolution(nonce, (bits) => bits === foundBits));
}

function assertFailed(answer: Answer, reason: string): void {
  assertWorkRefused(answer, `Proof-of-work failed: ${reason}`);
}

function audited({ config }: RunningApp): unknown {
  return selectValue(config.databasePath, 'SELECT count(*) FROM audit');
}

test('SERVICE_POW_TRUSTED: a whole number from 0 to 32 and nothing else', () => {
  const { parse } = SETTINGS.powTrustedBits;
  for (const text of ['0', '1', '9', '10', '19', '29', '30', '31', '32']) assert.equal(parse(text), text);
  for (const text of ['33', '40', '320', '-1', '00', '01', '1.0', ' 1', '1 ', '1\n', 'x', '0x1']) assert.equal(parse(text), undefined, text);
});

test('SERVICE_POW_TRUSTED not set: everyone has the same challenge, and who asks for it is not looked at', async (t) => {
  const app = await startApp(t, { powDifficultyBits: BITS, powSecret: SECRET });
  const { trusted, others } = callersOf(app);
  for (const headers of [...trusted, ...others]) {
    const { difficulty, base_difficulty: base } = await challengeFor(app, headers);
    assert.deepEqual([difficulty, base], [BITS, BITS]);
  }
  assert.equal(audited(app), 0);
  const { proof_of_work: work } = await (await app.request('/')).json() as { proof_of_work: object };
  assert.deepEqual(Object.keys(work), ['paste', 'register']);
  for (const headers of trusted) {
    assertFailed(await post(app, 'x', { ...headers, ...signedWork(app, 'trusted', BITS) }), 'bad signature');
    assertError(await post(app, 'x', headers), 400, 'proof-of-work required', { hint: workHint(app.url) });
    assertStored(await post(app, 'x', { ...headers, ...await workOf(app, {}) }));
  }
});

test('SERVICE_POW_TRUSTED=0: trusted callers need no work, everyone else as much as before', async (t) => {
  const app = await startApp(t, { powDifficultyBits: BITS, powTrustedBits: '0', antifloodThreshold: 1, antifloodStepBits: 1 });
  const { trusted, others } = callersOf(app);
  for (const headers of trusted) {
    assert.deepEqual(await challengeFor(app, headers), NO_WORK);
    const line = await app.request('/challenge', { headers: { ...headers, Accept: 'text/plain' } });
    assert.equal(await line.text(), '- 0 - -\n');
    for (let turn = 0; turn < 4; turn += 1) assertStored(await post(app, 'free', headers));
    assertStored(await post(app, 'free', { ...headers, ...showing('no token', 'no solution') }));
  }
  // Creations that take no work do not raise the difficulty, and a raised one asks no work of trusted callers.
  for (const headers of others) {
    assert.equal((await challengeFor(app, headers)).difficulty, BITS);
    assertError(await post(app, 'x', headers), 400, 'proof-of-work required', { hint: workHint(app.url) });
  }
  for (let turn = 0; turn < 4; turn += 1) assertStored(await post(app, 'x', await workOf(app, {})));
  assert.equal((await challengeFor(app, {})).difficulty, BITS + 3);
  assert.deepEqual(await challengeFor(app, trusted[0]!), NO_WORK);
  assertStored(await post(app, 'free', trusted[0]!));
});

test('SERVICE_POW_TRUSTED=1 and 32: GET /challenge answers by who asks, and so does GET /', async (t) => {
  for (const bits of [1, 32]) {
    const app = await startApp(t, { powDifficultyBits: BITS, powTrustedBits: String(bits), powSecret: SECRET });
    const { trusted, others } = callersOf(app);
    for (const [asked, callers] of [[bits, trusted], [BITS, others]] as const) {
      for (const headers of callers) {
        const { token, ...challenge } = await challengeFor(app, headers);
        const { nonce, expires } = challenge;
        assert.deepEqual(challenge, { enabled: true, difficulty: asked, nonce, expires, base_difficulty: asked, elevated: false });
        assert.equal(token.split(':')[2], String(asked));
        const line = await app.request('/challenge', { headers: { ...headers, Accept: 'text/plain' } });
        assert.match(await line.text(), new RegExp(`^[0-9a-f]{32} ${asked} \\d+ \\S+\n$`));
      }
    }
    const { proof_of_work: work } = await (await app.request('/')).json() as { proof_of_work: Record<string, unknown> };
    assert.deepEqual(work['trusted'], { enabled: true, difficulty: bits, base_difficulty: bits, elevated: false });
    assert.deepEqual(work['paste'], { enabled: true, difficulty: BITS, base_difficulty: BITS, elevated: false });
    const page = await (await app.request('/', { headers: { Accept: 'text/html' } })).text();
    assert.ok(page.includes(`<p>Proof-of-work: ${BITS} bits for a paste, ${bits} bits with a certificate, 24 bits for a registration.</p>`));
    if (bits === 1) assertStored(await post(app, 'x', { ...trusted[0]!, ...await workOf(app, trusted[0]!) }));
  }
});

test('POST /: a token of trusted callers is good for them alone, everyone\'s for them too unless it is easier', async (t) => {
  for (const [everyones, bits] of [[3, 6], [6, 3], [5, 5]] as const) {
    const app = await startApp(t, { powDifficultyBits: everyones, powTrustedBits: String(bits), powSecret: SECRET });
    const { trusted, others } = callersOf(app);
    const tried = async (headers: Headers, work: Headers): Promise<Answer> => post(app, 'x', { ...headers, ...work });
    for (const headers of trusted) {
      for (const signed of [1, bits - 1, bits, bits + 1]) assertStored(await tried(headers, signedWork(app, 'trusted', signed)));
      for (const signed of [1, bits - 1]) assertFailed(await tried(headers, signedWork(app, 'paste', signed, 8)), 'bad signature');
      for (const signed of [bits, bits + 1]) assertStored(await tried(headers, signedWork(app, 'paste', signed)));
      for (const purpose of ['paste', 'trusted'] as const) {
        assertFailed(await tried(headers, signedWork(app, purpose, bits + 1, bits)), 'insufficient work');
      }
      assertFailed(await tried(headers, signedWork(app, 'register', bits)), 'bad signature');
    }
    for (const headers of others) {
      for (const signed of [1, everyones, 8]) assertFailed(await tried(headers, signedWork(app, 'trusted', signed)), 'bad signature');
      // As ever: a token must be satisfied as it was signed.
      for (const signed of [1, everyones, everyones + 1]) assertStored(await tried(headers, signedWork(app, 'paste', signed)));
    }
  }
});

test('POST /register: no token for a paste registers, however hard it was and whoever shows it', async (t) => {
  const app = await startApp(t, { powTrustedBits: '2', powSecret: SECRET, registerPowDifficultyBits: 2, pkiCaPassword: 'password' });
  const { trusted: [headers = {}] } = callersOf(app);
  for (const [purpose, as] of [['trusted', headers], ['trusted', {}], ['paste', headers], ['paste', {}]] as const) {
    const response = await app.request('/register', { method: 'POST', headers: { ...as, ...signedWork(app, purpose, 6) } });
    assert.equal((await response.json() as Answer['json'])['error'], 'Proof-of-work failed: bad signature');
  }
});

test('POST /: who is revoked or runs out between the challenge and the paste is refused, and the token stays unspent', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 8, powTrustedBits: '2' });
  const { databasePath } = app.config;
  const { fingerprint, serial } = insertCertificate(databasePath, { expiresAt: CREATED_AT + 100 });
  const headers = presenting(fingerprint);
  const work = await workOf(app, headers);
  setRevoked(databasePath, serial, CREATED_AT);
  assertFailed(await post(app, 'x', { ...headers, ...work }), 'bad signature');
  assert.equal(audited(app), 1);
  assertFailed(await post(app, 'x', work), 'bad signature');
  setRevoked(databasePath, serial, null);
  assertStored(await post(app, 'x', { ...headers, ...work }), 'nothing was spent');
  const late = await workOf(app, headers);
  app.clock.advance(100_000);
  assertFailed(await post(app, 'x', { ...headers, ...late }), 'bad signature');
  assert.equal((await challengeFor(app, headers)).difficulty, 8);
  assert.equal(selectValue(databasePath, 'SELECT count(*) FROM pastes'), 1);
  assert.equal(selectValue(databasePath, 'SELECT count(*) FROM spent_challenges'), 1);
});

test('POST /: of 40 concurrent uses of a trusted caller\'s token, some without its certificate, one buys a paste', async (t) => {
  const app = await startApp(t, { powDifficultyBits: BITS, powTrustedBits: '1' });
  const { trusted } = callersOf(app);
  for (const bytes of [100, 100_000]) {
    const work = await workOf(app, trusted[0]!);
    const answers = await Promise.all(Array.from({ length: 40 }, (_, turn) => {
      const as = [trusted[0]!, trusted[1]!, {}][turn % 3]!;
      return post(app, binaryContent(bytes, turn), { ...as, ...work });
    }));
    assert.deepEqual(statusCounts(answers), { 201: 1, 400: 39 });
    for (const [turn, answer] of answers.entries()) {
      if (answer.status === 400) assertFailed(answer, turn % 3 === 2 ? 'bad signature' : 'challenge already used');
    }
  }
});

test('SERVICE_POW_TRUSTED: anti-flood adds the same bits as for everyone, up to its maximum or the bits themselves', async (t) => {
  // 1 bit, 3 above 3 creations a minute, 5 above 6, and no more than 6.
  const flood = { powDifficultyBits: 1, antifloodThreshold: 3, antifloodStepBits: 2, antifloodMaxBits: 6 };
  for (const [bits, expected] of [['1', [1, 3, 5, 6]], ['2', [2, 4, 6, 6]], ['5', [5, 6, 6, 6]], ['6', [6, 6, 6, 6]], ['9', [9, 9, 9, 9]]] as const) {
    const app = await startApp(t, { ...flood, powTrustedBits: bits });
    const { trusted: [headers = {}] } = callersOf(app);
    for (const [turn, difficulty] of expected.entries()) {
      const challenge = await challengeFor(app, headers);
      const shown = [challenge.difficulty, challenge.base_difficulty, challenge.elevated];
      assert.deepEqual(shown, [difficulty, Number(bits), difficulty > Number(bits)], `${bits} bits, step ${turn}`);
      const { proof_of_work: { trusted } } = await (await app.request('/')).json() as { proof_of_work: { trusted: object } };
      assert.deepEqual(Object.values(trusted), [true, ...shown]);
      assert.equal((await challengeFor(app, {})).difficulty, [1, 3, 5, 6][turn]);
      // Creations of trusted callers count as everyone's do.
      const count = turn === 0 ? 4 : 3;
      for (let done = 0; done < count; done += 1) {
        const as = done % 2 === 0 ? headers : {};
        assertStored(await post(app, 'x', { ...as, ...await workOf(app, as) }));
      }
    }
    app.clock.advance(600_000);
    assert.equal((await challengeFor(app, headers)).difficulty, Number(bits));
  }
});

test('SERVICE_POW_TRUSTED: counts by itself where nothing is asked of everyone', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 0, powTrustedBits: '3', powSecret: SECRET });
  const { trusted: [headers = {}] } = callersOf(app);
  assert.deepEqual(await challengeFor(app, {}), NO_WORK);
  assertStored(await post(app, 'free'));
  assertError(await post(app, 'x', headers), 400, 'proof-of-work required', { hint: workHint(app.url) });
  assertStored(await post(app, 'x', { ...headers, ...await workOf(app, headers) }));
});
