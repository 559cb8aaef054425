// Certificates in the store: issuing and its one admin, revoking, granting, and that a lookup is exact whoever changes
// the table. The service around it has tests of its own.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { certificateLookups } from '../../src/store/certificates.ts';
import { openReading } from '../../src/store/connection.ts';
import type { Issuance, NewCertificate } from '../../src/store/pki-store.ts';
import type { AuditEvent, Store } from '../../src/store/store.ts';
import { deleteCertificate, insertCertificate, newFingerprint, setAdmin, setRevoked } from '../support/certificates.ts';
import { CREATED_AT, openTestStore, selectValue } from '../support/store.ts';

function eventOf(event: string): AuditEvent {
  return { time: CREATED_AT, event, outcome: 'success', clientId: null, clientIp: null, details: {} };
}

function issuance(given: Partial<NewCertificate> = {}, spend: Issuance['spend'] = null): Issuance {
  const certificate: NewCertificate = {
    serial: randomBytes(16).toString('hex'),
    commonName: 'alice',
    fingerprint: newFingerprint(),
    createdAt: CREATED_AT,
    expiresAt: CREATED_AT + 100,
    issuedTo: null,
    publicKeySha256: randomBytes(32),
    ...given,
  };
  return { certificate, spend, issued: eventOf('cert_issued'), granted: eventOf('admin_granted') };
}

async function auditedIn(store: Store): Promise<string[]> {
  const filter = { event: null, outcome: null, clientId: null, after: 0, before: CREATED_AT + 1000 };
  return (await store.audit.list(filter, { limit: 100, offset: 0 })).items.map(({ event }) => event).toReversed();
}

test('issue: the first one ever is the admin\'s, of any number that race, and never again', async (t) => {
  const { store } = await openTestStore(t);
  const outcomes = await Promise.all(Array.from({ length: 16 }, () => store.certificates.issue(issuance())));
  const admins = outcomes.filter((outcome) => outcome.kind === 'issued' && outcome.isAdmin);
  assert.equal(admins.length, 1);
  assert.equal((await store.certificates.listAll()).filter(({ isAdmin }) => isAdmin).length, 1);
  const audited = await auditedIn(store);
  assert.deepEqual([audited.length, audited.filter((event) => event === 'admin_granted').length], [17, 1]);

  const [first] = (await store.certificates.listAll()).filter(({ isAdmin }) => isAdmin);
  const revoked = eventOf('cert_revoked');
  await store.certificates.revoke({ serial: first!.serial, nowSeconds: CREATED_AT, reason: null, revoked });
  assert.deepEqual(await store.certificates.issue(issuance()), { kind: 'issued', isAdmin: false });
});

test('issue: with onlyFirst only when there never was one, revoked ones included', async (t) => {
  const { store } = await openTestStore(t);
  const outcomes = await Promise.all(Array.from({ length: 8 }, () => store.certificates.issue({ ...issuance(), onlyFirst: true })));
  assert.deepEqual(outcomes.map(({ kind }) => kind).toSorted(), ['issued', ...Array<string>(7).fill('notFirst')]);
  const [{ serial } = assert.fail()] = await store.certificates.listAll();
  await store.certificates.revoke({ serial, nowSeconds: CREATED_AT, reason: null, revoked: eventOf('cert_revoked') });
  assert.deepEqual(await store.certificates.issue({ ...issuance(), onlyFirst: true }), { kind: 'notFirst' });
});

