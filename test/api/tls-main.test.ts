// HTTPS as operators and users meet it: the service as a process, curl with real certificates, `pasted admin create`
// beside it, SIGHUP.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { validityFrom } from '../../src/authority/certificates.ts';
import { encodePem } from '../../src/authority/keys.ts';
import { MIB } from '../../src/core/time.ts';
import { binaryContent } from '../support/app.ts';
import { makeTestAuthority, makeTestClient } from '../support/authority.ts';
import { startMain, startServing, temporaryFolder } from '../support/main-process.ts';
import { isInstalled } from '../support/programs.ts';
import { askTls, pairOf, serverPair, shownBy, type TlsFiles, writePair } from '../support/tls.ts';

const PASSWORD = 'canary of the authority';

function environmentOf(folder: string, { tlsCertPath, tlsKeyPath }: TlsFiles): Record<string, string> {
  return {
    SERVICE_DB: join(folder, 'pasted.db'),
    SERVICE_TLS_CERT: tlsCertPath,
    SERVICE_TLS_KEY: tlsKeyPath,
    SERVICE_PKI_CA_PASSWORD: PASSWORD,
    SERVICE_POW_DIFFICULTY: '0',
    SERVICE_REGISTER_POW: '0',
    SERVICE_RATE_MAX: '0',
  };
}

/** Runs curl, which verifies the server; gives what it printed, and rejects with its words unless it succeeds. */
function curl(folder: string, { tlsCertPath }: TlsFiles, ...options: readonly string[]): Promise<string> {
  const args = ['-q', '-sS', '--noproxy', '*', '--max-time', '60', '--cacert', tlsCertPath, ...options];
  return new Promise((resolve, reject) => {
    execFile('curl', args, { cwd: folder, maxBuffer: MIB }, (error, output) => {
      if (error === null) resolve(output);
      else reject(error);
    });
  });
}

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

/** Writes that many mebibytes that are no text. */
function writeContent(path: string, mebibytes: number): void {
  const file = openSync(path, 'w');
  for (let seed = 1; seed <= mebibytes; seed += 1) writeSync(file, binaryContent(MIB, seed));
  closeSync(file);
}

async function start(t: TestContext, more: Readonly<Record<string, string>> = {}) {
  const folder = temporaryFolder(t);
  const files = writePair(t, await serverPair());
  const environment = { ...environmentOf(folder, files), ...more };
  const main = await startServing(t, { environment });
  return { ...main, folder, files, environment };
}

test('curl over TLS: registers, comes back as the holder, 50 MiB up and down, burns once', async (t) => {
  if (!isInstalled(t, 'curl')) return;
  const { url, folder, files } = await start(t);
  assert.match(url, /^https:/);
  const ask = (...options: string[]): Promise<string> => curl(folder, files, ...options);
  await ask('-H', 'Content-Type: application/json', '-d', '{"common_name":"alice"}', '-o', 'client.p12', '-D', 'head', `${url}/register`);
  const head = readFileSync(join(folder, 'head'), 'utf8');
  const [, fingerprint = ''] = /^x-fingerprint-sha1: ([0-9a-f]{40})/mi.exec(head) ?? [];
  const own = ['--cert-type', 'P12', '--cert', 'client.p12:'];
  assert.deepEqual(JSON.parse(await ask(...own, `${url}/pastes`)), { pastes: [], total: 0, limit: 100, offset: 0 });

  writeContent(join(folder, 'content'), 50);
  const upload = ['--data-binary', '@content', `${url}/`];
  for (const kind of [[], ['-H', 'Expect:'], ['-H', 'Expect:', '-H', 'Transfer-Encoding: chunked']]) {
    assert.match(await ask('-w', '%{http_code}', ...kind, ...upload), /^\{"error":"paste too large".*\}\n413$/);
  }
  const { id, owner } = JSON.parse(await ask(...own, ...upload)) as { id: string; owner: string };
  assert.equal(owner, fingerprint.slice(0, 12));
  await ask('-o', 'received', `${url}/${id}/raw`);
  assert.equal(sha256(join(folder, 'received')), sha256(join(folder, 'content')));

  const burning = JSON.parse(await ask('-H', 'X-Burn-After-Read: 1', '-d', 'once', `${url}/`)) as { id: string };
  const readers = Array.from({ length: 8 }, () => ask('-w', ' %{http_code}', `${url}/${burning.id}/raw`));
  const answers = await Promise.all(readers);
  assert.equal(answers.filter((answer) => answer === 'once 200').length, 1);
  assert.equal(answers.filter((answer) => answer.endsWith(' 404')).length, 7);
});

