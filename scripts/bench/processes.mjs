// What a benchmark run occupies: child processes, each on its cores, and temporary folders. All of it is given back
// when the run ends, whatever ends it.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const START_TIMEOUT_MS = 15_000;
const KILL_AFTER_MS = 15_000;
const KEPT_LOG = 2048;

const running = new Set();
const folders = new Set();
let cores = null;

/**
 * Pins the load generator and this process to one core, so that neither takes more; the servers run on any core. That
 * needs taskset, and two cores that this process may use. Returns what it did.
 */
export function pinLoad() {
  const hasTaskset = process.platform === 'linux' && spawnSync('taskset', ['--version']).status === 0;
  const status = hasTaskset ? readFileSync('/proc/self/status', 'utf8') : '';
  const [, servers, load] = /^Cpus_allowed_list:\s*((\d+)[-,]\S+)/m.exec(status) ?? [];
  if (load === undefined) return 'no';
  cores = { load, servers };
  spawnSync('taskset', ['-a', '-p', '-c', load, String(process.pid)], { stdio: 'ignore' });
  return `load on core ${load}, servers on ${servers}`;
}

export function makeFolder() {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pasted-bench-'));
  folders.add(folder);
  return folder;
}

export function removeFolder(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  folders.delete(folder);
}

/** Kills every process and removes every folder without waiting, for the end of this process. */
export function abandon() {
  for (const child of running) child.kill('SIGKILL');
  for (const folder of folders) removeFolder(folder);
}

/** Starts Node with `args`, on the cores of `side`. */
export function startNode(args, options, side = 'servers') {
  const pinning = cores === null ? [] : ['taskset', '-c', cores[side]];
  const [command, ...before] = [...pinning, process.execPath];
  const child = spawn(command, [...before, ...args], options);
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

export async function stop(child) {
  if (!running.has(child)) return;
  const timer = setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS);
  child.kill('SIGTERM');
  await once(child, 'exit');
  clearTimeout(timer);
}

/** Starts a `script` of this folder, which answers each message with another. Its output is read and dropped. */
export function startScript(script, side) {
  const options = { stdio: ['ignore', 'pipe', 'inherit', 'ipc'], serialization: 'advanced' };
  const child = startNode([path.join(import.meta.dirname, script)], options, side);
  child.stdout.resume();
  const ended = once(child, 'exit').then(() => Promise.reject(new Error(`${script} ended`)));
  // Most scripts end while no question is open, and then nobody handles this rejection.
  ended.catch(() => {});
  const ask = async (message) => {
    child.send(message);
    const [answer] = await Promise.race([once(child, 'message'), ended]);
    return answer;
  };
  return { child, ask, [Symbol.asyncDispose]: () => stop(child) };
}

/** The load generator; a gentle one gets only the time of the core that other loads leave. */
export function startLoad({ gentle = false } = {}) {
  const script = startScript('load.mjs', 'load');
  if (gentle) os.setPriority(script.child.pid, os.constants.priority.PRIORITY_LOW);
  return { ...script, run: (name, load) => script.ask({ name, load }) };
}

/** The floor; when it ends, the folder of the database that it stores in is removed. */
export async function startFloor(order) {
  const { child, ask } = startScript('floor.mjs');
  return serverOf(child, await ask(order), order.stores && path.dirname(order.stores));
}

/**
 * pasted on a free port. `settings` are added to those that every benchmark needs. A `folder` that is given has the
 * database and stays; otherwise a new one is made and removed with the server. The log goes to a pipe that is drained,
 * so that pasted never waits for a reader, or with `logsToFile` to a file beside the database.
 */
export async function startPasted(main, { settings, folder, logsToFile = false } = {}) {
  const home = folder ?? makeFolder();
  const env = { ...pastedEnvironment(home, 0), ...settings };
  const file = path.join(home, 'log');
  const output = logsToFile ? openSync(file, 'w') : 'pipe';
  const child = startNode([main], { env, stdio: ['ignore', output, 'inherit'] });
  if (logsToFile) closeSync(output);
  let newest = '';
  // Only kept here, not searched: searching would take time of the load's core.
  child.stdout?.on('data', (chunk) => (newest = (newest + chunk.latin1Slice()).slice(-KEPT_LOG)));
  /** The part of the log that matches, as soon as it is there. */
  const logged = async (pattern) => {
    for (const begun = performance.now(); performance.now() - begun < START_TIMEOUT_MS; await sleep(2)) {
      const found = pattern.exec(logsToFile ? readFileSync(file, 'latin1') : newest);
      if (found !== null) return found.at(-1);
      if (child.exitCode !== null) break;
    }
    throw new Error(`the log of pasted has no ${pattern} after ${START_TIMEOUT_MS} ms, or it ended`);
  };
  const port = Number(await logged(/"event":"listening".*"url":"[^"]*:(\d+)"/));
  return { ...serverOf(child, port, folder === undefined ? home : undefined), database: env.SERVICE_DB, logged };
}

/**
 * Nothing of the caller's environment but PATH. Only the limits that would refuse the load are off; the log is
 * written, as in production.
 */
export function pastedEnvironment(folder, port) {
  return {
    PATH: process.env.PATH, NODE_ENV: 'production',
    SERVICE_HOST: '127.0.0.1', SERVICE_PORT: String(port), SERVICE_DB: path.join(folder, 'pasted.db'),
    SERVICE_MAX_ANON: String(64 * 2 ** 20), SERVICE_RATE_MAX: '0', SERVICE_LOOKUP_RATE_MAX: '0',
    SERVICE_POW_DIFFICULTY: '0', SERVICE_DEDUP_MAX: '0',
  };
}

/** Memory and processor time are NaN where the system does not tell. `folder` is removed with the server. */
function serverOf(child, port, folder) {
  const read = (name) => (process.platform === 'linux' ? readFileSync(`/proc/${child.pid}/${name}`, 'utf8') : '');
  // proc_pid_status(5), in kB there
  const statusBytes = (field) => 1024 * new RegExp(`^${field}:\\s*(\\d+) kB`, 'm').exec(read('status'))?.[1];
  return {
    port,
    /** The most memory that it ever had resident. */
    peakBytes: () => statusBytes('VmHWM'),
    residentBytes: () => statusBytes('VmRSS'),
    /** The time of all its threads. proc_pid_stat(5): utime and stime are the 14th and 15th fields, in 1/100 s. */
    cpuSeconds() {
      // The second field may hold spaces, so fields are counted from its end.
      const fields = read('stat').split(') ').at(-1).split(' ');
      return (Number(fields[11]) + Number(fields[12])) / 100;
    },
    async [Symbol.asyncDispose]() {
      await stop(child);
      if (folder !== undefined) removeFolder(folder);
    },
  };
}

/** A port that was free a moment ago. */
export async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}
