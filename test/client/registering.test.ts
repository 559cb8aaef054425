// pastec register where only a client with an invitation may register, or nobody; and whose key is certified.

import assert from 'node:assert/strict';
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { visitStore } from '../../src/store/visit.ts';
import { startApp, type RunningApp } from '../support/app.ts';
import { DEFECTS, notedPrograms, pathWith } from '../support/broken-programs.ts';
import { pathWithout, tlsService } from '../support/pastec-tls.ts';
import { isInstalled } from '../support/programs.ts';
import { clientOf } from '../support/shells.ts';
import { takingServer } from '../support/taking-server.ts';
import { serverPair } from '../support/tls.ts';

const CODE = 'abcdefghijklmnopqrstuvwx23';
const OTHER = 'z'.repeat(26);
const ALLOW = ['register', '--allow-http'] as const;
/** More work than anyone does in a test. */
const ISSUING = { pkiCaPassword: 'of the authority', registerPowDifficultyBits: 32 } as const;

async function invite(app: RunningApp, usesLeft: number): Promise<void> {
  const store = await visitStore({
    path: app.config.databasePath, clock: app.clock, log: () => {}, ifMissing: 'refuse',
  });
  const now = Math.floor(Date.now() / 1000);
  const codeSha256 = createHash('sha256').update(CODE).digest();
  await store.run('createInvitation', { codeSha256, note: '', createdAt: 0, expiresAt: 2 * now, usesLeft });
  await store.close();
}

const asked = (app: RunningApp): unknown[] => app.logged.filter((entry) => entry.event === 'request');

test('pastec register: where nobody can, it says so before it works, and status knows', async (t) => {
  const app = await startApp(t, { ...ISSUING, registerBy: 'off' });
  const { run } = clientOf(t, app.url);
  const { code, text, stderr } = await run(ALLOW);
  assert.deepEqual([code, text], [4, '']);
  assert.match(stderr, /^pastec: registration is closed\n {2}\S.+\n$/);
  assert.equal(asked(app).length, 1);
  assert.match((await run(['status'])).text, /^registering: closed$/m);
});

test('pastec register --invite: takes the place of work; without, wrong or spent it is refused in words', async (t) => {
  const app = await startApp(t, { ...ISSUING, registerBy: 'invite' });
  const { run } = clientOf(t, app.url);
  assert.match((await run(['status'])).text, /^registering: by invitation$/m);
  await invite(app, 2);
  for (const args of [[], ['--invite', OTHER]]) {
    const { code, stderr } = await run([...ALLOW, ...args]);
    assert.deepEqual([args, code], [args, 4]);
    assert.match(stderr, /^pastec: invitation required\n {2}\S.+\n$/);
  }
  for (const damaged of ['short', `${CODE}"`, `${CODE}\nX-Other: 1`]) {
    assert.equal((await run([...ALLOW, '--invite', damaged])).code, 2);
  }
  assert.equal((await run([...ALLOW, '--invite', '-'])).code, 2, 'no code came');
  assert.equal((await run([...ALLOW, '-v', '--invite', CODE])).code, 0);
  const again = clientOf(t, app.url);
  assert.equal((await again.run([...ALLOW, '--invite=-'], { input: `${CODE}\n` })).code, 0);
  const spent = await clientOf(t, app.url).run([...ALLOW, '--invite', CODE]);
  assert.deepEqual([spent.code, spent.text], [4, '']);
});

test('pastec register --invite -: asks for the code on a terminal, without showing it', async (t) => {
  if (!isInstalled(t, 'script')) return;
  const app = await startApp(t, { ...ISSUING, registerBy: 'invite' });
  await invite(app, 1);
  const { child, ended, says } = clientOf(t, app.url).onTerminal('register --allow-http --invite -');
  await says(/Code of the invitation: /);
  child.stdin.write(`${CODE}\n`);
  const { code, text } = await ended;
  assert.equal(code, 0, text);
  assert.ok(!text.includes(CODE));
});

