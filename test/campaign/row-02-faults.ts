// Row 2: EIO, ENOSPC and short writes at every write, sync and truncation that an operation makes, once and lasting.
// What the service answered is compared with what a kill at that moment would leave. row-02-start.ts makes a start
// fail, row-02-governed.ts operations that others govern, and row-02-quota.ts tries EDQUOT.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { carryOut, OWNER } from './actions.ts';
import { createClient, type Answer, type Client } from './client.ts';
import { compilerObstacle, createFaultSwitch, type Delivered, type Fault, type FaultSwitch } from './faults.ts';
import { inspectAsKilled, type Inspection } from './inspect.ts';
import { createPasteModel, versionOf, type Action, type PasteModel, type Terms } from './model.ts';
import type { Effort, Row, Unit } from './row.ts';
import type { Service } from './service.ts';

/** What is tried with one operation at one point. */
export interface Trial {
  /** Makes what must be there before; nothing fails yet. */
  prepare(bench: Bench): Promise<void>;
  /** Carries out the operation while calls fail; whether it was acknowledged. */
  act(bench: Bench): Promise<boolean>;
  /** What differs from what the service answered, in words. */
  judge(bench: Bench, image: Inspection): string | undefined;
}

/** The service under test, started anew when it has to be. */
export interface Bench {
  readonly unit: Unit;
  readonly faults: FaultSwitch;
  service: Service;
  client: Client;
}

const LARGE_BYTES = { quick: 70_000, full: 200_000 };

/** By name. */
export type Operations = readonly (readonly [string, (unit: Unit) => Trial])[];

export type Way = Omit<Fault, 'call'>;

/** Each point at which room is missing costs a restart, which takes too long for a quick unit. */
const WAYS: Readonly<Record<Effort, readonly Way[]>> = {
  quick: [{ error: 'EIO', lasting: false }, { error: 'EIO', lasting: true }],
  full: (['EIO', 'ENOSPC', 'short'] as const).flatMap((error) => [false, true].map((lasting) => ({ error, lasting }))),
};

/** Points of each operation in the whole campaign, its units in the campaign, and the fewest points of one unit. */
const POINTS = 500;
export const UNITS_OF_EACH = 6;
const FEWEST_POINTS = { quick: 0, full: Math.ceil(POINTS / UNITS_OF_EACH) };

/** More calls than any operation makes. */
const NO_CALL = 1_000_000;

export const OPERATIONS: Operations = [
  ['create', (unit) => pasteTrial(unit, 'create', 'small')],
  ['create large', (unit) => pasteTrial(unit, 'create', 'large')],
  ['update', (unit) => pasteTrial(unit, 'update', 'small')],
  ['update large', (unit) => pasteTrial(unit, 'update', 'large')],
  ['delete', (unit) => pasteTrial(unit, 'delete', 'small')],
  ['delete large', (unit) => pasteTrial(unit, 'delete', 'large')],
  ['burn', (unit) => pasteTrial(unit, 'read', 'small')],
  ['burn large', (unit) => pasteTrial(unit, 'read', 'large')],
  ['issue', () => issueTrial('/pki/issue')],
  ['register', () => issueTrial('/register')],
  ['revoke', () => revokeTrial()],
];

export const faultRow: Row = {
  name: '2',
  title: 'EIO, ENOSPC and short writes at every write, sync and truncation',
  target: '500 points x every write operation',
  units: UNITS_OF_EACH * OPERATIONS.length,
  goals: goalsOf(OPERATIONS),
  least: ['at a write', 'at a sync'],
  obstacle: compilerObstacle,
  run: (unit) => failEach(unit, OPERATIONS),
};

export function goalsOf(operations: Operations): Readonly<Record<string, number>> {
  return Object.fromEntries(operations.map(([name]) => [name, POINTS]));
}

/** A full unit tries one operation, and the next seed the next operation; a quick unit tries all of them. */
export async function failEach(
  unit: Unit, operations: Operations, ways = WAYS[unit.effort], fewest = FEWEST_POINTS[unit.effort],
): Promise<void> {
  const { effort, folder, seed } = unit;
  const faults = createFaultSwitch(folder, join(folder, 'pasted.db'));
  const bench = { unit, faults } as Bench;
  await startAgain(bench);
  await expectStatus(bench.client, 'POST', '/pki/ca', 201);
  const index = (seed - 1) % operations.length;
  for (const [name, makeTrial] of effort === 'quick' ? operations : operations.slice(index, index + 1)) {
    let points = 0;
    for (const how of ways) points += await everyCall(bench, name, makeTrial, how);
    // An operation that makes few calls is tried again, with other sizes.
    for (let turn = 0; points > 0 && points < fewest && !unit.isHopeless(); turn += 1) {
      points += await everyCall(bench, name, makeTrial, ways[turn % ways.length]!);
    }
  }
  bench.client.close();
  faults.close();
}

