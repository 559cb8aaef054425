// Row 5: what may succeed once, asked for by many at once: one challenge for pastes or registrations, the first
// authority, the first certificate and its admin, the revocation of one certificate.

import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { createClient, type Answer, type Ask, type Client } from './client.ts';
import { inspect, type Inspection } from './inspect.ts';
import { createRacers, isShed, type Racers } from './races.ts';
import type { Row, Unit } from './row.ts';

export const RACERS = 16;

/** New databases, each with one race for its authority and one for its admin. */
const FIRSTS = { quick: 1, full: 5 };
const RACES = { quick: 8, full: 50 };

/** Enough that there is something to solve; however many races there are, it does not get more. */
export const WORK = { SERVICE_POW_DIFFICULTY: '2', SERVICE_REGISTER_POW: '2', ANTIFLOOD_THRESHOLD: '0' };

export const onceRow: Row = {
  name: '5',
  title: 'one challenge, the first authority, the first admin, one revocation: asked for by 16 at once',
  target: '5 000 x 16',
  units: 35,
  least: ['first admin', 'challenge (paste)', 'challenge (register)', 'revocation'],
  async run(unit) {
    for (let index = 0; index < FIRSTS[unit.effort] && !unit.isHopeless(); index += 1) {
      const service = await unit.start({ folder: join(unit.folder, `first${index}`), environment: WORK });
      const racers = createRacers(service.port(), RACERS);
      const client = createClient(service.port());
      const acknowledged = nothingAcknowledged();
      await raceForFirsts(unit, client, racers, index, acknowledged);
      if (index === 0) {
        for (let race = 0; race < RACES[unit.effort]; race += 1) {
          await raceForChallenge(unit, client, racers, 'paste', acknowledged);
          await raceForChallenge(unit, client, racers, 'register', acknowledged);
          await raceForRevocation(unit, client, racers, acknowledged);
        }
      }
      client.close();
      racers.close();
      lookAt(unit, inspect(service.databasePath), acknowledged);
    }
  },
};

/** How many of each were acknowledged; the database must have exactly as many. */
export interface Acknowledged {
  pastes: number;
  certificates: number;
  revoked: number;
}

export const nothingAcknowledged = (): Acknowledged => ({ pastes: 0, certificates: 0, revoked: 0 });

export function lookAt(unit: Unit, { faults, pastes, certificates }: Inspection, acknowledged: Acknowledged): void {
  for (const fault of faults) unit.lose(fault);
  const revoked = [...certificates.values()].filter(({ isRevoked }) => isRevoked).length;
  const stored: Acknowledged = { pastes: pastes.size, certificates: certificates.size, revoked };
  for (const what of ['pastes', 'certificates', 'revoked'] as const) {
    if (stored[what] !== acknowledged[what]) unit.lose(`${what}: ${stored[what]}, and ${acknowledged[what]} were acknowledged`);
  }
}

/**
 * On an empty database. Half of the time all ask for the authority, and then for the first certificate; else all
 * register, and the first of them makes the authority too.
 */
export async function raceForFirsts(
  unit: Unit, client: Client, racers: Racers, index: number, acknowledged: Acknowledged,
): Promise<void> {
  if (index % 2 === 0) {
    const answers = await racers.race(Array<Ask>(RACERS).fill({ method: 'POST', path: '/pki/ca' }));
    expectOne(unit, 'authority', answers, 201, [409]);
  }
  const registering: Ask[] = [];
  for (let racer = 0; racer < RACERS; racer += 1) {
    const issue = { method: 'POST', path: '/pki/issue', headers: JSON_TYPE, body: COMMON_NAME };
    registering.push(index % 2 === 0 && racer % 2 === 0 ? issue : await registration(client));
  }
  const answers = await racers.race(registering);
  const admins = answers.filter((answer) => {
    const isIssued = answer?.status === 201;
    return answer?.headers['x-is-admin'] === '1' || (isIssued && JSON.parse(String(answer.body))['is_admin'] === true);
  });
  unit.count('first admin');
  if (admins.length !== 1) unit.lose(`${admins.length} admins`, statuses(answers));
  const failed = answers.filter((answer) => answer === undefined || answer.status >= 300);
  acknowledged.certificates += answers.length - failed.length;
  if (failed.length > 0) unit.lose(`${failed.length} of ${RACERS} got no certificate`, statuses(answers));
}

