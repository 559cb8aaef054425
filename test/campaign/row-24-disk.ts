// Row 24d: three hosts over three nodes under HTTP load, while the disk of one node, which follows or leads, is full
// for some seconds. It lacks the changes it could not carry out, and may lead like that. Kills are in row-24-kills.ts.

import { readdirSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { damagesDatabases, type RqliteNode, rqliteMissing } from '../support/rqlite.ts';
import {
  commandsOf, fillDisk, fillLog, haveLead, raftOf, restartLeader, SMALL_NODE_FLAGS, termLedBy,
} from '../support/small-node.ts';
import { type Cluster, withCluster } from './cluster.ts';
import { createAuthority } from './governed.ts';
import { acknowledgedMore } from './kills.ts';
import { newWorld, workOn, type World } from './load.ts';
import { mountObstacle, onDisk } from './mounts.ts';
import { examine, expectAllStored } from './row-24-kills.ts';
import type { Row, Unit } from './row.ts';

type Fault = 'follower full' | 'leader full' | 'follower full, then leading';

const QUICK: readonly Fault[] = ['leader full', 'follower full, then leading'];
const FAULTS: readonly Fault[] = ['follower full', ...QUICK];
const ROUNDS = 4;

/** To each host. */
const CONNECTIONS = 4;

const FEWEST_ACKNOWLEDGED = 30;

const SHORTEST_FULL_MS = 1000;

/** A leader may never answer that it is full: when its log has no room either, it stops leading. */
const REFUSES_WITHIN_MS = 20_000;

/** Longer than a host goes on repeating a request that was not answered. */
const LONGEST_FULL_MS = { quick: 2000, full: 14_000 };

/** A host checks once a second how far each node has come, and at once after a full disk. */
const LONGEST_FREE_MS = { quick: 500, full: 3000 };

/** By then each host has checked the nodes, even when everything runs on a core or two. */
const LOOKED_WITHIN_MS = 3000;

const LEAD_TRIES = 3;

const TAKES_PART_WITHIN_MS = 30_000;

/** Under this load the files of a node take 80 MiB, most of it the log; on a smaller disk it would be full for good. */
const DISK_MIB = 192;

export const clusterDiskRow: Row = {
  name: '24d',
  title: 'three hosts over three nodes under HTTP load, while the disk of one node is full',
  target: '200 times',
  units: 50,
  least: ['acknowledged', 'lacked something', 'led with what it lacked'],
  bars: { 'hostSilentMs beside a full follower': 5000, 'hostSilentMs after a restart': 5000 },
  obstacle: (effort) => mountObstacle() ?? rqliteMissing() ?? (
    effort === 'full' && damagesDatabases() ? 'this rqlited damages databases: put one since 8.30.5 into .runtime/rqlite-VERSION' : undefined
  ),
  run: (unit) => onDisk(join(unit.folder, 'disk'), DISK_MIB, (disk) => (
    withCluster(unit, {}, (cluster) => roundsOn(unit, cluster, disk), { folders: [disk], flags: SMALL_NODE_FLAGS })
  )),
};

/** The node with the small disk, and one of the others. */
type Pair = readonly [small: RqliteNode, other: RqliteNode];

interface Site {
  readonly unit: Unit;
  readonly world: World;
  readonly cluster: Cluster;
  readonly pair: Pair;
  readonly disk: string;
  readonly round: number;
  /** Whether the node whose disk was full has led in this unit while it lacked changes. */
  readonly seen: { hasLed: boolean };
}

async function roundsOn(unit: Unit, cluster: Cluster, disk: string): Promise<void> {
  // The other nodes may have carried out a change for which the leader has no room.
  const world = newWorld({ isLate: true, unsettledMs: LOOKED_WITHIN_MS });
  const pair = cluster.nodes as unknown as Pair;
  await createAuthority(cluster.hosts[0]!);
  const full = Array.from({ length: ROUNDS }, (_, round) => FAULTS[(unit.seed + round) % FAULTS.length]!);
  const faults = unit.effort === 'quick' ? QUICK : full;
  const seen = { hasLed: false };
  // On a busy machine another node may lead first each time: then as many rounds again try it, until it leads.
  for (let round = 0; round < (seen.hasLed ? 1 : 2) * faults.length; round += 1) {
    if (unit.isHopeless()) break;
    const fault = faults[round] ?? 'follower full, then leading';
    const site = { unit, world, cluster, pair, disk, round, seen };
    await workThrough(site, fault);
    // With a damaged node as the leader, all that follows would be refused and tell nothing more.
    if (!(await areSound(unit, cluster))) break;
    // A node that has healed must be as good as the others, so it has to lead when it is asked.
    if (unit.effort === 'quick' || unit.random.oneIn(2)) await haveLead(cluster, pair[0]);
    await expectAllStored(unit, world, cluster.hosts, round);
    await examine(unit, world, cluster);
    unit.count(fault);
  }
  unit.count('acknowledged', world.acknowledged);
}

/** All hosts are worked on before, during and after the fault. */
async function workThrough(site: Site, fault: Fault): Promise<void> {
  const { unit, world, cluster, pair: [small, other], round } = site;
  await haveLead(cluster, fault === 'leader full' ? small : other);
  let isOver = false;
  const works = cluster.hosts.map((host) => {
    const working = { round, connections: CONNECTIONS, isPatient: true, isOver: () => isOver || !host.isAlive() };
    return workOn(unit, world, host.port(), working);
  });
  // The await at the end reports a failure; until then it must not count as unhandled.
  for (const work of works) work.catch(() => undefined);
  try {
    await acknowledgedMore(unit, world, FEWEST_ACKNOWLEDGED);
    await fillAndFree(site, fault);
    await restart(site);
    await acknowledgedMore(unit, world, FEWEST_ACKNOWLEDGED);
  } finally {
    isOver = true;
    await Promise.allSettled(works);
  }
  await Promise.all(works);
  // The load has ended, and this node must come to the newest change that any node has by now.
  if (!(await comesTo(small, await newestOf(cluster)))) {
    unit.lose('a node that was restarted still lacks changes', await evidenceOf(cluster, site.disk));
  }
}

async function fillAndFree(site: Site, fault: Fault): Promise<void> {
  const { unit, world, cluster, pair: [small, other], disk, round } = site;
  await fillLog(fault === 'leader full' ? small : other, small);
  const filler = join(disk, 'filler');
  const begunMs = performance.now();
  const endMs = begunMs + unit.random.between(SHORTEST_FULL_MS, LONGEST_FULL_MS[unit.effort]);
  const isAwaited = fault === 'leader full' ? refusal(world, begunMs + REFUSES_WITHIN_MS) : () => false;
  try {
    fillDisk(filler);
    if (fault !== 'leader full') {
      await expectAllStored(unit, world, cluster.hosts, round);
      unit.most('hostSilentMs beside a full follower', performance.now() - begunMs);
      await acknowledgedMore(unit, world, FEWEST_ACKNOWLEDGED);
    }
    // This also fills the room that a node frees, for example when it cuts its log.
    for (; performance.now() < endMs || isAwaited(); await pause(50)) fillDisk(filler);
  } finally {
    rmSync(filler, { force: true });
  }
  await pause(unit.random.below(LONGEST_FREE_MS[unit.effort]));
  if (await isLacking(small, other)) unit.count('lacked something');
  if (fault !== 'follower full') await leadOn(site);
}

/** The result says whether to wait further for a 507: until one has come, or that moment has. */
function refusal(world: World, untilMs: number): () => boolean {
  const before = world.refused;
  return () => world.refused === before && performance.now() < untilMs;
}

/** Has the node lead for a while although it lacks changes: hosts must notice, and acknowledge nothing. */
async function leadOn({ unit, world, cluster, pair: [small, other], seen }: Site): Promise<void> {
  // On a busy machine another node may become the leader meanwhile.
  for (let turn = 0; turn < LEAD_TRIES; turn += 1) {
    await haveLead(cluster, small);
    const term = await termLedBy(small);
    await pause(LOOKED_WITHIN_MS);
    const before = world.acknowledged;
    await pause(unit.random.below(LONGEST_FREE_MS[unit.effort]));
    const more = world.acknowledged - before;
    if (!(await isLacking(small, other))) return;
    if (term === undefined || (await termLedBy(small)) !== term) continue;
    unit.count('led with what it lacked');
    seen.hasLed = true;
    if (more > 0) unit.lose(`${more} changes were acknowledged while a node led that lacks some`);
    return;
  }
}

/** As scripts/deploy/cluster says: the node takes what it lacks from its log, unless it has made a snapshot since. */
async function restart({ unit, world, cluster, pair: [small, other], disk, round }: Site): Promise<void> {
  const begunMs = performance.now();
  await small.kill();
  let until = 'after a restart';
  // The others may have to elect a leader.
  const stored = expectAllStored(unit, world, cluster.hosts, round).then(() => {
    unit.most(`hostSilentMs ${until}`, performance.now() - begunMs);
  });
  stored.catch(() => undefined);
  for (const isAnew of unit.random.oneIn(4) ? [true] : [false, true]) {
    await small.kill();
    if (isAnew) for (const name of readdirSync(disk)) rmSync(join(disk, name), { recursive: true });
    await small.start();
    const wanted = await commandsOf(other);
    let hasCome = await comesTo(small, wanted);
    if (!hasCome && !(await isSentAnything(small))) {
      until = 'until the leader was restarted, which sent nothing any more';
      await restartLeader(cluster);
      unit.count('leader restarted, which sent nothing any more');
      hasCome = await comesTo(small, wanted);
    }
    if (hasCome) {
      unit.count(isAnew ? 'joined anew' : 'restarted');
      return stored;
    }
  }
  const evidence = await evidenceOf(cluster, disk);
  unit.lose('a node that was started on an empty disk does not take what the others have', evidence);
  return stored;
}

/**
 * Under load there is always something to send. A leader to which a node has refused something, as on a full disk, may
 * tell it only that it leads, for as long as it leads: https://github.com/hashicorp/raft/issues/612.
 */
async function isSentAnything(node: RqliteNode): Promise<boolean> {
  const before = (await raftOf(node)).last_log_index;
  await pause(1000);
  return (await raftOf(node)).last_log_index > before;
}

/** Whether SQLite finds no fault with the database of each node, as that node has it. */
async function areSound(unit: Unit, { nodes }: Cluster): Promise<boolean> {
  const found = await Promise.all(nodes.map(async (node) => {
    const { body } = await node.ask('/db/query?level=none', ['PRAGMA quick_check(3)']);
    return body.includes('[["ok"]]') ? [] : [{ node: nodes.indexOf(node), body, said: node.said() }];
  }));
  for (const one of found.flat()) {
    if (damagesDatabases()) unit.count('damaged, as rqlite before 8.30.5 does');
    else unit.lose('the database of a node is damaged', one);
  }
  return found.flat().length === 0;
}

/** What may show why a node does not come as far as the others. */
async function evidenceOf({ nodes }: Cluster, disk: string): Promise<unknown> {
  const { bavail, bsize, blocks } = statfsSync(disk);
  const states = await Promise.all(nodes.map(async (node) => {
    const [raft, commands] = await Promise.all([raftOf(node), commandsOf(node)].map((one) => one.catch(String)));
    return { raft, commands };
  }));
  return { leftBytes: bavail * bsize, diskBytes: blocks * bsize, states };
}

/** Whether the small node, even after a second, has not carried out all that the other has carried out by now. */
async function isLacking(small: RqliteNode, other: RqliteNode): Promise<boolean> {
  return !(await comesTo(small, await commandsOf(other), 1000));
}

async function comesTo(node: RqliteNode, commands: number, withinMs = TAKES_PART_WITHIN_MS): Promise<boolean> {
  for (const startMs = performance.now(); performance.now() - startMs < withinMs; await pause(50)) {
    // While a node has no tables, there is no such number.
    if (await commandsOf(node).catch(() => 0) >= commands) return true;
  }
  return false;
}

async function newestOf({ nodes }: Cluster): Promise<number> {
  return Math.max(...await Promise.all(nodes.map((node) => commandsOf(node).catch(() => 0))));
}
