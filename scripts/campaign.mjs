// npm run campaign [-- ROW...]: tries what must hold about pasted's reliability, row by row, for hours if nothing stops
// it. It prints a line for each row, and keeps all results as JSON under .runtime/campaign/. When interrupted, it ends
// after the unit under way and continues there the next time, or on another machine from campaign/found.jsonl.
// The rows are in test/campaign/; npm test runs a small version of them.
// Exit code 1 when something was lost or a bar was not met, 2 when all is well so far but more has to be tried.

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { become, endLike, run, say } from './child.mjs';
import { writeReport } from './campaign/report.mjs';
import { openResults, readFound, readResults, rowLine, writeFound } from './campaign/results.mjs';
import { describeVersions } from './campaign/versions.mjs';
import { Stopped, envOfHost, envWith, keptRuntime, pinnedVersions } from './runtime.mjs';

const USAGE = `usage: npm run campaign -- [OPTION...] [ROW...]

  --quick           one small unit of each row
  --seconds N       no new unit of a row after so many seconds
  --seed N          only the unit of that seed, which is not counted
  --fresh           begin anew
  --go-on           count what was tried with earlier builds too: without it, a row begins anew after a change of src/
  --report FILE     no run: puts what was found so far into the page FILE, and soak.svg beside it, and keeps it in
                    scripts/campaign/found.jsonl, which is to be committed with them
  --node MAJOR      on the pinned Node of that major version, fetched when there is none; results are kept apart
  --node-path FILE  likewise, on this Node`;

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { values: options, positionals } = readArguments();
if (options.node !== undefined) await onPinnedNode(options.node);
if (options['node-path'] !== undefined) await onOtherNode(path.resolve(options['node-path']), {});

const { ROWS } = await import('../test/campaign/rows.ts');
const { runUnit } = await import('../test/campaign/row.ts');
const unknown = positionals.filter((name) => !ROWS.some((row) => row.name === name));
if (unknown.length > 0) fail(`no such row: ${unknown.join(', ')}; rows: ${ROWS.map(({ name }) => name).join(', ')}`);
const chosen = ROWS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));

let isStopping = false;
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, stopSoon);
const effort = options.quick ? 'quick' : 'full';
const isKept = !options.quick && options.seed === undefined;
const kept = path.join(root, '.runtime', 'campaign');
const foundFile = path.join(root, 'scripts', 'campaign', 'found.jsonl');
if (options.report !== undefined) report(options.report);
const main = await privateDist();
const versions = describeVersions(root);
const folder = path.join(kept, `${nameOf(versions.node)}${isKept ? '' : '-once'}`);
const found = readFound(foundFile, parseInt(versions.node, 10));
const results = openResults({ folder, found, versions, isFresh: options.fresh || !isKept, goesOn: options['go-on'] });

for (const row of chosen) {
  if (isStopping) break;
  const obstacle = row.obstacle?.(effort);
  if (obstacle === undefined) await runRow(row);
  else results.skip(row, obstacle);
  print(rowLine(results.of(row)));
}
say(`results: ${folder}`);
process.exit(exitCode());

async function runRow(row) {
  const untilMs = performance.now() + Number(options.seconds ?? Infinity) * 1000;
  const isWanted = (unitsUnderWay) => {
    const { units, wanted } = results.of(row);
    return !isStopping && performance.now() <= untilMs && units + unitsUnderWay < (isKept ? wanted : 1);
  };
  while (isWanted(0)) {
    await runOne(row, options.seed === undefined ? results.of(row).units + 1 : Number(options.seed), () => isWanted(1));
  }
}

