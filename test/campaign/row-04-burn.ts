// Row 4: readers of a paste that is read only once, racing with each other, with looks at it, with PUT and with DELETE.

import { OWNER } from './actions.ts';
import { createClient, type Answer, type Ask, type Client } from './client.ts';
import { inspect } from './inspect.ts';
import { contentOf } from './model.ts';
import { createRacers, isShed, type Racers } from './races.ts';
import type { Row, Unit } from './row.ts';

const PASTES = { quick: 60, full: 400 };
const FEWEST_RACERS = 8;
export const MOST_RACERS = { quick: 24, full: 64 };
const PASSWORD = 'the password of the paste';

/** One of so many pastes has a password, each check of which takes a tenth of a second. */
const PROTECTED_ONE_IN = 40;
const DELETED_ONE_IN = 5;

export const burnRow: Row = {
  name: '4',
  title: 'readers racing for a paste that is read once, with HEAD, Range, password, PUT and DELETE between',
  target: '20 000 pastes x 8 to 64',
  units: 50,
  least: ['pastes'],
  async run(unit) {
    const service = await unit.start({ folder: unit.folder });
    const client = createClient(service.port());
    const racers = createRacers(service.port(), MOST_RACERS[unit.effort]);
    for (let index = 0; index < PASTES[unit.effort] && !unit.isHopeless(); index += 1) {
      await raceForOne(unit, client, racers, `s${unit.seed}b${index}`);
    }
    racers.close();
    client.close();
    const { faults, pastes } = inspect(service.databasePath);
    for (const fault of faults) unit.lose(fault);
    if (pastes.size > 0) unit.lose(`${pastes.size} pastes are still there`);
  },
};

export async function raceForOne(unit: Unit, client: Client, racers: Racers, label: string): Promise<void> {
  const { random, effort } = unit;
  const isProtected = random.oneIn(PROTECTED_ONE_IN);
  const content = contentOf(label, 1, random.oneIn(10) ? random.between(65_000, 600_000) : random.between(1, 5000));
  const headers = {
    'X-Burn-After-Read': '1',
    'X-SSL-Client-SHA1': OWNER,
    ...(isProtected ? { 'X-Paste-Password': PASSWORD } : {}),
  };
  const created = await client.ask({ method: 'POST', path: '/', headers, body: content });
  if (created?.status !== 201) throw new Error(`creating was answered ${created?.status} ${created?.body}`);
  const { id } = JSON.parse(String(created.body)) as { id: string };
  const racerCount = random.between(FEWEST_RACERS, isProtected ? FEWEST_RACERS : MOST_RACERS[effort]);
  const isDeleted = random.oneIn(DELETED_ONE_IN);
  const requests = requestsFor(unit, { id, isProtected, isDeleted, count: racerCount });
  const answers = await racers.race(requests);
  unit.count('pastes');
  unit.count('requests', requests.length);
  unit.count('shed', answers.filter((answer) => answer !== undefined && isShed(answer)).length);
  for (const wrong of judge(requests, answers, content)) {
    const seen = requests.map(({ method, path, headers: sent }, index) => {
      return { method, path, sent, status: answers[index]?.status };
    });
    unit.lose(wrong, { label, isProtected, seen });
  }
}

/** One is a plain read, so that somebody can get the paste. Its place is random, as the first request mostly wins. */
function requestsFor(
  { random }: Unit,
  { id, isProtected, isDeleted, count }: { id: string; isProtected: boolean; isDeleted: boolean; count: number },
): Ask[] {
  const key = isProtected ? { 'X-Paste-Password': PASSWORD } : {};
  const owner = { 'X-SSL-Client-SHA1': OWNER };
  const read: Ask = { method: 'GET', path: `/${id}/raw`, headers: key };
  const kinds: readonly Ask[] = [
    read,
    read,
    { method: 'GET', path: `/${id}/raw`, headers: { ...key, Range: 'bytes=0-0' } },
    { method: 'HEAD', path: `/${id}/raw`, headers: key },
    { method: 'GET', path: `/${id}`, headers: key },
    { method: 'PUT', path: `/${id}`, headers: owner, body: Buffer.from('another content') },
    { method: 'PUT', path: `/${id}`, headers: { ...owner, 'X-Remove-Password': '1' } },
    ...(isProtected ? [{ method: 'GET', path: `/${id}/raw`, headers: { 'X-Paste-Password': 'wrong' } }] : []),
  ];
  const rest = Array.from({ length: count - 1 }, () => random.pick(kinds));
  if (isDeleted) rest[random.below(rest.length)] = { method: 'DELETE', path: `/${id}`, headers: owner };
  return rest.toSpliced(random.below(rest.length + 1), 0, read);
}

/** Exactly one of the reads and the removal has the paste, and every answer is one that is allowed. */
function judge(requests: readonly Ask[], answers: readonly (Answer | undefined)[], content: Buffer): string[] {
  const wrong: string[] = [];
  let winners = 0;
  for (const [index, { method, path, headers = {} }] of requests.entries()) {
    const answer = answers[index];
    const isRead = method === 'GET' && path.endsWith('/raw');
    const isWrongPassword = headers['X-Paste-Password'] === 'wrong';
    // Even an answer that there is nothing may be shed, because it takes as long as a password check.
    if (answer !== undefined && isShed(answer)) continue;
    if (answer === undefined || !isAllowed(method, isWrongPassword, answer.status)) {
      wrong.push(`${method} ${path} was answered ${answer?.status} ${answer?.body.toString('latin1', 0, 100)}`);
      continue;
    }
    if (answer.status !== 200 || !(isRead || method === 'DELETE')) continue;
    winners += 1;
    const isWhole = answer.body.equals(content);
    if (isRead && !isWhole) wrong.push(`a reader got ${answer.body.length} bytes that are not the ${content.length}`);
    if (isRead && answer.headers['x-burn-after-read'] !== 'true') wrong.push('a reader was not told that it is burned');
  }
  if (winners !== 1) wrong.push(`${winners} of ${requests.length} had the paste`);
  return wrong;
}

function isAllowed(method: string, isWrongPassword: boolean, status: number): boolean {
  if (method === 'PUT') return status === 400 || status === 404;
  return status === 404 || status === (isWrongPassword ? 403 : 200);
}
