// Row 22: 16 clients at once race for what an operator and a holder decide: an invitation for fewer, content while it
// is banned, renewals of one certificate and the first use of them all, the delete token of one paste. Kills are in
// row-22-kills.ts.

import { setTimeout as pause } from 'node:timers/promises';
import { createClient, type Answer, type Ask, type Client } from './client.ts';
import {
  carriedOut, createAuthority, digestOf, invite, issuing, listing, newRequest, readGoverned, renewing,
  type HeldCertificate,
} from './governed.ts';
import { inspect } from './inspect.ts';
import { contentOf } from './model.ts';
import { createRacers, isShed, type Racers } from './races.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';

const RACERS = 16;

/** Of one invitation. */
const MOST_USES = 1000;

/** Rounds of races: each has an invitation, withdrawn in every second round, a ban, renewals and a delete token. */
const RACES = { quick: 2, full: 10 };

export const governedRow: Row = {
  name: '22',
  title: 'one invitation, content that is banned, one renewal, one delete token: asked for by 16 at once',
  target: '2 000 x 16',
  units: 40,
  least: ['invitation', 'withdrawal', 'content', 'ban', 'renewal', 'first use', 'delete token'],
  async run(unit) {
    const service = await unit.start({ folder: unit.folder });
    const client = createClient(service.port());
    const racers = createRacers(service.port(), RACERS);
    await createAuthority(service);
    const kept = await client.ask({ method: 'POST', path: '/', body: BYSTANDER });
    const keptId = String(JSON.parse(String(kept?.body))['id']);
    const site: Site = { unit, service, client, racers };
    for (let race = 0; race < RACES[unit.effort] && !unit.isHopeless(); race += 1) {
      await (race % 2 === 0 ? raceForInvitation : raceWithWithdrawal)(site);
      await raceWithBan(site, `s${unit.seed}b${race}`);
      await raceForRenewal(site);
      await raceForToken(site, `s${unit.seed}t${race}`);
    }
    client.close();
    racers.close();
    await expectRemoved(unit, service);
    const { faults, pastes } = inspect(service.databasePath);
    const isKept = pastes.size === 1 && pastes.get(keptId)?.content !== undefined && BYSTANDER.equals(pastes.get(keptId)!.content);
    if (!isKept) unit.lose('the paste that nobody decided about is not alone, or not what it was', [...pastes.keys()]);
    for (const fault of [...faults, ...readGoverned(service.databasePath).faults]) unit.lose(fault);
  },
};

/** The content of a paste to which nothing may happen. */
const BYSTANDER = contentOf('bystander', 1, 300_000);

/** What was banned, burned or deleted is removed in steps. */
const REMOVED_WITHIN_MS = 10_000;

async function expectRemoved(unit: Unit, { databasePath }: Service): Promise<void> {
  const startMs = performance.now();
  for (;;) {
    const { orphans } = inspect(databasePath);
    if (orphans === 0) return;
    if (performance.now() - startMs > REMOVED_WITHIN_MS) return unit.lose(`${orphans} contents are left of what was removed`);
    await pause(50);
  }
}

interface Site {
  readonly unit: Unit;
  readonly service: Service;
  readonly client: Client;
  readonly racers: Racers;
}

/** Resolves with the answers; each must have an allowed status, or be shed. */
async function race(
  { unit, racers }: Site,
  what: string,
  requests: readonly Ask[],
  allowed: readonly number[],
): Promise<readonly Answer[]> {
  const answers = await racers.race(requests);
  unit.count(what);
  unit.count('requests', requests.length);
  const given = answers.map((answer) => answer ?? NO_ANSWER);
  const isRight = given.every((answer) => allowed.includes(answer.status) || isShed(answer));
  if (!isRight) unit.lose(`answers that must not be: ${what}`, statuses(given));
  return given;
}

const NO_ANSWER: Answer = { status: 0, headers: {}, body: Buffer.alloc(0) };

function statuses(answers: readonly Answer[]): unknown {
  return answers.map(({ status, body }) => [status, body.toString('latin1', 0, 120)]);
}

