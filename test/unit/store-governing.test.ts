// What an operator governs, in the store: invitations, refused content and renewed certificates. Races are real ones:
// many calls at once, and a second process' writer beside the server's. What each owner stores: store-owners.test.ts.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { certificateCommands, certificateLookups } from '../../src/store/certificates.ts';
import { governingCommands, governingLookups } from '../../src/store/governing.ts';
import type { Store } from '../../src/store/open.ts';
import { pasteCommands } from '../../src/store/pastes.ts';
import { migrate } from '../../src/store/schema.ts';
import type { AuditEvent, Issuance, NewCertificate } from '../../src/store/store.ts';
import type { VisitedStore } from '../../src/store/visit.ts';
import { newFingerprint } from '../support/certificates.ts';
import { CREATED_AT, inlineContent, inlinePaste, newId, NO_TERMS, patternedBytes, storePaste } from '../support/store.ts';
import { addCertificate, type OpenedStore, type Tables, testStores } from '../support/stores.ts';

const OWNER = 'a'.repeat(40);
const OTHER = 'b'.repeat(40);
const ENDS_AT = CREATED_AT + 1000;

function eventOf(event: string, details = {}): AuditEvent {
  return { time: CREATED_AT, event, outcome: 'success', clientId: null, clientIp: null, details };
}

function issuance(given: Partial<NewCertificate> = {}, terms: Pick<Issuance, 'invitation' | 'renews'> = {}): Issuance {
  const certificate: NewCertificate = {
    serial: randomBytes(16).toString('hex'),
    commonName: 'alice',
    fingerprint: newFingerprint(),
    createdAt: CREATED_AT,
    expiresAt: ENDS_AT,
    issuedTo: null,
    publicKeySha256: randomBytes(32),
    ...given,
  };
  return { certificate, spend: null, issued: eventOf('cert_issued'), granted: eventOf('admin_granted'), ...terms };
}

/** The server's store with an admin in it, and the same database opened as the operator's commands open it. */
async function openBoth({ store, tables, visit }: OpenedStore) {
  await addCertificate(tables, { commonName: 'admin', isAdmin: true });
  return { store, visited: await visit(), tables };
}

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

function countOf(tables: Tables, what: string): Promise<unknown> {
  return tables.value(`SELECT count(*) FROM ${what}`);
}

test('every statement on what can grow is served by an index', (t) => {
  const db = new DatabaseSync(':memory:');
  t.after(() => db.close());
  migrate(db);
  const prepared = new Set<string>();
  const noting = { prepare: (sql: string) => (prepared.add(sql), db.prepare(sql)) } as unknown as DatabaseSync;
  for (const prepare of [certificateCommands, governingCommands, pasteCommands]) prepare(noting);
  certificateLookups(noting);
  governingLookups(noting);
  // These statements list or count everything, or ask whether there is anything, so they may scan.
  const isOfAll = (sql: string): boolean => /ORDER BY (?:id|created_at)|count\(\*\) FILTER|certificates LIMIT 1/.test(sql);
  const scans = [...prepared].filter((sql) => !isOfAll(sql)).flatMap((sql) => (
    db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map(({ detail }) => String(detail))
  )).filter((detail) => detail.startsWith('SCAN ') && !/^SCAN (?:usage|crl|removals|CONSTANT ROW|pragma_\w+ VIRTUAL TABLE INDEX 0:)$/.test(detail));
  assert.deepEqual(scans, []);
  assert.ok(prepared.size > 40);
});

test('owner quota: what has expired is looked for among what its owner has, also where the statistics know of few owners', (t) => {
  const db = new DatabaseSync(':memory:');
  t.after(() => db.close());
  migrate(db);
  // `PRAGMA optimize` leaves this when one paste in ten has an owner: SQLite would then go through all that have one.
  db.exec(`ANALYZE; INSERT INTO sqlite_stat1 VALUES
    ('pastes', 'pastes_by_expiry', '10 1'), ('pastes', 'pastes_by_owner', '1 1 1 1 1 1 1 1 1'); ANALYZE sqlite_schema`);
  const plans: string[] = [];
  const noting = { prepare: (sql: string) => {
    if (sql.includes('FROM owners')) plans.push(...db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map(({ detail }) => String(detail)));
    return db.prepare(sql);
  } } as unknown as DatabaseSync;
  pasteCommands(noting);
  assert.ok(plans.includes('SEARCH pastes USING COVERING INDEX pastes_by_owner (owner=?)'), plans.join('\n'));
  assert.deepEqual(plans.filter((detail) => detail.startsWith('SCAN pastes')), []);
});

