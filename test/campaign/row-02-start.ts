// Row 2, the start: a service on a database that a kill left with expired pastes and half an upload, while the storage
// fails at one call after the other. Starting removes them, empties the log and makes room in reserve. It may refuse to
// start, with a reason; it may not harm what is there, and where it starts it must serve.

import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { carryOut } from './actions.ts';
import { createClient } from './client.ts';
import { compilerObstacle, createFaultSwitch, type Fault, type FaultSwitch } from './faults.ts';
import { inspect } from './inspect.ts';
import { createPasteModel, versionOf, type PasteModel } from './model.ts';
import type { Row, Unit } from './row.ts';

/** One call in so many is made to fail: the room in reserve alone takes sixteen. */
const STRIDE = { quick: 16, full: 1 };
const POINTS = { quick: 3, full: 60 };

/** Enough for all calls of such a start, which are about 345; if there were more, the goal would ask for more units. */
const UNITS_OF_A_WAY = 6;

/** The seeds take one way after the other; the seeds after these try the next calls in the same ways. */
const WAYS = (['EIO', 'ENOSPC'] as const).flatMap((error) => [false, true].map((lasting) => ({ error, lasting })));

/** Alive through the whole unit. */
const KEPT_SECONDS = 86_400;
const EXPIRING_SECONDS = 1;

export const startRow: Row = {
  name: '2s',
  title: 'EIO and ENOSPC at every write, sync and truncation of a start that cleans up',
  target: 'every call, in four ways',
  units: UNITS_OF_A_WAY * WAYS.length,
  goals: { 'ways to the last call': WAYS.length },
  least: ['starts'],
  obstacle: compilerObstacle,
  async run(unit) {
    const left = join(unit.folder, 'left');
    const pastes = await leaveBehind(unit, left);
    const folder = join(unit.folder, 'service');
    const faults = createFaultSwitch(unit.folder, join(folder, 'pasted.db'));
    const index = unit.seed - 1;
    const way = WAYS[index % WAYS.length]!;
    const points = POINTS[unit.effort];
    const before = Math.floor(index / WAYS.length) * points;
    for (let point = 0; point < points && !unit.isHopeless(); point += 1) {
      const call = 1 + (before + point) * STRIDE[unit.effort];
      cpSync(left, folder, { recursive: true });
      const isHit = await onePoint(unit, { folder, faults, pastes, fault: { ...way, call } });
      rmSync(folder, { recursive: true });
      // Some ways have fewer calls than others, so their last unit may find none; such a start counts too.
      unit.count('starts');
      if (!isHit) {
        unit.count('ways to the last call');
        break;
      }
      unit.count('points');
    }
    faults.close();
  },
};

/** A database whose service was killed, with pastes that have expired since beside some that have not. */
async function leaveBehind(unit: Unit, folder: string): Promise<PasteModel[]> {
  const service = await unit.start({ folder });
  const client = createClient(service.port());
  const pastes: PasteModel[] = [];
  for (let index = 0; index < 12; index += 1) {
    const model = createPasteModel(`s${unit.seed}n${index}`, { refusable: true });
    const bytes = index % 3 === 0 ? unit.random.between(66_000, 300_000) : unit.random.between(40, 4000);
    const ttlSeconds = index % 2 === 0 ? EXPIRING_SECONDS : KEPT_SECONDS;
    const { seen } = await carryOut(client, model, 'create', { bytes, ttlSeconds });
    if (seen.kind !== 'done') throw new Error(`preparing: ${JSON.stringify(seen)}`);
    pastes.push(model);
  }
  client.close();
  await service.kill();
  await new Promise((resolve) => setTimeout(resolve, (EXPIRING_SECONDS + 1) * 1000));
  return pastes;
}

interface Point {
  readonly folder: string;
  readonly faults: FaultSwitch;
  readonly pastes: readonly PasteModel[];
  readonly fault: Fault;
}

/** Whether there was such a call. */
async function onePoint(unit: Unit, { folder, faults, pastes, fault }: Point): Promise<boolean> {
  faults.arm(fault);
  const starting = unit.start({ folder, environment: faults.environment });
  const service = await starting.catch((error: unknown) => String(error));
  if (typeof service === 'string') {
    const delivered = faults.disarm();
    unit.count('refused to start');
    const hasSaidSo = /ended with [1-9]\d* before/.test(service);
    if (!hasSaidSo) unit.lose('a start that failed did not say so', { fault, ...delivered, service });
    lookAt(unit, join(folder, 'pasted.db'), pastes, fault);
    return delivered.faults > 0;
  }
  const client = createClient(service.port());
  for (const model of pastes) {
    const { seen, wrong } = await carryOut(client, model, 'look');
    if (wrong !== undefined) unit.lose(`after a start with a fault: ${wrong}`, fault);
    const isAnswered = seen.kind === 'done' || seen.kind === 'absent';
    if (!isAnswered) unit.lose('after a start with a fault reading does not work', { fault, seen });
  }
  const delivered = faults.disarm();
  const next = createPasteModel(`next${fault.call}`, { refusable: true });
  const { seen } = await carryOut(client, next, 'create', { bytes: 100 });
  client.close();
  const isWithoutRoom = fault.error === 'ENOSPC' && seen.kind === 'refused' && seen.status === 507;
  if (seen.kind !== 'done' && !isWithoutRoom) unit.lose('the request after the fault does not work', { fault, seen });
  await service.kill();
  lookAt(unit, service.databasePath, seen.kind === 'done' ? [...pastes, next] : pastes, fault);
  return delivered.faults > 0;
}

/** Expired pastes may be there or not; all others must be there, and whole. */
function lookAt(unit: Unit, databasePath: string, pastes: readonly PasteModel[], fault: Fault): void {
  const { faults, pastes: stored } = inspect(databasePath, { readOnly: false });
  for (const what of faults) unit.lose(`after a start with a fault: ${what}`, fault);
  for (const model of pastes) {
    if (model.hasExpiredAt(Date.now())) continue;
    const content = stored.get(model.id() ?? '')?.content;
    const isThere = content !== undefined && versionOf(model, content) === 1;
    if (!isThere) unit.lose(`${model.label} is lost after a start with a fault`, fault);
  }
}
