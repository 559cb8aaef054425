// GET /pki/ca.crl and /pki/ca.crl.pem for clients that fetch them again and again, and what becomes of their entries.
// What the list says of whom is in revocation.test.ts.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { CRL_TTL_SECONDS } from '../../src/authority/revocation-list.ts';
import { DAY_SECONDS } from '../../src/core/time.ts';
import { type RunningApp, startApp } from '../support/app.ts';
import { newFingerprint } from '../support/certificates.ts';
import { turnsOf } from '../support/cpu.ts';
import { createAuthority, issue, PKI, send, withAdmin } from '../support/pki.ts';
import { isInstalled, temporaryFolder } from '../support/programs.ts';

/** A list begins five minutes before it is made. */
const BACKDATE_MS = 300_000;
const HALF_LIFE_MS = (1000 * CRL_TTL_SECONDS) / 2 - BACKDATE_MS;
const STRANGER = newFingerprint();

/** SQLite alone makes the rows, so that none of the test's are to be collected while the service is measured. */
function insertRevoked(databasePath: string, count: number): void {
  const db = new DatabaseSync(databasePath, { timeout: 5000 });
  db.prepare(`
    WITH RECURSIVE turn (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM turn WHERE n < :count)
    INSERT INTO certificates (serial, common_name, fingerprint, created_at, expires_at, is_admin, revoked_at)
    SELECT printf('4%031x', n), 'alice', printf('%040x', n), 1, 4000000000, 0, 1700000000
    FROM turn`).run({ count });
  db.close();
}

function revoke(app: RunningApp, serial: string, as: string) {
  return send(app, `POST /pki/revoke/${serial}`, { as });
}

test('GET /pki/ca.crl: ETag and Last-Modified; 304 to whoever has it, until there is another', async (t) => {
  const app = await startApp(t, PKI);
  const { serial, fingerprint_sha1: holder } = await withAdmin(app);
  for (const path of ['/pki/ca.crl', '/pki/ca.crl.pem']) {
    const ask = async (method: string, known?: string): Promise<Response> => {
      const headers = known === undefined ? {} : { 'If-None-Match': known };
      const response = await app.request(path, { method, headers });
      await response.arrayBuffer();
      return response;
    };
    const first = await ask('GET');
    const etag = first.headers.get('etag') ?? assert.fail('no ETag');
    assert.match(etag, /^"\d+"$/);
    const lastModified = new Date(app.clock.unixMs()).toUTCString();
    for (const method of ['GET', 'HEAD']) {
      for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
        const { status, headers } = await ask(method, known);
        const shown = [status, headers.get('etag'), headers.get('last-modified')];
        assert.deepEqual(shown, [304, etag, lastModified], `${method} ${known}`);
      }
      const { status, headers } = await ask(method, '"x"');
      assert.deepEqual([status, headers.get('etag'), headers.get('last-modified')], [200, etag, lastModified]);
    }
    if (path.endsWith('.crl')) await revoke(app, serial, holder);
    else app.clock.advance(HALF_LIFE_MS);
    const next = await ask('GET', etag);
    assert.equal(next.status, 200);
    assert.notEqual(next.headers.get('etag'), etag);
  }
});

/** Status and Last-Modified of the answer to a client that has a list of that date. */
async function askSince(app: RunningApp, known: string, { path = '/pki/ca.crl', method = 'GET', headers = {} } = {}) {
  const response = await app.request(path, { method, headers: { 'If-Modified-Since': known, ...headers } });
  await response.arrayBuffer();
  return [response.status, response.headers.get('last-modified')];
}

const dateOf = (app: RunningApp, secondsAgo = 0): string => new Date(app.clock.unixMs() - 1000 * secondsAgo).toUTCString();

test('GET /pki/ca.crl: If-Modified-Since is 304 for the very date of the list, and nothing for any other', async (t) => {
  const app = await startApp(t, PKI);
  await createAuthority(app);
  const made = dateOf(app);
  for (const path of ['/pki/ca.crl', '/pki/ca.crl.pem']) {
    assert.deepEqual(await askSince(app, 'x', { path }), [200, made]);
    app.clock.advance(1000);
    for (const method of ['GET', 'HEAD']) assert.deepEqual(await askSince(app, made, { path, method }), [304, made]);
    for (const known of [dateOf(app, 60), dateOf(app), '', '0', `${made}, ${made}`, made.toLowerCase()]) {
      assert.deepEqual(await askSince(app, known, { path }), [200, made], known);
    }
    const headers = { 'If-None-Match': '"x"' };
    assert.deepEqual(await askSince(app, made, { path, headers }), [200, made], 'the entity tag counts alone');
  }
});