const JSON_TYPE = { 'Content-Type': 'application/json' };
const COMMON_NAME = Buffer.from('{"common_name":"racer"}');

async function registration(client: Client): Promise<Ask> {
  return { method: 'POST', path: '/register', headers: await workFor(client, '/register/challenge') };
}

export async function raceForChallenge(
  unit: Unit,
  client: Client,
  racers: Racers,
  purpose: 'paste' | 'register',
  acknowledged: Acknowledged,
): Promise<void> {
  const isPaste = purpose === 'paste';
  const headers = await workFor(client, isPaste ? '/challenge' : '/register/challenge');
  const requests = Array.from({ length: RACERS }, (_, racer): Ask => {
    if (!isPaste) return { method: 'POST', path: '/register', headers };
    // Through the row of a small paste and through the chunks of a large one.
    const body = Buffer.alloc(racer % 8 === 0 ? 80_000 : 50, `racer ${racer} of ${unit.random.below(2 ** 31)}; `);
    return { method: racer % 2 === 0 ? 'POST' : 'PUT', path: '/', headers, body };
  });
  const answers = await racers.race(requests);
  acknowledged[isPaste ? 'pastes' : 'certificates'] += expectOne(unit, `challenge (${purpose})`, answers, isPaste ? 201 : 200, [400]);
}

export async function raceForRevocation(
  unit: Unit, client: Client, racers: Racers, acknowledged: Acknowledged,
): Promise<void> {
  const issued = await client.ask({ method: 'POST', path: '/pki/issue', headers: JSON_TYPE, body: COMMON_NAME });
  const { serial, fingerprint_sha1: fingerprint } = JSON.parse(String(issued?.body)) as Record<string, string>;
  const headers = { 'X-SSL-Client-SHA1': fingerprint ?? '' };
  const requests = Array<Ask>(RACERS).fill({ method: 'POST', path: `/pki/revoke/${serial}`, headers });
  acknowledged.certificates += 1;
  acknowledged.revoked += expectOne(unit, 'revocation', await racers.race(requests), 200, [409]);
}

function expectOne(
  unit: Unit,
  what: string,
  answers: readonly (Answer | undefined)[],
  success: number,
  refusals: readonly number[],
): number {
  unit.count(what);
  unit.count('requests', answers.length);
  const successes = answers.filter((answer) => answer?.status === success).length;
  const others = answers.filter((answer) => answer?.status !== success && !refusals.includes(answer?.status ?? 0));
  const shed = others.filter((answer) => answer !== undefined && isShed(answer));
  if (shed.length > 0) unit.count('shed', shed.length);
  if (shed.length < others.length) unit.lose(`answers that must not be: ${what}`, statuses(answers));
  if (successes !== 1) unit.lose(`${successes} successes: ${what}`, statuses(answers));
  return successes;
}

function statuses(answers: readonly (Answer | undefined)[]): unknown {
  return answers.map((answer) => [answer?.status, answer?.body.toString('latin1', 0, 120)]);
}

interface Challenge {
  readonly nonce: string;
  readonly difficulty: number;
  readonly token: string;
}

/** The headers of a challenge that has been solved. */
async function workFor(client: Client, path: string): Promise<Record<string, string>> {
  const answer = await client.ask({ method: 'GET', path });
  if (answer?.status !== 200) throw new Error(`GET ${path} was answered ${answer?.status} ${answer?.body}`);
  const { nonce, difficulty, token } = JSON.parse(String(answer.body)) as Challenge;
  for (let solution = 0; ; solution += 1) {
    const digest = createHash('sha256').update(`${nonce}:${solution}`).digest();
    const isEnough = Math.clz32(digest.readUInt32BE(0)) >= difficulty;
    if (isEnough) return { 'X-PoW-Token': token, 'X-PoW-Solution': String(solution) };
  }
}
