// A node whose disk is full for a moment skips changes without a word (rqlite 8.26), and may lead later. Then nothing is
// answered that is not so any more, until that node has what it lacks.

import assert from 'node:assert/strict';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { ask, startCluster } from '../support/cluster.ts';
import type { RqliteNode } from '../support/rqlite.ts';
import { smallFileSystem } from '../support/small-file-system.ts';

/** Until the disk takes no byte more. */
function fillDisk(path: string): void {
  for (const bytes of [2 ** 20, 4096, 1]) {
    const piece = Buffer.alloc(bytes, 'full');
    assert.throws(() => {
      for (;;) writeFileSync(path, piece, { flag: 'a' });
    }, { code: 'ENOSPC' });
  }
}

interface Status {
  readonly store: { readonly raft: { readonly last_log_index: number; readonly last_snapshot_index: number } };
}

/** Until its log was cut, so that it has room of its own, which the database has not; and is not to be soon again. */
async function fillLog(leader: RqliteNode, node: RqliteNode): Promise<void> {
  const text = 'x'.repeat(2000);
  for (let [last, cut] = [0, 0]; cut < 3 * SNAPSHOT_ENTRIES || last - cut > SNAPSHOT_ENTRIES / 4;) {
    const change = ["INSERT OR REPLACE INTO removals SELECT * FROM removals WHERE ? = ''", text];
    await Promise.all(Array.from({ length: 16 }, () => leader.ask('/db/execute', [change])));
    const { store: { raft } } = JSON.parse((await node.ask('/status')).body) as Status;
    [last, cut] = [raft.last_log_index, raft.last_snapshot_index];
  }
}

/** How many commands a node has carried out, by itself. */
async function commandsOf(node: RqliteNode): Promise<number> {
  const { body } = await node.ask('/db/query?level=none', ['SELECT max(rowid) FROM claims']);
  return Number((JSON.parse(body) as { results: { values: number[][] }[] }).results[0]?.values[0]?.[0]);
}

/** A snapshot is made after so many, and somewhat more are kept. */
const SNAPSHOT_ENTRIES = 512;

/** Three nodes, of which the first has a small disk. */
async function startWithSmall(t: TestContext) {
  const folder = smallFileSystem(t, 64);
  if (folder === undefined) return t.skip('this user may not mount a file system');
  const snapshots = ['-raft-snap', `${SNAPSHOT_ENTRIES}`, '-raft-snap-int', '500ms'];
  const flags = ['-raft-timeout', '500ms', '-raft-election-timeout', '500ms', ...snapshots];
  const cluster = await startCluster(t, { hosts: 2, nodes: { flags, folders: [folder] } });
  if (cluster === undefined) return undefined;
  const { hosts: [host, second], nodes: [small, ...others] } = cluster;
  assert.ok(host !== undefined && second !== undefined && small !== undefined);
  const store = async (burns: boolean, headers: Record<string, string> = {}): Promise<string> => {
    const all = burns ? { ...headers, 'X-Burn-After-Read': '1' } : headers;
    // More than the pages that are there have room for.
    const { json } = await ask(host, 201, 'POST /', { body: `${Math.random()} `.repeat(500), headers: all });
    return String(json['id']);
  };
  const statusOf = async (path: string, init: RequestInit = {}, on = host): Promise<number> => {
    const answer = await fetch(`${on.url}${path}`, init);
    await answer.arrayBuffer();
    return answer.status;
  };
  /** Others end, and come back, until this one leads. */
  const haveLead = async (node: RqliteNode): Promise<void> => {
    for (let turn = 0; turn < 20; turn += 1) {
      const leader = await cluster.findLeader();
      if (leader === node) return;
      await leader.kill();
      await cluster.findLeader();
      await leader.start();
    }
    assert.fail('it does not come to lead');
  };
  return { cluster, folder, host, second, small, others, store, statusOf, haveLead };
}

