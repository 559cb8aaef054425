// Row 1, the other way round: random histories of few pastes, one step after another with kills in the middle of some,
// so that one that fails can be carried out again and shortened. The load of many connections is row-01-kill.ts.

import { join } from 'node:path';
import { createClient, type Client } from './client.ts';
import { randomHistory, replay, shrink, type Site, type Step } from './history.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';

const HISTORIES = { quick: 1, full: 10 };
const STEPS = 30;

/** Each takes as long as its history has kills. */
const SHRINKING_ATTEMPTS = 60;

export const historyRow: Row = {
  name: '1h',
  title: 'random histories with kills, against the model',
  target: '1 000 histories of 30 steps, a fifth of them with a kill',
  units: 100,
  async run(unit) {
    for (let index = 0; index < HISTORIES[unit.effort]; index += 1) {
      const history = randomHistory(unit.random, STEPS);
      unit.count('histories');
      unit.count('steps', history.length);
      unit.count('kills', history.filter(({ killAfterMs }) => killAfterMs !== undefined).length);
      const wrong = await attempt(unit, history, `h${index}`);
      if (wrong === undefined) continue;
      let shrunk = 0;
      const fails = async (part: readonly Step[]): Promise<boolean> => {
        shrunk += 1;
        return (await attempt(unit, part, `h${index}s${shrunk}`)) !== undefined;
      };
      unit.lose(wrong, { shortest: await shrink(history, fails, SHRINKING_ATTEMPTS), history });
    }
  },
};

async function attempt(unit: Unit, history: readonly Step[], label: string): Promise<string | undefined> {
  const folder = join(unit.folder, label);
  let service: Service = await unit.start({ folder });
  let client: Client = createClient(service.port());
  const site: Site = {
    ask: (request) => client.ask(request),
    restart: async () => {
      await service.kill();
      client.close();
      service = await unit.start({ folder });
      client = createClient(service.port());
    },
  };
  try {
    return await replay(history, site, label);
  } finally {
    client.close();
    await service.kill();
  }
}
