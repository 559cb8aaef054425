// The life of the authority beside a running service: certificates and lists of before and after a renewal verify under
// both of its certificates, the service goes on with a renewed one and with a key that got another password, and the
// operator issues even where nobody may register. What the commands print and refuse: unit/commands-authority.test.ts.

import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { DAY_SECONDS } from '../../src/core/time.ts';
import { presenting } from '../support/certificates.ts';
import { startMain, startServing, temporaryFolder } from '../support/main-process.ts';
import { CA_PASSWORD, certificateOf, type Issued, openssl, PKI } from '../support/pki.ts';
import { isInstalled, run } from '../support/programs.ts';
import { type Pair, pairOfIssued, type RunningTlsApp, startTlsApp } from '../support/tls.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };

/** `pasted` as a process of its own; fails the test unless it succeeds. Gives what it printed. */
async function pasted(
  t: TestContext, words: readonly string[], environment: Readonly<Record<string, string>>,
): Promise<string> {
  const main = startMain(t, words, { environment });
  assert.equal(await main.ended, 0, main.stderr());
  return main.stdout();
}

function besides({ config }: RunningTlsApp, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { SERVICE_DB: config.databasePath, SERVICE_PKI_CA_PASSWORD: CA_PASSWORD, ...more };
}

async function issueBy(app: RunningTlsApp, commonName: string): Promise<Issued> {
  const body = JSON.stringify({ common_name: commonName });
  const { status, json } = await app.ask('POST /pki/issue', { body, headers: JSON_TYPE });
  assert.equal(status, 201, JSON.stringify(json));
  return json as unknown as Issued;
}

/** The pair in a bundle without a password, as openssl extracts it. */
function openBundle(folder: string, name: string): Pair {
  const part = (...options: readonly string[]) => openssl(folder, 'pkcs12', '-in', name, '-passin', 'pass:', ...options);
  return { cert: part('-nokeys', '-clcerts'), key: part('-nocerts', '-nodes') };
}

const isKnown = async (app: RunningTlsApp, as: Pair): Promise<boolean> => (await app.ask('GET /pastes', { as })).status === 200;

test('pki ca renew: clients and lists of before and after verify under both certificates, over TLS and by openssl', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = temporaryFolder(t);
  const app = await startTlsApp(t, { ...PKI, pkiCaDays: 10 });
  assert.equal((await app.ask('POST /pki/ca')).status, 201);
  const alice = await issueBy(app, 'alice');
  const keep = (name: string, content: string | Uint8Array): void => writeFileSync(join(folder, name), content);
  const served = async (path: string) => (await app.ask(`GET ${path}`)).body;
  keep('old-ca.pem', await served('/pki/ca.crt'));
  keep('old-crl.pem', await served('/pki/ca.crl.pem'));
  const renewing = pasted(t, ['pki', 'ca', 'renew', '--json'], besides(app));
  const during: Issued[] = [];
  let isOver = false;
  void renewing.finally(() => {
    isOver = true;
  });
  // Some are issued before it, some after it, and maybe one with the old certificate is recorded after the new one.
  do during.push(...await Promise.all([issueBy(app, 'racing'), issueBy(app, 'racing')])); while (!isOver);
  const renewed = JSON.parse(await renewing) as Record<string, unknown>;
  const carol = await issueBy(app, 'carol');
  const { json } = await app.ask('GET /pki');
  assert.deepEqual([json['fingerprint_sha1'], json['expires_at']], [renewed['fingerprint_sha1'], renewed['expires_at']]);
  keep('new-ca.pem', await served('/pki/ca.crt'));
  assert.notDeepEqual(readFileSync(join(folder, 'new-ca.pem')), readFileSync(join(folder, 'old-ca.pem')));

  // A certificate ends with its authority at the latest, as alice's does. The renewed one outlives carol's full year.
  const endOf = (issued: Issued): number => certificateOf(issued).validToDate.getTime() / 1000;
  assert.equal(endOf(alice), alice.created_at + 10 * DAY_SECONDS);
  assert.equal(endOf(carol), carol.created_at + 365 * DAY_SECONDS);
  for (const issued of [alice, carol]) assert.ok(await isKnown(app, pairOfIssued(issued)));

  const dave = await issueBy(app, 'dave');
  assert.equal((await app.ask(`POST /pki/revoke/${dave.serial}`, { as: pairOfIssued(dave) })).status, 200);
  keep('new-crl.pem', await served('/pki/ca.crl.pem'));
  for (const [name, { certificate_pem: pem }] of Object.entries({ alice, carol, dave })) keep(`${name}.pem`, pem);
  for (const { certificate_pem: pem } of [...during.slice(0, 5), ...during.slice(-20)]) {
    keep('raced.pem', pem);
    for (const ca of ['old-ca.pem', 'new-ca.pem']) assert.match(openssl(folder, 'verify', '-CAfile', ca, 'raced.pem'), /: OK$/m);
  }
  for (const ca of ['old-ca.pem', 'new-ca.pem']) {
    for (const crl of ['old-crl.pem', 'new-crl.pem']) {
      const strictly = ['verify', '-x509_strict', '-crl_check', '-CRLfile', crl, '-CAfile', ca];
      for (const name of ['alice.pem', 'carol.pem']) assert.match(openssl(folder, ...strictly, name), /: OK$/m, `${ca} ${crl}`);
      const revoked = run('openssl', [...strictly, 'dave.pem'], folder);
      assert.equal(/certificate revoked/.test(revoked.output), crl === 'new-crl.pem', `${ca} ${crl}`);
      assert.match(openssl(folder, 'crl', '-in', crl, '-CAfile', ca, '-noout'), /verify OK/);
    }
  }
  const identifiers = (name: string): string => openssl(folder, 'x509', '-in', name, '-noout', '-subject', '-ext', 'subjectKeyIdentifier');
  assert.equal(identifiers('new-ca.pem'), identifiers('old-ca.pem'));
});

