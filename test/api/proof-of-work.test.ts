// GET /challenge and the proof-of-work of POST / over real sockets. The rise of the difficulty is antiflood.test.ts;
// what refusals of other kinds leave of a token is check-order.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SETTINGS } from '../../src/config/settings.ts';
import { HOUR_SECONDS } from '../../src/core/time.ts';
import { challengeToken, type Purpose } from '../../src/crypto/digest.ts';
import { binaryContent, type RunningApp, startApp } from '../support/app.ts';
import { type Answer, assertError, assertStored, assertWorkRefused, post, statusCounts } from '../support/posting.ts';
import { head, openRaw, type RawConnection } from '../support/raw-http.ts';
import { selectValue, strayChunks } from '../support/store.ts';
import { findSolution, freshWork, getChallenge, showing, solve, workBits, workHint } from '../support/work.ts';

const SECRET = 'a key that the tests know';
const BITS = 6;

/** Nonces are never the same twice. */
let lastNonce = 0;
function newNonce(): string {
  return (lastNonce += 1).toString(16).padStart(32, '0');
}

/** A token as the service would sign it. */
function tokenOf(
  app: RunningApp,
  nonce: string,
  parts: { difficultyBits?: number; purpose?: Purpose; key?: string } = {},
): string {
  const { difficultyBits = BITS, purpose = 'paste', key = SECRET } = parts;
  const expiresAt = app.clock.unixMs() / 1000 + 300;
  return challengeToken(Buffer.from(key), purpose, { nonce, expiresAt, difficultyBits });
}

function assertFailed(answer: Answer, reason: string): void {
  assertWorkRefused(answer, `Proof-of-work failed: ${reason}`);
}

function storedPastes({ config }: RunningApp): number {
  return Number(selectValue(config.databasePath, 'SELECT count(*) FROM pastes'));
}

