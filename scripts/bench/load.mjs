// The load generator, in a process of its own: it carries out one load at a time as its parent asks over IPC, and
// answers with what it measured. operations.mjs says which loads make a benchmark.

import { createHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { openConnection } from './connection.mjs';
import { senders } from './requests.mjs';

const NS_PER_MS = 1e6;

/** Each connection sends its next request when the last is answered, for `seconds` or `most` requests in all. */
async function closedLoop({ port, plan, connections, seconds, most = Infinity }) {
  const opened = await openAll(port, connections);
  const sender = senders(plan);
  const tally = new Tally();
  const deadline = tally.begun + seconds * 1000;
  let sent = 0;
  await Promise.all(opened.map(async (connection) => {
    const send = sender();
    const isDue = () => sent++ < most && performance.now() < deadline;
    while (isDue() && await tally.ask(connection, send)) continue;
    connection.close();
  }));
  return tally.end();
}

/**
 * One request each `intervalMs`, by the clock whether or not earlier ones are answered (an open loop), over
 * `connections` in turn; a request that finds its connection busy waits, and that wait counts.
 */
async function openLoop({ port, plan, connections, seconds, intervalMs }) {
  const sender = senders(plan);
  const opened = await openAll(port, connections);
  const lanes = opened.map((connection) => ({ connection, send: sender(), isOpen: Promise.resolve(true) }));
  const tally = new Tally();
  let turn = 0;
  const timer = setInterval(() => {
    const lane = lanes[turn++ % lanes.length];
    const askedAt = performance.now();
    lane.isOpen = lane.isOpen.then((isOpen) => isOpen && tally.ask(lane.connection, lane.send, askedAt));
  }, intervalMs);
  await sleep(seconds * 1000);
  clearInterval(timer);
  await Promise.all(lanes.map(({ isOpen }) => isOpen));
  for (const connection of opened) connection.close();
  return tally.end();
}

/** The counts and times of a load that begins when this is constructed. */
class Tally {
  begun = performance.now();
  #cpuAtStart = process.cpuUsage();
  #latencies = createHistogram();
  #errors = {};
  #answers = 0;
  #lastAnswer = 0;

  /** Sends a request; resolves when it is answered, to whether the connection can take another one. */
  ask(connection, send, askedAt = performance.now()) {
    return new Promise((resolve) => {
      connection.onEnd = (status, fault) => {
        if (fault === undefined) this.#answer(status, askedAt);
        else this.#fail(fault);
        resolve(fault === undefined);
      };
      send(connection);
    });
  }

  #fail(reason) {
    this.#errors[reason] = (this.#errors[reason] ?? 0) + 1;
  }

  #answer(status, askedAt) {
    this.#lastAnswer = performance.now();
    if (status === 0) return this.#fail('an answer without Content-Length');
    if (status < 200 || status > 299) return this.#fail(`status ${status}`);
    this.#answers += 1;
    this.#latencies.record(Math.max(1, Math.round((this.#lastAnswer - askedAt) * NS_PER_MS)));
  }

  /** `loadShare` is the part of one core that this process used: near 1, the load limits what was measured. */
  end() {
    const cpu = process.cpuUsage(this.#cpuAtStart);
    return {
      answers: this.#answers,
      seconds: (this.#lastAnswer - this.begun) / 1000,
      p50Ms: this.#latencies.percentile(50) / NS_PER_MS,
      p99Ms: this.#latencies.percentile(99) / NS_PER_MS,
      loadShare: (cpu.user + cpu.system) / 1000 / (performance.now() - this.begun),
      errors: this.#errors,
    };
  }
}

function openAll(port, connections) {
  return Promise.all(Array.from({ length: connections }, () => openConnection(port)));
}

const LOADS = { closedLoop, openLoop };

process.on('message', async ({ name, load }) => process.send(await LOADS[name](load)));
process.on('disconnect', () => process.exit(0));
