// What the PKI's endpoints refuse before they read a body, and which bodies they take, over real sockets. What they do
// with a body that they have read is in pki.test.ts, registration.test.ts and revocation.test.ts.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { DAY_SECONDS } from '../../src/core/time.ts';
import type { RunningApp } from '../support/app.ts';
import { startApp } from '../support/app.ts';
import { newFingerprint, presenting, setRevoked } from '../support/certificates.ts';
import { createAuthority, issue, PKI, register, send, withRestarted } from '../support/pki.ts';
import { assertError, rateOf } from '../support/posting.ts';
import { head, onlyAnswer, openRaw } from '../support/raw-http.ts';
import { freshWork } from '../support/work.ts';

const JSON_TYPE = 'Content-Type: application/json';
const UNFINISHED = ['Content-Length: 30000', JSON_TYPE];
const BITS = 4;

/** Status and error of a request whose body is never sent: an endpoint that read it first would answer nothing. */
async function refusedUnread(
  t: TestContext,
  app: RunningApp,
  path: string,
  lines: readonly string[] = [],
): Promise<readonly [number, unknown]> {
  const connection = await openRaw(t, app.port);
  connection.send(head(`POST ${path} HTTP/1.1`, ...UNFINISHED, ...lines));
  const answer = await connection.next();
  connection.socket.destroy();
  return [answer.status, answer.json()['error']];
}

function linesOf(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}

test('POST /register: a server that can issue nothing says so before it asks for work or a body', async (t) => {
  const app = await startApp(t, { registerPowDifficultyBits: BITS });
  assert.deepEqual(await refusedUnread(t, app, '/register'), [500, 'CA password not configured']);
  const ready = await startApp(t, { ...PKI, registerPowDifficultyBits: BITS });
  await createAuthority(ready);
  await withRestarted(t, ready, { pkiCaPassword: 'wrong', registerPowDifficultyBits: BITS }, async (after) => {
    assert.deepEqual(await refusedUnread(t, after, '/register'), [500, 'certificate issuance failed']);
    const tried = after.logged.filter(({ event }) => event === 'CA key not usable');
    assert.equal(tried.length, 1, 'a key that does not open is tried once');
  });
});

test('POST /register: work is looked at before the body, and a body that is refused costs none', async (t) => {
  const app = await startApp(t, { ...PKI, registerPowDifficultyBits: BITS });
  assert.deepEqual(await refusedUnread(t, app, '/register'), [400, 'proof-of-work required']);
  const wrong = ['X-PoW-Token: x', 'X-PoW-Solution: 1'];
  assert.deepEqual(await refusedUnread(t, app, '/register', wrong), [400, 'Proof-of-work failed: malformed token']);
  const work = await freshWork(app, '/register/challenge');
  assert.equal((await register(app, '[]', work)).status, 400);
  assert.equal((await register(app, undefined, work)).status, 200);
  assert.deepEqual(await refusedUnread(t, app, '/register', linesOf(work)), [400, 'Proof-of-work failed: challenge already used']);
});

test('POST /pki/ca: a CA that is there, and a password that is not, are told before the body is read', async (t) => {
  const app = await startApp(t, { ...PKI, pkiCaPassword: '' });
  assert.deepEqual(await refusedUnread(t, app, '/pki/ca'), [500, 'CA password not configured']);
  const ready = await startApp(t, PKI);
  await createAuthority(ready);
  assert.deepEqual(await refusedUnread(t, ready, '/pki/ca'), [409, 'CA already exists']);
});

test('POST /pki/revoke/{serial}: who may not is told before the body is read', async (t) => {
  const app = await startApp(t, PKI);
  await createAuthority(app);
  const { serial, fingerprint_sha1: holder } = await issue(app);
  const revoke = (fingerprint: string, of = serial) => (
    refusedUnread(t, app, `/pki/revoke/${of}`, linesOf(presenting(fingerprint)))
  );
  assert.deepEqual(await refusedUnread(t, app, `/pki/revoke/${serial}`), [401, 'authentication required']);
  assert.deepEqual(await revoke(newFingerprint()), [403, 'permission denied']);
  assert.deepEqual(await revoke(holder, '4'.repeat(32)), [404, 'certificate not found']);
  setRevoked(app.config.databasePath, serial, 1);
  assert.deepEqual(await revoke(holder), [409, 'certificate already revoked']);
});

test('POST /pki/issue: counts against the creation rate of its address, and tells where that stands', async (t) => {
  const app = await startApp(t, { ...PKI, rateMax: 3, rateTrustedFactor: 2 });
  await createAuthority(app);
  const named = { body: { common_name: 'alice' } };
  const first = await send(app, 'POST /pki/issue', named);
  assert.deepEqual([first.status, rateOf(first)?.limit, rateOf(first)?.remaining], [201, 3, 2]);
  assertError(await send(app, 'POST /pki/issue'), 400, 'common_name required');
  await app.store('x');
  const refused = await send(app, 'POST /pki/issue', named);
  assert.deepEqual([refused.status, refused.json['error'], rateOf(refused)?.remaining], [429, 'rate limit exceeded', 0]);
  assert.equal(refused.headers.get('retry-after'), '60');
  assert.deepEqual(await refusedUnread(t, app, '/pki/issue'), [429, 'rate limit exceeded']);
  const trusted = await send(app, 'POST /pki/issue', { ...named, as: String(first.json['fingerprint_sha1']) });
  assert.deepEqual([trusted.status, rateOf(trusted)?.limit, rateOf(trusted)?.remaining], [201, 6, 2]);
  const elsewhere = await send(app, 'POST /pki/issue', { ...named, headers: { 'X-Forwarded-For': '192.0.2.1' } });
  assert.equal(elsewhere.status, 201);
});

