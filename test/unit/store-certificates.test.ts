// Certificates in the store: issuing, of which the first makes the admin, revoking, granting, and that a lookup is
// exact, whoever changes the table. The service around it has tests of its own.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { certificateCommands, certificateLookups, rememberFound } from '../../src/store/certificates.ts';
import { listRevoked, type Store } from '../../src/store/open.ts';
import type {
  AuditEvent, Certificate, CertificatePlace, Issuance, IssueOutcome, NewCertificate, StoredAuthority,
} from '../../src/store/store.ts';
import { openReading } from '../../src/store/database.ts';
import { insertCertificate, newFingerprint } from '../support/certificates.ts';
import { CREATED_AT, openTestStore, patternedBytes, storePaste } from '../support/store.ts';
import { addCertificate, type Tables, testStores } from '../support/stores.ts';

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

/** The outcome of issuing, with the events that were written. */
function issued(isAdmin: boolean): IssueOutcome {
  return { refused: null, isAdmin, audited: [eventOf('cert_issued'), ...(isAdmin ? [eventOf('admin_granted')] : [])] };
}

async function auditedIn(store: Store): Promise<string[]> {
  const filter = { event: null, outcome: null, clientId: null, after: 0, before: CREATED_AT + 1000 };
  return (await store.read.listAudit(filter, { limit: 100, offset: 0 })).items.map(({ event }) => event).toReversed();
}

const DELETE = 'DELETE FROM certificates WHERE serial = :serial';

async function setRevoked(tables: Tables, serial: string, revokedAt: number | null): Promise<void> {
  const sql = 'UPDATE certificates SET revoked_at = :revokedAt WHERE serial = :serial';
  assert.equal(await tables.change(sql, { serial, revokedAt }), 1);
}

testStores('issue: the first one ever is the admin\'s, of any number that race, and never again', async ({ store }) => {
  const outcomes = await Promise.all(Array.from({ length: 16 }, () => store.run('issueCertificate', issuance())));
  const admins = outcomes.filter((outcome) => outcome.refused === null && outcome.isAdmin);
  assert.equal(admins.length, 1);
  assert.equal((await store.read.listCertificates()).filter(({ isAdmin }) => isAdmin).length, 1);
  const audited = await auditedIn(store);
  assert.deepEqual([audited.length, audited.filter((event) => event === 'admin_granted').length], [17, 1]);

  const [first] = (await store.read.listCertificates()).filter(({ isAdmin }) => isAdmin);
  const revoked = eventOf('cert_revoked');
  await store.run('revokeCertificate', { serial: first!.serial, nowSeconds: CREATED_AT, reason: null, revoked });
  assert.deepEqual(await store.run('issueCertificate', issuance()), issued(false));
});

testStores('issue: with onlyFirst only when there never was one, revoked ones included', async ({ store }) => {
  const outcomes = await Promise.all(Array.from({ length: 8 }, () => store.run('issueCertificate', { ...issuance(), onlyFirst: true })));
  assert.deepEqual(outcomes.map(({ refused }) => `${refused}`).toSorted(), [...Array<string>(7).fill('notFirst'), 'null']);
  const [{ serial } = assert.fail()] = await store.read.listCertificates();
  await store.run('revokeCertificate', { serial, nowSeconds: CREATED_AT, reason: null, revoked: eventOf('cert_revoked') });
  assert.deepEqual(await store.run('issueCertificate', { ...issuance(), onlyFirst: true }), { refused: 'notFirst' });
});

testStores('issue: a serial, fingerprint or key that is taken, and work that was done before, have no effect', async ({ store, tables }) => {
  const first = issuance();
  assert.deepEqual(await store.run('issueCertificate', first), issued(true));
  const { serial, fingerprint, publicKeySha256 } = first.certificate;
  const work = { nonce: 'a'.repeat(32), expiresAt: CREATED_AT + 100, spendableUntil: CREATED_AT + 200 };
  assert.deepEqual(await store.run('issueCertificate', issuance({ serial }, work)), { refused: 'serialTaken' });
  assert.deepEqual(await store.run('issueCertificate', issuance({ fingerprint }, work)), { refused: 'serialTaken' });
  assert.deepEqual(await store.run('issueCertificate', issuance({ publicKeySha256 }, work)), { refused: 'keyReused' });
  assert.equal(await tables.value('SELECT count(*) FROM spent_challenges'), 0);
  assert.deepEqual(await store.run('issueCertificate', issuance({}, work)), issued(false));
  assert.deepEqual(await store.run('issueCertificate', issuance({}, work)), { refused: 'powAlreadyUsed' });
  const late = { ...work, nonce: 'b'.repeat(32), spendableUntil: CREATED_AT };
  assert.deepEqual(await store.run('issueCertificate', issuance({}, late)), { refused: 'powExpired' });
  assert.equal(await tables.value('SELECT count(*) FROM certificates'), 2);
  assert.deepEqual(await auditedIn(store), ['cert_issued', 'admin_granted', 'cert_issued']);
});

