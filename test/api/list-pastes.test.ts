// GET /pastes over real sockets: whose pastes, which of them, in which order and in which form. How fast is store-
// lists.test.ts.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { after, test, type TestContext } from 'node:test';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { insertCertificate, newFingerprint, presenting } from '../support/certificates.ts';
import { assertError, type Answer } from '../support/posting.ts';
import { insertPastes } from '../support/paste-rows.ts';
import { CREATED_AT } from '../support/store.ts';

const OWNER = newFingerprint();
const AS_OWNER = presenting(OWNER);

/** The app of the tests that need no settings of their own, and whose clock stands still. */
const shared = await startApp({ after } as unknown as TestContext);

/** The same, without any paste. */
function emptied(): RunningApp {
  const db = new DatabaseSync(shared.config.databasePath, { timeout: 5000 });
  db.exec('DELETE FROM pastes');
  db.close();
  return shared;
}

interface List {
  readonly pastes: readonly Readonly<Record<string, unknown>>[];
  readonly total: number;
  readonly limit: number;
  readonly offset: number;
}

async function ask(app: RunningApp, query: string, headers: Record<string, string> = AS_OWNER): Promise<Answer> {
  const response = await app.request(`/pastes${query}`, { headers });
  return { status: response.status, headers: response.headers, json: await response.json() as Record<string, unknown> };
}

async function list(app: RunningApp, query = '', headers: Record<string, string> = AS_OWNER): Promise<List> {
  const { status, json } = await ask(app, query, headers);
  assert.equal(status, 200, JSON.stringify(json));
  return json as unknown as List;
}

function idsOf({ pastes }: List): unknown[] {
  return pastes.map(({ id }) => id);
}

test('GET /pastes: exactly the specified members, always, with times in ISO 8601 and the owner shortened', async () => {
  const app = emptied();
  const plain = await app.store('text', AS_OWNER);
  app.clock.jump(1500);
  const special = await app.store(binaryContent(300_000), {
    ...AS_OWNER, 'Content-Type': 'image/png', 'X-Burn-After-Read': '1', 'X-Paste-Password': 'p', 'X-Expiry': '60',
  });
  app.clock.jump(-1500);
  const response = await app.request('/pastes', { headers: AS_OWNER });
  assert.equal(response.headers.get('content-type'), 'application/json');
  assert.equal(response.headers.get('vary'), 'Accept');
  const owner = OWNER.slice(0, 12);
  assert.deepEqual(await response.json(), {
    pastes: [
      {
        id: special, size: 300_000, mime_type: 'image/png', created_at: '2026-01-31T12:00:01Z', expires_at: '2026-01-31T12:01:01Z',
        burn_after_read: true, password_protected: true, owner,
      },
      {
        id: plain, size: 4, mime_type: 'text/plain', created_at: '2026-01-31T12:00:00Z', expires_at: '2026-02-07T12:00:00Z',
        burn_after_read: false, password_protected: false, owner,
      },
    ],
    total: 2, limit: 100, offset: 0,
  });
});

test('GET /pastes: one\'s own only, and an empty list for who has none', async () => {
  const app = emptied();
  const own = await app.store('own', AS_OWNER);
  await app.store('another\'s', presenting(newFingerprint()));
  await app.store('anonymous');
  assert.deepEqual(idsOf(await list(app)), [own]);
  assert.deepEqual(await list(app, '', presenting(newFingerprint())), { pastes: [], total: 0, limit: 100, offset: 0 });
  assertError(await ask(app, '', {}), 401, 'authentication required', { hint: 'present a client certificate' });
});

test('GET /pastes: all=1 lists everyone\'s for the admin; any other value is as if absent', async (t) => {
  const app = await startApp(t);
  const admin = presenting(insertCertificate(app.config.databasePath, { isAdmin: true }).fingerprint);
  const trusted = presenting(insertCertificate(app.config.databasePath).fingerprint);
  const owned = await app.store('owned', AS_OWNER);
  app.clock.advance(1000);
  const anonymous = await app.store('anonymous');
  app.clock.advance(1000);
  const own = await app.store('own', admin);
  const everyone = await list(app, '?all=1', admin);
  assert.deepEqual(everyone.pastes.map(({ id, owner }) => [id, owner]), [
    [own, admin['X-SSL-Client-SHA1']!.slice(0, 12)], [anonymous, null], [owned, OWNER.slice(0, 12)],
  ]);
  assert.equal(everyone.total, 3);
  for (const query of ['', '?all=0', '?all=true', '?all=', '?all=01', '?all=2']) {
    assert.deepEqual(idsOf(await list(app, query, admin)), [own], query);
  }
  for (const query of ['?all=1', '?all=1&limit=x&type=']) {
    for (const caller of [AS_OWNER, trusted]) assertError(await ask(app, query, caller), 403, 'admin access required');
    assertError(await ask(app, query, {}), 401, 'authentication required', { hint: 'present a client certificate' });
  }
  assert.deepEqual(idsOf(await list(app, '?all=0')), [owned]);
  assert.deepEqual(idsOf(await list(app, '?all=1&type=text/*&limit=1&offset=1', admin)), [anonymous]);
});