test('POST /pki/issue: 404 where PKI is off, before rate and body', async (t) => {
  const app = await startApp(t, { rateMax: 1 });
  for (let time = 0; time < 3; time += 1) {
    assert.deepEqual(await refusedUnread(t, app, '/pki/issue'), [404, 'PKI not enabled']);
  }
});

const TYPES = [
  'application/json', 'application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=x', 'text/json',
  'application/json, text/plain', '',
];

test('/register and /pki/*: a body is JSON whatever its type says, as `curl -d` sends it', async (t) => {
  const app = await startApp(t, PKI);
  const ask = async (path: string, lines: readonly string[], body: string, as: readonly string[] = []) => {
    const answer = await onlyAnswer(t, app.port, head(`POST ${path} HTTP/1.1`, 'Connection: close', ...as, ...lines) + body);
    return answer;
  };
  const assertRead = async (path: string, as: readonly string[] = []): Promise<void> => {
    for (const lines of [...TYPES.map((type) => [`Content-Type: ${type}`]), [], [JSON_TYPE, JSON_TYPE]]) {
      for (const [framing, body] of [['Content-Length: 2', '[]'], ['Transfer-Encoding: chunked', '2\r\n[]\r\n0\r\n\r\n']] as const) {
        const { status, json } = await ask(path, [framing, ...lines], body, as);
        assert.deepEqual([status, json()], [400, { error: 'invalid JSON body: expected an object' }], `${path} ${lines}`);
      }
    }
  };
  await assertRead('/pki/ca');
  await createAuthority(app);
  await assertRead('/pki/issue');
  await assertRead('/register');
  const { serial, fingerprint_sha1: holder } = await issue(app);
  await assertRead(`/pki/revoke/${serial}`, linesOf(presenting(holder)));
  for (const type of TYPES) {
    const body = JSON.stringify({ common_name: `as ${type}` });
    const { status, json } = await ask('/pki/issue', [`Content-Length: ${body.length}`, `Content-Type: ${type}`], body);
    assert.deepEqual([status, json()['common_name']], [201, `as ${type}`.trim()]);
  }
  const empty = [['Content-Length: 0', ''], ['Transfer-Encoding: chunked', '0\r\n\r\n'], ['X-None: 1', '']] as const;
  for (const [framing, body] of empty) {
    for (const lines of [['Content-Type: text/plain'], [JSON_TYPE], []]) {
      assert.equal((await ask('/register', [framing, ...lines], body)).status, 200, `${framing} ${lines}`);
    }
  }
});

async function challengeOf(app: RunningApp): Promise<readonly [Record<string, unknown>, string]> {
  const { json } = await send(app, 'GET /register/challenge');
  const text = await app.request('/register/challenge', { headers: { Accept: 'text/plain' } });
  return [json, await text.text()];
}

/** The members that say that nothing can be issued, here and in the index. */
async function assertUnavailable(app: RunningApp, hint: string): Promise<void> {
  const [{ available, hint: given, ...challenge }, text] = await challengeOf(app);
  assert.deepEqual([available, given, text], [false, hint, `unavailable ${hint}\n`]);
  assert.deepEqual(Object.keys(challenge), ['enabled', 'difficulty', 'nonce', 'expires', 'token']);
  const { json: index } = await send(app, 'GET /');
  assert.deepEqual(index['registration'], { available: false, hint });
  assert.equal('register' in (index['client'] as object), false);
}

test('GET /register/challenge, GET /: say when nothing can be issued, and why, before anyone works', async (t) => {
  const app = await startApp(t, { ...PKI, registerPowDifficultyBits: BITS });
  const assertAvailable = async (): Promise<void> => {
    const [challenge, text] = await challengeOf(app);
    assert.deepEqual(Object.keys(challenge), ['enabled', 'difficulty', 'nonce', 'expires', 'token']);
    assert.match(text, /^[0-9a-f]{32} /);
    const { json: index } = await send(app, 'GET /');
    assert.deepEqual([index['registration'], 'register' in (index['client'] as object)], [undefined, true]);
  };
  await assertAvailable();
  await createAuthority(app);
  await assertAvailable();
  const words = 'no certificates can be issued: SERVICE_PKI_CA_PASSWORD';
  const settings = { registerPowDifficultyBits: BITS };
  await withRestarted(t, app, { ...settings, pkiCaPassword: '' }, (after) => (
    assertUnavailable(after, `${words} is not set here; tell the operator`)
  ));
  await withRestarted(t, app, { ...settings, pkiCaPassword: 'wrong' }, async (after) => {
    await assertUnavailable(after, `${words} does not open the CA key; tell the operator`);
    assert.deepEqual(await after.app.reload({ ...after.config, pkiCaPassword: PKI.pkiCaPassword }), ['SERVICE_PKI_CA_PASSWORD']);
    const [challenge] = await challengeOf(after);
    assert.equal('available' in challenge, false, 'once the operator has mended it');
    after.clock.advance(after.config.pkiCaDays * DAY_SECONDS * 1000);
    const hint = 'no certificates can be issued: the CA is not valid now; tell the operator';
    assert.deepEqual((await send(after, 'GET /')).json['registration'], { available: false, hint }, 'nobody else has asked');
    await assertUnavailable(after, hint);
    assertError(await send(after, 'POST /register'), 500, 'certificate issuance failed');
    using db = new DatabaseSync(after.config.databasePath, { timeout: 5000 });
    db.exec('UPDATE authority SET expires_at = 2 * expires_at');
    const { json: index } = await send(after, 'GET /');
    assert.equal(index['registration'], undefined, 'once a command has renewed it, though nobody else has asked');
  });
});
