// `pasted pki`: what it lists, revokes and writes. Beside a running server: api/commands-pki.test.ts.

import '../support/quick-derivation.ts';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { DAY_SECONDS } from '../../src/core/time.ts';
import { runCommandLine } from '../../src/operator/arguments.ts';
import { CommandError } from '../../src/operator/failures.ts';
import { createNewFile, explained } from '../../src/operator/session.ts';
import { insertCertificate, setRevoked } from '../support/certificates.ts';
import { movableClock } from '../support/clock.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';
import { CA_PASSWORD, openDesk, runHere } from '../support/operator.ts';
import { selectValue } from '../support/store.ts';

const NOW = 1_769_860_800;

test('pki issue: a bundle for its owner alone, of a certificate that is no admin\'s, audited as done by the command line', async (t) => {
  const { folder, databasePath, pasted, createAdmin } = openDesk(t);
  await createAdmin();
  const path = join(folder, 'alice.p12');
  const { code, stdout, stderr } = await pasted(['pki', 'issue', '--common-name', ' alice ', '--out', path], { SERVICE_REGISTER_POW: '32' });
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const row = (column: string) => selectValue(databasePath, `SELECT ${column} FROM certificates WHERE common_name = 'alice'`);
  assert.deepEqual([row('is_admin'), row('issued_to'), row('holder = fingerprint')], [0, null, 1]);
  assert.deepEqual(stdout.split('\n'), [
    `Wrote ${path}: the certificate of alice with its key.`,
    `serial       ${row('serial')}`,
    `fingerprint  ${row('fingerprint')}`,
    'expires      2027-01-31T12:00:00Z',
    'The file has no password: whoever has it is alice.',
    '',
  ]);
  const audited = "SELECT (details ->> 'type') || ' by ' || (details ->> 'via') FROM audit WHERE event = 'cert_issued' ORDER BY id DESC LIMIT 1";
  assert.equal(selectValue(databasePath, audited), 'client by command line');
  const again = await pasted(['pki', 'issue', '--common-name', 'alice', '--out', path]);
  assert.deepEqual([again.code, again.stderr], [1, `pasted: ${path} exists already, and is not overwritten\n`]);
  const { stdout: json } = await pasted(['pki', 'issue', '--common-name', 'bob', '--out', join(folder, 'bob.p12'), '--json']);
  const { file, common_name: name, is_admin: isAdmin } = JSON.parse(json) as Record<string, unknown>;
  assert.deepEqual([file, name, isAdmin], [join(folder, 'bob.p12'), 'bob', false]);
  const long = { SERVICE_PKI_CERT_DAYS: '36500' };
  const cut = await pasted(['pki', 'issue', '--common-name', 'carol', '--out', join(folder, 'carol.p12')], long);
  assert.match(cut.stdout, /^expires {6}2036-01-29T12:00:00Z, with the authority: pasted pki ca renew$/m);
  assert.equal(selectValue(databasePath, 'SELECT count(*) FROM certificates'), 4);
});

test('pki issue: without an authority nothing is made; the first certificate of one is the admin\'s, and it says so', async (t) => {
  const { folder, databasePath, pasted, createAdmin } = openDesk(t);
  await createAdmin();
  const path = join(folder, 'first.p12');
  const issue = (...options: string[]) => pasted(['pki', 'issue', '--out', path, ...options]);
  const without = await issue('--common-name', '\u0007');
  assert.equal(without.code, 2);
  assert.match(without.stderr, /^pasted: --common-name takes 1 to 64 characters/);
  // What node makes of the argument where a terminal writes Latin-1.
  const latin1 = await issue('--common-name', 'J\ufffdrgen');
  assert.deepEqual([latin1.code, latin1.stderr], [2, 'pasted: not in UTF-8: "J\ufffdrgen"\nTry: pasted help\n']);
  assert.match((await issue()).stderr, /^pasted: pki issue needs --common-name NAME\n/);
  const locked = await pasted(['pki', 'issue', '--out', path, '--common-name', 'x'], { SERVICE_PKI_CA_PASSWORD: '' });
  assert.equal(locked.code, 78);
  const db = new DatabaseSync(databasePath);
  db.exec('DELETE FROM certificates');
  const first = await issue('--common-name', 'first');
  assert.match(first.stdout, /: the certificate of the admin with its key\.\n[^]*: whoever has it is the admin\.\n$/);
  rmSync(path);
  db.exec('UPDATE authority SET expires_at = 1');
  const late = await issue('--common-name', 'x');
  const advice = 'the authority has run out: pasted pki ca renew';
  assert.deepEqual([late.code, late.stderr], [1, `pasted: certificate issuance failed: ${advice}\n`]);
  db.exec('DELETE FROM authority');
  db.close();
  const none = await issue('--common-name', 'x');
  assert.deepEqual([none.code, none.stderr], [1, 'pasted: CA not initialized: `pasted admin create` makes one\n']);
  assert.equal(existsSync(path), false);
});

