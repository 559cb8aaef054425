// `pasted pki ca renew` and `pki ca passphrase`: what they change, print and refuse, and that one wins when they race.
// Beside a running server, and what openssl says: api/authority-life.test.ts. Killed: crash/governing-kill.test.ts.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import crypto, { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { readIssuer } from '../../src/authority/certificates.ts';
import { AuthorityKeyError } from '../../src/authority/keys.ts';
import { CA_PASSWORD, openDesk, type Desk } from '../support/operator.ts';
import { selectValue } from '../support/store.ts';

const NOW = 1_769_860_800;
const DAY = 86_400;
const NEW_PASSWORD = 'canary of the new password: ä';
const LATER = { SERVICE_PKI_CA_DAYS: '5000' };

function storedIn(path: string): { certificate: Uint8Array; locked_key: Uint8Array } & Record<string, unknown> {
  const db = new DatabaseSync(path, { readOnly: true });
  const row = db.prepare('SELECT * FROM authority').get();
  db.close();
  return { ...row } as ReturnType<typeof storedIn>;
}

const lastAudited = (path: string): unknown =>
  JSON.parse(selectValue(path, 'SELECT json_array(event, outcome, client_id, details) FROM audit ORDER BY id DESC LIMIT 1') as string);

const auditedCount = (path: string): unknown => selectValue(path, 'SELECT count(*) FROM audit');

function changePassword({ folder, pasted }: Desk, password: string, changes = {}): ReturnType<Desk['pasted']> {
  const path = join(folder, `new-${password.length}-${password.charCodeAt(0)}`);
  writeFileSync(path, `${password}\n`);
  return pasted(['pki', 'ca', 'passphrase', '--new-password-file', path], changes);
}

test('pki ca renew: another serial and end, the same name, key, identifier and locked key; audited', async (t) => {
  const desk = openDesk(t);
  await desk.createAdmin();
  const before = storedIn(desk.databasePath);
  const { code, stdout, stderr } = await desk.pasted(['pki', 'ca', 'renew'], LATER);
  assert.deepEqual([code, stderr], [0, '']);
  const after = storedIn(desk.databasePath);
  const [old, renewed] = [before, after].map(({ certificate }) => new X509Certificate(certificate)) as [X509Certificate, X509Certificate];
  assert.deepEqual(stdout.split('\n'), [
    'The certificate authority "Paste Service CA" is valid until 2039-10-10T12:00:00Z now.',
    `fingerprint  ${renewed.fingerprint256}`,
    'A proxy that verifies client certificates needs the new one: pasted pki ca',
    '',
  ]);
  assert.equal(renewed.validToDate.getTime(), (NOW + 5000 * DAY) * 1000);
  assert.equal(renewed.validFromDate.getTime(), (NOW - 300) * 1000);
  assert.notEqual(renewed.serialNumber, old.serialNumber);
  assert.ok(renewed.publicKey.equals(old.publicKey) && renewed.ca && renewed.checkIssued(renewed) && renewed.verify(old.publicKey));
  assert.deepEqual(readIssuer(after.certificate), readIssuer(before.certificate));
  const fingerprint = renewed.fingerprint.replaceAll(':', '').toLowerCase();
  const { certificate: _, ...rest } = before;
  assert.deepEqual(after, { ...rest, certificate: after.certificate, fingerprint, created_at: NOW, expires_at: NOW + 5000 * DAY });
  const [event, outcome, client, details] = lastAudited(desk.databasePath) as [string, string, null, string];
  assert.deepEqual([event, outcome, client], ['cert_issued', 'success', null]);
  assert.deepEqual(JSON.parse(details), {
    type: 'ca', common_name: 'Paste Service CA', fingerprint, expires_at: NOW + 5000 * DAY, via: 'command line',
  });
  assert.equal((await desk.pasted(['pki', 'ca'])).stdout, renewed.toString());
});

