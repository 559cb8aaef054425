// Row 24, the standby: a service with a replica by Litestream under HTTP load, while both are killed, the replica is
// out of reach and hosts are lost. A restored database must be that of one moment, and scripts/deploy/litestream says
// which moment. Three hosts over three nodes are in row-24-kills.ts.

import { statSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { litestreamMissing, serviceUnder } from '../support/litestream.ts';
import { createAuthority } from './governed.ts';
import { inspect, type Inspection } from './inspect.ts';
import { acknowledgedMore } from './kills.ts';
import { lose, newWorld, workOn, type KnownCertificate, type KnownPaste, type Span, type World } from './load.ts';
import { compareCertificates, compareStored, forgetSome, lookAtAll, settleCertificate } from './load-checks.ts';
import { stateOf } from './model.ts';
import { type Beginning, latestMoment, spansOfCertificate, spansOfPaste } from './moment.ts';
import { type Replicated, startReplicated } from './replicated.ts';
import type { Row, Unit } from './row.ts';

/**
 * Runs while the load works on the service. Once `endWork` was called, nothing more is asked; it resolves when each
 * request has an answer or will never get one.
 */
type Trial = (site: Site, endWork: () => Promise<void>) => Promise<void>;

/** How often each is tried in a unit. */
const TRIALS: Readonly<Record<string, { readonly times: number; readonly carryOut: Trial }>> = {
  'service killed': { times: 4, carryOut: tryServiceKilled },
  'litestream killed': { times: 4, carryOut: tryLitestreamKilled },
  'both killed': { times: 3, carryOut: tryBothKilled },
  'host lost': { times: 4, carryOut: (site, endWork) => loseHost(site, endWork, Date.now()) },
  'host given up': { times: 1, carryOut: tryGivenUp },
  'out of reach': { times: 1, carryOut: tryOutOfReach },
  'out of reach, host lost': { times: 1, carryOut: tryOutOfReachAndLost },
  'out of reach, service killed': { times: 1, carryOut: (...given) => tryOutOfReachAndKilled(...given, killService) },
  'out of reach, both killed': { times: 1, carryOut: (...given) => tryOutOfReachAndKilled(...given, killBoth) },
};
const QUICK = ['litestream killed', 'out of reach, host lost', 'host lost'];

const CONNECTIONS = 8;
const FEWEST_ACKNOWLEDGED = 30;
const LONGEST_LIFE_MS = 900;

/** When Litestream has ended, systemd kills the rest of the unit, at once or a little later. */
const LONGEST_SURVIVAL_MS = 200;

const LONGEST_OUT_OF_REACH_MS = 3000;

/** Whatever has failed must work again by then. */
const PATIENCE_MS = 60_000;

/** More than what half a second can become on a slow machine. */
const HOPELESS_WINDOW_MS = 5000;

interface Site {
  readonly unit: Unit;
  readonly replicated: Replicated;
  readonly world: World;
  /** The states of the pastes at the last start, and the moment of that start. */
  readonly begun: Map<KnownPaste, Beginning>;
  begunMs: number;
  round: number;
}

export const standbyRow: Row = {
  name: '24s',
  title: 'a service with a replica by Litestream under HTTP load: kill -9 of either, no way to the replica, lost hosts',
  target: '500 kills, 200 lost hosts, 160 times out of reach',
  units: 40,
  least: ['kills', 'lost hosts', 'times out of reach', 'acknowledged', 'create', 'delete'],
  // README.md says half a second, for a machine that does nothing else.
  bars: { windowMs: 1000, endedMs: 2000, caughtUpMs: 5000, logMiB: 64, readyMs: 5000 },
  obstacle: litestreamMissing,
  async run(unit) {
    const replicated = await startReplicated(unit, { isHurried: unit.seed % 2 === 0 });
    const world = newWorld();
    const site = { unit, replicated, world, begun: new Map(), begunMs: 0, round: 0 };
    await createAuthority(await replicated.start());
    await workUntilReplicated(site);
    for (const name of trialsOf(unit)) {
      if (unit.isHopeless()) break;
      site.round += 1;
      const endWork = beginWork(site);
      await acknowledgedMore(unit, world, FEWEST_ACKNOWLEDGED);
      await pause(unit.random.below(LONGEST_LIFE_MS));
      unit.most('logMiB', statSync(`${replicated.host().databasePath}-wal`).size / 2 ** 20);
      await TRIALS[name]!.carryOut(site, endWork);
      unit.count(name);
    }
    unit.count('acknowledged', world.acknowledged);
  },
};

/** In an order that the seed decides. */
function trialsOf({ effort, random }: Unit): readonly string[] {
  if (effort === 'quick') return QUICK;
  const names = Object.entries(TRIALS).flatMap(([name, { times }]) => Array<string>(times).fill(name));
  for (let last = names.length - 1; last > 0; last -= 1) {
    const [drawn] = names.splice(random.below(last + 1), 1);
    names.push(drawn!);
  }
  return names;
}

function beginWork({ unit, world, replicated, round }: Site): () => Promise<void> {
  let isOver = false;
  const working = { round, connections: CONNECTIONS, isOver: () => isOver };
  const work = workOn(unit, world, replicated.host().port(), working);
  // The await of `endWork` reports a failure; until then it must not count as unhandled.
  work.catch(() => undefined);
  return () => {
    isOver = true;
    return work;
  };
}

async function until(unit: Unit, what: string, isSo: () => boolean): Promise<void> {
  for (const startMs = performance.now(); !isSo() && !unit.isHopeless(); await pause(5)) {
    if (performance.now() - startMs > PATIENCE_MS) return unit.lose(`in ${PATIENCE_MS} ms it never was that ${what}`);
  }
}

async function tryServiceKilled(site: Site, endWork: () => Promise<void>): Promise<void> {
  await Promise.all([killService(site), endWork()]);
  await restart(site);
}

async function tryLitestreamKilled(site: Site, endWork: () => Promise<void>): Promise<void> {
  const host = site.replicated.host();
  process.kill(host.pid(), 'SIGKILL');
  await pause(site.unit.random.below(LONGEST_SURVIVAL_MS));
  await Promise.all([killBoth(site), endWork()]);
  await restart(site);
}

async function tryBothKilled(site: Site, endWork: () => Promise<void>): Promise<void> {
  await Promise.all([killBoth(site), endWork()]);
  await restart(site);
}

/** An operator moves the service to another host. */
async function tryGivenUp(site: Site, endWork: () => Promise<void>): Promise<void> {
  const host = site.replicated.host();
  const [status] = await Promise.all([host.stop(), endWork()]);
  if (status !== 0) site.unit.lose(`when stopped, it ended with ${status}`, host.output().slice(-2000));
  await takeOver(site, expectAll(site, Date.now()));
}

async function tryOutOfReach(site: Site, endWork: () => Promise<void>): Promise<void> {
  await cutOff(site);
  site.replicated.reach();
  await endWork();
  await workUntilReplicated(site);
}

async function tryOutOfReachAndLost(site: Site, endWork: () => Promise<void>): Promise<void> {
  await loseHost(site, endWork, await cutOff(site));
}

async function tryOutOfReachAndKilled(
  site: Site, endWork: () => Promise<void>, kill: (site: Site) => Promise<void>,
): Promise<void> {
  await cutOff(site);
  await Promise.all([kill(site), endWork()]);
  site.replicated.reach();
  await restart(site);
}

/** Litestream must end with the service; then the rest of the systemd unit is killed. */
async function killService(site: Site): Promise<void> {
  const host = site.replicated.host();
  process.kill(serviceUnder(host.pid())!, 'SIGKILL');
  const startMs = performance.now();
  await until(site.unit, 'Litestream ended after the service', () => !host.isAlive());
  site.unit.most('endedMs', performance.now() - startMs);
  await killBoth(site);
}

async function killBoth(site: Site): Promise<void> {
  await site.replicated.host().kill();
  site.unit.count('kills');
}

/** Resolves with the moment of the cut, after many more changes. */
async function cutOff(site: Site): Promise<number> {
  const { unit, replicated, world } = site;
  const cutOffMs = Date.now();
  replicated.cutOff();
  // Longer than a call that is under way can still take.
  await pause(100);
  const newest = replicated.newestCopy('replica');
  await acknowledgedMore(unit, world, FEWEST_ACKNOWLEDGED);
  await pause(unit.random.below(LONGEST_OUT_OF_REACH_MS));
  await until(unit, 'a change was copied', () => replicated.newestCopy('beside') > newest);
  if (replicated.newestCopy('replica') > newest) unit.lose('the replica was out of reach, and has changed');
  unit.count('times out of reach');
  return cutOffMs;
}

/** When this resolves, the replica lacks nothing that the service had before. */
async function workUntilReplicated(site: Site): Promise<void> {
  const { unit, replicated, world } = site;
  const [sinceMs, startMs] = [Date.now(), performance.now()];
  const endWork = beginWork(site);
  // The first certificate is the admin's, and must not be lost.
  await until(unit, 'there was a certificate', () => world.certificates.length > 0);
  // Two more, because a copy that was begun before may still be under way.
  const wanted = replicated.newestCopy('beside') + 2;
  await until(unit, 'the replica had a change', () => replicated.newestCopy('replica') >= wanted);
  unit.most('caughtUpMs', performance.now() - startMs);
  await endWork();
  expectAll(site, sinceMs);
}

/** All that was answered before `promisedMs`, except in the last moment, must be there again. */
async function loseHost(site: Site, endWork: () => Promise<void>, promisedMs: number): Promise<void> {
  const { unit, replicated } = site;
  const lostMs = Date.now();
  await Promise.all([replicated.host().kill(), endWork()]);
  replicated.reach();
  const inspection = replicated.restore();
  const windowMs = Math.max(0, promisedMs - judge(site, inspection, lostMs));
  unit.most('windowMs', windowMs);
  unit.sample({ windowMs });
  if (windowMs > HOPELESS_WINDOW_MS) unit.lose(`what was answered ${windowMs} ms before a host was lost is missing`);
  unit.count('lost hosts');
  await takeOver(site, inspection);
}

/** Restores the replica, which must have all that was answered by then. */
function expectAll(site: Site, byMs: number): Inspection {
  const inspection = site.replicated.restore();
  const missingMs = byMs - judge(site, inspection, Date.now());
  if (missingMs > 0) site.unit.lose(`what was answered in ${missingMs} ms is not in the replica, and should be`);
  return inspection;
}

/** The moment, `toMs` at the latest, of which a restored database is; whatever is of another moment is a loss. */
function judge(site: Site, { faults, pastes, certificates }: Inspection, toMs: number): number {
  const { unit, world, begun, begunMs } = site;
  for (const fault of faults) unit.lose(`restored: ${fault}`);
  const spans = new Map<KnownPaste | KnownCertificate, readonly Span[]>();
  for (const known of [...world.pastes, ...world.forgotten]) {
    const state = stateOf(known.model, pastes.get(known.model.id()!));
    spans.set(known, state === undefined ? [] : spansOfPaste(known, state, begun.get(known)));
  }
  const byFingerprint = new Map([...certificates.values()].map((stored) => [stored.fingerprint, stored]));
  for (const known of world.certificates) {
    spans.set(known, spansOfCertificate(known, byFingerprint.get(known.fingerprint)));
  }
  const { atMs, others } = latestMoment(spans, { fromMs: begunMs, toMs });
  for (const other of others) {
    const what = `restored as of ${atMs}, it was something else then`;
    if ('model' in other) lose(unit, world, other, `${other.model.label}, ${what}`);
    else unit.lose(`a certificate, ${what}`, other);
  }
  return atMs;
}

/** Another host goes on with what was restored, and the model continues from that. */
async function takeOver(site: Site, { pastes, certificates }: Inspection): Promise<void> {
  const { unit, replicated, world } = site;
  world.pastes.push(...world.forgotten.splice(0));
  for (const { model } of world.pastes) model.settle(stateOf(model, pastes.get(model.id()!)) ?? 'gone');
  forgetSome(unit, world);
  const isRevoked = new Map([...certificates.values()].map((stored) => [stored.fingerprint, stored.isRevoked]));
  const restored = world.certificates.filter(({ fingerprint }) => isRevoked.has(fingerprint));
  world.certificates.splice(0, Infinity, ...restored);
  for (const known of restored) settleCertificate(known, isRevoked.get(known.fingerprint)!);
  await replicated.takeOver();
  await examine(site);
}

/** Waits until the replica has a copy of the whole database: before that, a lost host would lose more. */
async function restart(site: Site): Promise<void> {
  await site.replicated.start();
  await examine(site);
  await workUntilReplicated(site);
}

/** What is settled now cannot be different in what is restored later. */
function beginAnew(site: Site): void {
  site.begunMs = Date.now();
  for (const known of [...site.world.pastes, ...site.world.forgotten]) {
    site.begun.set(known, { state: known.model.possible()[0]!, entries: known.history.length });
  }
}

/** Checks what the service has against what was acknowledged. */
async function examine(site: Site): Promise<void> {
  const { unit, replicated, world } = site;
  const host = replicated.host();
  unit.most('readyMs', host.readyMs());
  const inspection = inspect(host.databasePath);
  for (const fault of inspection.faults) unit.lose(`after a start: ${fault}`);
  compareStored(unit, world, inspection);
  compareCertificates(unit, world, inspection);
  beginAnew(site);
  await lookAtAll(unit, world, [host]);
  const { status, output } = await host.beginCommand(['check']).ended;
  if (status !== 0) unit.lose(`pasted check ended with ${status}`, output);
  forgetSome(unit, world);
}
