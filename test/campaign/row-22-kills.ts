// Row 22, under kills: what was acknowledged of invitations, bans, renewals and delete tokens holds after kill -9 at
// random under load, of the service and now and then of the operator's command. The races are row-22-races.ts.

import { carryOut } from './actions.ts';
import { createClient } from './client.ts';
import { carriedOut, createAuthority, invite, listing, readGoverned, type Governed } from './governed.ts';
import {
  byToken, govern, newContent, newGovernedWorld, takePlace, type GovernedWorld, type KnownHolder,
} from './governed-load.ts';
import { inspect, type Inspection } from './inspect.ts';
import { killUnderLoad } from './kills.ts';
import { stateOf } from './model.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';

const KILLS = { quick: 2, full: 10 };
const CONNECTIONS = 8;

const LONGEST_LIFE_MS = { quick: 300, full: 900 };
const FEWEST_ACKNOWLEDGED = 40;

/** Of each round. A command takes a third of a second, so that most of them end under load and some after the kill. */
const MOST_USES = 40;
const CONTENTS = 6;

export const governedKillRow: Row = {
  name: '22k',
  title: 'kill -9 under load of invitations, bans, renewals and delete tokens',
  target: '200 kills',
  units: 20,
  least: ['kills', 'acknowledged', 'invited', 'stored'],
  bars: { readyMs: 2000 },
  async run(unit) {
    const world = newGovernedWorld();
    await killUnderLoad(unit, {
      kills: KILLS[unit.effort],
      longestLifeMs: LONGEST_LIFE_MS[unit.effort],
      fewestAcknowledged: FEWEST_ACKNOWLEDGED,
      world,
      begin: createAuthority,
      work: (service, round, isOver) => work(unit, world, service, { round, isOver }),
      examine: (service) => examine(unit, world, service),
    });
  },
};

async function work(
  unit: Unit, world: GovernedWorld, service: Service, { round, isOver }: { round: number; isOver: () => boolean },
): Promise<void> {
  const { random } = unit;
  while (world.contents.filter(({ state }) => state === 'free').length < CONTENTS) {
    world.contents.push(newContent(random, `s${unit.seed}r${round}c${world.contents.length}`));
  }
  const invited = await invite(service, random.between(1, MOST_USES));
  world.invitations.push({ ...invited, spent: 0, open: 0 });
  await Promise.all([
    govern(unit, world, service.port(), { connections: CONNECTIONS, isOver }), ban(unit, world, service, isOver),
  ]);
}

/** One content after the other; a third of the commands are killed too. */
async function ban(unit: Unit, world: GovernedWorld, service: Service, isOver: () => boolean): Promise<void> {
  for (const content of world.contents.filter(({ state }) => state === 'free').slice(0, CONTENTS / 2)) {
    if (isOver()) return;
    content.state = 'asked';
    const command = service.beginCommand(['paste', 'ban', content.sha256]);
    if (unit.random.oneIn(3)) setTimeout(() => command.kill(), unit.random.between(100, 500));
    const { status, output } = await command.ended;
    if (status === 0) content.state = 'banned';
    else if (status !== null) unit.lose(`a ban ended with ${status}`, output);
    unit.count(status === 0 ? 'banned' : 'commands killed');
  }
}

/** Checks what is there after a restart against what was acknowledged, and settles what was left open. */
async function examine(unit: Unit, world: GovernedWorld, service: Service): Promise<void> {
  const governed = readGoverned(service.databasePath);
  for (const fault of governed.faults) unit.lose(`after a kill: ${fault}`);
  compareInvitations(unit, world, governed);
  compareContents(unit, world, governed);
  const byHolder = Map.groupBy(governed.certificates, ({ holder }) => holder);
  for (const known of world.holders) compareHolder(unit, known, byHolder.get(known.holder) ?? []);
  const present = new Set(governed.certificates.map(({ fingerprint }) => fingerprint));
  const lost = world.fingerprints.filter((fingerprint) => !present.has(fingerprint));
  if (lost.length > 0) unit.lose(`after a kill ${lost.length} certificates of invited are lost`);
  const inspection = inspect(service.databasePath);
  for (const fault of inspection.faults) unit.lose(`after a kill: ${fault}`);
  comparePastes(unit, world, inspection);
  compareStored(unit, world, { ...inspection, ...governed });
  await askAgain(unit, world, service);
}

function compareInvitations(unit: Unit, { invitations }: GovernedWorld, governed: Governed): void {
  for (const known of invitations) {
    const left = governed.invitations.get(known.id) ?? NaN;
    const isPossible = left <= known.uses - known.spent && left >= Math.max(0, known.uses - known.spent - known.open);
    if (!isPossible) unit.lose(`after a kill an invitation has ${left} uses left`, known);
    known.spent = known.uses - left;
    known.open = 0;
  }
}

