// The parts of the benchmark that need no server: which paste a request is about and what it says, medians over
// alternating rounds, and bars.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { builtMain } from '../support/built.ts';
import { ROOT } from '../support/source.ts';
import { openTestStore } from '../support/store.ts';

type Random = () => number;
type Draw = (count: number, random: Random) => () => number;

interface Bar {
  readonly of: 'ratio' | 'pasted';
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly timesFloor?: number;
}

interface Figure {
  readonly figure: number;
  readonly cpuMs: number;
}

interface Statistics {
  readonly seededRandom: (seed: number) => Random;
  readonly permutation: (count: number, random: Random) => Uint32Array;
  readonly zipf: Draw;
  readonly uniform: Draw;
  readonly eachOnce: Draw;
  readonly median: (values: readonly number[]) => number;
  readonly alternate: <One, Other>(
    rounds: number, floor: () => Promise<One>, pasted: () => Promise<Other>,
  ) => Promise<{ floor: One; pasted: Other }[]>;
  readonly outcomeOf: (
    rounds: readonly { floor: Figure; pasted: Figure }[], figureOf: (figure: Figure) => number,
  ) => {
    floor: number; pasted: number; ratio: number; ratios: number[];
    cpuMs: { floor: number; pasted: number };
  };
  readonly isMet: (bar: Bar, figures: { floor: number; pasted: number; ratio: number }) => boolean;
  readonly barText: (bar: Bar, unit: string) => string;
}

interface Requests {
  readonly ID: string;
  readonly OWNER: string;
  readonly STAMP: string;
  readonly senders: (plan: object) => () => (connection: { send: (request: Buffer) => void }) => void;
}

const scripts: string = join(ROOT, 'scripts', 'bench');
const { seededRandom, permutation, zipf, uniform, eachOnce, median, alternate, outcomeOf, isMet, barText } =
  await import(join(scripts, 'statistics.mjs')) as Statistics;
const { ID, OWNER, STAMP, senders } = await import(join(scripts, 'requests.mjs')) as Requests;

/** How often each index comes among this many draws. */
function counted(draw: () => number, count: number, draws: number): number[] {
  const counts = new Array<number>(count).fill(0);
  for (let drawn = 0; drawn < draws; drawn += 1) counts[draw()]! += 1;
  return counts;
}

test('seededRandom: the same numbers from the same seed, others from another, spread over [0, 1)', () => {
  const numbers = (seed: number): number[] => {
    const random = seededRandom(seed);
    return Array.from({ length: 10_000 }, () => random());
  };
  assert.deepEqual(numbers(1), numbers(1));
  assert.notDeepEqual(numbers(1), numbers(2));
  assert.ok(numbers(1).every((number) => number >= 0 && number < 1));
  const tenths = counted(seededTenth(1), 10, 10_000);
  assert.ok(tenths.every((times) => times > 850 && times < 1150), String(tenths));
});

function seededTenth(seed: number): () => number {
  const random = seededRandom(seed);
  return () => Math.floor(random() * 10);
}

test('permutation: each index once, every place with every index', () => {
  for (const count of [0, 1, 2, 1000]) {
    const order = permutation(count, seededRandom(3)).toSorted();
    assert.deepEqual([...order], Array.from({ length: count }, (_, index) => index));
  }
  const random = seededRandom(4);
  const firsts = counted(() => permutation(4, random)[0]!, 4, 4000);
  assert.ok(firsts.every((times) => times > 880 && times < 1120), String(firsts));
});

test('eachOnce: every paste once, and then an error instead of one that was read before', () => {
  const draw = eachOnce(1000, seededRandom(5));
  assert.deepEqual(counted(draw, 1000, 1000), new Array(1000).fill(1));
  assert.throws(draw, RangeError);
});

test('zipf: the n-th in popularity 1/n times as often as the first, and not in the order of the pastes', () => {
  const draws = 200_000;
  const counts = counted(zipf(100, seededRandom(6)), 100, draws);
  const harmonic = Array.from({ length: 100 }, (_, rank) => 1 / (rank + 1)).reduce((sum, part) => sum + part);
  const byPopularity = counts.toSorted((one, other) => other - one);
  for (const rank of [1, 2, 5, 10]) {
    const expected = draws / harmonic / rank;
    assert.ok(Math.abs(byPopularity[rank - 1]! - expected) < 0.05 * expected, `${rank}: ${byPopularity[rank - 1]}`);
  }
  assert.ok(counts.every((times) => times > 0));
  assert.notDeepEqual(counts.slice(0, 5), byPopularity.slice(0, 5));
});

test('uniform: each paste as often as any other', () => {
  const counts = counted(uniform(10, seededRandom(7)), 10, 20_000);
  assert.ok(counts.every((times) => times > 1800 && times < 2200), String(counts));
});

test('median: the middle one, or between the two in the middle, whatever the order', () => {
  assert.equal(median([7]), 7);
  assert.equal(median([9, 1, 100]), 9);
  assert.equal(median([4, 1, 100, 2]), 3);
  assert.ok(Number.isNaN(median([])));
});

