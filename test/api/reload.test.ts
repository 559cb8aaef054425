// App.reload: what takes effect while the service runs, and what stays as it was. The signal that asks for it:
// unit/commands-serve-reload.test.ts and tls-main.test.ts.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import type { Agent } from 'node:https';
import { test } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { WorkQueue, WorkQueueFull } from '../../src/limits/work-queue.ts';
import { startApp, type RunningApp } from '../support/app.ts';
import { presenting } from '../support/certificates.ts';
import { CA_PASSWORD, PKI, send, withAdmin, withRestarted } from '../support/pki.ts';
import { assertError, assertStored, post } from '../support/posting.ts';
import { oneConnection, serverPair, shownBy, startTlsApp, type RunningTlsApp } from '../support/tls.ts';
import { freshWork } from '../support/work.ts';

const CANARY = 'canary-2718281828';

function reload(app: RunningApp, overrides: Partial<Config>): Promise<readonly string[]> {
  return app.app.reload({ ...app.config, ...overrides });
}

/** The messages about settings that were not replaced; none says a secret. */
function kept({ logged }: RunningApp): string[] {
  assert.ok(!JSON.stringify(logged).includes(CANARY), 'no secret is logged');
  const entries = logged.filter(({ event }) => event === 'setting not replaced');
  return entries.map(({ details }) => String(details?.['message']));
}

test('reload: a new proxy secret counts from the next request on; one that has gone stays', async (t) => {
  const app = await startApp(t, { proxySecret: 'first' });
  const owner = presenting('a'.repeat(40));
  const statusWith = async (secret: string): Promise<number> =>
    (await app.request('/pastes', { headers: { ...owner, 'X-Proxy-Secret': secret } })).status;
  assert.deepEqual([await statusWith('first'), await statusWith(CANARY)], [200, 401]);
  assert.deepEqual(await reload(app, { proxySecret: CANARY }), ['SERVICE_PROXY_SECRET']);
  assert.deepEqual([await statusWith('first'), await statusWith(CANARY)], [401, 200]);
  assert.deepEqual(await reload(app, { proxySecret: CANARY }), [], 'the same again');
  assert.deepEqual(await reload(app, { proxySecret: '' }), []);
  assert.deepEqual(await app.app.reload(undefined), []);
  assert.deepEqual([await statusWith(''), await statusWith(CANARY)], [401, 200]);
  assert.deepEqual(kept(app), ['SERVICE_PROXY_SECRET is no longer set; the one before stays until the next start']);
});

test('reload: a new key for challenges; those that the one before has signed are refused', async (t) => {
  const app = await startApp(t, { powDifficultyBits: 4 });
  const before = await freshWork(app);
  assert.deepEqual(await reload(app, { powSecret: CANARY }), ['SERVICE_POW_SECRET']);
  const { status, json } = await post(app, 'content', before);
  assert.deepEqual([status, json['error']], [400, 'Proof-of-work failed: bad signature']);
  assertStored(await post(app, 'content', await freshWork(app)));
  assert.deepEqual(kept(app), []);
});

test('reload: a CA password is taken when it opens the stored key, and not otherwise', async (t) => {
  const before = await startApp(t, PKI);
  await withAdmin(before);
  const wrong = { pkiCaPassword: `${CANARY}, wrong` };
  assert.deepEqual(await reload(before, wrong), []);
  assert.deepEqual(kept(before), ['SERVICE_PKI_CA_PASSWORD does not open the stored key; the one before stays']);
  assert.ok(before.logged.some(({ event }) => event === 'CA key not usable'));
  const issuing = { body: { common_name: 'alice' } };
  assert.equal((await send(before, 'POST /pki/issue', issuing)).status, 201);
  await withRestarted(t, before, wrong, async (after) => {
    assertError(await send(after, 'POST /pki/issue', issuing), 500, 'certificate issuance failed');
    assert.deepEqual(await reload(after, { pkiCaPassword: CA_PASSWORD }), ['SERVICE_PKI_CA_PASSWORD']);
    assert.equal((await send(after, 'POST /pki/issue', issuing)).status, 201);
  });
});

test('reload: a CA password that cannot be tried now stays away alone, and is taken by the next reload', async (t) => {
  const before = await startApp(t, PKI);
  await withAdmin(before);
  await withRestarted(t, before, { pkiCaPassword: 'another' }, async (after) => {
    const full = t.mock.method(WorkQueue.prototype, 'enter', () => Promise.reject(new WorkQueueFull('full')));
    const next = { powSecret: CANARY, pkiCaPassword: CA_PASSWORD };
    assert.deepEqual(await reload(after, next), ['SERVICE_POW_SECRET'], 'what has taken effect is named');
    const reason = 'could not be tried: too many password checks in progress; the one before stays';
    assert.deepEqual(kept(after), [`SERVICE_PKI_CA_PASSWORD ${reason}`]);
    full.mock.restore();
    assert.deepEqual(await reload(after, next), ['SERVICE_PKI_CA_PASSWORD']);
  });
});

test('reload: a CA password where there was none makes registering possible', async (t) => {
  const app = await startApp(t, { ...PKI, pkiCaPassword: '' });
  const registers = async (): Promise<boolean> =>
    'register' in ((await send(app, 'GET /')).json['client'] as object);
  assert.equal(await registers(), false);
  assert.equal((await app.request('/register', { method: 'POST' })).status, 500);
  assert.deepEqual(await reload(app, { pkiCaPassword: CANARY }), ['SERVICE_PKI_CA_PASSWORD']);
  assert.equal(await registers(), true);
  assert.equal((await app.request('/register', { method: 'POST' })).status, 200);
  assert.deepEqual(kept(app), []);
});

async function remotePort(app: RunningTlsApp, agent: Agent): Promise<number | undefined> {
  assert.equal((await app.ask('GET /health', { agent })).status, 200);
  return Object.values(agent.freeSockets)[0]?.[0]?.localPort;
}

test('reload: a new certificate is shown from the next connection on; those that are open go on', async (t) => {
  const first = await serverPair();
  const app = await startTlsApp(t, {}, { pair: first });
  const agent = oneConnection(t);
  const port = await remotePort(app, agent);
  assert.equal(await shownBy(app.port), first.cert);
  const second = await serverPair();
  writeFileSync(app.config.tlsCertPath, second.cert);
  writeFileSync(app.config.tlsKeyPath, second.key);
  assert.deepEqual(await app.app.reload(undefined), ['SERVICE_TLS_CERT']);
  assert.equal(await shownBy(app.port), second.cert);
  assert.equal(await remotePort(app, agent), port, 'the same connection');
  assert.deepEqual(await app.app.reload(undefined), []);
  await assert.rejects(app.ask('GET /', { version: 'TLSv1.1' }));
});

test('reload: a certificate that cannot be used is logged, and the one before is shown', async (t) => {
  const [first, second] = await Promise.all([serverPair(), serverPair()]);
  const app = await startTlsApp(t, {}, { pair: first });
  for (const [cert, key] of [[second.cert, first.key], [CANARY, second.key], [second.cert, CANARY], ['', '']]) {
    writeFileSync(app.config.tlsCertPath, cert ?? '');
    writeFileSync(app.config.tlsKeyPath, key ?? '');
    assert.deepEqual(await app.app.reload(app.config), []);
    assert.equal(await shownBy(app.port), first.cert);
  }
  assert.deepEqual(kept(app).map((message) => message.split(':')[0]), [
    'SERVICE_TLS_KEY', 'SERVICE_TLS_CERT', 'SERVICE_TLS_KEY', 'SERVICE_TLS_CERT',
  ]);
});
