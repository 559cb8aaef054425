// What a campaign has found so far, as one JSON file for each major version of Node: written after every unit, so that
// nothing is lost when it is stopped, and begun anew when what is tried has changed.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { say } from '../child.mjs';

/** Losses with what helps to understand them; more would only make the file long. */
const LOSSES_KEPT = 50;

/** @param {{ folder: string, versions: Record<string, unknown>, label: string, isFresh: boolean }} options */
export function openResults({ folder, versions, label, isFresh }) {
  mkdirSync(folder, { recursive: true });
  const file = fileOf({ folder, label, node: versions.node });
  const former = isFresh ? null : readResults(file);
  const goesOn = former !== null && former.versions.build === versions.build && former.versions.node === versions.node;
  if (former !== null && !goesOn) say('what is tried has changed since the last time: beginning anew');
  const rows = goesOn ? former.rows : {};

  function save() {
    const temporary = `${file}.new`;
    writeFileSync(temporary, `${JSON.stringify({ versions, rows }, null, 2)}\n`);
    renameSync(temporary, file);
  }

  /** What is known of a row, as it is written. */
  function of({ name, title, target, units, bars = {} }) {
    const blank = { units: 0, seconds: 0, tried: {}, most: {}, lost: 0, losses: [], samples: [], skipped: null };
    const known = { ...blank, ...rows[name] };
    const overBar = Object.entries(bars).filter(([what, bar]) => known.most[what] > bar);
    return { name, title, target, wanted: units, bars, ...known, overBar: overBar.map(([what]) => what) };
  }

  function set(row, changes) {
    rows[row.name] = { ...of(row), ...changes };
    rows[row.name] = of(row);
    save();
  }

  return {
    path: file,
    of,
    skip: (row, reason) => set(row, { skipped: reason }),
    add(row, { seed, seconds, result }) {
      const before = of(row);
      set(row, {
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

/** What a row has measured over time, whatever has been built since. */
export function readSamples(place, row) {
  return readResults(fileOf(place))?.rows[row]?.samples ?? [];
}

function fileOf({ folder, label, node }) {
  return path.join(folder, `node-${parseInt(node, 10)}${label}.json`);
}

function readResults(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    throw error;
  }
}

function merged(before, added, join) {
  const result = { ...before };
  for (const [name, value] of Object.entries(added)) result[name] = name in result ? join(result[name], value) : value;
  return result;
}

/** One line for the person at the terminal. */
export function rowLine({ name, title, units, wanted, seconds, tried, most, lost, overBar, skipped }) {
  const start = `row ${name.padEnd(3)} ${title}: `;
  if (skipped !== null) return `${start}SKIPPED, ${skipped}`;
  const verdict = lost > 0 ? `${lost} LOST` : 'nothing lost';
  const late = overBar.map((what) => `, ${what} OVER ITS BAR`).join('');
  const figures = [...Object.entries(tried), ...Object.entries(most).map(([what, value]) => [`${what} <=`, value])];
  const words = figures.map(([what, value]) => `${what} ${value}`).join(', ');
  return `${start}${verdict}${late} (${units} of ${wanted} units, ${Math.round(seconds)} s; ${words})`;
}
