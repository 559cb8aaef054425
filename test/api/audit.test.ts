// GET /audit over real sockets: fields, paging, filters, and how long entries are kept. What is audited is tested where
// it happens.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { startApp, type RunningApp } from '../support/app.ts';
import { insertCertificate, newFingerprint, presenting } from '../support/certificates.ts';
import { assertError, type Answer } from '../support/posting.ts';
import { CREATED_AT, selectValue } from '../support/store.ts';

interface Audited {
  readonly app: RunningApp;
  /** GET /audit of the admin. */
  ask(query: string, headers?: Record<string, string>): Promise<Answer>;
  /** The ids on that page, and the total. */
  ids(query: string): Promise<{ ids: number[]; total: unknown }>;
  /** Entries a second apart from CREATED_AT on, with ids from 1. */
  insert(entries: readonly { event?: string; outcome?: string; clientId?: string | null; time?: number }[]): void;
}

async function startAudited(t: TestContext, overrides: Partial<Config> = {}): Promise<Audited> {
  const app = await startApp(t, overrides);
  const { databasePath } = app.config;
  const admin = presenting(insertCertificate(databasePath, { isAdmin: true }).fingerprint);
  const ask: Audited['ask'] = async (query, headers = admin) => {
    const response = await app.request(`/audit${query}`, { headers });
    return { status: response.status, headers: response.headers, json: await response.json() as Record<string, unknown> };
  };
  return {
    app,
    ask,
    ids: async (query) => {
      const { status, json } = await ask(query);
      assert.equal(status, 200, JSON.stringify(json));
      return { ids: (json['entries'] as { id: number }[]).map(({ id }) => id), total: json['total'] };
    },
    insert: (entries) => {
      const db = new DatabaseSync(databasePath, { timeout: 5000 });
      const insert = db.prepare(`
        INSERT INTO audit (time, event, outcome, client_id, client_ip, details)
        VALUES (:time, :event, :outcome, :clientId, '192.0.2.1', '{"turn":1}')`);
      db.exec('BEGIN IMMEDIATE');
      for (const [turn, entry] of entries.entries()) {
        insert.run({ time: CREATED_AT + turn, event: 'cert_issued', outcome: 'success', clientId: null, ...entry });
      }
      db.exec('COMMIT');
      db.close();
    },
  };
}

function many(count: number): object[] {
  return Array.from({ length: count }, () => ({}));
}

test('GET /audit: newest first, with exactly the decided members', async (t) => {
  const { ask, insert } = await startAudited(t);
  const clientId = newFingerprint();
  insert([{}, { event: 'auth_failure', outcome: 'failure', clientId }]);
  const { status, json, headers } = await ask('');
  assert.deepEqual([status, headers.get('content-type')], [200, 'application/json']);
  assert.deepEqual(json, {
    entries: [
      {
        id: 2, time: '2026-01-31T12:00:01Z', event: 'auth_failure', outcome: 'failure', client_id: clientId, client_ip: '192.0.2.1',
        details: { turn: 1 },
      },
      {
        id: 1, time: '2026-01-31T12:00:00Z', event: 'cert_issued', outcome: 'success', client_id: null, client_ip: '192.0.2.1',
        details: { turn: 1 },
      },
    ],
    total: 2, limit: 100, offset: 0,
  });
});

test('GET /audit: for the admin only, whatever is asked', async (t) => {
  const { app, ask } = await startAudited(t);
  const trusted = insertCertificate(app.config.databasePath).fingerprint;
  for (const query of ['', '?limit=x']) {
    assertError(await ask(query, {}), 401, 'authentication required', { hint: 'present a client certificate' });
    for (const fingerprint of [trusted, newFingerprint()]) {
      assertError(await ask(query, presenting(fingerprint)), 403, 'admin access required');
    }
  }
});

