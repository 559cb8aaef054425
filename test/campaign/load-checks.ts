// Checks what is there after a kill, in the database and in answers, against what was acknowledged under load.

import { carryOut } from './actions.ts';
import { createClient } from './client.ts';
import type { Inspection, StoredPaste } from './inspect.ts';
import { isGone, lose, type KnownCertificate, type KnownPaste, type World } from './load.ts';
import { stateOf, type Seen } from './model.ts';
import type { Unit } from './row.ts';
import type { Service } from './service.ts';

const LOOKERS = 24;

/** How many pastes that are gone stay among those that are looked at after every kill. */
const GONE_KEPT = 24;

/** Over many connections at once, because looking for what is gone takes as long as a password check. */
export async function lookAtAll(unit: Unit, world: World, services: readonly Service[]): Promise<void> {
  const rest = [...world.pastes];
  const lookers = Array.from({ length: LOOKERS }, async (_, looker) => {
    const service = services[looker % services.length]!;
    const client = createClient(service.port());
    for (let known = rest.pop(); known !== undefined; known = rest.pop()) {
      const action = known.model.burn ? 'look' : 'read';
      const { attempt, seen, wrong, endMs } = await carryOut(client, known.model, action);
      known.history.push({ round: -1, connection: 0, action, attempt, seen, endMs });
      if (wrong !== undefined) lose(unit, world, known, `after a kill: ${wrong}`);
      if (seen.kind === 'unknown') unit.lose('the service went away under a look', service.output().slice(-2000));
    }
    client.close();
  });
  await Promise.all(lookers);
}

/**
 * Nothing is under way, so a restart has settled what was open, unless that may be carried out late. A paste that is
 * stored under an id that nobody was told must have been asked for, and is known from now on.
 */
export function compareStored(unit: Unit, world: World, { pastes }: Inspection): void {
  const unknown = new Map(pastes);
  for (const known of [...world.pastes, ...world.forgotten]) {
    const { model } = known;
    const stored = pastes.get(model.id() ?? '');
    unknown.delete(model.id() ?? '');
    const state = stateOf(model, stored);
    const isExpired = state === 'gone' && model.hasExpiredAt(Date.now());
    if (state === undefined || !(isExpired || model.possible().includes(state))) {
      lose(unit, world, known, `after a kill ${model.label} is ${state ?? 'what it cannot be'} in the database`);
    } else if (!world.isLate) {
      model.settle(state);
    }
  }
  for (const [id, stored] of unknown) {
    const asked = world.unanswered.find(({ model }) => stateOf(model, stored) !== undefined);
    const { content } = stored;
    const seen = { bytes: content.length, begins: Buffer.from(content.subarray(0, 80)).toString('latin1') };
    if (asked === undefined) unit.lose(`after a kill there is a paste ${id} that nobody asked for`, seen);
    else if (!world.isLate) adopt(world, asked, id, stored);
  }
  if (!world.isLate) world.unanswered.splice(0);
}

/** As if its creation were answered now. */
function adopt(world: World, known: KnownPaste, id: string, { expiresAt }: StoredPaste): void {
  const created = known.history[0]!;
  const seen: Seen = { kind: 'done', id, expiresAt };
  const endMs = Date.now();
  known.model.end(created.attempt, seen, endMs);
  known.history[0] = { ...created, seen, endMs };
  world.pastes.push(known);
}

export function compareCertificates(unit: Unit, world: World, { certificates }: Inspection): void {
  const byFingerprint = new Map([...certificates.values()].map((stored) => [stored.fingerprint, stored]));
  for (const known of world.certificates) {
    const stored = byFingerprint.get(known.fingerprint);
    if (stored === undefined) unit.lose('after a kill an issued certificate is lost', known);
    else if (known.state === 'asked') settleCertificate(known, stored.isRevoked);
    else if (stored.isRevoked !== (known.state === 'revoked')) {
      unit.lose(`after a kill a certificate that was ${known.state} is not`, known);
    }
  }
  const extra = certificates.size - world.certificates.length;
  if (extra > world.unansweredCertificates) unit.lose(`after a kill ${extra} certificates are there unasked for`);
}

/** Also notes when, for later questions about the moment of which a database is. */
export function settleCertificate(known: KnownCertificate, isRevoked: boolean): void {
  known.state = isRevoked ? 'revoked' : 'valid';
  if (!isRevoked) delete known.revoked;
  else if (known.revoked?.toMs === Infinity) known.revoked = { ...known.revoked, toMs: Date.now() };
}

/** Of what is gone, only some is asked for again, because an answer that there is nothing takes long. */
export function forgetSome(unit: Unit, world: World): void {
  // Asks `isGone` once for each: with two calls, a paste that expires in between would be in neither group.
  const { gone = [], kept = [] } = Object.groupBy(world.pastes, (known) => (isGone(known) ? 'gone' : 'kept'));
  while (gone.length > GONE_KEPT) world.forgotten.push(...gone.splice(unit.random.below(gone.length), 1));
  world.pastes.splice(0, Infinity, ...kept, ...gone);
}
