// What a TLS handshake of the listener agrees on, with openssl as the client: which cipher suites, and no session
// tickets. Who is identified is tls-identity.test.ts.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { openssl, PKI } from '../support/pki.ts';
import { isInstalled, temporaryFolder } from '../support/programs.ts';
import { serverPair, startTlsApp, type Pair } from '../support/tls.ts';

const SUITES_OF_TLS_1_3 = ['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256'];

/** By the key of the server's certificate. */
const SUITES_OF_TLS_1_2 = {
  ECDSA: ['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-ECDSA-AES128-GCM-SHA256'],
  RSA: ['ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-CHACHA20-POLY1305', 'ECDHE-RSA-AES128-GCM-SHA256'],
} as const;

/** Everything that this openssl has beside those, the weakest included. */
const ALL_OTHERS = ['ALL', ...Object.values(SUITES_OF_TLS_1_2).flat().map((suite) => `!${suite}`), '@SECLEVEL=0'].join(':');

function rsaPair(t: TestContext): Pair {
  const folder = temporaryFolder(t);
  openssl(folder, 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'key', '-out', 'cert', '-subj', '/CN=127.0.0.1');
  return { cert: readFileSync(join(folder, 'cert'), 'utf8'), key: readFileSync(join(folder, 'key'), 'utf8') };
}

/** What openssl says of a connection with one request on it; the server runs in this process, so it must not wait. */
function handshake(port: number, ...args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    const client = execFile('openssl', ['s_client', '-connect', `127.0.0.1:${port}`, '-ign_eof', ...args], (_, stdout, stderr) => {
      resolve(stdout + stderr);
    });
    client.stdin?.end('GET /health HTTP/1.1\r\nHost: paste.test\r\nConnection: close\r\n\r\n');
  });
}

test('TLS: the six suites of TLS 1.2 with ECDHE and AEAD and the three of TLS 1.3, and no others', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const pairs = { ECDSA: await serverPair(), RSA: rsaPair(t) };
  for (const kind of ['ECDSA', 'RSA'] as const) {
    const { port } = await startTlsApp(t, {}, { pair: pairs[kind] });
    for (const suite of SUITES_OF_TLS_1_2[kind]) {
      assert.match(await handshake(port, '-tls1_2', '-cipher', suite), new RegExp(`Cipher is ${suite}[^]*200 OK`));
    }
    for (const suite of SUITES_OF_TLS_1_3) {
      assert.match(await handshake(port, '-tls1_3', '-ciphersuites', suite), new RegExp(`Cipher is ${suite}[^]*200 OK`));
    }
    const refused = await handshake(port, '-tls1_2', '-cipher', ALL_OTHERS);
    assert.match(refused, /Cipher is \(NONE\)[^]*handshake failure/, kind);
  }
});

test('TLS: no session tickets, since none could be used, also once an authority is trusted', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { port, ask } = await startTlsApp(t, PKI);
  for (const hasAuthority of [false, true]) {
    if (hasAuthority) assert.equal((await ask('POST /pki/ca')).status, 201);
    for (const version of ['-tls1_2', '-tls1_3']) {
      const said = await handshake(port, version);
      assert.match(said, /200 OK/);
      assert.doesNotMatch(said, /ticket/i, version);
    }
  }
});
