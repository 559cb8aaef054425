// What a host does when what it took for true no longer is, and how it ends. The node is SQLite in this process.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openClusterStore } from '../../src/cluster/open.ts';
import { RUNNING_CLOCK } from '../support/app.ts';
import { type Asked, type Fault } from '../support/faulty-nodes.ts';
import { EVENT, isRead, isUnavailable, openStore, saying, startNode } from '../support/imitated-store.ts';
import { inlinePaste, newId, NO_TERMS, patternedBytes } from '../support/store.ts';

test('cluster: what is refused by what a node said without asking the others is planned again by what all say', async (t) => {
  const { store, behind, count } = await openStore(t);
  const { contentId, write } = store.contents.upload(newId());
  await write(patternedBytes(100));
  const paste = { ...inlinePaste(patternedBytes(100)), content: null, contentId };
  // Answers as a node gives them that has not heard of the upload yet.
  const isWeak = (asked: Asked): boolean => isRead(asked) && asked.path.includes('level=weak');
  const nothing = ({ body }: Asked): Fault => saying(...(JSON.parse(body) as []).map(() => ({ values: [['[]']] })));
  let old = 0;
  behind.choose = (asked) => (isWeak(asked) && (old += 1) > 0 ? nothing(asked) : undefined);
  assert.deepEqual(await store.pastes.create(paste, NO_TERMS), { refused: null });
  assert.ok(old > 0, 'nothing was asked that may be old');
  assert.deepEqual([count('pastes'), count('orphans')], [1, 0]);

  // By what all nodes say this upload is not there either, so the command is planned again, and then refused.
  const lost = { ...paste, id: newId(), contentId: newId() };
  await assert.rejects(store.pastes.create(lost, NO_TERMS), isUnavailable(/is not there, or not whole$/));
  assert.equal(count('pastes'), 1);
});

test('cluster: a host that ends beside nodes that answer nothing gives up what it asks sooner than otherwise', async (t) => {
  const { config, behind } = await startNode(t);
  // Later each look at the clock takes some time, so that nothing here depends on how fast this machine is.
  let passedMs = 0;
  let stepMs = 0;
  const clock = { ...RUNNING_CLOCK, monotonicMs: () => (passedMs += stepMs) };
  const store = await openClusterStore({ config, clock, log: () => {}, newId });
  behind.choose = () => ({ kind: 'replaced', status: 503, body: 'leader not found', isCarriedOut: false });
  stepMs = 100;
  const waiting = assert.rejects(store.run('recordAudit', EVENT), isUnavailable(/503 leader not found/));
  await store.close();
  await waiting;
  assert.ok(passedMs > 4500 && passedMs < 7500, `it ended after ${passedMs} ms`);
});

test('cluster: a host that has ended renews no lease of an upload that was under way', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { store, behind, logged, db } = await openStore(t);
  const { contentId, write } = store.contents.upload(newId());
  await write(patternedBytes(100));
  const isHeld = () => db.prepare('SELECT until FROM leases WHERE name = ?').get(contentId) !== undefined;
  assert.ok(isHeld());
  await store.close();
  assert.equal(isHeld(), false, 'others wait for it no more');
  const asked: string[] = [];
  behind.choose = ({ body }) => void asked.push(body);
  t.mock.timers.tick(15_000);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([asked, logged.map(({ event }) => event)], [[], ['opened']]);
});