testStores('issue: of many with the same work exactly one is issued', async ({ store }) => {
  const work = { nonce: 'b'.repeat(32), expiresAt: CREATED_AT + 100, spendableUntil: CREATED_AT + 200 };
  const outcomes = await Promise.all(Array.from({ length: 16 }, () => store.run('issueCertificate', issuance({}, work))));
  assert.deepEqual(outcomes.map(({ refused }) => `${refused}`).toSorted(), ['null', ...Array<string>(15).fill('powAlreadyUsed')]);
});

testStores('issue and find: every member comes back; an event that cannot be written keeps the certificate out', async ({ store, tables }) => {
  const made = issuance({ issuedTo: newFingerprint(), commonName: 'z\u00e9 \u{1f511}' });
  await store.run('issueCertificate', made);
  const { publicKeySha256: _, ...certificate } = made.certificate;
  const expected = {
    ...certificate, isAdmin: true, revokedAt: null, revocationReason: null, holder: certificate.fingerprint, isUnused: false,
  };
  assert.deepEqual(await store.read.findCertificate(certificate.fingerprint), expected);
  assert.deepEqual(await store.read.findCertificateBySerial(certificate.serial), expected);
  assert.equal(await store.read.findCertificateBySerial('0'.repeat(32)), undefined);

  await tables.change("CREATE TRIGGER no_audit BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no entry'); END");
  await assert.rejects(store.run('issueCertificate', issuance()));
  const { serial } = certificate;
  const revoked = eventOf('cert_revoked');
  await assert.rejects(store.run('revokeCertificate', { serial, nowSeconds: 1, reason: null, revoked }));
  await tables.change('UPDATE certificates SET is_admin = 0');
  await assert.rejects(store.run('grantAdmin', { serial, granted: eventOf('admin_granted') }));
  assert.deepEqual(await store.read.listCertificates(), [{ ...expected, isAdmin: false }]);
});

testStores('revoke: once, of many at once, with its reason; unknown serials are not found', async ({ store }) => {
  const { certificate: { serial, fingerprint } } = issuance();
  await store.run('issueCertificate', issuance({ serial, fingerprint }));
  const revoke = (nowSeconds: number, of = serial) =>
    store.run('revokeCertificate', { serial: of, nowSeconds, reason: 'keyCompromise', revoked: eventOf('cert_revoked') });
  assert.equal((await revoke(1, '0'.repeat(32))).refused, 'certificateNotFound');
  const outcomes = await Promise.all(Array.from({ length: 8 }, () => revoke(CREATED_AT)));
  assert.deepEqual(outcomes.map(({ refused }) => `${refused}`).toSorted(), [...Array<string>(7).fill('certificateRevoked'), 'null']);
  assert.equal((await revoke(CREATED_AT + 5)).refused, 'certificateRevoked');
  const found = await store.read.findCertificate(fingerprint);
  assert.deepEqual([found?.revokedAt, found?.revocationReason], [CREATED_AT, 'keyCompromise']);
  assert.deepEqual(await revokedIn(store), [serial]);
  assert.equal((await auditedIn(store)).filter((event) => event === 'cert_revoked').length, 1);
});

testStores('grantAdmin: makes an admin of a certificate that is not revoked, once of several at once', async ({ store, tables }) => {
  const [valid, revoked] = [await addCertificate(tables), await addCertificate(tables, { revokedAt: 1 })];
  assert.equal(await store.run('grantAdmin', { serial: revoked.serial, granted: eventOf('admin_granted') }), false);
  assert.equal(await store.run('grantAdmin', { serial: '0'.repeat(32), granted: eventOf('admin_granted') }), false);
  assert.deepEqual(await auditedIn(store), []);
  const grant = () => store.run('grantAdmin', { serial: valid.serial, granted: eventOf('admin_granted') });
  assert.deepEqual((await Promise.all([grant(), grant(), grant()])).toSorted(), [false, false, true]);
  assert.equal((await store.read.findCertificate(valid.fingerprint))?.isAdmin, true);
  assert.deepEqual(await auditedIn(store), ['admin_granted']);
});

