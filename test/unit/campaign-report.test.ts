// What the campaign keeps of its rows, and what it makes of that: the page of figures and the plot of row 16. Also how
// a row goes on from unit to unit.

import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
// @ts-expect-error: a script without types
import { BEGIN, END, writeReport } from '../../scripts/campaign/report.mjs';
// @ts-expect-error: a script without types
import { openResults, readFound, readResults, rowLine, writeFound } from '../../scripts/campaign/results.mjs';
// @ts-expect-error: a script without types
import { soakPlot, soakTable } from '../../scripts/campaign/soak.mjs';
import type { Inspection } from '../campaign/inspect.ts';
import { runUnit, type Row, type Unit, type UnitResult } from '../campaign/row.ts';
import { faultRow } from '../campaign/row-02-faults.ts';
import { governedFaultRow } from '../campaign/row-02-governed.ts';
import { lookAt } from '../campaign/row-05-once.ts';
import { ROWS } from '../campaign/rows.ts';
import { temporaryFolder } from '../support/programs.ts';
import { ROOT } from '../support/source.ts';

const VERSIONS = {
  node: '24.21.0', sqlite: '3.53.4', openssl: '3.5.8', kernel: '6.1.0-x', cores: 2, commit: 'abcdef0123', build: '1',
};
const KILLS: Row = {
  name: '1', title: 'kills of a process', target: '2 000 kills', units: 4, least: ['kills'], bars: { 'ready ms': 2000 },
  run: async () => {},
};

function unitOf(values: Partial<UnitResult>): { seed: number; seconds: number; result: UnitResult } {
  return { seed: 1, seconds: 90, result: { tried: { kills: 500 }, most: { 'ready ms': 1200 }, lost: [], samples: [], ...values } };
}

test('openResults: goes on where it was, begins a row anew for another build, and counts on when that is asked for', (t) => {
  const folder = temporaryFolder(t);
  const open = (versions: object, how: object = {}) => openResults({ folder, versions, isFresh: false, goesOn: false, ...how });
  open(VERSIONS).add(KILLS, unitOf({}));
  open({ ...VERSIONS, commit: 'of documents alone' }).add(KILLS, unitOf({ most: { 'ready ms': 700 } }));
  const twice = open(VERSIONS).of(KILLS);
  assert.deepEqual([twice.units, twice.tried, twice.most, twice.versions], [2, { kills: 1000 }, { 'ready ms': 1200 }, [VERSIONS]]);

  const next = { ...VERSIONS, commit: 'next', build: '2' };
  assert.equal(open(next).of(KILLS).units, 0);
  assert.equal(open(VERSIONS).of(KILLS).units, 2, 'asking takes nothing away');
  open(next, { goesOn: true }).add(KILLS, unitOf({ lost: [{ what: 'a paste' }] }));
  const all = open(next).of(KILLS);
  assert.deepEqual([all.units, all.lost, all.versions], [3, 1, [VERSIONS, next]]);
  assert.match(rowLine(all), /^row 1 .*: 1 LOST \(3 of 4 units, 270 s; kills 1500, ready ms <= 1200\)$/);

  open(next).skip(KILLS, 'no compiler');
  assert.equal(open(next).of(KILLS).skipped, null, 'what was tried elsewhere stays');
  open(next, { isFresh: true }).add(KILLS, unitOf({ most: { 'ready ms': 2001 } }));
  assert.deepEqual([open(next).of(KILLS).units, open(next).of(KILLS).overBar], [1, ['ready ms']]);
  assert.deepEqual(readdirSync(folder), ['1.json']);
});

