// Who may register: SERVICE_REGISTER and invitations over real sockets. What `pasted invite` prints:
// unit/commands-invite.test.ts; the statements: unit/store-governing.test.ts.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { type RunningApp, startApp } from '../support/app.ts';
import { presenting } from '../support/certificates.ts';
import { openDesk } from '../support/operator.ts';
import { audited, type Issued, PKI, register, send } from '../support/pki.ts';
import { assertError, statusCounts } from '../support/posting.ts';
import { head, onlyAnswer } from '../support/raw-http.ts';
import { makeRequestPem } from '../support/request.ts';
import { selectValue } from '../support/store.ts';
import { freshWork } from '../support/work.ts';

const BITS = 4;
const CLOSED = [403, { error: 'registration is closed', hint: 'nobody can register: ask the operator for a certificate' }];
const NEEDED_HINT = 'ask the operator for an invitation, and send its code as X-Invite';
const NEEDED = [403, { error: 'invitation required', hint: NEEDED_HINT }];
const WRONG = [403, { error: 'invitation required', hint: 'this one is unknown, was used, was withdrawn, or has expired' }];

/** The operator's command beside the running service; gives what it prints as JSON. */
function inviting(t: TestContext, app: RunningApp) {
  const desk = openDesk(t);
  const pasted = async (...words: string[]) => {
    const { code, stdout, stderr } = await desk.pasted(words, { SERVICE_DB: app.config.databasePath });
    assert.equal(code, 0, stderr);
    return stdout;
  };
  return {
    pasted,
    invite: async (...words: string[]) => (
      JSON.parse(await pasted('invite', 'create', '--json', ...words)) as { readonly id: number; readonly code: string }
    ),
  };
}

const showing = (code: string) => ({ 'X-Invite': code });

function usesLeft(app: RunningApp): unknown {
  return selectValue(app.config.databasePath, 'SELECT sum(uses_left) FROM invitations');
}

function certificates(app: RunningApp): unknown {
  return selectValue(app.config.databasePath, 'SELECT count(*) FROM certificates');
}

/** By the word of SERVICE_REGISTER: the answer without an invitation, with a good one and with another. */
const ANSWERS: Readonly<Record<Config['registerBy'], Readonly<Record<'without' | 'good' | 'other', unknown>>>> = {
  open: { without: undefined, good: undefined, other: WRONG },
  invite: { without: NEEDED, good: undefined, other: WRONG },
  off: { without: CLOSED, good: CLOSED, other: CLOSED },
};

for (const [registerBy, answers] of Object.entries(ANSWERS) as [Config['registerBy'], (typeof ANSWERS)['open']][]) {
  test(`SERVICE_REGISTER=${registerBy}: the challenge, /register and /pki/issue, before any work or body`, async (t) => {
    const app = await startApp(t, { ...PKI, registerBy, registerPowDifficultyBits: BITS });
    const { invite } = inviting(t, app);
    assert.equal((await send(app, 'POST /pki/ca')).status, 201);
    const codes = { without: undefined, good: (await invite('--uses', '9')).code, other: 'a'.repeat(26) };
    for (const [which, code] of Object.entries(codes)) {
      const headers: Record<string, string> = code === undefined ? {} : showing(code);
      const refusal = answers[which as keyof typeof codes];
      const asks = {
        challenge: () => send(app, 'GET /register/challenge', { headers }),
        register: () => register(app, {}, headers),
        ownKey: () => register(app, { csr: makeRequestPem() }, headers),
        issue: () => send(app, 'POST /pki/issue', { body: { common_name: 'alice' }, headers }),
      };
      for (const [name, ask] of Object.entries(asks)) {
        const answer = await ask();
        if (refusal !== undefined) assert.deepEqual([answer.status, answer.json], refusal, `${name} ${which}`);
        else if (which === 'good' && name === 'challenge') assert.deepEqual(answer.json, { enabled: false, difficulty: 0 });
        else if (which === 'without' && /register|ownKey/.test(name)) assert.equal(answer.json['error'], 'proof-of-work required');
        else assert.ok(answer.status < 300, `${name} ${which} ${JSON.stringify(answer.json)}`);
      }
      for (const path of ['/register', '/pki/issue']) {
        const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
        // The body never comes, so only a request that is refused before its body is answered.
        if (refusal === undefined) continue;
        const request = head(`POST ${path} HTTP/1.1`, 'Content-Length: 9', 'Content-Type: application/json', ...lines);
        const { status, json } = await onlyAnswer(t, app.port, request);
        assert.deepEqual([status, json()], refusal, `${path} ${which}`);
      }
    }
    assert.equal(usesLeft(app), registerBy === 'off' ? 9 : 6);
    const work = registerBy === 'open' ? await freshWork(app, '/register/challenge') : {};
    if (registerBy === 'open') assert.equal((await register(app, {}, work)).status, 200, 'as ever');
  });
}

