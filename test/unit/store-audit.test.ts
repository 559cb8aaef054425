// The audit log in the store: what is recorded comes back, in order, filtered, and is pruned a bounded step at a time.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { auditLookups, auditTailLookups } from '../../src/store/records.ts';
import type { AuditEvent, AuditFilter } from '../../src/store/store.ts';
import { CREATED_AT, openTestStore } from '../support/store.ts';
import { testStores } from '../support/stores.ts';

const EVERYTHING: AuditFilter = {
  event: null, outcome: null, clientId: null, after: Number.MIN_SAFE_INTEGER, before: Number.MAX_SAFE_INTEGER,
};
const PAGE = { limit: 100, offset: 0 };

function eventAt(time: number, given: Partial<AuditEvent> = {}): AuditEvent {
  return { time, event: 'cert_issued', outcome: 'success', clientId: null, clientIp: null, details: {}, ...given };
}

testStores('record and list: every member comes back as it was, after a restart too', async (opened) => {
  const details = { text: 'a "quoted" \u00e9 \u{1f511}', number: 1.5, flag: false, nothing: null };
  const event = eventAt(CREATED_AT, { outcome: 'failure', clientId: 'a'.repeat(40), clientIp: '2001:db8::1', details });
  await opened.store.run('recordAudit', event);
  const expected = { items: [{ ...event, id: 1 }], total: 1 };
  assert.deepEqual(await opened.store.read.listAudit(EVERYTHING, PAGE), expected);
  assert.deepEqual(await (await opened.reopen()).read.listAudit(EVERYTHING, PAGE), expected);
});

testStores('list: newest first by time, then by id; values are compared and never run', async ({ store }) => {
  for (const time of [20, 10, 20, 30]) await store.run('recordAudit', eventAt(time));
  const idsOf = async (filter: Partial<AuditFilter>): Promise<number[]> =>
    (await store.read.listAudit({ ...EVERYTHING, ...filter }, PAGE)).items.map(({ id }) => id);
  assert.deepEqual(await idsOf({}), [4, 3, 1, 2]);
  assert.deepEqual(await idsOf({ after: 10, before: 30 }), [3, 1]);
  for (const event of ["' OR 1=1 --", '%', '*', '']) assert.deepEqual(await idsOf({ event }), []);
});

testStores('record and list: a text that looks like a blob of SQL is a text, stored and asked for', async ({ store }) => {
  const texts = ["x'41'", "X'4142'", "x'4'", "x''", 'A', "x'41"];
  for (const event of texts) await store.run('recordAudit', eventAt(CREATED_AT, { event, clientIp: event }));
  for (const [index, event] of texts.entries()) {
    const { items } = await store.read.listAudit({ ...EVERYTHING, event }, PAGE);
    assert.deepEqual(items, [{ ...eventAt(CREATED_AT, { event, clientIp: event }), id: index + 1 }]);
  }
});

testStores('removeUntil: the oldest first, at most so many, up to and with that second', async ({ store }) => {
  for (const time of [30, 10, 20, 40]) await store.run('recordAudit', eventAt(time));
  const times = async (): Promise<number[]> => (await store.read.listAudit(EVERYTHING, PAGE)).items.map(({ time }) => time);
  assert.equal(await store.run('removeOldAudit', { untilSeconds: 9, limit: 10 }), 0);
  assert.equal(await store.run('removeOldAudit', { untilSeconds: 30, limit: 2 }), 2);
  assert.deepEqual(await times(), [40, 30]);
  assert.equal(await store.run('removeOldAudit', { untilSeconds: 29, limit: 2 }), 0);
  assert.equal(await store.run('removeOldAudit', { untilSeconds: 30, limit: 2 }), 1);
  assert.deepEqual(await times(), [40]);
});

testStores('record: of many at once each is there, once', async ({ store }) => {
  await Promise.all(Array.from({ length: 100 }, (_, turn) => store.run('recordAudit', eventAt(turn, { details: { turn } }))));
  const { items, total } = await store.read.listAudit(EVERYTHING, PAGE);
  assert.equal(total, 100);
  assert.deepEqual(items.map(({ details }) => details['turn']), Array.from({ length: 100 }, (_, turn) => 99 - turn));
});

test('nthAuditedAt: when the last of so many of the newest was written, to the entry; nothing if there are fewer', async (t) => {
  const { path, store } = await openTestStore(t);
  for (const time of [10, 40, 20, 30]) await store.run('recordAudit', eventAt(time));
  using db = new DatabaseSync(path);
  const { nthAuditedAt } = auditLookups(db);
  assert.deepEqual([1, 2, 3, 4, 5].map((rows) => nthAuditedAt(EVERYTHING, rows)), [40, 30, 20, 10, undefined]);
  const between = { ...EVERYTHING, after: 10, before: 40, event: 'of no entry' };
  assert.deepEqual([1, 2, 3].map((rows) => nthAuditedAt(between, rows)), [30, 20, undefined]);
});

test('auditAfter: up to where it has looked, which is further than what the filter lets through', async (t) => {
  const { path, store } = await openTestStore(t);
  using db = new DatabaseSync(path);
  const { auditAfter } = auditTailLookups(db);
  const look = (afterId: number, limit: number, event: string | null = null) => {
    const { entries, untilId } = auditAfter(afterId, { ...EVERYTHING, event }, limit);
    return [untilId, ...entries.map(({ id }) => id)];
  };
  assert.deepEqual(look(0, 2), [0]);
  for (const event of ['a', 'a', 'b', 'a', 'b']) await store.run('recordAudit', eventAt(CREATED_AT, { event }));
  assert.deepEqual([look(0, 2), look(2, 2), look(4, 2), look(5, 2)], [[2, 1, 2], [4, 3, 4], [5, 5], [5]]);
  assert.deepEqual([look(0, 2, 'a'), look(0, 3, 'a'), look(0, 4, 'a')], [[2, 1, 2], [4, 1, 2, 4], [5, 1, 2, 4]]);
});

test('list: an entry whose details a disk has changed is shown as that, and keeps no other from being shown', async (t) => {
  const { path, store } = await openTestStore(t);
  for (const time of [1, 2, 3]) await store.run('recordAudit', eventAt(time, { details: { time } }));
  using db = new DatabaseSync(path, { timeout: 5000 });
  db.exec(`UPDATE audit SET details = CASE id WHEN 1 THEN 'null' ELSE ';"time":2}' END WHERE id < 3`);
  const { items } = await store.read.listAudit(EVERYTHING, PAGE);
  assert.deepEqual(items.map(({ details }) => details), [{ time: 3 }, { damaged: ';"time":2}' }, { damaged: 'null' }]);
});
