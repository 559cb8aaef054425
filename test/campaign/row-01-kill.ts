// Row 1: kill -9 at random under HTTP load.

import { inspect } from './inspect.ts';
import { newWorld, workOn, type KnownPaste, type World } from './load.ts';
import { compareCertificates, compareStored, createAuthority, forgetSome, lookAtAll } from './load-checks.ts';
import { historyOf } from './load-history.ts';
import { shortened } from './row-01-histories.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';

const KILLS = { quick: 3, full: 20 };
const CONNECTIONS = 8;

/** A round is killed at random within that time after so many acknowledgements, so that a slow machine has some too. */
const LONGEST_LIFE_MS = { quick: 250, full: 900 };
const FEWEST_ACKNOWLEDGED = 30;

/** What a crash has left in chunks is removed while the service already serves. */
const SWEPT_WITHIN_MS = 20_000;

export const killRow: Row = {
  name: '1',
  title: 'kill -9 at random under HTTP load',
  target: '1 000 kills, 500 000 acknowledgements',
  units: 50,
  least: ['kills', 'acknowledged'],
  bars: { readyMs: 2000 },
  async run(unit) {
    const world = newWorld();
    for (let round = 0; round <= KILLS[unit.effort] && !unit.isHopeless(); round += 1) {
      const service = await unit.start({ folder: unit.folder });
      unit.most('readyMs', service.readyMs());
      if (round === 0) await createAuthority(service);
      else await examine(unit, world, service);
      // The last start is there to be looked at.
      if (round < KILLS[unit.effort]) await workAndKill(unit, world, service, round);
    }
    unit.count('acknowledged', world.acknowledged);
    if (world.suspect !== undefined) await shorten(unit, world, world.suspect);
  },
};

/** Of what was asked under load, the few steps that fail again: of the paste alone, or else of all. */
async function shorten(unit: Unit, world: World, suspect: KnownPaste): Promise<void> {
  const all = [...world.pastes, ...world.forgotten];
  for (const [index, pastes] of [[suspect], all].entries()) {
    const { shortest, wrong } = await shortened(unit, historyOf(pastes), `shorten${index}`);
    if (shortest !== undefined) return unit.lose(`shortened: ${wrong}`, { shortest });
  }
  unit.note('what failed under load does not fail again');
}

async function workAndKill(unit: Unit, world: World, service: Service, round: number): Promise<void> {
  const lifeMs = unit.random.below(LONGEST_LIFE_MS[unit.effort]);
  let isKilled = false;
  const work = workOn(unit, world, service.port(), { round, connections: CONNECTIONS, isOver: () => isKilled });
  const before = world.acknowledged;
  while (world.acknowledged < before + FEWEST_ACKNOWLEDGED && service.isAlive() && !unit.isHopeless()) await pause(5);
  await pause(lifeMs);
  if (!service.isAlive()) unit.lose('the service ended by itself', service.output().slice(-2000));
  await service.kill();
  isKilled = true;
  await work;
  unit.count('kills');
}

/** Holds what is there after a restart to what was acknowledged. */
async function examine(unit: Unit, world: World, service: Service): Promise<void> {
  const inspection = inspect(service.databasePath);
  for (const fault of inspection.faults) unit.lose(`after a kill: ${fault}`);
  compareStored(unit, world, inspection);
  compareCertificates(unit, world, inspection);
  await lookAtAll(unit, world, [service]);
  await awaitSweep(unit, service);
  forgetSome(unit, world);
}

async function awaitSweep(unit: Unit, service: Service): Promise<void> {
  const startMs = performance.now();
  while (inspect(service.databasePath).orphans > 0) {
    if (performance.now() - startMs > SWEPT_WITHIN_MS) return unit.lose('what a kill left in chunks is not removed');
    await pause(50);
  }
  unit.most('sweptMs', performance.now() - startMs);
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
