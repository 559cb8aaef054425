// `pasted admin` and `pasted pki` before and beside a running server of another process on the same database.
// What each prints and refuses: unit/commands-admin.test.ts and unit/commands-pki.test.ts.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { RUNNING_CLOCK } from '../support/app.ts';
import { presenting } from '../support/certificates.ts';
import { startMain, startServing, temporaryFolder } from '../support/main-process.ts';
import { runHere } from '../support/operator.ts';
import { isInstalled, run } from '../support/programs.ts';

interface Issued {
  readonly serial: string;
  readonly fingerprint_sha1: string;
}

interface Ended {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** A database that does not exist so far, and what uses it: the server, and commands as processes of their own or here. */
function openService(t: TestContext) {
  const folder = temporaryFolder(t);
  const environment = {
    SERVICE_DB: join(folder, 'pasted.db'),
    SERVICE_PKI_CA_PASSWORD: 'canary-of-the-authority',
    SERVICE_PKI_ENABLED: '1',
    SERVICE_REGISTER_POW: '0',
    SERVICE_RATE_MAX: '0',
  };

  async function pasted(words: readonly string[], changes: Readonly<Record<string, string>> = {}): Promise<Ended> {
    const main = startMain(t, words, { environment: { ...environment, ...changes } });
    const code = await main.ended;
    assert.ok(!`${main.stdout()}${main.stderr()}`.includes('canary'), 'no secret is printed');
    return { code, stdout: main.stdout(), stderr: main.stderr() };
  }

  /** Runs a command in this process; gives what it prints. */
  async function done(...words: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runHere(words, environment, { clock: RUNNING_CLOCK });
    assert.equal(code, 0, stderr);
    assert.ok(!`${stdout}${stderr}`.includes('canary'), 'no secret is printed');
    return stdout;
  }

  async function createAdmin(): Promise<Issued> {
    return JSON.parse(await done('admin', 'create', '--json', '--out', join(folder, 'admin.p12'))) as Issued;
  }

  return { folder, pasted, done, createAdmin, serve: () => startServing(t, { environment }) };
}

/** Registers over HTTP; the fingerprint and whether it is the admin's. */
async function register(url: string): Promise<{ fingerprint: string; isAdmin: string | null }> {
  const response = await fetch(`${url}/register`, { method: 'POST' });
  assert.equal(response.status, 200, await response.clone().text());
  return { fingerprint: response.headers.get('X-Fingerprint-SHA1')!, isAdmin: response.headers.get('X-Is-Admin') };
}

async function statusOf(url: string, path: string, fingerprint: string): Promise<number> {
  const response = await fetch(`${url}${path}`, { headers: presenting(fingerprint) });
  await response.arrayBuffer();
  return response.status;
}

async function serialOf(done: (...words: string[]) => Promise<string>, fingerprint: string): Promise<string> {
  const { certificates } = JSON.parse(await done('pki', 'list', '--json')) as { certificates: Issued[] };
  return certificates.find((certificate) => certificate.fingerprint_sha1 === fingerprint)!.serial;
}

test('admin create: before the first start, so that no stranger who registers becomes the admin', async (t) => {
  const { folder, pasted, serve } = openService(t);
  const created = await pasted(['admin', 'create', '--json', '--out', join(folder, 'admin.p12')]);
  assert.equal(created.code, 0, created.stderr);
  const admin = JSON.parse(created.stdout) as Issued;
  assert.equal(statSync(join(folder, 'admin.p12')).mode & 0o777, 0o600);
  for (const name of ['pasted.db', 'pasted.db-lock']) assert.equal(statSync(join(folder, name)).mode & 0o077, 0, name);

  const { url } = await serve();
  assert.equal((await register(url)).isAdmin, '0');
  const response = await fetch(`${url}/audit?event=admin_granted`, { headers: presenting(admin.fingerprint_sha1) });
  assert.equal(response.status, 200);
  const { entries } = await response.json() as { entries: Record<string, unknown>[] };
  assert.equal(entries.length, 1);
  const { client_id, client_ip, details } = entries[0]!;
  assert.deepEqual([client_id, client_ip], [null, null]);
  assert.deepEqual(details, { serial: admin.serial, fingerprint: admin.fingerprint_sha1, via: 'command line' });
});

test('admin create: beside a running server, which knows the admin from the next request on', async (t) => {
  const { createAdmin, serve, pasted, folder } = openService(t);
  const { url } = await serve();
  const admin = await createAdmin();
  assert.equal(await statusOf(url, '/audit', admin.fingerprint_sha1), 200);
  assert.equal((await register(url)).isAdmin, '0');
  const second = await pasted(['admin', 'create', '--out', join(folder, 'second.p12')]);
  assert.equal(second.code, 1);
  assert.match(second.stderr, /pasted admin grant SERIAL\n$/);
});

test('admin create: of several that race for a new database one issues, and the others leave nothing', async (t) => {
  const { folder, pasted, done } = openService(t);
  const paths = ['a', 'b', 'c'].map((name) => join(folder, `${name}.p12`));
  const ended = await Promise.all(paths.map((path) => pasted(['admin', 'create', '--out', path])));
  assert.deepEqual(ended.map(({ code }) => code).sort(), [0, 1, 1], JSON.stringify(ended));
  for (const [index, { code }] of ended.entries()) assert.equal(existsSync(paths[index]!), code === 0);
  const { certificates } = JSON.parse(await done('pki', 'list', '--json')) as { certificates: { is_admin: boolean }[] };
  assert.deepEqual(certificates.map((certificate) => certificate.is_admin), [true]);
});

test('admin create: of one and a registration that race one is the admin\'s', async (t) => {
  const { folder, pasted, serve } = openService(t);
  const { url } = await serve();
  const path = join(folder, 'admin.p12');
  const creating = pasted(['admin', 'create', '--out', path]);
  const registered = [];
  let isOver = false;
  void creating.finally(() => {
    isOver = true;
  });
  // One after another, so that some come before the command has looked and some after it has issued.
  do registered.push(await register(url)); while (!isOver);
  const created = (await creating).code === 0 ? 1 : 0;
  assert.equal(registered.filter(({ isAdmin }) => isAdmin === '1').length, 1 - created);
  assert.equal(existsSync(path), created === 1);
});

test('admin grant: beside a running server, effective from the next request on', async (t) => {
  const { createAdmin, serve, pasted, done } = openService(t);
  await createAdmin();
  const { url } = await serve();
  const { fingerprint } = await register(url);
  assert.equal(await statusOf(url, '/audit', fingerprint), 403);
  const granted = await pasted(['admin', 'grant', await serialOf(done, fingerprint)]);
  assert.equal(granted.code, 0, granted.stderr);
  assert.equal(await statusOf(url, '/audit', fingerprint), 200);
});

test('pki revoke: beside a running server, effective from the next request on; a second time it is 1', async (t) => {
  const { serve, pasted, done } = openService(t);
  const { url } = await serve();
  const { fingerprint } = await register(url);
  const crlBefore = await (await fetch(`${url}/pki/ca.crl.pem`)).text();
  assert.equal(await statusOf(url, '/audit', fingerprint), 200);
  const serial = await serialOf(done, fingerprint);
  const revoked = await pasted(['pki', 'revoke', serial, '--reason', 'superseded']);
  assert.equal(revoked.code, 0, revoked.stderr);
  assert.equal(await statusOf(url, '/audit', fingerprint), 401);
  assert.equal((await pasted(['pki', 'revoke', serial])).code, 1);
  const crl = await (await fetch(`${url}/pki/ca.crl.pem`)).text();
  assert.notEqual(crl, crlBefore);
  assert.equal(await done('pki', 'crl'), crl);
});

test('pki crl: openssl verifies with it, and finds the certificate revoked when it is', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { folder, createAdmin, done } = openService(t);
  const { serial } = await createAdmin();
  const pem = join(folder, 'crl.pem');
  const openssl = (line: string) => run('openssl', line.split(' '), folder);
  openssl('pkcs12 -in admin.p12 -passin pass: -nokeys -clcerts -out client.pem');
  openssl('pkcs12 -in admin.p12 -passin pass: -nokeys -cacerts -out ca.pem');
  const authority = await done('pki', 'ca');
  assert.ok(readFileSync(join(folder, 'ca.pem'), 'utf8').endsWith(authority));

  await done('pki', 'crl', '--out', pem);
  const verify = () => openssl('verify -x509_strict -crl_check -CRLfile crl.pem -CAfile ca.pem client.pem');
  assert.match(verify().output, /^client\.pem: OK$/m);
  await done('pki', 'revoke', serial, '--reason', 'keyCompromise');
  await done('pki', 'crl', '--out', pem);
  assert.match(verify().output, /certificate revoked/);
  assert.match(openssl('crl -in crl.pem -noout -text').output, /Key Compromise/);

  await done('pki', 'crl', '--der', '--out', join(folder, 'crl.der'));
  assert.match(openssl('crl -inform der -in crl.der -CAfile ca.pem -noout').output, /verify OK/);
});

