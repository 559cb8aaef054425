// pastec register and cert: certificates that the service issues, where they are kept, in which forms they leave,
// and what they are good for. TLS itself, where curl presents them, is the reverse proxy's part.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { startApp, type RunningApp } from '../support/app.ts';
import { isInstalled, run as runProgram } from '../support/programs.ts';
import { clientOf, type Client } from '../support/shells.ts';

const ISSUING = { pkiEnabled: true, pkiCaPassword: 'of the authority', registerPowDifficultyBits: 8 } as const;
const SOLVER = { PASTEC_SOLVER: 'node' };
const REGISTER = ['register', '--allow-http'] as const;

interface Registered extends Client {
  readonly app: RunningApp;
  /** Where the certificate for this server is kept. */
  readonly certificates: string;
  readonly fingerprint: string;
}

async function registered(t: TestContext): Promise<Registered> {
  const app = await startApp(t, ISSUING);
  const client = clientOf(t, app.url);
  const { code, text, stderr } = await client.run([...REGISTER, '-n', 'A "quoted" \\ name'], { environment: SOLVER });
  assert.equal(code, 0, stderr);
  const [, fingerprint = ''] = /^fingerprint: ([0-9a-f]{40})$/m.exec(text) ?? assert.fail(text);
  const certificates = join(client.home, '.local', 'share', 'pastec', 'certificates', `127.0.0.1_${app.port}`);
  return { ...client, app, certificates, fingerprint };
}

test('pastec register: keeps certificate and own key privately, by host, and shows fingerprint and expiry', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { run, certificates, fingerprint } = await registered(t);
  assert.deepEqual(readdirSync(certificates).sort(), ['client.pem', 'facts']);
  for (const name of readdirSync(certificates)) assert.equal(statSync(join(certificates, name)).mode & 0o777, 0o600);
  assert.equal(statSync(certificates).mode & 0o777, 0o700);
  const certificate = new X509Certificate(readFileSync(join(certificates, 'client.pem')));
  assert.equal(certificate.fingerprint.replaceAll(':', '').toLowerCase(), fingerprint);
  assert.equal(certificate.subject, 'CN=A \\"quoted\\" \\\\ name');
  const shown = JSON.parse((await run(['cert', 'show', '--json'])).text) as Record<string, unknown>;
  const expires = Date.parse(certificate.validTo) / 1000;
  assert.deepEqual(shown, { fingerprint_sha1: fingerprint, expires_at: expires, is_admin: true });
  const status = await run(['status', '--fingerprint', fingerprint]);
  assert.match(status.text, /^own tier: trusted\ncertificate: -?\d+ days left$/m);
});

test('pastec register: a certificate that is there is replaced only when asked, and then kept beside', async (t) => {
  const { run, certificates, fingerprint } = await registered(t);
  const refused = await run(REGISTER, { environment: SOLVER });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /there is a certificate/);
  const replaced = await run([...REGISTER, '--force'], { environment: SOLVER });
  assert.equal(replaced.code, 0);
  assert.doesNotMatch(replaced.text, new RegExp(fingerprint));
  const kept = readdirSync(join(certificates, '..')).filter((name) => name.includes('.until.'));
  assert.equal(kept.length, 1);
  assert.match(readFileSync(join(certificates, '..', kept[0] ?? '', 'facts'), 'utf8'), new RegExp(fingerprint));
});

test('pastec cert export and import: PEM, PKCS#12 and the form for macOS carry the same certificate', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { run, folder, app, fingerprint } = await registered(t);
  writeFileSync(join(folder, 'password'), 'of the bundle');
  const host = `127.0.0.1_${app.port}`;
  assert.equal((await run(['cert', 'export'])).text, `client-${host}.p12\n`);
  assert.equal((await run(['cert', 'export', '--for', 'pem', '-o', 'out.pem'])).text, 'out.pem\n');
  const keychain = await run(['cert', 'export', '--for', 'keychain', '--password-file', 'password']);
  assert.equal(keychain.text, `keychain-${host}.p12\n`);
  assert.equal((await run(['cert', 'export', '--for', 'tea'])).code, 2);
  assert.match((await run(['cert', 'export', '--for', 'pem', '-o', '-'])).text, /BEGIN [A-Z ]*PRIVATE KEY/);
  const described = ['pkcs12', '-in', `keychain-${host}.p12`, '-passin', 'file:password', '-info', '-noout'];
  const info = runProgram('openssl', described, folder);
  assert.match(info.output, /MAC: sha1/);
  assert.match(info.output, /pbeWithSHA1And3-KeyTripleDES-CBC/);

  const withPassword = ['--password-file', join(folder, 'password')];
  const exported = [[`client-${host}.p12`, []], ['out.pem', []], [`keychain-${host}.p12`, withPassword]] as const;
  for (const [file, options] of exported) {
    assert.equal(statSync(join(folder, file)).mode & 0o777, 0o600);
    const { code, text, stderr } = await clientOf(t, app.url).run(['cert', 'import', join(folder, file), ...options]);
    assert.deepEqual([code, stderr], [0, ''], file);
    assert.match(text, new RegExp(`^fingerprint: ${fingerprint}$`, 'm'));
  }
  writeFileSync(join(folder, 'nothing'), 'no certificate');
  assert.equal((await clientOf(t, app.url).run(['cert', 'import', join(folder, 'nothing')])).code, 1);
});