// Invitations.

const CODE = createHash('sha256').update('a code').digest();

function invite(store: Store | VisitedStore, usesLeft: number, expiresAt = ENDS_AT): Promise<number> {
  return store.run('createInvitation', { codeSha256: CODE, note: 'n', createdAt: CREATED_AT, expiresAt, usesLeft });
}

for (const uses of [1, 3]) {
  testStores(`invitation: of 40 issuances at once with one of ${uses} uses so many are issued, and the others leave nothing`, async (opened) => {
    const { store, visited, tables } = await openBoth(opened);
    const audited = await countOf(tables, 'audit');
    await invite(visited, uses);
    // Half of them from another process.
    const outcomes = await Promise.all(Array.from({ length: 40 }, (_, index) => (
      (index % 2 === 0 ? store : visited).run('issueCertificate', issuance({}, { invitation: CODE }))
    )));
    const refused = outcomes.map((outcome) => outcome.refused);
    assert.equal(refused.filter((name) => name === null).length, uses);
    assert.equal(refused.filter((name) => name === 'invitationRequired').length, 40 - uses);
    assert.equal(await countOf(tables, 'certificates'), 1 + uses);
    assert.equal(await countOf(tables, 'audit'), Number(audited) + uses);
    assert.deepEqual((await store.read.listInvitations()).map(({ usesLeft }) => usesLeft), [0]);
    assert.equal(await store.read.isInvitationOpen(CODE, CREATED_AT), false);
  });
}

testStores('invitation: to its last second, until it is withdrawn; what is refused for another reason spends nothing', async (opened) => {
  const { store, visited, tables } = await openBoth(opened);
  const id = await invite(visited, 2, CREATED_AT + 10);
  const at = async (createdAt: number) => (
    (await store.run('issueCertificate', issuance({ createdAt }, { invitation: CODE }))).refused
  );
  for (const [after, isOpen] of [[9, true], [10, false], [11, false]] as const) {
    assert.equal(await store.read.isInvitationOpen(CODE, CREATED_AT + after), isOpen);
    if (!isOpen) assert.equal(await at(CREATED_AT + after), 'invitationRequired');
  }
  const { serial } = await addCertificate(tables);
  assert.equal((await store.run('issueCertificate', issuance({ serial }, { invitation: CODE }))).refused, 'serialTaken');
  assert.equal(await at(CREATED_AT + 9), null);
  const [invitation] = await visited.read.listInvitations();
  assert.deepEqual({ ...invitation }, { id, note: 'n', createdAt: CREATED_AT, expiresAt: CREATED_AT + 10, usesLeft: 1 });
  assert.deepEqual([await visited.run('withdrawInvitation', id), await visited.run('withdrawInvitation', id)], [true, false]);
  assert.equal(await at(CREATED_AT), 'invitationRequired');
  assert.equal(await store.read.isInvitationOpen(CODE, CREATED_AT), false);
  await invite(visited, 1);
  assert.notEqual((await visited.read.listInvitations())[0]?.id, id, 'no id is given twice');
  await assert.rejects(invite(visited, 1), 'one code, one invitation');
});

testStores('invitation: withdrawn while many use it, none is issued after it was gone', async (opened) => {
  const { store, visited, tables } = await openBoth(opened);
  for (let round = 0; round < 5; round += 1) {
    const id = await invite(visited, 1000);
    const issuing = Array.from({ length: 40 }, () => store.run('issueCertificate', issuance({}, { invitation: CODE })));
    await visited.run('withdrawInvitation', id);
    const left = await countOf(tables, 'certificates');
    await Promise.all(issuing);
    assert.equal(await countOf(tables, 'certificates'), left, `round ${round}`);
  }
});

// Bans.

