// Who may store pastes, and how much each owner: SERVICE_CREATE, SERVICE_MAX_STORAGE_OWNER and content that is refused,
// over real sockets. The statements are unit/store-owners.test.ts and unit/store-governing.test.ts.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { visitStore } from '../../src/store/visit.ts';
import { binaryContent, startApp, type RunningApp } from '../support/app.ts';
import { insertCertificate, newFingerprint, presenting } from '../support/certificates.ts';
import { type Answer, assertError, assertStored, from, post, postChunked, rateOf, statusCounts } from '../support/posting.ts';
import { head, openRaw } from '../support/raw-http.ts';
import { CREATED_AT, selectValue, strayChunks } from '../support/store.ts';
import { freshWork } from '../support/work.ts';

type Headers = Record<string, string>;

const OWNER = newFingerprint();
const AS_OWNER = presenting(OWNER);

const hintOf = (whose: string) => ({
  hint: `storing pastes here takes ${whose}: GET /register/challenge is how to get one`,
});

/** One caller of each tier; a caller whose certificate has ended counts as anonymous. */
function callersOf({ config }: RunningApp): Record<'anonymous' | 'ended' | 'untrusted' | 'trusted' | 'admin', Headers> {
  const holder = (given: object) => presenting(insertCertificate(config.databasePath, given).fingerprint);
  return {
    anonymous: {},
    ended: holder({ revokedAt: CREATED_AT }),
    untrusted: presenting(newFingerprint()),
    trusted: holder({}),
    admin: holder({ isAdmin: true }),
  };
}

async function put(app: RunningApp, path: string, body: string | Uint8Array, headers: Headers): Promise<Answer> {
  const response = await app.request(path, { method: 'PUT', body: body as string, headers });
  return { status: response.status, headers: response.headers, json: await response.json() as Answer['json'] };
}

/** What each caller is answered, by the word of SERVICE_CREATE. */
const STATUSES: Readonly<Record<Config['createBy'], Readonly<Record<string, number>>>> = {
  anyone: { anonymous: 201, ended: 201, untrusted: 201, trusted: 201, admin: 201 },
  identity: { anonymous: 401, ended: 401, untrusted: 201, trusted: 201, admin: 201 },
  trusted: { anonymous: 401, ended: 401, untrusted: 403, trusted: 201, admin: 201 },
};

const ERRORS: Readonly<Record<number, string>> = { 401: 'authentication required', 403: 'permission denied' };

for (const [createBy, statuses] of Object.entries(STATUSES) as [Config['createBy'], Record<string, number>][]) {
  test(`SERVICE_CREATE=${createBy}: POST and PUT / for each tier, with a hint, before any work or body`, async (t) => {
    const app = await startApp(t, { createBy, powDifficultyBits: 1, rateMax: 2, maxAnonBytes: 1000 });
    const hint = hintOf(createBy === 'trusted' ? 'a certificate of this service' : 'a client certificate');
    let turn = 0;
    for (const [tier, headers] of Object.entries(callersOf(app))) {
      const expected = statuses[tier]!;
      const is = (answer: Answer, what: string): void => {
        if (expected === 201) assertStored(answer, what);
        else assertError(answer, expected, ERRORS[expected]!, hint);
      };
      const address = from(`192.0.2.${turn += 1}`);
      is(await post(app, 'x', { ...headers, ...address, ...await freshWork(app) }), `POST by ${tier}`);
      is(await put(app, '/', 'x', { ...headers, ...address, ...await freshWork(app) }), `PUT by ${tier}`);
      if (expected === 201) continue;
      // The refusal spends neither work nor the rate, and comes before the body is found too large.
      const work = await freshWork(app);
      for (let again = 0; again < 3; again += 1) {
        const refused = await post(app, 'x'.repeat(1001), { ...headers, ...address, ...work });
        assertError(refused, expected, ERRORS[expected]!, hint);
        assert.equal(rateOf(refused), null);
      }
      for (const method of ['POST', 'PUT']) assert.deepEqual(await unread(t, app, method, headers), [expected, hint.hint]);
      assertStored(await post(app, 'x', { ...callersOf(app).trusted, ...address, ...work }), 'the same work');
    }
    const others = createBy === 'anyone' ? "owner <> ''" : 'owner IS NULL';
    assert.notEqual(selectValue(app.config.databasePath, 'SELECT count(*) FROM pastes'), 0);
    const counted = selectValue(app.config.databasePath, `SELECT count(*) FROM pastes WHERE ${others}`);
    assert.equal(Number(counted) > 0, createBy === 'anyone');
  });
}