test('openResults: what is judged now and was not measured then is said, and is no success', (t) => {
  const results = openResults({ folder: temporaryFolder(t), versions: VERSIONS, isFresh: false, goesOn: false });
  const judged = { ...KILLS, least: ['kills', 'stops'], bars: { ...KILLS.bars, 'silent ms': 10 } };
  results.add(judged, unitOf({}));
  assert.deepEqual(results.of(judged).unmeasured, ['silent ms', 'stops']);
  assert.match(rowLine(results.of(judged)), /: nothing lost, silent ms NOT MEASURED, stops NOT MEASURED \(/);
  results.add(judged, unitOf({ tried: { stops: 1 }, most: { 'silent ms': 9 } }));
  assert.deepEqual([results.of(judged).unmeasured, results.of(KILLS).unmeasured], [[], []]);
});

test('lookAt: neither fewer nor more is stored than was acknowledged', () => {
  const lost: string[] = [];
  const unit = { lose: (what: string) => lost.push(what) } as unknown as Unit;
  const certificates = new Map([['a', { isRevoked: true }], ['b', { isRevoked: false }]]);
  const found = { faults: [], pastes: new Map([['x', {}]]), certificates } as unknown as Inspection;
  lookAt(unit, found, { pastes: 1, certificates: 2, revoked: 1 });
  assert.deepEqual(lost, []);
  lookAt(unit, found, { pastes: 0, certificates: 3, revoked: 1 });
  assert.deepEqual(lost, ['pastes: 1, and 0 were acknowledged', 'certificates: 2, and 3 were acknowledged']);
});

test('openResults: a row is whole when its units are done and its goals are reached, whatever a unit amounts to here', (t) => {
  const results = openResults({ folder: temporaryFolder(t), versions: VERSIONS, isFresh: false, goesOn: false });
  const wantedAfter = (name: string, ...units: number[]): number[] => {
    const row = { ...KILLS, name, units: 2, goals: { kills: 1000 } };
    return units.map((kills) => {
      results.add(row, unitOf({ tried: { kills } }));
      return results.of(row).wanted;
    });
  };
  assert.deepEqual(wantedAfter('fast', 1000, 1000), [2, 2], 'the goal alone does not make it whole');
  assert.deepEqual(wantedAfter('slow', 333, 333, 333, 1), [4, 4, 4, 4], 'after three units one is missing');
  assert.deepEqual(wantedAfter('idle', 0, 500), [2, 4]);
  assert.deepEqual(wantedAfter('never', 0, 0, 0), [2, 3, 4], 'nothing at all is not enough');
  const unmeasuredOf = (name: string): unknown => results.of({ ...KILLS, name, goals: { kills: 1, stops: 1 } }).unmeasured;
  assert.deepEqual([unmeasuredOf('never'), unmeasuredOf('slow')], [['kills', 'stops'], ['stops']], 'once each');
});

test('rows 2, 2g: whole only when each operation has its 500 points', (t) => {
  const folder = temporaryFolder(t);
  for (const row of [faultRow, governedFaultRow]) {
    const names = Object.keys(row.goals ?? {});
    assert.ok(names.length > 1, row.name);
    for (const one of names) {
      const wantedWith = (points: number): number => {
        const tried = Object.fromEntries(names.map((name) => [name, name === one ? points : 500]));
        return readResults(folder, [row], new Map([[row.name, { units: row.units, tried }]])).get(row.name).wanted;
      };
      assert.deepEqual([wantedWith(499), wantedWith(500)], [row.units + 1, row.units], one);
    }
  }
});

test('openResults: two campaigns beside each other keep each other\'s rows', (t) => {
  const folder = temporaryFolder(t);
  const [one, other] = [1, 2].map(() => openResults({ folder, versions: VERSIONS, isFresh: false, goesOn: false }));
  const races = { ...KILLS, name: '4' };
  one.add(KILLS, unitOf({}));
  other.add(races, unitOf({}));
  one.add(KILLS, unitOf({}));
  assert.deepEqual([...readResults(folder, [KILLS, races]).values()].map(({ units }) => units), [2, 1]);
});

test('writeFound, readFound: another machine goes on where this one was, and its own results come first', (t) => {
  const [folder, file] = [temporaryFolder(t), join(temporaryFolder(t), 'found.jsonl')];
  const races = { ...KILLS, name: '4' };
  const untried = { ...KILLS, name: '99' };
  const here = openResults({ folder, versions: VERSIONS, isFresh: false, goesOn: false });
  here.add(KILLS, unitOf({ lost: [{ what: 'a paste', evidence: 'long' }], samples: [{ seconds: 30 }] }));
  here.add(races, unitOf({}));
  const rows = [KILLS, races, untried];
  const newer = { ...VERSIONS, node: '26.10.0' };
  const folder26 = temporaryFolder(t);
  openResults({ folder: folder26, versions: newer, isFresh: false, goesOn: false }).add(KILLS, unitOf({}));
  writeFound(file, new Map([[24, readResults(folder, rows)], [26, readResults(folder26, rows)]]));
  assert.equal(readFileSync(file, 'utf8').trimEnd().split('\n').length, 3, 'a line for each row that was tried');

  const elsewhere = temporaryFolder(t);
  const found = readFound(file, 24);
  const told = { ...readResults(folder, rows).get(KILLS.name), losses: [{ seed: 1, what: 'a paste' }] };
  assert.deepEqual(readResults(elsewhere, rows, found).get(KILLS.name), told);
  assert.deepEqual(readResults(elsewhere, rows, readFound(file, 26)).get(KILLS.name).versions, [newer]);
  const open = (how: object) => openResults({ folder: elsewhere, found, versions: VERSIONS, isFresh: false, goesOn: false, ...how });
  assert.equal(open({ isFresh: true }).of(KILLS).units, 0);
  assert.equal(open({ versions: { ...VERSIONS, build: '2' } }).of(KILLS).units, 0);
  open({}).add(KILLS, unitOf({}));
  assert.deepEqual(rows.map((row) => open({}).of(row).units), [2, 1, 0]);
  assert.deepEqual(rows.map((row) => readResults(elsewhere, rows, found).get(row.name).units), [2, 1, 0]);
});

test('writeReport: a line for each row and each version of Node between the marks, and nothing else is changed', (t) => {
  const folder = temporaryFolder(t);
  const page = join(folder, 'page.md');
  const written = (text: string): string => (writeFileSync(page, text), text);
  const foundIn = (name: string, versions: object, row: Row, ...units: ReturnType<typeof unitOf>[]): void => {
    mkdirSync(join(folder, name), { recursive: true });
    const results = openResults({ folder: join(folder, name), versions, isFresh: true, goesOn: false });
    for (const unit of units) results.add(row, unit);
  };
  const soak: Row = { ...KILLS, name: '16', title: 'a day', target: '8 h', units: 48, bars: {} };
  const untried: Row = { ...KILLS, name: '99', title: 'nothing', target: 'once' };
  const rows = [KILLS, soak, untried];
  const found = () => new Map([24, 26].map((major) => [major, readResults(join(folder, `node-${major}`), rows)]));
  written(`${BEGIN}\n${END}\n`);
  assert.throws(() => writeReport(page, rows, found()), /nothing was tried yet/);

  foundIn('node-24', VERSIONS, KILLS, unitOf({}), unitOf({}), unitOf({}), unitOf({ tried: { kills: 1 } }));
  const late = unitOf({ most: { 'ready ms': 2001 }, lost: [{ what: 'a paste' }, { what: 'a paste' }] });
  foundIn('node-26', { ...VERSIONS, node: '26.10.0', cores: 1 }, KILLS, late);
  foundIn('node-24', VERSIONS, soak, { ...unitOf({ samples: sitting(1, 2) }), seconds: 7200 });
  assert.throws(() => writeReport(page.replace('page', 'none'), rows, found()), /no such file/);
  written('no marks');
  assert.throws(() => writeReport(page, rows, found()), /expected a line <!-- figures/);
  assert.ok(!existsSync(join(folder, 'soak.svg')));

  written(`# Before\n\n${BEGIN}\nold figures\n${END}\n\nAfter\n`);
  assert.deepEqual(writeReport(page, rows, found()), [page, join(folder, 'soak.svg')]);
  const text = readFileSync(page, 'utf8');
  assert.ok(text.startsWith(`# Before\n\n${BEGIN}\n\n- Node 24.21.0 with SQLite 3.53.4 and OpenSSL 3.5.8, Linux 6.1.0, 2 cores\n`), text);
  assert.ok(text.endsWith(`\n${END}\n\nAfter\n`) && !text.includes('old figures'), text);
  for (const line of [
    '- Node 26.10.0 with SQLite 3.53.4 and OpenSSL 3.5.8, Linux 6.1.0, one core',
    '| Row | What is tried | The whole of it | Node 24 | Node 26 |',
    '| 1 | kills of a process | 2 000 kills | whole, 6 min: nothing lost | 25 %, 2 min: **2 lost**, ready ms over its bar |',
    '| 16 | a day | 8 h | 2.1 %, 2.0 h: nothing lost | not tried |',
    '| 99 | nothing | once | not tried | not tried |',
    '- **1** (abcdef0): kills 1 501; at most: ready ms 1 200 (bar 2 000)',
  ]) {
    assert.ok(text.split('\n').includes(line), `${line}\n${text}`);
  }
  writeReport(page, rows, found());
  assert.equal(readFileSync(page, 'utf8'), text);

  foundIn('node-24', VERSIONS, soak, unitOf({}));
  assert.deepEqual(writeReport(page, rows, found()), [page]);
  assert.ok(!existsSync(join(folder, 'soak.svg')), 'a plot of what does not count any more');
});

test('RELIABILITY.md: has every row as it is today, and the figures of found.jsonl', (t) => {
  const folder = temporaryFolder(t);
  const documents = join(ROOT, 'scripts', 'release', 'documents');
  cpSync(documents, folder, { recursive: true });
  const file = join(ROOT, 'scripts', 'campaign', 'found.jsonl');
  const found = new Map([24, 26].map((major) => [major, readResults(temporaryFolder(t), ROWS, readFound(file, major))]));
  writeReport(join(folder, 'RELIABILITY.md'), ROWS, found);
  assert.deepEqual(readdirSync(folder).sort(), readdirSync(documents).sort());
  for (const name of readdirSync(folder)) {
    assert.ok(readFileSync(join(folder, name)).equals(readFileSync(join(documents, name))), `${name}: npm run campaign -- --report`);
  }
});

/** One sample every ten minutes, at 100 requests a second. */
function sitting(began: number, hours: number): Record<string, number>[] {
  return Array.from({ length: hours * 6 }, (_, index) => ({
    sitting: began, seconds: (index + 1) * 600, requests: (index + 1) * 60_000, p50Ms: 1, p99Ms: index === 1 ? 40 : 4,
    eventLoopP99Ms: 2, memoryMib: 100 + index, descriptors: 30, fileMib: 500, walMib: 8, backups: index % 6 === 3 ? 1 : 0,
  }));
}

test('soakTable, soakPlot: a row for each hour of two sittings, and a plot of which every line is within its frame', () => {
  const samples = [...sitting(1_000_000, 2), ...sitting(2_000_000, 1)];
  const rows = String(soakTable(samples)).trimEnd().split('\n').slice(2).map((line) => line.split(' | '));
  assert.deepEqual(rows.map(([until]) => until), ['| 1:00', '| 2:00', '| 3:00']);
  assert.deepEqual(rows.map((cells) => cells.slice(1, 5)), [
    ['100', '1.0', '4.0', '40.0'], ['100', '1.0', '4.0', '4.0'], ['100', '1.0', '4.0', '40.0'],
  ]);
  assert.deepEqual(rows.map((cells) => cells[7]), ['105', '111', '105'], 'the most memory');
  assert.deepEqual(rows.map((cells) => cells.at(-1)), ['1 |', '1 |', '1 |']);

  // A sample is taken a little after its time.
  const late = [...sitting(1_000_000, 6), { ...sitting(1_000_000, 6).at(-1)!, seconds: 21_606, requests: 2_160_600 }];
  const hours = String(soakTable(late)).trimEnd().split('\n').slice(2).map((line) => line.split(' | ', 2).join(' '));
  assert.deepEqual(hours, ['| 1:00 100', '| 2:00 100', '| 3:00 100', '| 4:00 100', '| 5:00 100', '| 6:00 100']);

  const svg = String(soakPlot(samples));
  assert.match(svg, /<title>What row 16 of the campaign measured over 3:00 hours<\/title>/);
  assert.match(String(soakPlot(samples.slice(0, 5))), / measured over 50:00 min<\/title>/);
  const lines = [...svg.matchAll(/<polyline points="([^"]+)"/g)].map(([, points]) => points!.split(' '));
  assert.equal(lines.length, 6);
  for (const points of lines) {
    assert.equal(points.length, 18);
    for (const point of points) {
      const [x = NaN, y = NaN] = point.split(',').map(Number);
      assert.ok(x > 60 && x <= 830 && y >= 0 && y <= 110, point);
    }
  }
  assert.equal(svg.match(/class="begin"/g)?.length, 4, 'where the second sitting begins, in each panel');
});

test('runUnit: each unit that a row goes on to has its own results, and nothing goes on without being asked', async () => {
  const row: Row = {
    name: '0', title: '', target: '', units: 3, least: ['turns'],
    async run(unit) {
      let turn = 0;
      do {
        unit.count('turns');
        unit.sample({ turn: turn + 0.0004 });
        if (turn === 1) unit.lose('something');
        turn += 1;
      } while (unit.goesOn());
    },
  };
  const kept: UnitResult[] = [];
  const goesOn = (result: UnitResult): boolean => kept.push(result) < 3;
  const last = await runUnit(row, { seed: 1, effort: 'full', main: '', goesOn });
  assert.equal(last, kept[2]);
  assert.deepEqual(kept.map(({ samples }) => samples), [[{ turn: 0 }], [{ turn: 1 }], [{ turn: 2 }]]);
  assert.deepEqual(kept.map(({ lost }) => lost.length), [0, 1, 0]);
  assert.deepEqual((await runUnit(row, { seed: 1, effort: 'full', main: '' })).tried, { turns: 1 });
});

test('runUnit: a unit without what a row must have tried is a loss, and so is a row that throws, with what it found', async () => {
  const rowOf = (run: Row['run']): Row => ({ ...KILLS, least: ['kills', 'faults'], run });
  const lostBy = async (run: Row['run']) => {
    const { tried, lost } = await runUnit(rowOf(run), { seed: 1, effort: 'quick', main: '' });
    return [tried, lost.map(({ what }) => what.split('\n')[0])];
  };
  assert.deepEqual(await lostBy(async (unit) => unit.count('kills')), [{ kills: 1 }, ['nothing was tried of: faults']]);
  assert.deepEqual(await lostBy(async (unit) => unit.count('kills', 0)), [{ kills: 0 }, ['nothing was tried of: kills, faults']]);
  assert.deepEqual(await lostBy(async (unit) => {
    unit.count('kills');
    unit.lose('a paste');
    throw new Error('what comes of it');
  }), [{ kills: 1 }, ['a paste', 'the row itself failed: Error: what comes of it']]);
});