test('pki ca renew --json: one object on one line', async (t) => {
  const desk = openDesk(t);
  await desk.createAdmin();
  const { stdout } = await desk.pasted(['pki', 'ca', 'renew', '--json'], LATER);
  assert.equal(stdout.indexOf('\n'), stdout.length - 1);
  const { certificate, fingerprint } = storedIn(desk.databasePath);
  assert.deepEqual(JSON.parse(stdout), {
    serial: new X509Certificate(certificate).serialNumber.toLowerCase(), common_name: 'Paste Service CA',
    fingerprint_sha1: fingerprint, created_at: NOW, expires_at: NOW + 5000 * DAY,
  });
});

test('pki ca renew: an authority that was made while the clock was ahead may end sooner', async (t) => {
  const desk = openDesk(t);
  await desk.createAdmin();
  const db = new DatabaseSync(desk.databasePath);
  db.exec(`UPDATE authority SET created_at = created_at + ${700 * DAY}, expires_at = expires_at + ${700 * DAY}`);
  db.close();
  const { code, stdout, stderr } = await desk.pasted(['pki', 'ca', 'renew', '--json']);
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal((JSON.parse(stdout) as { expires_at: number }).expires_at, NOW + 3650 * DAY);
  assert.equal((await desk.pasted(['pki', 'ca', 'renew'])).code, 1, 'once more');
});

test('pki ca renew: refuses an end that is no later, and says which setting to raise; a second more is taken', async (t) => {
  const desk = openDesk(t);
  await desk.createAdmin();
  const before = storedIn(desk.databasePath);
  for (const days of ['3650', '3649', '1']) {
    const { code, stdout, stderr } = await desk.pasted(['pki', 'ca', 'renew'], { SERVICE_PKI_CA_DAYS: days });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^pasted: the certificate authority is valid until 2036-\S+, and would be until \S+: raise SERVICE_PKI_CA_DAYS\n$/);
  }
  assert.deepEqual(storedIn(desk.databasePath), before);
  const db = new DatabaseSync(desk.databasePath);
  db.exec('UPDATE authority SET expires_at = expires_at - 1');
  db.close();
  assert.equal((await desk.pasted(['pki', 'ca', 'renew'])).code, 0);
});

test('pki ca passphrase: the new password opens the key and the old one does not; certificate and name stay; audited', async (t) => {
  const desk = openDesk(t);
  await desk.createAdmin();
  const before = storedIn(desk.databasePath);
  const { code, stdout, stderr } = await changePassword(desk, NEW_PASSWORD);
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(stdout, 'The key of the certificate authority has the new password: make it SERVICE_PKI_CA_PASSWORD now, ' +
    'and restart the service.\n');
  const after = storedIn(desk.databasePath);
  assert.deepEqual(after, { ...before, locked_key: after.locked_key });
  assert.notDeepEqual(after.locked_key, before.locked_key);
  const [event, outcome, client, details] = lastAudited(desk.databasePath) as [string, string, null, string];
  assert.deepEqual([event, outcome, client], ['ca_password_changed', 'success', null]);
  assert.deepEqual(JSON.parse(details), { fingerprint: before['fingerprint'], via: 'command line' });
  for (const name of readdirSync(desk.folder).filter((each) => each.startsWith('pasted.db'))) {
    assert.ok(!readFileSync(join(desk.folder, name)).includes('canary of'), name);
  }
  assert.equal((await desk.pasted(['pki', 'crl'])).code, 78, 'the old one');
  assert.equal((await desk.pasted(['pki', 'crl'], { SERVICE_PKI_CA_PASSWORD: NEW_PASSWORD })).code, 0);
  const back = await changePassword(desk, CA_PASSWORD, { SERVICE_PKI_CA_PASSWORD: NEW_PASSWORD });
  assert.equal(back.code, 0);
  assert.equal((await desk.pasted(['pki', 'crl'])).code, 0);
});

test('pki ca passphrase: what could not be opened again does not take the place of what can', async (t) => {
  const desk = openDesk(t);
  await desk.createAdmin();
  const before = storedIn(desk.databasePath);
  const { createCipheriv } = crypto;
  const spoilt = t.mock.method(crypto, 'createCipheriv', (name: 'aes-256-cbc', key: Uint8Array, iv: Uint8Array) => (
    createCipheriv(name, new Uint8Array(key.length), iv)
  ));
  syncBuiltinESMExports();
  await assert.rejects(changePassword(desk, NEW_PASSWORD), AuthorityKeyError);
  spoilt.mock.restore();
  syncBuiltinESMExports();
  assert.equal(spoilt.mock.callCount(), 1);
  assert.deepEqual(storedIn(desk.databasePath), before);
  assert.equal((await desk.pasted(['pki', 'crl'])).code, 0);
});