testStores('listCertificatesOf: what a fingerprint obtained and what it is of, newest first, each once', async ({ store, tables }) => {
  const holder = await addCertificate(tables, { createdAt: 10 });
  const { fingerprint } = holder;
  const obtained = await addCertificate(tables, { createdAt: 30, issuedTo: fingerprint });
  const renewed = await addCertificate(tables, { createdAt: 20, issuedTo: fingerprint });
  await addCertificate(tables, { createdAt: 40, issuedTo: newFingerprint() });
  const page = async (limit: number, offset: number): Promise<[string[], number]> => {
    const { items, total } = await store.read.listCertificatesOf(fingerprint, { limit, offset });
    return [items.map(({ serial }) => serial), total];
  };
  assert.deepEqual(await page(100, 0), [[obtained.serial, renewed.serial, holder.serial], 3]);
  assert.deepEqual(await page(2, 0), [[obtained.serial, renewed.serial], 3]);
  assert.deepEqual(await page(1, 1), [[renewed.serial], 3]);
  assert.deepEqual(await page(2, 2), [[holder.serial], 3]);
  assert.deepEqual(await page(2, 3), [[], 3]);
  assert.deepEqual(await store.read.listCertificatesOf(newFingerprint(), { limit: 1, offset: 0 }), { items: [], total: 0 });
});

testStores('listCertificatesOf: of the same second by serial, and one that was obtained with itself is there once', async ({ store, tables }) => {
  const fingerprint = newFingerprint();
  const obtained = Array.from({ length: 20 }, () => addCertificate(tables, { issuedTo: fingerprint }));
  const renewed = addCertificate(tables, { fingerprint, issuedTo: fingerprint });
  const made = (await Promise.all([...obtained, renewed])).map(({ serial }) => serial);
  const { items, total } = await store.read.listCertificatesOf(fingerprint, { limit: 100, offset: 0 });
  assert.deepEqual([items.map(({ serial }) => serial), total], [made.toSorted(), 21]);
});

test('listCertificatesOf, removeExpiredCertificates: read from their indexes, without a scan or a sort of the certificates', async (t) => {
  const { path } = await openTestStore(t);
  const db = openReading(path);
  t.after(() => db.close());
  const prepared: string[] = [];
  const noting = { prepare: (sql: string) => (prepared.push(sql), db.prepare(sql)) } as unknown as DatabaseSync;
  certificateLookups(noting);
  certificateCommands(noting);
  const plans = prepared.filter((sql) => /OFFSET|AS total|:untilSeconds|DELETE/.test(sql)).map((sql) => (
    db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map(({ detail }) => String(detail)).join('\n')
  ));
  assert.equal(plans.length, 6);
  for (const plan of plans) assert.doesNotMatch(plan, /SCAN (?:certificates|pastes|obtained|renewed)/);
});

testStores('listRevoked: all of them in the order of their revocation, also past what is read in one turn', async ({ store, tables }) => {
  const made = Array.from({ length: 1001 }, (_, index) => ({
    serial: randomBytes(16).toString('hex'), revokedAt: index % 2 === 0 ? Math.floor(index / 100) : null,
  }));
  await tables.change(`
    INSERT INTO certificates (serial, common_name, fingerprint, created_at, expires_at, is_admin, revoked_at)
    SELECT value ->> 'serial', 'x', value ->> 'serial', 0, 1000, 0, value ->> 'revokedAt'
    FROM json_each(:made)`, { made: JSON.stringify(made) });
  const revoked = made.filter(({ revokedAt }) => revokedAt !== null);
  revoked.sort((one, other) => one.revokedAt! - other.revokedAt! || (one.serial < other.serial ? -1 : 1));
  assert.deepEqual(await revokedIn(store), revoked.map(({ serial }) => serial));
});

testStores('revokedCount: grows with each revocation, whoever revokes, and never shrinks', async ({ store, tables }) => {
  const { serial } = await addCertificate(tables);
  assert.equal(await store.read.revokedCount(), 0);
  await setRevoked(tables, serial, 1);
  assert.equal(await store.read.revokedCount(), 1);
  await tables.change(DELETE, { serial });
  assert.equal(await store.read.revokedCount(), 1);
});

interface Removed {
  readonly left: string[];
  readonly removed: number;
  readonly steps: number;
}

