// `pasted tls`: what it writes, prints and refuses.

import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import fs from 'node:fs';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { runCommandLine } from '../../src/operator/arguments.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';
import { temporaryFolder } from '../support/programs.ts';

/** Where the fake terminal's clock stands, Unix seconds. */
const NOW = 1_769_860_800;

function openFolder(t: TestContext) {
  const folder = temporaryFolder(t);
  const [certPath, keyPath] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  async function selfSigned(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const fake = fakeTerminal(['tls', 'self-signed', '--out-cert', certPath, `--out-key=${keyPath}`, ...words]);
    const code = await runCommandLine(fake.terminal);
    return { code, stdout: fake.stdout(), stderr: fake.stderr() };
  }
  return { folder, certPath, keyPath, selfSigned };
}

test('tls self-signed: writes a certificate that all may read and its key for the owner alone, and says what to do', async (t) => {
  const { certPath, keyPath, selfSigned } = openFolder(t);
  const { code, stdout, stderr } = await selfSigned('--host', '*.Paste.example, ::1,192.0.2.1,::1');
  assert.deepEqual([code, stderr], [0, '']);
  const certificate = new X509Certificate(readFileSync(certPath));
  const key = readFileSync(keyPath, 'utf8');
  assert.match(key, /^-----BEGIN PRIVATE KEY-----\n/);
  assert.ok(certificate.checkPrivateKey(createPrivateKey(key)));
  assert.equal(certificate.checkHost('a.paste.example'), '*.paste.example');
  assert.deepEqual([certificate.checkIP('::1'), certificate.checkIP('192.0.2.1')], ['::1', '192.0.2.1']);
  assert.equal(certificate.validToDate.getTime() / 1000, NOW + 365 * 86_400);
  assert.equal(statSync(keyPath).mode & 0o777, 0o600);
  assert.equal(statSync(certPath).mode & 0o777, 0o644 & ~process.umask());
  assert.deepEqual(stdout.split('\n'), [
    `Wrote ${certPath} and ${keyPath}.`,
    'names        *.paste.example, ::1, 192.0.2.1',
    `fingerprint  ${certificate.fingerprint256}`,
    'valid        2026-01-31T11:55:00Z to 2027-01-31T12:00:00Z',
    '',
    'The service uses them with these settings:',
    `  SERVICE_TLS_CERT=${certPath}`,
    `  SERVICE_TLS_KEY=${keyPath}`,
    'Clients need the certificate to trust it:',
    `  curl --cacert ${certPath} https://[::1]:8080/`,
    '',
  ]);
});

test('tls self-signed --json: one object on one line', async (t) => {
  const { certPath, keyPath, selfSigned } = openFolder(t);
  const { stdout } = await selfSigned('--host', 'localhost', '--days', '824', '--json');
  assert.equal(stdout.indexOf('\n'), stdout.length - 1);
  const certificate = new X509Certificate(readFileSync(certPath));
  assert.deepEqual(JSON.parse(stdout), {
    certificate_file: certPath,
    key_file: keyPath,
    names: ['localhost'],
    serial: certificate.serialNumber.toLowerCase(),
    fingerprint_sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
    created_at: NOW,
    expires_at: NOW + 824 * 86_400,
  });
});

test('tls self-signed: never over an existing file, and then leaves neither', async (t) => {
  const { folder, certPath, keyPath, selfSigned } = openFolder(t);
  for (const [taken, other] of [[certPath, keyPath], [keyPath, certPath]] as const) {
    writeFileSync(taken, 'mine');
    const stderr = `pasted: ${taken} exists already, and is not overwritten\n`;
    assert.deepEqual(await selfSigned('--host', 'localhost'), { code: 1, stdout: '', stderr });
    assert.equal(readFileSync(taken, 'utf8'), 'mine');
    assert.equal(existsSync(other), false);
    fs.rmSync(taken);
  }
  const same = fakeTerminal(['tls', 'self-signed', '--host', 'a', '--out-cert', keyPath, '--out-key', keyPath]);
  assert.equal(await runCommandLine(same.terminal), 1);
  assert.deepEqual(readdirSync(folder), []);
});

test('tls self-signed: a disk that is full leaves neither', async (t) => {
  const { folder, selfSigned } = openFolder(t);
  const full = t.mock.method(fs, 'fsyncSync', () => {
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  });
  syncBuiltinESMExports();
  const { code, stderr } = await selfSigned('--host', 'localhost');
  full.mock.restore();
  syncBuiltinESMExports();
  assert.equal(code, 1);
  assert.match(stderr, /^pasted: \S+ cannot be written \(ENOSPC\)\n$/);
  assert.deepEqual(readdirSync(folder), []);
});

test('tls self-signed: refuses what is no name, too many of them, and other numbers of days', async (t) => {
  const { folder, selfSigned } = openFolder(t);
  const many = (count: number) => Array.from({ length: count }, (_, index) => `h${index}.example`).join(',');
  for (const [words, message] of [
    [['--host', 'a,'], '--host takes host names and addresses'],
    [['--host', 'https://a'], '--host takes host names and addresses'],
    [['--host', '0.0.0.0'], '--host takes host names and addresses'],
    [['--host', many(101)], '--host takes at most 100 names'],
    [['--host', 'a', '--days', '0'], '--days takes a whole number from 1 to 824'],
    [['--host', 'a', '--days', '825'], '--days takes a whole number from 1 to 824'],
    [[], 'tls self-signed needs --host NAMES'],
  ] as const) {
    const { code, stderr } = await selfSigned(...words);
    assert.equal(code, 2);
    assert.ok(stderr.startsWith(`pasted: ${message}`), stderr);
  }
  assert.deepEqual(readdirSync(folder), []);
  assert.equal((await selfSigned('--host', many(100))).code, 0);
});

test('tls self-signed: of patterns alone, the line for clients asks for a host of the first of them', async (t) => {
  const { certPath, selfSigned } = openFolder(t);
  const { code, stdout } = await selfSigned('--host', '*.Paste.example,*.other.example');
  assert.equal(code, 0);
  const certificate = new X509Certificate(readFileSync(certPath));
  assert.equal(certificate.checkHost('paste.paste.example'), '*.paste.example');
  assert.ok(stdout.endsWith(`  curl --cacert ${certPath} https://paste.paste.example:8080/\n`), stdout);
});
