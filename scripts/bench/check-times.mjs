// Times the checks that every creation goes through, as the service makes them but without a socket: a process of its
// own, which is told over IPC what to time, where the built modules are, and for how long.

import { hash, randomBytes } from 'node:crypto';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

/** @typedef {{ check: 'work' | 'rate', dist: string, database: string, seconds: number }} Order */

/** A check takes as long whatever the difficulty; this one takes hundreds of attempts to solve, and not a million. */
const DIFFICULTY_BITS = 8;
const SOLVED = 500;

/** Ten times as many clients as are remembered, so that each check also forgets one and remembers another. */
const CLIENTS = 100_000;

const CHECKS_AT_ONCE = 1000;

const clock = { unixMs: () => Date.now(), monotonicMs: () => performance.now() };
const count = () => {};

const ANONYMOUS = { tier: 'anonymous', fingerprint: null };

/** @param {Order} order @returns {Promise<{ note: string, check: () => unknown }>} */
async function prepareWork({ dist, database }) {
  const { Challenges } = await builtModule(dist, 'pastes/admission.js');
  const { openReader, prepareLookups } = await builtModule(dist, 'store/open.js');
  const reader = openReader(database, prepareLookups);
  const challenges = new Challenges({
    config: await configOf(dist),
    key: randomBytes(32),
    antiflood: { record: () => {}, difficultyBits: () => DIFFICULTY_BITS },
    store: {
      challenges: {
        isSpent: async (/** @type {string} */ nonce) => reader.isSpent(nonce),
      },
    },
    clock,
    random: randomBytes,
    count,
  });
  const works = Array.from({ length: SOLVED }, () => {
    const { token, nonce } = challenges.issue('paste');
    return { token, solution: solve(nonce) };
  });
  let next = 0;
  return {
    note: 'form, signature, expiry, solution, not used before',
    check: () => challenges.require('paste', works[next++ % SOLVED]),
  };
}

/** @param {Order} order @returns {Promise<{ note: string, check: () => unknown }>} */
async function prepareRate({ dist }) {
  const { Rates } = await builtModule(dist, 'pastes/admission.js');
  const rates = new Rates({ config: await configOf(dist), clock, count });
  const addresses = Array.from({ length: CLIENTS }, (_, client) => (
    `10.${client >> 16}.${(client >> 8) & 255}.${client & 255}`
  ));
  let next = 0;
  return {
    note: `${CLIENTS} clients in turn`,
    check: () => rates.countCreation(addresses[next++ % CLIENTS], ANONYMOUS),
  };
}

/** The defaults. @param {string} dist */
async function configOf(dist) {
  const { SETTINGS } = await builtModule(dist, 'config/settings.js');
  return Object.fromEntries(Object.entries(SETTINGS).map(([key, { fallback }]) => [key, fallback]));
}

/** @param {string} dist @param {string} file @returns {Promise<any>} */
function builtModule(dist, file) {
  return import(pathToFileURL(path.join(dist, file)).href);
}

/** @param {string} nonce */
function solve(nonce) {
  for (let solution = 0; ; solution += 1) {
    const digest = hash('sha256', `${nonce}:${solution}`, 'buffer');
    if (/** @type {number} */ (digest[0]) >> (8 - DIFFICULTY_BITS) === 0) return String(solution);
  }
}

/** @type {Map<string, Awaited<ReturnType<typeof prepareWork>>>} */
const prepared = new Map();

/** @param {Order} order */
async function time(order) {
  const timed = prepared.get(order.check) ?? await { work: prepareWork, rate: prepareRate }[order.check](order);
  prepared.set(order.check, timed);
  const { note, check } = timed;
  const begun = performance.now();
  let checks = 0;
  while (performance.now() - begun < order.seconds * 1000) {
    for (let index = 0; index < CHECKS_AT_ONCE; index += 1) await check();
    checks += CHECKS_AT_ONCE;
  }
  return { microseconds: ((performance.now() - begun) * 1000) / checks, note };
}

process.on('message', async (/** @type {Order} */ order) => process.send?.(await time(order)));
process.on('disconnect', () => process.exit(0));
process.send?.('ready');
