// Bundles in the programs that people will open them with.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { before, test, type TestContext } from 'node:test';
import { connect, createSecureContext, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { validityFrom } from '../../src/authority/certificates.ts';
import { encodePem, privateKeyPem } from '../../src/authority/keys.ts';
import { type BundleProfile, makeBundle } from '../../src/authority/pkcs12.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import { makeTestAuthority, makeTestClient, type TestAuthority, type TestClient } from '../support/authority.ts';
import { isInstalled, run, temporaryFolder } from '../support/programs.ts';

/** The programs go by the host's clock. */
const NOW = Math.floor(Date.now() / 1000);
const PASSWORD = 'correct horse';

interface Bundle {
  readonly name: string;
  readonly profile: BundleProfile;
  readonly password: string;
  readonly iterations: number;
}

// A compat bundle with a password takes seconds of derivation; its iteration count is tested without any in test/unit.
const BUNDLES: readonly Bundle[] = [
  { name: 'modern', profile: 'modern', password: '', iterations: 2048 },
  { name: 'compat', profile: 'compat', password: '', iterations: 2048 },
  { name: 'password', profile: 'modern', password: PASSWORD, iterations: 300_000 },
];

let authority: TestAuthority;
let client: TestClient;
const encodings = new Map<string, Uint8Array>();

before(async () => {
  authority = await makeTestAuthority('Paste Service CA', NOW);
  client = await makeTestClient(authority, { commonName: 'alice', validity: validityFrom(NOW, 365) });
  const contents = {
    certificate: client.certificate,
    privateKey: client.keyPair.privateKey,
    authority: authority.certificate,
    commonName: 'alice',
  };
  for (const { name, profile, password } of BUNDLES) {
    encodings.set(name, await makeBundle({ profile, password, ...contents }, randomBytes));
  }
});

function writeBundles(t: TestContext): string {
  const folder = temporaryFolder(t);
  for (const [name, encoding] of encodings) writeFileSync(join(folder, `${name}.p12`), encoding);
  return folder;
}

test('openssl pkcs12: reads the algorithms, and opens with the password alone', (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = writeBundles(t);
  for (const { name, profile, password, iterations } of BUNDLES) {
    const info = (pass: string) =>
      run('openssl', ['pkcs12', '-in', `${name}.p12`, '-passin', `pass:${pass}`, '-info', '-noout'], folder);
    const { status, output } = info(password);
    assert.equal(status, 0, output);
    const scheme = profile === 'modern'
      ? `PBES2, PBKDF2, AES-256-CBC, Iteration ${iterations}, PRF hmacWithSHA256`
      : `pbeWithSHA1And3-KeyTripleDES-CBC, Iteration ${iterations}`;
    assert.ok(output.includes(`MAC: ${profile === 'modern' ? 'sha256' : 'sha1'}, Iteration ${iterations}`), output);
    assert.ok(output.includes(`PKCS7 Encrypted data: ${scheme}`), output);
    assert.ok(output.includes(`Shrouded Keybag: ${scheme}`), output);
    if (password === '') assert.notEqual(info('wrong').status, 0);
  }
});

test('openssl pkcs12: takes out the certificates and the key that went in', (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = writeBundles(t);
  for (const { name, password } of BUNDLES) {
    const args = ['pkcs12', '-in', `${name}.p12`, '-passin', `pass:${password}`, '-nodes'];
    const { stdout } = run('openssl', args, folder);
    assert.ok(stdout.includes(encodePem('CERTIFICATE', client.certificate)));
    assert.ok(stdout.includes(encodePem('CERTIFICATE', authority.certificate)));
    assert.ok(stdout.includes(privateKeyPem(client.keyPair.privateKey)));
    assert.equal(stdout.match(/friendlyName: alice/g)?.length, 2);
    const keyId = (client.fingerprint.toUpperCase().match(/../g) ?? []).join(' ');
    assert.equal(stdout.match(new RegExp(`localKeyID: ${keyId}`, 'g'))?.length, 2);
  }
});

test('openssl asn1parse: bundles are whole', (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = writeBundles(t);
  for (const { name } of BUNDLES) {
    const { status, output } = run('openssl', ['asn1parse', '-inform', 'DER', '-in', `${name}.p12`], folder);
    assert.equal(status, 0, output);
    assert.doesNotMatch(output, /l= *inf/, 'definite lengths only');
  }
});

test('certtool --p12-info: GnuTLS opens an empty password as two zero bytes, and not as none', (t) => {
  if (!isInstalled(t, 'certtool')) return;
  const folder = writeBundles(t);
  for (const { name, password, iterations } of BUNDLES) {
    const info = (...secret: string[]) =>
      run('certtool', ['--inder', '--p12-info', ...secret, '--infile', `${name}.p12`], folder);
    const { status, output } = info(`--password=${password}`);
    assert.equal(status, 0, output);
    assert.match(output, new RegExp(`Iteration count: ${iterations}`));
    assert.match(output, /Friendly name: alice/);
    assert.doesNotMatch(output, /failed/);
    if (password !== '') continue;
    assert.match(info('--null-password').output, /Message Authentication Code verification failed/);
  }
});

test('pk12util: NSS imports the certificate together with its key', (t) => {
  if (!isInstalled(t, 'pk12util') || !isInstalled(t, 'certutil')) return;
  const folder = writeBundles(t);
  for (const { name, password } of BUNDLES) {
    mkdirSync(join(folder, `${name}-db`));
    const database = `sql:${name}-db`;
    run('certutil', ['-N', '-d', database, '--empty-password'], folder);
    const imported = run('pk12util', ['-i', `${name}.p12`, '-d', database, '-W', password], folder);
    assert.match(imported.output, /PKCS12 IMPORT SUCCESSFUL/);
    assert.match(run('certutil', ['-L', '-d', database], folder).output, /alice +u,u,u/);
    assert.match(run('certutil', ['-K', '-d', database], folder).output, / ec +[0-9a-f]{40} +alice/);
  }
});

test('keytool: Java lists a key entry with its chain', (t) => {
  if (!isInstalled(t, 'keytool')) return;
  const folder = writeBundles(t);
  // Java takes seconds for 300 000 iterations; the programs above have opened that bundle.
  for (const { name, password } of BUNDLES.filter(({ iterations }) => iterations === 2048)) {
    const store = ['-storetype', 'PKCS12', '-keystore', `${name}.p12`, '-storepass', password];
    const { status, output } = run('keytool', ['-list', '-v', ...store], folder);
    assert.equal(status, 0, output);
    assert.match(output, /Alias name: alice/);
    assert.match(output, /Entry type: PrivateKeyEntry/);
    assert.match(output, /Certificate chain length: 2/);
    assert.ok(output.replaceAll(':', '').toLowerCase().includes(client.fingerprint));
  }
});

test('tls.createSecureContext: node opens every bundle with its password, and with no other', () => {
  for (const { name, password } of BUNDLES) {
    const pfx = Buffer.from(encodings.get(name) ?? []);
    createSecureContext({ pfx, passphrase: password });
    assert.throws(() => createSecureContext({ pfx, passphrase: 'wrong' }), /mac verify failure/);
  }
});

/**
 * A server on loopback that wants certificates of the authority, and answers with the fingerprint of the one it got.
 */
async function startServer(t: TestContext): Promise<number> {
  const options = {
    key: privateKeyPem(authority.privateKey),
    cert: encodePem('CERTIFICATE', authority.certificate),
    ca: encodePem('CERTIFICATE', authority.certificate),
    requestCert: true,
    rejectUnauthorized: true,
  };
  const server = createServer(options, (request, response) => {
    response.end((request.socket as TLSSocket).getPeerCertificate().fingerprint);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close().closeAllConnections());
  return (server.address() as AddressInfo).port;
}

test('TLS: a client with a bundle is let in, one without is not', async (t) => {
  const port = await startServer(t);
  for (const { name, password } of BUNDLES) {
    const pfx = Buffer.from(encodings.get(name) ?? []);
    const socket = connect({ port, host: '127.0.0.1', pfx, passphrase: password, rejectUnauthorized: false });
    socket.setEncoding('utf8');
    socket.end('GET / HTTP/1.0\r\n\r\n');
    const answer = (await socket.toArray()).join('');
    assert.ok(answer.replaceAll(':', '').toLowerCase().endsWith(client.fingerprint), answer);
  }
  const nobody = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  nobody.resume();
  const [error] = await once(nobody, 'error');
  assert.match(String(error), /certificate required|reset/i);
});

test('curl: takes a bundle with an empty password as it is', async (t) => {
  if (!isInstalled(t, 'curl')) return;
  const folder = writeBundles(t);
  const port = await startServer(t);
  const version = run('curl', ['--version'], folder).stdout;
  if (!/OpenSSL/.test(version)) {
    t.skip('curl is not built with OpenSSL');
    return;
  }
  for (const name of ['modern', 'compat']) {
    const args = ['-sSk', '--cert', `${name}.p12:`, '--cert-type', 'P12', `https://127.0.0.1:${port}/`];
    const { stdout } = await promisify(execFile)('curl', args, { cwd: folder, timeout: 20_000 });
    assert.equal(stdout.replaceAll(':', '').toLowerCase(), client.fingerprint);
  }
});