testStores('ban: once it is acknowledged nothing with that content is stored, of many at once, by another process too', async (opened) => {
  const { store, visited, tables } = await openBoth(opened);
  let stored = 0;
  for (let round = 0; round < 10; round += 1) {
    const content = patternedBytes(100, round + 1);
    const { sha256 } = inlinePaste(content);
    const change = await storePaste(store, patternedBytes(50, 99), { owner: OWNER });
    const create = () => store.pastes.create(inlinePaste(content, { id: newId() }), NO_TERMS);
    const creating = Array.from({ length: 20 }, create);
    const by = round % 2 === 0 ? store : visited;
    const banned = by.run('banContent', { sha256, note: '', createdAt: CREATED_AT, banned: eventOf('content_banned') });
    const later = Array.from({ length: 20 }, create);
    const ofContent = `pastes WHERE sha256 = x'${hexOf(sha256)}'`;
    assert.equal(await banned, true);
    const left = await countOf(tables, ofContent);
    const outcomes = await Promise.all([...creating, ...later]);
    stored += outcomes.filter(({ refused }) => refused === null).length;
    assert.deepEqual(await create(), { refused: 'contentRefused' });
    const terms = { ...NO_TERMS, nowSeconds: CREATED_AT };
    const updated = await store.pastes.update(change.id, OWNER, { content: inlineContent(content) }, terms);
    assert.deepEqual(updated, { refused: 'contentRefused' });
    assert.equal(await countOf(tables, ofContent), left, `round ${round}`);
  }
  assert.ok(stored > 0, 'some were stored before the ban');
});

testStores('ban: told once and audited once, listed, and lifted; a work and a submission are not spent on it', async (opened) => {
  const { store, visited, tables } = await openBoth(opened);
  const { sha256 } = inlinePaste(patternedBytes(10));
  const ban = { sha256, note: 'why', createdAt: CREATED_AT, banned: eventOf('content_banned') };
  const outcomes = await Promise.all([store, visited, store, visited].map(({ run }) => run('banContent', ban)));
  assert.deepEqual(outcomes.filter(Boolean), [true]);
  assert.equal(await countOf(tables, "audit WHERE event = 'content_banned'"), 1);
  const [listed, ...others] = await store.read.listBans();
  assert.deepEqual([{ ...listed }, others], [{ sha256: hexOf(sha256), note: 'why', createdAt: CREATED_AT }, []]);
  for (const [note, kept] of [['', 'why'], ['because', 'because'], ['', 'because']] as const) {
    assert.equal(await visited.run('banContent', { ...ban, note, createdAt: CREATED_AT + 1 }), false);
    const bans = await store.read.listBans();
    assert.deepEqual(bans.map((found) => [found.note, found.createdAt]), [[kept, CREATED_AT]]);
  }
  assert.equal(await countOf(tables, "audit WHERE event = 'content_banned'"), 1);
  const spend = { nonce: 'c'.repeat(32), expiresAt: ENDS_AT, spendableUntil: ENDS_AT };
  const terms = { ...NO_TERMS, spend, duplicates: { max: 1, windowSeconds: 60 } };
  const create = () => store.pastes.create(inlinePaste(patternedBytes(10)), terms);
  assert.deepEqual(await create(), { refused: 'contentRefused' });
  assert.deepEqual([await countOf(tables, 'spent_challenges'), await countOf(tables, 'submissions')], [0, 0]);
  const lifting = { sha256, unbanned: eventOf('content_unbanned') };
  const lifted = await Promise.all([store, visited, store, visited].map(({ run }) => run('unbanContent', lifting)));
  assert.deepEqual(lifted.filter(Boolean), [true]);
  assert.equal(await countOf(tables, "audit WHERE event = 'content_unbanned'"), 1);
  assert.deepEqual(await create(), { refused: null });
});

// Renewed certificates.

const STATES = `
  SELECT common_name, CASE WHEN revoked_at IS NULL THEN 'valid' ELSE coalesce(revocation_reason, 'revoked') END,
    CASE is_unused WHEN 1 THEN 'unused' ELSE 'used' END
  FROM certificates
  WHERE is_admin = 0
  ORDER BY common_name`;

/** A certificate "A" and one that renews it, "B", not presented yet. */
async function renewed(store: Store, tables: Tables) {
  await tables.change('DELETE FROM certificates WHERE is_admin = 0');
  await tables.change('DELETE FROM audit');
  const old = await addCertificate(tables, { commonName: 'A' });
  const holder = old.fingerprint;
  const renew = (commonName: string, renews = old.serial) => {
    const made = issuance({ commonName, issuedTo: holder }, { renews });
    return { serial: made.certificate.serial, fingerprint: made.certificate.fingerprint, outcome: store.run('issueCertificate', made) };
  };
  const next = renew('B');
  assert.equal((await next.outcome).refused, null);
  return { old, holder, next, renew };
}