test('pki crl --der: the bytes themselves on standard output', async (t) => {
  const { folder, createAdmin, serve, pasted } = openService(t);
  await createAdmin();
  const { url } = await serve();
  const served = new Uint8Array(await (await fetch(`${url}/pki/ca.crl`)).arrayBuffer());
  assert.equal((await pasted(['pki', 'crl', '--der', '--out', join(folder, 'ca.crl')])).code, 0);
  assert.deepEqual(new Uint8Array(readFileSync(join(folder, 'ca.crl'))), served);
  // startMain reads text: bytes that are no UTF-8 arrive as U+FFFD, as they do from TextDecoder.
  assert.equal((await pasted(['pki', 'crl', '--der'])).stdout, new TextDecoder().decode(served));
});

test('admin and pki: exit codes of processes', async (t) => {
  const { createAdmin, pasted } = openService(t);
  assert.equal((await pasted(['pki', 'list'])).code, 78, 'no database');
  await createAdmin();
  for (const [words, code, changes] of [
    [['pki', 'revoke', 'f'.repeat(32)], 1, {}],
    [['pki', 'revoke', 'f'], 2, {}],
    [['pki', 'crl'], 78, { SERVICE_PKI_CA_PASSWORD: 'a-wrong-one' }],
  ] as const) {
    const ended = await pasted(words, changes);
    assert.equal(ended.code, code, ended.stderr);
    assert.equal(ended.stdout, '');
    assert.match(ended.stderr, /^pasted: /);
  }
});