test('GET /pki/ca.crl: of two lists of one second, or of a clock that was set back, nobody keeps the first by its date', async (t) => {
  const app = await startApp(t, PKI);
  const clients = [await withAdmin(app), await issue(app), await issue(app)];
  const isListed = async (known: string): Promise<boolean> => {
    const { serial, fingerprint_sha1: holder } = clients.pop()!;
    assert.equal((await revoke(app, serial, holder)).status, 200);
    return (await askSince(app, known))[0] === 200;
  };
  const first = dateOf(app);
  assert.deepEqual(await askSince(app, 'x'), [200, first]);
  assert.ok(await isListed(first), 'the second one of that second');
  assert.deepEqual(await askSince(app, first), [200, first], 'which has no date of its own before the next');
  app.clock.advance(1000);
  assert.deepEqual(await askSince(app, first), [200, dateOf(app)]);
  assert.deepEqual(await askSince(app, dateOf(app)), [304, dateOf(app)]);
  const later = dateOf(app);
  app.clock.jump(-1000);
  assert.ok(await isListed(first));
  app.clock.jump(1000);
  assert.ok(await isListed(later));
});

test('GET /pki/ca.crl: curl -z fetches what was made after its file, however shortly', async (t) => {
  if (!isInstalled(t, 'curl')) return;
  const app = await startApp(t, PKI);
  const { serial, fingerprint_sha1: holder } = await withAdmin(app);
  const file = join(temporaryFolder(t), 'ca.crl');
  const fetchNewer = async (): Promise<string> => {
    const { stdout } = await promisify(execFile)('curl', ['-sS', '-z', file, '-o', file, '-w', '%{http_code}', `${app.url}/pki/ca.crl`]);
    // Without -R a file has the time of its download.
    utimesSync(file, app.clock.unixMs() / 1000, app.clock.unixMs() / 1000);
    return stdout;
  };
  assert.equal(await fetchNewer(), '200');
  app.clock.advance(1000);
  assert.equal(await fetchNewer(), '304');
  app.clock.advance(1000);
  assert.equal((await revoke(app, serial, holder)).status, 200);
  assert.equal(await fetchNewer(), '200');
  assert.ok(readFileSync(file).includes(Buffer.from(serial, 'hex')));
});

test('a revoked certificate that has run out: on one more list, then on none, and then it is forgotten', async (t) => {
  const app = await startApp(t, { ...PKI, pkiCertDays: 1 });
  await withAdmin(app);
  const { serial, fingerprint_sha1: holder } = await issue(app);
  await revoke(app, serial, holder);
  const isListed = async (): Promise<boolean> => {
    const list = Buffer.from(await (await app.request('/pki/ca.crl')).arrayBuffer());
    return list.includes(Buffer.from(serial, 'hex'));
  };
  const isThere = async (): Promise<boolean> => {
    await app.app.cleanup.run('expired certificates');
    const { json } = await send(app, `POST /pki/revoke/${serial}`, { as: STRANGER });
    return json['error'] === 'certificate already revoked';
  };
  assert.deepEqual([await isListed(), await isThere()], [true, true]);
  app.clock.advance(DAY_SECONDS * 1000 + 2 * 3_600_000);
  assert.deepEqual([await isListed(), await isThere()], [true, true], 'has run out, and no list was made since');
  app.clock.advance(HALF_LIFE_MS);
  await app.app.cleanup.run('revocation list');
  assert.equal(await isThere(), false, 'the one more list was made without anybody asking');
  assert.equal(await isListed(), true);
  app.clock.advance(HALF_LIFE_MS);
  assert.equal(await isListed(), false);
  const { status } = await send(app, 'GET /pastes', { as: holder });
  assert.equal(status, 200, 'a fingerprint like any other, which owns nothing');
});

test('GET /pki/ca.crl: a list of 100 000 is made and told a little in each turn of the event loop', async (t) => {
  const app = await startApp(t, PKI);
  await createAuthority(app);
  insertRevoked(app.config.databasePath, 100_000);
  // Made in a single turn, a list would take a third of all the time there; put into PEM in a single turn, nearly all.
  for (const [path, mostShare] of [['/pki/ca.crl', 1 / 20], ['/pki/ca.crl.pem', 1 / 2]] as const) {
    let bytes = 0;
    const { totalMs, longestMs } = await turnsOf(async () => {
      const response = await app.request(path);
      assert.equal(response.status, 200);
      for await (const piece of response.body!) bytes += piece.length;
    });
    assert.ok(bytes > 3_000_000, `${bytes} bytes`);
    t.diagnostic(`${path}: ${totalMs} ms on the processor, ${longestMs} ms of it in one turn of the event loop`);
    assert.ok(longestMs <= totalMs * mostShare, path);
  }
});