test('SERVICE_REGISTER: GET / and its page say it, and with which line one registers', async (t) => {
  const browser = { headers: { Accept: 'text/html' } };
  for (const [registerBy, registration, line, page] of [
    ['open', undefined, 'sh pastec register --allow-http', /Registering gives larger limits, and your pastes are yours to list, change and delete\.<\/p>/],
    ['invite', { available: true, invitation_required: true, hint: NEEDED_HINT }, 'sh pastec register --allow-http --invite CODE', /takes an invitation/],
    ['off', { available: false, hint: 'nobody can register: ask the operator for a certificate' }, undefined, /Here nobody can register/],
  ] as const) {
    const app = await startApp(t, { ...PKI, registerBy });
    const { json } = await send(app, 'GET /');
    assert.deepEqual(json['registration'], registration, registerBy);
    assert.equal((json['client'] as Record<string, string>)['register'], line, registerBy);
    assert.match(await (await app.request('/', browser)).text(), page);
  }
  const unable = await startApp(t, { registerBy: 'invite' });
  assert.match(JSON.stringify((await send(unable, 'GET /')).json['registration']), /"available":false.*SERVICE_PKI_CA_PASSWORD/);
});

test('invitation: what can not be issued is told whoever is invited, and costs no use', async (t) => {
  const app = await startApp(t, { registerBy: 'invite', pkiCaPassword: '' });
  // It stands for one that the operator made while there was a password.
  const { invite } = inviting(t, app);
  const { code } = await invite();
  const { json } = await send(app, 'GET /register/challenge', { headers: showing(code) });
  assert.deepEqual([json['available'], json['enabled']], [false, false]);
  assert.equal((await register(app, {}, showing(code))).status, 500);
  assert.equal(usesLeft(app), 1);
});

test('invitation: of 40 registrations at once as many succeed as it has uses', async (t) => {
  const app = await startApp(t, { ...PKI, registerBy: 'invite', registerPowDifficultyBits: 20 });
  const { invite } = inviting(t, app);
  for (const uses of [1, 3]) {
    const before = Number(certificates(app));
    const { code } = await invite('--uses', String(uses));
    const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => (
      register(app, n % 2 === 0 ? {} : { csr: makeRequestPem() }, showing(code))
    )));
    const won = answers.filter(({ status }) => status === 200 || status === 201);
    assert.equal(won.length, uses);
    for (const { status, json } of answers) if (status > 201) assert.deepEqual([status, json], WRONG);
    assert.equal(Number(certificates(app)) - before, uses);
    assert.equal(usesLeft(app), 0);
    assert.deepEqual([(await register(app, {}, showing(code))).status], [403], 'and none later');
  }
});

test('invitation: /pki/issue and /register draw on the same uses', async (t) => {
  const app = await startApp(t, { ...PKI, registerBy: 'invite' });
  const { invite } = inviting(t, app);
  assert.equal((await send(app, 'POST /pki/ca')).status, 201);
  const { code } = await invite('--uses', '2');
  const issuing = { body: { common_name: 'x' }, headers: showing(code) };
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(app, 'POST /pki/issue', issuing)));
  assert.deepEqual(statusCounts(answers), { 201: 2, 403: 18 });
  assert.deepEqual([(await register(app, {}, showing(code))).json['error']], ['invitation required']);
});

test('invitation: good to its last second, and not once it is withdrawn; what is refused costs no use', async (t) => {
  const app = await startApp(t, { ...PKI, registerBy: 'invite' });
  const { invite, pasted } = inviting(t, app);
  const { code } = await invite('--for', '1h', '--uses', '3');
  const withdrawn = await invite();
  for (const body of ['x', { common_name: '' , p12_profile: 'none' }, { csr: 'none' }]) {
    assert.equal((await register(app, body, showing(code))).status, 400);
  }
  const twice = await onlyAnswer(t, app.port, head('POST /register HTTP/1.1', 'Connection: close', `X-Invite: ${code}`, `X-Invite: ${code}`, 'Content-Length: 0'));
  assert.equal(twice.status, 400);
  assert.equal(usesLeft(app), 4);
  await pasted('invite', 'withdraw', String(withdrawn.id));
  assert.deepEqual([(await register(app, {}, showing(withdrawn.code))).json], [WRONG[1]]);
  app.clock.advance(3_599_000);
  assert.equal((await register(app, {}, showing(code))).status, 200);
  app.clock.advance(1000);
  assert.deepEqual((await register(app, {}, showing(code))).json, WRONG[1]);
  assert.deepEqual((await send(app, 'GET /register/challenge', { headers: showing(code) })).json, WRONG[1]);
});

