// Work that is timed without a socket, in a process of its own: the checks that every creation goes through, as the
// built modules make them, and the bare cryptography that a registration needs. The parent says over IPC what to do
// and for how long.

import { generateKeyPair, hash, randomBytes, sign } from 'node:crypto';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

/** A check takes the same time at any difficulty; this one is solved in hundreds of attempts instead of a million. */
const DIFFICULTY_BITS = 8;
const SOLVED = 500;

/** Ten times as many clients as are remembered, so that each check also forgets one and remembers another. */
const CLIENTS = 100_000;

/** Iterations of the PKCS#12 key derivation for a bundle without a password, as pasted makes it. */
const KDF_ITERATIONS = 2048;

const clock = { unixMs: () => Date.now(), monotonicMs: () => performance.now() };
const count = () => {};

/** Each gives `once`, the work to time, and a `note` for the report. */
const WORKS = {
  async work({ main, database }) {
    const { Challenges, config } = await built(main);
    const db = new DatabaseSync(database, { readOnly: true });
    const spent = db.prepare('SELECT 1 FROM spent_challenges WHERE nonce = ?');
    const challenges = new Challenges({
      config,
      key: randomBytes(32),
      antiflood: { record: () => {}, difficultyBits: () => DIFFICULTY_BITS },
      store: { read: { isSpent: async (nonce) => spent.get(nonce) !== undefined } },
      clock, count, random: randomBytes,
    });
    const works = Array.from({ length: SOLVED }, () => {
      const { token, nonce } = challenges.issue('paste');
      return { token, solution: solve(nonce) };
    });
    let next = 0;
    const note = 'form, signature, expiry, solution, not used before';
    return { note, once: () => challenges.require('paste', works[next++ % SOLVED]) };
  },

  async rate({ main }) {
    const { createRates, config } = await built(main);
    const rates = createRates({ config, clock, count });
    const addresses = Array.from({ length: CLIENTS }, (_, client) => (
      `10.${client >> 16}.${(client >> 8) & 255}.${client & 255}`
    ));
    const anonymous = { tier: 'anonymous', fingerprint: null };
    let next = 0;
    const once = () => rates.countCreation(addresses[next++ % CLIENTS], anonymous);
    return { note: `${CLIENTS} clients in turn`, once };
  },

  async registration() {
    const makeKeyPair = () => promisify(generateKeyPair)('ec', { namedCurve: 'secp384r1' });
    const authority = await makeKeyPair();
    const toBeSigned = randomBytes(512);
    const once = async () => {
      await makeKeyPair();
      await promisify(sign)('sha384', toBeSigned, authority.privateKey);
      let derived = randomBytes(192);
      for (let iteration = 0; iteration < KDF_ITERATIONS; iteration += 1) derived = hash('sha256', derived, 'buffer');
    };
    return { note: '', once };
  },
};

/** The only modules of dist/ that a benchmark names, and the default settings. */
async function built(main) {
  const imported = (file) => import(pathToFileURL(path.resolve(main, '..', file)).href);
  const { SETTINGS } = await imported('config/settings.js');
  const defaults = Object.entries(SETTINGS).map(([key, { fallback }]) => [key, fallback]);
  return { ...await imported('pastes/admission.js'), config: Object.fromEntries(defaults) };
}

function solve(nonce) {
  let solution = 0;
  while (hash('sha256', `${nonce}:${solution}`, 'buffer')[0] >> (8 - DIFFICULTY_BITS) !== 0) solution += 1;
  return String(solution);
}

const prepared = {};

/** Runs `atOnce` loops at the same time; each does `batch` pieces of work between two looks at the clock. */
async function time({ what, seconds, atOnce, batch, ...rest }) {
  prepared[what] ??= await WORKS[what](rest);
  const { note, once } = prepared[what];
  const begun = performance.now();
  let answers = 0;
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (performance.now() - begun < seconds * 1000) {
      for (let done = 0; done < batch; done += 1) await once();
      answers += batch;
    }
  }));
  return { answers, seconds: (performance.now() - begun) / 1000, note };
}

process.on('message', async (order) => process.send(await time(order)));
process.on('disconnect', () => process.exit(0));
