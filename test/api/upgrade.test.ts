// The databases of older versions, opened by this one as it is in production: everything that was stored is served, and
// what holds for a new database holds for them. A kill in the middle is crash/upgrade-kill.test.ts.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { APPLICATION_ID, MIGRATIONS, PAGE_BYTES } from '../../src/store/schema.ts';
import { openStore } from '../../src/store/open.ts';
import { startApp, type RunningApp } from '../support/app.ts';
import { presenting } from '../support/certificates.ts';
import { movableClock } from '../support/clock.ts';
import { startMain } from '../support/main-process.ts';
import { createAuthority, issue, PKI } from '../support/pki.ts';
import { CREATED_AT, selectValue, strayChunks } from '../support/store.ts';
import {
  ADMIN, AUTHORITY, BANNED, CHALLENGE_KEY, CLIENT, MADE_AT, OWNER, PASSWORD, PASTES, RENEWED, REVOKED, REVOKED_SERIAL, SPENT_NONCE,
} from '../vectors/schema-rows.ts';
import { placeVector, VECTOR_DIGESTS } from '../vectors/schema-vectors.ts';

const VERSIONS = [...VECTOR_DIGESTS.keys()].map((index) => index + 1);

interface Upgraded {
  readonly version: number;
  readonly path: string;
  readonly app: RunningApp;
}

/** Places the database of that version in a folder that is removed after everything in it was closed. */
function placed(t: TestContext, version: number, mode?: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-upgrade-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'pasted.db');
  placeVector(version, path, mode);
  return path;
}

async function upgraded(t: TestContext, version: number): Promise<Upgraded> {
  const path = placed(t, version, 0o640);
  return { version, path, app: await startApp(t, { ...PKI, databasePath: path, duplicateMax: 1 }) };
}

type Headers = Record<string, string>;

async function read({ request }: RunningApp, id: string, headers: Headers = {}): Promise<[number, Buffer]> {
  const response = await request(`/${id}/raw`, { headers });
  return [response.status, Buffer.from(await response.arrayBuffer())];
}

async function jsonOf({ request }: RunningApp, path: string, as: string): Promise<Record<string, unknown>> {
  const response = await request(path, { headers: presenting(as) });
  assert.equal(response.status, 200, path);
  return await response.json() as Record<string, unknown>;
}

/** The ids of a list, in its order: of all pastes, or of those behind a password. */
async function listed(app: RunningApp, path: string, as: string, onlyProtected = false): Promise<string[]> {
  const { pastes } = await jsonOf(app, path, as) as { pastes: { id: string; password_protected: boolean }[] };
  return pastes.filter((paste) => !onlyProtected || paste.password_protected).map(({ id }) => id);
}

function assertLaidOut({ version, path }: Upgraded): void {
  const expected = {
    user_version: MIGRATIONS.length, application_id: APPLICATION_ID, auto_vacuum: 2, page_size: PAGE_BYTES,
    journal_mode: 'wal', integrity_check: 'ok',
  };
  for (const [name, value] of Object.entries(expected)) {
    assert.equal(selectValue(path, `PRAGMA ${name}`), value, `schema ${version}: ${name}`);
  }
  for (const suffix of ['', '-wal', '-shm']) assert.equal(statSync(path + suffix).mode & 0o777, 0o640, suffix);
  assert.equal(strayChunks(path), 0);
  assert.equal(selectValue(path, 'SELECT count(*) FROM orphans'), 0);
  const counted = 'SELECT usage.pastes = count(*) AND usage.bytes = sum(size) FROM usage, pastes';
  assert.equal(selectValue(path, counted), 1, `schema ${version}: usage`);
  const ofOwners = 'SELECT owner, sum(size) FROM pastes WHERE owner IS NOT NULL GROUP BY owner';
  const other = `SELECT count(*) FROM (SELECT * FROM (${ofOwners}) EXCEPT SELECT owner, bytes FROM owners)`;
  assert.equal(selectValue(path, other), 0, `schema ${version}: owners`);
  assert.equal(selectValue(path, 'SELECT count(*) FROM certificates WHERE holder IS NULL'), 0);
}

