// `pasted admin`: what it issues, grants, prints and refuses. Beside a running server: api/commands-pki.test.ts.

import assert from 'node:assert/strict';
import { constants } from 'node:buffer';
import fs from 'node:fs';
import { existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { runCommandLine } from '../../src/operator/arguments.ts';
import { RUNNING_CLOCK } from '../support/app.ts';
import { insertCertificate, setRevoked } from '../support/certificates.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';
import { once, startNode } from '../support/imitated-store.ts';
import { CA_PASSWORD, openDesk, runHere } from '../support/operator.ts';
import { isInstalled, run } from '../support/programs.ts';
import { selectValue, temporaryFolder } from '../support/store.ts';

const certificateCount = (path: string) => selectValue(path, 'SELECT count(*) FROM certificates');
const authorityCount = (path: string) => selectValue(path, 'SELECT count(*) FROM authority');

test('admin create: writes a bundle for its owner alone, and says serial, fingerprint and expiry', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const path = join(folder, 'admin.p12');
  const { code, stdout, stderr } = await pasted(['admin', 'create', '--out', path, '--name', ' Ada ']);
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const row = (column: string) => selectValue(databasePath, `SELECT ${column} FROM certificates`);
  assert.deepEqual([row('common_name'), row('is_admin'), row('issued_to')], ['Ada', 1, null]);
  assert.deepEqual(stdout.split('\n'), [
    `Wrote ${path}: the certificate of the admin with its key.`,
    `serial       ${row('serial')}`,
    `fingerprint  ${row('fingerprint')}`,
    'expires      2027-01-31T12:00:00Z',
    'The file has no password: whoever has it is the admin.',
    '',
  ]);
});

test('admin create --json: one object on one line', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const path = join(folder, 'admin.p12');
  const { stdout } = await pasted(['admin', 'create', '--json', `--out=${path}`]);
  assert.equal(stdout.indexOf('\n'), stdout.length - 1);
  assert.deepEqual(JSON.parse(stdout), {
    file: path,
    serial: selectValue(databasePath, 'SELECT serial FROM certificates'),
    common_name: 'admin',
    fingerprint_sha1: selectValue(databasePath, 'SELECT fingerprint FROM certificates'),
    created_at: 1_769_860_800,
    expires_at: 1_769_860_800 + 365 * 86_400,
    is_admin: true,
  });
});

test('admin create: authority, certificate and grant are audited as done by the command line', async (t) => {
  const { databasePath, createAdmin } = openDesk(t);
  await createAdmin();
  const entries = `
    SELECT json_group_array(json_array(event, client_id, client_ip, details ->> 'type', details ->> 'via'))
    FROM (SELECT * FROM audit ORDER BY id)`;
  assert.deepEqual(JSON.parse(selectValue(databasePath, entries) as string), [
    ['cert_issued', null, null, 'ca', 'command line'],
    ['cert_issued', null, null, 'client', 'command line'],
    ['admin_granted', null, null, null, 'command line'],
  ]);
});

test('admin create: the file\'s password protects the bundle; no secret is printed or in the database', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const password = 'canary of the bundle: ä'.padEnd(1024, 'x');
  writeFileSync(join(folder, 'password'), `${password}\r\n`);
  const words = ['admin', 'create', '--out', join(folder, 'admin.p12'), '--password-file', join(folder, 'password')];
  const { code, stdout, stderr } = await pasted(words);
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stdout, /no password/);
  for (const canary of [CA_PASSWORD, 'canary of the bundle']) {
    assert.ok(!`${stdout}${stderr}`.includes(canary));
    assert.ok(!readFileSync(databasePath).includes(canary));
  }
  if (!isInstalled(t, 'openssl')) return;
  const open = (secret: string) =>
    run('openssl', ['pkcs12', '-in', 'admin.p12', '-passin', `pass:${secret}`, '-info', '-noout'], folder);
  const opened = open(password);
  assert.equal(opened.status, 0, opened.output);
  assert.match(opened.output, /PBES2/);
  assert.notEqual(open('').status, 0);
});

test('admin create --p12-profile compat: a bundle that older devices open', async (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const { folder, pasted } = openDesk(t);
  const { code } = await pasted(['admin', 'create', '--out', join(folder, 'admin.p12'), '--p12-profile', 'compat']);
  assert.equal(code, 0);
  const words = ['pkcs12', '-in', 'admin.p12', '-passin', 'pass:', '-info', '-noout', '-legacy'];
  const { output } = run('openssl', words, folder);
  assert.match(output, /MAC: sha1/);
  assert.match(output, /pbeWithSHA1And3-KeyTripleDES-CBC/);
});