/** The answer to a client that has shown no work and waits to be asked for its body of a megabyte. */
async function unread(t: TestContext, app: RunningApp, method: string, headers: Headers): Promise<[number, unknown]> {
  const connection = await openRaw(t, app.port);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  connection.send(head(`${method} / HTTP/1.1`, 'Content-Length: 1000000', 'Expect: 100-continue', ...lines));
  const answer = await connection.next();
  connection.socket.destroy();
  return [answer.status, answer.json()['hint']];
}

test('SERVICE_CREATE: where nobody can register, refusals and GET / send nobody there', async (t) => {
  const app = await startApp(t, { createBy: 'identity', registerBy: 'off' });
  const hint = 'storing pastes here takes a client certificate: ask the operator for one';
  assertError(await post(app, 'x', {}), 401, ERRORS[401]!, { hint });
  const { creation } = await (await app.request('/')).json() as Record<string, unknown>;
  assert.deepEqual(creation, { needed: 'identity', hint });
});

test('SERVICE_CREATE: GET / and its page say what storing takes, and nothing where anyone may', async (t) => {
  for (const createBy of ['anyone', 'identity', 'trusted'] as const) {
    const app = await startApp(t, { createBy });
    const { creation } = await (await app.request('/')).json() as Record<string, unknown>;
    const { hint } = hintOf(createBy === 'trusted' ? 'a certificate of this service' : 'a client certificate');
    assert.deepEqual(creation, createBy === 'anyone' ? undefined : { needed: createBy, hint });
    const page = await (await app.request('/', { headers: { Accept: 'text/html' } })).text();
    const shown = page.replaceAll('<wbr>', '');
    assert.equal(shown.includes(`<p>Mind that ${hint}.</p>`), createBy !== 'anyone');
  }
});

test('SERVICE_CREATE=trusted: an owner still reads, changes and deletes what is there, and anyone reads it', async (t) => {
  const before = await startApp(t);
  const ids = [await before.store('mine', AS_OWNER), await before.store('more of mine', AS_OWNER), await before.store('nobody\'s')];
  await before.app.close();
  const app = await startApp(t, { createBy: 'trusted', databasePath: before.config.databasePath });
  assertError(await post(app, 'new', AS_OWNER), 403, 'permission denied', hintOf('a certificate of this service'));
  assert.equal((await put(app, `/${ids[0]}`, 'changed', AS_OWNER)).status, 200);
  assert.equal((await put(app, `/${ids[1]}`, '', { ...AS_OWNER, 'X-Expiry': '60' })).status, 200);
  assert.equal(await (await app.request(`/${ids[0]}/raw`)).text(), 'changed');
  assert.equal(await (await app.request(`/${ids[2]}/raw`)).text(), 'nobody\'s');
  const { total } = await (await app.request('/pastes', { headers: AS_OWNER })).json() as { total: number };
  assert.equal(total, 2);
  assert.equal((await app.request(`/${ids[1]}`, { method: 'DELETE', headers: AS_OWNER })).status, 200);
});

// SERVICE_MAX_STORAGE_OWNER.

const FULL = { hint: 'your pastes take as much as one owner may store: delete some, or wait until they expire' };

function ownedBytes({ config }: RunningApp, owner = OWNER): unknown {
  return selectValue(config.databasePath, `SELECT coalesce(sum(size), 0) FROM pastes WHERE owner = '${owner}'`);
}

for (const [what, most] of [['in rows', 1000], ['in chunks', 200_000]] as const) {
  test(`SERVICE_MAX_STORAGE_OWNER: to the byte, ${what}, for POST and for PUT with more and with less`, async (t) => {
    const app = await startApp(t, { maxOwnerStorageBytes: most });
    const owned = (size: number, send: typeof postChunked = post) => send(app, binaryContent(size, size), AS_OWNER);
    for (const send of [post, postChunked]) assertError(await owned(most + 1, send), 507, 'storage full', FULL);
    const { json: { id } } = await owned(most - 100);
    for (const send of [post, postChunked]) assertError(await owned(101, send), 507, 'storage full', FULL);
    const rest = await owned(100);
    assertStored(rest);
    assertError(await owned(1), 507, 'storage full', FULL);
    // Other owners have room of their own, and anonymous callers have no such limit.
    assertStored(await post(app, binaryContent(most, 2), presenting(newFingerprint())));
    assertStored(await post(app, binaryContent(most + 1)));

    const change = (size: number) => put(app, `/${String(id)}`, binaryContent(size, size + 1), AS_OWNER);
    const kept = async () => (await (await app.request(`/${String(id)}/raw`)).arrayBuffer()).byteLength;
    assertError(await change(most - 99), 507, 'storage full', FULL);
    assert.equal(await kept(), most - 100);
    for (const size of [most - 100, most - 101, most - 100, 1, most - 100]) {
      assert.equal((await change(size)).status, 200, `${size}`);
      assert.deepEqual([await kept(), ownedBytes(app)], [size, size + 100]);
    }
    assertError(await change(most - 99), 507, 'storage full', FULL);
    assert.equal((await put(app, `/${String(id)}`, '', { ...AS_OWNER, 'X-Expiry': '100' })).status, 200);
    assert.equal((await app.request(`/${String(rest.json['id'])}`, { method: 'DELETE', headers: AS_OWNER })).status, 200);
    assert.equal((await change(most)).status, 200);
    // What has expired counts until it has been removed.
    app.clock.advance(3_600_000);
    await app.app.cleanup.run('expired pastes');
    assertStored(await owned(most));
    await app.app.close();
    assert.equal(strayChunks(app.config.databasePath), 0);
  });
}

