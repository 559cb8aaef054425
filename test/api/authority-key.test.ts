// The private key of the authority over real sockets and restarts: how it is kept, and what a wrong password does.

import assert from 'node:assert/strict';
import { createPublicKey, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { startApp, type RunningApp } from '../support/app.ts';
import {
  authorityPem, CA_PASSWORD, createAuthority, issue, openssl, PKI, send, withAdmin, withRestarted, writeFiles,
} from '../support/pki.ts';
import { assertError } from '../support/posting.ts';
import { isInstalled, run, temporaryFolder } from '../support/programs.ts';
import { selectValue } from '../support/store.ts';

/** Waits for a line of the log, since nothing else tells when it comes. */
async function logged(app: RunningApp, event: string): Promise<void> {
  const untilMs = Date.now() + 15_000;
  while (!app.logged.some((entry) => entry.event === event)) {
    assert.ok(Date.now() < untilMs, `${event} is logged`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test('the CA key at rest: openssl opens it with the password, and it is the certificate\'s', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const app = await startApp(t, PKI);
  await createAuthority(app);
  const folder = temporaryFolder(t);
  const locked = selectValue(app.config.databasePath, 'SELECT locked_key FROM authority') as Uint8Array;
  writeFiles(folder, { 'ca.key': locked });
  const open = ['pkey', '-inform', 'DER', '-in', 'ca.key', '-pubout', '-passin'];
  const publicKey = createPublicKey(openssl(folder, ...open, `pass:${CA_PASSWORD}`));
  assert.ok(publicKey.equals(new X509Certificate(await authorityPem(app)).publicKey));
  assert.notEqual(run('openssl', [...open, 'pass:wrong'], folder).status, 0);
});

test('a wrong CA password: logged at start, 500 for callers, nothing damaged; the right one works after', async (t) => {
  const before = await startApp(t, PKI);
  const client = await withAdmin(before);
  const holder = { as: client.fingerprint_sha1 };
  const dump = (): unknown => {
    return selectValue(before.config.databasePath, 'SELECT hex(certificate) || hex(locked_key) FROM authority');
  };
  const stored = dump();
  const lines = [before.logged];

  await withRestarted(t, before, { pkiCaPassword: 'wrong' }, async (after) => {
    lines.push(after.logged);
    await logged(after, 'CA key not usable');
    for (const path of ['/pki/issue', '/register']) {
      assertError(await send(after, `POST ${path}`, { body: { common_name: 'x' } }), 500, 'certificate issuance failed');
    }
    assertError(await send(after, 'GET /pki/ca.crl'), 500, 'certificate issuance failed');
    assertError(await send(after, 'POST /pki/ca'), 409, 'CA already exists');
    assert.equal((await send(after, 'GET /pki/certs', holder)).json['count'], 1);
    const { status } = await send(after, `POST /pki/revoke/${client.serial}`, holder);
    assert.equal(status, 200, 'revoking needs no signature');
    assert.equal(dump(), stored);
  });

  await withRestarted(t, before, {}, async (after) => {
    lines.push(after.logged);
    assert.equal((await issue(after)).is_admin, false);
    assert.equal((await after.request('/pki/ca.crl')).status, 200);
    assert.equal(after.logged.some(({ event }) => event === 'CA key not usable'), false);
  });
  const text = JSON.stringify(lines);
  for (const secret of [CA_PASSWORD, 'PRIVATE KEY', '"wrong"']) assert.equal(text.includes(secret), false);
});
