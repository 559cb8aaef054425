// Many connections at once that create, read, update, delete and burn pastes and issue and revoke certificates, until
// the service is gone. Every answer is checked against the model. One connection at a time changes a paste, and all
// read it, so its possible states are known exactly; the rows of races try two changes at once.

import { setTimeout as pause } from 'node:timers/promises';
import { carryOut } from './actions.ts';
import { createClient, type Answer, type Ask, type Client } from './client.ts';
import { createPasteModel, type Action, type Attempt, type PasteModel, type Seen } from './model.ts';
import type { Unit } from './row.ts';

/** One action on a paste, written down to help find the cause of a failure. */
export interface Entry {
  /** The action came between the kill of that number and the next; -1 for a look at what a kill has left. */
  readonly round: number;
  readonly connection: number;
  readonly action: Action;
  readonly attempt: Attempt;
  readonly seen: Seen;
  /** When the answer came, or when it was clear that none would come. */
  readonly endMs: number;
  readonly ttlSeconds?: number | undefined;
}

export interface KnownPaste {
  readonly model: PasteModel;
  readonly history: Entry[];
  /** A connection is changing it. */
  isTaken: boolean;
}

export interface KnownCertificate {
  readonly serial: string;
  readonly fingerprint: string;
  readonly issued: Span;
  /** `asked`: its revocation was asked for, and no answer came. */
  state: 'valid' | 'asked' | 'revoked';
  /** The last time that its revocation was asked for. */
  revoked?: Span;
}

/** From the request to its answer; Infinity while there is no answer. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Everything that was asked of one database. */
export interface World {
  readonly pastes: KnownPaste[];
  /** Pastes that are gone and not asked for any more; the database must not have them. */
  readonly forgotten: KnownPaste[];
  /** Creations without an answer: the paste may be there, under an id that is not known yet. */
  readonly unanswered: KnownPaste[];
  readonly certificates: KnownCertificate[];
  unansweredCertificates: number;
  /** Counts changes only; reads are there to check the changes. */
  acknowledged: number;
  /** Whether a request that was never answered may still be carried out after a look, as in a cluster. */
  readonly isLate: boolean;
  /**
   * In a cluster where a node may be full, 507 says no more than 503: others may have had room. For this long another
   * host may lose a change of the same paste, so none is made. Undefined where 507 means that nothing was done.
   */
  readonly unsettledMs: number | undefined;
  /** How often 507 was the answer. */
  refused: number;
  /** The first paste with which something was wrong. */
  suspect: KnownPaste | undefined;
}

/** One of the connections of a round. */
interface Worker {
  readonly client: Client;
  readonly connection: number;
  readonly round: number;
}

export function newWorld({ isLate = false, unsettledMs }: { isLate?: boolean; unsettledMs?: number } = {}): World {
  return {
    pastes: [], forgotten: [], unanswered: [], certificates: [], unansweredCertificates: 0, acknowledged: 0, isLate,
    unsettledMs, refused: 0, suspect: undefined,
  };
}

const LARGEST_SMALL_BYTES = 4000;
const LARGEST_BYTES = 700_000;

/** While there are fewer pastes than this, half of the removals are skipped. */
const ENOUGH_PASTES = 150;

/** What a connection does next, by weight. */
const WEIGHTS: readonly (readonly [Chore, number])[] = [
  ['create', 30], ['update', 18], ['remove', 22], ['readOwn', 8], ['readAny', 16],
  ['issue', 2], ['register', 1], ['revoke', 2],
];
type Chore = 'create' | 'update' | 'remove' | 'readOwn' | 'readAny' | 'issue' | 'register' | 'revoke';
const CHORES: readonly Chore[] = WEIGHTS.flatMap(([chore, weight]) => Array<Chore>(weight).fill(chore));

interface Working {
  readonly round: number;
  readonly connections: number;
  readonly isOver: () => boolean;
  /** Takes 503 for no answer and goes on after it: a cluster may answer 503 before it gives the request up. */
  readonly isPatient?: boolean;
}