/**
 * Makes the first call fail, then the second and so on, until the operation makes no more calls; a quick unit makes
 * some of them fail. Resolves with how many failed.
 */
async function everyCall(bench: Bench, name: string, makeTrial: (unit: Unit) => Trial, how: Way): Promise<number> {
  const { unit } = bench;
  const { calls } = await onePoint(bench, name, makeTrial(unit), { ...how, call: NO_CALL });
  // The last call is the sync of the commit, unless something else went on at the same time.
  const all = Array.from({ length: calls + 10 }, (_, index) => index + 1);
  const points = unit.effort === 'quick' ? [1, Math.ceil(calls / 2), calls] : all;
  let hit = 0;
  for (const call of points) {
    if (unit.isHopeless()) break;
    const { faults, kind } = await onePoint(bench, name, makeTrial(unit), { ...how, call });
    if (faults === 0 && call > calls) break;
    if (faults === 0) continue;
    hit += 1;
    unit.count(name);
    unit.count(`at a ${kind}`);
  }
  return hit;
}

async function onePoint(bench: Bench, name: string, trial: Trial, fault: Fault): Promise<Delivered> {
  const { unit, faults } = bench;
  await trial.prepare(bench);
  faults.arm(fault);
  const isAcknowledged = await trial.act(bench);
  const delivered = faults.disarm();
  const where = { operation: name, ...fault, ...delivered, isAcknowledged };
  if (!bench.service.isAlive()) {
    unit.lose(`the process ended: ${name}`, { ...where, output: bench.service.output().slice(-2000) });
    await startAgain(bench);
    return delivered;
  }
  const isUndecided = fault.lasting && delivered.kind === 'sync' && !isAcknowledged;
  if (isUndecided) unit.count('undecided until the next write');
  else judgeImage(bench, trial, where);
  await goOn(bench, where);
  if (isUndecided) judgeImage(bench, trial, where);
  if (delivered.faults > 0) unit.count(isAcknowledged ? 'acknowledged' : 'refused');
  return delivered;
}

/**
 * When a sync and every write after it fail, a commit stays in the log that cannot be taken back: a kill before the
 * next write would make it take effect although it was refused. Everything else is decided when it is answered.
 */
function judgeImage(bench: Bench, trial: Trial, where: { readonly operation: string }): void {
  const image = inspectAsKilled(bench.service, bench.unit.folder);
  for (const what of image.faults) bench.unit.lose(`${what}: ${where.operation}`, where);
  const wrong = trial.judge(bench, image);
  if (wrong !== undefined) bench.unit.lose(`${wrong}: ${where.operation}`, where);
}

/**
 * The requests after a fault must work at once: reading always, and creating unless room was missing. In that case the
 * room in reserve may have been given up. Making it again takes ten seconds; a kill and a restart are quicker.
 */
async function goOn(bench: Bench, where: object): Promise<void> {
  const { unit } = bench;
  const model = createPasteModel(`after${unit.random.below(2 ** 31)}`, { burn: true, refusable: true });
  const created = await carryOut(bench.client, model, 'create', { bytes: 100 });
  if (created.seen.kind === 'done') {
    const burned = await carryOut(bench.client, model, 'read');
    if (burned.seen.kind !== 'done') unit.lose('reading after a fault does not work', { ...where, seen: burned.seen });
    return;
  }
  const isWithoutRoom = created.seen.kind === 'refused' && created.seen.status === 507;
  const listed = await bench.client.ask({ method: 'GET', path: '/pastes', headers: OWNING });
  if (!isWithoutRoom || listed?.status !== 200) {
    unit.lose('the request after a fault does not work', { ...where, seen: created.seen, listed: listed?.status });
  }
  // The service tries to make the reserve again every ten seconds; while it is there, there is room.
  const isReserveKept = existsSync(`${bench.service.databasePath}-ballast`);
  const again = createPasteModel(`again${unit.random.below(2 ** 31)}`, { refusable: true });
  if (isReserveKept && (await carryOut(bench.client, again, 'create', { bytes: 100 })).seen.kind !== 'done') {
    unit.lose('the room in reserve is not given up', where);
  }
  unit.count('room in reserve given up');
  await startAgain(bench);
}