test('alternate and outcomeOf: floor and pasted in turn; the ratio is of each round by itself', async () => {
  const order: string[] = [];
  const floors = [100, 200, 400];
  const pasteds = [50, 150, 100];
  const rounds = await alternate(
    3,
    async () => ({ figure: order.push('floor') && floors[(order.length - 1) / 2]!, cpuMs: order.length }),
    async () => ({ figure: order.push('pasted') && pasteds[order.length / 2 - 1]!, cpuMs: order.length }),
  );
  assert.deepEqual(order, ['floor', 'pasted', 'floor', 'pasted', 'floor', 'pasted']);
  const { floor, pasted, ratio, ratios, cpuMs } = outcomeOf(rounds, ({ figure }) => figure);
  assert.deepEqual({ floor, pasted, ratio, ratios }, { floor: 200, pasted: 100, ratio: 0.5, ratios: [0.5, 0.75, 0.25] });
  assert.deepEqual(cpuMs, { floor: 3, pasted: 4 });
});

test('isMet: at the bar and on either side of it; never by a figure that could not be had', () => {
  const figures = { floor: 100, pasted: 128, ratio: 1.28 };
  const cases: readonly (readonly [Bar, boolean])[] = [
    [{ of: 'ratio', atLeast: 1.28 }, true],
    [{ of: 'ratio', atLeast: 1.29 }, false],
    [{ of: 'ratio', atMost: 1.28 }, true],
    [{ of: 'ratio', atMost: 1.27 }, false],
    [{ of: 'pasted', atLeast: 128 }, true],
    [{ of: 'pasted', atLeast: 129 }, false],
    [{ of: 'pasted', atMost: 127 }, false],
    [{ of: 'pasted', timesFloor: 1, atMost: 28 }, true],
    [{ of: 'pasted', timesFloor: 1, atMost: 27 }, false],
    [{ of: 'pasted', timesFloor: 1.25, atMost: 3 }, true],
    [{ of: 'pasted', timesFloor: 1.25, atMost: 2 }, false],
  ];
  for (const [bar, met] of cases) {
    assert.equal(isMet(bar, figures), met, JSON.stringify(bar));
    assert.equal(isMet(bar, { floor: NaN, pasted: NaN, ratio: NaN }), false, JSON.stringify(bar));
  }
});

test('barText: what must hold, in the unit of the row', () => {
  assert.equal(barText({ of: 'ratio', atLeast: 0.8 }, 'requests/s'), '>= 0.80');
  assert.equal(barText({ of: 'ratio', atMost: 2 }, 'p99 ms'), '<= 2.00');
  assert.equal(barText({ of: 'pasted', atMost: 200 }, 'peak MB'), '<= 200 MB');
  assert.equal(barText({ of: 'pasted', atLeast: 3000 }, 'requests/s'), '>= 3000 requests/s');
  assert.equal(barText({ of: 'pasted', timesFloor: 1, atMost: 120 }, 'ms'), '<= floor + 120 ms');
  assert.equal(barText({ of: 'pasted', timesFloor: 1.1, atMost: 8 }, 'MB'), '<= 1.1 x floor + 8 MB');
});

/** What the senders of a plan send, one after the other on two connections. */
function sent(plan: object, count: number): string[] {
  const requests: string[] = [];
  const connection = { send: (request: Buffer) => requests.push(request.toString('latin1')) };
  const made = senders(plan);
  const onEach = [made(), made()];
  for (let index = 0; index < count; index += 1) onEach[index % 2]!(connection);
  return requests;
}

test('drawn requests: each names a paste with its owner, is stamped, and a plan that comes again goes on', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'pasted-bench-test-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const idOf = (index: number): string => String(index).padStart(ID.length, 'i');
  const ids = join(folder, 'ids');
  writeFileSync(ids, Array.from({ length: 10 }, (_, index) => idOf(index)).join(''));
  const owners = ['a', 'b'].map((letter) => letter.repeat(OWNER.length));
  const plan = { kind: 'drawn', template: `/${ID} ${OWNER} ${STAMP}`, ids, count: 10, draw: 'eachOnce', owners };
  const requests = [...sent(plan, 4), ...sent(plan, 6)].map((request) => request.split(' '));
  const named = requests.map(([id = '', owner]) => ({ index: Number(id.slice(-1)), id, owner }));
  assert.deepEqual(
    named.toSorted((one, other) => one.index - other.index),
    Array.from({ length: 10 }, (_, index) => ({ index, id: `/${idOf(index)}`, owner: owners[index % 2] })),
  );
  assert.equal(new Set(requests.map(([, , stamp]) => stamp)).size, 10);
  assert.ok(requests.every(([, , stamp]) => /^[0-9a-f]+$/.test(stamp ?? '') && stamp?.length === STAMP.length));
  assert.equal(sent({ ...plan, side: 'floor' }, 10).length, 10);
});

test('timed.mjs: what is timed without a socket is there in the built modules, by the names that it calls', async (t) => {
  const { path: database } = await openTestStore(t);
  const timed = fork(join(ROOT, 'scripts', 'bench', 'timed.mjs'), { execArgv: [] });
  t.after(() => timed.kill());
  for (const what of ['work', 'rate', 'registration']) {
    timed.send({ what, main: builtMain(), database, seconds: 0.01, atOnce: 1, batch: 1 });
    // The process ends with an error if something is missing.
    const [answer] = await Promise.race([once(timed, 'message'), once(timed, 'exit')]) as [{ answers?: number } | number];
    assert.ok(typeof answer === 'object' && answer.answers! > 0, `${what}: ${JSON.stringify(answer)}`);
  }
});