function useOf(serial: string, holder: string) {
  return { serial, holder, nowSeconds: CREATED_AT, by: eventOf('ignored') };
}

function revocationOf(serial: string, reason: string | null = 'keyCompromise') {
  return { serial, nowSeconds: CREATED_AT, reason, revoked: eventOf('cert_revoked', { serial }) };
}

const serialsOf = (events: readonly AuditEvent[]) => events.map(({ details }) => details['serial']);

testStores('renewed: the old one stays until the new one is used first, of many at once by one of them', async (opened) => {
  const { store, tables } = await openBoth(opened);
  const { old, holder, next, renew } = await renewed(store, tables);
  assert.deepEqual(await tables.rows(STATES), ['A valid used', 'B valid unused']);
  const outcomes = await Promise.all(Array.from({ length: 40 }, () => store.run('useCertificate', useOf(next.serial, holder))));
  assert.deepEqual(outcomes.map(serialsOf).filter(({ length }) => length > 0), [[old.serial]]);
  assert.deepEqual(await tables.rows(STATES), ['A superseded used', 'B valid used']);
  assert.equal(await countOf(tables, "audit WHERE event = 'cert_revoked'"), 1);
  assert.equal((await store.read.findCertificate(next.fingerprint))?.holder, holder);
  // A request that found B unused earlier and comes late changes nothing.
  await renew('C', next.serial).outcome;
  assert.deepEqual(await store.run('useCertificate', useOf(next.serial, holder)), []);
  assert.deepEqual(await tables.rows(STATES), ['A superseded used', 'B valid used', 'C valid unused']);
});

testStores('renewed: what has run out already is not revoked as well', async (opened) => {
  const { store, tables } = await openBoth(opened);
  const { old, holder, next, renew } = await renewed(store, tables);
  await renew('C').outcome;
  const late = { ...useOf(next.serial, holder), nowSeconds: old.expiresAt };
  assert.deepEqual(await store.run('useCertificate', late), []);
  await tables.change("UPDATE certificates SET expires_at = expires_at + 1000000000 WHERE common_name = 'C'");
  const serial = String(await tables.value("SELECT serial FROM certificates WHERE common_name = 'C'"));
  assert.deepEqual(await store.run('useCertificate', { ...late, serial }), []);
  assert.deepEqual(await tables.rows(STATES), ['A valid used', 'B superseded unused', 'C valid used']);
});

testStores('renewed: its first use against a revocation of the old: B is in use and A superseded, or both are revoked', async (opened) => {
  const { store, visited, tables } = await openBoth(opened);
  const seen = new Set<string>();
  for (let round = 0; round < 40; round += 1) {
    const { old, holder, next } = await renewed(store, tables);
    // The revocation comes from a second process or from this one, and either request is sent first.
    const operator = round % 4 < 2 ? visited : store;
    const use = () => store.run('useCertificate', useOf(next.serial, holder));
    const earlier = round % 2 === 0 ? use() : undefined;
    const revoking = operator.run('revokeCertificate', revocationOf(old.serial));
    const [used, revoked] = await Promise.all([earlier ?? use(), revoking]);
    const states = (await tables.rows(STATES)).join(', ');
    seen.add(states);
    const audited = await tables.rows("SELECT json_extract(details, '$.serial') FROM audit WHERE event = 'cert_revoked' ORDER BY id");
    if (revoked.refused === null) {
      assert.equal(states, 'A keyCompromise used, B keyCompromise unused');
      assert.deepEqual([serialsOf(used), serialsOf(revoked.audited)], [[], [old.serial, next.serial]]);
      assert.deepEqual(audited, [old.serial, next.serial]);
    } else {
      assert.equal(revoked.refused, 'certificateRevoked');
      assert.equal(states, 'A superseded used, B valid used');
      assert.deepEqual([serialsOf(used), audited], [[old.serial], [old.serial]]);
    }
  }
  assert.equal(seen.size, 2, 'each has won once');
});

testStores('renewed: by the certificate that was presented alone, whatever its holder has beside it', async (opened) => {
  const { store, tables } = await openBoth(opened);
  const { holder, next, renew } = await renewed(store, tables);
  await store.run('useCertificate', useOf(next.serial, holder));
  assert.equal((await renew('C').outcome).refused, 'certificateRevoked', 'A, which may have been stolen');
  assert.equal((await renew('D', next.serial).outcome).refused, null);
  assert.deepEqual(await tables.rows(STATES), ['A superseded used', 'B valid used', 'D valid unused']);
});

