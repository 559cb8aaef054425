// How a run is written down: a table for people, and everything that was measured as JSON. It decides nothing.

import { barText, isMet } from './bars.mjs';

/** @typedef {import('./operations.mjs').Operation} Operation */
/** @typedef {import('./rounds.mjs').Outcome} Outcome */
/** @typedef {{ operation: Operation, outcome: Outcome }} Result */

/** The stocks of pastes with their copies, and what the largest operation uploads in a round. */
const LARGEST_DATABASES = 12e9;

/** A load average that idle machines do not have. */
const BUSY = 0.7;

/** @typedef {Array<{ title: string, cell: (result: Result) => string }>} Columns */

/** @type {Columns} */
const RATIOS = [
  { title: 'operation', cell: ({ operation }) => operation.title },
  { title: 'unit', cell: ({ operation }) => operation.unit },
  { title: 'floor', cell: ({ outcome }) => figure(outcome.floor) },
  { title: 'pasted', cell: ({ outcome }) => figure(outcome.pasted) },
  { title: 'ratio', cell: ({ outcome: { ratio } }) => (Number.isNaN(ratio) ? '' : ratio.toFixed(2)) },
  { title: 'low-high', cell: ({ outcome: { ratios } }) => spread(ratios) },
  { title: 'bar', cell: ({ operation: { bar, unit } }) => barText(bar, unit) },
  { title: 'met', cell: ({ operation, outcome }) => (isMet(operation.bar, outcome) ? 'yes' : 'NO') },
];

/** @type {Columns} */
const DETAILS = [
  { title: 'operation', cell: ({ operation }) => operation.name },
  { title: 'p50 / p99 ms', cell: ({ outcome }) => latency(outcome.pastedSide) },
  { title: "floor's", cell: ({ outcome }) => latency(outcome.floorSide) },
  { title: 'CPU us', cell: ({ outcome }) => figure(outcome.pastedSide.cpuMs * 1000) },
  { title: "floor's", cell: ({ outcome }) => figure(outcome.floorSide.cpuMs * 1000) },
  { title: 'peak MB', cell: ({ outcome }) => figure(outcome.pastedSide.peakBytes / 1e6) },
  { title: "floor's", cell: ({ outcome }) => figure(outcome.floorSide.peakBytes / 1e6) },
  { title: 'notes', cell: ({ outcome }) => outcome.notes.join('; ') },
];

/** @param {import('./machine.mjs').Machine} machine */
export function machineLines(machine) {
  return [
    `pasted ${machine.pasted}, Node ${machine.node}, SQLite ${machine.sqlite}`,
    `${machine.cores} cores, ${machine.cpu}, ${figure(machine.memoryBytes / 1e9)} GB, ${machine.kernel}`,
    `pinned: ${machine.pinned}`,
    `disk: ${machine.fileSystem}, 4 KiB written and synced in ${figure(machine.writePageMs)} ms, ` +
      `50 MiB in ${figure(machine.write50MibMs)} ms`,
    ...warnings(machine),
  ];
}

/** @param {import('./machine.mjs').Machine} machine */
function* warnings({ fileSystem, freeDiskBytes, loadBefore }) {
  if (fileSystem === 'tmpfs') yield 'NOTE in memory, durability costs nothing: set TMPDIR to a folder on a disk';
  if (freeDiskBytes < LARGEST_DATABASES) yield `NOTE ${figure(freeDiskBytes / 1e9)} GB free: uploads may fill the disk`;
  if (loadBefore > BUSY) yield `NOTE load average ${figure(loadBefore)} before the run: the figures may be disturbed`;
}

/** @param {Result[]} results */
export function tableLines(results) {
  return results.length === 0 ? [] : [...table(RATIOS, results), '', ...table(DETAILS, results)];
}

/** @param {Columns} columns @param {Result[]} results */
function table(columns, results) {
  const rows = [columns.map(({ title }) => title), ...results.map((result) => columns.map(({ cell }) => cell(result)))];
  const widths = columns.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ').trimEnd());
}

/** Answers that were not 2xx and connections that broke, a line for each kind. @param {Result[]} results */
export function errorLines(results) {
  return results.flatMap(({ operation, outcome }) => (
    Object.entries(outcome.errors).map(([reason, count]) => `ERROR ${operation.name}: ${count} x ${reason}`)
  ));
}

/** @param {import('./machine.mjs').Machine} machine @param {boolean} quick @param {Result[]} results */
export function asJson(machine, quick, results) {
  const operations = results.map(({ operation: { name, title, floor: against, unit, bar }, outcome }) => (
    { name, title, against, unit, bar, met: isMet(bar, outcome), ...outcome }
  ));
  return `${JSON.stringify({ machine, quick, operations }, null, 2)}\n`;
}

/** @param {number[]} ratios */
function spread(ratios) {
  if (ratios.length === 0) return '';
  return `${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}`;
}

/** @param {import('./rounds.mjs').Side} side */
function latency({ p50Ms, p99Ms }) {
  return Number.isNaN(p50Ms) ? '' : `${figure(p50Ms)} / ${figure(p99Ms)}`;
}

/** Three significant digits, or all of a larger number's whole part. @param {number} value */
function figure(value) {
  if (Number.isNaN(value)) return '';
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