test('pastec register --invite: the code is neither an argument of a program nor said with -v', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t, { ...ISSUING, registerBy: 'invite' });
  await invite(app, 1);
  const { run, home } = clientOf(t, app.url);
  const { path, seen } = notedPrograms(home);
  const { code, text, stderr } = await run([...ALLOW, '-v', '--invite', CODE], { environment: { PATH: path } });
  assert.equal(code, 0, stderr);
  for (const program of ['curl', 'sed', 'openssl', 'tr']) assert.match(seen(), new RegExp(`^${program}$`, 'm'));
  assert.ok(!`${text}${stderr}${seen()}`.includes(CODE));
});

test('pastec register: the key is made here, for P-384, and only a request for its certificate is sent', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { url, taken } = await takingServer(t);
  await clientOf(t, url).run([...ALLOW, '-n', 'a name']);
  const sent = JSON.parse(String(taken[0]?.body)) as Record<string, string>;
  assert.deepEqual(Object.keys(sent).sort(), ['common_name', 'csr']);
  assert.match(sent['csr'] ?? '', /^-----BEGIN CERTIFICATE REQUEST-----\n[^-]+-----END CERTIFICATE REQUEST-----\n$/);

  const { client } = await tlsService(t);
  const { run, identity, fact } = client();
  const { code, stderr } = await run(['register', '-n', 'a name']);
  assert.deepEqual([code, stderr], [0, '']);
  const pem = readFileSync(join(identity, 'client.pem'), 'utf8');
  const key = createPrivateKey(pem.slice(pem.indexOf('-----BEGIN PRIVATE KEY')));
  assert.equal(key.asymmetricKeyDetails?.namedCurve, 'secp384r1');
  const certificate = new X509Certificate(pem);
  assert.ok(certificate.checkPrivateKey(key));
  assert.equal(certificate.subject, 'CN=a name');
  assert.deepEqual([fact('admin'), fact('expires')], ['1', String(Date.parse(certificate.validTo) / 1000)]);
  assert.equal((await run(['ls'])).code, 0);
});

test('pastec register and renew: the key is made here also where openssl finds no configuration of its own', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { run, identity } = (await tlsService(t)).client();
  const environment = { OPENSSL_CONF: '/nonexistent/openssl.cnf' };
  for (const command of ['register', 'renew']) {
    const { code, stderr } = await run([command], { environment });
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(readdirSync(identity).sort(), ['client.pem', 'facts']);
  }
});

test('pastec register and renew: where openssl is missing, the server makes the keys', async (t) => {
  const { client } = await tlsService(t);
  const { run, home, identity, fact } = client();
  const environment = { PATH: pathWithout('openssl', home) };
  const { code, stderr } = await run(['register'], { environment });
  assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual(readdirSync(identity).sort(), ['client.p12', 'facts']);
  const first = fact('fingerprint');
  assert.equal((await run(['renew'], { environment })).code, 0);
  assert.deepEqual(readdirSync(identity).sort(), ['client.p12', 'facts']);
  assert.notEqual(fact('fingerprint'), first);
  assert.equal((await run(['ls'])).code, 0);
  if (!isInstalled(t, 'openssl')) return;
  assert.equal((await run(['renew'])).code, 0);
  assert.deepEqual(readdirSync(identity).sort(), ['client.pem', 'facts'], 'a key of its own from here on');
  assert.equal((await run(['ls'])).code, 0);
});

test('pastec put: where not everybody may store, it says so before it works, and status knows', async (t) => {
  for (const [createBy, needed] of [['identity', 'an identity'], ['trusted', 'a certificate of its own']] as const) {
    const { app, client } = await tlsService(t, { createBy, powDifficultyBits: 4 });
    const { run } = client();
    const { code, stderr } = await run([], { input: 'x' });
    assert.equal(code, 4);
    assert.equal(stderr, `pastec: to store something, this server asks for ${needed}\n  get one: pastec register\n`);
    assert.deepEqual(app.logged.filter((entry) => entry.details?.['route'] === '/challenge'), []);
    assert.match((await run(['status'])).text, new RegExp(`^storing: ${createBy}$`, 'm'));
    assert.equal((await run(['register'])).code, 0);
    assert.equal((await run([], { input: 'x' })).code, 0);
  }
});