const OWNING = { 'X-SSL-Client-SHA1': OWNER };
const COMMON_NAME = Buffer.from('{"common_name":"campaign"}');

async function startAgain(bench: Bench): Promise<void> {
  bench.client?.close();
  await bench.service?.kill();
  bench.service = await bench.unit.start({ folder: bench.unit.folder, environment: bench.faults.environment });
  bench.client = createClient(bench.service.port());
}

async function expectStatus(client: Client, method: string, path: string, status: number): Promise<Answer> {
  const headers = { ...OWNING, 'Content-Type': 'application/json' };
  // The authority has a name of its own, which no certificate may have.
  const named = path === '/pki/ca' ? {} : { body: COMMON_NAME };
  const answer = await client.ask({ method, path, headers, ...named });
  if (answer?.status === status) return answer;
  throw new Error(`${method} ${path} was answered ${answer?.status} ${answer?.body}`);
}

/** `read` reads a paste that is read only once. `through` gives what asks in the place of the client. */
export function pasteTrial(
  unit: Unit,
  action: Exclude<Action, 'look'>,
  size: 'small' | 'large',
  through: (client: Client) => Pick<Client, 'ask'> = (client) => client,
): Trial {
  const { random, effort } = unit;
  const model: PasteModel = createPasteModel(`p${random.below(2 ** 31)}`, { burn: action === 'read', refusable: true });
  const most = size === 'small' ? 3000 : LARGE_BYTES[effort];
  const terms: Terms = { bytes: size === 'small' ? random.between(40, most) : random.between(66_000, most) };
  let wrong: string | undefined;
  let done: PasteModel | undefined;
  return {
    async prepare({ client }) {
      if (action === 'create') return;
      const created = await carryOut(through(client), model, 'create', terms);
      if (created.seen.kind !== 'done') throw new Error(`preparing: ${JSON.stringify(created.seen)}`);
    },
    async act({ client }) {
      const acted = await carryOut(through(client), model, action, terms);
      wrong = acted.wrong ?? (acted.seen.kind === 'unknown' ? 'there was no answer' : undefined);
      done = model;
      return acted.seen.kind === 'done';
    },
    judge: (_, { pastes }) => wrong ?? judgePaste(done ?? model, pastes),
  };
}

/** Looks for the content, not the id: a paste that was not created has none, and no paste may have its content. */
function judgePaste(model: PasteModel, pastes: Inspection['pastes']): string | undefined {
  const versions = [...pastes.values()].map(({ content }) => versionOf(model, content));
  const state = versions.find((version) => version !== undefined) ?? 'gone';
  if (model.possible().includes(state)) return undefined;
  return `a kill now would leave ${state} where ${model.possible().join(' or ')} was said`;
}

function issueTrial(path: '/pki/issue' | '/register'): Trial {
  let before = 0;
  let fingerprint: string | undefined;
  return {
    prepare: async ({ service, unit }) => {
      before = inspectAsKilled(service, unit.folder).certificates.size;
    },
    act: async ({ client }) => {
      const headers = { ...OWNING, 'Content-Type': 'application/json' };
      const answer = await client.ask({ method: 'POST', path, headers, body: COMMON_NAME });
      if (answer === undefined || answer.status >= 300) return false;
      fingerprint = answer.headers['x-fingerprint-sha1'] ?? String(JSON.parse(String(answer.body))['fingerprint_sha1']);
      return true;
    },
    judge: (_, { certificates }) => {
      const isThere = [...certificates.values()].some((stored) => stored.fingerprint === fingerprint);
      const expected = before + (fingerprint === undefined ? 0 : 1);
      if (certificates.size === expected && (fingerprint === undefined || isThere)) return undefined;
      return `a kill now would leave ${certificates.size} certificates where ${expected} was said`;
    },
  };
}

function revokeTrial(): Trial {
  let serial = '';
  let isAcknowledged = false;
  return {
    prepare: async ({ client }) => {
      serial = String(JSON.parse(String((await expectStatus(client, 'POST', '/pki/issue', 201)).body))['serial']);
    },
    act: async ({ client }) => {
      const answer = await client.ask({ method: 'POST', path: `/pki/revoke/${serial}`, headers: OWNING });
      isAcknowledged = answer?.status === 200;
      return isAcknowledged;
    },
    judge: (_, { certificates }) => {
      if (certificates.get(serial)?.isRevoked === isAcknowledged) return undefined;
      return `a kill now would leave it ${isAcknowledged ? 'valid' : 'revoked'}, and the contrary was said`;
    },
  };
}