test('pki ca renew: an authority that has run out goes on, and its new clients are known over TLS without a restart', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = temporaryFolder(t);
  // To the app it is two days ago, when its authority was made; to OpenSSL that authority ran out yesterday.
  const app = await startTlsApp(t, { ...PKI, pkiCaDays: 1 }, { daysAgo: 2 });
  assert.equal((await app.ask('POST /pki/ca')).status, 201);
  await pasted(t, ['pki', 'ca', 'renew'], besides(app));
  await pasted(t, ['pki', 'issue', '--common-name', 'alice', '--out', join(folder, 'alice.p12')], besides(app));
  const alice = openBundle(folder, 'alice.p12');
  assert.equal((await app.ask('POST /', { body: 'hello', as: alice })).status, 201);
});

test('pki issue: beside a service that registers nobody; a holder with a password, whose bundle has the authority', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = temporaryFolder(t);
  const app = await startTlsApp(t, { ...PKI, registerBy: 'off', createBy: 'trusted' });
  assert.equal((await app.ask('POST /pki/ca')).status, 201);
  const closed = await app.ask('POST /register', { body: '{}', headers: JSON_TYPE });
  assert.deepEqual([closed.status, closed.json['error']], [403, 'registration is closed']);
  const environment = besides(app, { SERVICE_REGISTER: 'off' });
  await pasted(t, ['pki', 'issue', '--common-name', 'first', '--out', join(folder, 'first.p12')], environment);
  writeFileSync(join(folder, 'password'), 'canary\n');
  const words = ['pki', 'issue', '--common-name', 'bob', '--password-file', join(folder, 'password')];
  const said = await pasted(t, [...words, '--out', join(folder, 'bob.p12')], environment);
  assert.match(said, /: the certificate of bob with its key\./);
  assert.ok(!said.includes('canary'));
  const opened = openssl(folder, 'pkcs12', '-in', 'bob.p12', '-passin', 'pass:canary', '-nodes');
  assert.ok(opened.includes((await app.ask('GET /pki/ca.crt')).body.toString().trim()));
  const [cert = '', key = ''] = [/-----BEGIN CERT[^]*?-----END [^\n]*/, /-----BEGIN PRIV[^]*?-----END [^\n]*/]
    .map((block) => block.exec(opened)?.[0]);
  const stored = await app.ask('POST /', { body: 'hello', as: { cert, key } });
  assert.equal(stored.status, 201);
  assert.equal((await app.ask('GET /audit', { as: { cert, key } })).status, 403);
  assert.equal((await app.ask('GET /audit', { as: openBundle(folder, 'first.p12') })).status, 200, 'the first is the admin');
});

test('pki ca passphrase: the service goes on with the key that it has, takes the new password by SIGHUP, and starts with it', async (t) => {
  const folder = temporaryFolder(t);
  const [current, next] = [join(folder, 'current'), join(folder, 'next')] as const;
  writeFileSync(current, 'canary, old\n');
  writeFileSync(next, 'canary, new\n');
  const environment = {
    SERVICE_DB: join(folder, 'pasted.db'), SERVICE_PKI_CA_PASSWORD_FILE: current,
    SERVICE_PKI_ENABLED: '1', SERVICE_REGISTER_POW: '0',
  };
  await pasted(t, ['admin', 'create', '--out', join(folder, 'admin.p12')], environment);
  const main = await startServing(t, { environment });
  const issues = async (url: string): Promise<number> => {
    const body = JSON.stringify({ common_name: 'alice' });
    const response = await fetch(`${url}/pki/issue`, { method: 'POST', headers: JSON_TYPE, body });
    await response.arrayBuffer();
    return response.status;
  };
  assert.equal(await issues(main.url), 201);
  await pasted(t, ['pki', 'ca', 'passphrase', '--new-password-file', next], environment);
  assert.equal(await issues(main.url), 201, 'with the key that it has');

  const reloaded = async (changed: string): Promise<void> => {
    main.child.kill('SIGHUP');
    await main.printed(new RegExp(`reloaded {2}changed=${changed}`));
  };
  await reloaded('nothing');
  assert.equal(await issues(main.url), 201);
  writeFileSync(current, 'canary, wrong\n');
  main.child.kill('SIGHUP');
  await main.printed(/SERVICE_PKI_CA_PASSWORD does not open the stored key/);
  assert.equal(await issues(main.url), 201);
  writeFileSync(current, 'canary, new\n');
  await reloaded('SERVICE_PKI_CA_PASSWORD');
  assert.equal(await issues(main.url), 201);
  main.child.kill('SIGTERM');
  assert.equal(await main.ended, 0);
  assert.ok(!`${main.stdout()}${main.stderr()}`.includes('canary'));

  const again = await startServing(t, { environment });
  assert.equal(await issues(again.url), 201);
  const register = await fetch(`${again.url}/register`, { method: 'POST' });
  assert.equal(register.status, 200);
  const { certificates } = JSON.parse(await pasted(t, ['pki', 'list', '--json'], environment)) as {
    certificates: { is_admin: boolean; fingerprint_sha1: string }[];
  };
  // Found by its flag and not as the last of the list: within a second, the order is that of the serials.
  const admin = certificates.find(({ is_admin: isAdmin }) => isAdmin)!.fingerprint_sha1;
  const entries = await fetch(`${again.url}/audit?event=ca_password_changed`, { headers: presenting(admin) });
  const { entries: [entry], total } = await entries.json() as { entries: Record<string, unknown>[]; total: number };
  assert.deepEqual([total, entry?.['outcome'], entry?.['client_id']], [1, 'success', null]);
});