test('admin create: refuses when there is any certificate, and says how to make an admin', async (t) => {
  const { folder, databasePath, pasted, createAdmin } = openDesk(t);
  const { serial } = await createAdmin();
  const second = join(folder, 'second.p12');
  const refused = /^pasted: certificates have been issued already[^\n]*pasted admin grant SERIAL\n$/;
  for (const revokedAt of [null, 1_769_860_800]) {
    setRevoked(databasePath, serial, revokedAt);
    const { code, stdout, stderr } = await pasted(['admin', 'create', '--out', second]);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, refused);
  }
  assert.equal(existsSync(second), false);
  assert.equal(certificateCount(databasePath), 1);
});

test('admin create: never overwrites a file, nor issues anything for one that cannot be made', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const taken = join(folder, 'taken.p12');
  writeFileSync(taken, 'mine');
  const missing = join(folder, 'missing', 'admin.p12');
  for (const [path, reason] of [
    [taken, 'exists already, and is not overwritten'],
    [missing, 'cannot be written (ENOENT)'],
  ] as const) {
    const refused = { code: 1, stdout: '', stderr: `pasted: ${path} ${reason}\n` };
    assert.deepEqual(await pasted(['admin', 'create', '--out', path]), refused);
  }
  assert.equal(readFileSync(taken, 'utf8'), 'mine');
  assert.deepEqual([certificateCount(databasePath), authorityCount(databasePath)], [0, 0]);
});

test('admin create: a disk that is full when the bundle is written means that nothing is issued', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const path = join(folder, 'admin.p12');
  const full = t.mock.method(fs, 'fsyncSync', () => {
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  });
  syncBuiltinESMExports();
  const { code, stderr } = await pasted(['admin', 'create', '--out', path]);
  full.mock.restore();
  syncBuiltinESMExports();
  assert.equal(code, 1);
  assert.equal(stderr, `pasted: certificate issuance failed: ${path} cannot be written (ENOSPC)\n`);
  assert.equal(existsSync(path), false);
  assert.equal(certificateCount(databasePath), 0);
  assert.equal((await pasted(['admin', 'create', '--out', path])).code, 0);
});

test('admin create: without the authority\'s password, or with a wrong one, it is 78', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const create = ['admin', 'create', '--out', join(folder, 'admin.p12')];
  const without = await pasted(create, { SERVICE_PKI_CA_PASSWORD: '' });
  assert.equal(without.code, 78);
  assert.match(without.stderr, /^pasted: the settings cannot be used\n {2}SERVICE_PKI_CA_PASSWORD: expected [^\n]+\n$/);
  assert.deepEqual(readdirSync(folder), []);

  // An authority without certificates is what is left when writing a bundle fails.
  await pasted(['admin', 'create', '--out', join(folder, 'first.p12')]);
  const db = new DatabaseSync(databasePath);
  db.exec('DELETE FROM certificates');
  db.close();
  const wrong = await pasted(create, { SERVICE_PKI_CA_PASSWORD: 'wrong-canary' });
  assert.equal(wrong.code, 78);
  assert.match(wrong.stderr, /^pasted: [^\n]+\n {2}SERVICE_PKI_CA_PASSWORD: [^\n]*wrong password[^\n]*\n$/);
  assert.ok(!wrong.stderr.includes('wrong-canary'));
  assert.equal(existsSync(join(folder, 'admin.p12')), false);
  assert.deepEqual([certificateCount(databasePath), authorityCount(databasePath)], [0, 1]);
});

test('admin create: when nodes do not answer, a bundle whose certificate may be recorded stays, and no other', async (t) => {
  const { behind, count, config: { databasePath } } = await startNode(t);
  const folder = temporaryFolder(t);
  const create = async (name: string) => {
    const environment = { SERVICE_DB: databasePath, SERVICE_PKI_CA_PASSWORD: CA_PASSWORD };
    const path = join(folder, name);
    const { code, stderr } = await runHere(['admin', 'create', '--out', path], environment, { clock: RUNNING_CLOCK });
    assert.equal(code, 1);
    const isThere = existsSync(path);
    const what = isThere ? `; ${path} stays: see whether its certificate is in pasted pki list\n` : ' (SERVICE_DB)\n';
    assert.ok(stderr.endsWith(`; if this was a change, it may have happened: look before you repeat it${what}`), stderr);
    return isThere;
  };
  behind.choose = ({ body }) => (body.includes('INSERT INTO authority') ? { kind: 'cut' } : undefined);
  assert.deepEqual([await create('none.p12'), count('certificates')], [false, 0]);
  // The leader is lost with its answer, and there is none after it.
  const leaderless = { kind: 'replaced', status: 503, body: 'leader not found', isCarriedOut: false } as const;
  const isLost = once(({ body }) => body.includes('INSERT INTO certificates'), { kind: 'unanswered' });
  behind.choose = (asked) => isLost(asked) ?? (asked.body.includes('INSERT INTO certificates') ? leaderless : undefined);
  assert.deepEqual([await create('only.p12'), count('certificates')], [true, 1]);
});

