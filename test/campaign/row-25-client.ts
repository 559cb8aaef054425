// Row 25: pastec while something fails on its user's machine: each program that it starts, at each of its calls, and
// the disk of each folder that it writes to. A run with nothing broken shows which programs those are.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { EVERY_DEFECT, notedPrograms, pathWithCall, type Call, type Defect } from '../support/broken-programs.ts';
import { tlsSettings } from './client-identities.ts';
import { neutral, SCENARIOS, type Failure, type Scenario } from './client-scenarios.ts';
import { PLACES, runClient, withTrial, type Ended, type Place, type Trial } from './client-trial.ts';
import { mountFilled, mountObstacle } from './mounts.ts';
import { installedPrograms } from './programs.ts';
import type { Row, Unit } from './row.ts';

/** `disk`: folders with room for more and more pages or files, from none to enough. Only where disks can be mounted. */
type Kind = Defect | 'disk';
const KINDS: readonly Kind[] = mountObstacle() === undefined ? [...EVERY_DEFECT, 'disk'] : EVERY_DEFECT;

/** Each run waits for processes most of the time. */
const AT_ONCE = 4;

/** Calls whose failure once went wrong, by scenario: the test suite tries them as well. */
const ONCE_WRONG: Readonly<Record<string, readonly (readonly [program: string, number: number, defect: Defect])[]>> = {
  'put -E': [['cat', 1, 'is silent'], ['cat', 2, 'stops halfway'], ['cat', 3, 'stops halfway']],
  'get of what burns and is encrypted': [['cat', 1, 'is silent']],
  'get -o of what burns': [['cat', 1, 'stops halfway']],
  'register': [['curl', 2, 'stops halfway']],
  'cert export': [['openssl pkcs12', 1, 'stops halfway']],
  'cert export --for pem': [['cat', 1, 'stops halfway']],
  'cert export --for keychain, of a bundle': [['openssl pkcs12', 2, 'stops halfway']],
  'help': [['cat', 1, 'fails']],
  'completion bash': [['cat', 1, 'fails']],
  'ls': [['tr', 4, 'fails'], ['od', 1, 'fails']],
  'info': [['sed', 1, 'is killed'], ['date', 2, 'is killed']],
  'status': [['sed', 1, 'is killed'], ['date', 2, 'is killed'], ['tr', 1, 'is killed'], ['curl', 3, 'has no room']],
};

/** How many calls, chosen at random, the test suite breaks in a scenario that is not in this list. */
const QUICK_CALLS = 1;

/** More room than any run needs, in pages and in files. */
const MOST_ROOM = 64;

export const clientRow: Row = {
  name: '25',
  title: 'pastec while programs that it calls fail, or disks are full',
  target: 'each call of each program of each command, in each way',
  units: SCENARIOS.length * KINDS.length,
  least: ['runs with something broken'],
  obstacle: () => {
    const missing = ['curl', 'openssl'].filter((name) => !installedPrograms([name]).has(name));
    return missing.length === 0 ? undefined : `${missing.join(' and ')} must be installed`;
  },
  async run(unit) {
    if (unit.effort === 'full') {
      const scenario = SCENARIOS[(unit.seed - 1) % SCENARIOS.length]!;
      const kind = KINDS[Math.floor((unit.seed - 1) / SCENARIOS.length) % KINDS.length]!;
      return tryScenario(unit, scenario, [kind], await startFor(unit, scenario));
    }
    const plain = await startFor(unit, SCENARIOS[0]!);
    for (const scenario of SCENARIOS) {
      const isPlain = scenario.service === undefined && scenario.hasTls !== true;
      const port = isPlain ? plain : await startFor(unit, scenario);
      await tryScenario(unit, scenario, EVERY_DEFECT, port);
    }
  },
};

/** The port of a service with the settings of that scenario. */
async function startFor(unit: Unit, { name, service = {}, hasTls = false }: Scenario): Promise<number> {
  const folder = join(unit.folder, `service of ${name}`);
  const environment = { ...service, ...(hasTls ? await tlsSettings(folder) : {}) };
  return (await unit.start({ folder, environment })).port();
}

