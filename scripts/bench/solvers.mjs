// What a proof-of-work costs pastec with each solver that this machine has programs for, in one process: the client's
// own functions, without its main program.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { NO_LOAD, alternate, compare } from './rounds.mjs';
import { NotHereError } from './site.mjs';

/** @typedef {import('./scene.mjs').Bench} Bench */
/** @typedef {import('./rounds.mjs').Outcome} Outcome */
/** @typedef {{ rate: number, ms: number }} Cost numbers a second, and what a solution takes on average with its start */

const CLIENT = new URL('../../src/client/pastec', import.meta.url);
const OTHERS = ['cc', 'php', 'perl', 'python3', 'node', 'ruby'];

const MAIN = '{ main "$@"; exit; }';

/** Arguments: a folder and a solver. It searches for what is not found, until its file of reports has gone. */
const SEARCH = `
prepare_shell
work=$1
solver_works "$2" || exit 7
[ "$2" != batches ] || make_scratch_folder
: >"$work/reports"
printf 'ready\\n'
run_solver "$2" "$probe_nonce" 32 0 1
remove "$scratch"
`;

/** perl-base beside batches, for a host that has no more; the others are in the notes. @param {{ bits: number }} work */
export function solving({ bits }) {
  return async (/** @type {Bench} */ { site, effort }) => {
    const cost = (/** @type {string} */ solver) => costOf(site, solver, bits, effort.roundSeconds);
    const present = async (/** @type {string} */ solver) => {
      const found = await cost(solver);
      if (found === null) throw new NotHereError(`${solver} does not work here`);
      return found;
    };
    const rounds = await alternate(effort.rounds, () => present('batches'), () => present('perl-base'));
    const [first] = rounds;
    const notes = first === undefined ? [] : [text('batches', first.floor), text('perl-base', first.pasted)];
    for (const solver of OTHERS) notes.push(text(solver, await cost(solver)));
    return { ...compare(rounds, ({ ms }) => ms), floorSide: NO_LOAD, pastedSide: NO_LOAD, errors: {}, notes, rounds };
  };
}

/** @param {string} solver @param {Cost | null} cost */
function text(solver, cost) {
  if (cost === null) return `${solver} not here`;
  return `${solver} ${(cost.rate / 1e6).toPrecision(2)} million/s, ${(cost.ms / 1000).toFixed(2)} s`;
}

/**
 * Null when the solver does not work here.
 * @param {import('./site.mjs').Site} site
 * @param {string} solver
 * @param {number} bits
 * @param {number} seconds of searching
 * @returns {Promise<Cost | null>}
 */
async function costOf(site, solver, bits, seconds) {
  const folder = site.makeFolder();
  const begun = performance.now();
  const script = readFileSync(CLIENT, 'utf8').replace(MAIN, SEARCH);
  const child = spawn('sh', ['-c', script, 'sh', folder, solver], { stdio: ['ignore', 'pipe', 'ignore'] });
  const closed = once(child, 'close');
  let [startMs, tried, tryingMs] = [NaN, 0, 0];
  for await (const line of createInterface({ input: child.stdout })) {
    const now = performance.now();
    if (line === 'ready') {
      startMs = now - begun;
      continue;
    }
    tried += Number(line);
    tryingMs = now - begun - startMs;
    if (tryingMs >= seconds * 1000) break;
  }
  rmSync(path.join(folder, 'reports'), { force: true });
  if (solver !== 'batches') child.kill('SIGKILL');
  child.stdout.resume();
  await closed;
  site.removeFolder(folder);
  if (tried === 0) return null;
  const rate = tried / tryingMs * 1000;
  return { rate, ms: startMs + 2 ** bits / rate * 1000 };
}
