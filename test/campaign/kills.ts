// The frame of rows that kill the service at random under load, again and again on the same database, and check what is
// there after each start against what was acknowledged.

import { setTimeout as pause } from 'node:timers/promises';
import type { Unit } from './row.ts';
import type { Service } from './service.ts';

export interface Killing {
  readonly kills: number;
  /** The kill comes at most this long after `fewestAcknowledged` acknowledgements, so that a slow machine has some. */
  readonly longestLifeMs: number;
  readonly fewestAcknowledged: number;
  /** All that was asked of the database. */
  readonly world: Acknowledging;
  /** On the first start. */
  begin(service: Service): Promise<void>;
  /** Asks until it is over. */
  work(service: Service, round: number, isOver: () => boolean): Promise<void>;
  /** On every further start. */
  examine(service: Service): Promise<void>;
}

interface Acknowledging {
  readonly acknowledged: number;
}

export async function killUnderLoad(unit: Unit, killing: Killing): Promise<void> {
  const { kills, world } = killing;
  for (let round = 0; round <= kills && !unit.isHopeless(); round += 1) {
    const service = await unit.start({ folder: unit.folder });
    unit.most('readyMs', service.readyMs());
    if (round === 0) await killing.begin(service);
    else await killing.examine(service);
    // After the last start there is only an examination.
    if (round < kills) await workAndKill(unit, service, round, killing);
  }
  unit.count('acknowledged', world.acknowledged);
}

async function workAndKill(unit: Unit, service: Service, round: number, killing: Killing): Promise<void> {
  const { world, fewestAcknowledged, longestLifeMs } = killing;
  let isOver = false;
  const working = killing.work(service, round, () => isOver).finally(() => (isOver = true));
  const living = acknowledgedMore(unit, world, fewestAcknowledged, () => isOver)
    .then(() => pause(unit.random.below(longestLifeMs)));
  await Promise.race([living, working]);
  // The load goes on until `isOver`, unless the service is gone.
  if (isOver) unit.lose('nobody was answered any more before the kill', service.output().slice(-2000));
  isOver = true;
  await service.kill();
  await working;
  unit.count('kills');
}

/** Whatever has failed, there must be acknowledgements again by then. */
const PATIENCE_MS = 60_000;

export async function acknowledgedMore(
  unit: Unit, world: Acknowledging, more: number, isOver: () => boolean = () => unit.isHopeless(),
): Promise<void> {
  const wanted = world.acknowledged + more;
  for (const startMs = performance.now(); world.acknowledged < wanted && !isOver(); await pause(5)) {
    if (performance.now() - startMs < PATIENCE_MS) continue;
    unit.lose(`not ${more} acknowledgements in ${PATIENCE_MS} ms`);
    return;
  }
}