test('GET /pastes: limit and offset page through, clamped; total counts all', async () => {
  const app = emptied();
  insertPastes(app.config.databasePath, { count: 1001, owner: OWNER });
  const every = [...idsOf(await list(app, '?limit=1000')), ...idsOf(await list(app, '?limit=1000&offset=1000'))];
  assert.equal(new Set(every).size, 1001);
  assert.deepEqual(every, every.toSorted().reverse(), 'newest first');
  const cases = [
    ['', 100, 0], ['?limit=1', 1, 0], ['?limit=2', 2, 0], ['?limit=0', 1, 0], ['?limit=-1', 1, 0], ['?limit=-0', 1, 0],
    ['?limit=999', 999, 0], ['?limit=1000', 1000, 0], ['?limit=1001', 1000, 0], [`?limit=${'9'.repeat(30)}`, 1000, 0],
    [`?limit=-${'9'.repeat(30)}`, 1, 0], ['?limit=007', 7, 0], ['?offset=0', 100, 0], ['?offset=1', 100, 1], ['?offset=-1', 100, 0],
    ['?offset=-0', 100, 0], ['?offset=1000&limit=5', 5, 1000], ['?offset=1001&limit=5', 5, 1001], ['?offset=1002', 100, 1002],
    [`?offset=${'9'.repeat(30)}`, 100, Number.MAX_SAFE_INTEGER],
  ] as const;
  for (const [query, limit, offset] of cases) {
    const page = await list(app, query);
    assert.deepEqual([page.limit, page.offset, page.total], [limit, offset, 1001], query);
    assert.deepEqual(idsOf(page), every.slice(offset, offset + limit), query);
  }
});

test('GET /pastes: a number that is none, a type that is no glob, or anything twice is 400', async () => {
  const app = emptied();
  await app.store('x', AS_OWNER);
  for (const name of ['limit', 'offset', 'after', 'before']) {
    for (const value of ['', 'x', '1.0', '1e3', '0x1', '+1', ' 1', '1 ', '--1', '-', '\u0661', 'NaN']) {
      const answer = await ask(app, `?${name}=${encodeURIComponent(value)}`);
      assertError(answer, 400, 'invalid query parameter', { hint: `${name} must be an integer`, parameter: name });
    }
  }
  for (const value of ['', '%00', '%0A', 'x'.repeat(65)]) {
    const members = { hint: 'type is a glob of at most 64 characters, such as image/*', parameter: 'type' };
    assertError(await ask(app, `?type=${value}`), 400, 'invalid query parameter', members);
  }
  for (const name of ['limit', 'offset', 'after', 'before', 'type', 'all']) {
    const members = { hint: `give ${name} once`, parameter: name };
    assertError(await ask(app, `?${name}=1&${name}=1`), 400, 'invalid query parameter', members);
  }
  assert.equal((await list(app, '?unknown=1&Limit=x')).total, 1);
});

test('GET /pastes: after and before are exclusive, alone and together', async () => {
  const app = emptied();
  insertPastes(app.config.databasePath, { count: 5, owner: OWNER });
  const secondsOf = async (query: string): Promise<number[]> => {
    const found = await list(app, query);
    assert.equal(found.total, found.pastes.length);
    return found.pastes.map((paste) => Date.parse(String(paste['created_at'])) / 1000 - CREATED_AT);
  };
  for (const [query, expected] of [
    [`?after=${CREATED_AT - 1}`, [4, 3, 2, 1, 0]], [`?after=${CREATED_AT}`, [4, 3, 2, 1]], [`?after=${CREATED_AT + 3}`, [4]],
    [`?after=${CREATED_AT + 4}`, []], [`?before=${CREATED_AT}`, []], [`?before=${CREATED_AT + 1}`, [0]],
    [`?before=${CREATED_AT + 5}`, [4, 3, 2, 1, 0]], [`?after=${CREATED_AT}&before=${CREATED_AT + 2}`, [1]],
    [`?after=${CREATED_AT + 1}&before=${CREATED_AT + 2}`, []], [`?after=${CREATED_AT + 3}&before=${CREATED_AT + 1}`, []],
    ['?after=-1', [4, 3, 2, 1, 0]], [`?after=${'9'.repeat(30)}`, []], [`?before=-${'9'.repeat(30)}`, []],
    [`?after=-${'9'.repeat(30)}&before=${'9'.repeat(30)}`, [4, 3, 2, 1, 0]],
  ] as const) {
    assert.deepEqual(await secondsOf(query), expected, query);
  }
});

