// `pasted stats` and store/visit.ts: what is counted, beside a running server too, and that nobody is named.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { Environment } from '../../src/config/load.ts';
import { VERSION } from '../../src/config/settings.ts';
import { runCommandLine } from '../../src/operator/arguments.ts';
import { MIGRATIONS, PAGE_BYTES } from '../../src/store/schema.ts';
import type { AuditEvent } from '../../src/store/store.ts';
import { insertCertificate } from '../support/certificates.ts';
import { fakeTerminal } from '../support/fake-terminal.ts';
import { openDesk } from '../support/operator.ts';
import { insertPastes } from '../support/paste-rows.ts';
import { CREATED_AT, openTestStore, patternedBytes, selectValue, storePaste } from '../support/store.ts';

async function stats(path: string, words: readonly string[] = [], environment: Environment = {}): Promise<string> {
  const fake = fakeTerminal(['stats', ...words], { environment: { SERVICE_DB: path, ...environment } });
  assert.equal(await runCommandLine(fake.terminal), 0, fake.stderr());
  return fake.stdout();
}

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();

function event(time: number): AuditEvent {
  return { time, event: 'auth_failure', outcome: 'failure', clientId: null, clientIp: null, details: {} };
}

/** Five pastes, of which one has expired, six certificates, three invitations, two bans and four audit entries, with the server's store open. */
async function openFilled(...[t]: Parameters<typeof openTestStore>) {
  const { store, path } = await openTestStore(t);
  const { fingerprint: trusted } = insertCertificate(path, { isAdmin: true, revokedAt: CREATED_AT });
  // Renewed twice, and the second renewal is not presented yet: still one admin, who keeps the earlier pastes.
  for (const isUnused of [false, true]) insertCertificate(path, { isAdmin: true, holder: trusted, isUnused });
  const { fingerprint: revoked } = insertCertificate(path, { isAdmin: true, revokedAt: CREATED_AT });
  insertCertificate(path, { isAdmin: true, expiresAt: CREATED_AT });
  insertCertificate(path);
  const pastes = [
    await storePaste(store, patternedBytes(100), { createdAt: CREATED_AT - 50, expiresAt: CREATED_AT }),
    await storePaste(store, patternedBytes(200_000), { owner: trusted, burnAfterRead: true }),
    await storePaste(store, patternedBytes(300), { owner: trusted, passwordHash: 'canary' }),
    await storePaste(store, patternedBytes(400), { owner: revoked, passwordHash: 'canary', burnAfterRead: true }),
    await storePaste(store, patternedBytes(500), { owner: 'a'.repeat(40), createdAt: CREATED_AT + 7, expiresAt: CREATED_AT + 1 }),
  ];
  for (const [name, expiresAt, usesLeft] of [['open', CREATED_AT + 1, 1], ['expired', CREATED_AT, 9], ['used', CREATED_AT + 9, 0]] as const) {
    const codeSha256 = digestOf(name);
    await store.run('createInvitation', { codeSha256, note: 'canary', createdAt: CREATED_AT - 9, expiresAt, usesLeft });
  }
  for (const name of ['a', 'b']) {
    await store.run('banContent', { sha256: digestOf(name), note: 'canary', createdAt: CREATED_AT, banned: event(CREATED_AT + 1) });
  }
  for (const time of [CREATED_AT + 1, CREATED_AT + 9]) await store.run('recordAudit', event(time));
  return { path, pastes, fingerprints: [trusted, revoked] };
}

test('stats --json: counts pastes, certificates, entries and bytes, beside a running server', async (t) => {
  const { path } = await openFilled(t);
  const databaseBytes = statSync(path).size;
  const text = await stats(path, ['--json'], { SERVICE_MAX_STORAGE: '1000000' });
  assert.equal(text.indexOf('\n'), text.length - 1);
  const { storage, ...rest } = JSON.parse(text) as { storage: Record<string, number> };
  assert.deepEqual(rest, {
    version: VERSION,
    schema_version: MIGRATIONS.length,
    pastes: {
      count: 5,
      bytes: 201_300,
      expired: 1,
      burn_after_read: 2,
      password_protected: 2,
      anonymous: 1,
      untrusted: 2,
      trusted: 2,
      oldest_created_at: CREATED_AT - 50,
      newest_created_at: CREATED_AT + 7,
    },
    certificates: { valid: 3, revoked: 2, expired: 1, admins: 1 },
    invitations: { open: 1, over: 2 },
    bans: 2,
    audit: { entries: 4, oldest_time: '2026-01-31T12:00:01Z', newest_time: '2026-01-31T12:00:09Z' },
  });
  assert.equal(storage['quota_bytes'], 1_000_000);
  assert.equal(storage['counted_bytes'], 201_300);
  assert.equal(storage['database_bytes'], databaseBytes);
  assert.ok(storage['wal_bytes']! > 200_000);
  assert.ok(storage['unused_bytes']! >= 0 && storage['disk_free_bytes']! > 0);
});