test('pki issue: ended by a signal, it leaves no empty file, and a bundle that may be recorded stays', async (t) => {
  const { folder, databasePath, createAdmin } = openDesk(t);
  await createAdmin();
  for (const isWhole of [false, true]) {
    const path = join(folder, `stopped-${isWhole}.p12`);
    const isReached = (): boolean => existsSync(path) && statSync(path).size > 0 === isWhole;
    const environment = { SERVICE_DB: databasePath, SERVICE_PKI_CA_PASSWORD: CA_PASSWORD };
    const fake = fakeTerminal(['pki', 'issue', '--common-name', 'x', '--out', path], { environment });
    const ended: unknown[] = [];
    const terminal = {
      ...fake.terminal,
      // The command reads the clock before the bundle is written, and again when the certificate is recorded.
      clock: {
        ...fake.terminal.clock,
        unixMs: () => {
          if (ended.length === 0 && isReached()) fake.signal('SIGINT');
          return NOW * 1000;
        },
      },
      endBy: (signal: string) => ended.push([signal, existsSync(path)]),
    };
    await runCommandLine(terminal);
    assert.deepEqual(ended, [['SIGINT', isWhole]]);
  }
});

test('pki list: every certificate, newest first, one to a line', async (t) => {
  const { databasePath, pasted, createAdmin } = openDesk(t);
  const admin = await createAdmin();
  const revoked = insertCertificate(databasePath, { createdAt: NOW - 10, revokedAt: NOW, commonName: 'Bob B.' });
  const expired = insertCertificate(databasePath, { createdAt: NOW - 20, expiresAt: NOW });
  const { code, stdout } = await pasted(['pki', 'list']);
  assert.equal(code, 0);
  assert.deepEqual(stdout.split('\n').map((line) => line.split(/ {2,}/)), [
    ['SERIAL', 'STATUS', 'ROLE', 'EXPIRES', 'COMMON NAME'],
    [admin.serial, 'valid', 'admin', '2027-01-31T12:00:00Z', 'admin'],
    [revoked.serial, 'revoked', '-', '2027-01-31T12:00:00Z', 'Bob B.'],
    [expired.serial, 'expired', '-', '2026-01-31T12:00:00Z', 'alice'],
    [''],
  ]);
});

test('pki list --json: the records of GET /pki/certs', async (t) => {
  const { pasted, createAdmin } = openDesk(t);
  const { serial, fingerprint_sha1 } = await createAdmin();
  const { stdout } = await pasted(['pki', 'list', '--json']);
  assert.equal(stdout.indexOf('\n'), stdout.length - 1);
  const dates = { created_at: NOW, expires_at: NOW + 365 * 86_400 };
  const rest = { status: 'valid', issued_to: null, is_admin: true };
  const record = { serial, common_name: 'admin', fingerprint_sha1, ...dates, ...rest };
  assert.deepEqual(JSON.parse(stdout), { certificates: [record], count: 1 });
});

test('pki: without a database every command but admin create is 78, and makes none', async (t) => {
  const { folder, databasePath, pasted } = openDesk(t);
  const serial = '4'.repeat(32);
  for (const words of [['list'], ['revoke', serial], ['crl'], ['ca'], ['issue', '--common-name', 'x', '--out', join(folder, 'x.p12')]]) {
    const { code, stdout, stderr } = await pasted(['pki', ...words]);
    assert.deepEqual([code, stdout], [78, '']);
    assert.equal(stderr, `pasted: there is no database ${databasePath}: set SERVICE_DB to the one of the service\n`);
  }
  assert.equal((await pasted(['admin', 'grant', serial])).code, 78);
  assert.deepEqual(readdirSync(folder), []);
});

