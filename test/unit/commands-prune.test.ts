// `pasted prune`: what it removes, what it leaves, and that the room is given back.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { insertCertificate } from '../support/certificates.ts';
import { inStore } from '../support/databases.ts';
import { openDesk } from '../support/operator.ts';
import {
  CREATED_AT, EXPIRES_AT, NO_TERMS, inlinePaste, patternedBytes, selectValue, storePaste, strayChunks, uploadContent,
} from '../support/store.ts';

const HOUR_SECONDS = 3600;
const count = (path: string, table: string): unknown => selectValue(path, `SELECT count(*) FROM ${table}`);

/** Two pastes that have expired by now, by the desk's clock, and two that have not. */
async function makeOld(path: string): Promise<void> {
  await inStore(path, async (store) => {
    for (const expiresAt of [CREATED_AT - 1, CREATED_AT, CREATED_AT + 1, EXPIRES_AT]) {
      await storePaste(store, patternedBytes(700_000, expiresAt), { expiresAt });
    }
    // Used challenges are forgotten two hours after they have run out.
    for (const expiresAt of [-1, 0, 1].map((later) => CREATED_AT - 2 * HOUR_SECONDS + later)) {
      const spend = { nonce: randomBytes(16).toString('hex'), expiresAt, spendableUntil: Infinity };
      await store.pastes.create(inlinePaste(Buffer.from('hello')), { ...NO_TERMS, spend });
    }
    for (const [index, createdAt] of [CREATED_AT - HOUR_SECONDS, CREATED_AT - HOUR_SECONDS + 1].entries()) {
      const paste = inlinePaste(patternedBytes(10, index), { createdAt });
      await store.pastes.create(paste, { ...NO_TERMS, duplicates: { max: 3, windowSeconds: HOUR_SECONDS } });
    }
    for (const time of [CREATED_AT - 10, CREATED_AT - 9]) {
      const nobody = { clientId: null, clientIp: null };
      await store.run('recordAudit', { time, event: 'auth_failure', outcome: 'failure', ...nobody, details: {} });
    }
    insertCertificate(path, { isAdmin: true, expiresAt: 1 });
    for (const expiresAt of [CREATED_AT - HOUR_SECONDS, CREATED_AT - HOUR_SECONDS + 1]) insertCertificate(path, { expiresAt });
    // Content that no paste refers to, as a crash leaves it.
    await uploadContent(store, patternedBytes(700_000, 9));
  });
}

test('prune: removes what has expired, to the second, and nothing else', async (t) => {
  const { databasePath, pasted } = openDesk(t);
  await makeOld(databasePath);
  const before = statSync(databasePath).size;
  const { code, stdout, stderr } = await pasted(['prune', '--json'], { SERVICE_AUDIT_RETENTION: '10' });
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(stdout.indexOf('\n'), stdout.length - 1);
  const after = statSync(databasePath).size;
  assert.deepEqual(JSON.parse(stdout), {
    expired_pastes: 2,
    duplicate_records: 1,
    used_challenges: 2,
    audit_entries: 1,
    expired_certificates: 1,
    bytes_before: before,
    bytes_after: after,
  });
  assert.ok(before - after > 3 * 700_000, `${before - after} bytes were given back`);
  const tables = ['pastes', 'submissions', 'spent_challenges', 'audit', 'orphans'];
  assert.deepEqual(tables.map((table) => count(databasePath, table)), [7, 1, 1, 1, 0]);
  assert.equal(strayChunks(databasePath), 0);
  assert.equal(selectValue(databasePath, 'PRAGMA freelist_count'), 0);
});

test('prune: says what it did, and a second time has nothing to do', async (t) => {
  const { databasePath, pasted } = openDesk(t);
  await makeOld(databasePath);
  assert.match((await pasted(['prune'])).stdout, new RegExp(
    '^Removed 2 expired pastes, 1 duplicate record, 2 used challenges, 0 audit entries and 1 expired certificate\\.\n' +
      'The database takes 1\\.\\d MiB now, [23]\\.\\d MiB less than before\\.\n$',
  ));
  assert.match((await pasted(['prune'])).stdout, /^Removed 0 expired pastes, .*\n.* 0 bytes less than before\.\n$/);
});

test('prune: beside a server, which prunes by itself, it ends with 75 and removes nothing', async (t) => {
  const { databasePath, pasted } = openDesk(t);
  await makeOld(databasePath);
  await inStore(databasePath, async () => {
    const { code, stdout, stderr } = await pasted(['prune']);
    assert.deepEqual([code, stdout], [75, '']);
    assert.match(stderr, /in use by another process: a running server prunes by itself, expired pastes every hour; root [^\n]*\n$/);
  });
  assert.equal(count(databasePath, 'pastes'), 9);
});

test('prune: makes no database where there is none', async (t) => {
  const { folder, pasted } = openDesk(t);
  const { code, stderr } = await pasted(['prune']);
  assert.equal(code, 78);
  assert.match(stderr, /there is no database/);
  assert.deepEqual(readdirSync(folder), []);
});

test('prune: content that cannot be removed is told with its reason, and the next one removes it', async (t) => {
  const { databasePath, pasted } = openDesk(t);
  await makeOld(databasePath);
  const change = (sql: string): void => {
    const db = new DatabaseSync(databasePath);
    db.exec(sql);
    db.close();
  };
  change("CREATE TRIGGER stays BEFORE DELETE ON chunks BEGIN SELECT RAISE(ABORT, 'this chunk stays'); END");
  const told = 'pasted: not everything was removed: this chunk stays\n';
  assert.deepEqual(await pasted(['prune']), { code: 1, stdout: '', stderr: told });
  assert.notEqual(strayChunks(databasePath), 0);
  change('DROP TRIGGER stays');
  assert.equal((await pasted(['prune'])).code, 0);
  assert.equal(strayChunks(databasePath), 0);
});

test('prune: of a cluster, whose hosts prune by themselves, it asks nothing and says so', async (t) => {
  const { folder, pasted } = openDesk(t);
  const { code, stdout, stderr } = await pasted(['prune'], { SERVICE_DB: 'rqlite://127.0.0.1:1' });
  assert.deepEqual([code, stdout], [1, '']);
  assert.equal(stderr, 'pasted: the hosts of a cluster prune by themselves, one of them for all\n');
  assert.deepEqual(readdirSync(folder), []);
});
