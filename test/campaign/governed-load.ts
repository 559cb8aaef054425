// Many connections at once that register by invitation, renew, store content that is being banned, and create and
// delete pastes by their tokens, until the service is gone; and what is known about all that. The possible states are
// known exactly, since only one connection at a time changes a holder or a paste.

import { carryOut } from './actions.ts';
import { createClient, type Answer, type Ask, type Client } from './client.ts';
import { digestOf, issuing, listing, newRequest, renewing, type Invited } from './governed.ts';
import { createPasteModel, type Action, type PasteModel } from './model.ts';
import type { Unit } from './row.ts';
import type { Seeded } from '../support/seeded.ts';

export interface KnownInvitation extends Invited {
  /** Uses that were acknowledged, and uses that were asked for without an answer so far. */
  spent: number;
  open: number;
}

/** `asked`: its ban was asked for and is not acknowledged yet, or never will be. */
export interface KnownContent {
  readonly bytes: Buffer;
  readonly sha256: string;
  state: 'free' | 'asked' | 'banned';
}

/** A chain of renewals of one holder. */
export interface KnownHolder {
  /** The first fingerprint. */
  readonly holder: string;
  readonly csr: string;
  /** The fingerprint in force, and the one that was not used yet, as far as answers tell. */
  inForce: string;
  unused: string | undefined;
  /** Earlier fingerprints. */
  readonly replaced: string[];
  renewals: number;
  /** What was asked for last, while it has no answer. */
  doubt: 'renewal' | 'first use' | undefined;
  isTaken: boolean;
}

export interface KnownTokenPaste {
  readonly model: PasteModel;
  token: string;
  isTaken: boolean;
}

/** Content that was stored, under an id of its own. */
export interface KnownStored {
  readonly id: string;
  readonly content: KnownContent;
  /** `asked`: its deletion was asked for, and no answer came. */
  state: 'there' | 'asked' | 'gone';
}

export interface GovernedWorld {
  readonly invitations: KnownInvitation[];
  readonly contents: KnownContent[];
  readonly holders: KnownHolder[];
  readonly pastes: KnownTokenPaste[];
  readonly stored: KnownStored[];
  /** Of certificates that were acknowledged. */
  readonly fingerprints: string[];
  acknowledged: number;
}

export function newGovernedWorld(): GovernedWorld {
  return { invitations: [], contents: [], holders: [], pastes: [], stored: [], fingerprints: [], acknowledged: 0 };
}

/** A holder may have 24 certificates a day, the first one included. */
const RENEWALS = 22;
const HOLDERS = 4;

type Chore = (site: Site) => Promise<boolean>;

interface Site {
  readonly unit: Unit;
  readonly world: GovernedWorld;
  readonly client: Client;
}

export async function govern(
  unit: Unit,
  world: GovernedWorld,
  port: number,
  { connections, isOver }: { connections: number; isOver: () => boolean },
): Promise<void> {
  const chores: readonly Chore[] = [useInvitation, renewOrUse, store, store, actByToken, actByToken];
  await Promise.all(Array.from({ length: connections }, async () => {
    const client = createClient(port);
    const site = { unit, world, client };
    let isThere = true;
    while (isThere && !isOver() && !unit.isHopeless()) isThere = await unit.random.pick(chores)(site);
    if (!isThere && !isOver()) unit.lose('a connection was broken off');
    client.close();
  }));
}

function noted({ unit, world }: Site, what: string): true {
  world.acknowledged += 1;
  unit.count(what);
  return true;
}

function isOneOf(answer: Answer, ...statuses: number[]): boolean {
  return statuses.includes(answer.status);
}

function loseAnswer({ unit }: Site, what: string, { status, body }: Answer): true {
  unit.lose(`${what} was answered ${status} ${body.toString('latin1', 0, 200)}`);
  return true;
}

/** A refusal is right only when all uses may have been spent. */
async function useInvitation(site: Site): Promise<boolean> {
  const { unit, world, client } = site;
  // Invitations that are used up are tried now and then.
  const some = world.invitations.filter(({ spent, open, uses }) => spent + open < uses || unit.random.oneIn(30));
  if (some.length === 0) return true;
  const invitation = unit.random.pick(some);
  invitation.open += 1;
  const answer = await client.ask(issuing({ 'X-Invite': invitation.code }));
  if (answer === undefined) return false;
  const { spent, open, uses } = invitation;
  invitation.open -= 1;
  if (answer.status === 403) {
    if (spent + open - 1 < uses) unit.lose(`an invitation for ${uses} was refused after ${spent}`, invitation);
    return noted(site, 'invitation refused');
  }
  if (answer.status !== 201) return loseAnswer(site, 'an invitation', answer);
  invitation.spent += 1;
  if (invitation.spent > uses) unit.lose(`an invitation for ${uses} is overdrawn`, invitation);
  world.fingerprints.push(fingerprintOf(answer));
  return noted(site, 'invited');
}

function fingerprintOf({ body }: Answer): string {
  return String((JSON.parse(String(body)) as Record<string, string>)['fingerprint_sha1']);
}

async function renewOrUse(site: Site): Promise<boolean> {
  const { unit, world } = site;
  const usable = world.holders.filter(({ isTaken, doubt, renewals }) => {
    return !isTaken && doubt === undefined && renewals < RENEWALS;
  });
  if (usable.length < HOLDERS) return obtain(site);
  const holder = unit.random.pick(usable);
  holder.isTaken = true;
  const isThere = await (holder.unused !== undefined && unit.random.oneIn(2) ? use : renew)(site, holder);
  holder.isTaken = false;
  return isThere;
}