test('pki revoke: once, with its reason, without the password of the authority, audited', async (t) => {
  const { databasePath, pasted, createAdmin } = openDesk(t);
  const { serial, fingerprint_sha1 } = await createAdmin();
  const revoke = () => pasted(['pki', 'revoke', serial, '--reason', 'keyCompromise'], { SERVICE_PKI_CA_PASSWORD: '' });
  assert.deepEqual(await revoke(), { code: 0, stdout: `Revoked certificate ${serial} of admin.\n`, stderr: '' });
  assert.equal(selectValue(databasePath, 'SELECT revocation_reason FROM certificates'), 'keyCompromise');
  const audited = "SELECT json_array(client_id, client_ip, details) FROM audit WHERE event = 'cert_revoked'";
  const [clientId, clientIp, details] = JSON.parse(selectValue(databasePath, audited) as string) as unknown[];
  assert.deepEqual([clientId, clientIp], [null, null]);
  assert.deepEqual(JSON.parse(details as string), { serial, fingerprint: fingerprint_sha1, via: 'command line' });

  assert.deepEqual(await revoke(), { code: 1, stdout: '', stderr: 'pasted: certificate already revoked\n' });
  assert.equal(selectValue(databasePath, "SELECT count(*) FROM audit WHERE event = 'cert_revoked'"), 1);
});

test('pki revoke: a renewed certificate as well, and what renews it and was not used goes along', async (t) => {
  const { databasePath, pasted, createAdmin } = openDesk(t);
  const { fingerprint_sha1: holder } = await createAdmin();
  const { serial } = insertCertificate(databasePath, { holder, commonName: 'in use' });
  const unused = insertCertificate(databasePath, { holder, commonName: 'unused', isUnused: true });
  const { code, stderr } = await pasted(['pki', 'revoke', serial, '--reason', 'keyCompromise']);
  assert.deepEqual([code, stderr], [0, '']);
  const revoked = "SELECT group_concat(common_name, ',' ORDER BY common_name) FROM certificates WHERE revocation_reason = 'keyCompromise'";
  assert.equal(selectValue(databasePath, revoked), 'in use,unused');
  const details = selectValue(databasePath, 'SELECT details FROM audit ORDER BY id DESC');
  assert.deepEqual(JSON.parse(String(details)), {
    serial: unused.serial, fingerprint: unused.fingerprint, via: 'command line', reason: 'keyCompromise',
  });
});

test('pki revoke: of one that was renewed and superseded it names the one that its holder has now', async (t) => {
  const { databasePath, pasted, createAdmin } = openDesk(t);
  const { serial, fingerprint_sha1: holder } = await createAdmin();
  setRevoked(databasePath, serial, 1);
  const renewed = insertCertificate(databasePath, { holder });
  insertCertificate(databasePath);
  const says = `pasted: certificate ${serial} is revoked already, and its holder has another since: ` +
    `pasted pki revoke ${renewed.serial} ends that\n`;
  assert.deepEqual(await pasted(['pki', 'revoke', serial]), { code: 1, stdout: '', stderr: says });
  assert.equal((await pasted(['pki', 'revoke', renewed.serial])).code, 0);
  assert.equal((await pasted(['pki', 'revoke', serial])).stderr, 'pasted: certificate already revoked\n');
});

test('pki revoke --json: the record of GET /pki/certs', async (t) => {
  const { pasted, createAdmin } = openDesk(t);
  const { serial } = await createAdmin();
  const { code, stdout } = await pasted(['pki', 'revoke', serial, '--json']);
  assert.equal(code, 0);
  const { certificates } = JSON.parse((await pasted(['pki', 'list', '--json'])).stdout) as { certificates: object[] };
  assert.deepEqual(certificates, [JSON.parse(stdout)]);
  assert.equal((certificates[0] as { status: string }).status, 'revoked');
});

