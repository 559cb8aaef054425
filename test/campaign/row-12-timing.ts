// Row 12: whether the time of an answer tells an unknown id from a wrong password. Both are asked for in random order,
// one at a time on one connection, and compared by Welch's t-test.

import { newId } from '../../src/pastes/intake.ts';
import { createClient, type Ask } from './client.ts';
import type { Row } from './row.ts';

/** Of each kind. */
const ASKED = { quick: 15, full: 2000 };

/** Pastes to choose from, so that none is hot in a way that an unknown id can't be. */
const PASTES = 20;

/** Thousandths of |t|, because only whole numbers are noted. */
const MOST_T = 4500;

interface Kind {
  readonly status: number;
  readonly id: () => string;
  readonly ms: number[];
}

export const timingRow: Row = {
  name: '12',
  title: "the time of an answer: unknown id against wrong password, by Welch's t-test",
  target: '2 000 each, t within 4.5',
  units: 1,
  least: ['answers'],
  bars: { 'thousandths of |t|': MOST_T },
  async run(unit) {
    const service = await unit.start({ folder: unit.folder });
    const client = createClient(service.port());
    const ids: string[] = [];
    for (let paste = 0; paste < PASTES; paste += 1) {
      const headers = { 'X-Paste-Password': `the password of ${paste}` };
      const answer = await client.ask({ method: 'POST', path: '/', headers, body: Buffer.from(`paste ${paste}`) });
      ids.push((JSON.parse(String(answer?.body)) as { id: string }).id);
    }
    const kinds: Kind[] = [
      { status: 404, id: () => newId((size) => unit.random.bytes(size)), ms: [] },
      { status: 403, id: () => unit.random.pick(ids), ms: [] },
    ];
    const rounds = ASKED[unit.effort];
    while (kinds.some(({ ms }) => ms.length < rounds)) {
      const kind = unit.random.pick(kinds.filter(({ ms }) => ms.length < rounds));
      const path = `/${kind.id()}${unit.random.pick(['', '/raw'])}`;
      const ask: Ask = { method: 'GET', path, headers: { 'X-Paste-Password': 'a wrong password' } };
      const startedMs = performance.now();
      const answer = await client.ask(ask);
      kind.ms.push(performance.now() - startedMs);
      if (answer?.status !== kind.status) unit.lose(`answered ${answer?.status}, not ${kind.status}`);
      if (unit.isHopeless()) break;
    }
    client.close();
    unit.count('answers', kinds.reduce((sum, { ms }) => sum + ms.length, 0));
    const [unknown, wrong] = kinds.map(({ ms }) => statisticsOf(ms));
    unit.most('thousandths of |t|', Math.abs(welchT(unknown!, wrong!)) * 1000);
    unit.note(`unknown ${unknown!.mean.toFixed(2)} ms, wrong ${wrong!.mean.toFixed(2)} ms`);
  },
};

interface Statistics {
  readonly count: number;
  readonly mean: number;
  readonly variance: number;
}

export function statisticsOf(values: readonly number[]): Statistics {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  return { count: values.length, mean, variance };
}

/** B. L. Welch, "The generalization of 'Student's' problem", Biometrika 34, 1947. */
export function welchT(one: Statistics, other: Statistics): number {
  return (one.mean - other.mean) / Math.sqrt(one.variance / one.count + other.variance / other.count);
}