test('pastec put: with a certificate it does the work that is asked of trusted callers, or none', async (t) => {
  const { app, client } = await tlsService(t, { powDifficultyBits: 32, powTrustedBits: '0' });
  const { run } = client();
  assert.equal((await run(['register'])).code, 0);
  assert.match((await run(['status'])).text, /^proof-of-work: 0 bits$/m);
  assert.match((await run([], { input: 'x' })).text, new RegExp(`^${app.url}/[a-z2-7]{26}\n$`));
});

const KEY = /PRIVATE KEY|^0\x82..\x02\x01\x03/s;

for (const defect of DEFECTS) {
  test(`pastec register: when a program ${defect}, a certificate that was given is kept with its own key`, async (t) => {
    if (!isInstalled(t, 'openssl')) return;
    const app = await startApp(t, { ...ISSUING, registerPowDifficultyBits: 0, rateMax: 0 });
    const whole = clientOf(t, app.url);
    const { path, started } = notedPrograms(whole.home);
    assert.equal((await whole.run(ALLOW, { environment: { PATH: path } })).code, 0);
    for (const program of started()) {
      const { run, folder, home } = clientOf(t, app.url);
      const temporary = join(folder, 'temporary');
      mkdirSync(temporary);
      const environment = { PATH: pathWith(home, defect, program), TMPDIR: temporary };
      const before = app.logged.filter((entry) => entry.event === 'cert_issued').length;
      const { code } = await run(ALLOW, { environment });
      const wasGiven = app.logged.filter((entry) => entry.event === 'cert_issued').length > before;
      const files = [folder, home].flatMap((place) => readdirSync(place, { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile() && !entry.parentPath.includes('programs-'))
        .map((entry) => join(entry.parentPath, entry.name));
      const texts = files.map((file) => readFileSync(file, 'latin1'));
      for (const [index, file] of files.entries()) {
        if (KEY.test(texts[index] ?? '')) assert.equal(statSync(file).mode & 0o077, 0, `${program} ${defect}: ${file}`);
      }
      const what = `${program} ${defect}: ${files.join(' ')}`;
      if (code === 0) {
        assert.equal((await run(['cert', 'show'])).code, 0, what);
        const [pem = ''] = texts.filter((text, index) => files[index]?.endsWith('/client.pem') && text !== '');
        assert.ok(new X509Certificate(pem).checkPrivateKey(createPrivateKey(pem.slice(pem.indexOf('-----BEGIN PRIVATE')))), what);
      } else if (wasGiven && program !== 'curl') {
        assert.ok(texts.some((text) => text.includes('-----BEGIN PRIVATE KEY')), `the key is lost: ${what}`);
        assert.ok(texts.some((text) => text.includes('-----BEGIN CERTIFICATE-----')), `the certificate is lost: ${what}`);
      }
    }
  });
}

test('pastec register: behind a proxy on the way to https, an error of the server is not kept as a certificate', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const pair = await serverPair();
  const server = createTlsServer(pair, ({ method }, response) => {
    if (method === 'GET') response.end('- 0 - -\n');
    else response.writeHead(502, { 'Content-Type': 'text/html' }).end('<h1>Bad Gateway</h1>');
  });
  const proxy = createServer().on('connect', (_, near) => {
    const far = connect(portOf(server), '127.0.0.1', () => {
      near.write('HTTP/1.1 200 Connection established\r\n\r\n');
      near.pipe(far).pipe(near);
    });
    for (const [one, other] of [[near, far], [far, near]] as const) one.on('error', () => other.destroy());
  });
  for (const one of [server, proxy]) {
    await once(one.listen(0, '127.0.0.1'), 'listening');
    t.after(() => one.close());
  }
  const { run, home, folder } = clientOf(t, `https://127.0.0.1:${portOf(server)}`);
  writeFileSync(join(folder, 'ca.pem'), pair.cert);
  const environment = { https_proxy: `http://127.0.0.1:${portOf(proxy)}`, CURL_CA_BUNDLE: join(folder, 'ca.pem') };
  const { code, stderr } = await run(['register'], { environment });
  assert.equal(code, 9);
  assert.match(stderr, /the answer \(502\) is not one of a paste service/);
  assert.doesNotMatch(stderr, /kept/);
  assert.deepEqual(readdirSync(join(home, '.local', 'share', 'pastec', 'certificates')), []);
});

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