/** Removes expired certificates, three in each step, and gives which are left. */
async function removeAll(store: Store, untilSeconds: number): Promise<Removed> {
  let last: CertificatePlace | null = null;
  let [removed, steps] = [0, 0];
  do {
    const step: { removed: number; last: CertificatePlace | null } = await store.run(
      'removeExpiredCertificates', { untilSeconds, after: last, limit: 3 },
    );
    ({ last } = step);
    removed += step.removed;
    steps += 1;
  } while (last !== null);
  return { left: (await store.read.listCertificates()).map(({ commonName }) => commonName).toSorted(), removed, steps };
}

testStores('removeExpired: a step ends with the last certificate that it looked at, or with null when there are no more', async ({ store, tables }) => {
  assert.equal(await store.read.hasCertificates(), false);
  const serials = [];
  for (const expiresAt of [4, 1, 3, 2]) serials[expiresAt] = (await addCertificate(tables, { expiresAt })).serial;
  assert.equal(await store.read.hasCertificates(), true);
  const step = (after: CertificatePlace | null) => (
    store.run('removeExpiredCertificates', { untilSeconds: 4, after, limit: 3 })
  );
  const last = { expiresAt: 3, serial: serials[3]! };
  assert.deepEqual(await step(null), { removed: 3, last });
  assert.deepEqual(await step(last), { removed: 1, last: null });
});

testStores('removeExpired: what has expired and nothing refers to; never an admin\'s, so that nobody is the first again', async ({ store, tables }) => {
  const old = { expiresAt: CREATED_AT };
  await addCertificate(tables, { ...old, commonName: 'admin', isAdmin: true });
  await addCertificate(tables, { ...old, commonName: 'revoked admin', isAdmin: true, revokedAt: 1 });
  const owner = await addCertificate(tables, { ...old, commonName: 'owner' });
  await storePaste(store, patternedBytes(1), { owner: owner.fingerprint });
  const requester = await addCertificate(tables, { ...old, expiresAt: 5, commonName: 'requester' });
  await addCertificate(tables, { ...old, commonName: 'obtained', issuedTo: requester.fingerprint });
  await addCertificate(tables, { ...old, commonName: 'plain' });
  await addCertificate(tables, { ...old, commonName: 'revoked', revokedAt: 7 });
  await addCertificate(tables, { expiresAt: CREATED_AT + 1, commonName: 'valid' });
  const first = await removeAll(store, CREATED_AT);
  assert.deepEqual(first, { left: ['admin', 'owner', 'requester', 'revoked admin', 'valid'], removed: 3, steps: 2 });
  const second = await removeAll(store, CREATED_AT);
  assert.deepEqual(second, { left: ['admin', 'owner', 'revoked admin', 'valid'], removed: 1, steps: 1 });
  assert.equal(await tables.change('UPDATE pastes SET owner = :other', { other: newFingerprint() }), 1);
  assert.deepEqual((await removeAll(store, CREATED_AT)).left, ['admin', 'revoked admin', 'valid']);
  assert.deepEqual((await removeAll(store, CREATED_AT + 1)).left, ['admin', 'revoked admin']);
  assert.deepEqual(await store.run('issueCertificate', issuance()), issued(false));
});

testStores('removeExpired: a revoked one stays until a list has named it that began after its end', async ({ store, tables }) => {
  await addCertificate(tables, { commonName: 'admin', isAdmin: true });
  await addCertificate(tables, { expiresAt: 100, revokedAt: 50, commonName: 'revoked' });
  await addCertificate(tables, { expiresAt: 100, revokedAt: 150, commonName: 'late' });
  const list = { der: Uint8Array.of(1), revokedCount: 2 };
  const leftAfter = async (number: number, thisUpdate: number): Promise<string[]> => {
    assert.equal(await store.run('keepCrl', { ...list, number, thisUpdate }), true);
    return (await removeAll(store, CREATED_AT)).left;
  };
  assert.deepEqual(await leftAfter(1, 100), ['admin', 'late', 'revoked']);
  assert.deepEqual(await leftAfter(2, 101), ['admin', 'late']);
  assert.deepEqual(await leftAfter(3, 150), ['admin', 'late']);
  assert.deepEqual(await leftAfter(4, 151), ['admin']);
});

