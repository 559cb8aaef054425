// pastec where certificates count and where they do not: over https with an authority of one's own, and over http,
// where it says so before it works for one.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { answerAlways } from '../support/answer-always.ts';
import { startApp } from '../support/app.ts';
import { isInstalled } from '../support/programs.ts';
import { clientOf } from '../support/shells.ts';
import { serverPair, startTlsApp } from '../support/tls.ts';

const ISSUING = { pkiEnabled: true, pkiCaPassword: 'of the authority', registerPowDifficultyBits: 8 } as const;
const SOLVER = { PASTEC_SOLVER: 'node' };
const ADVICE = 'a certificate counts over https only: give the https:// address of the server, by --server';
const NO_TOKEN = 'no delete token for it is kept on this machine: it takes the certificate of its owner';
const ALLOW = ['register', '--allow-http'] as const;

function configure(home: string, text: string): void {
  mkdirSync(join(home, '.config', 'pastec'), { recursive: true });
  writeFileSync(join(home, '.config', 'pastec', 'config'), text);
}

test('pastec register: over http it asks for nothing and names https, unless it is told to go on', async (t) => {
  const app = await startApp(t, ISSUING);
  const { run } = clientOf(t, app.url);
  const refused = await run(['register'], { environment: SOLVER });
  assert.deepEqual([refused.code, refused.text], [2, '']);
  assert.ok(refused.stderr.startsWith(`pastec: ${ADVICE}\n  --allow-http `), refused.stderr);
  assert.match(refused.stderr, / on your own machine any --fingerprint will do\n$/, 'where there may be no https at all');
  assert.deepEqual(app.logged.filter((entry) => entry.event === 'request'), []);

  const allowed = await run(ALLOW, { environment: SOLVER });
  assert.equal(allowed.code, 0);
  const [, file = ''] = /^pastec: not sent over http: to use it, pastec --server https:\/\/HOST cert import (\S+)\n$/
    .exec(allowed.stderr) ?? assert.fail(allowed.stderr);
  if (!isInstalled(t, 'openssl')) return;
  assert.equal((await run(['--server', 'https://paste.example', 'cert', 'import', file])).code, 0);
});

test('pastec, ls, rm, update, status and info: say over http why the certificate does not count', async (t) => {
  const app = await startApp(t, ISSUING);
  const { run } = clientOf(t, app.url);
  const id = await app.store('x');
  for (const args of [['ls'], ['rm', id], ['update', '-e', '1h', id]]) {
    const { code, stderr } = await run(args);
    const hint = args[0] === 'rm' ? `${NO_TOKEN}; ${ADVICE}` : ADVICE;
    assert.deepEqual([code, stderr], [4, `pastec: authentication required\n  ${hint}\n`]);
  }
  for (const args of [['status'], ['info', id]]) {
    assert.equal((await run(args)).stderr, '', 'nobody without a certificate is told about it');
  }
  await run(ALLOW, { environment: SOLVER });
  assert.equal((await run(['status'])).stderr, `pastec: the certificate for ${app.url} was not sent: ${ADVICE}\n`);
  const stored = await run([], { input: 'x' });
  const nobodys = `stored as nobody's: ${app.url} saw no identity that counts`;
  assert.equal(stored.stderr, `pastec: ${nobodys}\npastec: the certificate for ${app.url} was not sent: ${ADVICE}\n`);
  assert.equal((await run(['--fingerprint', 'f'.repeat(40)], { input: 'x' })).stderr, '');
  const both = await run(['info', id, `http://localhost:${app.port}/${id}`]);
  assert.equal(both.stderr, `pastec: the certificate for ${app.url} was not sent: ${ADVICE}\n`, 'none for another name');
  const claimed = ['--fingerprint', '0123456789abcdef0123456789abcdef01234567'];
  for (const args of [['ls'], ['status'], ['info', id]]) assert.equal((await run([...args, ...claimed])).stderr, '');
  const locked = await app.store('x', { 'X-Paste-Password': 'secret' });
  assert.doesNotMatch((await run(['get', locked])).stderr, /https/);
});

test('pastec register: asks whether there is anything to get before it works for it', async (t) => {
  const url = await answerAlways(t, 200, 'unavailable the operator must set SERVICE_PKI_CA_PASSWORD');
  const { run } = clientOf(t, url);
  const { code, stderr } = await run(ALLOW, { environment: SOLVER });
  assert.equal(code, 9);
  assert.equal(stderr,
    'pastec: this server can give no certificates\n  the operator must set SERVICE_PKI_CA_PASSWORD\n');
  assert.equal((await run(['cert', 'show'])).code, 1);
});

test('pastec register: a service without a password for its authority is not worked for', async (t) => {
  const app = await startApp(t, { registerPowDifficultyBits: 32 });
  const { code, stderr } = await clientOf(t, app.url).run(ALLOW, { environment: SOLVER });
  assert.equal(code, 9);
  assert.match(stderr, /^pastec: this server can give no certificates\n {2}\S.+\n$/);
});

test('pastec: an authority named as ca in the configuration is trusted, for the configured server', async (t) => {
  const pair = await serverPair();
  const app = await startTlsApp(t, { ...ISSUING, maxAnonBytes: 1000, maxAuthBytes: 2000 }, { pair });
  const { run, home, folder } = clientOf(t, app.url);
  writeFileSync(join(home, 'ca "1".pem'), pair.cert);
  const unknown = await run(['status']);
  assert.equal(unknown.code, 8);
  assert.match(unknown.stderr, /^pastec: curl: \(60\) .*\n {2}to trust its authority, write a line ca=FILE into /);

  configure(home, `ca = ${join(home, 'ca "1".pem')}\n`);
  assert.equal((await run(['status'])).code, 0);
  configure(home, `server=${app.url}/\nca=~/ca "1".pem`);
  const registered = await run(['register'], { environment: SOLVER });
  assert.deepEqual([registered.code, registered.stderr], [0, '']);
  const stored = await run([], { input: 'x'.repeat(2000) });
  assert.deepEqual([stored.code, stored.stderr], [0, ''], 'the limit is that of a trusted caller');
  const larger = await run([], { input: 'x'.repeat(2001) });
  assert.deepEqual([larger.code, larger.stderr],
    [5, 'pastec: too large: the content has 2 KiB (2001 bytes), the server takes at most 2 KiB (2000 bytes)\n']);
  assert.match((await run(['ls'])).text, new RegExp(`^${stored.text.trim().split('/').at(-1)}\t2000\t`, 'm'));
  assert.match((await run(['status'])).text, /^own tier: trusted$/m);

  const other = await startTlsApp(t, {}, { pair });
  assert.equal((await run(['status', '--server', other.url])).code, 8, 'another server');
  configure(home, `ca=${join(folder, 'missing')}`);
  const missing = await run(['status']);
  assert.equal(missing.code, 2);
  assert.match(missing.stderr, /^pastec: can't read \S+missing\n {2}\S+config names it as ca\n$/);
});

test('pastec: where there is no TLS, it says that http may be meant', async (t) => {
  const app = await startApp(t);
  const { code, stderr } = await clientOf(t, `127.0.0.1:${app.port}`).run(['status']);
  assert.equal(code, 8);
  assert.match(stderr, /^pastec: curl: \(35\) .*\n {2}no TLS with that server: if it speaks plain http, its .*http:/);
});