async function tryScenario(unit: Unit, scenario: Scenario, kinds: readonly Kind[], port: number): Promise<void> {
  const trials: Trials = { unit, scenario, port, expected: undefined };
  const { calls, printed } = await runWhole(trials);
  const all = { ...trials, expected: printed };
  if (kinds.includes('disk')) await fillDisks(all);
  else {
    const points = kinds.flatMap((defect) => calls.map((call) => ({ call, defect: defect as Defect })));
    const chosen = unit.effort === 'full' ? points : quickPoints(unit, scenario, points);
    const work = async (): Promise<void> => {
      for (let point = chosen.pop(); point !== undefined && !unit.isHopeless(); point = chosen.pop()) {
        await breakCall(all, point.call, point.defect);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }
}

interface Point {
  readonly call: Call;
  readonly defect: Defect;
}

function quickPoints(unit: Unit, { name }: Scenario, points: readonly Point[]): Point[] {
  const known = ONCE_WRONG[name]?.map(([program, number, defect]) => {
    const point = points.find((one) => {
      return one.call.program === program && one.call.number === number && one.defect === defect;
    });
    if (point === undefined) throw new Error(`${name} does not call ${program} ${number} times any more`);
    return point;
  });
  return known ?? Array.from({ length: QUICK_CALLS }, () => unit.random.pick(points));
}

interface Trials {
  readonly unit: Unit;
  readonly scenario: Scenario;
  readonly port: number;
  /** What is printed when nothing fails. */
  readonly expected: string | undefined;
}

/** With nothing broken: which programs it calls, and what it prints. */
async function runWhole(trials: Trials): Promise<{ calls: readonly Call[]; printed: string }> {
  return withTrial(trials.unit.folder, trials.port, async (trial) => {
    const attempt = await trials.scenario.begin(trial);
    const { path, calls } = notedPrograms(trial.root);
    const ended = await runClient(trial, attempt.args, attempt.input ?? '', { PATH: path });
    const wrong = await attempt.judge(ended, { lies: false, isFull: false, expected: undefined });
    if (ended.code !== 0 || wrong.length > 0) {
      trials.unit.lose(`${trials.scenario.name}: fails by itself`, { ...ended, stdout: String(ended.stdout), wrong });
    }
    return { calls: calls(), printed: neutral(trial, ended.stdout) };
  });
}

async function breakCall(trials: Trials, call: Call, defect: Defect): Promise<void> {
  await withTrial(trials.unit.folder, trials.port, async (trial) => {
    const attempt = await trials.scenario.begin(trial);
    const { path, hasCome } = pathWithCall(trial.root, defect, call);
    const ended = await runClient(trial, attempt.args, attempt.input ?? '', { PATH: path });
    // A run may make fewer calls than the one before, for example while it solves a challenge.
    if (!hasCome()) return trials.unit.count('calls that did not come');
    const lies = defect === 'is silent' || defect === 'stops halfway';
    const failure = { program: call.program, lies, isFull: false, expected: trials.expected };
    const wrong = [...await attempt.judge(ended, failure), ...judgeAlways(trial, ended)];
    note(trials, `call ${call.number} of ${call.program} ${defect}`, ended, wrong);
    trials.unit.count('broken calls');
  });
}

/** Runs with each folder on a disk, with more and more room until there is enough. */
async function fillDisks(trials: Trials): Promise<void> {
  for (const place of PLACES) {
    for (const kind of ['pages', 'files'] as const) {
      let isEnough = false;
      for (let room = 0; !isEnough && room <= MOST_ROOM; room += 1) {
        isEnough = await onFullDisk(trials, place, kind, room);
      }
      if (!isEnough) trials.unit.lose(`${trials.scenario.name}: no room is enough in ${place}`);
    }
  }
}

/** Whether there was room enough. */
async function onFullDisk(trials: Trials, place: Place, kind: 'pages' | 'files', room: number): Promise<boolean> {
  return withTrial(trials.unit.folder, trials.port, async (trial) => {
    const attempt = await trials.scenario.begin(trial);
    mountFilled(trial.folders[place], { [kind]: room });
    const ended = await runClient(trial, attempt.args, attempt.input ?? '', {});
    const failure: Failure = { lies: false, isFull: true, expected: trials.expected };
    const wrong = [...await attempt.judge(ended, failure), ...judgeAlways(trial, ended)];
    note(trials, `room for ${room} ${kind} in ${place}`, ended, wrong);
    trials.unit.count('full disks');
    return ended.code === 0;
  });
}

/** What holds for every command. */
function judgeAlways({ folders }: Trial, { code, stderr }: Ended): string[] {
  const wrong: string[] = [];
  const left = readdirSync(folders.temporary).filter((name) => !stderr.includes(join(folders.temporary, name)));
  if (left.length > 0) wrong.push(`left without a word: ${left.join(' ')}`);
  if (code === 'SIGKILL') wrong.push('it does not end');
  if (code !== 0 && stderr === '') wrong.push('it fails without a word');
  if (/nobody|a secret password|BwcHBwcHBwcH/.test(stderr)) wrong.push('a secret is in an error');
  return wrong;
}

function note({ unit, scenario }: Trials, what: string, ended: Ended, wrong: readonly string[]): void {
  unit.count('runs with something broken');
  if (ended.code !== 0) unit.count('said to have failed');
  for (const fault of wrong) {
    unit.lose(`${scenario.name}, ${what}: ${fault}`, { ...ended, stdout: String(ended.stdout).slice(0, 500) });
  }
}
