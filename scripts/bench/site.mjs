// What a benchmark run occupies: child processes, each on its core, and temporary folders. All of it is given back at
// the end, however the end comes. What the processes do is servers.mjs.

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */
/** @typedef {ReturnType<typeof openSite>} Site */

const KILL_AFTER_MS = 15_000;

/** An operation that this machine has not the means for, which is no failure of what was to be measured. */
export class NotHereError extends Error {}

/**
 * `load`: the load generator and this process on one core, so that neither takes more, and the servers wherever the
 * scheduler puts them. `both`: the servers on another core, with one core for all their threads.
 * @param {'load' | 'both' | 'none'} pin wanted; it happens where taskset exists and this process may use two cores
 */
export function openSite(pin) {
  /** @type {Set<ChildProcess>} */
  const running = new Set();
  /** @type {Set<string>} */
  const folders = new Set();
  const cores = pin === 'none' ? null : twoCores(pin === 'both');
  if (cores !== null) spawnSync('taskset', ['-a', '-p', '-c', cores.load, String(process.pid)], { stdio: 'ignore' });

  /** @param {ChildProcess} child @returns {Promise<void>} */
  function stop(child) {
    return new Promise((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) return resolve();
      const timer = setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS);
      child.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
      child.kill('SIGTERM');
    });
  }

  /** @param {string} folder */
  function removeFolder(folder) {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    folders.delete(folder);
  }

  return {
    /** Which core has which part, as taskset names them; null when nothing is pinned. */
    cores,

    /**
     * Starts Node with `args`; where the servers are unless `side` says otherwise.
     * @param {string[]} args
     * @param {import('node:child_process').SpawnOptions} options
     * @param {'load' | 'servers'} side
     */
    startNode(args, options, side = 'servers') {
      const pinning = cores === null ? [] : ['taskset', '-c', cores[side]];
      const [command, ...before] = [...pinning, process.execPath];
      const child = spawn(/** @type {string} */ (command), [...before, ...args], options);
      running.add(child);
      child.once('exit', () => running.delete(child));
      return child;
    },

    stop,
    removeFolder,

    makeFolder() {
      const folder = mkdtempSync(path.join(os.tmpdir(), 'pasted-bench-'));
      folders.add(folder);
      return folder;
    },

    /** Ends every process and removes every folder, waiting for neither: for the end of this process. */
    abandon() {
      for (const child of running) child.kill('SIGKILL');
      for (const folder of folders) removeFolder(folder);
    },
  };
}

/** @param {boolean} apart @returns {{ load: string, servers: string } | null} core numbers as taskset takes them */
function twoCores(apart) {
  if (process.platform !== 'linux') return null;
  if (spawnSync('taskset', ['--version'], { stdio: 'ignore' }).status !== 0) return null;
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '';
  const allowed = list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => String(first + index));
  });
  const [load, servers] = allowed;
  if (load === undefined || servers === undefined) return null;
  return { load, servers: apart ? servers : allowed.join(',') };
}

/**
 * The most memory that a process ever had resident (VmHWM), in bytes; NaN where the system does not tell.
 * @param {ChildProcess} child
 */
export function peakBytes(child) {
  return statusBytes(child, 'VmHWM');
}

/**
 * The memory that a process has resident now (VmRSS), in bytes; NaN where the system does not tell.
 * @param {ChildProcess} child
 */
export function residentBytes(child) {
  return statusBytes(child, 'VmRSS');
}

/** @param {ChildProcess} child @param {string} field of proc_pid_status(5), in kB */
function statusBytes(child, field) {
  if (process.platform !== 'linux') return NaN;
  const status = processFile(child, 'status');
  return Number(new RegExp(`^${field}:\\s*(\\d+) kB`, 'm').exec(status)?.[1] ?? NaN) * 1024;
}

/**
 * Processor time that a process and its threads have used, in seconds; NaN where the system does not tell.
 * @param {ChildProcess} child
 */
export function cpuSeconds(child) {
  if (process.platform !== 'linux') return NaN;
  const stat = processFile(child, 'stat');
  // proc_pid_stat(5): utime and stime are the 14th and 15th fields, in ticks of 1/100 s; the second may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** @param {ChildProcess} child @param {string} name */
function processFile(child, name) {
  try {
    return readFileSync(`/proc/${child.pid}/${name}`, 'utf8');
  } catch (cause) {
    throw new Error('a server ended while it was measured', { cause });
  }
}
