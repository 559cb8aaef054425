// Row 18: restarts under load of a service whose listening socket outlives it.

import { join } from 'node:path';
import { OWNER } from './actions.ts';
import { startActivated, type Activation } from './activation.ts';
import { createClient, type Answer, type Ask, type Client } from './client.ts';
import { compilerObstacle } from './faults.ts';
import { inspect } from './inspect.ts';
import { contentOf } from './model.ts';
import type { Row, Unit } from './row.ts';

const RESTARTS = { quick: 3, full: 10 };

/** Clients that connect anew for each request, and clients that keep their connection. */
const FRESH = 8;
const KEEPING = 4;

const ANEW = 'a fresh connection';
const KEPT = 'a kept connection';

/** Answers between two restarts, so that each has load before and after it. */
const ANSWERS_BETWEEN = 40;

/**
 * A kept connection may be closed at any moment, and a client that asks on it at that moment must ask again (RFC 9112
 * section 9.3.1). No answer is lost by that, but a proxy in front turns it into a 502.
 */
const BROKEN = 'closed in a unit while asked on';

interface Load {
  broken: number;
  answered: number;
  isOver: boolean;
  readonly ids: string[];
}

export const restartRow: Row = {
  name: '18',
  title: 'restarts under load with socket activation',
  target: '100 restarts',
  units: 10,
  least: ['restarts'],
  bars: { [BROKEN]: 0 },
  obstacle: compilerObstacle,
  async run(unit) {
    const activation = await startActivated(unit);
    const load: Load = { broken: 0, answered: 0, isOver: false, ids: [] };
    try {
      const asking = Promise.all([
        ...Array.from({ length: FRESH }, () => askOnFresh(unit, activation, load)),
        ...Array.from({ length: KEEPING }, () => askOnKept(unit, activation, load)),
      ]);
      // A failure is reported where it is awaited, even if that is after a restart.
      asking.catch(() => undefined);
      for (let restart = 0; restart < RESTARTS[unit.effort] && !unit.isHopeless(); restart += 1) {
        // The clients may fail or give up meanwhile.
        await Promise.race([someAnswers(load), asking]);
        const code = await activation.restart();
        unit.count('restarts');
        if (code !== 0) unit.lose(`the service ended with ${code}`, activation.output().slice(-2000));
      }
      await Promise.race([someAnswers(load), asking]);
      load.isOver = true;
      await asking;
      unit.most(BROKEN, load.broken);
      const { faults, pastes } = inspect(join(unit.folder, 'pasted.db'));
      for (const fault of faults) unit.lose(fault);
      const lost = load.ids.filter((id) => !pastes.has(id));
      if (lost.length > 0) unit.lose(`${lost.length} of ${load.ids.length} pastes are lost`);
    } finally {
      load.isOver = true;
      await activation.end();
    }
  },
};

async function someAnswers(load: Load): Promise<void> {
  const wanted = load.answered + ANSWERS_BETWEEN;
  while (load.answered < wanted && !load.isOver) await new Promise((resolve) => setTimeout(resolve, 5));
}

async function askOnFresh(unit: Unit, { port }: Activation, load: Load): Promise<void> {
  while (!load.isOver && !unit.isHopeless()) {
    const client = createClient(port);
    await askOne(unit, client, load, ANEW);
    client.close();
  }
}

async function askOnKept(unit: Unit, { port }: Activation, load: Load): Promise<void> {
  const client = createClient(port);
  while (!load.isOver && !unit.isHopeless()) await askOne(unit, client, load, KEPT);
  client.close();
}

async function askOne(unit: Unit, client: Client, load: Load, where: string): Promise<void> {
  const request = nextRequest(unit, load);
  const startMs = performance.now();
  const answer = await client.ask(request);
  unit.count(`on ${where}`);
  unit.most('longestMs', performance.now() - startMs);
  if (answer === undefined && where === KEPT) return void (load.broken += 1);
  if (answer === undefined || answer.status >= 300) return unit.lose(`failed on ${where}`, told(request, answer));
  load.answered += 1;
  if (answer.status === 201) load.ids.push(String(JSON.parse(String(answer.body))['id']));
}

function nextRequest({ random }: Unit, { ids }: Load): Ask {
  if (ids.length > 0 && !random.oneIn(3)) return { method: 'GET', path: `/${random.pick(ids)}/raw` };
  const bytes = random.oneIn(10) ? random.between(65_000, 300_000) : random.between(40, 3000);
  const headers = { 'X-SSL-Client-SHA1': OWNER };
  return { method: 'POST', path: '/', headers, body: contentOf(`n${random.below(2 ** 31)}`, 1, bytes) };
}

function told({ method, path, body }: Ask, answer: Answer | undefined): unknown {
  return { method, path, bytes: body?.length, status: answer?.status, body: answer?.body.toString('latin1', 0, 200) };
}
