// GET /challenge and the proof-of-work of POST / over real sockets. The rise of the difficulty is antiflood.test.ts; what refusals of
// other kinds leave of a token is check-order.test.ts.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { SETTINGS } from '../../src/config/settings.ts';
import { challengeToken, type Purpose } from '../../src/crypto/pow-token.ts';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { assertError, assertStored, post, statusCounts, type Answer } from '../support/posting.ts';
import { selectValue, strayChunks } from '../support/store.ts';
import { findSolution, freshWork, getChallenge, showing, solve, workBits } from '../support/work.ts';

const SECRET = 'a key that the tests know';
const NONCE = '00112233445566778899aabbccddeeff';
const BITS = 6;
const HINT = { hint: 'request a new challenge: GET /challenge' };

function startWithWork(t: TestContext): Promise<RunningApp> {
  return startApp(t, { powDifficultyBits: BITS, powSecret: SECRET });
}

/** As the service would sign it. */
function tokenOf(app: RunningApp, parts: { nonce?: string; difficultyBits?: number; purpose?: Purpose; key?: string } = {}): string {
  const { nonce = NONCE, difficultyBits = BITS, purpose = 'paste', key = SECRET } = parts;
  return challengeToken(Buffer.from(key), purpose, { nonce, expiresAt: app.clock.unixMs() / 1000 + 300, difficultyBits });
}

function assertFailed(answer: Answer, reason: string): void {
  assertError(answer, 400, `Proof-of-work failed: ${reason}`, HINT);
}

function storedPastes({ config }: RunningApp): unknown {
  return selectValue(config.databasePath, 'SELECT count(*) FROM pastes');
}

test('GET /challenge: exactly the contract\'s members, signed, and new each time', async (t) => {
  const app = await startWithWork(t);
  const challenge = await getChallenge(app);
  const { nonce } = challenge;
  const expires = app.clock.unixMs() / 1000 + 300;
  assert.match(nonce, /^[0-9a-f]{32}$/);
  const token = challengeToken(Buffer.from(SECRET), 'paste', { nonce, expiresAt: expires, difficultyBits: BITS });
  assert.deepEqual(challenge, { enabled: true, difficulty: BITS, nonce, expires, token, base_difficulty: BITS, elevated: false });
  assert.notEqual((await getChallenge(app)).nonce, nonce);

  const head = await app.request('/challenge', { method: 'HEAD' });
  assert.deepEqual([head.status, head.headers.get('content-type'), head.headers.get('vary')], [200, 'application/json', 'Accept']);
});

test('GET /challenge: one line for a client that prefers text, of a challenge like any other', async (t) => {
  const app = await startWithWork(t);
  const response = await app.request('/challenge', { headers: { Accept: 'text/plain' } });
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain/);
  assert.equal(response.headers.get('vary'), 'Accept');
  const line = await response.text();
  assert.match(line, /^[^ \n]+ [^ \n]+ [^ \n]+ [^ \n]+\n$/);
  const [nonce = '', difficulty, expires, token = ''] = line.trimEnd().split(' ');
  assert.deepEqual([difficulty, expires], [String(BITS), String(app.clock.unixMs() / 1000 + 300)]);
  assertStored(await post(app, 'paid for', showing(token, solve(nonce, BITS))));
});

test('GET /challenge: says when there is nothing to do, and then POST / looks at no work', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 0 });
  const response = await app.request('/challenge');
  assert.deepEqual(await response.json(), { enabled: false, difficulty: 0 });
  const line = await app.request('/challenge', { headers: { Accept: 'text/plain' } });
  assert.equal(await line.text(), '- 0 - -\n');
  assertStored(await post(app, 'free', showing('no token', 'no solution')));
});

test('POST /: a real challenge at the default difficulty, solved end to end', async (t) => {
  const app = await startApp(t, { powDifficultyBits: SETTINGS.powDifficultyBits.fallback });
  const { difficulty, nonce, token } = await getChallenge(app);
  assert.equal(difficulty, 20);
  const solution = solve(nonce, difficulty);
  assertStored(await post(app, 'worked for', showing(token, solution)));
  assertFailed(await post(app, 'worked for', showing(token, solution)), 'challenge already used');
  assert.equal(storedPastes(app), 1);
});

test('POST /: without a token or a solution the work is asked for, with a hint', async (t) => {
  const app = await startWithWork(t);
  for (const headers of [{}, { 'X-PoW-Token': tokenOf(app) }, { 'X-PoW-Solution': '1' }] as Record<string, string>[]) {
    assertError(await post(app, 'x', headers), 400, 'proof-of-work required', HINT);
  }
  assert.equal(storedPastes(app), 0);
});

test('POST /: a token that is not of the form, or not signed for a paste by this service, is refused by its reason', async (t) => {
  const app = await startWithWork(t);
  const token = tokenOf(app);
  const solution = solve(NONCE, BITS);
  const malformed = ['', 'x', token.slice(0, -1), `${token}0`, token.split(':').slice(0, 3).join(':'), token.toUpperCase()];
  for (const bad of malformed) assertFailed(await post(app, 'x', showing(bad, solution)), 'malformed token');

  const [nonce, expires, difficulty, signature = ''] = token.split(':');
  const forged = [
    [nonce?.replace('0', '1'), expires, difficulty, signature],
    [nonce, Number(expires) + 1, difficulty, signature],
    [nonce, expires, BITS - 1, signature],
    [nonce, expires, difficulty, signature.replace(/.$/, (last) => (last === '0' ? '1' : '0'))],
  ].map((fields) => fields.join(':'));
  const foreign = [tokenOf(app, { purpose: 'register' }), tokenOf(app, { key: `${SECRET}.` }), tokenOf(app, { key: '' })];
  for (const bad of [...forged, ...foreign]) assertFailed(await post(app, 'x', showing(bad, solution)), 'bad signature');
  assert.equal(storedPastes(app), 0);
  assertStored(await post(app, 'x', showing(token, solution)), 'the same with nothing changed');
});

