// Updating and deleting in the store: each is decided and done in one step, with what it orphans, counts and audits.
// Over real sockets: update-paste.test.ts and delete-paste.test.ts.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { Store } from '../../src/store/open.ts';
import { prepareChange } from '../../src/store/records.ts';
import {
  type AuditEvent, type ChangedContent, type Database, type DeletionOutcome, INLINE_BYTES, type PasteChanges, type UpdateOutcome,
  type UpdateTerms,
} from '../../src/store/store.ts';
import {
  CREATED_AT, EXPIRES_AT, asFound, inlinePaste, openTestStore, patternedBytes, readContent, selectValue, storePaste,
  uploadContent,
} from '../support/store.ts';
import { removalsDone, strayChunks, testStores } from '../support/stores.ts';

const OWNER = 'a'.repeat(40);
const STRANGER = 'b'.repeat(40);
const TERMS: UpdateTerms = { nowSeconds: CREATED_AT, duplicates: null, maxStoredBytes: null, maxOwnerBytes: null };
const PAGE = { limit: 10, offset: 0 };
const ANY_AUDIT = { event: null, outcome: null, clientId: null, after: 0, before: Infinity };

async function contentOf(store: Store, content: Uint8Array): Promise<ChangedContent> {
  const isInline = content.length <= INLINE_BYTES;
  return {
    mimeType: 'application/zip',
    size: content.length,
    sha256: createHash('sha256').update(content).digest(),
    contentId: isInline ? null : await uploadContent(store, content),
    content: isInline ? content : null,
  };
}

function update(
  store: Store,
  id: string,
  changes: PasteChanges,
  terms: Partial<UpdateTerms> = {},
  owner = OWNER,
): Promise<UpdateOutcome> {
  return store.pastes.update(id, owner, changes, { ...TERMS, ...terms });
}

testStores('update: members that are undefined stay, null takes the password away', async ({ store }) => {
  const { id } = await storePaste(store, patternedBytes(10), { owner: OWNER, passwordHash: 'first' });
  const found = await store.pastes.findWithContent(id, CREATED_AT);
  assert.ok(found);
  const { content, ...before } = found;
  const expectAfter = async (changes: PasteChanges, expected: object): Promise<void> => {
    assert.deepEqual(await update(store, id, changes), { refused: null, paste: { ...before, ...expected } });
    assert.deepEqual(await store.pastes.findWithContent(id, CREATED_AT), { ...before, ...expected, content });
  };
  await expectAfter({}, {});
  await expectAfter({ expiresAt: EXPIRES_AT + 5 }, { expiresAt: EXPIRES_AT + 5 });
  await expectAfter({ passwordHash: 'second' }, { expiresAt: EXPIRES_AT + 5, passwordHash: 'second' });
  await expectAfter({ passwordHash: null, expiresAt: EXPIRES_AT }, { passwordHash: null });
});

testStores('update: lists follow content of another type or size, and keep what has the same', async ({ store, tables }) => {
  const { id } = await storePaste(store, patternedBytes(10), { owner: OWNER, mimeType: 'image/png' });
  const listedAs = async (typeGlob: string): Promise<unknown[]> => {
    const found = await Promise.all([OWNER, null].map((owner) => (
      store.read.listPastes({ owner, typeGlob, after: 0, before: Infinity }, PAGE, CREATED_AT)
    )));
    return found.map(({ items, total }) => [items.map(({ mimeType, size }) => [mimeType, size]), total]);
  };
  let seed = 1;
  for (const [size, mimeType, otherType] of [
    [20, 'image/png', 'text/plain'], [20, 'text/plain', 'image/png'], [20, 'text/plain', 'image/png'],
    [40, 'text/plain', 'image/png'], [30, 'image/png', 'text/plain'],
  ] as const) {
    const bytes = patternedBytes(size, seed += 1);
    const content = { ...await contentOf(store, bytes), mimeType };
    assert.equal((await update(store, id, { content })).refused, null);
    assert.deepEqual(await listedAs(mimeType), [[[[mimeType, size]], 1], [[[mimeType, size]], 1]]);
    assert.deepEqual(await listedAs(otherType), [[[], 0], [[], 0]]);
    const found = await store.pastes.findWithContent(id, CREATED_AT);
    const expected = asFound(inlinePaste(bytes));
    assert.deepEqual([found?.content, found?.sha256], [expected.content, expected.sha256]);
  }
  assert.equal(await tables.value('PRAGMA integrity_check'), 'ok');
});