/** Works on the service until it is gone, or `isOver`. */
export async function workOn(unit: Unit, world: World, port: number, working: Working): Promise<void> {
  const { round, connections, isOver, isPatient = false } = working;
  const workers = Array.from({ length: connections }, async (_, connection) => {
    const client = isPatient ? patientClient(unit, world, port) : createClient(port);
    let isThere = true;
    while (isThere && !isOver() && !unit.isHopeless()) {
      isThere = await doOne(unit, world, { client, connection, round });
      if (!isThere && isPatient) isThere = await pause(PATIENT_MS, true);
    }
    if (!isThere && !isOver()) unit.lose('a connection was broken off');
    client.close();
  });
  await Promise.all(workers);
}

/** Creates a paste as the load does; false when that was not acknowledged. */
export async function storeOne(unit: Unit, world: World, port: number, round: number): Promise<boolean> {
  const client = patientClient(unit, world, port);
  try {
    return await create(unit, world, { client, connection: 0, round });
  } finally {
    client.close();
  }
}

/** A pause, since thousands a second may go unanswered, and some of those are looked for in all that is stored. */
const PATIENT_MS = 20;

function patientClient(unit: Unit, world: World, port: number): Client {
  const { unsettledMs } = world;
  const client = createClient(port);
  const ask = async (request: Ask): Promise<Answer | undefined> => {
    const answer = await client.ask(request);
    if (answer?.status === 507 && unsettledMs !== undefined) {
      unit.count('refused with 507');
      world.refused += 1;
      // The asking connection has taken the paste, so no other changes it until then.
      return pause(unsettledMs, undefined);
    }
    return answer?.status === 503 ? undefined : answer;
  };
  return { ...client, ask };
}

/** Whether the service answered. */
async function doOne(unit: Unit, world: World, worker: Worker): Promise<boolean> {
  const { random } = unit;
  const chore = random.pick(CHORES);
  switch (chore) {
    case 'create':
      return create(unit, world, worker);
    case 'issue':
    case 'register':
      return obtain(unit, world, worker.client, chore);
    case 'revoke':
      return revoke(unit, world, worker.client);
    case 'readAny': {
      // An answer that there is nothing takes as long as a password check; many would take up most of the time.
      const isWanted = random.oneIn(50) ? isGone : isNotGone;
      const others = world.pastes.filter((known) => !known.model.burn && isWanted(known));
      return others.length === 0 || act(unit, world, worker, random.pick(others), random.pick(['read', 'look']));
    }
    case 'update':
    case 'remove':
    case 'readOwn': {
      if (chore === 'remove' && world.pastes.length < ENOUGH_PASTES && !random.oneIn(2)) return true;
      const free = world.pastes.filter((known) => {
        return !known.isTaken && isNotGone(known) && !(known.model.burn && chore === 'update');
      });
      if (free.length === 0) return true;
      const known = random.pick(free);
      const removal = known.model.burn ? 'read' : 'delete';
      const action = { update: 'update', remove: removal, readOwn: known.model.burn ? 'look' : 'read' } as const;
      return alone(known, () => act(unit, world, worker, known, action[chore]));
    }
  }
}

export function isGone({ model }: KnownPaste): boolean {
  return model.hasExpiredAt(Date.now()) || model.possible().every((state) => state === 'gone');
}

const isNotGone = (known: KnownPaste): boolean => !isGone(known);

async function alone<Result>(known: KnownPaste, work: () => Promise<Result>): Promise<Result> {
  known.isTaken = true;
  try {
    return await work();
  } finally {
    known.isTaken = false;
  }
}

async function create(unit: Unit, world: World, worker: Worker): Promise<boolean> {
  const { random, seed } = unit;
  const label = `s${seed}r${worker.round}n${random.below(2 ** 31)}`;
  const model = createPasteModel(label, { burn: random.oneIn(3), isLate: world.isLate });
  const known: KnownPaste = { model, history: [], isTaken: true };
  const ttlSeconds = random.oneIn(8) ? random.between(1, 4) : undefined;
  const isThere = await act(unit, world, worker, known, 'create', ttlSeconds);
  known.isTaken = false;
  if (model.id() === undefined) world.unanswered.push(known);
  else world.pastes.push(known);
  return isThere;
}