test('pki revoke: refuses an unknown serial, what is no serial, and an unknown reason', async (t) => {
  const { databasePath, pasted, createAdmin } = openDesk(t);
  const { serial } = await createAdmin();
  for (const [words, code, message] of [
    [['f'.repeat(32)], 1, 'certificate not found: `pasted pki list` shows those that there are\n'],
    [['f'.repeat(31)], 2, 'not a serial: '],
    [['f'.repeat(33)], 2, 'not a serial: '],
    [[serial, '--reason', 'unspecified'], 2, '--reason takes one of: keyCompromise, '],
    [[serial, '--reason', 'toString'], 2, '--reason takes one of: keyCompromise, '],
    [[], 2, 'pki revoke needs SERIAL'],
  ] as const) {
    const { code: ended, stdout, stderr } = await pasted(['pki', 'revoke', ...words]);
    assert.deepEqual([ended, stdout], [code, '']);
    assert.ok(stderr.startsWith(`pasted: ${message}`), stderr);
  }
  assert.equal(selectValue(databasePath, 'SELECT count(*) FROM certificates WHERE revoked_at IS NOT NULL'), 0);
});

test('pki crl: the current list in PEM or DER, on standard output or in a file that all may read', async (t) => {
  const { folder, pasted, createAdmin } = openDesk(t);
  const { serial } = await createAdmin();
  const path = join(folder, 'ca.crl');
  const { stdout: pem } = await pasted(['pki', 'crl']);
  assert.match(pem, /^-----BEGIN X509 CRL-----\n[^]+\n-----END X509 CRL-----\n$/);
  assert.deepEqual(await pasted(['pki', 'crl', '--out', path]), { code: 0, stdout: '', stderr: '' });
  assert.equal(readFileSync(path, 'utf8'), pem);
  assert.equal(statSync(path).mode & 0o777, 0o644);

  await pasted(['pki', 'revoke', serial]);
  const { stdout: der } = await pasted(['pki', 'crl', '--der', '--out', '-']);
  const bytes = Buffer.from(der, 'latin1');
  assert.ok(bytes.includes(Buffer.from(serial, 'hex')));
  await pasted(['pki', 'crl', '--der', '--out', path], { SERVICE_PKI_CA_PASSWORD: '' });
  assert.deepEqual(readFileSync(path), bytes);
  assert.deepEqual(readdirSync(folder).filter((name) => name.startsWith('ca.crl')), ['ca.crl']);
});

test('pki crl: no file of the database is replaced by the list', async (t) => {
  const { databasePath, pasted, createAdmin } = openDesk(t);
  await createAdmin();
  const before = readFileSync(databasePath);
  for (const path of [databasePath, `${databasePath}-wal`]) {
    const said = `pasted: ${path} belongs to the database itself\n`;
    assert.deepEqual(await pasted(['pki', 'crl', '--out', path]), { code: 1, stdout: '', stderr: said });
  }
  assert.deepEqual(readFileSync(databasePath), before);
});

test('pki crl: a list to be made needs the password of the authority', async (t) => {
  const { folder, pasted, createAdmin } = openDesk(t);
  await createAdmin();
  const path = join(folder, 'ca.crl');
  for (const password of ['', 'wrong-canary']) {
    const { code, stdout, stderr } = await pasted(['pki', 'crl', '--out', path], { SERVICE_PKI_CA_PASSWORD: password });
    assert.deepEqual([code, stdout], [78, '']);
    assert.match(stderr, /^pasted: the settings cannot be used\n {2}SERVICE_PKI_CA_PASSWORD: [^\n]+\n$/);
    assert.ok(!stderr.includes('canary'));
  }
  assert.equal(existsSync(path), false);
});