testStores('update: a time to live that is over already is answered with the paste, which is then gone', async ({ store }) => {
  const { id } = await storePaste(store, patternedBytes(10), { owner: OWNER });
  const outcome = await update(store, id, { expiresAt: CREATED_AT });
  assert.equal(outcome.refused, null);
  assert.equal(await store.pastes.find(id, CREATED_AT), undefined);
});

testStores('update: each refusal has no effect, in the order unknown, another\'s, burning, duplicate, full', async ({ store, tables, rowBytes }) => {
  const own = await storePaste(store, patternedBytes(100), { owner: OWNER });
  const burning = await storePaste(store, patternedBytes(100, 2), { owner: OWNER, burnAfterRead: true });
  const anonymous = await storePaste(store, patternedBytes(100, 3));
  const changes = { content: await contentOf(store, patternedBytes(200, 4)), expiresAt: 1, passwordHash: 'x' };
  const refusalOf = async (...args: Parameters<typeof update>): Promise<string | null> => (await update(...args)).refused;
  const full = { maxStoredBytes: 399 + 3 * rowBytes };
  const rows = 'json_group_array(json_array(id, size, expires_at, password_hash, hex(content)))';
  const table = () => tables.value(`SELECT ${rows} FROM pastes`);
  const before = await table();

  assert.equal(await refusalOf(store, 'unknown', changes), 'pasteNotFound');
  assert.equal(await refusalOf(store, own.id, changes, { nowSeconds: EXPIRES_AT }), 'pasteNotFound');
  assert.equal(await refusalOf(store, own.id, changes, full, STRANGER), 'permissionDenied');
  assert.equal(await refusalOf(store, anonymous.id, changes), 'permissionDenied');
  assert.equal(await refusalOf(store, burning.id, changes, full), 'burnNotUpdatable');
  assert.equal(await refusalOf(store, own.id, changes, full), 'storageFull');
  const duplicates = { max: 1, windowSeconds: 60 };
  assert.equal(await table(), before);
  assert.equal(await tables.value('SELECT count(*) FROM submissions'), 0);
  assert.equal(await refusalOf(store, own.id, changes, { duplicates, maxStoredBytes: 400 + 3 * rowBytes }), null);
  const again = await update(store, anonymous.id, changes, { duplicates, maxStoredBytes: 0 });
  assert.equal(again.refused, 'permissionDenied');
  const other = await storePaste(store, patternedBytes(50, 5), { owner: OWNER });
  const refused = await update(store, other.id, { content: changes.content }, { duplicates, maxStoredBytes: 0, nowSeconds: CREATED_AT - 60 });
  assert.deepEqual(refused, { refused: 'duplicateContent', fields: { count: 1, windowSeconds: 60 }, retryAfterSeconds: 120 });
});

testStores('update: the same content again is no duplicate, and the answer has what is stored', async ({ store }) => {
  const { id } = await storePaste(store, patternedBytes(10), { owner: OWNER });
  const content = await contentOf(store, patternedBytes(12, 3));
  const duplicates = { max: 1, windowSeconds: 60 };
  const sha256 = Buffer.from(content.sha256).toString('hex');
  for (let count = 0; count < 3; count += 1) {
    const outcome = await update(store, id, { content }, { duplicates });
    assert.ok(outcome.refused === null);
    assert.deepEqual([outcome.paste.size, outcome.paste.mimeType, outcome.paste.sha256], [12, 'application/zip', sha256]);
  }
  const other = await storePaste(store, patternedBytes(10, 4), { owner: OWNER });
  assert.equal((await update(store, other.id, { content }, { duplicates })).refused, 'duplicateContent');
});

