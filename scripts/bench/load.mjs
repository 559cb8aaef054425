// The load generator, a process of its own: carries out one load at a time as its parent asks over IPC, and answers
// with what it measured. Which loads make a benchmark is operations.mjs.

import { createHistogram } from 'node:perf_hooks';
import { openConnection } from './connection.mjs';
import { senders } from './requests.mjs';

/** @typedef {import('./requests.mjs').Plan} Plan */
/** @typedef {import('./requests.mjs').Sender} Sender */
/** @typedef {import('./connection.mjs').Connection} Connection */

/**
 * `loadShare` is the part of one core that this process used: near 1 it is the load that limits what was measured.
 * `errors` counts the answers other than 2xx and the connections that broke, by reason. `togetherSeconds` passed until
 * the first of the paced uploads was answered.
 * @typedef {{ answers: number, seconds: number, p50Ms: number, p99Ms: number, loadShare: number,
 *   errors: Record<string, number>, togetherSeconds?: number }} Measured
 */

const PATIENCE_MS = 60_000;
const NS_PER_MS = 1e6;

/**
 * Each connection sends its next request when the last is answered, until `seconds` are over or `most` requests are
 * sent.
 * @param {{ port: number, plan: Plan, connections: number, seconds: number, most?: number }} load
 * @returns {Promise<Measured>}
 */
async function closedLoop({ port, plan, connections, seconds, most = Infinity }) {
  const tally = createTally();
  const opened = await openAll(port, connections);
  const sender = senders(plan);
  const deadline = tally.begin() + seconds * 1000;
  let sent = 0;
  await Promise.all(opened.map((connection) => keepAsking(connection, sender(), tally, () => {
    sent += 1;
    return sent <= most && performance.now() < deadline;
  }, seconds * 1000 + PATIENCE_MS)));
  return tally.end();
}

/**
 * One request each `intervalMs`, by the clock whether or not earlier ones are answered (an open loop), over
 * `connections` in turn; a request that finds its connection busy waits, and that wait counts.
 * @param {{ port: number, plan: Plan, connections: number, seconds: number, intervalMs: number }} load
 * @returns {Promise<Measured>}
 */
async function openLoop({ port, plan, connections, seconds, intervalMs }) {
  const tally = createTally();
  const sender = senders(plan);
  const lanes = (await openAll(port, connections)).map((connection) => createLane(connection, sender(), tally));
  tally.begin();
  let turn = 0;
  const timer = setInterval(() => lanes[turn++ % lanes.length]?.ask(), intervalMs);
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  clearInterval(timer);
  await Promise.all(lanes.map((lane) => lane.end()));
  return tally.end();
}

/**
 * One upload on each connection, all begun together and each held to a pace that makes it take `seconds`, if the
 * server keeps up.
 * @param {{ port: number, bytes: number, connections: number, seconds: number }} load
 * @returns {Promise<Measured>}
 */
async function pacedUploads({ port, bytes, connections, seconds }) {
  const stepMs = 10;
  const tally = createTally();
  const sender = senders({ kind: 'upload', bytes });
  const opened = await openAll(port, connections);
  const begun = tally.begin();
  let firstEnd = Infinity;
  const answered = opened.map((connection) => {
    const send = sender();
    let asked = false;
    const once = () => !asked && (asked = true);
    return keepAsking(connection, (to) => send(to, 0), tally, once, 4 * PATIENCE_MS)
      .then(() => (firstEnd = Math.min(firstEnd, performance.now())));
  });
  let allowed = 0;
  const timer = setInterval(() => {
    const due = Math.min(bytes, Math.ceil((bytes * (performance.now() - begun)) / (seconds * 1000)));
    for (const connection of opened) connection.allow(due - allowed);
    allowed = due;
  }, stepMs);
  await Promise.all(answered);
  clearInterval(timer);
  return { ...tally.end(), togetherSeconds: (firstEnd - begun) / 1000 };
}

