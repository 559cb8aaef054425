// What a campaign has found so far, as a JSON file for each row and each major version of Node. It is written after
// every unit, so that nothing is lost when the campaign stops, and several campaigns may try different rows at the same
// time. The repository keeps the main results in one file, from which a campaign on another machine continues.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { say } from '../child.mjs';

/** How many losses are kept with their evidence; more would only make the file long. */
const LOSSES_KEPT = 50;

/**
 * A row begins anew when the build or Node has changed since its last unit. With `goesOn` it continues instead, and
 * counts what was tried with all the builds that it names. With `isFresh` it begins anew in any case. `found` is what
 * readFound gives; it is used for rows that have no file in the folder.
 * @param {{
 *   folder: string, found?: ReadonlyMap<string, object>, versions: Record<string, unknown>, isFresh: boolean,
 *   goesOn: boolean,
 * }} options
 */
export function openResults({ folder, found = new Map(), versions, isFresh, goesOn }) {
  mkdirSync(folder, { recursive: true });
  const rows = new Map();

  function kept({ name }) {
    const former = isFresh ? null : readRow(folder, name, found);
    const builds = former?.versions ?? [];
    if (former === null || goesOn || isSame(builds.at(-1), versions)) return former;
    say(`row ${name}: what is tried has changed since the last time: beginning anew`);
    return null;
  }

  /** What is known about a row, in the form in which it is written. */
  function of(row) {
    if (!rows.has(row.name)) rows.set(row.name, kept(row));
    return stateOf(row, rows.get(row.name));
  }

  function set(row, changes) {
    rows.set(row.name, { ...of(row), ...changes });
    const file = fileOf(folder, row.name);
    writeFileSync(`${file}.new`, `${JSON.stringify(of(row), null, 2)}\n`);
    renameSync(`${file}.new`, file);
  }

  return {
    of,
    /** A skipped row keeps what was found before. */
    skip(row, reason) {
      if (of(row).units === 0) set(row, { skipped: reason });
    },
    add(row, { seed, seconds, result }) {
      const before = of(row);
      set(row, {
        versions: before.versions.some((one) => isSame(one, versions)) ? before.versions : [...before.versions, versions],
        units: before.units + 1,
        seconds: before.seconds + seconds,
        tried: merged(before.tried, result.tried, (one, other) => one + other),
        most: merged(before.most, result.most, Math.max),
        lost: before.lost + result.lost.length,
        losses: [...before.losses, ...result.lost.map((loss) => ({ seed, ...loss }))].slice(0, LOSSES_KEPT),
        samples: [...before.samples, ...result.samples],
        skipped: null,
      });
    },
  };
}

/** Results by the name of the row, from the folder or else from `found`, even if the build has changed since. */
export function readResults(folder, rows, found = new Map()) {
  return new Map(rows.map((row) => [row.name, stateOf(row, readRow(folder, row.name, found))]));
}

/** What writeFound has written for a major version of Node, by the name of the row. */
export function readFound(file, major) {
  const rows = readFileSync(file, 'utf8').split('\n').filter((line) => line !== '').map((line) => JSON.parse(line));
  return new Map(rows.filter((row) => row.major === major).map(({ major: _, ...row }) => [row.name, row]));
}

/**
 * Writes a line for each row that was tried. A loss is written without its evidence, which its seed makes again.
 * @param {string} file
 * @param {ReadonlyMap<number, ReadonlyMap<string, object>>} found by major version of Node, what readResults gives
 */
export function writeFound(file, found) {
  const lines = [...found].flatMap(([major, rows]) => [...rows.values()].filter(({ units }) => units > 0).map((row) => {
    const { name, versions, units, seconds, tried, most, lost, losses, samples } = row;
    const told = losses.map(({ seed, what }) => ({ seed, what }));
    return JSON.stringify({ major, name, versions, units, seconds, tried, most, lost, losses: told, samples });
  }));
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
}

/** `wanted` is at least the row's own units, or more if its goals need more at the pace so far (unknown: one more). */
function stateOf({ name, title, target, units, goals = {}, least = [], bars = {} }, known) {
  const blank = { units: 0, seconds: 0, tried: {}, most: {}, lost: 0, losses: [], samples: [], skipped: null };
  const state = { versions: [], ...blank, ...known, name, title, target, bars };
  const wanted = Math.max(units, ...Object.entries(goals).map(([what, goal]) => {
    const count = state.tried[what] ?? 0;
    return count === 0 ? state.units + 1 : Math.ceil((state.units * goal) / count);
  }));
  const overBar = Object.entries(bars).filter(([what, bar]) => state.most[what] > bar).map(([what]) => what);
  // Today's bars and minimum counts apply: either may be newer than the units, so that no unit has measured them.
  const unmeasured = state.units === 0 ? [] : [
    ...Object.keys(bars).filter((what) => !Number.isFinite(state.most[what])),
    ...[...new Set([...least, ...Object.keys(goals)])].filter((what) => !(state.tried[what] > 0)),
  ];
  return { ...state, wanted, overBar, unmeasured };
}

function isSame(one, other) {
  return one?.build === other.build && one.node === other.node;
}

function fileOf(folder, name) {
  return path.join(folder, `${name}.json`);
}

function readRow(folder, name, found) {
  try {
    return JSON.parse(readFileSync(fileOf(folder, name), 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return found.get(name) ?? null;
    throw error;
  }
}

function merged(before, added, join) {
  const result = { ...before };
  for (const [name, value] of Object.entries(added)) result[name] = name in result ? join(result[name], value) : value;
  return result;
}

/** One line for the person at the terminal. */
export function rowLine({ name, title, units, wanted, seconds, tried, most, lost, overBar, unmeasured, skipped }) {
  const start = `row ${name.padEnd(3)} ${title}: `;
  if (skipped !== null) return `${start}SKIPPED, ${skipped}`;
  const verdict = lost > 0 ? `${lost} LOST` : 'nothing lost';
  const late = overBar.map((what) => `, ${what} OVER ITS BAR`).join('');
  const missing = unmeasured.map((what) => `, ${what} NOT MEASURED`).join('');
  const figures = [...Object.entries(tried), ...Object.entries(most).map(([what, value]) => [`${what} <=`, value])];
  const words = figures.map(([what, value]) => `${what} ${value}`).join(', ');
  return `${start}${verdict}${late}${missing} (${units} of ${wanted} units, ${Math.round(seconds)} s; ${words})`;
}