test('issue: a serial, fingerprint or key that is taken, and work that was done before, have no effect', async (t) => {
  const { store, path } = await openTestStore(t);
  const first = issuance();
  assert.deepEqual(await store.certificates.issue(first), { kind: 'issued', isAdmin: true });
  const { serial, fingerprint, publicKeySha256 } = first.certificate;
  const work = { nonce: 'a'.repeat(32), expiresAt: CREATED_AT + 100, spendableUntil: CREATED_AT + 200 };
  assert.deepEqual(await store.certificates.issue(issuance({ serial }, work)), { kind: 'serialTaken' });
  assert.deepEqual(await store.certificates.issue(issuance({ fingerprint }, work)), { kind: 'serialTaken' });
  assert.deepEqual(await store.certificates.issue(issuance({ publicKeySha256 }, work)), { kind: 'keyTaken' });
  assert.equal(selectValue(path, 'SELECT count(*) FROM spent_challenges'), 0);
  assert.deepEqual(await store.certificates.issue(issuance({}, work)), { kind: 'issued', isAdmin: false });
  assert.deepEqual(await store.certificates.issue(issuance({}, work)), { kind: 'challengeUsed' });
  const late = { ...work, nonce: 'b'.repeat(32), spendableUntil: CREATED_AT };
  assert.deepEqual(await store.certificates.issue(issuance({}, late)), { kind: 'challengeExpired' });
  assert.equal(selectValue(path, 'SELECT count(*) FROM certificates'), 2);
  assert.deepEqual(await auditedIn(store), ['cert_issued', 'admin_granted', 'cert_issued']);
});

test('issue: of many with the same work exactly one is issued', async (t) => {
  const { store } = await openTestStore(t);
  const work = { nonce: 'b'.repeat(32), expiresAt: CREATED_AT + 100, spendableUntil: CREATED_AT + 200 };
  const outcomes = await Promise.all(Array.from({ length: 16 }, () => store.certificates.issue(issuance({}, work))));
  assert.deepEqual(outcomes.map(({ kind }) => kind).toSorted(), [...Array<string>(15).fill('challengeUsed'), 'issued']);
});

test('issue and find: every member comes back; an event that cannot be written keeps the certificate out', async (t) => {
  const { store, path } = await openTestStore(t);
  const made = issuance({ issuedTo: newFingerprint(), commonName: 'z\u00e9 \u{1f511}' });
  await store.certificates.issue(made);
  const { publicKeySha256: _, ...certificate } = made.certificate;
  const expected = { ...certificate, isAdmin: true, revokedAt: null, revocationReason: null };
  assert.deepEqual(await store.certificates.findByFingerprint(certificate.fingerprint), expected);
  assert.deepEqual(await store.certificates.findBySerial(certificate.serial), expected);
  assert.equal(await store.certificates.findBySerial('0'.repeat(32)), undefined);

  const db = new DatabaseSync(path, { timeout: 5000 });
  db.exec("CREATE TRIGGER no_audit BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no entry'); END");
  db.close();
  await assert.rejects(store.certificates.issue(issuance()));
  const { serial } = certificate;
  const revoked = eventOf('cert_revoked');
  await assert.rejects(store.certificates.revoke({ serial, nowSeconds: 1, reason: null, revoked }));
  await assert.rejects(store.certificates.grantAdmin(serial, eventOf('admin_granted')));
  assert.deepEqual(await store.certificates.listAll(), [expected]);
});

test('revoke: once, of many at once, with its reason; unknown serials are not found', async (t) => {
  const { store } = await openTestStore(t);
  const { certificate: { serial, fingerprint } } = issuance();
  await store.certificates.issue(issuance({ serial, fingerprint }));
  const revoke = (nowSeconds: number, of = serial) =>
    store.certificates.revoke({ serial: of, nowSeconds, reason: 'keyCompromise', revoked: eventOf('cert_revoked') });
  assert.equal(await revoke(1, '0'.repeat(32)), 'notFound');
  const outcomes = await Promise.all(Array.from({ length: 8 }, () => revoke(CREATED_AT)));
  assert.deepEqual(outcomes.toSorted(), [...Array<string>(7).fill('alreadyRevoked'), 'revoked']);
  assert.equal(await revoke(CREATED_AT + 5), 'alreadyRevoked');
  const found = await store.certificates.findByFingerprint(fingerprint);
  assert.deepEqual([found?.revokedAt, found?.revocationReason], [CREATED_AT, 'keyCompromise']);
  assert.deepEqual((await store.certificates.listRevoked()).map((certificate) => certificate.serial), [serial]);
  assert.equal((await auditedIn(store)).filter((event) => event === 'cert_revoked').length, 1);
});