/** An invitation for fewer than ask. */
async function raceForInvitation(site: Site): Promise<void> {
  const { unit, service } = site;
  const { id, code, uses } = await invite(service, unit.random.between(1, RACERS - 1));
  const before = readGoverned(service.databasePath).certificates.length;
  const answers = await race(site, 'invitation', registering(code), [200, 201, 403]);
  const successes = answers.filter(isLetIn).length;
  const { invitations, certificates } = readGoverned(service.databasePath);
  const left = invitations.get(id);
  const isRight = left === uses - successes && (successes === uses || answers.some(isShed));
  if (!isRight) unit.lose(`an invitation for ${uses} let ${successes} in, and ${left} are left`, statuses(answers));
  if (certificates.length !== before + successes) unit.lose(`${certificates.length - before} certificates came of it`);
  if (left === 0) await expectOver(site, code);
}

/** An invitation for more than ask, again and again while it is withdrawn; after that every request is refused. */
async function raceWithWithdrawal(site: Site): Promise<void> {
  const { unit, service } = site;
  const { id, code } = await invite(service, MOST_USES);
  const before = readGoverned(service.databasePath).certificates.length;
  let successes = 0;
  const register = async (): Promise<void> => {
    const answers = await race(site, 'invitation', registering(code), [200, 201, 403]);
    successes += answers.filter(isLetIn).length;
  };
  await register();
  if (successes === 0) unit.lose('nobody was let in before the invitation was withdrawn');
  await askBeside(site, ['invite', 'withdraw', String(id)], register);
  const { invitations, certificates } = readGoverned(service.databasePath);
  unit.count('withdrawal');
  if (invitations.has(id)) unit.lose('an invitation is there that was withdrawn');
  if (certificates.length !== before + successes) unit.lose(`${certificates.length - before} certificates came of it`);
  await expectOver(site, code);
}

function registering(code: string): Ask[] {
  const headers = { 'X-Invite': code };
  const register: Ask = { method: 'POST', path: '/register', headers };
  return Array.from({ length: RACERS }, (_, racer) => (racer % 2 === 0 ? register : issuing(headers)));
}

function isLetIn({ status }: Answer): boolean {
  return status === 200 || status === 201;
}

async function expectOver({ unit, client }: Site, code: string): Promise<void> {
  const late = await client.ask(issuing({ 'X-Invite': code }));
  if (late?.status !== 403) unit.lose(`an invitation that is over was answered ${late?.status}`);
}

/** Asks again and again until the command has ended. */
async function askBeside({ service }: Site, command: readonly string[], ask: () => Promise<void>): Promise<void> {
  let isOver = false;
  const commanding = carriedOut(service, command).finally(() => (isOver = true));
  const asking = async (): Promise<void> => {
    for (; !isOver; await pause(30)) await ask();
  };
  await Promise.all([commanding, asking()]);
}

/** 16 store content again and again while it is banned; after that every request is refused, and none of it is left. */
async function raceWithBan(site: Site, label: string): Promise<void> {
  const { unit, service, client } = site;
  const content = contentOf(label, 1, unit.random.pick([200, 20_000, 300_000]));
  const requests = Array<Ask>(RACERS).fill({ method: 'POST', path: '/', body: content });
  const ids: string[] = [];
  const store = async (): Promise<void> => {
    const answers = await race(site, 'content', requests, [201, 403]);
    const stored = answers.filter(({ status }) => status === 201);
    ids.push(...stored.map(({ body }) => String(JSON.parse(String(body))['id'])));
  };
  await store();
  if (ids.length === 0) unit.lose('nothing was stored before the ban', label);
  await askBeside(site, ['paste', 'ban', digestOf(content)], store);
  const before = ids.length;
  await store();
  const late = ids.length - before;
  unit.count('ban');
  if (late > 0) unit.lose(`${late} were stored after the ban was acknowledged`);
  const { stored, banned } = readGoverned(service.databasePath);
  if (stored.has(digestOf(content)) || !banned.has(digestOf(content))) unit.lose('banned content is stored', label);
  for (const id of [ids[0], ids.at(-1)]) {
    const read = await client.ask({ method: 'GET', path: `/${id}/raw` });
    if (read?.status !== 404) unit.lose(`a paste of banned content was answered ${read?.status}`);
  }
}