async function assertServed({ app }: Upgraded): Promise<void> {
  for (const paste of [PASTES.text, PASTES.image, PASTES.chunked]) {
    const [status, content] = await read(app, paste.id);
    assert.equal(status, 200, paste.id);
    assert.ok(content.equals(paste.content), paste.id);
  }
  const metadata = await jsonOf(app, `/${PASTES.image.id}`, OWNER);
  assert.deepEqual([metadata['mime_type'], metadata['created_at']], ['image/jpeg', MADE_AT + 1]);
  const { id, content } = PASTES.locked;
  assert.equal((await read(app, id))[0], 401);
  assert.equal((await read(app, id, { 'X-Paste-Password': 'wrong' }))[0], 403);
  assert.deepEqual(await read(app, id, { 'X-Paste-Password': PASSWORD }), [200, content]);
  assert.equal((await read(app, PASTES.expired.id))[0], 404);
  for (const burn of [PASTES.burn, PASTES.chunkedBurn]) {
    const answers = await Promise.all(Array.from({ length: 4 }, () => read(app, burn.id)));
    assert.deepEqual(answers.map(([status]) => status).sort(), [200, 404, 404, 404]);
    assert.ok(answers.find(([status]) => status === 200)?.[1].equals(burn.content), burn.id);
  }
}

/** Lists, changes and removals by owner; new pastes go together with old ones. */
async function assertOwned({ app }: Upgraded): Promise<void> {
  const { locked, chunked, image, text } = PASTES;
  assert.deepEqual(await listed(app, '/pastes', OWNER), [locked.id, chunked.id, image.id]);
  assert.deepEqual(await listed(app, '/pastes', OWNER, true), [locked.id]);
  assert.deepEqual(await listed(app, '/pastes?type=image/*', OWNER), [image.id]);
  const newest = await app.store('new', presenting(OWNER));
  assert.deepEqual(await listed(app, '/pastes?limit=2', OWNER), [newest, locked.id]);
  const changed = await app.request(`/${chunked.id}`, { method: 'PUT', body: 'short now', headers: presenting(OWNER) });
  assert.equal(changed.status, 200);
  assert.equal(String((await read(app, chunked.id))[1]), 'short now');
  for (const [id, status] of [[image.id, 200], [image.id, 404], [text.id, 403]] as const) {
    const { status: found } = await app.request(`/${id}`, { method: 'DELETE', headers: presenting(OWNER) });
    assert.equal(found, status, id);
  }
}

/** What schema 2 brought: what was counted before still counts. */
async function assertAbuseControls({ app, path }: Upgraded): Promise<void> {
  const again = await app.request('/', { method: 'POST', body: String(PASTES.text.content) });
  assert.equal(again.status, 429, await again.text());
  assert.equal(selectValue(path, `SELECT count(*) FROM spent_challenges WHERE nonce = '${SPENT_NONCE}'`), 1);
  const key = selectValue(path, "SELECT value FROM secrets WHERE name = 'proof-of-work'") as Uint8Array;
  assert.deepEqual(Buffer.from(key), CHALLENGE_KEY);
}

/** What schema 3 brought. */
async function assertIdentities({ app, version }: Upgraded): Promise<void> {
  const { entries } = await jsonOf(app, '/audit', ADMIN) as { entries: { time: string; event: string }[] };
  assert.equal(entries.find(({ event }) => event === 'cert_issued')?.time, '2026-01-31T11:00:00Z');
  assert.ok((await listed(app, '/pastes?all=1', ADMIN)).includes(PASTES.text.id));
  assert.equal((await app.request('/audit', { headers: presenting(CLIENT) })).status, 403);
  assert.equal((await app.request('/pastes', { headers: presenting(REVOKED) })).status, 401);
  const { certificates } = await jsonOf(app, '/pki/certs', ADMIN) as { certificates: { status: string }[] };
  const renewed = version >= 7 ? ['valid'] : [];
  assert.deepEqual(certificates.map(({ status }) => status).sort(), ['revoked', 'valid', 'valid', ...renewed]);
}

