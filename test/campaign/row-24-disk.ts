// Row 24d: three hosts over three nodes under HTTP load, while the disk of one node, which follows or leads, is full
// for some seconds: it goes on without what it could not carry out, and may lead so. Kills are row-24-kills.ts.

import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type RqliteNode, rqliteMissing } from '../support/rqlite.ts';
import { commandsOf, fillDisk, fillLog, haveLead, SMALL_DISK_MIB, SMALL_NODE_FLAGS } from '../support/small-node.ts';
import { type Cluster, withCluster } from './cluster.ts';
import { createAuthority } from './governed.ts';
import { acknowledgedMore } from './kills.ts';
import { newWorld, workOn, type World } from './load.ts';
import { mountDisk, mountObstacle, unmount } from './mounts.ts';
import { examine, expectAllStored } from './row-24-kills.ts';
import type { Row, Unit } from './row.ts';

const FAULTS = ['follower full', 'leader full', 'follower full, then leading'] as const;
type Fault = (typeof FAULTS)[number];

const ROUNDS = { quick: 1, full: 4 };

/** Of each host. */
const CONNECTIONS = 4;

const FEWEST_ACKNOWLEDGED = 30;

/** Longer than a host asks again for what was not answered. */
const LONGEST_FULL_MS = 14_000;

/** A host looks once a second how far the nodes are, and at once where the disk was full. */
const LONGEST_FREE_MS = 3000;

const TAKES_PART_WITHIN_MS = 30_000;

export const clusterDiskRow: Row = {
  name: '24d',
  title: 'three hosts over three nodes under HTTP load, while the disk of one node is full',
  target: '200 times',
  units: 50,
  least: ['acknowledged', 'lacked something'],
  obstacle: () => mountObstacle() ?? rqliteMissing(),
  async run(unit) {
    const disk = join(unit.folder, 'disk');
    mkdirSync(disk);
    mountDisk(disk, `size=${SMALL_DISK_MIB}m`);
    try {
      const nodes = { folders: [disk], flags: SMALL_NODE_FLAGS };
      await withCluster(unit, {}, (cluster) => roundsOn(unit, cluster, disk), nodes);
    } finally {
      unmount(disk);
    }
  },
};

async function roundsOn(unit: Unit, cluster: Cluster, disk: string): Promise<void> {
  // What the leader has no room for, the others may have carried out.
  const world = newWorld({ isLate: true, saysNothing: [503, 507] });
  await createAuthority(cluster.hosts[0]!);
  for (let round = 0; round < ROUNDS[unit.effort] && !unit.isHopeless(); round += 1) {
    const fault = FAULTS[(unit.seed + round) % FAULTS.length]!;
    await workThrough(unit, world, cluster, { round, fault, disk });
    await expectAllStored(unit, world, cluster.hosts, round);
    await examine(unit, world, cluster);
    unit.count(fault);
  }
  unit.count('acknowledged', world.acknowledged);
}

interface Trial {
  readonly round: number;
  readonly fault: Fault;
  readonly disk: string;
}

async function workThrough(unit: Unit, world: World, cluster: Cluster, { round, fault, disk }: Trial): Promise<void> {
  const [small, other] = cluster.nodes as readonly [RqliteNode, RqliteNode];
  const leader = fault === 'leader full' ? small : other;
  await haveLead(cluster, leader);
  let isOver = false;
  const works = cluster.hosts.map((host) => (
    workOn(unit, world, host.port(), { round, connections: CONNECTIONS, isPatient: true, isOver: () => isOver })
  ));
  for (const work of works) work.catch(() => undefined);
  await acknowledgedMore(unit, world, FEWEST_ACKNOWLEDGED);
  await fillLog(leader, small);
  const filler = join(disk, 'filler');
  fillDisk(filler);
  if (leader !== small) await acknowledgedMore(unit, world, FEWEST_ACKNOWLEDGED);
  await pause(unit.random.below(LONGEST_FULL_MS));
  rmSync(filler);
  await pause(unit.random.below(LONGEST_FREE_MS));
  if (await isLacking(small, other)) unit.count('lacked something');
  if (fault === 'follower full, then leading') await leadOn(unit, cluster, small);
  await restart(unit, small, other, disk);
  await acknowledgedMore(unit, world, FEWEST_ACKNOWLEDGED);
  isOver = true;
  await Promise.all(works);
}

/** By what the other had carried out before. */
async function isLacking(small: RqliteNode, other: RqliteNode): Promise<boolean> {
  const wanted = await commandsOf(other);
  for (let turn = 0; turn < 10; turn += 1) {
    if (await commandsOf(small) >= wanted) return false;
    await pause(100);
  }
  return true;
}

/** With what it lacks, for a while: the hosts must see it. */
async function leadOn(unit: Unit, cluster: Cluster, small: RqliteNode): Promise<void> {
  await haveLead(cluster, small);
  await pause(unit.random.below(LONGEST_FREE_MS));
  unit.count('led with what it lacked');
}

/** As scripts/deploy/cluster has it: from its log it takes what it lacks, unless it has made a snapshot since. */
async function restart(unit: Unit, small: RqliteNode, other: RqliteNode, disk: string): Promise<void> {
  for (const isAnew of [false, true]) {
    await small.kill();
    if (isAnew) for (const name of readdirSync(disk)) rmSync(join(disk, name), { recursive: true });
    await small.start();
    if (await takesPart(small, other)) return unit.count(isAnew ? 'joined anew' : 'restarted');
  }
  unit.lose('a node that was started on an empty disk does not take what the others have');
}

async function takesPart(small: RqliteNode, other: RqliteNode): Promise<boolean> {
  const wanted = await commandsOf(other);
  for (const startMs = performance.now(); performance.now() - startMs < TAKES_PART_WITHIN_MS; await pause(100)) {
    // Before it has tables there is no such number.
    if (await commandsOf(small).catch(() => 0) >= wanted) return true;
  }
  return false;
}