testStores('createAuthority: of any number that race the first one stays, ever after too, and it alone is audited', async ({ store }) => {
  const authorities = Array.from({ length: 8 }, (_, number): StoredAuthority => ({
    commonName: `authority ${number}`,
    certificate: new Uint8Array(randomBytes(32)),
    lockedKey: new Uint8Array(randomBytes(32)),
    fingerprint: newFingerprint(),
    createdAt: CREATED_AT,
    expiresAt: CREATED_AT + 100 + number,
  }));
  const created = await Promise.all(authorities.map((each, number) => (
    store.run('createAuthority', { authority: each, created: eventOf(`created_${number}`) })
  )));
  const first = created.indexOf(true);
  assert.deepEqual(created, authorities.map((_, number) => number === first));
  const later = { ...authorities[first]!, commonName: 'later' };
  assert.equal(await store.run('createAuthority', { authority: later, created: eventOf('created_later') }), false);
  assert.deepEqual({ ...(await store.read.findAuthority()) }, authorities[first]);
  assert.deepEqual(await auditedIn(store), [`created_${first}`]);
});

testStores('keepCrl: a list of the same or a larger number stays', async ({ store }) => {
  const keep = (number: number, byte: number): Promise<boolean> => (
    store.run('keepCrl', { number, der: Uint8Array.of(byte), thisUpdate: 100, revokedCount: 0 })
  );
  assert.deepEqual([await keep(5, 1), await keep(5, 2), await keep(4, 3)], [true, false, false]);
  assert.deepEqual((await store.read.findCrl())?.der, Uint8Array.of(1));
  assert.deepEqual([await keep(6, 4), (await store.read.findCrl())?.number], [true, 6]);
});

async function revokedIn(store: Store): Promise<string[]> {
  const serials = [];
  for await (const { serial } of listRevoked(store.read)) serials.push(serial);
  return serials;
}

testStores('findCertificate: sees at once what any connection changed, and what appeared since', async ({ store, tables }) => {
  const fingerprint = newFingerprint();
  const find = () => store.read.findCertificate(fingerprint);
  assert.equal(await find(), undefined);
  const { serial } = await addCertificate(tables, { fingerprint });
  for (let round = 0; round < 20; round += 1) {
    await setRevoked(tables, serial, CREATED_AT);
    assert.equal((await find())?.revokedAt, CREATED_AT);
    await setRevoked(tables, serial, null);
    assert.equal((await find())?.revokedAt, null);
    const isAdmin = round % 2;
    assert.equal(await tables.change('UPDATE certificates SET is_admin = :isAdmin WHERE serial = :serial', { serial, isAdmin }), 1);
    assert.equal((await find())?.isAdmin, isAdmin === 1);
  }
  await tables.change(DELETE, { serial });
  assert.equal(await find(), undefined);
});

test('findCertificate: one indexed read, and none of the table while nothing is written', async (t) => {
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
      if (!sql.endsWith('WHERE fingerprint = :fingerprint')) return statement;
      return { get: (params: Record<string, string>) => {
        reads += 1;
        return statement.get(params);
      } };
    },
  };
  const counted = counting as unknown as DatabaseSync;
  const findCertificate = rememberFound(counted, certificateLookups(counted).findCertificate);
  for (let turn = 0; turn < 5; turn += 1) assert.equal(findCertificate(fingerprint)?.fingerprint, fingerprint);
  assert.equal(reads, 1);
  // Anyone can make up a fingerprint, so unknown ones are not remembered.
  for (let turn = 0; turn < 3; turn += 1) assert.equal(findCertificate('f'.repeat(40)), undefined);
  assert.equal(reads, 4);
  insertCertificate(path);
  assert.equal(findCertificate(fingerprint)?.fingerprint, fingerprint);
  assert.equal(reads, 5);
  // Nor do unknown ones push out what is remembered.
  for (let made = 0; made < 10_001; made += 1) findCertificate(made.toString(16).padStart(40, '0'));
  assert.equal(findCertificate(fingerprint)?.fingerprint, fingerprint);
  assert.equal(reads, 10_006);
  const [sql = ''] = statements.filter((statement) => statement.endsWith('WHERE fingerprint = :fingerprint'));
  const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map(({ detail }) => String(detail));
  assert.equal(plan.length, 1);
  assert.match(plan[0] ?? '', /^SEARCH certificates USING INDEX \w+ \(fingerprint=\?\)$/);
});

test('listRevoked: others have a turn of the event loop after each page of 200', async () => {
  const pages = [200, 200, 0].map((length) => Array.from({ length }, () => ({}) as Certificate));
  const read = { listRevokedCertificates: () => pages.shift()! };
  const seen: string[] = [];
  let listed = 0;
  setImmediate(() => seen.push(`a turn after ${listed}`));
  for await (const _ of listRevoked(read)) {
    listed += 1;
    if (listed === 400) setImmediate(() => seen.push('another at the end'));
  }
  assert.deepEqual(seen, ['a turn after 200', 'another at the end']);
});
