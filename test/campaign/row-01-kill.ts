// Row 1: kill -9 at random under HTTP load.

import { createAuthority } from './governed.ts';
import { inspect } from './inspect.ts';
import { killUnderLoad } from './kills.ts';
import { newWorld, workOn, type KnownPaste, type World } from './load.ts';
import { compareCertificates, compareStored, forgetSome, lookAtAll } from './load-checks.ts';
import { historyOf } from './load-history.ts';
import { shortened } from './row-01-histories.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';

const KILLS = { quick: 3, full: 20 };
const CONNECTIONS = 8;

const LONGEST_LIFE_MS = { quick: 250, full: 900 };
const FEWEST_ACKNOWLEDGED = 30;

/** What a crash has left in chunks is removed while the service already serves. */
const SWEPT_WITHIN_MS = 20_000;

export const killRow: Row = {
  name: '1',
  title: 'kill -9 at random under HTTP load',
  target: '1 000 kills, 500 000 acknowledgements',
  units: 50,
  goals: { acknowledged: 500_000 },
  least: ['kills', 'acknowledged'],
  bars: { readyMs: 2000 },
  async run(unit) {
    const world = newWorld();
    await killUnderLoad(unit, {
      kills: KILLS[unit.effort],
      longestLifeMs: LONGEST_LIFE_MS[unit.effort],
      fewestAcknowledged: FEWEST_ACKNOWLEDGED,
      world,
      begin: createAuthority,
      work: (service, round, isOver) => {
        return workOn(unit, world, service.port(), { round, connections: CONNECTIONS, isOver });
      },
      examine: (service) => examine(unit, world, service),
    });
    if (world.suspect !== undefined) await shorten(unit, world, world.suspect);
  },
};

/** Finds the few steps of the load that fail again: of the one paste alone, or else of all pastes. */
async function shorten(unit: Unit, world: World, suspect: KnownPaste): Promise<void> {
  const all = [...world.pastes, ...world.forgotten];
  for (const [index, pastes] of [[suspect], all].entries()) {
    const { shortest, wrong } = await shortened(unit, historyOf(pastes), `shorten${index}`);
    if (shortest !== undefined) return unit.lose(`shortened: ${wrong}`, { shortest });
  }
  unit.note('what failed under load does not fail again');
}

/** Checks what is there after a restart against what was acknowledged. */
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