test('pki ca renew, passphrase: without an authority, a password, the right one or a good file nothing changes', async (t) => {
  const desk = openDesk(t);
  assert.equal((await desk.pasted(['pki', 'ca', 'renew'])).code, 78, 'no database');
  assert.deepEqual(readdirSync(desk.folder), []);
  await desk.createAdmin();
  const before = storedIn(desk.databasePath);
  const entries = auditedCount(desk.databasePath);
  for (const password of ['', 'wrong canary']) {
    for (const ended of [
      await desk.pasted(['pki', 'ca', 'renew'], { ...LATER, SERVICE_PKI_CA_PASSWORD: password }),
      await changePassword(desk, NEW_PASSWORD, { SERVICE_PKI_CA_PASSWORD: password }),
    ]) {
      assert.deepEqual([ended.code, ended.stdout], [78, '']);
      assert.match(ended.stderr, /SERVICE_PKI_CA_PASSWORD: /);
      assert.ok(!ended.stderr.includes('canary'));
    }
  }
  const missing = await desk.pasted(['pki', 'ca', 'passphrase', '--new-password-file', join(desk.folder, 'none')]);
  assert.deepEqual([missing.code, missing.stderr], [1, `pasted: ${join(desk.folder, 'none')} cannot be read (ENOENT)\n`]);
  for (const bad of ['', 'a\0b', 'x'.repeat(1025)]) {
    const ended = await changePassword(desk, bad);
    assert.equal(ended.code, 1);
    assert.match(ended.stderr, /holds no password of 1 to 1024 characters in UTF-8, without a byte order mark\n$/);
  }
  for (const bad of ['two\nlines', 'a\ttab', '\x7f']) {
    const ended = await changePassword(desk, bad);
    assert.equal(ended.code, 1);
    assert.match(ended.stderr, /^pasted: the password does not fit SERVICE_PKI_CA_PASSWORD: it takes one line of UTF-8 /);
  }
  assert.equal((await desk.pasted(['pki', 'ca', 'passphrase'])).code, 2, 'the option is required');
  assert.deepEqual(storedIn(desk.databasePath), before);
  assert.equal(auditedCount(desk.databasePath), entries);
  const db = new DatabaseSync(desk.databasePath);
  db.exec('DELETE FROM authority');
  db.close();
  const none = await desk.pasted(['pki', 'ca', 'renew']);
  assert.deepEqual([none.code, none.stderr], [1, 'pasted: CA not initialized: `pasted admin create` makes one\n']);
});

test('pki ca passphrase: of 8 that race, one gives the key its password, and a renewal among them takes nothing back', async (t) => {
  const desk = openDesk(t);
  await desk.createAdmin();
  const passwords = Array.from({ length: 8 }, (_, index) => `${index} password of a race`);
  const renewing = desk.pasted(['pki', 'ca', 'renew'], LATER);
  const ended = await Promise.all(passwords.map((password) => changePassword(desk, password)));
  const renewed = await renewing;
  const winners = passwords.filter((_, index) => ended[index]!.code === 0);
  assert.ok(winners.length <= 1);
  for (const { code, stderr } of [...ended, renewed]) {
    if (code !== 0) assert.match(stderr, /just been changed by another command: nothing was done|wrong password/);
  }
  assert.ok(winners.length === 1 || renewed.code === 0, 'somebody wins');
  const [password = CA_PASSWORD] = winners;
  assert.equal((await desk.pasted(['pki', 'crl'], { SERVICE_PKI_CA_PASSWORD: password })).code, 0);
  assert.equal(selectValue(desk.databasePath, 'SELECT expires_at FROM authority'), NOW + (renewed.code === 0 ? 5000 : 3650) * DAY);
  const events = "SELECT count(*) FROM audit WHERE event = 'ca_password_changed'";
  assert.equal(selectValue(desk.databasePath, events), winners.length);
});