async function obtain(site: Site): Promise<boolean> {
  const { world, client } = site;
  const answer = await client.ask(issuing());
  if (answer === undefined) return false;
  if (answer.status !== 201) return loseAnswer(site, 'issuing', answer);
  const inForce = fingerprintOf(answer);
  const blank = { unused: undefined, replaced: [], renewals: 0, doubt: undefined, isTaken: false };
  world.holders.push({ holder: inForce, csr: newRequest(), inForce, ...blank });
  return noted(site, 'issued');
}

async function renew(site: Site, known: KnownHolder): Promise<boolean> {
  known.doubt = 'renewal';
  known.renewals += 1;
  const answer = await site.client.ask(renewing(known.inForce, known.csr));
  if (answer === undefined) return false;
  known.doubt = undefined;
  if (answer.status !== 201) return loseAnswer(site, 'a renewal', answer);
  // The renewal replaces an earlier one that was not used.
  if (known.unused !== undefined) known.replaced.push(known.unused);
  known.unused = fingerprintOf(answer);
  return noted(site, 'renewed');
}

async function use(site: Site, known: KnownHolder): Promise<boolean> {
  known.doubt = 'first use';
  const answer = await site.client.ask(listing(known.unused!));
  if (answer === undefined) return false;
  known.doubt = undefined;
  if (answer.status !== 200) return loseAnswer(site, 'a first use', answer);
  takePlace(known);
  return noted(site, 'used first');
}

export function takePlace(known: KnownHolder): void {
  known.replaced.push(known.inForce);
  known.inForce = known.unused!;
  known.unused = undefined;
}

/** Stores content that is free, is being banned, or is banned; most of what is stored is deleted again at once. */
async function store(site: Site): Promise<boolean> {
  const { unit, world, client } = site;
  const content = unit.random.pick(world.contents);
  const before = content.state;
  const answer = await client.ask({ method: 'POST', path: '/', body: content.bytes });
  if (answer === undefined) return false;
  const isRight = before === 'banned' ? answer.status === 403
    : content.state === 'free' ? answer.status === 201 : isOneOf(answer, 201, 403);
  if (!isRight) return loseAnswer(site, `storing content that was ${before} and is ${content.state}`, answer);
  noted(site, answer.status === 201 ? 'stored' : 'refused as banned');
  if (answer.status !== 201) return true;
  const { id } = JSON.parse(String(answer.body)) as { id: string };
  const stored: KnownStored = { id, content, state: 'there' };
  world.stored.push(stored);
  if (unit.random.oneIn(4)) return true;
  stored.state = 'asked';
  const headers = { 'X-Delete-Token': answer.headers['x-delete-token'] ?? '' };
  const removed = await client.ask({ method: 'DELETE', path: `/${id}`, headers });
  if (removed === undefined) return false;
  const isGone = removed.status === 404 && content.state !== 'free';
  if (removed.status !== 200 && !isGone) return loseAnswer(site, 'a token', removed);
  stored.state = 'gone';
  return noted(site, 'stored and deleted');
}

async function actByToken(site: Site): Promise<boolean> {
  const { unit, world } = site;
  const there = world.pastes.filter(({ model, isTaken }) => !isTaken && mayBeThere(model));
  if (there.length < 20 || unit.random.oneIn(3)) {
    const model = createPasteModel(`s${unit.seed}g${world.pastes.length}`, { burn: unit.random.oneIn(4) });
    const known = { model, token: '', isTaken: true };
    world.pastes.push(known);
    return actOn(site, known, 'create');
  }
  const known = unit.random.pick(there);
  known.isTaken = true;
  return actOn(site, known, unit.random.pick<Action>(['delete', 'delete', known.model.burn ? 'look' : 'read']));
}

function mayBeThere(model: PasteModel): boolean {
  return model.id() !== undefined && model.possible().some((state) => state !== 'gone');
}

async function actOn(site: Site, known: KnownTokenPaste, action: Action): Promise<boolean> {
  const { unit, client } = site;
  const bytes = unit.random.oneIn(8) ? unit.random.between(66_000, 400_000) : unit.random.between(40, 4000);
  const { seen, wrong } = await carryOut(byToken(client, known), known.model, action, { bytes });
  known.isTaken = false;
  if (wrong !== undefined) unit.lose(wrong);
  return seen.kind !== 'unknown' && noted(site, `${action} by token`);
}

/** Nobody owns these pastes: each deletion shows the token that an earlier answer gave. */
export function byToken(client: Pick<Client, 'ask'>, known: KnownTokenPaste): Pick<Client, 'ask'> {
  return {
    ask: async (request: Ask) => {
      const { 'X-SSL-Client-SHA1': _, ...headers } = request.headers ?? {};
      const shown: Record<string, string> = request.method === 'DELETE' ? { 'X-Delete-Token': known.token } : {};
      const answer = await client.ask({ ...request, headers: { ...headers, ...shown } });
      known.token = answer?.headers['x-delete-token'] ?? known.token;
      return answer;
    },
  };
}

export function newContent(random: Seeded, label: string): KnownContent {
  const bytes = Buffer.alloc(random.pick([100, 5000, 200_000]), `${label}; `);
  return { bytes, sha256: digestOf(bytes), state: 'free' };
}
