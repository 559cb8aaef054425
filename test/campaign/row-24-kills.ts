// Row 24: three hosts over three nodes under HTTP load, while nodes and hosts are killed, and nodes stop for a while.
// The races are row-24-races.ts.

import { setTimeout as pause } from 'node:timers/promises';
import { rqliteMissing } from '../support/rqlite.ts';
import { createClient } from './client.ts';
import { type Cluster, withCluster } from './cluster.ts';
import { createAuthority } from './governed.ts';
import { acknowledgedMore } from './kills.ts';
import { newWorld, storeOne, workOn, type World } from './load.ts';
import { compareCertificates, compareStored, forgetSome, lookAtAll } from './load-checks.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';

type Fault =
  | 'leader killed' | 'host killed' | 'leader and host killed' | 'all nodes killed'
  | 'leader stopped' | 'two nodes stopped';

const QUICK: readonly Fault[] = ['leader and host killed', 'two nodes stopped'];
const FAULTS: readonly Fault[] = ['leader killed', 'host killed', 'all nodes killed', 'leader stopped', ...QUICK];
const ROUNDS = 20;

/** To each host. */
const CONNECTIONS = 4;

const FEWEST_ACKNOWLEDGED = 30;
const LONGEST_LIFE_MS = 600;

/** Longer than an election. */
const STOPPED_MS = 4000;

/** For a host to see what has become of the nodes. */
const PATIENCE_MS = 60_000;

/** What a killed host had under way has a lease of a minute, its cleanup one of two minutes; cleanup comes every minute. */
const SWEPT_WITHIN_MS = 240_000;

export const clusterKillRow: Row = {
  name: '24',
  title: 'three hosts over three nodes under HTTP load: kill -9 of nodes and hosts, and stopped nodes',
  target: '1 000 faults, 150 000 acknowledgements, 10 contents left by faults',
  units: 50,
  goals: { acknowledged: 150_000, 'contents left by faults': 10 },
  least: ['acknowledged', 'create', 'delete'],
  bars: { hostSilentMs: 5000, 'hostSilentMs beside a stopped leader': 6000, unhealthyMs: 3000 },
  obstacle: rqliteMissing,
  run: (unit) => withCluster(unit, {}, async (cluster) => {
    const world = newWorld({ isLate: true });
    await createAuthority(cluster.hosts[0]!);
    const faults = unit.effort === 'quick' ? QUICK : Array.from({ length: ROUNDS }, () => unit.random.pick(FAULTS));
    const left = new Set<string>();
    let last: readonly string[] = [];
    for (const [round, fault] of faults.entries()) {
      if (unit.isHopeless()) break;
      await workThrough(unit, world, cluster, { round, fault });
      await examine(unit, world, cluster);
      const now = await listLeft(cluster);
      // What is still there after another round is not just being removed.
      for (const contentId of now ?? []) if (last.includes(contentId)) left.add(contentId);
      last = now ?? [];
    }
    unit.count('contents left by faults', left.size);
    if (unit.effort === 'full') await awaitSweep(unit, cluster);
    unit.count('acknowledged', world.acknowledged);
  }),
};

/** All hosts are worked on before, during and after the fault. */
async function workThrough(
  unit: Unit, world: World, cluster: Cluster, { round, fault }: { round: number; fault: Fault },
): Promise<void> {
  const { hosts } = cluster;
  let isOver = false;
  const works = new Map<Service, Promise<void>>();
  const workOnHost = (host: Service): void => {
    const working = { round, connections: CONNECTIONS, isPatient: true, isOver: () => isOver || !host.isAlive() };
    const work = workOn(unit, world, host.port(), working);
    // The await at the end reports a failure; until then it must not count as unhandled.
    work.catch(() => undefined);
    works.set(host, work);
  };
  for (const host of hosts) workOnHost(host);
  await acknowledgedMore(unit, world, FEWEST_ACKNOWLEDGED);
  for (const torn of (await cluster.inspect()).faults) unit.lose(`in a backup under load: ${torn}`);
  await pause(unit.random.below(LONGEST_LIFE_MS));
  if (fault === 'leader stopped') await stopLeader(unit, world, cluster, round);
  else if (fault === 'two nodes stopped') await stopTwo(unit, cluster);
  else if (fault === 'all nodes killed') await restartNodes(cluster);
  else await kill(unit, world, cluster, { round, fault });
  for (const host of hosts) if (!works.has(host)) workOnHost(host);
  await acknowledgedMore(unit, world, FEWEST_ACKNOWLEDGED);
  isOver = true;
  await Promise.all(works.values());
  await expectAllStored(unit, world, hosts, round);
  unit.count(fault);
}