/** What schema 4 brought: its authority still signs, and its list goes on. */
async function assertAuthority({ app, path, version }: Upgraded): Promise<void> {
  const info = await (await app.request('/pki')).json() as Record<string, unknown>;
  assert.equal(info['fingerprint_sha1'], AUTHORITY.fingerprint);
  await issue(app, 'after the upgrade');
  const list = Buffer.from(await (await app.request('/pki/ca.crl')).arrayBuffer());
  assert.ok(list.includes(Buffer.from(REVOKED_SERIAL, 'hex')));
  const [digit, by] = version >= 7 ? [4, RENEWED] : [2, CLIENT];
  const revoked = `/pki/revoke/4${String(digit).repeat(31)}`;
  const revoke = await app.request(revoked, { method: 'POST', headers: presenting(by) });
  assert.equal(revoke.status, 200);
  assert.notDeepEqual(Buffer.from(await (await app.request('/pki/ca.crl')).arrayBuffer()), list);
  assert.equal(selectValue(path, 'SELECT number > 3 FROM crl'), 1);
}

/** What schema 7 brought: a renewed certificate takes the place of the one before, and bans hold. */
async function assertGoverned({ app, path }: Upgraded): Promise<void> {
  const banned = await app.request('/', { method: 'POST', body: BANNED });
  assert.deepEqual([banned.status, await banned.json()], [403, { error: 'content refused' }]);
  const open = 'SELECT count(*) FROM invitations WHERE uses_left = 2';
  assert.equal(selectValue(path, open), 1);
  assert.equal((await app.request('/pastes', { headers: presenting(RENEWED) })).status, 200);
  assert.equal((await app.request('/pastes', { headers: presenting(CLIENT) })).status, 401);
}

for (const version of VERSIONS) {
  test(`upgrade: all of a database of schema ${version} is served, and it is as a new one`, async (t) => {
    const found = await upgraded(t, version);
    assertLaidOut(found);
    await assertServed(found);
    await assertOwned(found);
    if (version >= 2) await assertAbuseControls(found);
    if (version >= 3) await assertIdentities(found);
    if (version >= 7) await assertGoverned(found);
    if (version >= 4) await assertAuthority(found);
    else await createAuthority(found.app);
    assertLaidOut(found);
    await found.app.app.close();
    const left = readdirSync(join(found.path, '..')).filter((name) => !/-(?:lock|ballast)$/.test(name));
    assert.deepEqual(left, ['pasted.db']);
  });
}

test('upgrade: a challenge that was spent before it stays spent', async (t) => {
  const store = await openStore({ path: placed(t, 2), clock: movableClock(), log: () => {} });
  assert.equal(await store.read.isSpent(SPENT_NONCE), true);
  assert.equal(await store.run('removeExpiredChallenges', { untilSeconds: CREATED_AT + 100, limit: 10 }), 1);
  await store.close();
});

const COMMANDS = [['serve'], ['pki', 'list'], ['admin', 'grant', REVOKED_SERIAL]] as const;

test('main: a database of a newer version ends with 78 and what to do, and every file stays as it was', async (t) => {
  const path = placed(t, MIGRATIONS.length);
  const newer = MIGRATIONS.length + 1;
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA user_version = ${newer}`);
  db.close();
  const filesOf = () => readdirSync(join(path, '..')).map((name) => {
    const file = join(path, '..', name);
    return [name, createHash('sha256').update(readFileSync(file)).digest('hex'), statSync(file).mtimeMs];
  });
  const before = filesOf();
  assert.equal(before.length, 1);
  const versions = `schema ${newer}, this one knows ${newer - 1}`;
  const said = new RegExp(`^pasted: [^\\n]* \\(${versions}\\): run the newer version, [^\\n]*\\n$`);
  for (const words of COMMANDS) {
    const main = startMain(t, words, { environment: { SERVICE_PORT: '0', SERVICE_DB: path } });
    assert.equal(await main.ended, 78, `${words.join(' ')}: ${main.stderr()}`);
    assert.equal(main.stdout(), '');
    assert.match(main.stderr(), said);
    assert.deepEqual(filesOf(), before, words.join(' '));
  }
});