test('GET /pastes: type is a glob with * and ?, and nothing else in it is special', async () => {
  const app = emptied();
  for (const [turn, mimeType] of ['text/plain', 'image/png', 'image/gif', 'application/x-tar'].entries()) {
    insertPastes(app.config.databasePath, { count: 1, owner: OWNER, mimeType, prefix: `p${turn}` });
  }
  const typesOf = async (glob: string): Promise<unknown[]> => {
    const found = await list(app, `?type=${encodeURIComponent(glob)}`);
    assert.equal(found.total, found.pastes.length);
    return found.pastes.map((paste) => paste['mime_type']).toSorted();
  };
  for (const [glob, expected] of [
    ['image/*', ['image/gif', 'image/png']], ['IMAGE/*', ['image/gif', 'image/png']],
    ['image/p?g', ['image/png']], ['image/p?', []], ['text/plain', ['text/plain']], ['text', []],
    ['*', ['application/x-tar', 'image/gif', 'image/png', 'text/plain']], ['*/*n*', ['image/png', 'text/plain']],
    ['image/[pg]*', []], ['*[', []], ['image/%', []], ["'", []], ['*/x-tar', ['application/x-tar']], ['\u{1f600}', []],
  ] as const) {
    assert.deepEqual(await typesOf(glob), expected, glob);
  }
});

test('GET /pastes: expired pastes are not listed from that second on, nor counted', async (t) => {
  const app = await startApp(t);
  await app.store('brief', { ...AS_OWNER, 'X-Expiry': '10' });
  const lasting = await app.store('lasting', AS_OWNER);
  const admin = presenting(insertCertificate(app.config.databasePath, { isAdmin: true }).fingerprint);
  app.clock.advance(9999);
  assert.equal((await list(app)).total, 2);
  app.clock.advance(1);
  const lists = [['', AS_OWNER], ['?type=*', AS_OWNER], ['?all=1', admin], ['?all=1&type=text/*', admin]] as const;
  for (const [query, headers] of lists) {
    const found = await list(app, query, headers);
    assert.deepEqual([idsOf(found), found.total], [[lasting], 1], query);
  }
});

test('GET /pastes: newest first, and those of one second by id, stable from page to page', async () => {
  const app = emptied();
  insertPastes(app.config.databasePath, { count: 10, owner: OWNER, perSecond: 5, prefix: 'b' });
  insertPastes(app.config.databasePath, { count: 5, owner: OWNER, perSecond: 5, prefix: 'a' });
  const { pastes } = await list(app);
  const order = pastes.map(({ id, created_at: createdAt }) => `${String(createdAt)} ${String(id)}`);
  assert.deepEqual(order, order.toSorted().reverse());
  const paged = [];
  for (let offset = 0; offset < 15; offset += 1) paged.push(...idsOf(await list(app, `?limit=1&offset=${offset}`)));
  assert.deepEqual(paged, pastes.map(({ id }) => id));
});

test('GET /pastes: what PUT and DELETE change shows at once; the place in the list stays', async (t) => {
  const app = await startApp(t);
  const first = await app.store('first', AS_OWNER);
  app.clock.advance(1000);
  const second = await app.store('second', AS_OWNER);
  app.clock.advance(1000);
  const options = { method: 'PUT', body: binaryContent(9), headers: { ...AS_OWNER, 'X-Expiry': '5', 'Content-Type': 'image/gif' } };
  assert.equal((await app.request(`/${first}`, options)).status, 200);
  const found = await list(app);
  assert.deepEqual(idsOf(found), [second, first]);
  assert.deepEqual([found.pastes[1]?.['mime_type'], found.pastes[1]?.['expires_at']], ['image/gif', '2026-01-31T12:00:07Z']);
  assert.deepEqual(idsOf(await list(app, '?type=image/*')), [first]);
  await app.request(`/${second}`, { method: 'DELETE', headers: AS_OWNER });
  assert.deepEqual(idsOf(await list(app)), [first]);
});

test('GET /pastes: for who prefers text, a line of names and one for each paste, separated by tabs', async (t) => {
  const app = await startApp(t);
  const admin = presenting(insertCertificate(app.config.databasePath, { isAdmin: true }).fingerprint);
  const owned = await app.store('text', AS_OWNER);
  app.clock.advance(1000);
  const anonymous = await app.store('x', { 'X-Burn-After-Read': '1' });
  const response = await app.request('/pastes?all=1', { headers: { ...admin, Accept: 'text/plain' } });
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain/);
  assert.equal(response.headers.get('vary'), 'Accept');
  assert.deepEqual((await response.text()).split('\n').map((line) => line.split('\t')), [
    ['id', 'size', 'mime_type', 'created_at', 'expires_at', 'burn_after_read', 'password_protected', 'owner'],
    [anonymous, '1', 'text/plain', '2026-01-31T12:00:01Z', '2026-02-01T12:00:01Z', 'true', 'false', '-'],
    [owned, '4', 'text/plain', '2026-01-31T12:00:00Z', '2026-02-07T12:00:00Z', 'false', 'false', OWNER.slice(0, 12)],
    [''],
  ]);
  const head = await app.request('/pastes', { method: 'HEAD', headers: AS_OWNER });
  assert.deepEqual([head.status, await head.text()], [200, '']);
});
