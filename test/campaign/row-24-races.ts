// Row 24, races: those of rows 4 and 5, with racers at three hosts over three nodes.

import { rqliteMissing } from '../support/rqlite.ts';
import { createClient } from './client.ts';
import { withCluster } from './cluster.ts';
import { createRacers } from './races.ts';
import { MOST_RACERS, raceForOne } from './row-04-burn.ts';
import {
  lookAt, nothingAcknowledged, raceForChallenge, raceForFirsts, raceForRevocation, RACERS, WORK,
} from './row-05-once.ts';
import type { Row } from './row.ts';

const BURNS = { quick: 20, full: 400 };
const RACES = { quick: 3, full: 50 };

export const clusterRaceRow: Row = {
  name: '24r',
  title: 'races at three hosts over three nodes: for pastes that are read once, and all that may succeed once',
  target: '20 000 pastes x 8 to 64, 5 000 x 16',
  units: 50,
  least: ['pastes', 'first admin', 'challenge (paste)', 'challenge (register)', 'revocation'],
  obstacle: rqliteMissing,
  async run(unit) {
    await withCluster(unit, {}, async ({ hosts, inspect }) => {
      const ports = hosts.map((host) => host.port());
      const clients = ports.map((port) => createClient(port));
      const racers = createRacers(ports, MOST_RACERS[unit.effort]);
      for (let index = 0; index < BURNS[unit.effort] && !unit.isHopeless(); index += 1) {
        await raceForOne(unit, clients[index % clients.length]!, racers, `s${unit.seed}b${index}`);
      }
      racers.close();
      for (const client of clients) client.close();
      const { faults, pastes } = await inspect();
      for (const fault of faults) unit.lose(fault);
      if (pastes.size > 0) unit.lose(`${pastes.size} pastes are still there`);
    });
    await withCluster(unit, WORK, async ({ hosts, inspect }) => {
      const racers = createRacers(hosts.map((host) => host.port()), RACERS);
      const client = createClient(hosts[0]!.port());
      const acknowledged = nothingAcknowledged();
      await raceForFirsts(unit, client, racers, unit.seed, acknowledged);
      for (let race = 0; race < RACES[unit.effort] && !unit.isHopeless(); race += 1) {
        await raceForChallenge(unit, client, racers, 'paste', acknowledged);
        await raceForChallenge(unit, client, racers, 'register', acknowledged);
        await raceForRevocation(unit, client, racers, acknowledged);
      }
      client.close();
      racers.close();
      lookAt(unit, await inspect(), acknowledged);
    });
  },
};
