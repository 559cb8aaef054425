// How a run is written down: the machine, a table for people, and everything that was measured as JSON.

import { closeSync, fdatasyncSync, openSync, statfsSync, writeSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { makeFolder, removeFolder } from './processes.mjs';
import { barText, isMet, median } from './statistics.mjs';

/** statfs(2) */
const TMPFS = 0x01021994;

/** A load average that idle machines do not have. */
const BUSY = 0.7;

export function describeMachine(pasted, pinned) {
  const folder = makeFolder();
  const file = openSync(path.join(folder, 'probe'), 'w');
  const medianMs = (times, content) => median(Array.from({ length: times }, () => {
    const begun = performance.now();
    writeSync(file, content, 0, content.length, 0);
    fdatasyncSync(file);
    return performance.now() - begun;
  }));
  const machine = {
    pasted, node: process.versions.node, sqlite: process.versions.sqlite,
    cpu: os.cpus()[0]?.model ?? 'unknown', cores: os.cpus().length, memoryBytes: os.totalmem(),
    kernel: `${os.type()} ${os.release()}`, loadBefore: os.loadavg()[0], pinned,
    isInMemory: statfsSync(folder).type === TMPFS,
    // No operation that waits for the disk before it is acknowledged can be faster than this.
    writePageMs: medianMs(50, Buffer.alloc(4096, 1)), write50MibMs: medianMs(3, Buffer.alloc(50 * 2 ** 20, 2)),
  };
  closeSync(file);
  removeFolder(folder);
  return machine;
}

export function machineLines(machine) {
  const lines = [
    `pasted ${machine.pasted}, Node ${machine.node}, SQLite ${machine.sqlite}`,
    `${machine.cores} cores, ${machine.cpu}, ${figure(machine.memoryBytes / 1e9)} GB, ${machine.kernel}`,
    `pinned: ${machine.pinned}`,
    `disk: 4 KiB written and synced in ${figure(machine.writePageMs)} ms, 50 MiB in ${figure(machine.write50MibMs)} ms`,
  ];
  if (machine.isInMemory) lines.push('NOTE in memory, durability costs nothing: set TMPDIR to a folder on a disk');
  const load = machine.loadBefore;
  if (load > BUSY) lines.push(`NOTE load average ${figure(load)} before: figures may be disturbed`);
  return lines;
}

const COLUMNS = {
  'operation': ({ operation }) => operation.title,
  'unit': ({ operation }) => operation.unit,
  'floor': ({ outcome }) => figure(outcome.floor),
  'pasted': ({ outcome }) => figure(outcome.pasted),
  'ratio': ({ outcome: { ratio } }) => (Number.isNaN(ratio) ? '' : ratio.toFixed(2)),
  'low-high': ({ outcome: { ratios } }) => (
    ratios.length === 0 ? '' : `${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}`
  ),
  'bar': ({ operation: { bar, unit } }) => barText(bar, unit),
  'met': ({ operation, outcome }) => (isMet(operation.bar, outcome) ? 'yes' : 'NO'),
  'CPU us': ({ outcome }) => figure(outcome.cpuMs.pasted * 1000),
  "floor's": ({ outcome }) => figure(outcome.cpuMs.floor * 1000),
};

/** The table of figures, and below it the notes on each operation. */
export function tableLines(results) {
  if (results.length === 0) return [];
  const cells = results.map((result) => Object.values(COLUMNS).map((cell) => cell(result)));
  const rows = [Object.keys(COLUMNS), ...cells];
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column])).join('  ').trimEnd());
  const notes = results.flatMap(({ operation, outcome }) => outcome.notes.map((note) => `${operation.name}: ${note}`));
  return [...lines, '', ...notes];
}

/** Answers that were not 2xx and connections that broke, a line for each kind. */
export function errorLines(results) {
  return results.flatMap(({ operation, outcome }) => (
    Object.entries(outcome.errors).map(([reason, count]) => `ERROR ${operation.name}: ${count} x ${reason}`)
  ));
}

export function asJson(machine, quick, results) {
  const operations = results.map(({ operation: { measure, floor: against, ...operation }, outcome }) => (
    { ...operation, against, met: isMet(operation.bar, outcome), ...outcome }
  ));
  return `${JSON.stringify({ machine, quick, operations }, null, 2)}\n`;
}

/** Three significant digits, or a whole number if it is 100 or more. */
function figure(value) {
  if (Number.isNaN(value)) return '';
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
