// A disk that is really full, as a small file system in memory: what is stored stays readable, removing goes on, and new pastes are
// taken again when there is room, without a restart.

import assert from 'node:assert/strict';
import { existsSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { MIB } from '../../src/core/time.ts';
import { randomBytes } from '../../src/crypto/digest.ts';
import { draftBackup } from '../../src/store/backup.ts';
import { visitStore } from '../../src/store/visit.ts';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { newFingerprint, presenting } from '../support/certificates.ts';
import { issue, PKI, send, withAdmin } from '../support/pki.ts';
import { assertError, type Answer } from '../support/posting.ts';
import { fillUp, smallFileSystem } from '../support/small-file-system.ts';
import { temporaryFolder } from '../support/programs.ts';
import { strayChunks } from '../support/store.ts';

const STRANGER = newFingerprint();

async function statusOf(app: RunningApp, path: string, options?: RequestInit): Promise<number> {
  const response = await app.request(path, options);
  await response.arrayBuffer();
  return response.status;
}

const post = (app: RunningApp, content: Uint8Array): Promise<number> =>
  statusOf(app, '/', { method: 'POST', body: content as unknown as string });

test('full disk: reads and removals go on, creations are 507, and room is enough to recover', async (t) => {
  const folder = smallFileSystem(t, 96);
  if (folder === undefined) return t.skip('mounting a file system in memory is not permitted here');
  const app = await startApp(t, { databasePath: join(folder, 'pasted.db'), maxAnonBytes: 8 * MIB });
  await app.app.cleanup.run('room in reserve');
  const kept = binaryContent(2 * MIB);
  const keptId = await app.store(kept);
  const burnId = await app.store(binaryContent(MIB), { 'X-Burn-After-Read': 'true' });
  const expiringId = await app.store(binaryContent(MIB), { 'X-Expiry': '10' });

  for (let round = 0; round < 3; round += 1) {
    const filler = fillUp(folder);
    for (const size of [10, 100_000, 5 * MIB]) assert.equal(await post(app, binaryContent(size)), 507, `${size} bytes`);
    const read = await app.request(`/${keptId}/raw`);
    assert.deepEqual(new Uint8Array(await read.arrayBuffer()), kept);
    if (round === 0) {
      assert.equal(await statusOf(app, `/${burnId}/raw`), 200);
      assert.equal(await statusOf(app, `/${burnId}/raw`), 404);
    }
    if (round === 1) {
      app.clock.advance(10_000);
      await app.app.cleanup.run('expired pastes');
      assert.equal(await statusOf(app, `/${expiringId}`), 404);
      await app.app.cleanup.run('write-ahead log');
    }
    assert.equal(await post(app, binaryContent(10)), 507);
    rmSync(filler);
    await app.app.cleanup.run('room in reserve');
    assert.equal(await post(app, binaryContent(5 * MIB, round + 2)), 201);
    assert.equal(await statusOf(app, '/health'), 200);
  }
  await app.app.close();
  const database = new DatabaseSync(app.config.databasePath);
  assert.deepEqual({ ...database.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' });
  assert.equal(database.prepare('SELECT count(*) AS rows FROM orphans').get()?.['rows'], 0);
  assert.equal(database.prepare('SELECT count(*) AS rows FROM pastes').get()?.['rows'], 4);
  database.close();
});

for (const deletions of [0, 20]) {
  test(`full disk: a log that grew under a long reader is emptied once that has ended, ${deletions} deletions later`, async (t) => {
    const folder = smallFileSystem(t, 120);
    if (folder === undefined) return t.skip('mounting a file system in memory is not permitted here');
    const app = await startApp(t, { databasePath: join(folder, 'pasted.db'), maxAnonBytes: 8 * MIB });
    await app.app.cleanup.run('room in reserve');
    using reader = new DatabaseSync(app.config.databasePath, { readOnly: true, timeout: 5000 });
    reader.exec('BEGIN; SELECT count(*) FROM pastes');
    const kept: { id: string; token: string }[] = [];
    for (let status = 201; status === 201; ) {
      const response = await app.request('/', { method: 'POST', body: binaryContent(2 * MIB, kept.length) as unknown as string });
      status = response.status;
      const { id = '' } = await response.json() as { id?: string };
      if (status === 201) kept.push({ id, token: response.headers.get('x-delete-token')! });
      else assert.equal(status, 507);
    }
    assert.ok(kept.length > 10, `${kept.length} pastes`);
    for (const { id, token } of kept.slice(0, deletions)) {
      assert.equal(await statusOf(app, `/${id}`, { method: 'DELETE', headers: { 'X-Delete-Token': token } }), 200);
    }
    reader.exec('COMMIT');
    await app.app.cleanup.run('write-ahead log');
    await app.app.cleanup.run('room in reserve');
    assert.equal(await post(app, binaryContent(10)), 201);
    assert.equal(await statusOf(app, '/health'), 200);
    const last = kept.at(-1)!.id;
    assert.equal(await statusOf(app, `/${last}/raw`), 200);
    // Content that was deleted meanwhile is removed too, though nothing else is deleted.
    for (let looks = 0; looks < 200 && strayChunks(app.config.databasePath) !== 0; looks += 1) await setTimeout(20);
    assert.equal(strayChunks(app.config.databasePath), 0);
  });
}

test('full disk: a service that starts on one serves what is there', async (t) => {
  const folder = smallFileSystem(t, 64);
  if (folder === undefined) return t.skip('mounting a file system in memory is not permitted here');
  const databasePath = join(folder, 'pasted.db');
  const before = await startApp(t, { databasePath });
  await before.app.cleanup.run('room in reserve');
  const id = await before.store('hello');
  await before.app.close();

  const filler = fillUp(folder);
  const after = await startApp(t, { databasePath });
  assert.equal(await (await after.request(`/${id}/raw`)).text(), 'hello');
  assert.equal(await post(after, binaryContent(10)), 507);
  rmSync(filler);
  await after.app.cleanup.run('room in reserve');
  assert.equal(await post(after, binaryContent(10)), 201);
});

test('full disk: a command of the operator removes and bans too, beside a service and without one', async (t) => {
  const folder = smallFileSystem(t, 96);
  if (folder === undefined) return t.skip('mounting a file system in memory is not permitted here');
  const path = join(folder, 'pasted.db');
  const app = await startApp(t, { databasePath: path, maxAnonBytes: 8 * MIB });
  const act = async (id: string, named: string): Promise<void> => {
    await app.app.cleanup.run('room in reserve');
    const filler = fillUp(folder);
    const operator = await visitStore({ path: named, clock: app.clock, log: () => {}, ifMissing: 'refuse' });
    const audited = { time: 0, event: 'paste_deleted', outcome: 'success', clientId: 'operator', clientIp: null, details: {} } as const;
    const banned = { ...audited, event: 'content_banned' } as const;
    assert.equal(await operator.run('takeDown', { id, content: null, removed: audited }), true);
    const ban = { sha256: randomBytes(32), note: '', createdAt: 0, banned };
    assert.equal(await operator.run('banContent', ban), true);
    const invitation = { note: '', createdAt: 0, expiresAt: 1, usesLeft: 1, codeSha256: randomBytes(32) };
    await assert.rejects(operator.run('createInvitation', invitation), { failure: 'full' });
    await operator.close();
    rmSync(filler);
  };
  const ids = [await app.store(binaryContent(MIB)), await app.store(binaryContent(MIB, 2))];
  await act(ids[0]!, path);
  assert.equal(await statusOf(app, `/${ids[0]}`), 404);
  assert.equal(existsSync(`${path}-ballast`), false, 'the command gave it up');
  // The service makes the ballast again, and takes pastes.
  await app.app.cleanup.run('room in reserve');
  assert.ok(existsSync(`${path}-ballast`));
  assert.equal(await post(app, binaryContent(MIB, 3)), 201);
  await app.app.close();
  const link = join(temporaryFolder(t), 'link.db');
  symlinkSync(path, link);
  await act(ids[1]!, link);
});

test('full disk: a backup to another disk is made beside the service', async (t) => {
  const folder = smallFileSystem(t, 64);
  if (folder === undefined) return t.skip('mounting a file system in memory is not permitted here');
  const path = join(folder, 'pasted.db');
  const app = await startApp(t, { databasePath: path });
  await app.store('hello');
  fillUp(folder);
  using draft = draftBackup({ path, beside: join(temporaryFolder(t), 'copy.db'), mark: '0123456789abcdef' });
  assert.equal((await draft.copy()).pastes, 1);
});

test('full disk: a command that cannot open the database says that there is no room', async (t) => {
  const folder = smallFileSystem(t, 64);
  if (folder === undefined) return t.skip('mounting a file system in memory is not permitted here');
  const path = join(folder, 'pasted.db');
  const app = await startApp(t, { databasePath: path });
  await app.app.close();
  fillUp(folder);
  await assert.rejects(visitStore({ path, clock: app.clock, log: () => {}, ifMissing: 'refuse' }), {
    failure: 'full', message: `the database ${path} cannot be opened: no room on its disk: disk I/O error (SQLite 4874)`,
  });
});

test('full disk: no certificate and no mere audit entry is stored; deleting, revoking and their entries go on', async (t) => {
  const folder = smallFileSystem(t, 96);
  if (folder === undefined) return t.skip('mounting a file system in memory is not permitted here');
  const app = await startApp(t, { ...PKI, databasePath: join(folder, 'pasted.db'), maxAnonBytes: 8 * MIB });
  const admin = await withAdmin(app);
  const holder = await issue(app, 'holder', { as: admin.fingerprint_sha1 });
  const revoked = await issue(app, 'revoked', { as: admin.fingerprint_sha1 });
  const asAdmin = { as: admin.fingerprint_sha1 };
  const revoke = (serial: string): Promise<Answer> => send(app, `POST /pki/revoke/${serial}`, asAdmin);
  assert.equal((await revoke(revoked.serial)).status, 200);
  await app.app.cleanup.run('room in reserve');
  const ids: string[] = [];
  for (let count = 0; count < 12; count += 1) ids.push(await app.store(binaryContent(MIB, count), presenting(STRANGER)));
  const entries = async (event: string): Promise<unknown> => (
    (await send(app, `GET /audit?event=${event}`, asAdmin)).json['total']
  );
  const issuedBefore = await entries('cert_issued');

  const filler = fillUp(folder);
  for (let count = 0; count < 20; count += 1) {
    const refused = await send(app, 'POST /pki/issue', { body: { common_name: `n${count}` } });
    assertError(refused, 507, 'storage full');
    assert.equal(await statusOf(app, `/${ids[0]}`, { headers: presenting(revoked.fingerprint_sha1) }), 200);
  }
  assert.equal(await entries('cert_issued'), issuedBefore);
  assert.equal(await entries('auth_failure'), 0);
  assert.equal((await revoke(holder.serial)).status, 200);
  for (const id of ids) {
    const response = await app.request(`/${id}`, { method: 'DELETE', headers: presenting(admin.fingerprint_sha1) });
    await response.arrayBuffer();
    assert.equal(response.status, 200);
  }
  assert.equal(await entries('paste_deleted'), ids.length);
  assert.equal(await entries('cert_revoked'), 2);

  rmSync(filler);
  await app.app.cleanup.run('room in reserve');
  await issue(app, 'again');
  assert.equal(await statusOf(app, `/pastes`, { headers: presenting(revoked.fingerprint_sha1) }), 401);
  assert.equal(await entries('auth_failure'), 1);
});

test('full disk: an authority is not made on one, and is when there is room', async (t) => {
  const folder = smallFileSystem(t, 64);
  if (folder === undefined) return t.skip('mounting a file system in memory is not permitted here');
  const app = await startApp(t, { ...PKI, databasePath: join(folder, 'pasted.db') });
  await app.app.cleanup.run('room in reserve');
  const filler = fillUp(folder);
  for (const request of ['POST /pki/ca', 'POST /pki/ca']) assertError(await send(app, request), 507, 'storage full');
  assert.equal((await send(app, 'GET /pki')).json['ca_exists'], false);
  rmSync(filler);
  await app.app.cleanup.run('room in reserve');
  await withAdmin(app);
});