testStores('renewed: its first use against another renewal: one is in use at most, one unused at most', async (opened) => {
  const { store, visited, tables } = await openBoth(opened);
  const seen = new Set<string>();
  for (let round = 0; round < 20; round += 1) {
    const { holder, next, renew } = await renewed(store, tables);
    const use = () => (round % 4 < 2 ? visited : store).run('useCertificate', useOf(next.serial, holder));
    const used = round % 2 === 0 ? use() : undefined;
    const { outcome } = renew('C');
    await Promise.all([outcome, used ?? use()]);
    seen.add((await tables.rows(STATES)).join(', '));
  }
  const wanted = ['A superseded used, B valid used', 'A valid used, B superseded unused, C valid unused'];
  assert.deepEqual([...seen].sort(), wanted);
});

testStores('renewed: a new one revokes the unused one before it; revoking takes the unused one along, and never the used', async (opened) => {
  const { store, tables } = await openBoth(opened);
  const { old, holder, next, renew } = await renewed(store, tables);
  const third = renew('C');
  const outcome = await third.outcome;
  assert.deepEqual(outcome.refused === null && serialsOf(outcome.audited), [next.serial, undefined]);
  assert.deepEqual(await tables.rows(STATES), ['A valid used', 'B superseded unused', 'C valid unused']);
  assert.deepEqual(await store.run('useCertificate', useOf(next.serial, holder)), [], 'it is revoked');
  // Revoking the unused certificate revokes no other.
  assert.equal((await store.run('revokeCertificate', revocationOf(third.serial))).refused, null);
  assert.deepEqual(await tables.rows(STATES), ['A valid used', 'B superseded unused', 'C keyCompromise unused']);
  await renew('D').outcome;
  assert.equal((await store.run('revokeCertificate', revocationOf(old.serial, null))).refused, null);
  assert.deepEqual(await tables.rows(STATES), [
    'A revoked used', 'B superseded unused', 'C keyCompromise unused', 'D revoked unused',
  ]);
  assert.equal((await renew('E').outcome).refused, 'certificateRevoked');
  assert.equal(await countOf(tables, 'certificates'), 5);
});

testStores('findRenewable: answers as issuing would, without it: until the 24th of a day, a revocation or the end', async (opened) => {
  const { store, tables } = await openBoth(opened);
  const { old, renew } = await renewed(store, tables);
  const asked = async (nowSeconds = CREATED_AT, serial = old.serial) => {
    const { refused, retryAfterSeconds } = await store.read.findRenewable(serial, nowSeconds);
    return refused === 'rateLimited' ? retryAfterSeconds : refused;
  };
  assert.equal(await asked(0), null, 'by a clock that was never set');
  for (let count = 2; count < 24; count += 1) {
    assert.equal(await asked(), null, `${count} of 24`);
    assert.equal((await renew('C').outcome).refused, null);
  }
  assert.deepEqual([await asked(), (await renew('D').outcome).refused], [86_400, 'rateLimited']);
  assert.deepEqual([await asked(CREATED_AT + 86_399), await asked(CREATED_AT + 86_400)], [1, null]);
  assert.equal(await asked(old.expiresAt), 'certificateRevoked');
  assert.equal(await asked(CREATED_AT, '0'.repeat(32)), 'certificateRevoked');
  await store.run('revokeCertificate', revocationOf(old.serial));
  assert.equal(await asked(CREATED_AT + 86_400), 'certificateRevoked');
  assert.equal(await countOf(tables, 'certificates'), 25);
});

