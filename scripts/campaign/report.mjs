// Writes what campaigns have found so far as tables into a Markdown page, and the plot of the soak test beside it.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { soakPlot, soakTable } from './soak.mjs';

/** These lines enclose the part that is written anew; the rest of the page is written by hand. */
export const BEGIN = '<!-- figures: npm run campaign -- --report -->';
export const END = '<!-- end of the figures -->';

const PLOT = 'soak.svg';

/** The row that measures over time. */
const SOAK = '16';

/**
 * Puts the figures into the page `file`, and returns the paths it has written. Throws when there is nothing to write.
 * @param {string} file
 * @param {readonly { name: string, title: string, target: string }[]} rows in their order
 * @param {ReadonlyMap<number, ReadonlyMap<string, object>>} found by major version of Node, by name of the row
 */
export function writeReport(file, rows, found) {
  const states = [...found.values()].flatMap((known) => [...known.values()]).filter(({ units }) => units > 0);
  if (states.length === 0) throw new Error('nothing was tried yet: npm run campaign');
  const page = readFileSync(file, 'utf8');
  const [before, after] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (before === -1 || after < before) throw new Error(`${file}: expected a line ${BEGIN} and after it a line ${END}`);
  const samples = states.filter(({ name }) => name === SOAK).map((state) => state.samples)
    .reduce((most, one) => (one.length > most.length ? one : most), []);
  const parts = [machines(states), table(rows, found), details(rows, found)];
  const written = [file];
  const plot = path.join(path.dirname(file), PLOT);
  rmSync(plot, { force: true });
  if (samples.length > 1) {
    parts.push(soakTable(samples), `![What row ${SOAK} measured over time](${PLOT})\n`);
    written.push(plot);
    writeFileSync(plot, soakPlot(samples));
  }
  writeFileSync(file, `${page.slice(0, before)}${BEGIN}\n\n${parts.join('\n')}\n${page.slice(after)}`);
  return written;
}

function machines(states) {
  const all = states.flatMap(({ versions }) => versions.map(({ node, sqlite, openssl, kernel, cores }) => {
    const machine = `Linux ${kernel.split('-', 1)[0]}, ${cores === 1 ? 'one core' : `${cores} cores`}`;
    return `- Node ${node} with SQLite ${sqlite} and OpenSSL ${openssl}, ${machine}\n`;
  }));
  return [...new Set(all)].sort().join('');
}

function table(rows, found) {
  const majors = [...found.keys()].sort((one, other) => one - other);
  const lines = rows.map(({ name, title, target }) => {
    return [name, title, target, ...majors.map((major) => verdict(found.get(major).get(name)))];
  });
  const header = ['Row', 'What is tried', 'The whole of it', ...majors.map((major) => `Node ${major}`)];
  return [header, header.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

function verdict(state) {
  const { units, wanted, seconds, lost, overBar, unmeasured, skipped } = state;
  if (units === 0) return skipped === null ? 'not tried' : `not tried: ${skipped}`;
  const share = units >= wanted ? 'whole' : `${Number(((100 * units) / wanted).toPrecision(2))} %`;
  const late = overBar.map((what) => `, ${what} over its bar`).join('');
  const missing = unmeasured.map((what) => `, ${what} not measured`).join('');
  return `${share}, ${duration(seconds)}: ${lost > 0 ? `**${lost} lost**` : 'nothing lost'}${late}${missing}`;
}

function details(rows, found) {
  return [...found].sort(([one], [other]) => one - other).map(([major, known]) => {
    const lines = rows.map(({ name }) => known.get(name)).filter(({ units }) => units > 0).map(detail);
    return lines.length === 0 ? '' : `### On Node ${major}\n\n${lines.join('')}`;
  }).join('\n');
}

function detail({ name, tried, most, bars, versions }) {
  const counts = Object.entries(tried).map(([what, count]) => `${what} ${grouped(count)}`).join(', ');
  const highest = Object.entries(most).map(([what, value]) => {
    return `${what} ${grouped(value)}${what in bars ? ` (bar ${grouped(bars[what])})` : ''}`;
  });
  const commits = [...new Set(versions.map(({ commit }) => commit?.slice(0, 7) ?? 'of no commit'))].join(', ');
  const worst = highest.length === 0 ? '' : `; at most: ${highest.join(', ')}`;
  return `- **${name}** (${commits}): ${counts}${worst}\n`;
}

function duration(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 3600 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ' ');
}