test('cluster: a node that lacks changes since its disk was full answers nothing as their leader, until it was restarted', async (t) => {
  const started = await startWithSmall(t);
  if (started === undefined) return;
  const { cluster, folder, small, others, store, statusOf, haveLead } = started;
  await haveLead(others[0]!);
  const [kept, burned] = [await store(false), await store(true)];

  await fillLog(others[0]!, small);
  fillDisk(join(folder, 'filler'));
  const missed = [];
  for (let count = 0; count < 50; count += 1) missed.push(await store(false));
  assert.equal(await statusOf(`/${burned}/raw`), 200);
  rmSync(join(folder, 'filler'));
  await store(false);
  await pause(1000);
  const [here, there] = [await commandsOf(small), await commandsOf(others[0]!)];
  t.diagnostic(`the node has ${here} of ${there} commands`);
  assert.ok(here < there, 'the disk was not full for this node');

  await haveLead(small);
  // By the newest state that this host knows, whatever it tries, and how often.
  for (let turn = 0; turn < 10; turn += 1) {
    const statuses: readonly number[] = [
      await statusOf('/health'), await statusOf(`/${kept}/raw`), await statusOf(`/${missed.at(-1)}/raw`),
      await statusOf(`/${burned}/raw`), await statusOf('/', { method: 'POST', body: 'x' }),
    ];
    assert.deepEqual(statuses, [503, 503, 503, 503, 503]);
  }
  // A host that starts knows by the other nodes.
  await assert.rejects(cluster.addHost());

  await small.kill();
  await small.start();
  await haveLead(small);
  for (const id of [kept, ...missed]) assert.equal(await statusOf(`/${id}/raw`), 200);
  assert.deepEqual([await statusOf(`/${burned}/raw`), await statusOf('/health')], [404, 200]);
  await store(false);
  assert.ok(await commandsOf(small) > there);

  // As README.md of scripts/deploy/cluster has it, for a node that has made a snapshot since.
  await small.kill();
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
  await small.start();
  for (let turn = 0; (await commandsOf(small).catch(() => 0)) <= there; turn += 1) {
    assert.ok(turn < 300, 'it does not take what the others have');
    await pause(100);
  }
  await haveLead(small);
  for (const id of [kept, ...missed]) assert.equal(await statusOf(`/${id}/raw`), 200);
  assert.deepEqual([await statusOf(`/${burned}/raw`), await statusOf('/health')], [404, 200]);
});

test('cluster: a leader that could not carry out something for its full disk is obeyed no more, though it leads on', async (t) => {
  const started = await startWithSmall(t);
  if (started === undefined) return;
  const { cluster, folder, host, second, small, others, store, statusOf, haveLead } = started;
  await haveLead(small);
  const headers = { 'X-SSL-Client-SHA1': 'ab'.repeat(20) };
  const ids: string[] = [];
  for (let count = 0; count < 4; count += 1) ids.push(await store(false, headers));
  await fillLog(small, small);
  fillDisk(join(folder, 'filler'));
  // The others carry it out. This host asks them; another looks once a second.
  assert.equal(await statusOf(`/${ids[0]}`, { method: 'DELETE', headers }), 507);
  rmSync(join(folder, 'filler'));
  const change = { method: 'PUT', headers, body: 'another content' };
  for (const id of ids) assert.equal(await statusOf(`/${id}`, change), 503);
  await pause(1500);
  const [here, there] = [await commandsOf(small), await commandsOf(others[0]!)];
  t.diagnostic(`the node has ${here} of ${there} commands`);
  assert.ok(here < there, 'the disk was not full for this node');
  assert.equal(await cluster.findLeader(), small);

  // Once it would have been acknowledged here, and lost with the next leader: to that, the first paste is gone.
  for (const on of [host, second]) {
    for (const id of ids) assert.equal(await statusOf(`/${id}`, change, on), 503);
    assert.equal(await statusOf('/health', {}, on), 503);
  }
  await haveLead(others[0]!);
  for (const [index, id] of ids.entries()) assert.equal(await statusOf(`/${id}/raw`), index === 0 ? 404 : 200);
  await store(false);
  assert.equal(await statusOf('/health', {}, second), 200);
});
