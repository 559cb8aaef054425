// The certificate that `pasted tls self-signed` makes, in the clients that it is for: each is told to trust the
// certificate, and must then trust the server by its names and by no other name.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { isInstalled, run, temporaryFolder } from '../support/programs.ts';
import { serverCertificate } from '../support/server-certificate.ts';

async function writeCertificate(t: TestContext): Promise<{ folder: string; cert: string; key: string }> {
  const folder = temporaryFolder(t);
  const { cert, key } = await serverCertificate('localhost', '127.0.0.1', '::1', '*.paste.example');
  for (const [name, text] of [['server.crt', cert], ['server.key', key]] as const) writeFileSync(join(folder, name), text);
  return { folder, cert, key };
}

/** A server with that certificate; `ask` runs a program against it, and gives its status and output. */
async function serve(t: TestContext) {
  const { folder, cert, key } = await writeCertificate(t);
  const server = createServer({ cert, key }, (_request, response) => response.setHeader('Connection', 'close').end('well'));
  server.listen({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const ask = (program: string, args: readonly string[]): Promise<{ status: number; output: string }> =>
    new Promise((resolve) => {
      const child = execFile(program, args, { cwd: folder, timeout: 30_000 }, (error, stdout, stderr) => {
        resolve({ status: error === null ? 0 : Number(error.code ?? -1), output: `${stdout}${stderr}` });
      });
      child.stdin?.end();
    });
  return { port, ask };
}

test('openssl: reads and strictly verifies it, as a server and as nothing else', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { folder } = await writeCertificate(t);
  const { output } = run('openssl', ['x509', '-in', 'server.crt', '-noout', '-text'], folder);
  for (const expected of [
    /Signature Algorithm: ecdsa-with-SHA256/,
    /NIST CURVE: P-256/,
    /Basic Constraints: critical\s+CA:FALSE\s/,
    /Extended Key Usage: \s+TLS Web Server Authentication\s/,
    /DNS:localhost, IP Address:127\.0\.0\.1, IP Address:0:0:0:0:0:0:0:1, DNS:\*\.paste\.example\s/,
  ]) {
    assert.match(output, expected);
  }
  const verify = (...args: string[]) =>
    run('openssl', ['verify', '-x509_strict', '-CAfile', 'server.crt', ...args, 'server.crt'], folder).stdout;
  assert.equal(verify('-purpose', 'sslserver', '-verify_hostname', 'a.paste.example'), 'server.crt: OK\n');
  assert.equal(verify('-verify_ip', '127.0.0.1'), 'server.crt: OK\n');
  for (const args of [['-purpose', 'sslclient'], ['-verify_hostname', 'paste.example'], ['-verify_ip', '127.0.0.2']]) {
    assert.notEqual(verify(...args), 'server.crt: OK\n', args.join(' '));
  }
  assert.match(run('openssl', ['pkey', '-in', 'server.key', '-noout', '-text'], folder).output, /P-256/);
});

test('curl --cacert: trusts it under its names and addresses', async (t) => {
  if (!isInstalled(t, 'curl')) return;
  const { port, ask } = await serve(t);
  const curl = (host: string) => ask('curl', [
    '-sS', '--noproxy', '*', '--cacert', 'server.crt', '--resolve', `*:${port}:127.0.0.1`, `https://${host}:${port}/`,
  ]);
  for (const host of ['localhost', '127.0.0.1', 'a.paste.example']) {
    assert.deepEqual(await curl(host), { status: 0, output: 'well' }, host);
  }
  // CURLE_PEER_FAILED_VERIFICATION
  for (const host of ['a.b.paste.example', 'other.example']) assert.equal((await curl(host)).status, 60, host);
});

test('gnutls-cli: trusts it when it is given it', async (t) => {
  if (!isInstalled(t, 'gnutls-cli')) return;
  const { port, ask } = await serve(t);
  const trusted = await ask('gnutls-cli', ['--x509cafile', 'server.crt', '-p', String(port), 'localhost']);
  assert.match(trusted.output, /The certificate is trusted/);
  const other = await ask('gnutls-cli', ['--x509cafile', 'server.crt', '-p', String(port), '--verify-hostname', 'other.example', '127.0.0.1']);
  assert.match(other.output, /NOT trusted/);
});

test('certutil: NSS, and so Firefox and Chromium, take it as a trusted server', async (t) => {
  if (!isInstalled(t, 'certutil')) return;
  const { folder } = await writeCertificate(t);
  run('certutil', ['-N', '-d', 'sql:.', '--empty-password'], folder);
  run('certutil', ['-A', '-d', 'sql:.', '-n', 'server', '-t', 'P,,', '-i', 'server.crt'], folder);
  assert.match(run('certutil', ['-V', '-d', 'sql:.', '-n', 'server', '-u', 'V'], folder).output, /certificate is valid/);
});

test('python: the strict verification of its ssl module trusts it', async (t) => {
  if (!isInstalled(t, 'python3')) return;
  const { port, ask } = await serve(t);
  const program = `
import socket, ssl
context = ssl.create_default_context(cafile='server.crt')
context.verify_flags |= ssl.VERIFY_X509_STRICT
context.wrap_socket(socket.create_connection(('127.0.0.1', ${port})), server_hostname='localhost').close()
print('trusted')`;
  assert.deepEqual(await ask('python3', ['-c', program]), { status: 0, output: 'trusted\n' });
});
