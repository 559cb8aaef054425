// Row 1: kill -9 at random under HTTP load.

import { carryOut } from './actions.ts';
import { createClient } from './client.ts';
import { inspect, type Inspection } from './inspect.ts';
import { isGone, lose, newWorld, workOn, type KnownPaste, type World } from './load.ts';
import { historyOf } from './load-history.ts';
import { contentOf, versionOf } from './model.ts';
import { shortened } from './row-01-histories.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';

const KILLS = { quick: 3, full: 20 };
const CONNECTIONS = 8;
const LOOKERS = 24;

/** A round is killed at random within that time after so many acknowledgements, so that a slow machine has some too. */
const LONGEST_LIFE_MS = { quick: 250, full: 900 };
const FEWEST_ACKNOWLEDGED = 30;

/** Pastes that are gone, and stay among those that are looked at after every kill. */
const GONE_KEPT = 24;

/** What a crash has left in chunks is removed while the service already serves. */
const SWEPT_WITHIN_MS = 20_000;

export const killRow: Row = {
  name: '1',
  title: 'kill -9 at random under HTTP load',
  target: '1 000 kills, 500 000 acknowledgements',
  units: 50,
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

async function createAuthority(service: Service): Promise<void> {
  const client = createClient(service.port());
  const answer = await client.ask({ method: 'POST', path: '/pki/ca' });
  client.close();
  if (answer?.status !== 201) throw new Error(`POST /pki/ca was answered ${answer?.status}`);
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
  await lookAtAll(unit, world, service);
  await awaitSweep(unit, service);
  forgetSome(unit, world);
}

/** Looking for what is gone takes as long as a password check: over many connections at once. */
async function lookAtAll(unit: Unit, world: World, service: Service): Promise<void> {
  const rest = [...world.pastes];
  const lookers = Array.from({ length: LOOKERS }, async () => {
    const client = createClient(service.port());
    for (let known = rest.pop(); known !== undefined; known = rest.pop()) {
      const action = known.model.burn ? 'look' : 'read';
      const { attempt, seen, wrong } = await carryOut(client, known.model, action);
      known.history.push({ round: -1, connection: 0, action, attempt, seen });
      if (wrong !== undefined) lose(unit, world, known, `after a kill: ${wrong}`);
      if (seen.kind === 'unknown') unit.lose('the service went away under a look', service.output().slice(-2000));
    }
    client.close();
  });
  await Promise.all(lookers);
}

/** What a restart has settled is no longer open; what is stored under an id that nobody was told was asked for. */
function compareStored(unit: Unit, world: World, { pastes }: Inspection): void {
  const unknown = new Map(pastes);
  for (const known of [...world.pastes, ...world.forgotten]) {
    const { model } = known;
    const stored = pastes.get(model.id() ?? '');
    unknown.delete(model.id() ?? '');
    const state = stored === undefined ? 'gone' : versionOf(model, stored.content);
    // An expired one stays until cleanup comes by.
    const mayBeEither = state !== undefined && model.hasExpiredAt(Date.now());
    if (state === undefined || !(mayBeEither || model.possible().includes(state))) {
      lose(unit, world, known, `after a kill ${model.label} is ${state ?? 'what it cannot be'} in the database`);
    }
  }
  for (const [id, { content }] of unknown) {
    const asked = world.unanswered.some((model) => contentOf(model.label, 1, model.bytesOf(1)).equals(content));
    if (!asked) unit.lose(`after a kill there is a paste ${id} that nobody asked for`);
  }
}

function compareCertificates(unit: Unit, world: World, { certificates }: Inspection): void {
  const byFingerprint = new Map([...certificates.values()].map((stored) => [stored.fingerprint, stored]));
  for (const known of world.certificates) {
    const stored = byFingerprint.get(known.fingerprint);
    if (stored === undefined) unit.lose('after a kill an issued certificate is lost', known);
    else if (known.state === 'asked') known.state = stored.isRevoked ? 'revoked' : 'valid';
    else if (stored.isRevoked !== (known.state === 'revoked')) {
      unit.lose(`after a kill a certificate that was ${known.state} is not`, known);
    }
  }
  const extra = certificates.size - world.certificates.length;
  if (extra > world.unansweredCertificates) unit.lose(`after a kill ${extra} certificates are there unasked for`);
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

/** Of what is gone, only some is asked for again: an answer that there is nothing takes long. */
function forgetSome(unit: Unit, world: World): void {
  const gone = world.pastes.filter(isGone);
  const kept = world.pastes.filter((known) => !isGone(known));
  while (gone.length > GONE_KEPT) world.forgotten.push(...gone.splice(unit.random.below(gone.length), 1));
  world.pastes.splice(0, Infinity, ...kept, ...gone);
}