test('admin create: under an authority that is not valid it issues nothing, and says where to look', async (t) => {
  const { folder, databasePath, createAdmin, pasted } = openDesk(t);
  await createAdmin();
  const path = join(folder, 'late.p12');
  using db = new DatabaseSync(databasePath);
  db.exec('DELETE FROM certificates; UPDATE authority SET expires_at = 1');
  const { code, stderr } = await pasted(['admin', 'create', '--out', path]);
  assert.deepEqual([code, stderr], [1, 'pasted: certificate issuance failed: `pasted check` says why\n']);
  assert.deepEqual([existsSync(path), certificateCount(databasePath)], [false, 0]);
});

test('admin create --out -: the bundle on standard output, the rest on standard error', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const { code, stdout, stderr } = await pasted(['admin', 'create', '--out', '-']);
  assert.equal(code, 0);
  const bundle = join(folder, 'admin.p12');
  writeFileSync(bundle, stdout, 'latin1');
  assert.match(stderr, /^Wrote to standard output: the certificate of the admin with its key\.\nserial {7}[0-9a-f]{32}\n/);
  assert.equal(certificateCount(databasePath), 1);
  if (!isInstalled(t, 'openssl')) return;
  const shown = run('openssl', ['pkcs12', '-in', bundle, '-passin', 'pass:', '-nokeys', '-clcerts'], folder);
  assert.match(shown.output, /CN ?= ?admin/);
});

test('admin create --out -: nothing is issued onto a screen, or when standard output does not take it', async (t) => {
  const { databasePath } = openDesk(t);
  const environment = { SERVICE_DB: databasePath, SERVICE_PKI_CA_PASSWORD: CA_PASSWORD };
  const words = ['admin', 'create', '--out', '-'];
  const screen = fakeTerminal(words, { environment, writesToScreen: true });
  assert.equal(await runCommandLine(screen.terminal), 2);
  assert.equal(existsSync(databasePath), false);
  const closed = fakeTerminal(words, { environment, writesForOthers: true });
  const stdout = { ...closed.terminal.stdout, writeWhole: async () => false };
  assert.equal(await runCommandLine({ ...closed.terminal, stdout }), 1);
  assert.match(closed.stderr(), /^pasted: warning: others may read [^\n]+\npasted: certificate issuance failed: standard output did not take [^\n]+\n$/);
  assert.equal(certificateCount(databasePath), 0);
});

test('admin create: refuses values that it cannot take, before anything is made', async (t) => {
  const { folder, pasted } = openDesk(t);
  const create = (...options: string[]) => pasted(['admin', 'create', ...options]);
  for (const [options, message] of [
    [['--out', 'x', '--name', ' '], '--name takes 1 to 64 characters'],
    [['--out', 'x', '--name', 'x'.repeat(65)], '--name takes 1 to 64 characters'],
    [['--out', 'x', '--name', 'a\u0007'], '--name takes 1 to 64 characters'],
    [['--out', 'x', '--p12-profile', 'old'], '--p12-profile takes one of: modern, compat'],
    [['--name', 'x'], 'admin create needs --out FILE'],
  ] as const) {
    const { code, stderr } = await create(...options);
    assert.equal(code, 2);
    assert.ok(stderr.startsWith(`pasted: ${message}`), stderr);
  }
  assert.deepEqual(readdirSync(folder), []);
});

test('admin create --password-file: refuses what holds no password of 1 to 1024 characters of UTF-8', async (t) => {
  const { folder, pasted } = openDesk(t);
  const path = join(folder, 'password');
  const out = join(folder, 'admin.p12');
  const create = () => pasted(['admin', 'create', '--out', out, '--password-file', path]);
  assert.deepEqual(await create(), { code: 1, stdout: '', stderr: `pasted: ${path} cannot be read (ENOENT)\n` });
  for (const content of ['', '\n', 'x'.repeat(1025), 'a\0b', '\ufeffsecret', Buffer.of(0x70, 0xe4, 0x73)]) {
    writeFileSync(path, content);
    const { code, stderr } = await create();
    assert.equal(code, 1);
    assert.equal(stderr, `pasted: ${path} holds no password of 1 to 1024 characters in UTF-8, without a byte order mark\n`);
  }
  // One byte more than a string of node's holds. The error code is node's own, not one of the system.
  truncateSync(path, constants.MAX_STRING_LENGTH + 1);
  const refused = { code: 1, stdout: '', stderr: `pasted: ${path} cannot be read (ERR_STRING_TOO_LONG)\n` };
  assert.deepEqual(await create(), refused);
  assert.deepEqual(readdirSync(folder), ['password']);
});