test('pki ca passphrase: a key that the running service could not open is open once it has the password in force, by SIGHUP or need', async (t) => {
  const folder = temporaryFolder(t);
  const file = (name: string): string => {
    writeFileSync(join(folder, name), `canary, ${name}\n`);
    return join(folder, name);
  };
  const [before, inForce, other] = [file('before'), file('in force'), file('other')] as const;
  const withPassword = (path: string) => ({
    SERVICE_DB: join(folder, 'pasted.db'), SERVICE_PKI_CA_PASSWORD_FILE: path, SERVICE_PKI_ENABLED: '1',
  });
  const give = (path: string, from: string) => pasted(t, ['pki', 'ca', 'passphrase', '--new-password-file', path], withPassword(from));
  await pasted(t, ['admin', 'create', '--out', join(folder, 'admin.p12')], withPassword(before));
  const main = await startServing(t, { environment: withPassword(inForce) });
  const isOffered = async (): Promise<boolean> => !('registration' in (await (await fetch(`${main.url}/`)).json() as object));
  const listStatus = async ({ url } = main): Promise<number> => (await fetch(`${url}/pki/ca.crl.pem`)).status;
  await main.printed(/CA key not usable/);
  await give(other, before);
  assert.deepEqual([await listStatus(), await isOffered()], [500, false], 'another one that it does not know');

  await give(inForce, other);
  main.child.kill('SIGHUP');
  await main.printed(/reloaded {2}changed=nothing/);
  assert.deepEqual([await isOffered(), await listStatus()], [true, 200]);
  main.child.kill('SIGTERM');
  assert.equal(await main.ended, 0);

  await give(before, inForce);
  const late = await startServing(t, { environment: withPassword(inForce) });
  await late.printed(/CA key not usable/);
  await give(inForce, before);
  const register = await fetch(`${late.url}/register/challenge`);
  assert.equal('available' in (await register.json() as object), false, 'without any signal');
  assert.equal(await listStatus(late), 200);
  assert.ok(!`${main.stdout()}${main.stderr()}`.includes('canary'));
});

test('admin create, pki ca passphrase: a password from standard input, by a file that no name leads to and by a pipe', async (t) => {
  const folder = temporaryFolder(t);
  const environment = { SERVICE_DB: join(folder, 'pasted.db'), SERVICE_PKI_CA_PASSWORD: CA_PASSWORD };
  const secret = join(folder, 'secret');
  writeFileSync(secret, 'canary\n');
  const stdin = openSync(secret, 'r');
  rmSync(secret);
  const created = startMain(t, ['admin', 'create', '--out', join(folder, 'a.p12'), '--password-file', '-'], { environment, stdin });
  closeSync(stdin);
  assert.equal(await created.ended, 0, created.stderr());
  if (isInstalled(t, 'openssl')) openssl(folder, 'pkcs12', '-in', 'a.p12', '-passin', 'pass:canary', '-noout');
  const change = async (password: string) => {
    const main = startMain(t, ['pki', 'ca', 'passphrase', '--new-password-file', '-'], { environment, stdin: 'pipe' });
    main.child.stdin!.end(password);
    return [await main.ended, main.stderr()];
  };
  assert.deepEqual(await change(''), [1, 'pasted: standard input holds no password of 1 to 1024 characters in UTF-8, without a byte order mark\n']);
  assert.deepEqual(await change('the next\n'), [0, '']);
  const next = { ...environment, SERVICE_PKI_CA_PASSWORD: 'the next', SERVICE_PKI_CA_DAYS: '4000' };
  await pasted(t, ['pki', 'ca', 'renew'], next);
});
