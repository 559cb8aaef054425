// npm run bench [-- --quick] [-- OPERATION...]: what pasted's operations cost beside a bare node:http server, on this
// machine, in one run. It makes dist/ when that is stale. bench/operations.mjs has what is measured, and the bars.
// Exit code 1 when an answer was not 2xx or the run failed, 2 when a bar is not met.

import { readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { FULL_EFFORT, OPERATIONS, QUICK_EFFORT } from './bench/operations.mjs';
import { abandon, pinLoad } from './bench/processes.mjs';
import { asJson, describeMachine, errorLines, machineLines, tableLines } from './bench/report.mjs';
import { isMet } from './bench/statistics.mjs';
import { endLike, run, say } from './child.mjs';

const USAGE = `usage: npm run bench -- [OPTION...] [OPERATION...]

  --quick        fewer and shorter rounds with fewer pastes, to look at while working
  --json FILE    everything that was measured
  --server FILE  measure this entry, and leave dist/ alone

operations: ${OPERATIONS.map(({ name }) => name).join(', ')}`;

const LONGEST_RUN_MS = 20 * 60_000;

const root = path.dirname(import.meta.dirname);
const { values: options, positionals } = readArguments();
if (options.server === undefined) {
  const script = path.join(root, 'scripts', 'compile.mjs');
  const compiled = await run(process.execPath, ['--disable-warning=ExperimentalWarning', script]);
  if (compiled.code !== 0) endLike(compiled);
}
const main = path.resolve(options.server ?? path.join(root, 'dist', 'main.js'));
const effort = options.quick ? QUICK_EFFORT : FULL_EFFORT;

process.on('exit', abandon);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => process.exit(128 + constants.signals[signal]));
}
setTimeout(() => {
  say(`gave up after ${LONGEST_RUN_MS / 60_000} minutes`);
  process.exit(1);
}, LONGEST_RUN_MS).unref();

const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
const machine = describeMachine(version, pinLoad());
print(machineLines(machine));
const results = [];
const failures = [];
for (const operation of OPERATIONS.filter(isAskedFor)) {
  say(`measuring ${operation.title}`);
  try {
    results.push({ operation, outcome: await operation.measure({ main, effort }) });
  } catch (error) {
    failures.push(`FAILED ${operation.name}: ${error.message}`);
  }
}
const errors = errorLines(results);
print(['', ...tableLines(results), ...errors, ...failures]);
if (options.json !== undefined) writeFileSync(options.json, asJson(machine, options.quick, results));
if (failures.length + errors.length > 0) process.exit(1);
process.exit(results.every(({ operation, outcome }) => isMet(operation.bar, outcome)) ? 0 : 2);

/** Operations on nodes of rqlite run only when they are named, since not every machine has rqlite. */
function isAskedFor({ name }) {
  return positionals.length === 0 ? !name.startsWith('cluster') : positionals.includes(name);
}

function readArguments() {
  try {
    const [flag, text] = [{ type: 'boolean', default: false }, { type: 'string' }];
    const options = { quick: flag, json: text, server: text, help: flag };
    const parsed = parseArgs({ allowPositionals: true, options });
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

function print(lines) {
  process.stdout.write(`${lines.join('\n')}\n`);
}