test('stats: the same for people, with the share of the quota', async (t) => {
  const { path, pastes, fingerprints } = await openFilled(t);
  const text = await stats(path, [], { SERVICE_MAX_STORAGE: '975000' });
  const rows = text.trimEnd().split('\n').map((line) => line.trim().split(/ {2,}/));
  for (const row of [
    ['pastes', '5'],
    ['content', '196.5 KiB'],
    // The share is 20.6 %, and is never rounded up.
    ['quota', '20 % of 952.1 KiB'],
    ['burn after read', '2'],
    ['oldest', '2026-01-31T11:59:10Z'],
    ['valid', '3 (1 of them admin)'],
    ['invitations', '1 (and 2 used up or expired)'],
    ['refused contents', '2'],
    ['audit entries', '4'],
    ['schema', String(MIGRATIONS.length)],
  ]) {
    assert.ok(rows.some((shown) => shown.join() === row.join()), row.join());
  }
  for (const secret of [...pastes.map(({ id }) => id), ...fingerprints, 'canary']) assert.ok(!text.includes(secret));
});

test('stats: an empty service, without a quota', async (t) => {
  const { path } = await openTestStore(t);
  assert.match(await stats(path), /^pastes +0\n +content +0 bytes\n[^]*\n +oldest +-\n[^]*\n +quota +none\n/);
  const { pastes, audit, storage } = JSON.parse(await stats(path, ['--json'])) as Record<string, Record<string, unknown>>;
  assert.deepEqual([pastes!['oldest_created_at'], audit!['newest_time'], storage!['quota_bytes']], [null, null, null]);
});

test('stats: counts on when there are more pastes than one statement looks at', async (t) => {
  const { path } = await openTestStore(t);
  insertPastes(path, { count: 4999, owner: null, prefix: 'a' });
  insertPastes(path, { count: 1, owner: null, prefix: 'b' });
  insertPastes(path, { count: 5001, owner: 'c'.repeat(40), prefix: 'c' });
  const db = new DatabaseSync(path, { timeout: 5000 });
  // The last of the first slice, the first and the last of the second, and the only one of the third.
  db.exec("UPDATE pastes SET burn_after_read = 1, password_hash = 'x' WHERE rowid IN (5000, 5001, 10000, 10001)");
  db.close();
  const { pastes } = JSON.parse(await stats(path, ['--json'])) as { pastes: Record<string, number> };
  assert.deepEqual([pastes['count'], pastes['anonymous'], pastes['untrusted']], [10_001, 5000, 5001]);
  assert.deepEqual([pastes['burn_after_read'], pastes['password_protected']], [4, 4]);
});

test('stats, audit: without a database they are 78, and make none', async (t) => {
  const { databasePath, pasted } = openDesk(t);
  for (const word of ['stats', 'audit']) {
    const { code, stderr } = await pasted([word]);
    assert.deepEqual([code, stderr], [78, `pasted: there is no database ${databasePath}: set SERVICE_DB to the one of the service\n`]);
  }
});

test('stats, audit, invite create: damage that shows when a table is read or written is 78, told once', async (t) => {
  const { databasePath, pasted, createAdmin } = openDesk(t);
  await createAdmin();
  const sound = readFileSync(databasePath);
  for (const [table, ...words] of [['pastes', 'stats'], ['audit', 'audit'], ['invitations', 'invite', 'create']]) {
    const root = Number(selectValue(databasePath, `SELECT rootpage FROM sqlite_schema WHERE name = '${table}'`));
    writeFileSync(databasePath, Buffer.from(sound).fill(0xa5, (root - 1) * PAGE_BYTES, root * PAGE_BYTES));
    const { code, stderr } = await pasted(words);
    const message = 'pasted: storage unavailable: database disk image is malformed (SQLite 11) (SERVICE_DB)\n';
    assert.deepEqual([code, stderr], [78, message], words.join(' '));
    writeFileSync(databasePath, sound);
  }
});