function compareContents(unit: Unit, { contents }: GovernedWorld, { banned, stored }: Governed): void {
  for (const content of contents.filter(({ state }) => state === 'banned')) {
    if (!banned.has(content.sha256)) unit.lose('after a kill a ban is lost', content.sha256);
    if (stored.has(content.sha256)) unit.lose('after a kill banned content is stored', content.sha256);
  }
  const isUnasked = contents.some(({ state, sha256 }) => state === 'free' && banned.has(sha256));
  if (isUnasked) unit.lose('after a kill content is banned that nobody asked for');
}

type Certificates = Governed['certificates'];

/** One must be in force, at most one not used yet, and both must be as acknowledged, except for what was open. */
function compareHolder(unit: Unit, known: KnownHolder, certificates: Certificates): void {
  const valid = certificates.filter(({ isRevoked }) => !isRevoked);
  const [inForce, ...others] = valid.filter(({ isUnused }) => !isUnused).map(({ fingerprint }) => fingerprint);
  const [unused, ...more] = valid.filter(({ isUnused }) => isUnused).map(({ fingerprint }) => fingerprint);
  const wasUsed = known.doubt === 'first use' && inForce === known.unused && unused === undefined;
  const wasRenewed = known.doubt === 'renewal' && unused !== undefined && !known.replaced.includes(unused);
  const isSame = unused === known.unused;
  const isRight = wasUsed || (inForce === known.inForce && (isSame || wasRenewed));
  if (!isRight || others.length > 0 || more.length > 0) {
    unit.lose('after a kill a holder has other certificates than were acknowledged', { known, certificates });
  }
  if (wasUsed) takePlace(known);
  else if (!isSame && known.unused !== undefined) known.replaced.push(known.unused);
  known.unused = unused;
  known.doubt = undefined;
}

export function comparePastes(unit: Unit, { pastes }: GovernedWorld, inspection: Inspection): void {
  for (const { model } of pastes.filter((known) => known.model.id() !== undefined)) {
    const state = stateOf(model, inspection.pastes.get(model.id() ?? ''));
    if (state === undefined || !model.possible().includes(state)) {
      unit.lose(`after a kill ${model.label} is ${state ?? 'what it cannot be'}`, model.possible());
    } else {
      model.settle(state);
    }
  }
}

/** A ban in force removes its content step by step; all of it is only gone when the ban is acknowledged. */
export function compareStored(
  unit: Unit, world: GovernedWorld, { pastes, banned }: Pick<Inspection, 'pastes'> & Pick<Governed, 'banned'>,
): void {
  for (const known of world.stored) {
    const { id, content, state } = known;
    const found = pastes.get(id);
    const mayBeGone = state !== 'there' || banned.has(content.sha256);
    const mayBeThere = state !== 'gone' && content.state !== 'banned';
    const isRight = found === undefined ? mayBeGone : mayBeThere && content.bytes.equals(found.content);
    if (!isRight) {
      const is = found === undefined ? 'not there' : 'there';
      unit.lose(`after a kill content that was stored is ${is}`, { id, state, content: content.state });
    }
    known.state = found === undefined ? 'gone' : 'there';
  }
}

/** Shows again what came from before the kill: certificates, tokens, and content whose ban was broken off. */
async function askAgain(unit: Unit, world: GovernedWorld, service: Service): Promise<void> {
  const client = createClient(service.port());
  for (const { inForce, replaced } of world.holders.slice(-6)) {
    const shown = await client.ask(listing(inForce));
    if (shown?.status !== 200) unit.lose(`after a kill what is in force was answered ${shown?.status}`, inForce);
    const old = replaced.length === 0 ? undefined : await client.ask(listing(replaced.at(-1)!));
    if (old !== undefined && old.status !== 401) unit.lose(`after a kill what was replaced was answered ${old.status}`);
  }
  for (const known of world.pastes.slice(-20)) {
    if (known.model.id() === undefined) continue;
    const action = unit.random.oneIn(2) ? 'delete' : 'look';
    const { wrong } = await carryOut(byToken(client, known), known.model, action);
    if (wrong !== undefined) unit.lose(`after a kill: ${wrong}`);
  }
  for (const content of world.contents.filter(({ state }) => state === 'asked')) {
    await carriedOut(service, ['paste', 'ban', content.sha256]);
    content.state = 'banned';
  }
  const governed = readGoverned(service.databasePath);
  compareContents(unit, world, governed);
  for (const content of world.contents.filter(({ state }) => state === 'banned').slice(-4)) {
    const stored = await client.ask({ method: 'POST', path: '/', body: content.bytes });
    if (stored?.status !== 403) unit.lose(`after a kill banned content was answered ${stored?.status}`);
  }
  client.close();
}