/**
 * @param {Connection} connection
 * @param {Sender} send
 * @param {Tally} tally
 * @param {() => boolean} goesOn asked before every request
 * @param {number} patienceMs for all of them
 * @returns {Promise<void>} resolves when the connection is done with, for whatever reason
 */
function keepAsking(connection, send, tally, goesOn, patienceMs) {
  return new Promise((resolve) => {
    let sentAt = 0;
    const finish = () => {
      clearTimeout(timer);
      connection.close();
      resolve();
    };
    const fail = (/** @type {string} */ reason) => {
      tally.fail(reason);
      finish();
    };
    const timer = setTimeout(() => fail('no answer in time'), patienceMs);
    const next = () => {
      if (!goesOn()) return finish();
      sentAt = performance.now();
      send(connection);
    };
    connection.onBroken = fail;
    connection.onAnswer = (status) => {
      tally.answer(status, sentAt);
      next();
    };
    next();
  });
}

/**
 * A connection of an open loop: what is asked while it is busy is sent later, and timed from when it was asked.
 * @param {Connection} connection
 * @param {Sender} send
 * @param {Tally} tally
 */
function createLane(connection, send, tally) {
  /** @type {number[]} */
  const askedAt = [];
  /** @type {() => void} */
  let onIdle = () => {};
  connection.onBroken = (reason) => {
    tally.fail(reason);
    askedAt.length = 0;
    onIdle();
  };
  connection.onAnswer = (status) => {
    tally.answer(status, /** @type {number} */ (askedAt.shift()));
    if (askedAt.length > 0) send(connection);
    else onIdle();
  };
  return {
    ask() {
      askedAt.push(performance.now());
      if (askedAt.length === 1) send(connection);
    },
    /** Waits for the answers that are due, and closes. @returns {Promise<void>} */
    async end() {
      const idle = new Promise((resolve) => (onIdle = () => resolve(undefined)));
      const timer = setTimeout(() => connection.onBroken('no answer in time'), PATIENCE_MS);
      if (askedAt.length > 0) await idle;
      clearTimeout(timer);
      connection.close();
    },
  };
}

/** @typedef {ReturnType<typeof createTally>} Tally */

function createTally() {
  const latencies = createHistogram();
  /** @type {Record<string, number>} */
  const errors = {};
  let begun = 0;
  let cpuAtStart = process.cpuUsage();
  let answers = 0;
  let lastAnswer = 0;

  const fail = (/** @type {string} */ reason) => {
    errors[reason] = (errors[reason] ?? 0) + 1;
  };
  return {
    begin() {
      cpuAtStart = process.cpuUsage();
      begun = performance.now();
      return begun;
    },
    fail,
    /** @param {number} status @param {number} sentAt */
    answer(status, sentAt) {
      lastAnswer = performance.now();
      if (status === 0) return fail('an answer without Content-Length');
      if (status < 200 || status > 299) return fail(`status ${status}`);
      answers += 1;
      latencies.record(Math.max(1, Math.round((lastAnswer - sentAt) * NS_PER_MS)));
    },
    /** @returns {Measured} */
    end() {
      const cpu = process.cpuUsage(cpuAtStart);
      return {
        answers,
        seconds: (lastAnswer - begun) / 1000,
        p50Ms: latencies.percentile(50) / NS_PER_MS,
        p99Ms: latencies.percentile(99) / NS_PER_MS,
        loadShare: (cpu.user + cpu.system) / 1000 / (performance.now() - begun),
        errors,
      };
    },
  };
}

/** @param {number} port @param {number} connections */
function openAll(port, connections) {
  return Promise.all(Array.from({ length: connections }, () => openConnection(port)));
}

/** @type {Record<string, (load: any) => Promise<Measured>>} */
const LOADS = { closedLoop, openLoop, pacedUploads };

process.on('message', (/** @type {{ name: string, load: object }} */ { name, load }) => {
  const carryOut = /** @type {(load: object) => Promise<Measured>} */ (LOADS[name]);
  carryOut(load).then(
    (measured) => process.send?.({ measured }),
    (error) => process.send?.({ failure: String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