test('grantAdmin: makes an admin of a certificate that is not revoked', async (t) => {
  const { store, path } = await openTestStore(t);
  const [valid, revoked] = [insertCertificate(path), insertCertificate(path, { revokedAt: 1 })];
  assert.equal(await store.certificates.grantAdmin(revoked.serial, eventOf('admin_granted')), false);
  assert.equal(await store.certificates.grantAdmin('0'.repeat(32), eventOf('admin_granted')), false);
  assert.deepEqual(await auditedIn(store), []);
  assert.equal(await store.certificates.grantAdmin(valid.serial, eventOf('admin_granted')), true);
  assert.equal((await store.certificates.findByFingerprint(valid.fingerprint))?.isAdmin, true);
  assert.deepEqual(await auditedIn(store), ['admin_granted']);
});

test('listOf: what a fingerprint obtained and what it is of, newest first, each once', async (t) => {
  const { store, path } = await openTestStore(t);
  const holder = insertCertificate(path, { createdAt: 10 });
  const { fingerprint } = holder;
  const obtained = insertCertificate(path, { createdAt: 30, issuedTo: fingerprint });
  const renewed = insertCertificate(path, { createdAt: 20, issuedTo: fingerprint });
  insertCertificate(path, { createdAt: 40, issuedTo: newFingerprint() });
  const serials = (await store.certificates.listOf(fingerprint)).map(({ serial }) => serial);
  assert.deepEqual(serials, [obtained.serial, renewed.serial, holder.serial]);
  assert.deepEqual(await store.certificates.listOf(newFingerprint()), []);
});

test('findByFingerprint: sees at once what any connection changed, and what appeared since', async (t) => {
  const { store, path } = await openTestStore(t);
  const fingerprint = newFingerprint();
  const find = () => store.certificates.findByFingerprint(fingerprint);
  assert.equal(await find(), undefined);
  const { serial } = insertCertificate(path, { fingerprint });
  for (let round = 0; round < 20; round += 1) {
    setRevoked(path, serial, CREATED_AT);
    assert.equal((await find())?.revokedAt, CREATED_AT);
    setRevoked(path, serial, null);
    assert.equal((await find())?.revokedAt, null);
    setAdmin(path, serial, round % 2 === 0);
    assert.equal((await find())?.isAdmin, round % 2 === 0);
  }
  deleteCertificate(path, serial);
  assert.equal(await find(), undefined);
});

test('findByFingerprint: one indexed read, and none of the table while nothing is written', async (t) => {
  const { path } = await openTestStore(t);
  const { fingerprint } = insertCertificate(path);
  const db = openReading(path);
  t.after(() => db.close());
  const statements: string[] = [];
  let reads = 0;
  const counting = {
    prepare: (sql: string) => {
      statements.push(sql);
      const statement = db.prepare(sql);
      if (!sql.includes('WHERE fingerprint = :fingerprint')) return statement;
      return { get: (params: Record<string, string>) => {
        reads += 1;
        return statement.get(params);
      } };
    },
  };
  const { findCertificate } = certificateLookups(counting as unknown as DatabaseSync);
  for (let turn = 0; turn < 5; turn += 1) assert.equal(findCertificate(fingerprint)?.fingerprint, fingerprint);
  assert.equal(reads, 1);
  // Anyone can make a fingerprint up: those are not remembered.
  for (let turn = 0; turn < 3; turn += 1) assert.equal(findCertificate('f'.repeat(40)), undefined);
  assert.equal(reads, 4);
  insertCertificate(path);
  assert.equal(findCertificate(fingerprint)?.fingerprint, fingerprint);
  assert.equal(reads, 5);
  const [sql = ''] = statements.filter((statement) => statement.includes('WHERE fingerprint = :fingerprint'));
  const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map(({ detail }) => String(detail));
  assert.equal(plan.length, 1);
  assert.match(plan[0] ?? '', /^SEARCH certificates USING INDEX \w+ \(fingerprint=\?\)$/);
});
