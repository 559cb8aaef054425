// How a run is written down: the machine, a table for people, and everything that was measured as JSON.

import { closeSync, fdatasyncSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { makeFolder, removeFolder } from './processes.mjs';
import { barText, isMet, median } from './statistics.mjs';

const MIB = 1024 * 1024;

/** A load average that idle machines do not have. */
const BUSY = 0.7;

export function describeMachine(pasted, pinned) {
  const folder = makeFolder();
  const machine = {
    pasted, node: process.versions.node, sqlite: process.versions.sqlite,
    cpu: os.cpus()[0]?.model ?? 'unknown', cores: os.cpus().length, memoryBytes: os.totalmem(),
    kernel: `${os.type()} ${os.release()}`, loadBefore: os.loadavg()[0], pinned,
    fileSystem: fileSystemOf(folder), ...probeDisk(folder),
  };
  removeFolder(folder);
  return machine;
}

/** The type of the file system that a folder is on, as the kernel names it. */
function fileSystemOf(folder) {
  if (process.platform !== 'linux') return 'unknown';
  const mounts = readFileSync('/proc/self/mounts', 'utf8').trim().split('\n').map((line) => line.split(' '));
  const holding = mounts.filter(([, point]) => !path.relative(point, folder).startsWith('..'));
  return holding.toSorted(([, one], [, other]) => one.length - other.length).at(-1)?.[2];
}

/** What durable writing costs here at least: nothing that is acknowledged after reaching the disk can be faster. */
function probeDisk(folder) {
  const file = openSync(path.join(folder, 'probe'), 'w');
  const medianMs = (times, content, sync) => median(Array.from({ length: times }, () => {
    const begun = performance.now();
    writeSync(file, content, 0, content.length, 0);
    sync(file);
    return performance.now() - begun;
  }));
  const writePageMs = medianMs(50, Buffer.alloc(4096, 1), fdatasyncSync);
  const write50MibMs = medianMs(3, Buffer.alloc(50 * MIB, 2), fsyncSync);
  closeSync(file);
  return { writePageMs, write50MibMs };
}

export function machineLines(machine) {
  const { fileSystem, loadBefore } = machine;
  const lines = [
    `pasted ${machine.pasted}, Node ${machine.node}, SQLite ${machine.sqlite}`,
    `${machine.cores} cores, ${machine.cpu}, ${figure(machine.memoryBytes / 1e9)} GB, ${machine.kernel}`,
    `pinned: ${machine.pinned}`,
    `disk: ${fileSystem}, 4 KiB written and synced in ${figure(machine.writePageMs)} ms, ` +
      `50 MiB in ${figure(machine.write50MibMs)} ms`,
  ];
  if (fileSystem === 'tmpfs') lines.push('NOTE in memory, durability costs nothing: set TMPDIR to a folder on a disk');
  if (loadBefore > BUSY) {
    lines.push(`NOTE load average ${figure(loadBefore)} before the run: the figures may be disturbed`);
  }
  return lines;
}

const RATIOS = {
  'operation': ({ operation }) => operation.title,
  'unit': ({ operation }) => operation.unit,
  'floor': ({ outcome }) => figure(outcome.floor),
  'pasted': ({ outcome }) => figure(outcome.pasted),
  'ratio': ({ outcome: { ratio } }) => (Number.isNaN(ratio) ? '' : ratio.toFixed(2)),
  'low-high': ({ outcome: { ratios } }) => spread(ratios),
  'bar': ({ operation: { bar, unit } }) => barText(bar, unit),
  'met': ({ operation, outcome }) => (isMet(operation.bar, outcome) ? 'yes' : 'NO'),
};

const DETAILS = {
  'operation': ({ operation }) => operation.name,
  'p50 / p99 ms': ({ outcome }) => latency(outcome.pastedSide),
  "floor's p50 / p99 ms": ({ outcome }) => latency(outcome.floorSide),
  'CPU us': ({ outcome }) => figure(outcome.pastedSide.cpuMs * 1000),
  "floor's CPU us": ({ outcome }) => figure(outcome.floorSide.cpuMs * 1000),
  'notes': ({ outcome }) => outcome.notes.join('; '),
};

export function tableLines(results) {
  return results.length === 0 ? [] : [...table(RATIOS, results), '', ...table(DETAILS, results)];
}

function table(columns, results) {
  const rows = [Object.keys(columns), ...results.map((result) => Object.values(columns).map((cell) => cell(result)))];
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column])).join('  ').trimEnd());
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

function spread(ratios) {
  return ratios.length === 0 ? '' : `${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}`;
}

function latency({ p50Ms, p99Ms }) {
  return Number.isNaN(p50Ms) ? '' : `${figure(p50Ms)} / ${figure(p99Ms)}`;
}

/** Three significant digits, or all of a larger number's whole part. */
function figure(value) {
  if (Number.isNaN(value)) return '';
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