test('admin create beside a server with TLS: the admin is soon believed, without a restart', async (t) => {
  if (!isInstalled(t, 'curl')) return;
  const { url, folder, files, environment } = await start(t);
  const status = (...options: string[]): Promise<string> =>
    curl(folder, files, ...options, '-o', 'body', '-w', '%{http_code}', `${url}/audit`);
  assert.equal(await status(), '401');
  const admin = startMain(t, ['admin', 'create', '--out', join(folder, 'admin.p12')], { environment });
  assert.equal(await admin.ended, 0, admin.stderr());
  const untilMs = Date.now() + 15_000;
  while (await status('--cert-type', 'P12', '--cert', 'admin.p12:') !== '200') {
    assert.ok(Date.now() < untilMs, 'the admin is believed');
  }
  assert.equal(await status(), '401');
});

test('TLS: an authority that the host trusts identifies nobody', async (t) => {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const trusted = await makeTestAuthority('A public CA', nowSeconds);
  const as = pairOf(await makeTestClient(trusted, { validity: validityFrom(nowSeconds, 30) }));
  const roots = join(temporaryFolder(t), 'roots.pem');
  writeFileSync(roots, encodePem('CERTIFICATE', trusted.certificate));
  const { port } = await start(t, { NODE_EXTRA_CA_CERTS: roots });
  assert.equal((await askTls(port, 'GET /pastes', { as })).status, 401);
  assert.equal((await askTls(port, 'POST /register')).status, 200);
  assert.equal((await askTls(port, 'GET /pastes', { as })).status, 401);
});

test('SIGHUP: a new certificate is shown, a broken one is not, and the process goes on', async (t) => {
  const { child, port, files, printed, stdout, ended } = await start(t);
  const renewed = await serverPair();
  assert.equal(await shownBy(port), readFileSync(files.tlsCertPath, 'utf8'));
  writeFileSync(files.tlsCertPath, renewed.cert);
  writeFileSync(files.tlsKeyPath, renewed.key);
  child.kill('SIGHUP');
  await printed(/main {2}reloaded {2}changed=SERVICE_TLS_CERT\n/);
  assert.equal(await shownBy(port), renewed.cert);
  writeFileSync(files.tlsKeyPath, PASSWORD);
  child.kill('SIGHUP');
  await printed(/main {2}reloaded {2}changed=nothing\n/);
  assert.match(stdout(), /error {2}config {2}setting not replaced .*"SERVICE_TLS_KEY: [^"]*"\n/);
  assert.equal(await shownBy(port), renewed.cert);
  assert.ok(!stdout().includes('canary'));
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
});

test('TLS: the log warns of a certificate that runs out soon, at the start', async (t) => {
  const folder = temporaryFolder(t);
  const files = writePair(t, await serverPair({ days: 10, nowMs: Date.now() }));
  const { printed, stdout } = await startServing(t, { environment: environmentOf(folder, files) });
  await printed(/warning {2}http {2}server certificate expires soon {2}begins=\S+ expires=\S+\n/);
  assert.equal(stdout().split('expires soon').length, 2, 'once');
});

test('main: a certificate that cannot be used ends with 78 and one line, before anything is opened', async (t) => {
  const folder = temporaryFolder(t);
  const pair = await serverPair();
  const cases = [
    [writePair(t, { ...pair, key: PASSWORD }), 'SERVICE_TLS_KEY: expected a PEM file with a private key'],
    [{ tlsCertPath: join(folder, 'none'), tlsKeyPath: join(folder, 'none') },
      'SERVICE_TLS_CERT: expected the path of a file that can be read (ENOENT)'],
  ] as const;
  for (const [files, problem] of cases) {
    const main = startMain(t, [], { environment: { ...environmentOf(folder, files), SERVICE_PORT: '0' } });
    assert.equal(await main.ended, 78);
    assert.equal(main.stderr(), `pasted: the settings cannot be used\n  ${problem}\n`);
    assert.throws(() => readFileSync(join(folder, 'pasted.db')), { code: 'ENOENT' });
  }
});