test('GET /challenge and POST / with a known key', async (t) => {
  const app = await startApp(t, { powDifficultyBits: BITS, powSecret: SECRET });

  await t.test('GET /challenge: exactly the contract\'s members, signed, and new each time', async () => {
    const challenge = await getChallenge(app);
    const { nonce } = challenge;
    const expires = app.clock.unixMs() / 1000 + 300;
    assert.match(nonce, /^[0-9a-f]{32}$/);
    const token = tokenOf(app, nonce);
    assert.deepEqual(challenge, {
      enabled: true, difficulty: BITS, nonce, expires, token, base_difficulty: BITS, elevated: false,
    });
    assert.notEqual((await getChallenge(app)).nonce, nonce);
    const head = await app.request('/challenge', { method: 'HEAD' });
    assert.equal(head.status, 200);
    assert.deepEqual(['content-type', 'vary'].map((name) => head.headers.get(name)), ['application/json', 'Accept']);
  });

  await t.test('GET /challenge: one line for a client that prefers text, of a challenge like any other', async () => {
    const response = await app.request('/challenge', { headers: { Accept: 'text/plain' } });
    assert.match(response.headers.get('content-type') ?? '', /^text\/plain/);
    assert.equal(response.headers.get('vary'), 'Accept');
    const line = await response.text();
    assert.match(line, /^[^ \n]+ [^ \n]+ [^ \n]+ [^ \n]+\n$/);
    const [nonce = '', difficulty, expires, token = ''] = line.trimEnd().split(' ');
    assert.deepEqual([difficulty, expires], [String(BITS), String(app.clock.unixMs() / 1000 + 300)]);
    assertStored(await post(app, 'paid for', showing(token, solve(nonce, BITS))));
  });

  await t.test('POST /: without a token or a solution the work is asked for, with a hint', async () => {
    const stored = storedPastes(app);
    const token = tokenOf(app, newNonce());
    const incomplete: Record<string, string>[] = [{}, { 'X-PoW-Token': token }, { 'X-PoW-Solution': '1' }];
    for (const headers of incomplete) {
      assertError(await post(app, 'x', headers), 400, 'proof-of-work required', { hint: workHint(app.url) });
    }
    assert.equal(storedPastes(app), stored);
  });

  await t.test('POST /: a token must be of the form, and signed for a paste by this service', async () => {
    const stored = storedPastes(app);
    const nonce = newNonce();
    const token = tokenOf(app, nonce);
    const solution = solve(nonce, BITS);
    const unsigned = token.split(':').slice(0, 3).join(':');
    for (const bad of ['', 'x', token.slice(0, -1), `${token}0`, unsigned, token.toUpperCase()]) {
      assertFailed(await post(app, 'x', showing(bad, solution)), 'malformed token');
    }

    const [, expires, difficulty, signature = ''] = token.split(':');
    const forged = [
      [nonce.replace('0', '1'), expires, difficulty, signature],
      [nonce, Number(expires) + 1, difficulty, signature],
      [nonce, expires, BITS - 1, signature],
      [nonce, expires, 0, signature],
      [nonce, 0, difficulty, signature],
      [nonce, expires, difficulty, signature.replace(/.$/, (last) => (last === '0' ? '1' : '0'))],
    ].map((fields) => fields.join(':'));
    const foreign = ([{ purpose: 'register' }, { key: `${SECRET}.` }, { key: '' }] as const)
      .map((parts) => tokenOf(app, nonce, parts));
    for (const bad of [...forged, ...foreign]) {
      assertFailed(await post(app, 'x', showing(bad, solution)), 'bad signature');
    }
    assert.equal(storedPastes(app), stored);
    assertStored(await post(app, 'x', showing(token, solution)), 'the same with nothing changed');
  });

  await t.test('POST /: a challenge is good until the second of its expiry', async () => {
    const early = await freshWork(app);
    const late = await freshWork(app);
    const { expires } = await getChallenge(app);
    app.clock.advance(expires * 1000 - 1 - app.clock.unixMs());
    assertStored(await post(app, 'just in time', early));
    app.clock.advance(1);
    assertFailed(await post(app, 'just too late', late), 'challenge expired');
    app.clock.advance(1000);
    assertFailed(await post(app, 'too late', late), 'challenge expired');
  });

  await t.test('POST /: a challenge from a clock that was ahead is good again within an hour of its time, and not before', async () => {
    const ttlMs = app.config.powTtlSeconds * 1000;
    app.clock.jump(ttlMs + 3_600_000);
    const [near, far] = [await freshWork(app), await freshWork(app)];
    app.clock.jump(-ttlMs - 3_601_000);
    assertFailed(await post(app, 'from too far ahead', far), 'challenge expired');
    app.clock.jump(ttlMs + 1000);
    assertStored(await post(app, 'from an hour ahead', near));
    app.clock.jump(3_600_000 - ttlMs);
  });

  await t.test('POST /: a solution is one to twenty decimal digits, taken as written', async () => {
    const nonce = newNonce();
    const token = tokenOf(app, nonce);
    const solvedBy = (form: (n: number) => string): string => findSolution(nonce, (bits) => bits >= BITS, form);
    const digits = (count: number) => (n: number) => String(n).padStart(count, '1');
    const malformed = [
      '', 'x', '1.0', '1e3', '1 2', '\u0663', solvedBy((n) => `-${n}`), solvedBy((n) => `+${n}`),
      solvedBy((n) => `0x${n.toString(16)}`), solvedBy((n) => (n + 10).toString(16).padStart(9, 'a')),
      solvedBy(digits(21)), solvedBy((n) => String(n).padStart(21, '0')),
    ];
    for (const solution of malformed) {
      const utf8 = Buffer.from(solution).toString('latin1');
      assertFailed(await post(app, 'x', showing(token, utf8)), 'malformed solution');
    }

    // 7 is not 07: each is hashed as it is written.
    let n = 0;
    while (workBits(nonce, `0${n}`) < BITS || workBits(nonce, `${n}`) >= BITS) n += 1;
    assertFailed(await post(app, 'x', showing(token, `${n}`)), 'insufficient work');
    assertStored(await post(app, 'x', showing(token, `0${n}`)));

    for (const form of [digits(19), digits(20), (count: number) => String(count).padStart(20, '0')]) {
      const other = newNonce();
      const solution = findSolution(other, (bits) => bits >= BITS, form);
      assertStored(await post(app, 'x', showing(tokenOf(app, other), solution)), solution);
    }
  });

  await t.test('POST /: the signed difficulty is to be satisfied, to the bit, whatever is asked for now', async () => {
    for (const difficultyBits of [1, BITS - 1, BITS, BITS + 1, BITS + 4]) {
      for (const bits of [difficultyBits - 1, difficultyBits, difficultyBits + 1]) {
        const nonce = newNonce();
        const work = showing(tokenOf(app, nonce, { difficultyBits }), findSolution(nonce, (found) => found === bits));
        const answer = await post(app, 'x', work);
        if (bits >= difficultyBits) assertStored(answer, `${bits} bits for ${difficultyBits}`);
        else assertFailed(answer, 'insufficient work');
      }
    }
  });

  await t.test('POST /: refused work costs nothing: the right solution still buys a paste', async () => {
    const { token, nonce } = await getChallenge(app);
    assertFailed(await post(app, 'x', showing(token, findSolution(nonce, (bits) => bits < BITS))), 'insufficient work');
    assertFailed(await post(app, 'x', showing(token, 'x')), 'malformed solution');
    assertStored(await post(app, 'x', showing(token, solve(nonce, BITS))));
  });

  await t.test('POST /: of 20 concurrent uses of one token exactly one buys a paste', async () => {
    for (const bytes of [100, 100_000]) {
      const stored = storedPastes(app);
      const headers = await freshWork(app);
      const answers = await Promise.all(Array.from({ length: 20 }, () => post(app, binaryContent(bytes), headers)));
      assert.deepEqual(statusCounts(answers), { 201: 1, 400: 19 });
      for (const answer of answers) if (answer.status === 400) assertFailed(answer, 'challenge already used');
      assert.equal(storedPastes(app), stored + 1);
      assertFailed(await post(app, binaryContent(bytes), headers), 'challenge already used');
    }
    await app.app.close();
    assert.equal(strayChunks(app.config.databasePath), 0);
  });
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

test('POST /: a token buys one paste, however long after its expiry an upload that it began ends', async (t) => {
  const app = await startApp(t, { powDifficultyBits: BITS });
  const upload = async (work: Record<string, string>) => {
    const connection = await openRaw(t, app.port);
    const shown = Object.entries(work).map(([name, value]) => `${name}: ${value}`);
    connection.send(`${head('POST / HTTP/1.1', ...shown, 'Content-Length: 2')}a`);
    return connection;
  };
  const [used, unused, late] = [await freshWork(app), await freshWork(app), await freshWork(app)];
  const [again, slow, slower] = [await upload(used), await upload(unused), await upload(late)];
  // The heads of all three have been read once this is answered.
  assertStored(await post(app, 'at once', used));
  const finish = async (connection: RawConnection): Promise<[number, unknown]> => {
    connection.send('b');
    const answer = await connection.next();
    return [answer.status, answer.json()['error']];
  };
  app.clock.jump((300 + HOUR_SECONDS) * 1000 - 1);
  await app.app.cleanup.run('used challenges');
  assert.deepEqual(await finish(slow), [201, undefined], 'an hour is let for slow uploads');
  for (const pastMs of [1, HOUR_SECONDS * 1000]) {
    app.clock.jump(pastMs);
    await app.app.cleanup.run('used challenges');
    const connection = pastMs === 1 ? slower : again;
    assert.deepEqual(await finish(connection), [400, 'Proof-of-work failed: challenge expired']);
  }
  assert.equal(selectValue(app.config.databasePath, 'SELECT count(*) FROM spent_challenges'), 0);
  assert.equal(storedPastes(app), 2);
});

test('POST /: after a restart used tokens stay used and others are good, by the key that was kept', async (t) => {
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
