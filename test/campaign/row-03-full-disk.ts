// Row 3: a disk filled to the last byte under load, and freed again, without a restart.

import { closeSync, existsSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { MIB } from '../../src/core/time.ts';
import { carryOut } from './actions.ts';
import { createClient, type Client } from './client.ts';
import { inspect } from './inspect.ts';
import { createPasteModel, versionOf, type Action, type PasteModel, type Terms } from './model.ts';
import { mountObstacle, onDisk } from './mounts.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';

const CYCLES = { quick: 1, full: 5 };
const DISK_MIB = 96;
const CONNECTIONS = 4;

/** Requests of each connection on the full disk. */
const ROUNDS = { quick: 12, full: 60 };

/** The service tries to make the room in reserve every ten seconds. */
const RECOVERED_WITHIN_MS = 30_000;

export const fullDiskRow: Row = {
  name: '3',
  title: 'the disk filled to the last byte under load, then freed',
  target: '50 cycles',
  units: 10,
  least: ['cycles', 'stored while it fills', 'refused with 507'],
  bars: { recoveryMs: 12_000 },
  obstacle: mountObstacle,
  run: (unit) => onDisk(join(unit.folder, 'disk'), DISK_MIB, (disk) => cyclesOn(unit, disk)),
};

async function cyclesOn(unit: Unit, disk: string): Promise<void> {
  const service = await unit.start({ folder: disk });
  const pastes: PasteModel[] = [];
  const removed: PasteModel[] = [];
  await until(() => existsSync(`${service.databasePath}-ballast`), 'the room in reserve is made');
  for (let cycle = 0; cycle < CYCLES[unit.effort] && !unit.isHopeless(); cycle += 1) {
    const client = createClient(service.port());
    await storeSome(unit, client, pastes, cycle);
    const filler = join(disk, 'filler');
    let isFull = false;
    const filling = fillUp(filler).finally(() => (isFull = true));
    await Promise.all([filling, everyone(unit, service, pastes, 'filling', () => isFull)]);
    await everyone(unit, service, pastes, 'full');
    rmSync(filler);
    await recover(unit, client, pastes, cycle);
    removed.push(...(await removeAll(unit, client, pastes)));
    client.close();
    unit.count('cycles');
    if (!service.isAlive()) unit.lose('the process ended', service.output().slice(-2000));
  }
  await service.kill();
  const after = await unit.start({ folder: disk });
  lookAt(unit, after, [...removed, ...pastes]);
}

/** Takes every byte that is left, with a pause after each piece, so that requests are answered meanwhile. */
async function fillUp(path: string): Promise<void> {
  const descriptor = openSync(path, 'w');
  for (const piece of [new Uint8Array(MIB), new Uint8Array(4096)]) {
    try {
      while (writeSync(descriptor, piece) > 0) await pause(1);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
  closeSync(descriptor);
}

/** Stores enough pastes for `everyone` to remove, and some that expire on the full disk. */
async function storeSome(unit: Unit, client: Client, pastes: PasteModel[], cycle: number): Promise<void> {
  const count = CONNECTIONS * ROUNDS[unit.effort];
  for (let index = 0; index < count; index += 1) {
    const model = createPasteModel(`s${unit.seed}c${cycle}n${index}`, { burn: index % 3 === 0, refusable: true });
    const bytes = index % 10 === 0 ? unit.random.between(66_000, 400_000) : unit.random.between(40, 4000);
    await mustDo(unit, client, model, 'create', { bytes, ttlSeconds: index % 7 === 0 ? 4 : undefined });
    pastes.push(model);
  }
}

/**
 * On several connections at once: reads must be answered, removals done and creations refused with 507. Goes on at
 * least until `isOver`.
 */
async function everyone(
  unit: Unit,
  service: Service,
  pastes: PasteModel[],
  state: 'filling' | 'full',
  isOver: () => boolean = () => true,
): Promise<void> {
  const present = pastes.filter((model) => model.possible().some((version) => version !== 'gone'));
  const workers = Array.from({ length: CONNECTIONS }, async (_, worker) => {
    const client = createClient(service.port());
    const own = present.filter((__, index) => index % CONNECTIONS === worker);
    for (let round = 0; (round < ROUNDS[unit.effort] || !isOver()) && !unit.isHopeless(); round += 1) {
      await createOne(unit, client, pastes, state);
      const model = own[round];
      if (model === undefined) continue;
      await mustDo(unit, client, model, model.burn ? 'look' : 'read');
      if (state === 'full' && round % 2 === 0) await mustDo(unit, client, model, model.burn ? 'read' : 'delete');
    }
    client.close();
  });
  await Promise.all(workers);
}

/** While the disk is filling, 201 is right too, and the paste is burned at once. */
async function createOne(unit: Unit, client: Client, pastes: PasteModel[], state: 'filling' | 'full'): Promise<void> {
  const model = createPasteModel(`x${unit.random.below(2 ** 31)}`, { burn: true, refusable: true });
  const { seen } = await carryOut(client, model, 'create', { bytes: unit.random.pick([50, 5000, 100_000]) });
  if (seen.kind === 'done' && state === 'filling') {
    pastes.push(model);
    unit.count('stored while it fills');
    return mustDo(unit, client, model, 'read');
  }
  const isNoRoom = seen.kind === 'refused' && seen.status === 507;
  if (!isNoRoom) unit.lose(`creating on the full disk: ${JSON.stringify(seen)}`);
  unit.count('refused with 507');
}

async function mustDo(
  unit: Unit,
  client: Client,
  model: PasteModel,
  action: Action,
  terms?: Terms,
): Promise<void> {
  const { seen, wrong } = await carryOut(client, model, action, terms);
  unit.count(action);
  if (wrong !== undefined) return unit.lose(wrong);
  const hasExpired = seen.kind === 'absent' && model.hasExpiredAt(Date.now());
  if (seen.kind !== 'done' && !hasExpired) unit.lose(`${action} does not work: ${JSON.stringify(seen)}`);
}

/** Recovery must take no restart, and no more requests than those of a client that tries again. */
async function recover(unit: Unit, client: Client, pastes: PasteModel[], cycle: number): Promise<void> {
  const startMs = performance.now();
  for (let attempt = 0; ; attempt += 1) {
    const model = createPasteModel(`s${unit.seed}c${cycle}r${attempt}`, { refusable: true });
    const { seen } = await carryOut(client, model, 'create', { bytes: 100_000 });
    if (seen.kind === 'done') {
      pastes.push(model);
      break;
    }
    if (performance.now() - startMs > RECOVERED_WITHIN_MS) return unit.lose(`no recovery: ${JSON.stringify(seen)}`);
    await pause(100);
  }
  unit.most('recoveryMs', performance.now() - startMs);
  const health = await client.ask({ method: 'GET', path: '/health' });
  if (health?.status !== 200) unit.lose(`after the recovery /health is ${health?.status}`);
}

/** Removes all but the newest, so that the next cycle has room. Resolves with them, to look for them at the end. */
async function removeAll(unit: Unit, client: Client, pastes: PasteModel[]): Promise<PasteModel[]> {
  for (const model of pastes.slice(0, -1)) {
    if (model.hasExpiredAt(Date.now()) || model.possible().every((state) => state === 'gone')) continue;
    await mustDo(unit, client, model, model.burn ? 'read' : 'delete');
  }
  return pastes.splice(0, pastes.length - 1);
}

/** What was stored and not removed is there, and nothing else: what was removed is not, nor what was refused. */
function lookAt(unit: Unit, service: Service, pastes: readonly PasteModel[]): void {
  const { faults, pastes: stored } = inspect(service.databasePath);
  for (const fault of faults) unit.lose(fault);
  const unknown = new Set(stored.keys());
  for (const model of pastes) {
    const content = stored.get(model.id()!)?.content;
    unknown.delete(model.id()!);
    const state = content === undefined ? 'gone' : versionOf(model, content);
    // An expired paste stays until cleanup removes it.
    const isRight = state !== undefined && (model.possible().includes(state) || model.hasExpiredAt(Date.now()));
    if (!isRight) unit.lose(`after the cycles ${model.label} is ${state ?? 'what it cannot be'}`, model.possible());
  }
  if (unknown.size > 0) unit.lose('after the cycles there are pastes that were refused', [...unknown]);
}

async function until(isSo: () => boolean, what: string): Promise<void> {
  const startMs = performance.now();
  while (!isSo()) {
    if (performance.now() - startMs > RECOVERED_WITHIN_MS) throw new Error(`${what}: not in ${RECOVERED_WITHIN_MS} ms`);
    await pause(50);
  }
}