/** All renew the same certificate: one renewal is left, and its first use puts it in the certificate's place. */
async function raceForRenewal(site: Site): Promise<void> {
  const { unit, client, service } = site;
  const issued = await client.ask(issuing());
  const holder = String(JSON.parse(String(issued?.body))['fingerprint_sha1']);
  const renewals = await race(site, 'renewal', Array<Ask>(RACERS).fill(renewing(holder, newRequest())), [201]);
  const renewed = renewals.filter(({ status }) => status === 201)
    .map(({ body }) => String(JSON.parse(String(body))['fingerprint_sha1']));
  const valid = validOf(service, holder);
  const [unused, others] = [valid.filter(({ isUnused }) => isUnused), valid.filter(({ isUnused }) => !isUnused)];
  const isOne = unused.length === 1 && renewed.includes(unused[0]!.fingerprint);
  if (!isOne || others.length !== 1 || others[0]!.fingerprint !== holder) unit.lose('not one renewal is left', valid);
  const shown = await race(site, 'first use', renewed.map(listing), [200, 401]);
  const winners = renewed.filter((_, index) => shown[index]?.status === 200);
  const after = validOf(service, holder);
  const isWinner = after.length === 1 && winners.length === 1 && after[0]!.fingerprint === winners[0];
  if (!isWinner || after[0]!.isUnused) unit.lose(`${winners.length} renewals took the place`, { winners, after });
  const old = await client.ask(listing(holder));
  if (old?.status !== 401) unit.lose(`the certificate that was replaced was answered ${old?.status}`);
}

function validOf(service: Service, holder: string): readonly HeldCertificate[] {
  return readGoverned(service.databasePath).certificates.filter((one) => one.holder === holder && !one.isRevoked);
}

/** All delete or read the same paste: one deletion succeeds or, if it burns, one of all deletions and reads. */
async function raceForToken(site: Site, label: string): Promise<void> {
  const { unit, client } = site;
  const burns = unit.random.oneIn(2);
  const content = contentOf(label, 1, unit.random.pick([100, 30_000, 400_000]));
  const headers = burns ? { 'X-Burn-After-Read': '1' } : {};
  const created = await client.ask({ method: 'POST', path: '/', headers, body: content });
  const { id } = JSON.parse(String(created?.body)) as { id: string };
  const token = created?.headers['x-delete-token'] ?? '';
  const remove: Ask = { method: 'DELETE', path: `/${id}`, headers: { 'X-Delete-Token': token } };
  const forged = `${token.startsWith('a') ? 'b' : 'a'}${token.slice(1)}`;
  const wrong: Ask = { ...remove, headers: { 'X-Delete-Token': forged } };
  const read: Ask = { method: 'GET', path: `/${id}/raw` };
  // The first request mostly succeeds, so the one sure deletion must not always be in the same place.
  const sure = unit.random.below(RACERS);
  const requests = Array.from({ length: RACERS }, (_, racer) => {
    return racer === sure ? remove : unit.random.pick([remove, remove, read, wrong]);
  });
  const answers = await race(site, 'delete token', requests, [200, 403, 404]);
  const done = requests.filter((request, index) => answers[index]?.status === 200 && (request === remove || burns));
  if (done.length !== 1) unit.lose(`${done.length} had the paste`, { burns, seen: statuses(answers) });
  const isOpened = requests.some((request, index) => request === wrong && answers[index]?.status === 200);
  if (isOpened) unit.lose('a wrong token deleted');
  const isTorn = requests.some((request, index) => {
    return request === read && answers[index]?.status === 200 && !answers[index].body.equals(content);
  });
  if (isTorn) unit.lose('a reader got another content');
  const late = await client.ask(remove);
  if (late?.status !== 404) unit.lose(`a token that has deleted was answered ${late?.status}`);
}