testStores('renewed: has the admin mark and the requester of what it renews; not when that has run out', async (opened) => {
  const { store, tables } = await openBoth(opened);
  const made = await addCertificate(tables, { commonName: 'A', isAdmin: true, issuedTo: OTHER });
  const holder = made.fingerprint;
  const first = issuance({ issuedTo: holder }, { renews: made.serial });
  const outcome = await store.run('issueCertificate', first);
  assert.deepEqual([outcome.refused, outcome.refused === null && outcome.isAdmin], [null, true]);
  const found = await store.read.findCertificateBySerial(first.certificate.serial);
  assert.deepEqual([found?.holder, found?.isUnused, found?.issuedTo, found?.isAdmin], [holder, true, OTHER, true]);
  const listed = async (of: string) => (await store.read.listCertificatesOf(of, { limit: 10, offset: 0 })).total;
  assert.deepEqual([await listed(holder), await listed(OTHER)], [2, 2]);
  const { expiresAt } = made;
  const renewAt = async (createdAt: number) => {
    const { certificate, ...terms } = issuance({ createdAt, expiresAt: createdAt + 1, issuedTo: holder }, { renews: made.serial });
    return (await store.run('issueCertificate', { certificate, ...terms })).refused;
  };
  assert.equal(await renewAt(expiresAt - 1), null);
  assert.equal(await renewAt(expiresAt), 'certificateRevoked');
  // An admin mark that is given later belongs to the holder, whichever certificate it is given to.
  const plain = await addCertificate(tables, { commonName: 'B' });
  const second = issuance({ issuedTo: plain.fingerprint }, { renews: plain.serial });
  await store.run('issueCertificate', second);
  await store.run('grantAdmin', { serial: plain.serial, granted: eventOf('admin_granted') });
  assert.equal((await store.read.findCertificateBySerial(second.certificate.serial))?.isAdmin, true);
});

testStores('keys: certified again for their holder, and for anyone from the second on in which they run out', async (opened) => {
  const { store } = await openBoth(opened);
  const publicKeySha256 = randomBytes(32);
  const first = issuance({ publicKeySha256 });
  const holder = first.certificate.fingerprint;
  assert.equal((await store.run('issueCertificate', first)).refused, null);
  const again = async (given: Partial<NewCertificate>, terms = {}) => (
    (await store.run('issueCertificate', issuance({ publicKeySha256, ...given }, terms))).refused
  );
  for (const issuedTo of [null, OTHER]) {
    assert.equal(await again({ issuedTo }), 'keyReused');
    assert.equal(await again({ issuedTo, createdAt: ENDS_AT - 1, expiresAt: ENDS_AT }), 'keyReused');
  }
  assert.equal(await again({ issuedTo: holder }), null);
  assert.equal(await again({ issuedTo: holder }, { renews: first.certificate.serial }), null, 'beside one of its own');
  assert.equal(await again({ issuedTo: OTHER }), 'keyReused');
  assert.equal(await again({ createdAt: ENDS_AT, expiresAt: ENDS_AT + 100 }), null);
  assert.equal(await again({ createdAt: ENDS_AT, expiresAt: ENDS_AT + 100 }), 'keyReused');
});

testStores('keys: one that was revoked as compromised is certified no more, not even for its holder', async (opened) => {
  const { store } = await openBoth(opened);
  const publicKeySha256 = randomBytes(32);
  const first = issuance({ publicKeySha256 });
  const { fingerprint: issuedTo, serial } = first.certificate;
  const second = issuance({ publicKeySha256, issuedTo });
  for (const one of [first, second]) assert.equal((await store.run('issueCertificate', one)).refused, null);
  const revoke = async (which: string, reason: string | null) => (
    store.run('revokeCertificate', { serial: which, nowSeconds: CREATED_AT, reason, revoked: eventOf('cert_revoked') })
  );
  const again = async () => (await store.run('issueCertificate', issuance({ publicKeySha256, issuedTo }))).refused;
  await revoke(serial, 'superseded');
  assert.equal(await again(), null);
  await revoke(second.certificate.serial, 'keyCompromise');
  assert.equal(await again(), 'keyReused');
});

testStores('removeExpired: a renewed one goes when it has expired; the first stays while its fingerprint is a holder', async (opened) => {
  const { store, tables } = await openBoth(opened);
  const first = await addCertificate(tables, { commonName: 'A', expiresAt: CREATED_AT });
  const holder = first.fingerprint;
  await addCertificate(tables, { commonName: 'B', expiresAt: CREATED_AT, holder });
  await addCertificate(tables, { commonName: 'C', holder });
  const left = async (until: number) => {
    await store.run('removeExpiredCertificates', { untilSeconds: until, after: null, limit: 100 });
    return tables.rows('SELECT common_name FROM certificates WHERE is_admin = 0 ORDER BY common_name');
  };
  assert.deepEqual(await left(CREATED_AT), ['A', 'C']);
  const end = CREATED_AT + 400 * 86_400;
  await left(end);
  assert.deepEqual(await left(end), [], 'none of them is kept by another');
});