test('admin grant: makes the holder an admin once, audited; the serial in any form that tools print', async (t) => {
  const { databasePath, pasted, createAdmin } = openDesk(t);
  await createAdmin();
  const { serial } = insertCertificate(databasePath, { commonName: 'bob' });
  const printed = serial.toUpperCase().replace(/..(?!$)/g, '$&:');
  const granted = { code: 0, stdout: `bob is an admin now (certificate ${serial}).\n`, stderr: '' };
  assert.deepEqual(await pasted(['admin', 'grant', printed], { SERVICE_PKI_CA_PASSWORD: '' }), granted);
  assert.equal(selectValue(databasePath, `SELECT is_admin FROM certificates WHERE serial = '${serial}'`), 1);
  const audited = `SELECT count(*) FROM audit WHERE event = 'admin_granted' AND details ->> 'serial' = '${serial}'
    AND details ->> 'via' = 'command line'`;
  assert.equal(selectValue(databasePath, audited), 1);

  const carol = insertCertificate(databasePath, { commonName: 'carol' });
  const { stdout } = await pasted(['admin', 'grant', carol.serial, '--json']);
  assert.equal(stdout.indexOf('\n'), stdout.length - 1);
  assert.deepEqual(JSON.parse(stdout), {
    serial: carol.serial,
    common_name: 'carol',
    fingerprint_sha1: carol.fingerprint,
    created_at: carol.createdAt,
    expires_at: carol.expiresAt,
    status: 'valid',
    issued_to: null,
    is_admin: true,
  });

  const again = await pasted(['admin', 'grant', serial]);
  const stderr = `pasted: the holder of certificate ${serial} is an admin already\n`;
  assert.deepEqual(again, { code: 1, stdout: '', stderr });
  assert.equal(selectValue(databasePath, audited), 1);
});

test('admin grant: refuses a certificate that is revoked, expired or unknown, and what is no serial', async (t) => {
  const { databasePath, pasted, createAdmin } = openDesk(t);
  await createAdmin();
  const revoked = insertCertificate(databasePath, { revokedAt: 1_769_860_800 }).serial;
  const expired = insertCertificate(databasePath, { expiresAt: 1_769_860_800 }).serial;
  const unknown = 'f'.repeat(32);
  for (const [serial, code, message] of [
    [revoked, 1, `certificate ${revoked} is revoked: it makes nobody an admin`],
    [expired, 1, `certificate ${expired} is expired: it makes nobody an admin`],
    [unknown, 1, 'certificate not found: `pasted pki list` shows those that there are'],
    ['xyz', 2, 'not a serial: "xyz"; one has 32 hexadecimal digits\nTry: pasted help'],
  ] as const) {
    assert.deepEqual(await pasted(['admin', 'grant', serial]), { code, stdout: '', stderr: `pasted: ${message}\n` });
  }
  assert.equal(selectValue(databasePath, 'SELECT count(*) FROM certificates WHERE is_admin = 1'), 1);
});

test('admin grant: a certificate revoked in the same moment makes nobody an admin, and that is said', async (t) => {
  const { databasePath, pasted, createAdmin } = openDesk(t);
  await createAdmin();
  const { serial } = insertCertificate(databasePath);
  // The command has found the certificate valid, and is about to ask the writer thread.
  const ask = Worker.prototype.postMessage;
  t.mock.method(Worker.prototype, 'postMessage', function (this: Worker, message: unknown) {
    if (JSON.stringify(message).includes('grantAdmin')) setRevoked(databasePath, serial, 1_769_860_800);
    ask.call(this, message);
  });
  const stderr = `pasted: certificate ${serial} has just been revoked, or its holder made an admin\n`;
  assert.deepEqual(await pasted(['admin', 'grant', serial]), { code: 1, stdout: '', stderr });
  assert.equal(selectValue(databasePath, `SELECT is_admin FROM certificates WHERE serial = '${serial}'`), 0);
  const audited = `SELECT count(*) FROM audit WHERE event = 'admin_granted' AND details ->> 'serial' = '${serial}'`;
  assert.equal(selectValue(databasePath, audited), 0);
});
