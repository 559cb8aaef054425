// Row 13: generated requests against the service over sockets, and generated texts for each of its parsers. No answer
// that the contract does not name, no end of the process, others' pastes as they were, and memory that does not grow.

import { readFileSync } from 'node:fs';
import { GENERATED_CHECKS } from '../support/generated-checks.ts';
import type { Known } from '../support/generated-requests.ts';
import { storm } from '../support/request-storm.ts';
import { createSeeded } from '../support/seeded.ts';
import { createClient, type Client } from './client.ts';
import type { Row, Unit } from './row.ts';

/** Connections have about 2.5 requests each; the number of texts is for each parser. */
const CONNECTIONS = { quick: 300, full: 50_000 };
const TEXTS = { quick: 100, full: 37_500 };
const AT_A_TIME = 40;

/** Connections before memory is first measured: by then everything has been used once. */
const WARM_UP = { quick: 100, full: 2000 };

const MOST_GROWTH_MIB = 64;

const OTHER = 'b'.repeat(40);
const STRANGERS = ['1', '2', '3'].map((digit) => digit.repeat(40));
const PASTES = 10;
const MIB = 2 ** 20;

export const generatedRow: Row = {
  name: '13',
  title: 'generated requests over sockets and generated texts for each parser',
  target: '1 000 000',
  units: 2,
  least: ['texts', 'requests'],
  bars: { 'MiB more memory': MOST_GROWTH_MIB },
  async run(unit) {
    tryTexts(unit);
    const service = await unit.start({ folder: unit.folder, environment: { SERVICE_MAX_CONNECTIONS_PER_CLIENT: '0' } });
    const client = createClient(service.port());
    const contents = Array.from({ length: PASTES }, (_, index) => `paste ${index} of someone else`);
    const othersIds: string[] = [];
    for (const content of contents) othersIds.push(await stored(client, content, OTHER));
    const known: Known = {
      ids: [await stored(client, 'of the strangers', STRANGERS[0]!)],
      othersIds,
      fingerprints: STRANGERS,
      serials: ['4'.repeat(32)],
      powKey: Buffer.from('guessed'),
      nowSeconds: Math.floor(Date.now() / 1000),
    };
    const firstSeed = unit.seed * 1_000_000;
    const warmUp = WARM_UP[unit.effort];
    await attack(unit, { port: service.port(), known, firstSeed, connections: warmUp, atATime: AT_A_TIME });
    const beforeMib = residentMib(service.pid());
    const connections = CONNECTIONS[unit.effort] - warmUp;
    await attack(unit, { port: service.port(), known, firstSeed: firstSeed + warmUp, connections, atATime: AT_A_TIME });
    unit.most('MiB more memory', Math.max(0, residentMib(service.pid()) - beforeMib));
    for (const [index, id] of othersIds.entries()) {
      const answer = await client.ask({ method: 'GET', path: `/${id}/raw` });
      const content = String(answer?.body);
      if (content !== contents[index]) unit.lose('a paste of someone else is not what it was', content);
    }
    client.close();
    if (!service.isAlive()) unit.lose('the service has ended', service.output().slice(-2000));
  },
};

function tryTexts(unit: Unit): void {
  for (const [name, check] of Object.entries(GENERATED_CHECKS)) {
    for (let text = 0; text < TEXTS[unit.effort] && !unit.isHopeless(); text += 1) {
      const seed = unit.seed * 1_000_000 + text;
      try {
        check(createSeeded(seed));
      } catch (error) {
        unit.lose(`${name}, seed ${seed}`, error instanceof Error ? error.stack : String(error));
      }
      unit.count('texts');
    }
  }
}

async function attack(unit: Unit, options: Parameters<typeof storm>[0]): Promise<void> {
  const { requests, statuses, findings } = await storm(options);
  unit.count('requests', requests);
  for (const [status, answers] of Object.entries(statuses)) unit.count(`answers ${status}`, answers);
  for (const finding of findings) unit.lose(finding);
}

async function stored(client: Client, content: string, fingerprint: string): Promise<string> {
  const headers = { 'X-SSL-Client-SHA1': fingerprint };
  const answer = await client.ask({ method: 'POST', path: '/', headers, body: Buffer.from(content) });
  return (JSON.parse(String(answer?.body)) as { id: string }).id;
}

/** Linux only, like the campaign. */
function residentMib(pid: number): number {
  const [, pages] = readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ');
  return (Number(pages) * 4096) / MIB;
}
