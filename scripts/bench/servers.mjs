// The kinds of process of a benchmark, started and spoken to: pasted itself, the bare floor, and the load generator.
// What is asked of them is operations.mjs.

import { once } from 'node:events';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';
import { cpuSeconds, peakBytes, residentBytes } from './site.mjs';

/** @typedef {import('./site.mjs').Site} Site */
/** @typedef {import('./floor.mjs').Answer} Answer */
/**
 * @typedef {{ port: number, peakBytes: () => number, residentBytes: () => number, cpuSeconds: () => number } &
 *   AsyncDisposable} Server
 */
/** @typedef {Awaited<ReturnType<typeof startLoad>>} Load */

const MIB = 1024 * 1024;
const START_TIMEOUT_MS = 15_000;

/**
 * Nothing of the caller's environment but PATH. Every limit that would refuse the load is off, and only that; the log
 * is written, as in production.
 * @param {string} folder for the database
 * @param {number} port 0 for a free one
 * @returns {NodeJS.ProcessEnv}
 */
export function pastedEnvironment(folder, port) {
  return {
    PATH: process.env['PATH'],
    NODE_ENV: 'production',
    SERVICE_HOST: '127.0.0.1',
    SERVICE_PORT: String(port),
    SERVICE_DB: path.join(folder, 'pasted.db'),
    SERVICE_MAX_ANON: String(64 * MIB),
    SERVICE_RATE_MAX: '0',
    SERVICE_LOOKUP_RATE_MAX: '0',
    SERVICE_POW_DIFFICULTY: '0',
    SERVICE_DEDUP_MAX: '0',
  };
}

/**
 * @param {Site} site
 * @param {string} main
 * @param {string[]} nodeArguments
 * @param {{ settings?: NodeJS.ProcessEnv, folder?: string }} options settings: beside those that every benchmark needs;
 *   folder: of the database, which then stays; otherwise a new one, which goes with the server
 * @returns {Promise<Server>}
 */
export async function startPasted(site, main, nodeArguments, { settings = {}, folder: kept } = {}) {
  const folder = kept ?? site.makeFolder();
  const child = site.startNode([...nodeArguments, main], {
    env: { ...pastedEnvironment(folder, 0), ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const log = /** @type {import('node:stream').Readable} */ (child.stdout);
  const lines = readline.createInterface({ input: log });
  const port = await inTime('pasted', child, new Promise((resolve) => {
    lines.on('line', (line) => {
      const listening = listeningPort(line);
      if (listening !== null) resolve(listening);
    });
  }));
  // Drained, so that the server never waits for its log's reader, and not looked at, which would take the load's core.
  lines.close();
  log.resume();
  return {
    ...serverOf(child, port),
    async [Symbol.asyncDispose]() {
      await site.stop(child);
      if (kept === undefined) site.removeFolder(folder);
    },
  };
}

/** @param {import('node:child_process').ChildProcess} child @param {number} port */
function serverOf(child, port) {
  return {
    port,
    peakBytes: () => peakBytes(child),
    residentBytes: () => residentBytes(child),
    cpuSeconds: () => cpuSeconds(child),
  };
}

/** The port of the log line of event `listening`; null for any other line. @param {string} line */
function listeningPort(line) {
  if (!line.includes('"listening"')) return null;
  const { url } = JSON.parse(line).details ?? {};
  return url === undefined ? null : Number(new URL(url).port);
}

/** @param {Site} site @param {Answer} answer @returns {Promise<Server>} */
export async function startFloor(site, answer) {
  const child = startScript(site, 'floor.mjs', 'servers');
  child.send(answer);
  const { port } = await inTime('the floor', child, once(child, 'message').then(([message]) => message));
  return { ...serverOf(child, port), [Symbol.asyncDispose]: () => site.stop(child) };
}

/**
 * A process that is no server: it answers one message with another.
 * @param {Site} site
 * @param {string} script
 */
export async function startWorker(site, script) {
  const child = startScript(site, script, 'servers');
  await inTime(script, child, once(child, 'message'));
  return {
    /** @param {object} work @returns {Promise<any>} */
    async run(work) {
      child.send(work);
      const [done] = await messageOf(child, script);
      return done;
    },
    [Symbol.asyncDispose]: () => site.stop(child),
  };
}

/** A port that was free a moment ago. @returns {Promise<number>} */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {net.AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}

/**
 * @param {Site} site
 * @param {{ gentle?: boolean }} options gentle: it only gets the time of its core that other loads leave over
 */
export async function startLoad(site, { gentle = false } = {}) {
  const child = startScript(site, 'load.mjs', 'load');
  if (gentle) os.setPriority(/** @type {number} */ (child.pid), os.constants.priority.PRIORITY_LOW);
  return {
    /**
     * Carries one load out; name and shapes are those of load.mjs.
     * @param {string} name
     * @param {object} load
     * @returns {Promise<import('./load.mjs').Measured>}
     */
    async run(name, load) {
      child.send({ name, load });
      const [{ measured, failure }] = await messageOf(child, 'the load generator');
      if (failure !== undefined) throw new Error(`the load generator failed: ${failure}`);
      return measured;
    },
    [Symbol.asyncDispose]: () => site.stop(child),
  };
}

/**
 * The next message; rejects when there will be none.
 * @param {import('node:child_process').ChildProcess} child
 * @param {string} what
 */
async function messageOf(child, what) {
  const ended = new AbortController();
  const onExit = () => ended.abort();
  child.once('exit', onExit);
  try {
    return await once(child, 'message', { signal: ended.signal });
  } catch (cause) {
    throw new Error(`${what} ended`, { cause });
  } finally {
    child.removeListener('exit', onExit);
  }
}

/** @param {Site} site @param {string} script @param {'load' | 'servers'} side */
function startScript(site, script, side) {
  const file = path.join(path.dirname(fileURLToPath(import.meta.url)), script);
  return site.startNode([file], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], serialization: 'advanced' }, side);
}

/**
 * @template Value
 * @param {string} what
 * @param {import('node:child_process').ChildProcess} child
 * @param {Promise<Value>} started
 */
async function inTime(what, child, started) {
  const settled = new AbortController();
  const { signal } = settled;
  const tooLate = new Promise((_, reject) => {
    const late = () => reject(new Error(`${what} did not start within ${START_TIMEOUT_MS} ms`));
    const timer = setTimeout(late, START_TIMEOUT_MS);
    signal.addEventListener('abort', () => clearTimeout(timer));
  });
  const ended = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`${what} ended with code ${code}`);
  });
  ended.catch(() => {});
  try {
    return /** @type {Value} */ (await Promise.race([started, tooLate, ended]));
  } finally {
    settled.abort();
  }
}