test('invitation: its code is in no log line, audit entry or file of the service', async (t) => {
  const app = await startApp(t, { ...PKI, registerBy: 'invite' });
  const { invite } = inviting(t, app);
  const { code } = await invite('--note', 'alice');
  const { headers } = await register(app, {}, showing(code));
  const admin = { fingerprint_sha1: headers.get('x-fingerprint-sha1') } as Issued;
  await register(app, {}, showing(code));
  const entries = await audited(app, admin);
  assert.deepEqual(entries.map(({ event }) => event), ['cert_issued', 'cert_issued', 'admin_granted']);
  assert.ok(!JSON.stringify([app.logged, entries]).includes(code));
  for (const suffix of ['', '-wal']) assert.ok(!readFileSync(`${app.config.databasePath}${suffix}`).includes(code));
});

test('SERVICE_REGISTER=off: the operator still issues, and who has a certificate renews it', async (t) => {
  const app = await startApp(t, { ...PKI, registerBy: 'off' });
  const desk = openDesk(t);
  const environment = { SERVICE_DB: app.config.databasePath, SERVICE_REGISTER: 'off', SERVICE_PKI_CA_PASSWORD: PKI.pkiCaPassword };
  const { code, stdout, stderr } = await desk.pasted(['admin', 'create', '--out', join(desk.folder, 'a.p12'), '--json'], environment);
  assert.equal(code, 0, stderr);
  const { fingerprint_sha1: fingerprint } = JSON.parse(stdout) as Issued;
  const renewed = await app.request('/register/renew', { method: 'POST', headers: presenting(fingerprint) });
  assert.deepEqual([renewed.status, renewed.headers.get('x-is-admin')], [200, '1']);
  await renewed.arrayBuffer();
});

test('without SERVICE_PKI_ENABLED: holders list and revoke, and everyone else is told that it is off', async (t) => {
  const app = await startApp(t, { ...PKI, pkiEnabled: false });
  const off = { hint: 'the operator can set SERVICE_PKI_ENABLED' };
  const [one, other] = await Promise.all(['one', 'other'].map(async (name) => {
    const { headers } = await register(app, { common_name: name });
    return String(headers.get('x-fingerprint-sha1'));
  }));
  const { status, json } = await send(app, 'GET /pki/certs', { as: one! });
  assert.equal(status, 200, 'a holder lists');
  const [{ serial, common_name: name } = { serial: '', common_name: '' }, ...more] = json['certificates'] as Record<string, string>[];
  assert.deepEqual([name, more.length], ['one', 0]);
  const revoke = `POST /pki/revoke/${serial}`;
  for (const as of [undefined, 'f'.repeat(40)]) {
    const sending = as === undefined ? {} : { as };
    for (const request of ['GET /pki/certs', revoke]) {
      assertError(await send(app, request, sending), 404, 'PKI not enabled', off);
    }
  }
  assertError(await send(app, revoke, { as: other! }), 403, 'permission denied');
  for (const request of ['POST /pki/ca', 'POST /pki/issue', 'GET /pki/ca.crt', 'GET /pki/ca.crl']) {
    assertError(await send(app, request, { as: one! }), 404, 'PKI not enabled', off);
  }
  const renewed = await app.request('/register/renew', { method: 'POST', headers: presenting(one!) });
  await renewed.arrayBuffer();
  const next = String(renewed.headers.get('x-fingerprint-sha1'));
  assert.equal((await send(app, 'GET /pki/certs', { as: next })).json['total'], 2, 'with the renewed one too');
  const listed = (await send(app, 'GET /pki/certs', { as: next })).json['certificates'] as Record<string, string>[];
  const inUse = listed.find((certificate) => certificate['fingerprint_sha1'] === next)!;
  assert.equal((await send(app, `POST /pki/revoke/${inUse['serial']}`, { as: next })).status, 200, 'and revokes');
  // Whoever repeats the call sees that it was carried out; nothing is listed for a holder who is revoked.
  assertError(await send(app, `POST /pki/revoke/${inUse['serial']}`, { as: next }), 409, 'certificate already revoked');
  assertError(await send(app, 'GET /pki/certs', { as: next }), 404, 'PKI not enabled', off);
});

test('register: an invitation takes the place of work, not of the rate: it counts before a key is made', async (t) => {
  const app = await startApp(t, { ...PKI, registerBy: 'invite', registerPowDifficultyBits: BITS, rateMax: 2 });
  const { code } = await inviting(t, app).invite('--uses', '9');
  const ask = (body: object) => send(app, 'POST /register', { body, headers: showing(code) });
  assert.equal((await ask({ p12_profile: 'none' })).status, 400);
  assert.equal((await ask({ csr: makeRequestPem() })).status, 201);
  const refused = await ask({ csr: makeRequestPem() });
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '60']);
  assert.equal(usesLeft(app), 8);
});