testStores('update and remove: of content that is named, only while the paste has it', async ({ store }) => {
  const [first, second] = [patternedBytes(10), patternedBytes(20, 2)];
  const { id } = await storePaste(store, first, { owner: OWNER });
  const digestOf = (content: Uint8Array) => createHash('sha256').update(content).digest('hex');
  const named = (content: Uint8Array) => ({ onlySha256: digestOf(content) });
  const changes = { content: await contentOf(store, second) };
  assert.deepEqual(await update(store, id, changes, named(second)), { refused: 'preconditionFailed' });
  assert.equal((await store.pastes.find(id, CREATED_AT))?.sha256, digestOf(first));
  assert.equal((await update(store, id, changes, named(first))).refused, null);
  assert.deepEqual(await update(store, id, { expiresAt: 1 }, named(first)), { refused: 'preconditionFailed' });
  const removed = (content: Uint8Array) => store.pastes.remove(id, OWNER, CREATED_AT, null, digestOf(content));
  assert.deepEqual(await removed(first), { refused: 'preconditionFailed' });
  assert.equal((await store.pastes.find(id, CREATED_AT))?.sha256, digestOf(second));
  assert.deepEqual(await removed(second), { refused: null, audited: null });
});

testStores('update: content that is not there, or not whole, fails without any effect', async ({ store, tables }) => {
  const large = patternedBytes(300_000);
  const { id } = await storePaste(store, large, { owner: OWNER });
  const missing = { ...await contentOf(store, patternedBytes(10)), content: null, contentId: 'c'.repeat(26) };
  const partial = { ...await contentOf(store, patternedBytes(100_000, 2)), size: 100_001 };
  for (const content of [missing, partial]) {
    await assert.rejects(update(store, id, { content, passwordHash: 'x', expiresAt: 1 }), /not there, or not whole/);
  }
  const found = await store.pastes.find(id, CREATED_AT);
  assert.deepEqual([found?.size, found?.passwordHash, found?.expiresAt], [large.length, null, EXPIRES_AT]);
  assert.deepEqual(await readContent(store, String(found?.contentId), 0, large.length), Buffer.from(large));
  assert.equal(await tables.value('SELECT bytes FROM usage'), large.length);
});

testStores('update: replaced chunks stay for whoever reads them, and go with the last reader', async ({ store, tables }) => {
  const old = patternedBytes(600_000);
  const { id, contentId } = await storePaste(store, old, { owner: OWNER });
  const readers = [await store.contents.open(String(contentId)), await store.contents.open(String(contentId))];
  await update(store, id, { content: await contentOf(store, patternedBytes(5, 2)) });
  assert.equal(await store.contents.open(String(contentId)), undefined, 'nobody new gets to read it');
  readers[0]?.close();
  const gathered = [];
  for await (const chunk of readers[1]!.read(0, old.length)) gathered.push(Buffer.from(chunk));
  assert.deepEqual(Buffer.concat(gathered), Buffer.from(old));
  assert.notEqual(await strayChunks(tables), 0);
  readers[1]?.close();
  await removalsDone(store);
  assert.equal(await tables.value('SELECT count(*) FROM chunks'), 0);
  assert.equal(await tables.value('SELECT count(*) FROM orphans'), 0);
});

test('close: replaced chunks whose last reader has gone a moment before are removed', async (t) => {
  const { store, path } = await openTestStore(t);
  const { id, contentId } = await storePaste(store, patternedBytes(600_000), { owner: OWNER });
  const reader = await store.contents.open(String(contentId));
  await update(store, id, { content: await contentOf(store, patternedBytes(5, 2)) });
  reader?.close();
  await store.close();
  assert.equal(selectValue(path, 'SELECT count(*) FROM chunks'), 0);
  assert.equal(selectValue(path, 'SELECT count(*) FROM orphans'), 0);
});

function entryFor(id: string): AuditEvent {
  const by = { clientId: STRANGER, clientIp: '192.0.2.1' };
  return { time: CREATED_AT, event: 'paste_deleted', outcome: 'success', ...by, details: { paste: id.slice(0, 8) } };
}

