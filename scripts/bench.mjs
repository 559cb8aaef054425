// npm run bench [-- --quick] [-- OPERATION...]: what pasted's operations cost beside a bare node:http server, on this
// machine, in one run. It makes dist/ when that is stale. What is measured, and the bars, are bench/operations.mjs.
// Exit code 1 when an answer was not 2xx or the run failed, 2 when a bar is not met.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { endLike, run, say } from './child.mjs';
import { describeMachine } from './bench/machine.mjs';
import { isMet } from './bench/bars.mjs';
import { FULL_EFFORT, OPERATIONS, QUICK_EFFORT } from './bench/operations.mjs';
import { asJson, errorLines, machineLines, tableLines } from './bench/report.mjs';
import { NotHereError, openSite } from './bench/site.mjs';
import { openStocks } from './bench/stock.mjs';

const USAGE = `usage: npm run bench -- [OPTION...] [OPERATION...]

  --quick           fewer and shorter rounds with fewer pastes, to look at while working
  --pin-servers     the servers on one core, too; without it only the load generator has its own
  --no-pin          leave all processes to the scheduler
  --json FILE       everything that was measured
  --profile FOLDER  CPU profiles of the server, in a folder for each operation
  --server FILE     measure this entry, and leave dist/ alone

operations: ${OPERATIONS.map(({ name }) => name).join(', ')}`;

const LONGEST_RUN_MS = 20 * 60_000;

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

const { values: options, positionals } = readArguments();
const chosen = OPERATIONS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
if (options.server === undefined) await makeDist();

const main = path.resolve(options.server ?? path.join(root, 'dist', 'main.js'));
const site = openSite(options['no-pin'] ? 'none' : options['pin-servers'] ? 'both' : 'load');
const stocks = openStocks(site, main);
process.on('exit', () => site.abandon());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => process.exit(128 + constants.signals[signal]));
}
setTimeout(() => {
  say(`gave up after ${LONGEST_RUN_MS / 60_000} minutes`);
  process.exit(1);
}, LONGEST_RUN_MS).unref();

const machine = await describeMachine(site, JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).version);
print(machineLines(machine));
const results = [];
const skipped = [];
const failures = [];
for (const operation of chosen) {
  try {
    results.push({ operation, outcome: await measure(operation) });
  } catch (error) {
    if (error instanceof NotHereError) skipped.push(`SKIPPED ${operation.name}: ${error.message}`);
    else failures.push(`FAILED ${operation.name}: ${error.message}`);
  }
}

print(['', ...tableLines(results), ...skipped, ...errorLines(results), ...failures]);
if (options.json !== undefined) writeFileSync(options.json, asJson(machine, options.quick, results));
process.exit(exitCode());

function readArguments() {
  try {
    const parsed = parseArgs({
      allowPositionals: true,
      options: {
        quick: { type: 'boolean', default: false },
        'pin-servers': { type: 'boolean', default: false },
        'no-pin': { type: 'boolean', default: false },
        json: { type: 'string' },
        profile: { type: 'string' },
        server: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
    const unknown = parsed.positionals.filter((name) => !OPERATIONS.some((operation) => operation.name === name));
    if (unknown.length > 0) throw new Error(`no such operation: ${unknown.join(', ')}`);
    if (!parsed.values.help) return parsed;
    print([USAGE]);
    process.exit(0);
  } catch (error) {
    process.stderr.write(`${error.message}\n\n${USAGE}\n`);
    process.exit(1);
  }
}

async function makeDist() {
  const compiled = await run(process.execPath, [
    '--disable-warning=ExperimentalWarning',
    path.join(root, 'scripts', 'compile.mjs'),
  ]);
  if (compiled.code !== 0) endLike(compiled);
}

function measure(operation) {
  say(`measuring ${operation.title}`);
  const nodeArguments = options.profile === undefined ? [] : profiling(path.resolve(options.profile, operation.name));
  const effort = options.quick ? QUICK_EFFORT : FULL_EFFORT;
  return operation.measure({ site, stocks, main, nodeArguments, effort });
}

function profiling(folder) {
  mkdirSync(folder, { recursive: true });
  return ['--cpu-prof', `--cpu-prof-dir=${folder}`];
}

function exitCode() {
  if (failures.length > 0 || errorLines(results).length > 0) return 1;
  return results.every(({ operation, outcome }) => isMet(operation.bar, outcome)) ? 0 : 2;
}

function print(lines) {
  process.stdout.write(`${lines.join('\n')}\n`);
}