test('SERVICE_MAX_STORAGE_OWNER: a smaller limit than what is stored lets an owner make pastes smaller', async (t) => {
  const before = await startApp(t);
  const id = await before.store('x'.repeat(500), AS_OWNER);
  await before.app.close();
  const app = await startApp(t, { maxOwnerStorageBytes: 100, databasePath: before.config.databasePath });
  assertError(await post(app, 'x', AS_OWNER), 507, 'storage full', FULL);
  for (const [size, status] of [[501, 507], [500, 200], [400, 200], [401, 507], [50, 200], [100, 200], [101, 507]] as const) {
    assert.equal((await put(app, `/${id}`, 'y'.repeat(size), AS_OWNER)).status, status, `${size}`);
  }
  assert.equal(ownedBytes(app), 100);
});

test('SERVICE_MAX_STORAGE_OWNER: of many creations and changes at once as many as fit, and no more', async (t) => {
  const app = await startApp(t, { maxOwnerStorageBytes: 1_000_099 });
  for (const send of [post, postChunked]) {
    const contents = Array.from({ length: 30 }, (_, turn) => binaryContent(100_000, turn));
    const answers = await Promise.all(contents.map((content) => send(app, content, AS_OWNER)));
    assert.deepEqual(statusCounts(answers), { 201: 10, 507: 20 });
    assert.equal(ownedBytes(app), 1_000_000);
    const ids = answers.flatMap(({ json: { id } }) => (id === undefined ? [] : [String(id)]));
    const changed = await Promise.all(ids.map((id) => put(app, `/${id}`, binaryContent(100_050, 99), AS_OWNER)));
    assert.equal(changed.filter(({ status }) => status === 200).length, 1);
    assert.equal(ownedBytes(app), 1_000_050);
    await Promise.all(ids.map((id) => app.request(`/${id}`, { method: 'DELETE', headers: AS_OWNER })));
  }
  assert.equal(selectValue(app.config.databasePath, 'SELECT count(*) FROM owners'), 0);
});

// Content that is refused.

test('a ban beside 40 creations of the same content at once, in every form: none is stored after it was acknowledged', async (t) => {
  const app = await startApp(t);
  const { databasePath: path } = app.config;
  const operator = await visitStore({ path, clock: app.clock, log: () => {}, ifMissing: 'refuse' });
  t.after(() => operator.close());
  for (const [round, size] of [100, 700_000, 100, 700_000].entries()) {
    const text = String(round).repeat(size);
    const sha256 = createHash('sha256').update(text).digest();
    const own = await app.store('to be changed', AS_OWNER);
    const send = (turn: number): Promise<Answer> => {
      if (turn % 4 === 0) return post(app, JSON.stringify({ content: text }), { 'Content-Type': 'application/json' });
      if (turn % 4 === 1) return postChunked(app, Buffer.from(text));
      if (turn % 4 === 2) return post(app, text, { 'X-Burn-After-Read': '1' });
      return put(app, `/${own}`, text, AS_OWNER);
    };
    const sending = Array.from({ length: 40 }, (_, turn) => send(turn));
    await sending[0];
    const banned = {
      time: CREATED_AT, event: 'content_banned', outcome: 'success', clientId: 'operator', clientIp: null, details: {},
    } as const;
    await operator.run('banContent', { sha256, note: '', createdAt: CREATED_AT, banned });
    const ofContent = `SELECT count(*) FROM pastes WHERE sha256 = x'${sha256.toString('hex')}'`;
    const left = Number(selectValue(path, ofContent));
    const answers = await Promise.all([...sending, ...Array.from({ length: 8 }, (_, turn) => send(turn))]);
    assert.equal(selectValue(path, ofContent), left);
    assert.ok(left >= 1, 'the first was stored before');
    for (const answer of answers.filter(({ status }) => status >= 400)) assertError(answer, 403, 'content refused');
    for (const answer of answers.slice(-8)) assertError(answer, 403, 'content refused');
  }
  await app.app.close();
  assert.equal(strayChunks(path), 0);
});