testStores('remove: one\'s own without an entry, another\'s only as the admin and with the owner in the entry', async ({ store }) => {
  const paste = await storePaste(store, patternedBytes(10), { owner: OWNER });
  const remove = (id: string, by: string, asAdmin: AuditEvent | null): Promise<DeletionOutcome> =>
    store.pastes.remove(id, by, CREATED_AT, asAdmin);
  assert.deepEqual(await remove(paste.id, STRANGER, null), { refused: 'permissionDenied' });
  assert.deepEqual(await remove('unknown', STRANGER, entryFor('unknown')), { refused: 'pasteNotFound' });
  assert.deepEqual(await store.pastes.remove(paste.id, OWNER, EXPIRES_AT, null), { refused: 'pasteNotFound' });
  const entry = entryFor(paste.id);
  const audited = { ...entry, details: { ...entry.details, owner: OWNER } };
  assert.deepEqual(await remove(paste.id, STRANGER, entry), { refused: null, audited });
  assert.deepEqual(await remove(paste.id, STRANGER, entry), { refused: 'pasteNotFound' });

  const own = await storePaste(store, patternedBytes(10), { owner: STRANGER });
  assert.deepEqual(await remove(own.id, STRANGER, entryFor(own.id)), { refused: null, audited: null });
  const anonymous = await storePaste(store, patternedBytes(10));
  assert.equal((await remove(anonymous.id, OWNER, null)).refused, 'permissionDenied');
  assert.equal((await remove(anonymous.id, STRANGER, entryFor(anonymous.id))).refused, null);
  const { items } = await store.read.listAudit(ANY_AUDIT, PAGE);
  assert.deepEqual(items.map(({ details }) => details['owner']), [null, OWNER]);
});

test('prepareChange: what finds no row runs no change, which in a cluster would be a transaction', () => {
  const ran: string[] = [];
  let rows: object[] = [];
  const prepare = (sql: string) => ({
    all: () => rows, run: () => ran.push(sql), setAllowUnknownNamedParameters: () => {},
  });
  const change = prepareChange({ prepare } as unknown as Database, { table: 'pastes', where: 'id = :id' });
  assert.deepEqual([change({ id: 'a' }), ran], [[], []]);
  rows = [{}];
  assert.deepEqual([change({ id: 'a' }), ran], [[{}], ['DELETE FROM pastes WHERE id = :id']]);
});

test('update: writes the columns that change, and no other: each may be in an index', async (t) => {
  const { store, path } = await openTestStore(t);
  const { id } = await storePaste(store, patternedBytes(10), { owner: OWNER, mimeType: 'application/zip' });
  using db = new DatabaseSync(path, { timeout: 5000 });
  const columns = ['mime_type', 'size', 'sha256', 'password_hash', 'expires_at'];
  db.exec('CREATE TABLE written (name TEXT)');
  for (const name of columns) {
    db.exec(`CREATE TRIGGER on_${name} AFTER UPDATE OF ${name} ON pastes BEGIN INSERT INTO written VALUES ('${name}'); END`);
  }
  const written = async (changes: PasteChanges) => {
    db.exec('DELETE FROM written');
    assert.equal((await update(store, id, changes)).refused, null);
    return db.prepare('SELECT name FROM written ORDER BY name').all().map(({ name }) => name);
  };
  const content = await contentOf(store, patternedBytes(10, 2));
  assert.deepEqual(await written({ content }), ['sha256']);
  assert.deepEqual(await written({ content: { ...content, mimeType: 'image/png' } }), ['mime_type', 'sha256']);
  assert.deepEqual(await written({ content: await contentOf(store, patternedBytes(11)) }), ['mime_type', 'sha256', 'size']);
  assert.deepEqual(await written({ passwordHash: 'x' }), ['password_hash']);
  assert.deepEqual(await written({ expiresAt: EXPIRES_AT + 1 }), ['expires_at']);
  const answered = await update(store, id, { passwordHash: null });
  assert.equal(answered.refused === null && answered.paste.size, 11);
});