async function act(
  unit: Unit,
  world: World,
  { client, connection, round }: Worker,
  known: KnownPaste,
  action: Action,
  ttlSeconds?: number,
): Promise<boolean> {
  const { random } = unit;
  const bytes = random.oneIn(12) ? random.between(65_000, LARGEST_BYTES) : random.between(40, LARGEST_SMALL_BYTES);
  const { attempt, seen, wrong, endMs } = await carryOut(client, known.model, action, { bytes, ttlSeconds });
  known.history.push({ round, connection, action, attempt, seen, endMs, ttlSeconds });
  if (wrong !== undefined) lose(unit, world, known, wrong);
  if (seen.kind === 'unknown') return false;
  if (attempt.changes && seen.kind === 'done') world.acknowledged += 1;
  unit.count(action);
  return true;
}

/** Something is wrong with this paste. */
export function lose(unit: Unit, world: World, known: KnownPaste, wrong: string): void {
  world.suspect ??= known;
  unit.lose(wrong, evidenceOf(known));
}

/** The whole history of one paste, as JSON. */
function evidenceOf({ model, history }: KnownPaste): unknown {
  const entries = history.map(({ round, action, attempt, seen, endMs, ttlSeconds }) => ({
    round, action, version: attempt.version, bytes: model.bytesOf(attempt.version), ttlSeconds,
    atMs: attempt.startMs, endMs, seen,
  }));
  return { label: model.label, id: model.id(), burn: model.burn, possible: model.possible(), entries };
}

async function obtain(unit: Unit, world: World, client: Client, how: 'issue' | 'register'): Promise<boolean> {
  world.unansweredCertificates += 1;
  const path = how === 'issue' ? '/pki/issue' : '/register';
  const body = Buffer.from(JSON.stringify({ common_name: 'campaign' }));
  const fromMs = Date.now();
  const answer = await client.ask({ method: 'POST', path, headers: { 'Content-Type': 'application/json' }, body });
  if (answer === undefined) return false;
  world.unansweredCertificates -= 1;
  if (answer.status !== (how === 'issue' ? 201 : 200)) {
    unit.lose(`${how} was answered ${answer.status} ${answer.body.toString('latin1', 0, 200)}`);
    return true;
  }
  const issued = { fromMs, toMs: Date.now() };
  if (how === 'issue') {
    const { serial, fingerprint_sha1: fingerprint } = JSON.parse(String(answer.body)) as Record<string, string>;
    world.certificates.push({ serial: serial ?? '', fingerprint: fingerprint ?? '', issued, state: 'valid' });
  } else {
    // Only the bundle has the serial, and the load does not read it.
    const fingerprint = answer.headers['x-fingerprint-sha1'] ?? '';
    world.certificates.push({ serial: '', fingerprint, issued, state: 'valid' });
  }
  world.acknowledged += 1;
  unit.count(how);
  return true;
}

/** The first certificate is the admin's, and is never revoked. */
async function revoke(unit: Unit, world: World, client: Client): Promise<boolean> {
  const valid = world.certificates.slice(1).filter(({ state, serial }) => state === 'valid' && serial !== '');
  if (valid.length === 0) return true;
  const certificate = unit.random.pick(valid);
  const fromMs = Date.now();
  certificate.state = 'asked';
  certificate.revoked = { fromMs, toMs: Infinity };
  const headers = { 'X-SSL-Client-SHA1': certificate.fingerprint };
  const answer = await client.ask({ method: 'POST', path: `/pki/revoke/${certificate.serial}`, headers });
  if (answer === undefined) return false;
  if (answer.status !== 200) unit.lose(`revoking was answered ${answer.status} ${answer.body}`, certificate);
  certificate.state = 'revoked';
  certificate.revoked = { fromMs, toMs: Date.now() };
  world.acknowledged += 1;
  unit.count('revoke');
  return true;
}