test('GET /audit: limit and offset page through, at most 500 at a time', async (t) => {
  const { ask, ids, insert } = await startAudited(t);
  insert(many(502));
  const every = Array.from({ length: 502 }, (_, turn) => 502 - turn);
  for (const [query, limit, offset] of [
    ['', 100, 0], ['?limit=0', 1, 0], ['?limit=1', 1, 0], ['?limit=2', 2, 0], ['?limit=-5', 1, 0],
    ['?limit=499', 499, 0], ['?limit=500', 500, 0], ['?limit=501', 500, 0], ['?limit=500&offset=1', 500, 1], ['?offset=-1', 100, 0],
    ['?offset=501', 100, 501], ['?offset=502', 100, 502], [`?offset=${'9'.repeat(20)}`, 100, Number.MAX_SAFE_INTEGER],
  ] as const) {
    assert.deepEqual(await ids(query), { ids: every.slice(offset, offset + limit), total: 502 }, query);
    const { json } = await ask(query);
    assert.deepEqual([json['limit'], json['offset']], [limit, offset], query);
  }
});

test('GET /audit: each filter alone and all together; times are exclusive', async (t) => {
  const { ids, insert } = await startAudited(t);
  const [one, other] = [newFingerprint(), newFingerprint()];
  insert([
    { clientId: one }, { event: 'auth_failure', outcome: 'failure', clientId: one }, { event: 'cert_revoked', clientId: other },
    { event: 'auth_failure', outcome: 'failure', clientId: other }, {},
  ]);
  for (const [query, expected] of [
    ['?event=auth_failure', [4, 2]], ['?event=cert_issued', [5, 1]],
    ['?event=AUTH_FAILURE', []], ['?event=auth*', []], ['?event=', []],
    ['?outcome=failure', [4, 2]], ['?outcome=success', [5, 3, 1]], ['?outcome=other', []],
    [`?client_id=${one}`, [2, 1]], [`?client_id=${other}`, [4, 3]], [`?client_id=${one.slice(0, 12)}`, []],
    // The fingerprint in upper case with colons, as other programs write it.
    [`?client_id=${one.toUpperCase().replace(/..(?=.)/g, '$&:')}`, [2, 1]],
    [`?after=${CREATED_AT}`, [5, 4, 3, 2]], [`?after=${CREATED_AT + 3}`, [5]], [`?after=${CREATED_AT + 4}`, []],
    [`?before=${CREATED_AT}`, []], [`?before=${CREATED_AT + 1}`, [1]], [`?after=${CREATED_AT}&before=${CREATED_AT + 2}`, [2]],
    [`?event=auth_failure&outcome=failure&client_id=${other}&after=${CREATED_AT + 2}&before=${CREATED_AT + 4}`, [4]],
    [`?event=auth_failure&outcome=success`, []],
  ] as const) {
    assert.deepEqual(await ids(query), { ids: expected, total: expected.length }, query);
  }
  assert.deepEqual(await ids('?outcome=success&limit=1&offset=1'), { ids: [3], total: 3 });
});

test('GET /audit: entries of one second come by id; a parameter that is wrong or given twice is 400', async (t) => {
  const { ask, ids, insert } = await startAudited(t);
  insert([{ time: CREATED_AT }, { time: CREATED_AT }, { time: CREATED_AT - 1 }, { time: CREATED_AT }]);
  assert.deepEqual((await ids('')).ids, [4, 2, 1, 3]);
  for (const name of ['limit', 'offset', 'after', 'before']) {
    assertError(await ask(`?${name}=x`), 400, 'invalid query parameter', { hint: `${name} must be an integer`, parameter: name });
  }
  for (const name of ['limit', 'event', 'outcome', 'client_id']) {
    assert.equal((await ask(`?${name}=1&${name}=1`)).status, 400, name);
  }
});

test('audit log: what is older than the retention is pruned, however much it is, and ids are not used again', async (t) => {
  const { app, ids, insert } = await startAudited(t, { auditRetentionSeconds: 1000 });
  // More than one step of the cleanup removes.
  insert(many(2500).map(() => ({ time: CREATED_AT - 5000 })));
  insert([-1001, -1000, -999, 0].map((age) => ({ time: CREATED_AT + age })));
  await app.app.cleanup.run('audit log');
  assert.deepEqual(await ids(''), { ids: [2504, 2503], total: 2 });
  app.clock.advance(1000_000);
  await app.app.cleanup.run('audit log');
  assert.equal(selectValue(app.config.databasePath, 'SELECT count(*) FROM audit'), 0);
  insert([{}]);
  assert.deepEqual((await ids('')).ids, [2505]);
});