test('POST /: a challenge is good until the second of its expiry', async (t) => {
  const app = await startWithWork(t);
  const early = await freshWork(app);
  const late = await freshWork(app);
  const challenge = await getChallenge(app);
  app.clock.advance(challenge.expires * 1000 - 1 - app.clock.unixMs());
  assertStored(await post(app, 'just in time', early));
  app.clock.advance(1);
  assertFailed(await post(app, 'just too late', late), 'challenge expired');
  app.clock.advance(1);
  assertFailed(await post(app, 'too late', late), 'challenge expired');
});

test('POST /: a solution is one to twenty decimal digits, taken as written', async (t) => {
  const app = await startWithWork(t);
  const token = tokenOf(app);
  const solvedBy = (form: (n: number) => string): string => findSolution(NONCE, (bits) => bits >= BITS, form);
  const digits = (count: number) => (n: number) => String(n).padStart(count, '1');
  const malformed = [
    '', 'x', '1.0', '1e3', '1 2', '٣', solvedBy((n) => `-${n}`), solvedBy((n) => `+${n}`), solvedBy((n) => `0x${n.toString(16)}`),
    solvedBy((n) => (n + 10).toString(16).padStart(9, 'a')), solvedBy(digits(21)), solvedBy((n) => String(n).padStart(21, '0')),
  ];
  for (const solution of malformed) {
    const latin1 = Buffer.from(solution).toString('latin1');
    assertFailed(await post(app, 'x', showing(token, latin1)), 'malformed solution');
  }

  // 7 is not 07: each is hashed as it is written.
  let n = 0;
  while (workBits(NONCE, `0${n}`) < BITS || workBits(NONCE, `${n}`) >= BITS) n += 1;
  assertFailed(await post(app, 'x', showing(token, `${n}`)), 'insufficient work');
  assertStored(await post(app, 'x', showing(token, `0${n}`)));

  for (const [turn, form] of [digits(19), digits(20), (count: number) => String(count).padStart(20, '0')].entries()) {
    const nonce = NONCE.replace('0', String(turn + 1));
    const solution = findSolution(nonce, (bits) => bits >= BITS, form);
    assertStored(await post(app, 'x', showing(tokenOf(app, { nonce }), solution)), solution);
  }
});

test('POST /: the signed difficulty is the one to satisfy, to the bit, whatever is asked for now', async (t) => {
  const app = await startWithWork(t);
  for (const [turn, difficultyBits] of [1, BITS - 1, BITS, BITS + 1, BITS + 4].entries()) {
    const [nonce, otherNonce] = [NONCE.replace('0', String(turn + 1)), NONCE.replace('00', `a${turn}`)];
    const [token, otherToken] = [tokenOf(app, { nonce, difficultyBits }), tokenOf(app, { nonce: otherNonce, difficultyBits })];
    const exactly = (bits: number, of = nonce): string => findSolution(of, (found) => found === bits);
    assertFailed(await post(app, 'x', showing(token, exactly(difficultyBits - 1))), 'insufficient work');
    assertStored(await post(app, 'x', showing(token, exactly(difficultyBits))), `${difficultyBits} bits`);
    assertStored(await post(app, 'x', showing(otherToken, exactly(difficultyBits + 1, otherNonce))), `more than ${difficultyBits} bits`);
  }
});

test('POST /: work that was refused costs nothing, so that the right solution still buys a paste', async (t) => {
  const app = await startWithWork(t);
  const { token, nonce } = await getChallenge(app);
  assertFailed(await post(app, 'x', showing(token, findSolution(nonce, (bits) => bits < BITS))), 'insufficient work');
  assertFailed(await post(app, 'x', showing(token, 'x')), 'malformed solution');
  assertStored(await post(app, 'x', showing(token, solve(nonce, BITS))));
});

test('POST /: of 20 concurrent uses of one token exactly one buys a paste', async (t) => {
  const app = await startWithWork(t);
  for (const [turn, bytes] of [100, 100_000].entries()) {
    const headers = await freshWork(app);
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(app, binaryContent(bytes), headers)));
    assert.deepEqual(statusCounts(answers), { 201: 1, 400: 19 });
    for (const answer of answers) if (answer.status === 400) assertFailed(answer, 'challenge already used');
    assert.equal(storedPastes(app), turn + 1);
    assertFailed(await post(app, binaryContent(bytes), headers), 'challenge already used');
  }
  await app.app.close();
  assert.equal(strayChunks(app.config.databasePath), 0);
});

test('POST /: after a restart a used token stays used and an unused one is good, by the key that was made and kept', async (t) => {
  const before = await startApp(t, { powDifficultyBits: BITS });
  const used = await freshWork(before);
  const unused = await freshWork(before);
  assertStored(await post(before, 'before', used));
  await before.app.close();

  const { databasePath } = before.config;
  const after = await startApp(t, { powDifficultyBits: BITS + 2, databasePath });
  assertFailed(await post(after, 'after', used), 'challenge already used');
  assertStored(await post(after, 'after', unused));
  assertFailed(await post(after, 'after', unused), 'challenge already used');
  await after.app.close();

  const elsewhere = await startApp(t, { powDifficultyBits: BITS });
  assertFailed(await post(elsewhere, 'another database', unused), 'bad signature');
  const hidden = JSON.stringify([...before.logged, ...after.logged]);
  for (const secret of [...Object.values(used), ...Object.values(unused)].filter((value) => value.length > 20)) {
    assert.equal(hidden.includes(secret), false, 'no token is logged');
  }
});