test('pki crl: from half of its life on, a list that could not be made anew is given with a warning', async (t) => {
  const { databasePath, createAdmin, pasted } = openDesk(t);
  await createAdmin();
  const { stdout: first } = await pasted(['pki', 'crl']);
  const clock = movableClock();
  const give = (SERVICE_PKI_CA_PASSWORD = CA_PASSWORD) => (
    runHere(['pki', 'crl'], { SERVICE_DB: databasePath, SERVICE_PKI_CA_PASSWORD }, { clock })
  );
  // A list begins five minutes before it is made.
  clock.advance((3.5 * DAY_SECONDS - 301) * 1000);
  assert.deepEqual(await give('wrong'), { code: 0, stdout: first, stderr: '' });
  clock.advance(1000);
  for (const password of ['wrong', '']) {
    const { code, stdout, stderr } = await give(password);
    assert.deepEqual([code, stdout], [0, first]);
    assert.match(stderr, /^pasted: warning: a new list is due, but cannot be made: see pasted check\n$/);
  }
  const renewed = await give();
  assert.deepEqual([renewed.code, renewed.stderr], [0, '']);
  assert.notEqual(renewed.stdout, first);
});

test('pki crl --out: a file that cannot be written is 1, and leaves nothing beside it', async (t) => {
  const { folder, pasted, createAdmin } = openDesk(t);
  const { file } = await createAdmin();
  for (const [path, reason] of [
    [join(folder, 'missing', 'ca.crl'), 'cannot be written (ENOENT)'],
    [join(file, 'ca.crl'), 'cannot be written (ENOTDIR)'],
    [folder, 'is not a file'],
  ] as const) {
    const { code, stderr } = await pasted(['pki', 'crl', '--out', path]);
    assert.deepEqual([code, stderr], [1, `pasted: ${path} ${reason}\n`]);
  }
  assert.deepEqual(readdirSync(folder).sort(), ['admin.p12', 'pasted.db', 'pasted.db-lock']);
});

test('a file that node cannot read for its size is the operator\'s matter, and any other error a bug', () => {
  const of = (code: string) => explained(Object.assign(new RangeError('File size is greater than 2 GiB'), { code }), 'place');
  const { message } = of('ERR_FS_FILE_TOO_LARGE') as CommandError;
  assert.deepEqual([of('ERR_FS_FILE_TOO_LARGE') instanceof CommandError, message], [true, 'place cannot be written (ERR_FS_FILE_TOO_LARGE)']);
  assert.equal(of('ERR_OUT_OF_RANGE') instanceof CommandError, false);
});

test('pki crl --out: a pipe, a device or a link is not replaced by a file', async (t) => {
  const { folder, pasted, createAdmin } = openDesk(t);
  const { file } = await createAdmin();
  const [pipe, link, lost] = ['pipe', 'link', 'lost'].map((name) => join(folder, name)) as [string, string, string];
  execFileSync('mkfifo', [pipe]);
  symlinkSync(file, link);
  symlinkSync(join(folder, 'missing'), lost);
  for (const path of [pipe, link, lost]) {
    const before = lstatSync(path);
    const { code, stderr } = await pasted(['pki', 'crl', '--out', path]);
    assert.deepEqual([code, stderr], [1, `pasted: ${path} is not a file\n`]);
    assert.deepEqual([lstatSync(path).ino, lstatSync(path).mode], [before.ino, before.mode]);
  }
});

test('createNewFile: what ends its scope is told, also when the file cannot be removed', (t) => {
  const { folder } = openDesk(t);
  const path = join(folder, 'new');
  assert.throws(() => {
    using file = createNewFile(fakeTerminal().terminal, path);
    file.write(Buffer.from('x'));
    rmSync(path);
    mkdirSync(path);
    throw new CommandError('of the command');
  }, new CommandError('of the command'));
});

test('pki ca: the certificate of the authority in PEM; without one it is 1 and says what makes it', async (t) => {
  const { folder, databasePath, pasted, createAdmin } = openDesk(t);
  const missing = join(folder, 'missing', 'admin.p12');
  await pasted(['admin', 'create', '--out', missing]);
  const refused = { code: 1, stdout: '', stderr: 'pasted: CA not initialized: `pasted admin create` makes one\n' };
  assert.deepEqual(await pasted(['pki', 'ca']), refused);
  assert.deepEqual(await pasted(['pki', 'crl']), refused);
  await createAdmin();
  const certificate = new X509Certificate((await pasted(['pki', 'ca'])).stdout);
  assert.equal(certificate.subject, 'CN=Paste Service CA');
  const stored = selectValue(databasePath, 'SELECT fingerprint FROM authority');
  assert.equal(certificate.fingerprint.replaceAll(':', '').toLowerCase(), stored);
});