test('pastec cert export: overwrites no file, and puts one aside when it is forced', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { run, folder, app } = await registered(t);
  const file = join(folder, `client-127.0.0.1_${app.port}.p12`);
  writeFileSync(file, 'of another server', { mode: 0o644 });
  symlinkSync('nowhere', join(folder, 'link'));
  for (const args of [[], ['-o', file], ['-o', 'link'], ['--force', '-o', 'link'], ['--force', '-o', '/dev/null']]) {
    const { code, text, stderr } = await run(['cert', 'export', ...args]);
    assert.deepEqual([args, code, text], [args, 1, '']);
    assert.match(stderr, /there is a file .*\n  --force|that is no file/);
  }
  assert.equal(readFileSync(file, 'utf8'), 'of another server');

  assert.equal((await run(['cert', 'export', '--force'])).code, 0);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const asides = readdirSync(folder).filter((name) => name.includes('.p12.until.'));
  assert.deepEqual(asides.map((name) => readFileSync(join(folder, name), 'utf8')), ['of another server']);

  writeFileSync(join(folder, '-x'), 'of another server');
  const dashed = await run(['cert', 'export', '--force', '-o', '-x']);
  assert.deepEqual([dashed.code, dashed.text, dashed.stderr], [0, '-x\n', '']);
});

test('pastec cert: whether it is the admin\'s is said of a certificate of which that is known', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { run, folder, app } = await registered(t);
  const shown = async ({ run: asked }: Pick<Client, 'run'>): Promise<unknown[]> => {
    const { is_admin } = JSON.parse((await asked(['cert', 'show', '--json'])).text) as Record<string, unknown>;
    return [/^admin: (.*)$/m.exec((await asked(['cert', 'show'])).text)?.[1], is_admin];
  };
  assert.deepEqual(await shown({ run }), ['true', true]);
  const second = clientOf(t, app.url);
  assert.equal((await second.run(REGISTER, { environment: SOLVER })).code, 0);
  assert.deepEqual(await shown(second), ['false', false]);
  await run(['cert', 'export', '-o', 'admin.p12']);
  const third = clientOf(t, app.url);
  assert.equal((await third.run(['cert', 'import', join(folder, 'admin.p12')])).code, 0);
  assert.deepEqual(await shown(third), [undefined, undefined], 'a file does not say it');
});

test('pastec cert import: notes the second of expiry, in any year and month', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { run, folder } = clientOf(t, 'http://127.0.0.1:9');
  for (const days of ['1', '59', '367', '1500', '9999', '27000']) {
    runProgram('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
      '-subj', '/CN=x', '-days', days, '-keyout', 'key.pem', '-out', 'certificate.pem'], folder);
    const certificate = readFileSync(join(folder, 'certificate.pem'), 'utf8');
    writeFileSync(join(folder, 'pair.pem'), `${certificate}${readFileSync(join(folder, 'key.pem'), 'utf8')}`);
    const { text } = await run(['cert', 'import', '--force', '--json', 'pair.pem']);
    const { expires_at } = JSON.parse(text) as { expires_at: number };
    assert.equal(expires_at, Date.parse(new X509Certificate(certificate).validTo) / 1000, `${days} days`);
  }
});

test('pastec cert revoke: ends the certificate at the server after --yes, and puts its files aside', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { run, app, certificates, fingerprint } = await registered(t);
  const unconfirmed = await run(['cert', 'revoke', '--fingerprint', fingerprint]);
  assert.equal(unconfirmed.code, 2);
  assert.match(unconfirmed.stderr, /confirm with --yes/);
  const revoked = await run(['cert', 'revoke', '--yes', '--fingerprint', fingerprint]);
  assert.deepEqual([revoked.code, revoked.stderr], [0, '']);
  assert.equal((await app.request('/pastes', { headers: { 'X-SSL-Client-SHA1': fingerprint } })).status, 401);
  assert.ok(readdirSync(join(certificates, '..')).every((name) => name.includes('.revoked.')));
  assert.equal((await run(['cert', 'show'])).code, 1);
});

test('pastec cert: without a certificate each part of it says how to get one', async (t) => {
  const { run } = clientOf(t, 'http://127.0.0.1:9');
  for (const part of ['show', 'export', 'revoke']) {
    const { code, stderr } = await run(['cert', part]);
    assert.equal(code, 1);
    assert.match(stderr, /pastec register/);
  }
});