/** The other nodes elect one of themselves meanwhile. */
async function stopLeader(unit: Unit, world: World, { hosts, findLeader }: Cluster, round: number): Promise<void> {
  const leader = await findLeader();
  const begunMs = performance.now();
  leader.suspend();
  await expectAllStored(unit, world, hosts, round);
  unit.most('hostSilentMs beside a stopped leader', performance.now() - begunMs);
  await pause(Math.max(0, STOPPED_MS - (performance.now() - begunMs)));
  leader.resume();
}

async function stopTwo(unit: Unit, { nodes, hosts, findLeader }: Cluster): Promise<void> {
  const leader = await findLeader();
  const stopped = [leader, nodes.find((node) => node !== leader)!];
  for (const node of stopped) node.suspend();
  await expectUnhealthy(unit, hosts);
  await pause(STOPPED_MS);
  for (const node of stopped) node.resume();
}

async function restartNodes({ nodes }: Cluster): Promise<void> {
  await Promise.all(nodes.map((node) => node.kill()));
  await Promise.all(nodes.map((node) => node.start()));
}

/** Other nodes and hosts take over; then the killed ones come back, a host as a new one. */
async function kill(
  unit: Unit, world: World, cluster: Cluster, { round, fault }: { round: number; fault: Fault },
): Promise<void> {
  const { hosts } = cluster;
  const place = unit.random.below(hosts.length);
  const leader = fault.startsWith('leader') ? await cluster.findLeader() : undefined;
  const host = fault.includes('host') ? hosts[place] : undefined;
  const begunMs = performance.now();
  await Promise.all([leader?.kill(), host?.kill()]);
  await expectAllStored(unit, world, hosts, round);
  unit.most('hostSilentMs', performance.now() - begunMs);
  await leader?.start();
  if (host !== undefined) hosts[place] = await cluster.startHost();
}

/** Resolves when the slowest living host has stored something: none may be left behind while others acknowledge. */
export async function expectAllStored(unit: Unit, world: World, hosts: readonly Service[], round: number): Promise<void> {
  const living = hosts.filter((host) => host.isAlive());
  await Promise.all(living.map((host) => expectStored(unit, world, host, round)));
}

async function expectStored(unit: Unit, world: World, host: Service, round: number): Promise<void> {
  for (const startMs = performance.now(); !(await storeOne(unit, world, host.port(), round)); await pause(50)) {
    if (performance.now() - startMs < PATIENCE_MS && host.isAlive()) continue;
    return unit.lose('a host stores nothing any more', host.output().slice(-2000));
  }
}

async function expectUnhealthy(unit: Unit, hosts: readonly Service[]): Promise<void> {
  const startMs = performance.now();
  await Promise.all(hosts.map(async (host) => {
    const client = createClient(host.port());
    let status: number | undefined = 200;
    while (status === 200 && performance.now() - startMs < PATIENCE_MS) {
      status = (await client.ask({ method: 'GET', path: '/health' }))?.status;
    }
    if (status !== 503) unit.lose(`/health was answered ${status} without most nodes`, host.output().slice(-2000));
    client.close();
  }));
  unit.most('unhealthyMs', performance.now() - startMs);
}

/** Checks what the hosts and the nodes have against what was acknowledged. */
export async function examine(unit: Unit, world: World, cluster: Cluster): Promise<void> {
  for (const host of cluster.hosts) {
    if (!host.isAlive()) unit.lose('a host ended by itself', host.output().slice(-2000));
  }
  const inspection = await cluster.inspect();
  for (const fault of inspection.faults) unit.lose(`after a fault: ${fault}`);
  compareStored(unit, world, inspection);
  compareCertificates(unit, world, inspection);
  await lookAtAll(unit, world, cluster.hosts);
  forgetSome(unit, world);
}

async function awaitSweep(unit: Unit, cluster: Cluster): Promise<void> {
  const startMs = performance.now();
  for (let left = await listLeft(cluster); left?.length !== 0; left = await listLeft(cluster)) {
    if (performance.now() - startMs > SWEPT_WITHIN_MS) return unit.lose('what faults left in chunks is not removed', left);
    await pause(5000);
  }
  unit.most('sweptMs', performance.now() - startMs);
}

/** Contents that no paste has; undefined when the leader can't tell. It is asked, since a backup leaves them out. */
async function listLeft({ findLeader }: Cluster): Promise<readonly string[] | undefined> {
  const leader = await findLeader();
  const { status, body } = await leader.ask('/db/query?level=strong', ['SELECT json_group_array(content_id) FROM orphans']);
  if (status !== 200) return undefined;
  const { results } = JSON.parse(body) as { results: readonly { values?: readonly (readonly string[])[] }[] };
  const list = results[0]?.values?.[0]?.[0];
  return list === undefined ? undefined : JSON.parse(list) as readonly string[];
}