async function runOne(row, seed, mayGoOn) {
  let startedMs = performance.now();
  const note = (text) => say(`row ${row.name}, seed ${seed}: ${text}`);
  const keep = (result) => {
    for (const { what } of result.lost) note(`LOST ${what}`);
    results.add(row, { seed, seconds: (performance.now() - startedMs) / 1000, result });
    startedMs = performance.now();
  };
  const goesOn = (result) => {
    if (!mayGoOn()) return false;
    keep(result);
    return true;
  };
  try {
    keep(await runUnit(row, { seed, effort, main, note, goesOn, ownGroup: true }));
  } catch (error) {
    keep({ tried: {}, most: {}, samples: [], lost: [{ what: `the row itself failed: ${error.stack ?? error}` }] });
  }
}

/** Does not return. */
function report(file) {
  try {
    const majors = pinnedVersions.map((version) => parseInt(version, 10));
    const states = new Map(majors.map((major) => {
      return [major, readResults(path.join(kept, nameOf(major)), ROWS, readFound(foundFile, major))];
    }));
    for (const written of writeReport(file, ROWS, states)) print(written);
    writeFound(foundFile, states);
    print(foundFile);
    return process.exit(0);
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    return process.exit(1);
  }
}

function nameOf(node) {
  return `node-${parseInt(node, 10)}`;
}

function exitCode() {
  const states = chosen.map((row) => results.of(row));
  if (states.some(({ lost, overBar }) => lost > 0 || overBar.length > 0)) return 1;
  const isLeft = ({ units, wanted, skipped, unmeasured }) => skipped === null && (units < wanted || unmeasured.length > 0);
  return isKept && states.some(isLeft) ? 2 : 0;
}

// A private copy of dist/, so that a build during the campaign does not change what is tried.
async function privateDist() {
  const script = path.join(root, 'scripts', 'compile.mjs');
  const compiled = await run(process.execPath, ['--disable-warning=ExperimentalWarning', script]);
  if (compiled.code !== 0) endLike(compiled);
  const folder = mkdtempSync(path.join(tmpdir(), 'pasted-campaign-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  cpSync(path.join(root, 'dist'), folder, { recursive: true });
  return path.join(folder, 'main.js');
}

/** Does not return. */
async function onPinnedNode(major) {
  const version = pinnedVersions.find((one) => one.startsWith(`${major}.`));
  if (version === undefined) fail(`no Node ${major} is pinned; there are ${pinnedVersions.join(' and ')}`);
  const node = await keptRuntime(version).catch((error) => {
    if (error instanceof Stopped) endLike({ code: null, signal: error.signal });
    return fail(`there is no Node ${version} to run on (${error.message})`);
  });
  await onOtherNode(node, { env: envWith(node, envOfHost()) });
}

/** Does not return. */
async function onOtherNode(node, spawnOptions) {
  const chooses = ['--node', '--node-path'];
  const args = process.argv.slice(2).filter((argument, index, all) => {
    return !chooses.includes(argument.split('=', 1)[0]) && !chooses.includes(all[index - 1]);
  });
  await become(node, [fileURLToPath(import.meta.url), ...args], spawnOptions);
}

function stopSoon() {
  if (!isStopping) say('stopping after the unit under way');
  isStopping = true;
}

function readArguments() {
  try {
    const parsed = parseArgs({
      allowPositionals: true,
      options: {
        quick: { type: 'boolean', default: false },
        seconds: { type: 'string' },
        seed: { type: 'string' },
        report: { type: 'string' },
        fresh: { type: 'boolean', default: false },
        'go-on': { type: 'boolean', default: false },
        node: { type: 'string' },
        'node-path': { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
    const { seconds = '0', seed = '0' } = parsed.values;
    if (!/^\d+$/.test(seconds) || !/^\d+$/.test(seed)) throw new Error('--seconds and --seed take a whole number');
    if (!parsed.values.help) return parsed;
    print(USAGE);
    return process.exit(0);
  } catch (error) {
    return fail(error.message);
  }
}

function fail(message) {
  process.stderr.write(`${message}\n\n${USAGE}\n`);
  return process.exit(1);
}

function print(text) {
  process.stdout.write(`${text}\n`);
}
