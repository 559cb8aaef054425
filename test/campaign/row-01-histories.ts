// Row 1, the other way round: random histories of few pastes, by one connection or several at once, with kills in the
// middle of some, so that a failing one can be carried out again and shortened. row-01-kill.ts tries as much load as
// the service can take, and has what failed there shortened here.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createClient, type Client } from './client.ts';
import { randomHistory, replay, shrink, type Site, type Step } from './history.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';

const HISTORIES = { quick: 2, full: 10 };
const STEPS = 30;

/** Of every other history. */
const CONNECTIONS = 4;

/** A failure that takes several connections may need luck to happen again. */
const TRIES = 3;

/** How long each attempt takes depends on the kills in its history. */
const SHRINKING_ATTEMPTS = 60;

export const historyRow: Row = {
  name: '1h',
  title: 'random histories with kills, against the model',
  target: '1 000 histories of 30 steps, a fifth of them with a kill',
  units: 100,
  least: ['steps', 'kills', 'cut off'],
  async run(unit) {
    for (let index = 0; index < HISTORIES[unit.effort]; index += 1) {
      const history = randomHistory(unit.random, STEPS, index % 2 === 0 ? 1 : CONNECTIONS);
      unit.count('histories');
      unit.count('steps', history.length);
      unit.count('kills', history.filter(({ killAfterMs }) => killAfterMs !== undefined).length);
      const wrong = await attempt(unit, history, `h${index}`, () => unit.count('cut off'));
      if (wrong !== undefined) unit.lose(wrong, { ...(await shortened(unit, history, `h${index}`)), history });
    }
  },
};

/** The shortest part of a history that fails too; undefined when the whole does not fail again. */
export async function shortened(
  unit: Unit,
  history: readonly Step[],
  label: string,
): Promise<{ shortest: readonly Step[] | undefined; wrong: string | undefined }> {
  let tried = 0;
  let wrong: string | undefined;
  const fails = async (part: readonly Step[]): Promise<boolean> => {
    for (let left = part.some(({ connection }) => connection !== 0) ? TRIES : 1; left > 0; left -= 1) {
      tried += 1;
      const found = await attempt(unit, part, `${label}s${tried}`);
      wrong = found ?? wrong;
      if (found !== undefined) return true;
    }
    return false;
  };
  const shortest = (await fails(history)) ? await shrink(history, fails, SHRINKING_ATTEMPTS) : undefined;
  return { shortest, wrong };
}

async function attempt(
  unit: Unit, history: readonly Step[], label: string, noteCutOff = (): void => {},
): Promise<string | undefined> {
  const folder = join(unit.folder, label);
  let service: Service = await unit.start({ folder });
  const clients = new Map<number, Client>();
  let serving = Promise.resolve();

  function clientOf(connection: number): Client {
    const client = clients.get(connection) ?? createClient(service.port());
    clients.set(connection, client);
    return client;
  }

  function hangUp(): void {
    for (const client of clients.values()) client.close();
    clients.clear();
  }

  async function restart(): Promise<void> {
    await service.kill();
    hangUp();
    service = await unit.start({ folder });
  }

  const site: Site = {
    ask: async (request, connection) => {
      await serving;
      const answer = await clientOf(connection).ask(request);
      if (answer === undefined) noteCutOff();
      return answer;
    },
    restart: () => {
      serving = serving.then(restart);
      return serving;
    },
  };
  try {
    return await replay(history, site, label);
  } finally {
    hangUp();
    await service.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}
