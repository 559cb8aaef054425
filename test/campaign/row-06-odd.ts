// Row 6: requests that are malformed, or that two programs could read differently, directly and through the proxies of
// scripts/deploy. Each must get one answer, and the service must see no request that nobody made.

import { join } from 'node:path';
import { createSeeded } from '../support/seeded.ts';
import { head } from '../support/raw-http.ts';
import { exchange } from './exchange.ts';
import { askDirectly, askThroughProxy, ODD_REQUESTS, type Outcome, type Sending } from './odd-requests.ts';
import { SITE_HOST, type OddRequest } from './odd-request.ts';
import { BEHIND_PROXIES, installedProxies, PROXY_NAMES, startProxy } from './proxies.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';

const AT_ONCE = 8;
const UNITS = 10;

export const oddRow: Row = {
  name: '6',
  title: 'malformed and smuggling requests, directly and through nginx and HAProxy',
  target: `${ODD_REQUESTS.length} requests, whole and cut in ${UNITS - 1} ways`,
  units: UNITS,
  least: ['directly', 'requests seen by the service'],
  async run(unit) {
    // In production the log has a form that can be parsed, and shows what the service has seen.
    const environment = { NODE_ENV: 'production', ...BEHIND_PROXIES };
    const service = await unit.start({ folder: join(unit.folder, 'service'), environment });
    const answered = new Set<string>();
    await askAll(unit, 'directly', answered, (odd, sending) => askDirectly(odd, { ...sending, port: service.port() }));
    await checkWell(unit, service, 'afterwards');
    const installed = installedProxies();
    for (const name of PROXY_NAMES.filter((one) => !installed.includes(one))) unit.note(`${name} is not installed`);
    for (const name of installed) {
      const proxy = await startProxy(name, join(unit.folder, name), service.port());
      await askAll(unit, `through ${name}`, answered, (odd, sending) => {
        return askThroughProxy(odd, { ...sending, port: proxy.port });
      });
      await checkWell(unit, service, `behind ${name}`);
      await proxy.stop();
    }
    await checkSeen(unit, service, answered);
  },
};

type Send = (odd: OddRequest, sending: Omit<Sending, 'port'>) => Promise<Outcome>;

/** The first seed sends everything whole, the others cut it. */
async function askAll(unit: Unit, way: string, answered: Set<string>, send: Send): Promise<void> {
  const letter = way.split(' ').at(-1)!.charAt(0);
  const queue = [...ODD_REQUESTS.entries()];
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined && !unit.isHopeless(); next = queue.shift()) {
      const [index, odd] = next;
      const tag = `${letter}${index.toString(36).padStart(3, '0')}`;
      const cutBy = unit.seed === 1 ? undefined : createSeeded(unit.seed * 10_000 + index);
      const outcome = await send(odd, { tag, cutBy });
      unit.count(way);
      if (outcome.statuses.length > 0) unit.count(`answered ${way}`);
      for (const id of outcome.answered) answered.add(id);
      const evidence = { bytes: odd.bytes.slice(0, 600), ...outcome };
      for (const fault of outcome.faults) unit.lose(`${odd.name}, ${way}: ${fault}`, evidence);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

async function checkWell(unit: Unit, service: Service, when: string): Promise<void> {
  const bytes = Buffer.from(head('GET /health HTTP/1.1', SITE_HOST, 'X-Request-ID: last', 'Connection: close'));
  const { received } = await exchange({ port: service.port(), bytes, patienceMs: 15_000 });
  const answer = received.toString('latin1');
  if (!answer.startsWith('HTTP/1.1 200 ')) unit.lose(`not well ${when}`, answer.slice(0, 500));
  if (!service.isAlive()) unit.lose(`the process ended ${when}`, service.output().slice(-2000));
}

/**
 * The service must have seen no request twice, and none to which the client got no answer: with a proxy between, that
 * answer would be somebody else's. (Of an odd request itself the service may have seen the beginning, and a proxy may
 * have refused it.)
 */
async function checkSeen(unit: Unit, service: Service, answered: ReadonlySet<string>): Promise<void> {
  // The service writes the rest of its log before it ends.
  await service.stop();
  const seen = processedIds(service.output());
  unit.count('requests seen by the service', seen.length);
  if (seen.length === 0) unit.lose('the log says nothing');
  for (const id of new Set(seen.filter((one, index) => seen.indexOf(one) !== index))) unit.lose(`${id} was seen twice`);
  const unanswered = seen.filter((id) => !id.startsWith('outer') && !answered.has(id));
  for (const id of unanswered) unit.lose(`${id} was seen, and not answered`);
}

/** Ids of processed requests, without those that still waited behind another when their connection ended. */
function processedIds(log: string): string[] {
  const ids: string[] = [];
  for (const line of log.split('\n').filter((text) => text.includes('"request_id"'))) {
    const { details } = JSON.parse(line) as { details: { request_id: string; status: number; route: string } };
    const isOurs = /^(?:outer|inner|after)-\w{4}$/.test(details.request_id);
    if (isOurs && !(details.status === 499 && details.route === '-')) ids.push(details.request_id);
  }
  return ids;
}
