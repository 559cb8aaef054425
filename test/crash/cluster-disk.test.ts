// A node whose disk is full for a moment skips changes without a word (rqlite 8.26), and may lead later. Then no host
// may give an answer that is out of date, until that node has what it lacks.

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { ask, startCluster } from '../support/cluster.ts';
import { smallFileSystem } from '../support/small-file-system.ts';
import { commandsOf, fillDisk, fillLog, haveLead, SMALL_NODE_FLAGS } from '../support/small-node.ts';

function writeHalfASnapshot(folder: string): void {
  const snapshot = join(folder, 'rsnapshots', '9-9999999-1795879472932');
  mkdirSync(snapshot, { recursive: true });
  writeFileSync(join(snapshot, 'meta.json'), '');
}

/** Three nodes, of which the first has a small disk. */
async function startWithSmall(t: TestContext) {
  const folder = smallFileSystem(t, 64);
  if (folder === undefined) return t.skip('this user may not mount a file system');
  const cluster = await startCluster(t, { hosts: 2, nodes: { flags: SMALL_NODE_FLAGS, folders: [folder] } });
  if (cluster === undefined) return undefined;
  const { hosts: [host, second], nodes: [small, ...others] } = cluster;
  assert.ok(host !== undefined && second !== undefined && small !== undefined);
  const store = async (burns: boolean, headers: Record<string, string> = {}): Promise<string> => {
    const all = burns ? { ...headers, 'X-Burn-After-Read': '1' } : headers;
    // More than fits into the pages that the database has.
    const { json } = await ask(host, 201, 'POST /', { body: `${Math.random()} `.repeat(500), headers: all });
    return String(json['id']);
  };
  const statusOf = async (path: string, init: RequestInit = {}, on = host): Promise<number> => {
    const answer = await fetch(`${on.url}${path}`, init);
    await answer.arrayBuffer();
    return answer.status;
  };
  return { cluster, folder, host, second, small, others, store, statusOf };
}

test('cluster: a node that lacks changes since its disk was full answers nothing as their leader, until it was restarted', async (t) => {
  const started = await startWithSmall(t);
  if (started === undefined) return;
  const { cluster, folder, small, others, store, statusOf } = started;
  await haveLead(cluster, others[0]!);
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

  await haveLead(cluster, small);
  // This host refuses by the newest state that it knows, whatever it tries, and how often.
  for (let turn = 0; turn < 10; turn += 1) {
    const statuses: readonly number[] = [
      await statusOf('/health'), await statusOf(`/${kept}/raw`), await statusOf(`/${missed.at(-1)}/raw`),
      await statusOf(`/${burned}/raw`), await statusOf('/', { method: 'POST', body: 'x' }),
    ];
    assert.deepEqual(statuses, [503, 503, 503, 503, 503]);
  }
  // A host that starts learns it from the other nodes.
  await assert.rejects(cluster.addHost());

  await small.kill();
  await small.start();
  await haveLead(cluster, small);
  for (const id of [kept, ...missed]) assert.equal(await statusOf(`/${id}/raw`), 200);
  assert.deepEqual([await statusOf(`/${burned}/raw`), await statusOf('/health')], [404, 200]);
  await store(false);
  assert.ok(await commandsOf(small) > there);

  // The folder is emptied, as README.md of scripts/deploy/cluster has it, for a node that has made a snapshot since.
  // For a node that a kill has left with half a snapshot, `start` empties it.
  for (const leave of [
    () => readdirSync(folder).forEach((name) => rmSync(join(folder, name), { recursive: true })),
    () => writeHalfASnapshot(folder),
  ]) {
    await small.kill();
    leave();
    await small.start();
    for (let turn = 0; (await commandsOf(small).catch(() => 0)) <= there; turn += 1) {
      assert.ok(turn < 300, 'it does not take what the others have');
      await pause(100);
    }
  }
  assert.match(small.said(), /failed to read meta for snapshot/);
  await haveLead(cluster, small);
  for (const id of [kept, ...missed]) assert.equal(await statusOf(`/${id}/raw`), 200);
  assert.deepEqual([await statusOf(`/${burned}/raw`), await statusOf('/health')], [404, 200]);
});

test('cluster: a leader that could not carry out something for its full disk is obeyed no more, though it leads on', async (t) => {
  const started = await startWithSmall(t);
  if (started === undefined) return;
  const { cluster, folder, host, second, small, others, store, statusOf } = started;
  await haveLead(cluster, small);
  const headers = { 'X-SSL-Client-SHA1': 'ab'.repeat(20) };
  const ids: string[] = [];
  for (let count = 0; count < 4; count += 1) ids.push(await store(false, headers));
  await fillLog(small, small);
  fillDisk(join(folder, 'filler'));
  // The other nodes carry it out. This host asks them; the other host looks once a second.
  assert.equal(await statusOf(`/${ids[0]}`, { method: 'DELETE', headers }), 507);
  rmSync(join(folder, 'filler'));
  const change = { method: 'PUT', headers, body: 'another content' };
  for (const id of ids) assert.equal(await statusOf(`/${id}`, change), 503);
  await pause(1500);
  const [here, there] = [await commandsOf(small), await commandsOf(others[0]!)];
  t.diagnostic(`the node has ${here} of ${there} commands`);
  assert.ok(here < there, 'the disk was not full for this node');
  assert.equal(await cluster.findLeader(), small);

  // Acknowledged here, a change would be lost with the next leader: to that one, the first paste is gone.
  for (const on of [host, second]) {
    for (const id of ids) assert.equal(await statusOf(`/${id}`, change, on), 503);
    assert.equal(await statusOf('/health', {}, on), 503);
  }
  await haveLead(cluster, others[0]!);
  for (const [index, id] of ids.entries()) assert.equal(await statusOf(`/${id}/raw`), index === 0 ? 404 : 200);
  await store(false);
  assert.equal(await statusOf('/health', {}, second), 200);
});
