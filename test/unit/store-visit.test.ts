// visitStore: a second process beside the server's store, and alone. The commands that visit are in commands-admin,
// commands-pki and api/commands-pki.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { openStore } from '../../src/store/open.ts';
import { MIGRATIONS } from '../../src/store/schema.ts';
import {
  type AuditEvent, DatabaseInUseError, DatabaseRefusedError, type Issuance,
} from '../../src/store/store.ts';
import { type VisitedStore, visitStore } from '../../src/store/visit.ts';
import { movableClock } from '../support/clock.ts';
import {
  CREATED_AT, EXPIRES_AT, openTestStore, patternedBytes, selectValue, storePaste, strayChunks,
  temporaryFolder, uploadContent,
} from '../support/store.ts';

const PARTS = { clock: movableClock(), log: () => {} };

async function visit(t: TestContext, path: string): Promise<VisitedStore> {
  const visited = await visitStore({ ...PARTS, path, ifMissing: 'refuse' });
  t.after(() => visited.close());
  return visited;
}

function event(name: string): AuditEvent {
  return { time: CREATED_AT, event: name, outcome: 'success', clientId: null, clientIp: null, details: {} };
}

function issuance(terms: Pick<Issuance, 'onlyFirst'> = {}): Issuance {
  const certificate = {
    serial: randomBytes(16).toString('hex'),
    commonName: 'alice',
    fingerprint: randomBytes(20).toString('hex'),
    createdAt: CREATED_AT,
    expiresAt: EXPIRES_AT,
    issuedTo: null,
    publicKeySha256: randomBytes(32),
  };
  return { certificate, spend: null, issued: event('cert_issued'), granted: event('admin_granted'), ...terms };
}

test('visitStore: beside a server, each sees at once what the other has written', async (t) => {
  const { store, path } = await openTestStore(t);
  const visited = await visit(t, path);
  const { certificate, ...rest } = issuance();
  assert.deepEqual(await store.certificates.issue({ certificate, ...rest }), {
    refused: null, isAdmin: true, audited: [event('cert_issued'), event('admin_granted')],
  });
  assert.equal((await visited.certificates.findBySerial(certificate.serial))?.isAdmin, true);

  // Remembered by the server before the visitor changes it.
  assert.equal((await store.certificates.findByFingerprint(certificate.fingerprint))?.revokedAt, null);
  const { serial } = certificate;
  const revocation = { serial, nowSeconds: CREATED_AT, reason: null, revoked: event('cert_revoked') };
  assert.deepEqual(await visited.certificates.revoke(revocation), { refused: null, audited: [event('cert_revoked')] });
  assert.equal((await store.certificates.findByFingerprint(certificate.fingerprint))?.revokedAt, CREATED_AT);
  const filter = { event: 'cert_revoked', outcome: null, clientId: null, after: 0, before: EXPIRES_AT };
  assert.equal((await visited.audit.list(filter, { limit: 1, offset: 0 })).total, 1);
});

test('visitStore: beside a server, both write at the same moment and nothing is lost', async (t) => {
  const { store, path } = await openTestStore(t);
  const visited = await visit(t, path);
  const outcomes = await Promise.all(Array.from({ length: 40 }, (_, index) => {
    return (index % 2 === 0 ? store : visited).certificates.issue(issuance());
  }));
  assert.equal(outcomes.filter((outcome) => outcome.refused === null).length, 40);
  assert.equal(outcomes.filter((outcome) => outcome.refused === null && outcome.isAdmin).length, 1);
  assert.equal((await store.certificates.listAll()).length, 40);
});

test('visitStore: beside a server, leaves an upload under way alone', async (t) => {
  const { store, path } = await openTestStore(t);
  await uploadContent(store, patternedBytes(1000));
  await storePaste(store, patternedBytes(10));
  const visited = await visit(t, path);
  assert.deepEqual(await visited.pastes.usage(), { pastes: 1, bytes: 10, databaseBytes: 0 });
  await visited.close();
  assert.equal(strayChunks(path), 1);
});

test('visitStore: where nobody serves, makes the database, and a server can open it meanwhile', async (t) => {
  const path = join(temporaryFolder(t), 'state', 'pasted.db');
  const visited = await visitStore({ ...PARTS, path, ifMissing: 'create' });
  assert.equal(selectValue(path, 'PRAGMA user_version'), MIGRATIONS.length);
  const store = await openStore({ ...PARTS, path });
  assert.deepEqual(await visited.certificates.issue(issuance()), {
    refused: null, isAdmin: true, audited: [event('cert_issued'), event('admin_granted')],
  });
  await visited.close();
  assert.equal((await store.certificates.listAll()).length, 1);
  await store.close();
});

test('visitStore: a path without a database is refused, and nothing is made', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'pasted.db');
  await assert.rejects(visit(t, path), (error: unknown) => {
    return error instanceof DatabaseRefusedError && error.message.includes(path);
  });
  assert.deepEqual(readdirSync(folder), []);
});

test('visitStore: a file that is no database is refused and stays as it was', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'diary.txt');
  writeFileSync(path, 'Dear diary,\n');
  await assert.rejects(visit(t, path), { name: 'DatabaseRefusedError' });
  assert.equal(readFileSync(path, 'utf8'), 'Dear diary,\n');
  assert.deepEqual(readdirSync(folder), ['diary.txt']);
});

test('visitStore: beside a server of another version, refuses and says which is older', async (t) => {
  const { path } = await openTestStore(t);
  const other = new DatabaseSync(path);
  t.after(() => other.close());
  other.exec(`PRAGMA user_version = ${MIGRATIONS.length + 1}`);
  await assert.rejects(visit(t, path), (error: unknown) => {
    return error instanceof DatabaseRefusedError && /newer version/.test(error.message);
  });
  other.exec(`PRAGMA user_version = ${MIGRATIONS.length - 1}`);
  await assert.rejects(visit(t, path), (error: unknown) => {
    return error instanceof DatabaseInUseError && /older version/.test(error.message);
  });
  assert.equal(selectValue(path, 'PRAGMA user_version'), MIGRATIONS.length - 1);
});

test('certificates.issue: with onlyFirst, records the first certificate ever and nothing after it', async (t) => {
  const { store, path } = await openTestStore(t);
  const issueFirst = () => store.certificates.issue(issuance({ onlyFirst: true }));
  const outcomes = await Promise.all(Array.from({ length: 8 }, issueFirst));
  assert.deepEqual(outcomes.map(({ refused }) => `${refused}`).sort(), [...Array<string>(7).fill('notFirst'), 'null']);
  assert.equal(selectValue(path, 'SELECT count(*) FROM certificates'), 1);
  assert.equal(selectValue(path, 'SELECT count(*) FROM audit'), 2);
  assert.deepEqual(await store.certificates.issue(issuance()), {
    refused: null, isAdmin: false, audited: [event('cert_issued')],
  });
});
