// For a node of rqlite whose disk is small enough to be full for a while: then the node goes on without the commands
// that it could not carry out.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { RqliteNode, RqliteNodes } from './rqlite.ts';

/** A node makes a snapshot after this many commands, and keeps somewhat more of them. */
const SNAPSHOT_ENTRIES = 512;

/** For all nodes. */
export const SMALL_NODE_FLAGS: readonly string[] = [
  '-raft-timeout', '500ms', '-raft-election-timeout', '500ms',
  '-raft-snap', `${SNAPSHOT_ENTRIES}`, '-raft-snap-int', '500ms',
];

/** Writes until the disk takes not one byte more. */
export function fillDisk(path: string): void {
  for (const bytes of [2 ** 20, 4096, 1]) {
    const piece = Buffer.alloc(bytes, 'full');
    assert.throws(() => {
      for (;;) writeFileSync(path, piece, { flag: 'a' });
    }, { code: 'ENOSPC' });
  }
}

interface RaftStatus {
  readonly last_log_index: number;
  readonly last_snapshot_index: number;
  readonly state: string;
  readonly term: number;
}

/** The state of the node's log, as the node itself reports it. */
export async function raftOf(node: RqliteNode): Promise<RaftStatus> {
  return (JSON.parse((await node.ask('/status')).body) as { store: { raft: RaftStatus } }).store.raft;
}

/** The term in which it leads: while that is the same, no other node has led. Undefined when it does not lead. */
export async function termLedBy(node: RqliteNode): Promise<number | undefined> {
  const { state, term } = await raftOf(node);
  return state === 'Leader' ? term : undefined;
}

const MOST_TURNS = 1000;

/** Sends commands until the node has cut its log and will not soon again: the log has room then, the database none. */
export async function fillLog(leader: RqliteNode, node: RqliteNode): Promise<void> {
  const text = 'x'.repeat(2000);
  for (let turn = 0; turn < MOST_TURNS; turn += 1) {
    const change = ["INSERT OR REPLACE INTO removals SELECT * FROM removals WHERE ? = ''", text];
    await Promise.all(Array.from({ length: 16 }, () => leader.ask('/db/execute?redirect', [change])));
    const { last_log_index: last, last_snapshot_index: cut } = await raftOf(node);
    if (cut >= 3 * SNAPSHOT_ENTRIES && last - cut <= SNAPSHOT_ENTRIES / 4) return;
  }
  throw new Error('the log of the node is not cut');
}

/** How many commands the node itself has carried out. */
export async function commandsOf(node: RqliteNode): Promise<number> {
  const { body } = await node.ask('/db/query?level=none', ['SELECT max(rowid) FROM claims']);
  return Number((JSON.parse(body) as { results: { values: number[][] }[] }).results[0]?.values[0]?.[0]);
}

/** Restarts the leader, so that another node leads. */
export async function restartLeader({ findLeader }: Pick<RqliteNodes, 'findLeader'>): Promise<void> {
  const leader = await findLeader();
  await leader.kill();
  await findLeader();
  await leader.start();
}

const CAUGHT_UP_MS = 10_000;

/** Restarts whichever other node leads, until this node leads. */
export async function haveLead({ findLeader }: Pick<RqliteNodes, 'findLeader'>, node: RqliteNode): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) {
    const leader = await findLeader();
    if (leader === node) return;
    const { last_log_index: newest } = await raftOf(leader);
    // No node votes for one whose log is behind, so this waits; in vain if the leader sends it nothing any more.
    const isBehind = async (): Promise<boolean> => (await raftOf(node)).last_log_index < newest;
    for (let waitedMs = 0; waitedMs < CAUGHT_UP_MS && (await isBehind()); waitedMs += 100) await pause(100);
    await restartLeader({ findLeader });
  }
  throw new Error('the node does not come to lead');
}
